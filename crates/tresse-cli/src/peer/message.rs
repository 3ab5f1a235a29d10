//! Generated messages. Either end can compute from the number of a message what it must contain.
//!
//! The number is the payload protocol identifier, so an echo preserves it. Lengths and contents follow from the number: the other peers
//! of the interoperability tests use the same rule.

use tresse::{Message, Ppid, SendOptions, StreamId};

use super::args::{Sizes, WorkArgs};

/// Returns message `number`, with its options.
pub(super) fn generate(work: &WorkArgs, streams: u16, number: u32) -> (SendOptions, Vec<u8>) {
    let stream = StreamId((number % u32::from(streams.max(1))) as u16);
    let options = SendOptions::on(stream).with(|o| {
        o.ppid = Ppid(FIRST_PPID.wrapping_add(number));
        o.unordered = work.unordered_every.is_some_and(|every| number % every == every - 1);
        o.reliability = work.reliability();
    });
    (options, content(number, length(work.size, number)))
}

/// Returns the length of message `number`. Lengths are spread over the range so that consecutive ones differ.
fn length(sizes: Sizes, number: u32) -> usize {
    (sizes.shortest + number.wrapping_mul(STRIDE) % (sizes.longest - sizes.shortest + 1)) as usize
}

/// Returns the content of message `number`: the number itself in network order, then a pattern.
fn content(number: u32, len: usize) -> Vec<u8> {
    let pattern =
        (4..len.max(4)).map(|at| (at as u32).wrapping_mul(31).wrapping_add(number.wrapping_mul(7)) as u8);
    let mut bytes: Vec<u8> = number.to_be_bytes().into_iter().chain(pattern).collect();
    bytes.truncate(len);
    bytes
}

/// Returns the number of the message with this payload protocol identifier.
pub(super) fn number_of(ppid: Ppid) -> u32 {
    ppid.0.wrapping_sub(FIRST_PPID)
}

/// Verifier of the messages that arrive.
#[derive(Default)]
pub(super) struct Verifier {
    /// The latest ordered message of each stream.
    latest: std::collections::BTreeMap<u16, u32>,
}

impl Verifier {
    /// Checks the next message that arrived. The error describes the fault.
    pub(super) fn check(&mut self, message: &Message) -> Result<(), String> {
        let number = number_of(message.ppid);
        let pieces = message.payload.pieces();
        let expected = content(number, message.payload.len());
        if !pieces.iter().flatten().eq(&expected) {
            return Err(format!("message {number} is not as it was generated"));
        }
        if message.unordered {
            return Ok(());
        }
        match self.latest.insert(message.stream.0, number) {
            Some(before) if before >= number => {
                Err(format!("message {number} came after {before} on stream {}", message.stream.0))
            }
            _ => Ok(()),
        }
    }
}

/// Payload protocol identifier of message 0; the others follow. Stacks made for data channels give lower ones a meaning (RFC 8831).
const FIRST_PPID: u32 = 1_000_000;
/// Distance between the lengths of consecutive messages: a prime.
const STRIDE: u32 = 7919;

#[cfg(test)]
mod tests {
    use super::*;

    fn message(number: u32, bytes: Vec<u8>) -> Message {
        Message::whole(StreamId(0), Ppid(FIRST_PPID + number), bytes.into())
    }

    #[test]
    fn lengths_keep_within_their_range_and_reach_its_ends() {
        let sizes = Sizes { shortest: 3, longest: 12 };
        let lengths: std::collections::BTreeSet<usize> =
            (0..10).map(|number| length(sizes, number)).collect();
        assert_eq!(lengths, (3..=12).collect());
    }

    #[test]
    fn a_damaged_a_late_and_a_double_message_are_noticed() {
        let mut verifier = Verifier::default();
        assert_eq!(verifier.check(&message(1, content(1, 3))), Ok(()));
        assert_eq!(verifier.check(&message(5, content(5, 100))), Ok(()));
        let mut damaged = content(6, 100);
        damaged[50] ^= 1;
        assert_eq!(
            verifier.check(&message(6, damaged)),
            Err("message 6 is not as it was generated".to_owned())
        );
        let late = Err("message 5 came after 5 on stream 0".to_owned());
        assert_eq!(verifier.check(&message(5, content(5, 100))), late);
    }
}
