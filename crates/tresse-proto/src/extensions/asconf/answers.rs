//! What the peer asks for: the order of its requests, and the answers, kept to be given again (RFC 5061 §5.2).

use std::collections::VecDeque;

use tresse_wire::{Cause, Causes, Param};

/// Most answers that are kept. They are of requests that travelled in one packet.
const MOST_KEPT: usize = 8;

/// Error Cause Indication with a cause that repeats a request with an IPv6 address.
const LONGEST_RESPONSE: usize = 8 + 4 + 28;

/// The peer's requests.
#[derive(Debug)]
pub(crate) struct Answers {
    /// The serial number of its next request.
    expected: u32,
    given: VecDeque<(u32, Vec<u8>)>,
}

/// What the serial number of a request says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Standing {
    /// It is the next one.
    New,
    /// It was answered before, with this; `None` when that is too long ago.
    Repeated(Option<Vec<u8>>),
    /// It is neither.
    Stray,
}

impl Answers {
    pub(super) fn new(expected: u32) -> Self {
        Answers { expected, given: VecDeque::new() }
    }

    /// Where a request stands; `first` says that it is the first of its packet.
    pub(crate) fn standing(&mut self, serial: u32, first: bool) -> Standing {
        if serial == self.expected {
            if first {
                // RFC 5061 §5.2 E1: the answers before it have arrived.
                self.given.clear();
            }
            return Standing::New;
        }
        let before = self.expected.wrapping_sub(serial) < 1 << 31;
        if !before {
            return Standing::Stray;
        }
        let kept = self.given.iter().find(|(given, _)| *given == serial);
        Standing::Repeated(kept.map(|(_, body)| body.clone()))
    }

    /// The next request was answered with this.
    pub(crate) fn give(&mut self, body: Vec<u8>) {
        if self.given.len() >= MOST_KEPT {
            self.given.pop_front();
        }
        self.given.push_back((self.expected, body));
        self.expected = self.expected.wrapping_add(1);
    }
}

/// What is said of one request.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(crate) enum Response<'a> {
    Done,
    Failed(Cause<'a>),
}

/// The responses of an ASCONF-ACK, in the making.
#[derive(Debug)]
pub(crate) struct Responses {
    body: Vec<u8>,
    /// The most bytes that there may be.
    most: usize,
    /// One request failed: success is said from then on (RFC 5061 §5.1 A7).
    failed: bool,
    /// Resources ran out: no address is added or removed any more (RFC 5061 §5.3 F11).
    exhausted: bool,
}

impl Responses {
    /// At most `most` bytes of them.
    pub(crate) fn new(most: usize) -> Self {
        Responses { body: Vec::new(), most, failed: false, exhausted: false }
    }

    /// Whether requests to add and to remove addresses are to fail for want of resources.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.exhausted
    }

    /// Whether one more request can be answered, whatever the answer is. Without it nothing more may be done: what
    /// is not spoken of after a failure has failed.
    pub(crate) fn has_room(&self) -> bool {
        self.body.len().next_multiple_of(4) + LONGEST_RESPONSE <= self.most
    }

    /// Adds the response to the request with this correlation id.
    pub(crate) fn push(&mut self, correlation: u32, response: Response<'_>) {
        match response {
            Response::Done if !self.failed => {}
            Response::Done => self.write(&Param::SuccessIndication { correlation }),
            Response::Failed(cause) => {
                self.failed = true;
                self.exhausted |= matches!(cause, Cause::ResourceShortage(_));
                self.write(&Param::ErrorIndication { correlation, causes: Causes::Values(&[cause]) });
            }
        }
    }

    /// The responses, encoded.
    pub(crate) fn into_body(self) -> Vec<u8> {
        self.body
    }

    fn write(&mut self, param: &Param<'_>) {
        // Padding goes in between: the length of the chunk does not count that of the last one (RFC 9260 §3.2).
        self.body.resize(self.body.len().next_multiple_of(4), 0);
        // It names one request of the peer at the most, which came in a chunk.
        param.write(&mut self.body).ok();
    }
}
