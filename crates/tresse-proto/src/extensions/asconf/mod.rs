//! Dynamic addresses (RFC 5061): requests of both sides, their results, and the answers.
//!
//! This module owns serial numbers, the request in flight with its timer, and the last answers. It changes the paths, which have
//! the addresses ([`Members`]). It is independent of data and streams: the association carries out the effects on them
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

/// Dynamic addresses of one association: requests of both sides. Created at the first request of either side.
#[derive(Debug)]
pub(crate) struct Asconf {
    /// Requests of this side.
    own: Requests,
    /// The path on which the next request must be sent, if any.
    over: Option<PathId>,
    /// Answers to the peer's requests.
    peer: PeerRequests,
    /// Addresses of the peer that were added or removed, for the demultiplexer.
    peer_changes: VecDeque<PeerChange>,
}

impl Asconf {
    /// Creates the state without requests. Each side numbers its requests from its initial TSN on (RFC 5061 §5.1 A2).
    pub(crate) fn new(own: u32, peer: u32) -> Self {
        Asconf {
            own: Requests::new(own),
            over: None,
            peer: PeerRequests::new(peer),
            peer_changes: VecDeque::new(),
        }
    }
}
