//! Abandoned messages: what is dropped, what stays, and what is delivered.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

impl Bench {
    /// Skips up to the index `up_to`, and on stream 0 the messages up to `ssn`.
    fn skip(&mut self, up_to: u64, ssn: u32) {
        let skipped = Skipped { stream: StreamId(0), unordered: false, number: ssn };
        self.inbound.skip(up_to, [skipped].into_iter(), &mut self.deliverable).expect("no fault");
    }
}

#[test]
fn what_waited_behind_a_skipped_message_is_delivered() {
    let mut bench = Bench::of(10_000, 1, true);
    bench.accept(2, chunk(1, "BE", "b")).expect("accepted");
    bench.accept(3, chunk(2, "BE", "c")).expect("accepted");
    bench.accept(5, chunk(4, "BE", "e")).expect("accepted");
    bench.skip(1, 0);
    assert_eq!(bench.deliverable(), [(2, 2), (3, 3)]);
    assert_eq!(bench.texts(), ["b", "c"]);
    assert_eq!(bench.held(), 1, "the fifth waits for the fourth");
    bench.skip(4, 3);
    assert_eq!(bench.texts(), ["e"]);
    assert_eq!(bench.accept(6, chunk(5, "BE", "f")), READY);
}

#[test]
fn complete_messages_among_those_skipped_are_delivered_in_order() {
    let mut bench = Bench::of(10_000, 1, true);
    for (index, ssn) in [(4, 3), (2, 1), (7, 6)] {
        bench.accept(index, chunk(ssn, "BE", &ssn.to_string())).expect("accepted");
    }
    bench.skip(5, 4);
    assert_eq!(bench.texts(), ["1", "3"]);
    bench.skip(6, 5);
    assert_eq!(bench.texts(), ["6"]);
}

#[test]
fn fragments_of_a_skipped_message_leave_the_buffer() {
    let mut bench = Bench::of(10_000, 1, true);
    bench.accept(1, chunk(0, "B", "xx")).expect("accepted");
    bench.accept(3, chunk(0, "", "xx")).expect("accepted");
    bench.accept(6, chunk(1, "B", "hi")).expect("accepted");
    bench.skip(5, 0);
    assert_eq!(bench.held(), 2);
    assert_eq!(bench.accept(7, chunk(1, "E", "!")), READY);
    assert_eq!(bench.texts(), ["hi!"]);
}

#[test]
fn late_fragments_of_a_skipped_message_are_dropped_and_no_fault() {
    let mut bench = Bench::of(10_000, 1, true);
    bench.accept(2, chunk(0, "", "xx")).expect("accepted");
    bench.accept(4, chunk(0, "", "xx")).expect("accepted");
    bench.skip(1, 0);
    assert_eq!(bench.inbound.used(), 0, "what came of it");
    assert_eq!(bench.inbound.check_progress(2), Ok(()));
    bench.accept(3, chunk(0, "", "xx")).expect("accepted");
    assert_eq!(bench.inbound.check_progress(4), Ok(()));
    bench.accept(5, chunk(0, "E", "xx")).expect("accepted");
    assert_eq!(bench.accept(6, chunk(1, "BE", "next")), READY);
    assert_eq!(bench.inbound.check_progress(6), Ok(()));
    assert_eq!((bench.texts(), bench.held()), (vec!["next".to_owned()], 0));
    assert_eq!(bench.inbound.given_up(), 4);
}

#[test]
fn a_skip_that_ends_within_a_message_leaves_it_alone() {
    let mut bench = Bench::of(10_000, 1, true);
    bench.accept(2, chunk(0, "BU", "a")).expect("accepted");
    bench.skip(2, 65_535);
    assert_eq!(bench.accept(3, chunk(0, "EU", "b")), READY);
    assert_eq!(bench.texts(), ["ab"]);
}

#[test]
fn a_message_whose_rest_was_never_sent_goes_when_another_begins() {
    for order in [[1, 2], [2, 1]] {
        let mut bench = Bench::of(10_000, 1, true);
        for index in order {
            let data = if index == 1 { chunk(0, "BU", "a") } else { chunk(0, "BE", "b") };
            bench.accept(index, data).expect("accepted");
        }
        assert_eq!(bench.inbound.check_progress(2), Ok(()));
        assert_eq!((bench.texts(), bench.held()), (vec!["b".to_owned()], 0));
    }
}

#[test]
fn a_stale_or_foreign_skip_changes_nothing() {
    let mut bench = Bench::of(10_000, 1, true);
    for (index, ssn) in [(1, 0), (2, 1), (4, 3)] {
        bench.accept(index, chunk(ssn, "BE", "x")).expect("accepted");
    }
    bench.skip(2, 1);
    bench.skip(0, 65_000);
    let foreign = Skipped { stream: StreamId(1), unordered: false, number: 7 };
    let unordered = Skipped { stream: StreamId(0), unordered: true, number: 7 };
    bench.inbound.skip(2, [foreign, unordered].into_iter(), &mut bench.deliverable).expect("no fault");
    assert_eq!(bench.texts().len(), 2);
    assert_eq!(bench.accept(3, chunk(2, "BE", "x")), READY);
    assert_eq!(bench.texts().len(), 2);
}

/// A sender that abandons some of its messages, and its knowledge of the receiver.
struct Giver {
    /// By index the number of the message, and the fragment.
    chunks: BTreeMap<u64, (usize, InboundData)>,
    /// Abandoned messages.
    given_up: BTreeSet<usize>,
    arrived: BTreeSet<u64>,
    cumulative: u64,
    custom: Custom,
}

/// Ways in which senders treat arrived chunks when they skip messages.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Custom {
    /// Chunks of abandoned messages are skipped, whether they arrived or not.
    Whole,
    /// The skip stops at the first chunk that arrived.
    Stop,
    /// All chunks that arrived are skipped as well, abandoned or not.
    StepOver,
}

impl Giver {
    fn advance(&mut self) {
        while self.arrived.contains(&(self.cumulative + 1)) {
            self.cumulative += 1;
        }
    }

    /// Skips the indices that RFC 3758 §3.5 C2 allows.
    fn skip(&mut self, bench: &mut Bench) {
        let mut last: BTreeMap<u16, u32> = BTreeMap::new();
        let mut up_to = self.cumulative;
        while let Some((message, data)) = self.chunks.get(&(up_to + 1)) {
            let (given_up, arrived) = (self.given_up.contains(message), self.arrived.contains(&(up_to + 1)));
            let skips = match self.custom {
                Custom::Whole => given_up,
                Custom::Stop => given_up && !arrived,
                Custom::StepOver => given_up || arrived,
            };
            if !skips {
                break;
            }
            up_to += 1;
            if given_up && !data.flags.unordered() {
                last.insert(data.stream.0, data.mid.0);
            }
        }
        let skipped = last.into_iter().map(|(stream, number)| Skipped {
            stream: StreamId(stream),
            unordered: false,
            number,
        });
        bench.inbound.skip(up_to, skipped, &mut bench.deliverable).expect("no fault");
        self.cumulative = up_to;
        self.advance();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Chunks in any order, fragments of abandoned messages lost or late, skips in between: every other message is delivered
    /// once and in order, abandoned ones are delivered whole or not at all, and nothing is left.
    #[test]
    fn whatever_is_skipped_the_rest_arrives_whole_and_in_order(
        messages in prop::collection::vec((0u16..3, 1usize..6, any::<bool>(), any::<bool>()), 1..20),
        lost in any::<u64>(),
        shuffle in any::<u64>(),
        custom in prop::sample::select(vec![Custom::Whole, Custom::Stop, Custom::StepOver]),
    ) {
        let mut giver = Giver {
            chunks: BTreeMap::new(),
            given_up: BTreeSet::new(),
            arrived: BTreeSet::new(),
            cumulative: 0,
            custom,
        };
        let mut next = [0u16; 3];
        let mut texts = Vec::new();
        let mut index = 1;
        for (number, &(stream, pieces, unordered, given_up)) in messages.iter().enumerate() {
            let ssn = next[usize::from(stream)];
            next[usize::from(stream)] += u16::from(!unordered);
            if given_up {
                giver.given_up.insert(number);
            }
            for piece in 0..pieces {
                let begins = if piece == 0 { "B" } else { "" };
                let ends = if piece + 1 == pieces { "E" } else { "" };
                let shape = format!("{begins}{ends}{}", if unordered { "U" } else { "" });
                let data = on(stream, chunk(ssn, &shape, &format!("{number}.{piece} ")));
                giver.chunks.insert(index, (number, data));
                index += 1;
            }
            texts.push((0..pieces).map(|piece| format!("{number}.{piece} ")).collect::<String>());
        }
        let mut arrivals: Vec<(u64, InboundData)> =
            giver.chunks.iter().map(|(&index, (_, data))| (index, data.clone())).collect();
        arrivals.retain(|(index, _)| {
            !giver.given_up.contains(&giver.chunks[index].0) || lost >> (index % 64) & 1 == 0
        });
        shuffled(&mut arrivals, shuffle);

        let mut bench = Bench::of(1 << 20, 3, true);
        for (step, (index, data)) in arrivals.into_iter().enumerate() {
            if index > giver.cumulative {
                prop_assert!(bench.accept(index, data).is_ok());
                giver.arrived.insert(index);
                giver.advance();
            }
            if shuffle >> (step % 64) & 1 == 0 {
                giver.skip(&mut bench);
            }
            prop_assert_eq!(bench.inbound.check_progress(giver.cumulative), Ok(()));
        }
        for _ in 0..index {
            giver.skip(&mut bench);
            prop_assert_eq!(bench.inbound.check_progress(giver.cumulative), Ok(()));
        }
        prop_assert_eq!(giver.cumulative, index - 1, "everything is skipped or here");

        let got = bench.texts();
        let number = |text: &String| -> usize { text.split('.').next().unwrap().parse().unwrap() };
        let mut once = BTreeSet::new();
        for text in &got {
            prop_assert_eq!(text, &texts[number(text)]);
            prop_assert!(once.insert(number(text)), "delivered twice");
        }
        for (number, _) in messages.iter().enumerate() {
            prop_assert!(once.contains(&number) || giver.given_up.contains(&number), "message {} is gone", number);
        }
        for stream in 0..3 {
            let of_stream = |&number: &usize| messages[number].0 == stream && !messages[number].2;
            let ordered: Vec<usize> = got.iter().map(number).filter(of_stream).collect();
            prop_assert!(ordered.is_sorted(), "{:?}", ordered);
        }
        prop_assert_eq!((bench.held(), bench.inbound.window()), (0, 1 << 20));
    }
}
