//! Ledger of messages: checks that every accepted message is delivered at most once, unchanged, and in the order of its
//! stream. A partially reliable message may be missing, but then its sender must have reported it as abandoned.
//!
//! The payload protocol identifier of a message carries its number. Independent of packets: the ledger sees only the
//! messages that applications send and receive.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use bytes::Bytes;
use tresse_proto::{Message, Ppid, Reliability, SendOptions};

/// PPID of the first message; it is above the PPIDs of the key management.
const FIRST: u32 = 10_000;

/// Returns the number of the message with this PPID; `usize::MAX` for a PPID that is not one of the ledger's.
fn number_of(ppid: Ppid) -> usize {
    ppid.0.checked_sub(FIRST).map_or(usize::MAX, |number| number as usize)
}

/// All messages of a simulation.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    messages: Vec<Record>,
    /// Ordered messages of each session and stream.
    order: BTreeMap<(u32, u16), Sequence>,
    /// Sessions whose set-up has ended at their own side, with or without success.
    set_up: BTreeSet<u32>,
}

/// Receiver of a message.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Receiver {
    /// Number of restarts of the receiving host so far.
    pub(super) life: u32,
    /// Number of the receiving association, counted over both hosts.
    pub(super) session: u32,
}

/// Numbers of the messages of a stream, in their order.
#[derive(Debug, Default)]
struct Sequence {
    sent: Vec<usize>,
    /// Position of the next message to be delivered.
    next: usize,
}

/// A message that the send buffer accepted.
#[derive(Debug)]
struct Record {
    /// Number of the sending association, counted over both hosts.
    session: u32,
    stream: u16,
    /// Position among the ordered messages of the stream; `None` for an unordered message.
    place: Option<usize>,
    len: usize,
    /// True if the message is partially reliable.
    revocable: bool,
    /// True if the message was accepted during the set-up of the association.
    early: bool,
    delivered: bool,
    /// Receiver of the last delivery.
    receiver: Receiver,
    /// `None` until the message is abandoned; then true if any part of it was sent.
    abandoned: Option<bool>,
}

impl Ledger {
    /// Assigns a number to the next message, and returns its bytes.
    pub(super) fn number(&self, options: &mut SendOptions, len: usize) -> Bytes {
        let number = self.messages.len();
        options.ppid = Ppid(FIRST + number as u32);
        content(number, len)
    }

    /// Records that the send buffer accepted a message.
    pub(super) fn accepted(&mut self, session: u32, options: &SendOptions, len: usize, early: bool) {
        let number = self.messages.len();
        let stream = options.stream.0;
        let place = (!options.unordered).then(|| {
            let sequence = self.order.entry((session, stream)).or_default();
            sequence.sent.push(number);
            sequence.sent.len() - 1
        });
        let revocable = options.reliability != Reliability::Full;
        let (delivered, receiver, abandoned) = (false, Receiver::default(), None);
        self.messages.push(Record {
            session,
            stream,
            place,
            len,
            revocable,
            early,
            delivered,
            receiver,
            abandoned,
        });
    }

    /// Records that the sender has abandoned a message.
    ///
    /// # Errors
    /// If the message must not be abandoned.
    pub(super) fn abandoned(&mut self, ppid: Ppid, bytes: usize, sent: bool) -> Result<(), String> {
        let number = number_of(ppid);
        let record = self.messages.get_mut(number).ok_or(format!("message {number} was never accepted"))?;
        // A message that was sent before the end of the set-up may use a stream that the peer does not accept.
        let may_lack_stream = record.early && !sent;
        if !(record.revocable || may_lack_stream) || record.len != bytes {
            return Err(format!("message {number} was given up as one of {bytes} bytes: {record:?}"));
        }
        if record.delivered && !sent {
            return Err(format!("message {number} came out although it was given up before it was sent"));
        }
        match record.abandoned.replace(sent) {
            None => Ok(()),
            Some(_) => Err(format!("message {number} was given up twice")),
        }
    }

    /// Records that the set-up of a session has ended.
    pub(super) fn set_up(&mut self, session: u32) {
        self.set_up.insert(session);
    }

    /// Records that a message was delivered to the peer's application.
    ///
    /// Data bundled with a COOKIE ECHO may be delivered more than once. It may be delivered again after each restart of its
    /// receiver: a peer that restarts during the set-up cannot be distinguished from one that never received the cookie (RFC 9260
    /// §5.2.4 B). It may also be delivered again in each further association of its receiver as long as its sender is still in
    /// the set-up: the replies to the cookie were lost, and the message is retransmitted with the next COOKIE ECHO (docs/rfc.md).
    ///
    /// # Errors
    /// If the delivery violates a rule.
    pub(super) fn delivered(&mut self, message: &Message, to: Receiver) -> Result<(), String> {
        let number = number_of(message.ppid);
        let Some(record) = self.messages.get_mut(number) else {
            return Err(format!("a message came out that nobody sent: PPID {number}"));
        };
        let in_set_up = !self.set_up.contains(&record.session) && record.receiver.session < to.session;
        let may_repeat = record.early && (record.receiver.life < to.life || in_set_up);
        if std::mem::replace(&mut record.delivered, true) && !may_repeat {
            return Err(format!("message {number} came out twice"));
        }
        record.receiver = to;
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
        if record.abandoned == Some(false) {
            return Err(format!("message {number} came out although it was given up before it was sent"));
        }
        let (session, stream, place) = (record.session, record.stream, record.place);
        if let (true, Some(place)) = (may_repeat, place) {
            let sequence = self.order.entry((session, stream)).or_default();
            sequence.next = sequence.next.min(place);
        }
        place.map_or(Ok(()), |place| self.take_place(session, stream, place))
    }

    /// Checks the order of a stream: the message at `place` was delivered, so the earlier messages that are missing never will be.
    fn take_place(&mut self, session: u32, stream: u16, place: usize) -> Result<(), String> {
        let sequence = self.order.entry((session, stream)).or_default();
        let skipped = sequence.sent.get(sequence.next..place);
        let skipped = skipped.ok_or(format!(
            "message {place} of stream {stream} came out when {} was to be next",
            sequence.next
        ))?;
        if let Some(number) = skipped.iter().find(|&&number| !self.messages[number].revocable) {
            return Err(format!(
                "message {place} of stream {stream} came out before message number {number}"
            ));
        }
        sequence.next = place + 1;
        Ok(())
    }

    /// Describes the first message of `session` that was neither delivered nor abandoned; `None` if there is none.
    pub(super) fn missing(&self, session: u32) -> Option<String> {
        let of_session = || self.messages.iter().enumerate().filter(|(_, record)| record.session == session);
        let (number, record) = of_session().find(|(_, record)| record.is_missing())?;
        let missing = of_session().filter(|(_, record)| record.is_missing()).count();
        Some(format!(
            "message {number} ({} bytes, stream {}) and {} others were accepted and have not come out",
            record.len,
            record.stream,
            missing - 1
        ))
    }

    /// Returns the number of accepted messages, and the number of delivered ones.
    pub(super) fn totals(&self) -> (u64, u64) {
        let delivered = self.messages.iter().filter(|record| record.delivered).count();
        (self.messages.len() as u64, delivered as u64)
    }
}

impl Record {
    fn is_missing(&self) -> bool {
        !self.delivered && self.abandoned.is_none()
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

/// Returns the bytes of a message: a section of the noise that depends on its number.
fn content(number: usize, len: usize) -> Bytes {
    let start = number.wrapping_mul(61) % STARTS;
    NOISE.slice(start..start + len.min(LONGEST))
}

/// Length of the longest message.
pub(super) const LONGEST: usize = 1 << 20;
const STARTS: usize = 8191;

static NOISE: LazyLock<Bytes> = LazyLock::new(|| {
    let mut state = 1_u64;
    let mut draw = || {
        // Knuth's linear congruential generator; its upper bits are random enough for contents.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..LONGEST + STARTS).map(|_| draw()).collect()
});

#[cfg(test)]
mod tests {
    use tresse_proto::{Payload, StreamId};

    use super::*;

    const ONCE: Receiver = Receiver { life: 0, session: 2 };

    fn message(number: u32, stream: u16, payload: Bytes) -> Message {
        Message::whole(StreamId(stream), Ppid(FIRST + number), payload)
    }

    /// Accepts messages 0 and 1 on stream 0 and message 2 on stream 5. Returns the ledger, and the messages as they are delivered.
    fn three(reliability: Reliability) -> (Ledger, Vec<Message>) {
        let mut ledger = Ledger::default();
        let mut sent = Vec::new();
        for (number, stream) in [(0, 0), (1, 0), (2, 5)] {
            let mut options = SendOptions::on(StreamId(stream)).with(|o| o.reliability = reliability);
            let bytes = ledger.number(&mut options, 10);
            ledger.accepted(1, &options, 10, false);
            sent.push(message(number, stream, bytes));
        }
        (ledger, sent)
    }

    #[test]
    fn what_comes_out_as_sent_is_right_and_the_rest_is_missing() {
        let (mut ledger, sent) = three(Reliability::Full);
        assert_eq!(ledger.delivered(&sent[2], ONCE), Ok(()));
        assert_eq!(ledger.delivered(&sent[0], ONCE), Ok(()));
        assert!(ledger.missing(1).expect("one").contains("message 1 (10 bytes, stream 0) and 0 others"));
        assert_eq!(ledger.delivered(&sent[1], ONCE), Ok(()));
        assert_eq!((ledger.missing(1), ledger.totals()), (None, (3, 3)));
    }

    #[test]
    fn what_comes_out_wrong_is_told() {
        let (mut ledger, sent) = three(Reliability::Full);
        assert!(ledger.delivered(&sent[1], ONCE).expect_err("too early").contains("before message number 0"));
        assert!(ledger.delivered(&sent[1], ONCE).expect_err("again").contains("twice"));
        let mut elsewhere = sent[0].clone();
        elsewhere.stream = StreamId(1);
        assert!(ledger.delivered(&elsewhere, ONCE).expect_err("another stream").contains("came out on 1"));
        let mut changed = sent[2].clone();
        changed.payload = Payload::Whole(Bytes::from_static(b"0123456789"));
        assert!(ledger.delivered(&changed, ONCE).expect_err("another content").contains("changed"));
        assert!(
            ledger
                .delivered(&message(9, 0, Bytes::new()), ONCE)
                .expect_err("unknown")
                .contains("nobody sent")
        );
        assert!(ledger.abandoned(Ppid(FIRST), 10, true).expect_err("a promise").contains("given up"));
    }

    #[test]
    fn what_need_not_arrive_may_be_skipped_and_has_to_be_given_up() {
        let (mut ledger, sent) = three(Reliability::Retransmissions(0));
        assert_eq!(ledger.delivered(&sent[1], ONCE), Ok(()));
        assert!(ledger.delivered(&sent[0], ONCE).expect_err("skipped").contains("when 2 was to be next"));
        let (mut ledger, sent) = three(Reliability::Retransmissions(0));
        assert_eq!((ledger.delivered(&sent[1], ONCE), ledger.delivered(&sent[2], ONCE)), (Ok(()), Ok(())));
        assert!(ledger.missing(1).is_some());
        assert_eq!((ledger.abandoned(Ppid(FIRST), 10, true), ledger.missing(1)), (Ok(()), None));
        assert!(ledger.abandoned(Ppid(FIRST), 10, true).expect_err("again").contains("twice"));
        assert!(
            ledger
                .abandoned(Ppid(FIRST + 2), 10, false)
                .expect_err("it is there")
                .contains("before it was sent")
        );
    }

    /// Accepts a message on session 1 before the end of the set-up.
    fn early() -> (Ledger, Message) {
        let mut ledger = Ledger::default();
        let mut options = SendOptions::default();
        let bytes = ledger.number(&mut options, 10);
        ledger.accepted(1, &options, 10, true);
        (ledger, message(0, 0, bytes))
    }

    #[test]
    fn what_went_behind_a_cookie_may_come_out_once_in_each_life() {
        let (mut ledger, message) = early();
        ledger.set_up(1);
        let again = Receiver { life: 1, session: 3 };
        assert_eq!((ledger.delivered(&message, ONCE), ledger.delivered(&message, again)), (Ok(()), Ok(())));
        assert!(ledger.delivered(&message, again).expect_err("again").contains("twice"));
        assert!(ledger.abandoned(Ppid(FIRST), 10, true).expect_err("a promise").contains("given up"));
    }

    #[test]
    fn what_went_behind_a_cookie_may_come_out_in_a_later_association_until_its_sender_is_set_up() {
        let later = |session| Receiver { session, ..ONCE };
        let (mut ledger, message) = early();
        assert_eq!(
            (ledger.delivered(&message, ONCE), ledger.delivered(&message, later(3))),
            (Ok(()), Ok(()))
        );
        assert!(ledger.delivered(&message, later(3)).expect_err("the same association").contains("twice"));
        ledger.set_up(1);
        assert!(ledger.delivered(&message, later(4)).expect_err("its sender knew").contains("twice"));
    }
}
