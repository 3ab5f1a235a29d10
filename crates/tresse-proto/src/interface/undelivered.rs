//! Messages that were not delivered when their association ended.

use tresse_wire::{Ppid, StreamId};

use crate::interface::event::Payload;

/// A message that was accepted, and that the peer had not acknowledged when the association ended (RFC 9260 §11.1.5 and
/// §11.1.6).
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Undelivered {
    /// Its stream.
    pub stream: StreamId,
    /// Its payload protocol identifier.
    pub ppid: Ppid,
    /// True if it was to be delivered without regard to order.
    pub unordered: bool,
    /// Number that the application gave with it.
    pub context: u64,
    /// True if any of it was sent: then it may have arrived all the same. Else it did not.
    pub sent: bool,
    /// Data of the message that the peer did not acknowledge: all of it, if nothing was sent.
    pub payload: Payload,
}
