//! The peer's requests: which number comes next, what was answered last, and what still waits.

use tresse_wire::{Param, Tsn};

use super::{Silence, result};
use crate::interface::reconfiguration::Streams;

/// An answer to a request (RFC 6525 §4.4).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Response {
    /// The number of the request.
    pub(crate) sequence: u32,
    /// One of [`result`].
    pub(crate) result: u32,
    /// The next TSN of whoever answers and of whoever asked: after everything was numbered anew.
    pub(crate) next_tsns: Option<(Tsn, Tsn)>,
}

impl Response {
    pub(crate) fn new(sequence: u32, result: u32) -> Self {
        Response { sequence, result, next_tsns: None }
    }

    pub(crate) fn param(&self) -> Param<'static> {
        Param::ReconfigResponse { response: self.sequence, result: self.result, next_tsns: self.next_tsns }
    }
}

/// Where a request of the peer stands by its number.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Standing {
    /// To be dealt with: it is new, or "in progress" was all that could be answered so far.
    Open,
    /// It came before, and this was the answer.
    Answered(Response),
    /// Neither the next nor one of the last.
    Wrong,
}

/// A reset of streams that the peer sends on, to be performed when everything sent before has arrived
/// (RFC 6525 §5.2.2 E2).
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Deferred {
    pub(crate) sequence: u32,
    /// The index that has to be reached.
    pub(crate) last: u64,
    pub(crate) streams: Streams,
}

/// The peer's requests.
#[derive(Debug)]
pub(crate) struct Answers {
    /// The number of its next request.
    expected: u32,
    /// The last answers: a chunk holds at most two requests, and the next comes only after both were answered.
    given: [Option<Response>; 2],
    pub(crate) deferred: Option<Deferred>,
    /// A request to number everything anew that waits for silence.
    pub(crate) renumbering: Option<(u32, Silence)>,
}

impl Answers {
    pub(super) fn new(expected: u32) -> Self {
        Answers { expected, given: [None; 2], deferred: None, renumbering: None }
    }

    /// The number of its last request, as far as it has arrived.
    pub(crate) fn last_sequence(&self) -> u32 {
        self.expected.wrapping_sub(1)
    }

    /// Where the request `sequence` stands.
    pub(crate) fn standing(&self, sequence: u32) -> Standing {
        let given = self.given.iter().flatten().find(|given| given.sequence == sequence);
        match given {
            Some(given) if given.result == result::IN_PROGRESS => Standing::Open,
            Some(given) => Standing::Answered(*given),
            None if sequence == self.expected => Standing::Open,
            None => Standing::Wrong,
        }
    }

    /// Remembers what is answered, also where the answer before was "in progress".
    pub(crate) fn give(&mut self, response: Response) {
        let known = self.given.iter_mut().flatten().find(|given| given.sequence == response.sequence);
        if let Some(known) = known {
            *known = response;
        } else if response.sequence == self.expected {
            self.expected = self.expected.wrapping_add(1);
            self.given = [Some(response), self.given[0]];
        }
    }
}
