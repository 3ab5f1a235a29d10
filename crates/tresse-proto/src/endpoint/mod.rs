//! The front door: an endpoint owns its associations, finds the one a packet is for, and answers
//! what belongs to none.

use std::net::IpAddr;

use bytes::Bytes;
use tresse_wire::StreamId;

use crate::config::{AssociationConfig, EndpointConfig, StreamMap};
use crate::error::{ConnectError, ScheduleError, SendError};
use crate::event::{Event, Message, SendOptions};
use crate::path_id::{AssociationId, PathId};
use crate::stats::{AssociationStats, Discards, PathStats, SendQueueInfo};
use crate::time::Instant;

/// A packet that arrived, with what the lower layer knows of it.
#[derive(Clone, Debug)]
pub struct Datagram {
    /// Own address that it came to.
    pub local: IpAddr,
    /// The peer's address that it came from.
    pub remote: IpAddr,
    /// The peer's UDP port, when it came encapsulated in UDP (RFC 6951).
    pub encapsulation_port: Option<u16>,
    /// The SCTP packet.
    pub payload: Bytes,
}

/// One or more packets to send, which `poll_transmit` appended to the caller's buffer.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Transmit {
    /// Own address to send from.
    pub local: IpAddr,
    /// The peer's address.
    pub remote: IpAddr,
    /// The peer's UDP port, when SCTP is to be encapsulated in UDP (RFC 6951).
    pub encapsulation_port: Option<u16>,
    /// Bytes appended.
    pub size: usize,
    /// When there are several packets: the length of each but the last, which may be shorter.
    pub segment_size: Option<usize>,
}

/// What an association is to be made of.
#[derive(Clone, Debug)]
pub struct Connect {
    /// Own addresses.
    pub local: Vec<IpAddr>,
    /// The peer's addresses; the first is the primary one.
    pub remote: Vec<IpAddr>,
    /// The peer's SCTP port.
    pub remote_port: u16,
    /// Settings of this association.
    pub config: AssociationConfig,
}

/// An SCTP endpoint: one port, any number of associations.
pub struct Endpoint {
    config: EndpointConfig,
}

impl Endpoint {
    /// An endpoint that gives `template` to the associations that peers set up.
    ///
    /// `seed` feeds every random choice: tags, initial TSNs, cookie keys, jitter. It must be
    /// unpredictable on a real network.
    ///
    /// # Errors
    /// Settings that contradict each other.
    pub fn new(
        config: EndpointConfig,
        template: AssociationConfig,
        seed: [u8; 32],
    ) -> Result<Self, crate::ConfigError> {
        let _ = (template, seed);
        Ok(Endpoint { config })
    }

    /// Own addresses that associations set up by peers may use, besides the one an INIT came to.
    pub fn set_local_addresses(&mut self, _addresses: Vec<IpAddr>) {
        unimplemented!()
    }

    /// The SCTP port, once it is known.
    pub fn port(&self) -> u16 {
        self.config.port
    }

    /// Starts to set up an association.
    ///
    /// # Errors
    /// Addresses or settings that cannot work, or too many associations.
    pub fn connect(&mut self, _now: Instant, _connect: Connect) -> Result<AssociationId, ConnectError> {
        unimplemented!()
    }

    /// Takes a packet that arrived.
    pub fn handle_datagram(&mut self, _now: Instant, _datagram: Datagram) {
        unimplemented!()
    }

    /// Lets everything happen that is due at `now`.
    pub fn handle_timeout(&mut self, _now: Instant) {
        unimplemented!()
    }

    /// When `handle_timeout` wants to be called next; never earlier than needed by more than one RTO.
    pub fn poll_timeout(&mut self) -> Option<Instant> {
        unimplemented!()
    }

    /// Appends the next packets to `buffer`: up to `max_packets` for one destination.
    pub fn poll_transmit(
        &mut self,
        _now: Instant,
        _max_packets: usize,
        _buffer: &mut Vec<u8>,
    ) -> Option<Transmit> {
        unimplemented!()
    }

    /// The next event, in the order in which they happened.
    pub fn poll_event(&mut self) -> Option<(AssociationId, Event)> {
        unimplemented!()
    }

    /// Commands for an association; `None` once it was released.
    pub fn association(&mut self, _id: AssociationId) -> Option<AssociationHandle<'_>> {
        unimplemented!()
    }

    /// Forgets an association that has closed; one that has not is aborted first.
    pub fn release(&mut self, _now: Instant, _id: AssociationId) {
        unimplemented!()
    }

    /// What was thrown away before it reached an association.
    pub fn discards(&self) -> Discards {
        unimplemented!()
    }
}

/// Commands for one association.
pub struct AssociationHandle<'a> {
    endpoint: &'a mut Endpoint,
}

impl AssociationHandle<'_> {
    /// Queues a message.
    ///
    /// # Errors
    /// When the message cannot be queued; nothing of it was.
    pub fn send(&mut self, _now: Instant, _options: SendOptions, _data: Bytes) -> Result<(), SendError> {
        let _ = &self.endpoint;
        unimplemented!()
    }

    /// The next message that arrived.
    pub fn recv(&mut self, _now: Instant) -> Option<Message> {
        unimplemented!()
    }

    /// Ends the association once everything queued has been delivered (RFC 9260 §9.2).
    pub fn shutdown(&mut self, _now: Instant) {
        unimplemented!()
    }

    /// Ends the association at once (RFC 9260 §9.1); `reason` is shown to the peer.
    pub fn abort(&mut self, _now: Instant, _reason: &str) {
        unimplemented!()
    }

    /// The send queue as a whole.
    pub fn send_queue(&self) -> SendQueueInfo {
        unimplemented!()
    }

    /// Bytes of `stream` not yet sent; zero for a stream that was never used.
    pub fn unsent_on(&self, _stream: StreamId) -> usize {
        unimplemented!()
    }

    /// Chooses the stream scheduler by name; queued data stays.
    ///
    /// # Errors
    /// An unknown name, or a configuration that the scheduler refuses.
    pub fn set_stream_scheduler(&mut self, _name: &str, _config: &str) -> Result<(), ScheduleError> {
        unimplemented!()
    }

    /// Chooses which paths streams may use; queued data stays.
    pub fn set_stream_map(&mut self, _map: StreamMap) {
        unimplemented!()
    }

    /// Makes `path` the primary one.
    pub fn set_primary(&mut self, _path: PathId) {
        unimplemented!()
    }

    /// Counters and windows of the association.
    pub fn stats(&self, _now: Instant) -> AssociationStats {
        unimplemented!()
    }

    /// Counters and windows of every path, by position.
    pub fn path_stats(&self, _now: Instant) -> Vec<PathStats> {
        unimplemented!()
    }

    /// The settings it was made of.
    pub fn config(&self) -> &AssociationConfig {
        unimplemented!()
    }

    /// Streams after negotiation: sending and receiving direction.
    pub fn streams(&self) -> (u16, u16) {
        unimplemented!()
    }
}
