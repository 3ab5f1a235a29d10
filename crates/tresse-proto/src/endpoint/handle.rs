//! Commands for one association, borrowed from its endpoint.

use std::net::IpAddr;

use bytes::Bytes;
use tresse_policy::{Instant, PathId, ScheduleError};
use tresse_wire::{ChunkKind, StreamId, Tsn};

use super::Endpoint;
use super::demux::Slot;
use super::slots::Occupant;
use crate::association::{Association, State};
use crate::config::{AssociationConfig, StreamClass, StreamMap};
use crate::context::Context;
use crate::extensions::auth::SharedKeys;
use crate::extensions::reconfig::Ask;
use crate::interface::addresses::AddressChange;
use crate::interface::adjustment::{AdjustError, Adjustment, PathAdjustment};
use crate::interface::error::{AddressError, KeyError, NoSuchPath, ReconfigurationError, SendError};
use crate::interface::event::{CloseReason, Message, SendOptions};
use crate::interface::reconfiguration::{Direction, Streams};
use crate::interface::reliability::Abandonments;
use crate::interface::stats::{AssociationStats, PathStats, SendQueueInfo};
use crate::interface::undelivered::Undelivered;

/// Commands for one association.
pub struct AssociationHandle<'a> {
    endpoint: &'a mut Endpoint,
    slot: Slot,
}

impl std::fmt::Debug for AssociationHandle<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AssociationHandle").finish_non_exhaustive()
    }
}

impl<'a> AssociationHandle<'a> {
    pub(super) fn new(endpoint: &'a mut Endpoint, slot: Slot) -> Self {
        AssociationHandle { endpoint, slot }
    }

    /// Queues a message. One that is given before the association is set up can leave with the set-up's third packet
    /// (setting `data_with_cookie`); how many streams there will be, is not known by then: a message for one that the
    /// peer does not agree to comes back as [`Event::Abandoned`](crate::Event::Abandoned).
    ///
    /// # Errors
    /// When the message cannot be queued; nothing of it was.
    pub fn send(&mut self, now: Instant, options: SendOptions, data: Bytes) -> Result<(), SendError> {
        let Some(association) = self.open_mut() else { return self.send_early(now, options, data) };
        let queued = association.send(now, options, data);
        if association.may_have_output() {
            self.poll_soon();
        }
        queued
    }

    fn send_early(&mut self, now: Instant, options: SendOptions, data: Bytes) -> Result<(), SendError> {
        match self.endpoint.slots.get_mut(self.slot) {
            Some(Occupant::Setup(setup)) => setup.send(now, options, data),
            _ => Err(SendError::NotOpen { state: self.state_name() }),
        }
    }

    /// The next message that arrived.
    pub fn recv(&mut self, _now: Instant) -> Option<Message> {
        let association = self.open_mut()?;
        let message = association.recv();
        if association.may_have_output() {
            self.poll_soon();
        }
        message
    }

    /// Number of messages, and of parts of messages, that have arrived and that [`Self::recv`] has not returned yet.
    pub fn unread(&self) -> usize {
        self.open().map_or(0, |association| association.unread())
    }

    /// Ends the association once everything queued has been delivered (RFC 9260 §9.2). One that is still
    /// being set up ends at once, unless messages wait for it.
    pub fn shutdown(&mut self, now: Instant) {
        if let Some(association) = self.open_mut() {
            association.shut_down(now);
            self.endpoint.settle(self.slot);
        } else if let Some(Occupant::Setup(setup)) = self.endpoint.slots.get_mut(self.slot)
            && !setup.shut_down_later()
        {
            self.endpoint.give_up_setup(self.slot, b"given up during set-up");
        }
    }

    /// Ends the association at once (RFC 9260 §9.1). The peer gets the first 480 bytes of `reason` in a
    /// User-Initiated Abort; their meaning is up to the applications.
    pub fn abort(&mut self, _now: Instant, reason: impl AsRef<[u8]>) {
        let reason = reason.as_ref();
        if let Some(association) = self.open_mut() {
            association.abort(Some(reason), CloseReason::Aborted);
            self.endpoint.settle(self.slot);
        } else if self.is_setting_up() {
            self.endpoint.give_up_setup(self.slot, reason);
        }
    }

    /// Returns whether messages can be sent.
    pub fn is_established(&self) -> bool {
        self.open().is_some_and(|association| association.state() == State::Established)
    }

    /// The send queue as a whole.
    pub fn send_queue(&self) -> SendQueueInfo {
        match self.endpoint.slots.get(self.slot) {
            Some(Occupant::Open(association)) => association.sender().outbound.buffer.info(),
            Some(Occupant::Setup(setup)) => setup.send_queue(),
            _ => SendQueueInfo::default(),
        }
    }

    /// Bytes of `stream` not yet sent; zero for a stream that was never used.
    pub fn unsent_on(&self, stream: StreamId) -> usize {
        self.open().map_or(0, |association| association.sender().outbound.unsent_on(stream))
    }

    /// Wants to hear by [`Event::LowWater`](crate::Event::LowWater) when at most `bytes` of `stream` are not
    /// yet sent: at once if that is so already, and then each time that it becomes so. `None` ends it. With
    /// this an application gives every stream what it can use, and no stream fills the send buffer alone.
    ///
    /// # Errors
    /// A stream that does not exist, or does not yet.
    pub fn set_low_water(&mut self, stream: StreamId, bytes: Option<usize>) -> Result<(), ScheduleError> {
        let association = self.open_mut().ok_or(ScheduleError::NoSuchStream(stream))?;
        association.change_queues(|queues| queues.set_low_water(stream, bytes))?;
        self.endpoint.settle(self.slot);
        Ok(())
    }

    /// Messages of `stream` that were given up ([`Reliability`](crate::Reliability)), by policy.
    pub fn abandoned_on(&self, stream: StreamId) -> Abandonments {
        self.open().map(|association| association.sender().abandoned_on(stream)).unwrap_or_default()
    }

    /// Chooses the stream scheduler by name; queued data stays. An association that is being set up begins
    /// with it.
    ///
    /// # Errors
    /// An unknown name, or a configuration that the scheduler refuses; the old one then stays. An association
    /// that could not be set up.
    pub fn set_stream_scheduler(&mut self, name: &str, config: &str) -> Result<(), ScheduleError> {
        match self.endpoint.slots.get_mut(self.slot) {
            Some(Occupant::Open(association)) => {
                let registry = &self.endpoint.registry;
                association.change_queues(|queues| queues.set_scheduler(registry, name, config))?;
                self.endpoint.settle(self.slot);
                Ok(())
            }
            Some(Occupant::Setup(setup)) => setup.set_stream_scheduler(&self.endpoint.registry, name, config),
            _ => Err(ScheduleError::NotOpen),
        }
    }

    /// Gives a stream a value: its priority, weight, or what else the stream scheduler makes of it
    /// (RFC 8260 §4.3.3). It survives a change of scheduler wherever the new one has values too, and
    /// goes before the initial values of a configuration.
    ///
    /// # Errors
    /// A stream that was not negotiated (all of them before the association is set up), or a value that
    /// the scheduler refuses; schedulers without values refuse all.
    pub fn set_stream_value(&mut self, stream: StreamId, value: u16) -> Result<(), ScheduleError> {
        let association = self.open_mut().ok_or(ScheduleError::NoSuchStream(stream))?;
        association.change_queues(|queues| queues.set_value(stream, value))?;
        self.endpoint.settle(self.slot);
        Ok(())
    }

    /// The value of a stream; `None` where the stream scheduler knows none, or the stream was not negotiated.
    pub fn stream_value(&self, stream: StreamId) -> Option<u16> {
        self.open().and_then(|association| association.sender().outbound.value(stream))
    }

    /// Says what a stream is for; queued data stays. Only the adaptive stream map goes by it.
    ///
    /// # Errors
    /// A stream that was not negotiated (all of them before the association is set up), or a stream scheduler
    /// that cannot be built for one class more.
    pub fn set_stream_class(&mut self, stream: StreamId, class: StreamClass) -> Result<(), ScheduleError> {
        let Some(Occupant::Open(association)) = self.endpoint.slots.get_mut(self.slot) else {
            return Err(ScheduleError::NoSuchStream(stream));
        };
        let registry = &self.endpoint.registry;
        association.change_queues(|queues| queues.set_class(registry, stream, class))?;
        self.endpoint.settle(self.slot);
        Ok(())
    }

    /// Purpose of a stream; `None` for one that was not negotiated.
    pub fn stream_class(&self, stream: StreamId) -> Option<StreamClass> {
        self.open().and_then(|association| association.sender().outbound.class(stream))
    }

    /// Chooses which paths streams may use; queued data stays. An association that is being set up begins with
    /// it.
    ///
    /// # Errors
    /// When the stream scheduler cannot be built for the new groups; the old map then stays. An association
    /// that could not be set up.
    pub fn set_stream_map(&mut self, map: StreamMap) -> Result<(), ScheduleError> {
        match self.endpoint.slots.get_mut(self.slot) {
            Some(Occupant::Open(association)) => {
                let registry = &self.endpoint.registry;
                association.change_queues(|queues| queues.set_map(registry, map))?;
                self.endpoint.settle(self.slot);
                Ok(())
            }
            Some(Occupant::Setup(setup)) => setup.set_stream_map(&self.endpoint.registry, map),
            _ => Err(ScheduleError::NotOpen),
        }
    }

    /// Makes `path` the primary one.
    ///
    /// # Errors
    /// A path that does not exist. None does before the association is set up: then the first address given
    /// to [`Connect`](super::Connect) is the primary one.
    pub fn set_primary(&mut self, path: PathId) -> Result<(), NoSuchPath> {
        let nowhere = NoSuchPath { path, count: 0 };
        let association = self.open_mut().ok_or(nowhere)?;
        association.sender().joined(path)?;
        association.change_paths(|paths| paths.set_primary(path));
        self.endpoint.settle(self.slot);
        Ok(())
    }

    /// Changes settings while the association runs, or before it is set up.
    ///
    /// # Errors
    /// Values that are not usable, or an association that has ended; nothing is changed then.
    pub fn adjust(&mut self, change: Adjustment) -> Result<(), AdjustError> {
        let state = self.state_name();
        match self.endpoint.slots.get_mut(self.slot) {
            Some(Occupant::Open(association)) if association.state() != State::Closed => {
                association.adjust(&change)?;
            }
            Some(Occupant::Setup(setup)) => setup.adjust(&change)?,
            _ => return Err(AdjustError::NotOpen { state }),
        }
        self.endpoint.settle(self.slot);
        Ok(())
    }

    /// Changes settings of one path; for that path they go before those of [`adjust`](Self::adjust) until that
    /// names them again.
    ///
    /// # Errors
    /// A path that does not exist, none does before the association is set up; values that are not usable. Nothing is
    /// changed then.
    pub fn adjust_path(&mut self, path: PathId, change: PathAdjustment) -> Result<(), AdjustError> {
        let nowhere = NoSuchPath { path, count: 0 };
        let association = self.open_mut().ok_or(nowhere)?;
        association.sender().joined(path)?;
        change.check(&association.sender().config)?;
        association.change_paths(|paths| paths.adjust_one(path, &change));
        self.endpoint.settle(self.slot);
        Ok(())
    }

    /// Sends a heartbeat on `path`, due or not (RFC 9260 §8.3); where one awaits its answer already, no other is sent.
    /// What comes of it is in [`path_stats`](Self::path_stats). None is sent once a shutdown has begun.
    ///
    /// # Errors
    /// A path that does not exist; none does before the association is set up.
    pub fn request_heartbeat(&mut self, now: Instant, path: PathId) -> Result<(), NoSuchPath> {
        let Some(Occupant::Open(association)) = self.endpoint.slots.get_mut(self.slot) else {
            return Err(NoSuchPath { path, count: 0 });
        };
        let mut cx = Context { now, rng: &mut self.endpoint.rng };
        association.request_heartbeat(&mut cx, path)?;
        self.endpoint.settle(self.slot);
        Ok(())
    }

    /// Sets the loss rate of `path`, as a share from 0 to 1, for schedulers and the retransmission policy `loss_rate`. It
    /// takes precedence over the estimate until `None` is set. A path that does not exist is ignored.
    pub fn set_loss_rate(&mut self, path: PathId, share: Option<f64>) {
        if let Some(association) = self.open_mut() {
            association.change_paths(|paths| paths.set_loss(path, share));
            self.endpoint.settle(self.slot);
        }
    }

    /// Lets streams begin anew at SSN 0 (RFC 6525). What was queued on them before is sent first; what is queued
    /// from now on waits until the peer has agreed, and is sent with the old numbers if it does not.
    /// `Event::Reconfigured` tells how the peer answers, once for each direction.
    ///
    /// # Errors
    /// Streams that do not exist, or a request that cannot be made now; nothing was begun then.
    pub fn reset_streams(
        &mut self,
        now: Instant,
        streams: Streams,
        direction: Direction,
    ) -> Result<(), ReconfigurationError> {
        self.reconfigure(now, Ask::Reset(streams, direction))
    }

    /// Lets all streams of both directions begin anew, and the TSNs too, as in a new association (RFC 6525 §5.1.4):
    /// at most every 30 s. `Event::Reconfigured` tells how the peer answers.
    ///
    /// # Errors
    /// A request that cannot be made now; nothing was begun then.
    pub fn reset_association(&mut self, now: Instant) -> Result<(), ReconfigurationError> {
        self.reconfigure(now, Ask::ResetAssociation)
    }

    /// Adds streams, numbered after those there are: so many for this side to send on, and so many for the peer.
    /// `Event::Reconfigured` tells how the peer answers, once for each direction, and `Event::StreamsAdded` when
    /// they can be used.
    ///
    /// # Errors
    /// More streams than there can be, or a request that cannot be made now; nothing was begun then.
    pub fn add_streams(
        &mut self,
        now: Instant,
        outbound: u16,
        inbound: u16,
    ) -> Result<(), ReconfigurationError> {
        self.reconfigure(now, Ask::Add { outbound, inbound })
    }

    /// Adds an own address (RFC 5061): the driver must be able to send from it and to receive on it. Its paths appear
    /// as `Event::PathChanged` once the peer knows of them; `Event::OwnAddress` tells how it answers.
    ///
    /// # Errors
    /// An address that cannot be added, or no way to ask the peer; nothing was begun then.
    pub fn add_address(&mut self, now: Instant, address: IpAddr) -> Result<(), AddressError> {
        self.change_address(now, AddressChange::Add, address)
    }

    /// Removes an own address (RFC 5061). Nothing is sent from there any more, unless it is the last until another
    /// one is added; what still arrives is taken until the peer has agreed. `Event::OwnAddress` tells when.
    ///
    /// # Errors
    /// An address that cannot be removed, or no way to ask the peer; nothing was begun then.
    pub fn remove_address(&mut self, now: Instant, address: IpAddr) -> Result<(), AddressError> {
        self.change_address(now, AddressChange::Remove, address)
    }

    /// Asks the peer to send to this own address where it uses one path at a time (RFC 5061 §5.4).
    ///
    /// # Errors
    /// An address that the association has not, or no way to ask the peer.
    pub fn set_peer_primary(&mut self, now: Instant, address: IpAddr) -> Result<(), AddressError> {
        self.change_address(now, AddressChange::Prefer, address)
    }

    /// Sets or replaces a shared key of this association (RFC 4895 §6.1). The peer needs the same, and should
    /// have it before [`use_shared_key`](Self::use_shared_key).
    ///
    /// # Errors
    /// Authentication was not agreed, or the association has ended.
    pub fn set_shared_key(&mut self, number: u16, secret: &[u8]) -> Result<(), KeyError> {
        self.change_keys(|keys| {
            keys.set(number, secret);
            Ok(())
        })
    }

    /// Authenticates with this shared key from now on.
    ///
    /// # Errors
    /// There is none of this number; or as `set_shared_key`.
    pub fn use_shared_key(&mut self, number: u16) -> Result<(), KeyError> {
        self.change_keys(|keys| keys.activate(number))
    }

    /// Forgets a shared key: what the peer still authenticates with it is discarded.
    ///
    /// # Errors
    /// There is none of this number, or it is the one in use; or as `set_shared_key`.
    pub fn remove_shared_key(&mut self, number: u16) -> Result<(), KeyError> {
        self.change_keys(|keys| keys.remove(number))
    }

    /// Counters and windows of the association; `None` while it is being set up or when that failed.
    pub fn stats(&self, now: Instant) -> Option<AssociationStats> {
        self.open().map(|association| association.stats(now))
    }

    /// Counters and windows of every path, by position; empty before the association is set up.
    pub fn path_stats(&self, now: Instant) -> Vec<PathStats> {
        self.open().map(|association| association.path_stats(now)).unwrap_or_default()
    }

    /// The settings it was made of.
    pub fn config(&self) -> &AssociationConfig {
        match self.endpoint.slots.get(self.slot) {
            Some(Occupant::Open(association)) => &association.sender().config,
            Some(Occupant::Setup(setup)) => setup.settings(),
            Some(Occupant::Failed(failed)) => &failed.settings,
            None => &self.endpoint.template,
        }
    }

    /// The TSN up to which everything of the peer has arrived; 0 before the association is set up. Asked when a message
    /// is received, it is the cumulative TSN of RFC 6458 §5.3.5.
    pub fn cumulative_tsn(&self) -> Tsn {
        self.open().map_or(Tsn(0), |association| association.reception.receiver.cumulative_tsn())
    }

    /// The chunk types of the extensions that both ends speak, without those of RFC 9260; none before the association is set
    /// up.
    pub fn agreed_chunks(&self) -> Vec<ChunkKind> {
        let kinds = self.open().map(|association| association.capabilities.kinds()).unwrap_or_default();
        kinds.into_iter().map(ChunkKind).collect()
    }

    /// The chunk types that the peer takes only when they are authenticated (RFC 4895 §3.2), by number; none where
    /// authentication was not agreed on.
    pub fn authenticated_for_peer(&self) -> Vec<ChunkKind> {
        self.open().map(|association| association.auth.kinds_for_peer()).unwrap_or_default()
    }

    /// The messages that the association ended with, those that were sent first; none before its end, and none after a
    /// graceful one. They are there until the association is released.
    pub fn undelivered(&self) -> Vec<Undelivered> {
        match self.endpoint.slots.get(self.slot) {
            Some(Occupant::Open(association)) if association.state() == State::Closed => {
                association.sender().undelivered()
            }
            Some(Occupant::Failed(failed)) => failed.undelivered.clone(),
            Some(Occupant::Open(_) | Occupant::Setup(_)) | None => Vec::new(),
        }
    }

    /// The peer's SCTP port; 0 when the association could not be set up.
    pub fn remote_port(&self) -> u16 {
        match self.endpoint.slots.get(self.slot) {
            Some(Occupant::Open(association)) => association.identity().remote_port,
            Some(Occupant::Setup(setup)) => setup.remote_port(),
            Some(Occupant::Failed(_)) | None => 0,
        }
    }

    /// Streams after negotiation: sending and receiving direction; 0 before.
    pub fn streams(&self) -> (u16, u16) {
        self.open().map_or((0, 0), Association::streams)
    }

    /// The state, in the words of RFC 9260 §4.
    pub fn state_name(&self) -> &'static str {
        match self.endpoint.slots.get(self.slot) {
            Some(Occupant::Open(association)) => association.state().name(),
            Some(Occupant::Setup(setup)) => setup.state_name(),
            Some(Occupant::Failed(_)) | None => State::Closed.name(),
        }
    }

    fn reconfigure(&mut self, now: Instant, ask: Ask) -> Result<(), ReconfigurationError> {
        let state = self.state_name();
        self.open_mut().ok_or(ReconfigurationError::NotOpen { state })?.reconfigure(now, ask)?;
        self.endpoint.settle(self.slot);
        Ok(())
    }

    fn change_address(
        &mut self,
        now: Instant,
        change: AddressChange,
        address: IpAddr,
    ) -> Result<(), AddressError> {
        let state = self.state_name();
        let association = self.open_mut().ok_or(AddressError::NotOpen { state })?;
        association.change_address(now, change, address)?;
        self.endpoint.settle(self.slot);
        Ok(())
    }

    fn change_keys(
        &mut self,
        change: impl Fn(&mut SharedKeys) -> Result<(), KeyError>,
    ) -> Result<(), KeyError> {
        match self.endpoint.slots.get_mut(self.slot) {
            Some(Occupant::Open(association)) => association.change_keys(change),
            Some(Occupant::Setup(setup)) => setup.change_keys(change),
            Some(Occupant::Failed(_)) | None => Err(KeyError::Closed),
        }
    }

    fn is_setting_up(&self) -> bool {
        matches!(self.endpoint.slots.get(self.slot), Some(Occupant::Setup(_)))
    }

    pub(super) fn open(&self) -> Option<&Association> {
        match self.endpoint.slots.get(self.slot) {
            Some(Occupant::Open(association)) => Some(association),
            _ => None,
        }
    }

    /// Has the association polled: no deadline moved forward.
    fn poll_soon(&mut self) {
        if self.endpoint.slots.set_queued(self.slot, true) {
            self.endpoint.ready.push_back(self.slot);
        }
    }

    /// Something was done to the association.
    pub(super) fn settle(&mut self) {
        self.endpoint.settle(self.slot);
    }

    pub(super) fn open_mut(&mut self) -> Option<&mut Association> {
        match self.endpoint.slots.get_mut(self.slot) {
            Some(Occupant::Open(association)) => Some(association),
            _ => None,
        }
    }
}
