//! The messages of these tests: any side can tell from a message's number what it has to be. The number
//! follows from the payload protocol identifier, and every peer has the same rule.

use std::collections::BTreeSet;
use std::ops::Range;

use tresse::{Association, Message, Ppid, SendOptions, StreamId};

/// About ten megabytes.
pub(crate) const MESSAGES: u32 = 1_000;
pub(crate) const STREAMS: u16 = 16;

/// Payload protocol identifier of message 0; the others follow. Lower ones mean something to stacks that
/// were made for data channels.
const FIRST_PPID: u32 = 1_000_000;

/// The number of the message with this payload protocol identifier.
pub(crate) fn number_of(ppid: u32) -> u32 {
    ppid.wrapping_sub(FIRST_PPID)
}

/// Length of message `number`.
pub(crate) fn length(number: u32) -> usize {
    4 + (number.wrapping_mul(7919) % 20_000) as usize
}

/// The number in network order, then a pattern.
pub(crate) fn content(number: u32) -> Vec<u8> {
    let pattern = |at: usize| (at as u32).wrapping_mul(31).wrapping_add(number.wrapping_mul(7)) as u8;
    number.to_be_bytes().into_iter().chain((4..length(number)).map(pattern)).collect()
}

/// Every third message is unordered; streams take turns.
pub(crate) fn options(number: u32) -> SendOptions {
    let stream = StreamId((number % u32::from(STREAMS)) as u16);
    SendOptions::on(stream).with(|o| {
        o.unordered = number % 3 == 2;
        o.ppid = Ppid(FIRST_PPID + number);
    })
}

/// Bytes of messages 0 to `count`, without the last.
pub(crate) fn bytes(count: u32) -> usize {
    (0..count).map(length).sum()
}

/// Sends these messages.
pub(crate) async fn send(association: &Association, numbers: Range<u32>) {
    for number in numbers {
        association.send(options(number), content(number)).await.expect("the association takes it");
    }
}

/// What came, in the order in which it came, each message checked by itself and against those before.
#[derive(Default)]
pub(crate) struct Ledger {
    numbers: Vec<u32>,
    /// The latest ordered message of each stream.
    latest: [Option<u32>; STREAMS as usize],
}

impl Ledger {
    pub(crate) fn note(&mut self, message: &Message) {
        let number = number_of(message.ppid.0);
        let expected = options(number);
        assert_eq!(message.payload.clone().into_bytes(), content(number), "content of message {number}");
        assert_eq!(message.stream, expected.stream, "stream of message {number}");
        assert_eq!(message.unordered, expected.unordered, "kind of message {number}");
        if !message.unordered {
            let before = self.latest[usize::from(message.stream.0)].replace(number);
            assert!(before < Some(number), "message {number} came after {before:?}");
        }
        self.numbers.push(number);
    }

    /// Receives `count` messages.
    pub(crate) async fn take(&mut self, association: &Association, count: u32) {
        for _ in 0..count {
            self.note(&association.recv().await.expect("open").expect("more to come"));
        }
    }

    /// Receives until these messages have come, or the peer has no more.
    pub(crate) async fn take_these(&mut self, association: &Association, numbers: impl Iterator<Item = u32>) {
        let mut missing: BTreeSet<u32> = numbers.collect();
        for number in &self.numbers {
            missing.remove(number);
        }
        while !missing.is_empty()
            && let Some(message) = association.recv().await.expect("open")
        {
            missing.remove(&number_of(message.ppid.0));
            self.note(&message);
        }
    }

    /// Receives until the peer has no more.
    pub(crate) async fn take_all(&mut self, association: &Association) {
        while let Some(message) = association.recv().await.expect("a graceful end") {
            self.note(&message);
        }
    }

    /// The messages that came, none of them twice.
    pub(crate) fn numbers(self) -> BTreeSet<u32> {
        let all = self.numbers.len();
        let numbers: BTreeSet<u32> = self.numbers.into_iter().collect();
        assert_eq!(numbers.len(), all, "a message came twice");
        numbers
    }

    /// Every message from 0 to `count`, without the last, came once.
    pub(crate) fn assert_complete(mut self, count: u32) {
        self.numbers.sort_unstable();
        assert_eq!(self.numbers, (0..count).collect::<Vec<_>>());
    }
}
