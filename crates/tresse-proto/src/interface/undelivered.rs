//! Messages that were not delivered when their association ended.

use tresse_wire::{Ppid, StreamId};

use crate::interface::event::Payload;

/// A message that `send` accepted, and that the peer had not acknowledged when the association ended (RFC 9260 §11.1.5
/// and §11.1.6).
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Undelivered {
    /// Its stream.
    pub stream: StreamId,
    /// Its payload protocol identifier.
    pub ppid: Ppid,
    /// True if it was sent unordered.
    pub unordered: bool,
    /// The context that the application gave when it sent the message.
    pub context: u64,
    /// True if a part of it was sent at least once: then the message may have arrived. Otherwise it did not.
    pub sent: bool,
    /// Data of the message that the peer did not acknowledge: all of it, if nothing was sent.
    pub payload: Payload,
}
