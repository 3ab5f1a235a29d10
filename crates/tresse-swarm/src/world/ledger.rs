//! What was handed over and what came out: every message accepted is delivered at most once, as it was, and in the
//! order of its stream.
//!
//! A message is known by its payload protocol identifier, which carries its number. Refuses to know packets.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use bytes::Bytes;
use tresse_proto::{Message, Ppid, SendOptions, StreamId};

/// The messages of a simulation.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    messages: Vec<Record>,
    /// For each session and stream: messages sent in order, and the next of them to come out.
    order: BTreeMap<(u32, u16), (u32, u32)>,
}

/// A message that was accepted.
#[derive(Debug)]
struct Record {
    /// The association, as its sender counts them.
    session: u32,
    stream: u16,
    /// Its place among the ordered ones of the stream; `None` when it has none.
    place: Option<u32>,
    len: usize,
    delivered: bool,
}

impl Ledger {
    /// The next message, if it is accepted: how to send it, and its bytes.
    pub(super) fn next(&self, stream: u16, unordered: bool, len: usize) -> (SendOptions, Bytes) {
        let number = self.messages.len();
        let mut options = SendOptions::on(StreamId(stream));
        options.ppid = Ppid(number as u32);
        options.unordered = unordered;
        (options, content(number, len))
    }

    /// It was accepted.
    pub(super) fn accepted(&mut self, session: u32, stream: u16, unordered: bool, len: usize) {
        let place = (!unordered).then(|| {
            let (sent, _) = self.order.entry((session, stream)).or_default();
            *sent += 1;
            *sent - 1
        });
        self.messages.push(Record { session, stream, place, len, delivered: false });
    }

    /// A message came out at the other side.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn delivered(&mut self, message: &Message) -> Result<(), String> {
        let number = message.ppid.0 as usize;
        let Some(record) = self.messages.get_mut(number) else {
            return Err(format!("a message came out that nobody sent: PPID {number}"));
        };
        if std::mem::replace(&mut record.delivered, true) {
            return Err(format!("message {number} came out twice"));
        }
        if message.stream.0 != record.stream || message.unordered != record.place.is_none() {
            return Err(format!(
                "message {number} was sent on stream {} and came out on {}, unordered {}",
                record.stream, message.stream.0, message.unordered
            ));
        }
        if !same(&message.payload, &content(number, record.len)) {
            return Err(format!(
                "message {number} of {} bytes came out changed, with {} bytes",
                record.len,
                message.payload.len()
            ));
        }
        if let Some(place) = record.place {
            let (_, next) = self.order.entry((record.session, record.stream)).or_default();
            if place != *next {
                return Err(format!(
                    "message {number} is number {place} of its stream and came out as {next}"
                ));
            }
            *next += 1;
        }
        Ok(())
    }

    /// The first message of `session` that has not come out.
    pub(super) fn missing(&self, session: u32) -> Option<String> {
        let of_session = || self.messages.iter().enumerate().filter(|(_, record)| record.session == session);
        let (number, record) = of_session().find(|(_, record)| !record.delivered)?;
        let missing = of_session().filter(|(_, record)| !record.delivered).count();
        Some(format!(
            "message {number} ({} bytes, stream {}) and {} others were accepted and have not come out",
            record.len,
            record.stream,
            missing - 1
        ))
    }

    /// Messages accepted, and those of them that came out.
    pub(super) fn totals(&self) -> (u64, u64) {
        let delivered = self.messages.iter().filter(|record| record.delivered).count();
        (self.messages.len() as u64, delivered as u64)
    }
}

fn same(payload: &tresse_proto::Payload, expected: &Bytes) -> bool {
    let mut rest = expected.as_ref();
    payload.pieces().iter().all(|piece| match rest.split_at_checked(piece.len()) {
        Some((head, tail)) => {
            rest = tail;
            head == piece
        }
        None => false,
    }) && rest.is_empty()
}

/// The bytes of a message: a window on noise that is its own.
fn content(number: usize, len: usize) -> Bytes {
    let start = number.wrapping_mul(61) % STARTS;
    NOISE.slice(start..start + len.min(LONGEST))
}

/// The longest message there can be.
pub(super) const LONGEST: usize = 1 << 20;
const STARTS: usize = 8191;

static NOISE: LazyLock<Bytes> = LazyLock::new(|| {
    let mut state = 1_u64;
    let mut draw = || {
        // Knuth's linear congruence; its upper bits are good enough for content.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..LONGEST + STARTS).map(|_| draw()).collect()
});

#[cfg(test)]
mod tests {
    use tresse_proto::{Part, Payload, Ssn};

    use super::*;

    fn message(number: u32, stream: u16, payload: Bytes) -> Message {
        let options = (StreamId(stream), Ppid(number));
        let payload = Payload::Whole(payload);
        Message {
            stream: options.0,
            ssn: Ssn(0),
            ppid: options.1,
            unordered: false,
            part: Part::Whole,
            payload,
        }
    }

    fn three() -> (Ledger, Vec<Message>) {
        let mut ledger = Ledger::default();
        let mut sent = Vec::new();
        for (number, stream) in [(0, 0), (1, 0), (2, 5)] {
            let (_, bytes) = ledger.next(stream, false, 10);
            ledger.accepted(1, stream, false, 10);
            sent.push(message(number, stream, bytes));
        }
        (ledger, sent)
    }

    #[test]
    fn what_comes_out_as_sent_is_right_and_the_rest_is_missing() {
        let (mut ledger, sent) = three();
        assert_eq!(ledger.delivered(&sent[2]), Ok(()));
        assert_eq!(ledger.delivered(&sent[0]), Ok(()));
        assert!(ledger.missing(1).expect("one").contains("message 1 (10 bytes, stream 0) and 0 others"));
        assert_eq!(ledger.delivered(&sent[1]), Ok(()));
        assert_eq!((ledger.missing(1), ledger.totals()), (None, (3, 3)));
    }

    #[test]
    fn what_comes_out_wrong_is_told() {
        let (mut ledger, sent) = three();
        assert!(ledger.delivered(&sent[1]).expect_err("too early").contains("came out as 0"));
        assert!(ledger.delivered(&sent[1]).expect_err("again").contains("twice"));
        let elsewhere = Message { stream: StreamId(1), ..sent[0].clone() };
        assert!(ledger.delivered(&elsewhere).expect_err("another stream").contains("came out on 1"));
        let changed =
            Message { payload: Payload::Whole(Bytes::from_static(b"0123456789")), ..sent[2].clone() };
        assert!(ledger.delivered(&changed).expect_err("another content").contains("changed"));
        assert!(ledger.delivered(&message(9, 0, Bytes::new())).expect_err("unknown").contains("nobody sent"));
    }
}
