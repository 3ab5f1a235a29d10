//! Dynamic addresses (RFC 5061): requests of both sides, their results, and the answers.
//!
//! Owns serial numbers, the request in flight with its timer, and the last answers. The paths have the addresses, and are
//! changed here ([`Members`]). Independent of data and streams: the association carries out the effects on them
//! ([`Change`]).

mod ask;
mod grant;
mod members;
mod requests;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

pub(crate) use grant::{PeerChange, Source};
pub(crate) use members::{Change, Members};
pub(crate) use requests::StrayAck;

use grant::PeerRequests;
use requests::{AddressRequest, Requests};
use tresse_policy::PathId;

/// Both halves of dynamic addresses in one association, from the first request of either side on.
#[derive(Debug)]
pub(crate) struct Asconf {
    /// Requests of this side.
    own: Requests,
    /// The path that the next request has to leave on, if there is one.
    over: Option<PathId>,
    /// Answers to the peer's requests.
    peer: PeerRequests,
    /// Addresses of the peer that were added or removed, for the table that finds the association by them.
    peer_changes: VecDeque<PeerChange>,
}

impl Asconf {
    /// Nothing was asked for yet. Requests are numbered from the initial TSN of their side on (RFC 5061 §5.1 A2).
    pub(crate) fn new(own: u32, peer: u32) -> Self {
        Asconf {
            own: Requests::new(own),
            over: None,
            peer: PeerRequests::new(peer),
            peer_changes: VecDeque::new(),
        }
    }
}
