//! Stream reconfiguration (RFC 6525): which request of either side is under way, and what was answered.
//!
//! Owns the numbers of requests, the request in flight with its timer, and the answers given last. Refuses
//! to know queues of streams, TSNs that have arrived and paths: the association says how these stand and
//! carries out what was agreed.

mod answers;
mod request;
mod requests;
mod set_aside;
#[cfg(test)]
mod tests;

use tresse_wire::{Param, Params};

pub(crate) use answers::{Answers, Deferred, Response, Standing};
pub(crate) use request::{Request, Requested, read};
pub(crate) use requests::{Answered, Origin, Requests};
pub(crate) use set_aside::{Chunk as SetAsideChunk, SetAside};

/// Most streams that one request may name: with both directions reset at once, such a request still fits
/// the smallest packet, that of 576 bytes over IPv6 in UDP.
pub(crate) const MOST_NAMED: usize = 120;

/// Most streams that an answer to the peer's request may have to name: alone in the smallest packet.
pub(crate) const MOST_ANSWERED: usize = 240;

/// Both halves of stream reconfiguration in one association.
#[derive(Debug)]
pub(crate) struct Reconfig {
    /// What this side asks for.
    pub(crate) own: Requests,
    /// What the peer asks for.
    pub(crate) peer: Answers,
    /// What came while the peer may be numbering everything anew.
    pub(crate) set_aside: SetAside,
}

impl Reconfig {
    /// Nothing was asked for yet. Requests are numbered from the initial TSN of their side on (RFC 6525 §4.1).
    pub(crate) fn new(own: u32, peer: u32) -> Self {
        Reconfig { own: Requests::new(own), peer: Answers::new(peer), set_aside: SetAside::default() }
    }
}

/// Result codes (RFC 6525 §4.4).
pub(crate) mod result {
    pub(crate) const NOTHING_TO_DO: u32 = 0;
    pub(crate) const PERFORMED: u32 = 1;
    pub(crate) const DENIED: u32 = 2;
    pub(crate) const WRONG_STREAM: u32 = 3;
    pub(crate) const BUSY: u32 = 4;
    pub(crate) const BAD_SEQUENCE: u32 = 5;
    pub(crate) const IN_PROGRESS: u32 = 6;
}

/// Whether streams have fallen silent: everything queued before them was sent, and everything sent was
/// acknowledged.
///
/// RFC 6525 §5.1.2 only asks that no SSN is given out meanwhile. With nothing outstanding either, no
/// retransmission and no FORWARD-TSN can carry an SSN from before the reset to a peer that is past it.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Silence {
    /// The highest index that was given out when the last queued message had been sent.
    sent_up_to: Option<u64>,
}

impl Silence {
    /// Whether it is reached: `drained` says that nothing queued before is left, `highest` and `cumulative`
    /// are the index given out last and the one acknowledged by the peer.
    pub(crate) fn is_reached(&mut self, drained: bool, highest: u64, cumulative: u64) -> bool {
        drained && cumulative >= *self.sent_up_to.get_or_insert(highest)
    }
}

/// The parameters of a RE-CONFIG chunk, encoded.
pub(crate) fn encode(params: &[Param<'_>]) -> Vec<u8> {
    let mut body = Vec::new();
    // One or two parameters whose lists were bounded: never too long for a chunk.
    Params::Values(params).write(&mut body).ok();
    body
}
