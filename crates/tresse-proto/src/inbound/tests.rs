//! Inbound as the association sees it: chunks in, messages and deliverable indices out.

mod interleaved;
mod partial;
mod skip;

use std::collections::BTreeSet;

use bytes::Bytes;
use proptest::prelude::*;
use tresse_wire::{DataFlags, Fsn, Mid, Ppid, Ssn, StreamId};

use super::*;
use crate::config::Size;
use crate::interface::event::Payload;

/// An inbound side, and the indices that have arrived, as the association knows them.
struct Bench {
    inbound: Inbound,
    deliverable: Vec<Range<u64>>,
    /// Index up to which everything has arrived.
    cumulative: u64,
    /// Indices above it that have arrived.
    early: BTreeSet<u64>,
}

/// Result of an accepted chunk.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Acceptance {
    /// At least one more message or part waits to be taken.
    Ready,
    /// The chunk is held until the missing data has arrived.
    Held,
    /// The sender abandoned the message of the chunk.
    Dropped,
}

impl Bench {
    fn new(buffer: usize, streams: u16) -> Self {
        Self::of(buffer, streams, false)
    }

    /// `lenient` is true if the peer may abandon messages.
    fn of(buffer: usize, streams: u16, lenient: bool) -> Self {
        Self::with(buffer, streams, DataFormat::Data, 0, lenient)
    }

    /// `point` is the switch `partial_delivery_point`.
    fn with(buffer: usize, streams: u16, data_format: DataFormat, point: usize, lenient: bool) -> Self {
        let config = AssociationConfig {
            receive_buffer: Size(buffer),
            mtu: Size(1500),
            partial_delivery_point: Size(point),
            ..Default::default()
        };
        let inbound = Inbound::new(&config, streams, data_format, lenient);
        Bench { inbound, deliverable: Vec::new(), cumulative: 0, early: BTreeSet::new() }
    }

    fn accept(&mut self, index: u64, data: InboundData) -> Result<Acceptance, Refusal> {
        let (ready, given_up) = (self.inbound.ready.len(), self.inbound.given_up());
        self.inbound.accept(index, self.cumulative, data, None, &mut self.deliverable)?;
        self.early.insert(index);
        while self.early.remove(&(self.cumulative + 1)) {
            self.cumulative += 1;
        }
        Ok(if self.inbound.ready.len() > ready {
            Acceptance::Ready
        } else if self.inbound.given_up() > given_up {
            Acceptance::Dropped
        } else {
            Acceptance::Held
        })
    }

    fn relieve(&mut self, gaps: bool) {
        self.inbound.deliver_partially(self.cumulative, gaps, &mut self.deliverable);
    }

    /// Returns the bytes of user data that are held.
    fn held(&self) -> usize {
        let (bytes, chunks) = self.inbound.window.held();
        bytes - chunks * self.inbound.header_len()
    }

    /// Takes the ready messages; returns the text of each.
    fn texts(&mut self) -> Vec<String> {
        let bytes = std::iter::from_fn(|| self.inbound.recv()).map(|message| message.payload.into_bytes());
        bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).collect()
    }

    /// Returns the first and last index of each range that became deliverable since the last call.
    fn deliverable(&mut self) -> Vec<(u64, u64)> {
        self.deliverable.drain(..).map(|range| (range.start, range.end - 1)).collect()
    }
}

/// A chunk of stream 0; `shape` has the letters B, E and U of the flags that are set.
fn chunk(ssn: u16, shape: &str, text: &str) -> InboundData {
    InboundData {
        stream: StreamId(0),
        mid: Mid(ssn.into()),
        fsn: Fsn(0),
        ppid: Ppid(7),
        flags: DataFlags {
            beginning: shape.contains('B'),
            ending: shape.contains('E'),
            unordered: shape.contains('U'),
            immediate: false,
        }
        .into(),
        payload: Bytes::copy_from_slice(text.as_bytes()),
    }
}

fn on(stream: u16, data: InboundData) -> InboundData {
    InboundData { stream: StreamId(stream), ..data }
}

const READY: Result<Acceptance, Refusal> = Ok(Acceptance::Ready);
const HELD: Result<Acceptance, Refusal> = Ok(Acceptance::Held);

// ---- order ----

#[test]
fn a_message_in_sequence_is_ready_at_once() {
    let mut bench = Bench::new(10_000, 1);
    assert_eq!(bench.accept(1, chunk(0, "BE", "a")), READY);
    let message = bench.inbound.recv().expect("a message");
    assert_eq!((message.stream, message.ssn, message.ppid), (StreamId(0), Ssn(0), Ppid(7)));
    assert!(!message.unordered && matches!(message.payload, Payload::Whole(_)));
    assert_eq!(bench.deliverable(), [(1, 1)]);
    assert!(!bench.inbound.has_ready());
}

#[test]
fn only_the_user_data_is_kept_of_what_holds_it() {
    for shapes in [&["BE"][..], &["BEU"], &["B", "E"], &["B", "", "", "E"], &["BU", "U", "EU"]] {
        for order in [1, -1] {
            let mut bench = Bench::new(10_000, 1);
            let mut arrivals: Vec<_> = (1..).zip(shapes).collect();
            arrivals.sort_by_key(|&(index, _)| order * index);
            for (held, (index, shape)) in (1..).zip(arrivals) {
                let data = chunk(0, shape, &format!("header{index}pad"));
                let accepted =
                    bench.inbound.accept(index as u64, 0, data, Some(6..7), &mut bench.deliverable);
                assert!(accepted.is_ok(), "{shapes:?}");
                assert_eq!((bench.held(), bench.inbound.check_invariants()), (held, Ok(())));
            }
            let whole: String = (1..=shapes.len()).map(|index| index.to_string()).collect();
            assert_eq!((bench.texts(), bench.held()), (vec![whole], 0), "{shapes:?}");
        }
    }
}

#[test]
fn a_message_grows_on_after_something_came_early() {
    let mut bench = Bench::new(10_000, 1);
    for (index, shape, text) in [(1, "B", "a"), (2, "", "b"), (6, "BE", "later"), (3, "", "c"), (4, "", "d")]
    {
        assert_eq!(bench.accept(index, chunk(u16::from(index > 5), shape, text)), HELD);
        assert_eq!(bench.inbound.check_invariants(), Ok(()));
    }
    assert_eq!(bench.accept(5, chunk(0, "E", "e")), READY);
    assert_eq!(bench.texts(), ["abcde", "later"]);
    assert_eq!(bench.deliverable(), [(1, 5), (6, 6)]);
}

#[test]
fn early_messages_wait_for_those_before_them() {
    let mut bench = Bench::new(10_000, 1);
    assert_eq!(bench.accept(3, chunk(2, "BE", "c")), HELD);
    assert_eq!(bench.accept(2, chunk(1, "BE", "b")), HELD);
    assert_eq!(bench.accept(5, chunk(4, "BE", "e")), HELD);
    assert!(!bench.inbound.has_ready() && bench.deliverable().is_empty());
    assert_eq!(bench.accept(1, chunk(0, "BE", "a")), READY);
    assert_eq!(bench.texts(), ["a", "b", "c"]);
    assert_eq!(bench.deliverable(), [(1, 1), (2, 2), (3, 3)]);
    assert_eq!(bench.accept(4, chunk(3, "BE", "d")), READY);
    assert_eq!(bench.texts(), ["d", "e"]);
}

#[test]
fn streams_do_not_wait_for_each_other() {
    let mut bench = Bench::new(10_000, 65_535);
    assert_eq!(bench.accept(2, on(0, chunk(1, "BE", "late"))), HELD);
    assert_eq!(bench.accept(3, on(65_534, chunk(0, "BE", "far"))), READY);
    assert_eq!(bench.accept(4, on(1, chunk(0, "BE", "near"))), READY);
    assert_eq!(bench.texts(), ["far", "near"]);
    assert_eq!(bench.deliverable(), [(3, 3), (4, 4)]);
}

#[test]
fn unordered_messages_pass_those_that_wait_and_their_ssn_is_ignored() {
    let mut bench = Bench::new(10_000, 1);
    assert_eq!(bench.accept(2, chunk(1, "BE", "waits")), HELD);
    assert_eq!(bench.accept(3, chunk(1, "BEU", "passes")), READY);
    assert_eq!(bench.accept(4, chunk(9999, "BEU", "too")), READY);
    assert!(bench.inbound.recv().is_some_and(|message| message.unordered));
    assert_eq!(bench.deliverable(), [(3, 3), (4, 4)]);
    assert_eq!(bench.accept(1, chunk(0, "BE", "first")), READY);
    assert_eq!(bench.texts(), ["too", "first", "waits"]);
}

#[test]
fn ssns_wrap_around() {
    let mut bench = Bench::new(1 << 20, 1);
    for index in 1..=65_534u64 {
        assert_eq!(bench.accept(index, chunk((index - 1) as u16, "BE", "x")), READY);
        assert!(bench.inbound.recv().is_some());
    }
    // 65534, 65535, 0, 1: in the order 0, 65535, 1, 65534.
    assert_eq!(bench.accept(65_537, chunk(0, "BE", "c")), HELD);
    assert_eq!(bench.accept(65_536, chunk(65_535, "BE", "b")), HELD);
    assert_eq!(bench.accept(65_538, chunk(1, "BE", "d")), HELD);
    assert_eq!(bench.accept(65_535, chunk(65_534, "BE", "a")), READY);
    assert_eq!(bench.texts(), ["a", "b", "c", "d"]);
}

#[test]
fn a_stream_may_be_as_many_messages_ahead_as_ssns_can_tell() {
    let mut bench = Bench::new(1 << 30, 1);
    for index in 2..=65_536u64 {
        assert_eq!(bench.accept(index, chunk((index - 1) as u16, "BE", "x")), HELD, "index {index}");
    }
    assert_eq!(bench.accept(1, chunk(0, "BE", "x")), READY);
    assert_eq!(bench.texts().len(), 65_536);
}

#[test]
fn an_ssn_that_cannot_be_is_a_fault_not_a_message_lost_in_silence() {
    let mut bench = Bench::new(10_000, 1);
    for (index, ssn) in [(1, 0), (2, 1), (3, 2)] {
        assert_eq!(bench.accept(index, chunk(ssn, "BE", "x")), READY);
    }
    assert_eq!(bench.accept(6, chunk(5, "BE", "x")), HELD);
    let fault = "number of a message that was delivered before, or too far ahead for its TSN";
    // The numbers were delivered before, or are too far ahead for the three TSNs after the last delivered message.
    for (index, ssn) in [(4, 2), (4, 0), (5, 5), (6, 6)] {
        assert_eq!(bench.accept(index, chunk(ssn, "BE", "x")), Err(Refusal::Protocol(fault)), "SSN {ssn}");
    }
    assert_eq!(
        bench.accept(7, chunk(5, "BE", "x")),
        Err(Refusal::Protocol("two messages with the same number"))
    );
    assert_eq!(bench.inbound.check_invariants(), Ok(()), "what was refused is not counted");
}

/// Numbers wrap: the old number of an idle stream looks like one far ahead.
#[test]
fn a_number_of_before_is_told_from_one_far_ahead_however_long_a_stream_rested() {
    for lenient in [false, true] {
        let mut bench = Bench::of(10_000, 2, lenient);
        assert_eq!(bench.accept(1, chunk(0, "BE", "x")), READY);
        for flags in ["BE", "B"] {
            assert_eq!(bench.inbound.check_progress(70_000), Ok(()));
            let late = bench.accept(70_001, chunk(0, flags, "x"));
            assert_eq!(late.is_err(), !lenient, "{late:?}");
            assert_eq!((bench.held(), bench.inbound.has_ready()), (1, true), "nothing is kept");
        }
        assert_eq!(bench.accept(70_003, chunk(2, "BE", "x")), HELD);
        assert_eq!(bench.accept(70_002, chunk(1, "BE", "x")), READY);
    }
}

#[test]
fn a_stream_that_does_not_exist_is_refused() {
    let mut bench = Bench::new(10_000, 3);
    assert_eq!(bench.accept(1, on(3, chunk(0, "BE", "x"))), Err(Refusal::NoSuchStream));
    assert_eq!(bench.accept(1, on(65_535, chunk(0, "B", "x"))), Err(Refusal::NoSuchStream));
    assert_eq!(bench.accept(1, on(2, chunk(0, "BE", "x"))), READY);
    assert_eq!(bench.held(), 1);
}

// ---- fragments ----

#[test]
fn fragments_become_a_message_whatever_their_order() {
    let orders: [[u64; 5]; 6] = [
        [1, 2, 3, 4, 5],
        [5, 4, 3, 2, 1],
        [1, 3, 5, 2, 4],
        [2, 4, 3, 1, 5],
        [5, 1, 4, 2, 3],
        [3, 2, 4, 5, 1],
    ];
    for order in orders {
        for unordered in ["", "U"] {
            let mut bench = Bench::new(10_000, 1);
            for (step, index) in order.into_iter().enumerate() {
                let shape = match index {
                    1 => "B",
                    5 => "E",
                    _ => "",
                };
                let data = chunk(0, &format!("{shape}{unordered}"), &index.to_string().repeat(3));
                let expected = if step == 4 { READY } else { HELD };
                assert_eq!(bench.accept(index, data), expected, "{order:?}, step {step}");
                assert_eq!(bench.held(), 3 * (step + 1));
            }
            assert_eq!(bench.deliverable(), [(1, 5)]);
            assert_eq!(bench.texts(), ["111222333444555"], "{order:?}");
            assert_eq!(bench.held(), 0);
        }
    }
}

#[test]
fn a_fragmented_message_waits_for_its_turn_like_any_other() {
    let mut bench = Bench::new(10_000, 1);
    assert_eq!(bench.accept(3, chunk(1, "E", "!")), HELD);
    assert_eq!(bench.accept(2, chunk(1, "B", "hi")), HELD);
    assert!(bench.deliverable().is_empty());
    assert_eq!(bench.accept(1, chunk(0, "BE", "a")), READY);
    assert_eq!(bench.deliverable(), [(1, 1), (2, 3)]);
    assert_eq!(bench.texts(), ["a", "hi!"]);
}

#[test]
fn neighbouring_messages_are_kept_apart() {
    let mut bench = Bench::new(10_000, 1);
    assert_eq!(bench.accept(2, chunk(0, "E", "2")), HELD);
    assert_eq!(bench.accept(3, chunk(1, "B", "3")), HELD);
    assert_eq!(bench.accept(5, chunk(2, "BE", "5")), HELD);
    assert_eq!(bench.accept(4, chunk(1, "E", "4")), HELD);
    assert_eq!(bench.accept(1, chunk(0, "B", "1")), READY);
    assert_eq!(bench.texts(), ["12", "34", "5"]);
    assert_eq!(bench.deliverable(), [(1, 2), (3, 4), (5, 5)]);
}

#[test]
fn the_first_fragment_names_the_payload() {
    let mut bench = Bench::new(10_000, 1);
    bench.accept(2, InboundData { ppid: Ppid(8), ..chunk(0, "E", "b") }).expect("accepted");
    bench.accept(1, chunk(0, "B", "a")).expect("accepted");
    assert_eq!(bench.inbound.recv().map(|message| message.ppid), Some(Ppid(7)));
}

/// Faults of a second chunk, by the first chunk and the indices of both.
#[test]
fn contradictory_fragments_are_a_fault() {
    let begins = "a fragment without the last of its message behind it";
    let lacks = "a fragment without the first of its message before it";
    let differ = "fragments of one message differ in stream, SSN or U bit";
    let other_stream = || on(1, chunk(0, "E", "x"));
    let cases: [(u64, InboundData, u64, InboundData, &str); 10] = [
        (4, chunk(0, "B", "x"), 5, chunk(1, "B", "x"), begins),
        (4, chunk(0, "B", "x"), 5, chunk(1, "BE", "x"), begins),
        (4, chunk(0, "", "x"), 3, chunk(1, "E", "x"), lacks),
        (4, chunk(0, "", "x"), 3, chunk(1, "BE", "x"), lacks),
        (4, chunk(0, "E", "x"), 5, chunk(0, "E", "x"), lacks),
        (4, chunk(0, "B", "x"), 3, chunk(0, "", "x"), begins),
        (4, chunk(0, "B", "x"), 5, chunk(1, "E", "x"), differ),
        (4, chunk(0, "B", "x"), 5, chunk(0, "EU", "x"), differ),
        (4, chunk(0, "B", "x"), 5, other_stream(), differ),
        (4, other_stream(), 3, chunk(0, "B", "x"), differ),
    ];
    for (index, first, then, second, fault) in cases {
        let mut bench = Bench::new(10_000, 2);
        assert_eq!(bench.accept(index, first.clone()), HELD);
        let refused = bench.accept(then, second.clone());
        assert_eq!(refused, Err(Refusal::Protocol(fault)), "{first:?} at {index}, {second:?} at {then}");
        assert_eq!(bench.held(), 1, "what is refused is not held");
    }
}

#[test]
fn unordered_fragments_may_differ_in_their_ssn() {
    let mut bench = Bench::new(10_000, 1);
    assert_eq!(bench.accept(1, chunk(3, "BU", "a")), HELD);
    assert_eq!(bench.accept(2, chunk(4, "EU", "b")), READY);
    assert_eq!(bench.texts(), ["ab"]);
}

#[test]
fn a_fragment_whose_neighbours_belong_to_other_messages_is_noticed() {
    // Its neighbours were delivered and removed; only the cumulative index shows that no matching fragment can arrive.
    let delivered = |shape: &str, at: u64| {
        let mut bench = Bench::new(10_000, 1);
        bench.accept(1, chunk(0, "BEU", "x")).expect("accepted");
        bench.accept(3, chunk(0, "BEU", "x")).expect("accepted");
        bench.accept(at, chunk(0, shape, "x")).expect("accepted");
        bench
    };
    let fault = |bench: &mut Bench, cumulative| bench.inbound.check_progress(cumulative);
    assert!(matches!(fault(&mut delivered("", 2), 3), Err(Refusal::Protocol(_))));
    assert!(matches!(fault(&mut delivered("", 2), 2), Err(Refusal::Protocol(_))));
    assert!(matches!(fault(&mut delivered("EU", 2), 3), Err(Refusal::Protocol(_))));
    assert!(matches!(fault(&mut delivered("B", 2), 3), Err(Refusal::Protocol(_))));
    assert_eq!(fault(&mut delivered("B", 4), 4), Ok(()), "the rest may still come");
    assert_eq!(fault(&mut delivered("E", 5), 3), Ok(()), "the beginning may still come");
    assert_eq!(fault(&mut Bench::new(10_000, 1), 99), Ok(()));
}

proptest! {
    // Half of the cases pass 65,530 messages on four streams before they begin.
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Messages of all sizes on several streams, chunks in any order: each stream's messages are delivered once and in order,
    /// every index becomes deliverable once, and the buffer is empty in the end.
    #[test]
    fn any_order_of_arrival_gives_the_same_messages(
        messages in prop::collection::vec((0u16..4, 1usize..7, any::<bool>()), 1..25),
        first_ssn in prop::sample::select(vec![0u16, 65_530]),
        shuffle in any::<u64>(),
    ) {
        let mut bench = Bench::new(1 << 20, 4);
        let mut index = skip_to(&mut bench, first_ssn);
        let start = index;
        let mut next = [first_ssn; 4];
        let (mut chunks, mut sent) = (Vec::new(), vec![Vec::new(); 8]);
        for (number, (stream, pieces, unordered)) in messages.into_iter().enumerate() {
            let ssn = next[usize::from(stream)];
            for piece in 0..pieces {
                let mut shape = String::new();
                if piece == 0 { shape.push('B'); }
                if piece + 1 == pieces { shape.push('E'); }
                if unordered { shape.push('U'); }
                chunks.push((index, on(stream, chunk(ssn, &shape, &format!("{number}.{piece} ")))));
                index += 1;
            }
            if !unordered {
                next[usize::from(stream)] = ssn.wrapping_add(1);
            }
            let text: String = (0..pieces).map(|piece| format!("{number}.{piece} ")).collect();
            sent[usize::from(stream) + if unordered { 4 } else { 0 }].push(text);
        }
        shuffled(&mut chunks, shuffle);
        let bytes: usize = chunks.iter().map(|(_, data)| data.payload.len()).sum();
        for (index, data) in chunks {
            prop_assert!(bench.accept(index, data).is_ok());
        }
        prop_assert_eq!(bench.held(), bytes);
        prop_assert_eq!(bench.inbound.check_progress(index - 1), Ok(()));

        let mut got = vec![Vec::new(); 8];
        while let Some(message) = bench.inbound.recv() {
            let place = usize::from(message.stream.0) + if message.unordered { 4 } else { 0 };
            got[place].push(String::from_utf8_lossy(&message.payload.into_bytes()).into_owned());
        }
        for unordered in [&mut sent[4..], &mut got[4..]] {
            unordered.iter_mut().for_each(|texts| texts.sort());
        }
        prop_assert_eq!(got, sent);
        let mut indices: Vec<u64> = bench.deliverable().into_iter().flat_map(|(first, last)| first..=last).collect();
        indices.sort_unstable();
        prop_assert_eq!(indices, (start..index).collect::<Vec<_>>());
        prop_assert_eq!((bench.inbound.used(), bench.inbound.window()), (0, 1 << 20));
    }
}

/// Advances the four streams to `ssn`; returns the next index.
fn skip_to(bench: &mut Bench, ssn: u16) -> u64 {
    let mut index = 1;
    for earlier in 0..ssn {
        for stream in 0..4 {
            bench.accept(index, on(stream, chunk(earlier, "BE", "x"))).expect("accepted");
            bench.inbound.recv();
            index += 1;
        }
    }
    bench.deliverable.clear();
    index
}

/// Shuffles the items as `seed` determines (linear congruential generator; Fisher and Yates).
fn shuffled<T>(items: &mut [T], mut seed: u64) {
    for last in (1..items.len()).rev() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        items.swap(last, ((seed >> 33) as usize) % (last + 1));
    }
}

// ---- the receive buffer ----

#[test]
fn whatever_is_not_taken_counts() {
    let mut bench = Bench::new(10_000, 1);
    let kilobyte = "k".repeat(1000);
    bench.accept(1, chunk(0, "BE", &kilobyte)).expect("accepted");
    bench.accept(3, chunk(2, "BE", &kilobyte)).expect("accepted");
    bench.accept(4, chunk(3, "B", &kilobyte)).expect("accepted");
    assert_eq!((bench.inbound.used(), bench.inbound.window()), (3048, 6952));
    assert!(bench.inbound.recv().is_some());
    assert_eq!((bench.inbound.used(), bench.inbound.window()), (2032, 7968));
}

#[test]
fn a_full_buffer_refuses_what_is_beyond_the_highest_and_takes_what_fills_a_gap() {
    let mut bench = Bench::new(10 * 1016, 1);
    let kilobyte = "k".repeat(1000);
    for index in 6..=15 {
        assert!(bench.inbound.fits(index, index - 1, 1000));
        assert_eq!(bench.accept(index, chunk(index as u16 - 1, "BE", &kilobyte)), HELD);
    }
    assert_eq!(bench.inbound.window(), 0);
    assert!(!bench.inbound.fits(16, 15, 1000));
    for index in (1..=5).rev() {
        assert!(bench.inbound.fits(index, 15, 1000));
        bench.accept(index, chunk(index as u16 - 1, "BE", &kilobyte)).expect("accepted");
    }
    assert_eq!((bench.texts().len(), bench.inbound.window()), (15, 10 * 1016));
}

#[test]
fn a_message_as_long_as_the_buffer_is_delivered() {
    let mut bench = Bench::new(10_000, 1);
    let kilobyte = "k".repeat(1000);
    for index in 1..=10 {
        let shape = ["B", "", "E"][usize::from(index > 1) + usize::from(index == 10)];
        bench.accept(index, chunk(0, shape, &kilobyte)).expect("accepted");
    }
    assert_eq!(bench.texts(), ["k".repeat(10_000)]);
}

#[test]
fn a_flood_of_tiny_chunks_is_bounded() {
    let mut bench = Bench::new(64_000, 1);
    let mut index = 2;
    while bench.inbound.fits(index, index - 1, 1) {
        bench.accept(index, chunk(0, "BU", "x")).expect("accepted");
        index += 2;
    }
    assert_eq!((bench.held(), bench.inbound.window()), (1000, 0));
    let flood = index;
    while bench.inbound.fits(index, u64::MAX, 1) {
        bench.accept(index, chunk(0, "BU", "x")).expect("accepted");
        index += 2;
    }
    assert_eq!((index - flood) / 2, 1000, "gaps have as much again");
}

#[test]
fn a_backlog_gives_back_its_memory() {
    let mut bench = Bench::new(1 << 20, 1);
    for index in 1..=5000u64 {
        bench.accept(index, chunk((index - 1) as u16, "BE", "x")).expect("accepted");
    }
    assert_eq!(bench.texts().len(), 5000);
    assert_eq!(bench.inbound.ready.capacity(), 0);
    assert!(size_of::<Inbound>() <= 256, "{} bytes at rest", size_of::<Inbound>());
}
