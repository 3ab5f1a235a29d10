//! Dynamic addresses (RFC 5061): which request of either side is under way, and what was answered.
//!
//! Owns serial numbers, the request in flight with its timer, and the answers given last. Refuses to know paths:
//! the association says which addresses there are and carries out what was agreed.

mod answers;
mod requests;
#[cfg(test)]
mod tests;

pub(crate) use answers::{Answers, Response, Responses, Standing};
pub(crate) use requests::{Requests, StrayAck, Wish};

/// Both halves of dynamic addresses in one association.
#[derive(Debug)]
pub(crate) struct Asconf {
    /// What this side asks for.
    pub(crate) own: Requests,
    /// What the peer asks for.
    pub(crate) peer: Answers,
}

impl Asconf {
    /// Nothing was asked for yet. Requests are numbered from the initial TSN of their side on (RFC 5061 §5.1 A2).
    pub(crate) fn new(own: u32, peer: u32) -> Self {
        Asconf { own: Requests::new(own), peer: Answers::new(peer) }
    }
}
