//! Commands for one association, borrowed from its endpoint.

use std::net::IpAddr;

use bytes::Bytes;
use tresse_policy::{Instant, PathId, ScheduleError};
use tresse_wire::{ChunkKind, StreamId, Tsn};

use super::Endpoint;
use super::slots::{Occupant, Slot};
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

    /// Queues a message. If the association is not set up yet, the message can leave in the third packet of the set-up (setting
    /// `data_with_cookie`). The number of streams is not known then: a message on a stream that the peer does not agree to is
    /// reported by [`Event::Abandoned`](crate::Event::Abandoned).
    ///
    /// # Errors
    /// The message cannot be queued; no part of it is queued then.
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

    /// Returns the next message that has arrived, or a part of one ([`Message::part`]); `None` if there is none now. Messages can
    /// still be received after the association has ended, until it is released.
    pub fn recv(&mut self, _now: Instant) -> Option<Message> {
        let association = self.open_mut()?;
        let message = association.recv();
        if association.may_have_output() {
            self.poll_soon();
        }
        message
    }

    /// Returns the number of messages and parts of messages that have arrived and that [`Self::recv`] has not returned yet.
    pub fn unread(&self) -> usize {
        self.open().map_or(0, |association| association.unread())
    }

    /// Ends the association once all queued data has been delivered (RFC 9260 §9.2). An association that is being set up ends at
    /// once, unless messages are queued on it.
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

    /// Ends the association at once (RFC 9260 §9.1). The ABORT carries the first 480 bytes of `reason` in a User-Initiated Abort
    /// cause; their meaning is up to the applications.
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

    /// Returns the fill of the send queue, over all streams.
    pub fn send_queue(&self) -> SendQueueInfo {
        match self.endpoint.slots.get(self.slot) {
            Some(Occupant::Open(association)) => association.sender().outbound.buffer.info(),
            Some(Occupant::Setup(setup)) => setup.send_queue(),
            _ => SendQueueInfo::default(),
        }
    }

    /// Returns the bytes of `stream` that are not sent yet; zero for a stream that was never used.
    pub fn unsent_on(&self, stream: StreamId) -> usize {
        self.open().map_or(0, |association| association.sender().outbound.unsent_on(stream))
    }

    /// Requests [`Event::LowWater`](crate::Event::LowWater) whenever the unsent bytes of `stream` fall to `bytes` or below: at
    /// once if that is so already, and then each time. `None` ends it. With this event an application keeps each stream supplied,
    /// and no stream fills the send buffer alone.
    ///
    /// # Errors
    /// The stream does not exist, or the association is not set up.
    pub fn set_low_water(&mut self, stream: StreamId, bytes: Option<usize>) -> Result<(), ScheduleError> {
        let association = self.open_mut().ok_or(ScheduleError::NoSuchStream(stream))?;
        association.change_queues(|queues| queues.set_low_water(stream, bytes))?;
        self.endpoint.settle(self.slot);
        Ok(())
    }

    /// Returns the numbers of abandoned messages of `stream`, by policy ([`Reliability`](crate::Reliability)).
    pub fn abandoned_on(&self, stream: StreamId) -> Abandonments {
        self.open().map(|association| association.sender().abandoned_on(stream)).unwrap_or_default()
    }

    /// Chooses the stream scheduler by name; queued data remains queued. An association that is being set up begins with it.
    ///
    /// # Errors
    /// The name is unknown, or the scheduler refuses its configuration: the old scheduler is then kept. Or the association could
    /// not be set up.
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

    /// Sets the value of a stream: its priority, weight, or another meaning by the stream scheduler (RFC 8260 §4.3.3). The value
    /// is kept when the scheduler changes, if the new scheduler has values too, and takes precedence over the initial values of a
    /// configuration.
    ///
    /// # Errors
    /// The stream was not negotiated (no stream is before the association is set up), or the scheduler refuses the value.
    /// Schedulers without values refuse all.
    pub fn set_stream_value(&mut self, stream: StreamId, value: u16) -> Result<(), ScheduleError> {
        let association = self.open_mut().ok_or(ScheduleError::NoSuchStream(stream))?;
        association.change_queues(|queues| queues.set_value(stream, value))?;
        self.endpoint.settle(self.slot);
        Ok(())
    }

    /// Returns the value of a stream; `None` if the stream scheduler has no values, or the stream was not negotiated.
    pub fn stream_value(&self, stream: StreamId) -> Option<u16> {
        self.open().and_then(|association| association.sender().outbound.value(stream))
    }

    /// Sets the class of a stream; queued data remains queued. The adaptive stream map uses classes. With any map, short messages
    /// of latency-critical streams are duplicated on other paths (docs/adaptive.md).
    ///
    /// # Errors
    /// The stream was not negotiated (no stream is before the association is set up), or the stream scheduler cannot be built for
    /// one more class.
    pub fn set_stream_class(&mut self, stream: StreamId, class: StreamClass) -> Result<(), ScheduleError> {
        let Some(Occupant::Open(association)) = self.endpoint.slots.get_mut(self.slot) else {
            return Err(ScheduleError::NoSuchStream(stream));
        };
        let registry = &self.endpoint.registry;
        association.change_queues(|queues| queues.set_class(registry, stream, class))?;
        self.endpoint.settle(self.slot);
        Ok(())
    }

    /// Returns the class of a stream; `None` for a stream that was not negotiated.
    pub fn stream_class(&self, stream: StreamId) -> Option<StreamClass> {
        self.open().and_then(|association| association.sender().outbound.class(stream))
    }

    /// Sets the paths that streams may use; queued data remains queued. An association that is being set up begins with this map.
    ///
    /// # Errors
    /// The stream scheduler cannot be built for the new groups: the old map is then kept. Or the association could not be set up.
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

    /// Makes `path` the primary path.
    ///
    /// # Errors
    /// The path does not exist. No path does before the association is set up: the first address given to
    /// [`Connect`](super::Connect) is the primary one then.
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
    /// Values are not usable, or the association has ended; nothing is changed then.
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

    /// Changes settings of one path. For this path they take precedence over those of [`adjust`](Self::adjust), until `adjust`
    /// sets them again.
    ///
    /// # Errors
    /// The path does not exist (no path does before the association is set up), or values are not usable. Nothing is changed
    /// then.
    pub fn adjust_path(&mut self, path: PathId, change: PathAdjustment) -> Result<(), AdjustError> {
        let nowhere = NoSuchPath { path, count: 0 };
        let association = self.open_mut().ok_or(nowhere)?;
        association.sender().joined(path)?;
        change.check(&association.sender().config)?;
        association.change_paths(|paths| paths.adjust_one(path, &change));
        self.endpoint.settle(self.slot);
        Ok(())
    }

    /// Sends a HEARTBEAT on `path`, due or not (RFC 9260 §8.3), unless one is outstanding on it. [`path_stats`](Self::path_stats)
    /// shows the result. No HEARTBEAT is sent once a shutdown has begun.
    ///
    /// # Errors
    /// The path does not exist; no path does before the association is set up.
    pub fn request_heartbeat(&mut self, now: Instant, path: PathId) -> Result<(), NoSuchPath> {
        let Some(Occupant::Open(association)) = self.endpoint.slots.get_mut(self.slot) else {
            return Err(NoSuchPath { path, count: 0 });
        };
        let mut cx = Context { now, rng: &mut self.endpoint.rng };
        association.request_heartbeat(&mut cx, path)?;
        self.endpoint.settle(self.slot);
        Ok(())
    }

    /// Sets the loss rate of `path`, a share from 0 to 1, for schedulers and the retransmission policy `loss_rate`. It takes
    /// precedence over the estimate until `None` is set. A path that does not exist is ignored.
    pub fn set_loss_rate(&mut self, path: PathId, share: Option<f64>) {
        if let Some(association) = self.open_mut() {
            association.change_paths(|paths| paths.set_loss(path, share));
            self.endpoint.settle(self.slot);
        }
    }

    /// Resets streams, which restart at SSN 0 (RFC 6525). Data that is queued on them already is sent first. Data that is queued
    /// from now on waits for the peer's response, and is sent with the old numbers if the peer denies the request.
    /// `Event::Reconfigured` reports the response, once for each direction.
    ///
    /// # Errors
    /// The streams do not exist, or no request can be made now; nothing is changed then.
    pub fn reset_streams(
        &mut self,
        now: Instant,
        streams: Streams,
        direction: Direction,
    ) -> Result<(), ReconfigurationError> {
        self.reconfigure(now, Ask::Reset(streams, direction))
    }

    /// Resets all streams of both directions, and the TSNs, as in a new association (RFC 6525 §5.1.4); at most once in 30 s.
    /// `Event::Reconfigured` reports the peer's response.
    ///
    /// # Errors
    /// No request can be made now; nothing is changed then.
    pub fn reset_association(&mut self, now: Instant) -> Result<(), ReconfigurationError> {
        self.reconfigure(now, Ask::ResetAssociation)
    }

    /// Adds streams, numbered after the existing ones: `outbound` ones for this side to send on, and `inbound` ones for the peer.
    /// `Event::Reconfigured` reports the peer's response, once for each direction, and `Event::StreamsAdded` reports when they
    /// can be used.
    ///
    /// # Errors
    /// There would be too many streams, or no request can be made now; nothing is changed then.
    pub fn add_streams(
        &mut self,
        now: Instant,
        outbound: u16,
        inbound: u16,
    ) -> Result<(), ReconfigurationError> {
        self.reconfigure(now, Ask::Add { outbound, inbound })
    }

    /// Adds an own address (RFC 5061). The driver must be able to send from it and to receive on it. `Event::PathChanged` reports
    /// its paths once the peer knows the address; `Event::OwnAddress` reports the peer's response.
    ///
    /// # Errors
    /// The address cannot be added, or the peer cannot be asked; nothing is changed then.
    pub fn add_address(&mut self, now: Instant, address: IpAddr) -> Result<(), AddressError> {
        self.change_address(now, AddressChange::Add, address)
    }

    /// Removes an own address (RFC 5061). From now on no packet is sent from it, except while it is the last address, until
    /// another one is added. Packets to it are accepted until the peer has agreed; `Event::OwnAddress` reports that.
    ///
    /// # Errors
    /// The address cannot be removed, or the peer cannot be asked; nothing is changed then.
    pub fn remove_address(&mut self, now: Instant, address: IpAddr) -> Result<(), AddressError> {
        self.change_address(now, AddressChange::Remove, address)
    }

    /// Asks the peer to make this own address its primary destination (RFC 5061 §5.4). It matters only if the peer uses one path
    /// at a time.
    ///
    /// # Errors
    /// The association does not have the address, or the peer cannot be asked.
    pub fn set_peer_primary(&mut self, now: Instant, address: IpAddr) -> Result<(), AddressError> {
        self.change_address(now, AddressChange::Prefer, address)
    }

    /// Sets or replaces a shared key of this association (RFC 4895 §6.1). The peer needs the same key, and should have it before
    /// [`use_shared_key`](Self::use_shared_key) is called.
    ///
    /// # Errors
    /// Authentication was not negotiated, or the association has ended.
    pub fn set_shared_key(&mut self, number: u16, secret: &[u8]) -> Result<(), KeyError> {
        self.change_keys(|keys| {
            keys.set(number, secret);
            Ok(())
        })
    }

    /// Authenticates chunks with this shared key from now on.
    ///
    /// # Errors
    /// No shared key has this number, or the key was deactivated; or as `set_shared_key`.
    pub fn use_shared_key(&mut self, number: u16) -> Result<(), KeyError> {
        self.change_keys(|keys| keys.activate(number))
    }

    /// Removes a shared key. Chunks that the peer still authenticates with it are discarded.
    ///
    /// # Errors
    /// No shared key has this number, or the key is in use; or as `set_shared_key`.
    pub fn remove_shared_key(&mut self, number: u16) -> Result<(), KeyError> {
        self.change_keys(|keys| keys.remove(number))
    }

    /// Deactivates a shared key (RFC 6458 §8.3.4): this side does not authenticate with it, until it is set anew. What the peer
    /// authenticates with it is accepted.
    ///
    /// # Errors
    /// As for [`remove_shared_key`](Self::remove_shared_key).
    pub fn deactivate_shared_key(&mut self, number: u16) -> Result<(), KeyError> {
        self.change_keys(|keys| keys.deactivate(number))
    }

    /// Returns counters and windows of the association; `None` before it is set up, or if the set-up failed.
    pub fn stats(&self, now: Instant) -> Option<AssociationStats> {
        self.open().map(|association| association.stats(now))
    }

    /// Returns counters and windows of every path, by position; empty before the association is set up.
    pub fn path_stats(&self, now: Instant) -> Vec<PathStats> {
        self.open().map(|association| association.path_stats(now)).unwrap_or_default()
    }

    /// Returns the settings of the association.
    pub fn config(&self) -> &AssociationConfig {
        match self.endpoint.slots.get(self.slot) {
            Some(Occupant::Open(association)) => &association.sender().config,
            Some(Occupant::Setup(setup)) => setup.settings(),
            Some(Occupant::Failed(failed)) => &failed.settings,
            None => &self.endpoint.template,
        }
    }

    /// Returns the cumulative TSN of the peer's data; 0 before the association is set up. Called when a message is received, it
    /// returns the cumulative TSN of RFC 6458 §5.3.5.
    pub fn cumulative_tsn(&self) -> Tsn {
        self.open().map_or(Tsn(0), |association| association.reception.receiver.cumulative_tsn())
    }

    /// Returns the chunk types of the extensions that both ends support, without those of RFC 9260; none before the association
    /// is set up.
    pub fn agreed_chunks(&self) -> Vec<ChunkKind> {
        let kinds = self.open().map(|association| association.capabilities.kinds()).unwrap_or_default();
        kinds.into_iter().map(ChunkKind).collect()
    }

    /// Returns the chunk types that the peer accepts only authenticated (RFC 4895 §3.2), by number; none if authentication was
    /// not negotiated.
    pub fn authenticated_for_peer(&self) -> Vec<ChunkKind> {
        self.open().map(|association| association.auth.kinds_for_peer()).unwrap_or_default()
    }

    /// Returns the messages that were not delivered when the association ended, sent ones first; none before the end, and none
    /// after a graceful shutdown. They are kept until the association is released.
    pub fn undelivered(&self) -> Vec<Undelivered> {
        match self.endpoint.slots.get(self.slot) {
            Some(Occupant::Open(association)) if association.state() == State::Closed => {
                association.sender().undelivered()
            }
            Some(Occupant::Failed(failed)) => failed.undelivered.clone(),
            Some(Occupant::Open(_) | Occupant::Setup(_)) | None => Vec::new(),
        }
    }

    /// Returns the peer's SCTP port; 0 if the association could not be set up.
    pub fn remote_port(&self) -> u16 {
        match self.endpoint.slots.get(self.slot) {
            Some(Occupant::Open(association)) => association.identity().remote_port,
            Some(Occupant::Setup(setup)) => setup.remote_port(),
            Some(Occupant::Failed(_)) | None => 0,
        }
    }

    /// Returns the numbers of outbound and inbound streams after negotiation; 0 before.
    pub fn streams(&self) -> (u16, u16) {
        self.open().map_or((0, 0), Association::streams)
    }

    /// Returns the name of the state in RFC 9260 §4.
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

    /// Queues the association for `poll_transmit`. Other than `settle`, for changes after which no deadline is earlier.
    fn poll_soon(&mut self) {
        if self.endpoint.slots.set_queued(self.slot, true) {
            self.endpoint.ready.push_back(self.slot);
        }
    }

    /// Follows up a change of the association.
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
