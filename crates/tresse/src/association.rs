//! Handle of an association for applications: messages, settings, statistics, shutdown.
//!
//! Handles are cheap to clone and may be used from several tasks at once.

use std::collections::VecDeque;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::task::coop::consume_budget;
use tresse_proto::config::{StreamClass, StreamMap};
use tresse_proto::protection::ProtectionStats;
use tresse_proto::{
    Abandonments, AddressError, AdjustError, Adjustment, AssociationConfig, AssociationHandle, AssociationId,
    AssociationStats, CloseReason, Direction, KeyError, Message, NoSuchPath, PathAdjustment, PathId,
    PathStats, ReconfigurationError, ScheduleError, SendError, SendOptions, SendQueueInfo, StreamId, Streams,
    Tsn, Undelivered,
};
use tresse_wire::ChunkKind;

use crate::error::{Ended, TryRecvError};
use crate::events::Events;
#[cfg(feature = "encryption")]
use crate::security::{PeerIdentity, SecurityFault};
use crate::shared::{Shared, State};
use crate::waiting::{BoxFuture, Signals, until};

/// One association. Clones share it.
///
/// Dropping the last clone shuts the association down in the background: messages that were sent are still delivered, and
/// messages that arrive are discarded.
///
/// ```no_run
/// # async fn report(association: tresse::Association) -> Result<(), Box<dyn std::error::Error>> {
/// use tresse::{SendError, SendOptions, StreamId};
///
/// // A task of its own receives, because a full receive buffer stops the peer.
/// let receiver = association.clone();
/// let receiving = tokio::spawn(async move {
///     while let Some(message) = receiver.recv().await? {
///         println!("{} bytes on stream {}", message.payload.len(), message.stream.0);
///     }
///     Ok::<(), tresse::Ended>(())
/// });
/// let newest = SendOptions::on(StreamId(1));
/// match association.try_send(newest, "a measurement that nobody waits for") {
///     Ok(()) | Err(SendError::Full { .. }) => {}
///     Err(error) => return Err(error.into()),
/// }
/// association.shutdown().await?;
/// receiving.await??;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Association {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    id: AssociationId,
    signals: Arc<Signals>,
    /// Bytes since the budget of the runtime was last charged; approximate if several tasks send.
    carried: AtomicUsize,
}

impl Association {
    pub(crate) fn new(shared: Arc<Shared>, id: AssociationId, signals: Arc<Signals>) -> Self {
        Association { inner: Arc::new(Inner { shared, id, signals, carried: AtomicUsize::new(0) }) }
    }

    /// Returns its identifier in the endpoint.
    pub fn id(&self) -> crate::AssociationId {
        crate::AssociationId { driver: self.inner.shared.number, id: self.inner.id }
    }

    /// Returns the numbers of streams after negotiation: of the sending and of the receiving direction.
    pub fn streams(&self) -> (u16, u16) {
        self.inner.ask(|association| association.streams())
    }

    /// Queues a message, waiting for room in the send buffer.
    ///
    /// It does not wait for delivery; [`Association::shutdown`] does. If the future is dropped, nothing is queued.
    ///
    /// # Errors
    /// A message that can never be queued, or an association that has ended ([`Association::close_reason`] returns the
    /// reason).
    pub async fn send(&self, options: SendOptions, data: impl Into<Bytes>) -> Result<(), SendError> {
        let data = data.into();
        self.inner.consume_budget(data.len()).await;
        until(&self.inner.signals.writable, || match self.try_send(options, data.clone()) {
            Err(SendError::Full { .. }) => None,
            outcome => Some(outcome),
        })
        .await
    }

    /// Queues a message if there is room for it now.
    ///
    /// # Errors
    /// As [`Association::send`], and [`SendError::Full`].
    pub fn try_send(&self, options: SendOptions, data: impl Into<Bytes>) -> Result<(), SendError> {
        let mut state = self.inner.shared.lock();
        state.check_driven()?;
        let now = self.inner.shared.command_time(&mut state);
        self.inner.command_on(&mut state, |association| association.send(now, options, data.into()))
    }

    /// Returns the runtime of the driver.
    pub(crate) fn runtime(&self) -> Option<&Handle> {
        self.inner.shared.group.runtime.as_ref()
    }

    /// Waits until there may be more room in the send buffer, or the association has ended. It misses no event from its
    /// first poll on.
    pub(crate) fn more_room(&self) -> BoxFuture<()> {
        let signals = Arc::clone(&self.inner.signals);
        Box::pin(async move { signals.writable.notified().await })
    }

    /// Queues messages from the front of `messages` until none is left, waiting for room in the send buffer. For many
    /// messages this is cheaper than one call for each. Each message has its own options.
    ///
    /// Queued messages are removed from `messages`, also when the future is dropped or fails.
    ///
    /// # Errors
    /// As [`Association::send`], for the message that is then at the front.
    pub async fn send_many(&self, messages: &mut VecDeque<(SendOptions, Bytes)>) -> Result<(), SendError> {
        while !messages.is_empty() {
            consume_budget().await;
            until(&self.inner.signals.writable, || match self.try_send_many(messages) {
                Err(SendError::Full { .. }) => None,
                outcome => Some(outcome.map(|_| ())),
            })
            .await?;
        }
        Ok(())
    }

    /// Queues messages from the front of `messages` as far as there is room for them now, a few hundred at most.
    /// Returns the number of queued messages.
    ///
    /// # Errors
    /// As [`Association::try_send`], for the first message: none was queued then.
    pub fn try_send_many(&self, messages: &mut VecDeque<(SendOptions, Bytes)>) -> Result<usize, SendError> {
        let now = self.inner.shared.now();
        let mut state = self.inner.shared.lock();
        state.check_driven()?;
        self.inner.command_on(&mut state, |association| {
            for sent in 0..MOST_AT_ONCE {
                let Some((options, data)) = messages.front() else { return Ok(sent) };
                match association.send(now, *options, data.clone()) {
                    Ok(()) => messages.pop_front(),
                    Err(error) if sent == 0 => return Err(error),
                    Err(_) => return Ok(sent),
                };
            }
            Ok(MOST_AT_ONCE)
        })
    }

    /// Waits for messages and appends those that have arrived to `messages`, at most `limit`. For many messages this is
    /// cheaper than one call for each. Returns their number; 0 where [`Association::recv`] would return `None`, or
    /// `limit` is 0.
    ///
    /// Dropping the future loses no message.
    ///
    /// # Errors
    /// As [`Association::recv`].
    pub async fn recv_many(&self, messages: &mut Vec<Message>, limit: usize) -> Result<usize, Ended> {
        consume_budget().await;
        if limit == 0 {
            return Ok(0);
        }
        until(&self.inner.signals.readable, || {
            let mut state = self.inner.shared.lock();
            let limit = limit.min(MOST_AT_ONCE);
            let before = messages.len();
            messages.extend(std::iter::from_fn(|| self.inner.take(&mut state)).take(limit));
            match messages.len() - before {
                0 => self.inner.end_of_messages(&state).map(|end| end.map(|_| 0)),
                count => Some(Ok(count)),
            }
        })
        .await
    }

    /// Returns the next message, in the order of its stream, or a part of a message that is too long for the receive
    /// buffer ([`Message::part`]). Returns `None` once the peer has ended the association gracefully and all messages
    /// were received.
    ///
    /// Dropping the future loses no message.
    ///
    /// # Errors
    /// The association ended in another way. The messages that had arrived were returned before.
    pub async fn recv(&self) -> Result<Option<Message>, Ended> {
        self.inner.consume_budget(0).await;
        until(&self.inner.signals.readable, || {
            let mut state = self.inner.shared.lock();
            match self.inner.take(&mut state) {
                Some(message) => Some(Ok(Some(message))),
                None => self.inner.end_of_messages(&state),
            }
        })
        .await
    }

    /// Returns the next message, if one has arrived.
    ///
    /// # Errors
    /// No message has arrived, or none will arrive any more.
    pub fn try_recv(&self) -> Result<Message, TryRecvError> {
        let mut state = self.inner.shared.lock();
        if let Some(message) = self.inner.take(&mut state) {
            return Ok(message);
        }
        match self.inner.end_of_messages(&state) {
            None => Err(TryRecvError::Empty),
            Some(Ok(_)) => Err(TryRecvError::Finished),
            Some(Err(ended)) => Err(TryRecvError::Ended(ended)),
        }
    }

    /// Returns the events of the association from now on: path changes, streams that were reset or added, the peer's
    /// shutdown, the end.
    pub fn events(&self) -> Events {
        Events::new(self.inner.shared.lock().subscribe(self.inner.id))
    }

    /// Returns the state of the send queue as a whole.
    pub fn send_queue(&self) -> SendQueueInfo {
        self.inner.ask(|association| association.send_queue())
    }

    /// Returns the bytes of `stream` not yet sent; 0 for a stream that does not exist.
    pub fn unsent_on(&self, stream: StreamId) -> usize {
        self.inner.ask(|association| association.unsent_on(stream))
    }

    /// Waits until at most `bytes` of `stream` are not yet sent, so that the application may send more. With this an
    /// application keeps every stream busy and prevents that one stream fills the send buffer.
    ///
    /// It moves the stream's low-water mark ([`Association::set_low_water`]). Dropping the future has no other effect.
    ///
    /// # Errors
    /// A stream that does not exist, or an association that has ended.
    pub async fn low_water(&self, stream: StreamId, bytes: usize) -> Result<(), SendError> {
        consume_budget().await;
        until(&self.inner.signals.low_water, || self.inner.gauge(stream, bytes)).await
    }

    /// Publishes [`Event::LowWater`](crate::Event::LowWater) when at most `bytes` of `stream` are not yet sent: at once if that is already
    /// true, and then each time that it becomes true. `None` stops these events.
    ///
    /// # Errors
    /// A stream that does not exist.
    pub fn set_low_water(&self, stream: StreamId, bytes: Option<usize>) -> Result<(), ScheduleError> {
        self.inner.command(|association| association.set_low_water(stream, bytes))
    }

    /// Returns the numbers of messages of `stream` that were abandoned, by policy; [`AssociationStats::abandoned`] has
    /// those of all streams.
    pub fn abandoned_on(&self, stream: StreamId) -> Abandonments {
        self.inner.ask(|association| association.abandoned_on(stream))
    }

    /// Returns counters and windows of the association.
    pub fn stats(&self) -> AssociationStats {
        let now = self.inner.shared.now();
        self.inner
            .ask(|association| association.stats(now))
            .expect("handles are given out when set-up is complete")
    }

    /// Returns counters and windows of every path, by position; the state of a removed path is
    /// [`Removed`](crate::PathState::Removed).
    pub fn path_stats(&self) -> Vec<PathStats> {
        let now = self.inner.shared.now();
        self.inner.ask(|association| association.path_stats(now))
    }

    /// Selects the stream scheduler by name. Queued data is kept.
    ///
    /// # Errors
    /// An unknown name, or a configuration that the scheduler refuses.
    pub fn set_stream_scheduler(&self, name: &str, config: &str) -> Result<(), ScheduleError> {
        self.inner.command(|association| association.set_stream_scheduler(name, config))
    }

    /// Sets the class of a stream. Queued data is kept. The adaptive stream map uses classes. With any map, short
    /// messages of streams of the class latency are duplicated on the other paths.
    ///
    /// # Errors
    /// A stream that does not exist, or a stream scheduler that cannot be built for one more class.
    pub fn set_stream_class(&self, stream: StreamId, class: StreamClass) -> Result<(), ScheduleError> {
        self.inner.command(|association| association.set_stream_class(stream, class))
    }

    /// Returns the class of a stream; `None` if the stream does not exist.
    pub fn stream_class(&self, stream: StreamId) -> Option<StreamClass> {
        self.inner.ask(|association| association.stream_class(stream))
    }

    /// Sets the paths that each stream may use. Queued data is kept.
    ///
    /// # Errors
    /// A stream scheduler that cannot be built for the new map; the old map then stays.
    pub fn set_stream_map(&self, map: StreamMap) -> Result<(), ScheduleError> {
        self.inner.command(|association| association.set_stream_map(map))
    }

    /// Makes `path` the primary path.
    ///
    /// # Errors
    /// A path that does not exist.
    pub fn set_primary(&self, path: PathId) -> Result<(), NoSuchPath> {
        self.inner.command(|association| association.set_primary(path))
    }

    /// Changes settings while the association runs.
    ///
    /// # Errors
    /// Values that are not usable, or an association that has ended; nothing is changed then.
    pub fn adjust(&self, change: Adjustment) -> Result<(), AdjustError> {
        self.inner.command(|association| association.adjust(change))
    }

    /// Changes settings of one path. They have precedence over those of [`Association::adjust`] until that sets them again.
    ///
    /// # Errors
    /// A path that does not exist, or values that are not usable; nothing is changed then.
    pub fn adjust_path(&self, path: PathId, change: PathAdjustment) -> Result<(), AdjustError> {
        self.inner.command(|association| association.adjust_path(path, change))
    }

    /// Sends a heartbeat on `path`, due or not (RFC 9260 §8.3), unless one is outstanding. The result is in
    /// [`Association::path_stats`].
    ///
    /// # Errors
    /// A path that does not exist.
    pub fn request_heartbeat(&self, path: PathId) -> Result<(), NoSuchPath> {
        let now = self.inner.shared.now();
        self.inner.command(|association| association.request_heartbeat(now, path))
    }

    /// Returns the present settings of the association.
    pub fn config(&self) -> AssociationConfig {
        self.inner.ask(|association| association.config().clone())
    }

    /// Returns the cumulative TSN of the data received from the peer.
    pub fn cumulative_tsn(&self) -> Tsn {
        self.inner.ask(|association| association.cumulative_tsn())
    }

    /// Returns the messages that the peer had not acknowledged when the association ended, in the order of sending; none
    /// before the end, and none after a graceful end. A message of which a part was sent may have arrived
    /// ([`Undelivered::sent`]).
    pub fn undelivered(&self) -> Vec<Undelivered> {
        self.inner.ask(|association| association.undelivered())
    }

    /// Returns the peer's SCTP port.
    pub fn remote_port(&self) -> u16 {
        self.inner.ask(|association| association.remote_port())
    }

    /// Sets the value of a stream: its priority, weight, or another meaning that the stream scheduler defines.
    ///
    /// # Errors
    /// A stream that does not exist, or a value that the scheduler refuses; a scheduler without values refuses all.
    pub fn set_stream_value(&self, stream: StreamId, value: u16) -> Result<(), ScheduleError> {
        self.inner.command(|association| association.set_stream_value(stream, value))
    }

    /// Returns the value of a stream; `None` if the stream scheduler has no values, or the stream does not exist.
    pub fn stream_value(&self, stream: StreamId) -> Option<u16> {
        self.inner.ask(|association| association.stream_value(stream))
    }

    /// Resets streams to SSN 0 (RFC 6525). Messages queued before are sent first. Messages queued from now on wait
    /// until the peer has agreed; if it refuses, they are sent with the old numbers.
    /// [`Event::Reconfigured`](crate::Event::Reconfigured) has the answer of the peer, once for each direction.
    ///
    /// # Errors
    /// Streams that do not exist, or a request that cannot be made now; nothing was changed then.
    pub fn reset_streams(
        &self,
        streams: impl Into<Streams>,
        direction: Direction,
    ) -> Result<(), ReconfigurationError> {
        let now = self.inner.shared.now();
        self.inner.command(|association| association.reset_streams(now, streams.into(), direction))
    }

    /// Resets all streams of both directions, and the TSNs, as in a new association (RFC 6525), every 30 s at most.
    /// [`Event::Reconfigured`](crate::Event::Reconfigured) has the answer of the peer.
    ///
    /// # Errors
    /// A request that cannot be made now; nothing was changed then.
    pub fn reset_association(&self) -> Result<(), ReconfigurationError> {
        let now = self.inner.shared.now();
        self.inner.command(|association| association.reset_association(now))
    }

    /// Adds streams, numbered after the existing ones: `outbound` streams on which this side sends, and `inbound`
    /// streams on which the peer sends.
    /// [`Event::Reconfigured`](crate::Event::Reconfigured) has the answer of the peer, once for each direction.
    /// [`Event::StreamsAdded`](crate::Event::StreamsAdded) reports that the streams can be used.
    ///
    /// # Errors
    /// More streams than are possible, or a request that cannot be made now; nothing was changed then.
    pub fn add_streams(&self, outbound: u16, inbound: u16) -> Result<(), ReconfigurationError> {
        let now = self.inner.shared.now();
        self.inner.command(|association| association.add_streams(now, outbound, inbound))
    }

    /// Returns whether both ends support ASCONF (RFC 5061), so that own addresses can be added and removed.
    pub fn takes_address_changes(&self) -> bool {
        self.inner.ask(|association| association.agreed_chunks().contains(&ChunkKind::ASCONF))
    }

    /// Adds an address of the endpoint to the association (RFC 5061); [`Endpoint::add_local_address`] binds an address.
    /// [`Event::PathChanged`](crate::Event::PathChanged) reports its paths, and
    /// [`Event::OwnAddress`](crate::Event::OwnAddress) the answer of the peer.
    ///
    /// [`Endpoint::add_local_address`]: crate::Endpoint::add_local_address
    ///
    /// # Errors
    /// An address that cannot be added, or a request that is not possible; nothing was changed then.
    pub fn add_address(&self, address: IpAddr) -> Result<(), AddressError> {
        let bound = self.inner.shared.lock().addresses();
        if !bound.contains(&address) {
            let bound: Vec<String> = bound.iter().map(IpAddr::to_string).collect();
            return Err(AddressError::NotBound { address, bound: bound.join(", ") });
        }
        let now = self.inner.shared.now();
        self.inner.command(|association| association.add_address(now, address))
    }

    /// Removes an own address from the association (RFC 5061); the endpoint stays bound to it. Chunks in flight from
    /// this address are retransmitted on other paths. [`Event::OwnAddress`](crate::Event::OwnAddress) reports that the peer has agreed.
    ///
    /// # Errors
    /// An address that cannot be removed, or a request that is not possible; nothing was changed then.
    pub fn remove_address(&self, address: IpAddr) -> Result<(), AddressError> {
        let now = self.inner.shared.now();
        self.inner.command(|association| association.remove_address(now, address))
    }

    /// Asks the peer to send to this own address if it uses one path at a time (RFC 5061).
    ///
    /// # Errors
    /// An address that the association does not have, or a request that is not possible.
    pub fn set_peer_primary(&self, address: IpAddr) -> Result<(), AddressError> {
        let now = self.inner.shared.now();
        self.inner.command(|association| association.set_peer_primary(now, address))
    }

    /// Returns the identity that the peer has proved; `None` if associations are not encrypted.
    #[cfg(feature = "encryption")]
    pub fn peer_identity(&self) -> Option<PeerIdentity> {
        self.inner.shared.lock().keyring.as_ref().and_then(|keyring| keyring.peer(self.inner.id).cloned())
    }

    /// Returns the security fault that ended the association; `None` if there is none. With a fault,
    /// [`Association::close_reason`] only shows
    /// that one side aborted it.
    #[cfg(feature = "encryption")]
    pub fn security_fault(&self) -> Option<SecurityFault> {
        self.inner.shared.lock().keyring.as_ref().and_then(|keyring| keyring.fault(self.inner.id).cloned())
    }

    /// Exchanges new keys, as soon as the previous keys are no longer needed for packets in flight. This also happens
    /// regularly without this call: [`Rekeying`](crate::security::Rekeying).
    #[cfg(feature = "encryption")]
    pub fn renew_keys(&self) {
        let now = self.inner.shared.now();
        self.inner.shared.lock().renew_keys(self.inner.id, now);
    }

    /// Returns the number of key generations so far; 0 if associations are not encrypted.
    #[cfg(feature = "encryption")]
    pub fn key_generation(&self) -> u64 {
        self.inner.shared.lock().keyring.as_ref().map_or(0, |keyring| keyring.generation(self.inner.id))
    }

    /// Returns the counters of the encryption so far; `None` if associations are not encrypted.
    pub fn protection_stats(&self) -> Option<ProtectionStats> {
        self.inner.ask(|association| association.protection_stats())
    }

    /// Sets or replaces a shared key of this association (RFC 4895 §6.1). The peer needs the same key, and should have
    /// it before the call of [`Association::use_shared_key`].
    ///
    /// # Errors
    /// Authentication was not negotiated, or the association has ended.
    pub fn set_shared_key(&self, number: u16, secret: &[u8]) -> Result<(), KeyError> {
        self.inner.command(|association| association.set_shared_key(number, secret))
    }

    /// Authenticates with this shared key from now on.
    ///
    /// # Errors
    /// There is no key of this number; or as [`Association::set_shared_key`].
    pub fn use_shared_key(&self, number: u16) -> Result<(), KeyError> {
        self.inner.command(|association| association.use_shared_key(number))
    }

    /// Removes a shared key. Chunks that the peer still authenticates with it are discarded.
    ///
    /// # Errors
    /// There is no key of this number, or it is in use; or as [`Association::set_shared_key`].
    pub fn remove_shared_key(&self, number: u16) -> Result<(), KeyError> {
        self.inner.command(|association| association.remove_shared_key(number))
    }

    /// Ends the association after everything queued has been delivered, and waits for that.
    ///
    /// The application has to receive the peer's remaining messages meanwhile ([`Association::recv`]): a full receive
    /// buffer delays the end.
    ///
    /// The first poll of the future begins the shutdown; dropping the future then does not stop it.
    ///
    /// # Errors
    /// The association ended in another way: not everything may have been delivered.
    pub async fn shutdown(&self) -> Result<(), Ended> {
        let now = self.inner.shared.now();
        self.inner.command(|association| association.shutdown(now));
        match self.closed().await {
            CloseReason::Graceful => Ok(()),
            reason => Err(Ended(reason)),
        }
    }

    /// Ends the association at once; [`Association::undelivered`] returns the messages that were not delivered. The
    /// peer gets the first 480 bytes of `reason`; the applications define their meaning.
    pub fn abort(&self, reason: impl AsRef<[u8]>) {
        let now = self.inner.shared.now();
        self.inner.command(|association| association.abort(now, reason));
    }

    /// Waits for the end of the association, and returns the reason. Dropping the future has no effect.
    pub async fn closed(&self) -> CloseReason {
        until(&self.inner.signals.phase, || self.close_reason()).await
    }

    /// Returns the reason for which the association ended; `None` while it has not ended.
    pub fn close_reason(&self) -> Option<CloseReason> {
        let state = self.inner.shared.lock();
        state.slot(self.inner.id).and_then(|slot| slot.ended().cloned())
    }

    /// Waits until set-up has succeeded or failed.
    pub(crate) async fn settled(&self) -> Result<(), Ended> {
        until(&self.inner.signals.phase, || {
            let state = self.inner.shared.lock();
            let slot = state.slot(self.inner.id)?;
            match slot.ended() {
                Some(reason) => Some(Err(Ended(reason.clone()))),
                None => slot.is_settled().then_some(Ok(())),
            }
        })
        .await
    }
}

impl Inner {
    /// Runs a query on the core.
    fn ask<T>(&self, question: impl FnOnce(&mut AssociationHandle<'_>) -> T) -> T {
        let mut state = self.shared.lock();
        state.with(self.id, question).expect("the core keeps an association until its last handle is dropped")
    }

    /// Runs a command on the core and wakes the driver.
    fn command<T>(&self, command: impl FnOnce(&mut AssociationHandle<'_>) -> T) -> T {
        self.command_on(&mut self.shared.lock(), command)
    }

    /// Does the same while the lock is held.
    fn command_on<T>(&self, state: &mut State, command: impl FnOnce(&mut AssociationHandle<'_>) -> T) -> T {
        let outcome = state.with(self.id, command);
        state.wake_driver();
        outcome.expect("the core keeps an association until its last handle is dropped")
    }

    /// Returns `Some` if at most `bytes` of `stream` wait or the stream cannot be used; otherwise sets the low-water mark.
    fn gauge(&self, stream: StreamId, bytes: usize) -> Option<Result<(), SendError>> {
        let mut state = self.shared.lock();
        if state.slot(self.id).is_some_and(|slot| slot.ended().is_some()) {
            return Some(Err(SendError::NotOpen { state: "CLOSED" }));
        }
        let low = state.with(self.id, |association| {
            if association.unsent_on(stream) <= bytes {
                let count = association.streams().0;
                let exists = stream.0 < count;
                return Some(if exists { Ok(()) } else { Err(SendError::NoSuchStream { stream, count }) });
            }
            association.set_low_water(stream, Some(bytes)).ok();
            None
        });
        low.flatten()
    }

    fn take(&self, state: &mut State) -> Option<Message> {
        let now = state.clock();
        let message = state.with(self.id, |association| association.recv(now)).flatten()?;
        // The receiver window has become larger: a SACK may be due.
        if state.core.wants_to_transmit() {
            state.wake_driver();
        }
        Some(message)
    }

    /// Charges the budget of the runtime, so that other tasks on this thread run. The charge counts bytes and not
    /// messages, so a call with a short message costs little.
    async fn consume_budget(&self, bytes: usize) {
        let carried = self.carried.load(Ordering::Relaxed).saturating_add(bytes + MESSAGE_COST);
        let due = carried >= BYTES_PER_TURN;
        self.carried.store(if due { 0 } else { carried }, Ordering::Relaxed);
        if due {
            consume_budget().await;
        }
    }

    fn end_of_messages(&self, state: &State) -> Option<Result<Option<Message>, Ended>> {
        let slot = state.slot(self.id)?;
        match slot.ended() {
            Some(CloseReason::Graceful) => Some(Ok(None)),
            Some(reason) => Some(Err(Ended(reason.clone()))),
            None => slot.peer_done().then_some(Ok(None)),
        }
    }
}

impl fmt::Debug for Association {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Association")
            .field("id", &self.id())
            .field("close_reason", &self.close_reason())
            .finish_non_exhaustive()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let now = self.shared.now();
        self.shared.lock().detach(self.id, now);
    }
}

/// Bytes for which one unit of the runtime's budget is charged; a task has 128 units before others run.
const BYTES_PER_TURN: usize = 2048;
/// Bytes of memory that a message needs besides its data.
const MESSAGE_COST: usize = 128;
/// Most messages that are queued or received while the endpoint is locked.
const MOST_AT_ONCE: usize = 512;
