//! I-DATA: interleaved messages, whose chunks arrive in any order.

use super::*;

const GONE: Result<Acceptance, Refusal> = Ok(Acceptance::Dropped);

impl Bench {
    fn interleaved(lenient: bool) -> Self {
        Self::with(1 << 20, 4, DataFormat::IData, 0, lenient)
    }
}

/// Fragment `fsn` of message `mid` of stream 0.
fn piece(mid: u32, fsn: u32, shape: &str, text: &str) -> InboundData {
    InboundData { mid: Mid(mid), fsn: Fsn(fsn), ..chunk(0, shape, text) }
}

#[test]
fn messages_of_different_streams_take_turns() {
    let mut bench = Bench::interleaved(false);
    assert_eq!(bench.accept(1, piece(0, 0, "B", "a")), HELD);
    assert_eq!(bench.accept(2, on(1, piece(0, 0, "B", "x"))), HELD);
    assert_eq!(bench.accept(3, on(2, piece(0, 0, "BE", "urgent"))), READY);
    assert_eq!(bench.accept(4, piece(0, 1, "", "b")), HELD);
    assert_eq!(bench.accept(5, on(1, piece(0, 1, "E", "y"))), READY);
    assert_eq!(bench.accept(6, piece(0, 2, "E", "c")), READY);
    assert_eq!(bench.texts(), ["urgent", "xy", "abc"]);
    assert_eq!(bench.deliverable(), [(3, 3), (2, 2), (5, 5), (1, 1), (4, 4), (6, 6)]);
    assert_eq!(bench.inbound.check_progress(6), Ok(()));
}

#[test]
fn ordered_and_unordered_messages_are_numbered_apart() {
    let mut bench = Bench::interleaved(false);
    assert_eq!(bench.accept(1, piece(0, 0, "B", "o")), HELD);
    assert_eq!(bench.accept(2, piece(0, 0, "BU", "u")), HELD);
    assert_eq!(bench.accept(3, piece(7, 0, "BEU", "any number")), READY);
    assert_eq!(bench.accept(4, piece(0, 1, "E", "o")), READY);
    assert_eq!(bench.accept(5, piece(0, 1, "EU", "u")), READY);
    assert_eq!(bench.texts(), ["any number", "oo", "uu"]);
}

#[test]
fn the_first_fragment_names_the_payload_and_the_number_is_shown_as_ssn() {
    let mut bench = Bench::interleaved(false);
    let rest = InboundData { ppid: Ppid(0), ..piece(0x1_0002, 1, "EU", "b") };
    bench.accept(2, rest).expect("accepted");
    bench.accept(1, piece(0x1_0002, 0, "BU", "a")).expect("accepted");
    let message = bench.inbound.recv().expect("a message");
    assert_eq!((message.ppid, message.ssn), (Ppid(7), Ssn(2)));
}

#[test]
fn mids_wrap_around_where_ssns_would_have_long_before() {
    let mut bench = Bench::interleaved(true);
    // A number far ahead is no fault: the message may wait for abandoned ones.
    assert_eq!(bench.accept(1, piece(70_000, 0, "BE", "x")), HELD);
    let skip = |bench: &mut Bench, mid| {
        let skipped = Skipped { stream: StreamId(0), unordered: false, number: mid };
        bench.inbound.skip(0, [skipped].into_iter(), &mut bench.deliverable).expect("no fault");
    };
    skip(&mut bench, 69_999);
    assert_eq!(bench.texts(), ["x"]);
    skip(&mut bench, i32::MAX as u32);
    skip(&mut bench, u32::MAX - 1);
    assert_eq!(bench.accept(2, piece(0, 0, "BE", "after")), HELD);
    assert_eq!(bench.accept(3, piece(u32::MAX, 0, "BE", "before")), READY);
    assert_eq!(bench.texts(), ["before", "after"]);
    assert_eq!(bench.accept(4, piece(u32::MAX, 0, "BE", "again")), GONE);
}

#[test]
fn contradictions_are_faults() {
    let cases: [(&[InboundData], &str); 10] = [
        (&[piece(0, 0, "B", "x"), piece(0, 0, "B", "x")], "two fragments with the same FSN"),
        (&[piece(0, 2, "", "x"), piece(0, 2, "", "x")], "two fragments with the same FSN"),
        (&[piece(0, 2, "E", "x"), piece(0, 3, "", "x")], "a fragment beyond the end of its message"),
        (&[piece(0, 2, "E", "x"), piece(0, 1, "E", "x")], "a fragment beyond the end of its message"),
        (&[piece(0, 3, "", "x"), piece(0, 2, "E", "x")], "a fragment beyond the end of its message"),
        (&[piece(0, 0, "B", "x"), piece(0, 0, "BE", "x")], "two messages with the same MID"),
        (&[piece(1, 0, "BE", "x"), piece(1, 0, "B", "x")], "two messages with the same MID"),
        (&[piece(1, 0, "BE", "x"), piece(1, 3, "", "x")], "two messages with the same MID"),
        (&[piece(0, 0, "E", "x")], "FSN 0 in a fragment that begins no message"),
        (&[piece(0, 0, "BE", "x"), piece(0, 1, "", "x")], "MID of a message that was delivered"),
    ];
    for (chunks, fault) in cases {
        let mut bench = Bench::interleaved(false);
        let (last, before) = chunks.split_last().expect("a chunk");
        for (index, data) in before.iter().enumerate() {
            bench.accept(index as u64 + 1, data.clone()).expect("no fault yet");
        }
        let used = bench.held();
        assert_eq!(bench.accept(9, last.clone()), Err(Refusal::Protocol(fault)), "{chunks:?}");
        assert_eq!(bench.held(), used, "what is refused is not held");
    }
}

#[test]
fn half_messages_that_fill_the_buffer_go_out_the_longest_first() {
    let mut bench = Bench::with(10_000, 4, DataFormat::IData, 0, false);
    let kilobyte = "k".repeat(1000);
    let mut index = 1;
    for (stream, pieces) in [(0, 2), (1, 5), (2, 3)] {
        for fsn in 0..pieces {
            let data = piece(0, fsn, if fsn == 0 { "B" } else { "" }, &kilobyte);
            bench.accept(index, on(stream, data)).expect("accepted");
            index += 1;
        }
    }
    let mut longest = Vec::new();
    for _ in 0..3 {
        assert!(!bench.inbound.fits(index, index - 1, 10_000));
        bench.relieve(false);
        longest.extend(
            bench.inbound.recv().map(|message| (message.stream.0, message.part, message.payload.len())),
        );
    }
    let first = Part::First;
    assert_eq!(longest, [(1, first, 5000), (2, first, 3000), (0, first, 2000)]);
    // A message that is delivered in parts continues beside others.
    bench.accept(index, on(1, piece(0, 5, "", &kilobyte))).expect("accepted");
    bench.accept(index + 1, on(2, piece(0, 3, "E", &kilobyte))).expect("accepted");
    let parts: Vec<_> =
        std::iter::from_fn(|| bench.inbound.recv()).map(|part| (part.stream.0, part.part)).collect();
    assert_eq!(parts, [(1, Part::Middle), (2, Part::Last)]);
}

#[test]
fn every_stream_is_looked_at_in_its_turn_however_many_there_are() {
    let mut bench = Bench::with(64 * 200, 300, DataFormat::IData, 0, false);
    // The first message of each lower stream is missing: nothing of these streams may be delivered.
    for stream in 0..150 {
        bench.accept(u64::from(stream) + 2, on(stream, piece(1, 0, "B", "early"))).expect("accepted");
    }
    bench.accept(200, on(250, piece(0, 0, "B", "ready"))).expect("accepted");
    let turns = (0..10).take_while(|_| {
        assert!(!bench.inbound.fits(300, 299, 64 * 200));
        bench.relieve(false);
        !bench.inbound.has_ready()
    });
    assert!(turns.count() < 10);
    assert_eq!(bench.inbound.recv().map(|message| message.stream.0), Some(250));
}

#[test]
fn one_unordered_message_of_a_stream_goes_out_in_parts_at_a_time() {
    let mut bench = Bench::with(10_000, 1, DataFormat::IData, 2, false);
    bench.accept(1, piece(4, 0, "BU", "aa")).expect("accepted");
    bench.accept(2, piece(5, 0, "BU", "bb")).expect("accepted");
    bench.accept(3, piece(4, 1, "U", "a")).expect("accepted");
    assert_eq!(bench.inbound.recv().map(|part| (part.part, part.ssn)), Some((Part::First, Ssn(4))));
    bench.accept(4, piece(5, 1, "U", "b")).expect("accepted");
    bench.accept(5, piece(6, 0, "BEU", "whole")).expect("accepted");
    bench.accept(6, piece(4, 2, "EU", "a")).expect("accepted");
    bench.accept(7, piece(5, 2, "U", "b")).expect("accepted");
    let parts: Vec<_> =
        std::iter::from_fn(|| bench.inbound.recv()).map(|part| (part.part, part.ssn.0)).collect();
    assert_eq!(parts, [(Part::Whole, 6), (Part::Last, 4), (Part::First, 5)]);
}

#[test]
fn a_skip_drops_what_it_names_and_nothing_else() {
    let mut bench = Bench::interleaved(true);
    for (index, data) in [
        (1, piece(0, 0, "B", "given up")),
        (3, piece(0, 0, "BU", "stays")),
        (4, piece(1, 0, "B", "go")),
        (5, on(1, piece(0, 0, "B", "ot"))),
        (7, piece(2, 0, "BE", "wait")),
        (9, piece(1, 0, "BU", "late")),
    ] {
        bench.accept(index, data).expect("accepted");
    }
    let skip = |bench: &mut Bench, unordered, number| {
        let skipped = Skipped { stream: StreamId(0), unordered, number };
        bench.inbound.skip(2, [skipped].into_iter(), &mut bench.deliverable).expect("no fault");
    };
    skip(&mut bench, false, 0);
    assert_eq!(bench.held(), 5 + 2 + 2 + 4 + 4);
    assert_eq!(bench.accept(6, piece(0, 1, "E", "!")), GONE, "its rest was under way");
    assert_eq!(bench.accept(8, piece(1, 1, "E", "on")), READY);
    assert_eq!(bench.texts(), ["goon", "wait"]);
    skip(&mut bench, true, 0);
    bench.accept(10, piece(1, 1, "EU", "r")).expect("accepted");
    bench.accept(11, on(1, piece(0, 1, "E", "her"))).expect("accepted");
    assert_eq!(bench.texts(), ["later", "other"]);
    assert_eq!((bench.held(), bench.inbound.given_up()), (0, 3));
}

#[test]
fn late_fragments_take_along_their_own_message_only() {
    let mut bench = Bench::interleaved(true);
    assert_eq!(bench.accept(1, on(1, piece(0, 0, "BU", "a"))), HELD);
    assert_eq!(bench.accept(2, on(1, piece(0, 2, "EU", "c"))), HELD);
    let skipped = Skipped { stream: StreamId(0), unordered: true, number: 0 };
    bench.inbound.skip(2, [skipped].into_iter(), &mut bench.deliverable).expect("no fault");
    assert_eq!(bench.accept(4, piece(0, 2, "U", "later")), HELD);
    assert_eq!(bench.accept(3, piece(0, 1, "U", "late")), HELD);
    assert_eq!(bench.inbound.check_progress(2), Ok(()));
    assert_eq!((bench.held(), bench.inbound.given_up()), (11, 0));
    assert_eq!(bench.inbound.check_progress(4), Ok(()));
    assert_eq!((bench.held(), bench.inbound.given_up()), (2, 2));
    // This message was not abandoned: its missing fragment may have any TSN.
    assert_eq!(bench.accept(5, on(1, piece(0, 1, "U", "b"))), READY);
    assert_eq!(bench.texts(), ["abc"]);
}

#[test]
fn a_skip_ends_the_parts_of_what_it_drops() {
    for unordered in ["", "U"] {
        let mut bench = Bench::with(10_000, 1, DataFormat::IData, 2, true);
        bench.accept(1, piece(0, 0, &format!("B{unordered}"), "aa")).expect("accepted");
        assert_eq!(bench.inbound.recv().map(|part| part.part), Some(Part::First));
        bench.accept(3, piece(1, 0, &format!("B{unordered}"), "bb")).expect("accepted");
        let skipped = Skipped { stream: StreamId(0), unordered: !unordered.is_empty(), number: 0 };
        bench.inbound.skip(2, [skipped].into_iter(), &mut bench.deliverable).expect("no fault");
        bench.accept(4, piece(1, 1, &format!("E{unordered}"), "b")).expect("accepted");
        let parts: Vec<_> = std::iter::from_fn(|| bench.inbound.recv()).map(|part| part.part).collect();
        assert_eq!(parts, [Part::Abandoned, Part::Whole]);
    }
}

proptest! {
    /// Messages of several streams and orders, interleaved at random as a sender may, arriving in any order: each is delivered
    /// once, ordered ones in order, every index is deliverable once, and nothing is left.
    #[test]
    fn any_interleaving_in_any_order_gives_the_same_messages(
        messages in prop::collection::vec((0u16..4, 1u32..7, any::<bool>()), 1..25),
        seed in any::<u64>(),
    ) {
        let mut queues: Vec<Vec<Vec<InboundData>>> = vec![Vec::new(); 8];
        let mut sent = vec![Vec::new(); 8];
        for (number, (stream, pieces, unordered)) in messages.into_iter().enumerate() {
            let place = usize::from(stream) + if unordered { 4 } else { 0 };
            let mid = queues[place].len() as u32;
            let mut fragments = Vec::new();
            for fsn in 0..pieces {
                let begins = if fsn == 0 { "B" } else { "" };
                let ends = if fsn + 1 == pieces { "E" } else { "" };
                let shape = format!("{begins}{ends}{}", if unordered { "U" } else { "" });
                fragments.push(on(stream, piece(mid, fsn, &shape, &format!("{number}.{fsn} "))));
            }
            sent[place].push((0..pieces).map(|fsn| format!("{number}.{fsn} ")).collect::<String>());
            queues[place].push(fragments);
        }
        // TSNs are assigned to the queues at random, and within a queue to one message after the other.
        let mut waiting: Vec<std::collections::VecDeque<InboundData>> =
            queues.into_iter().map(|queue| queue.into_iter().flatten().collect()).collect();
        let mut dice = seed | 1;
        let mut chunks = Vec::new();
        while waiting.iter().any(|queue| !queue.is_empty()) {
            dice ^= dice << 13;
            dice ^= dice >> 7;
            dice ^= dice << 17;
            if let Some(data) = waiting[(dice % 8) as usize].pop_front() {
                chunks.push((chunks.len() as u64 + 1, data));
            }
        }
        let count = chunks.len() as u64;
        let bytes: usize = chunks.iter().map(|(_, data)| data.payload.len()).sum();
        shuffled(&mut chunks, seed);

        let mut bench = Bench::interleaved(false);
        for (index, data) in chunks {
            prop_assert!(bench.accept(index, data).is_ok());
        }
        prop_assert_eq!(bench.held(), bytes);
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
        prop_assert_eq!(indices, (1..=count).collect::<Vec<_>>());
        prop_assert_eq!((bench.held(), bench.inbound.window()), (0, 1 << 20));
    }

    /// Arbitrary chunks never panic, and memory stays within the bound.
    #[test]
    fn whatever_comes_is_taken_refused_or_a_fault(
        chunks in prop::collection::vec((0u16..3, 0u32..4, 0u32..5, "[BEU]{0,3}", 1usize..200), 1..200),
        lenient in any::<bool>(),
        point in prop::sample::select(vec![0usize, 1, 300]),
        skips in any::<u64>(),
    ) {
        let mut bench = Bench::with(6400, 3, DataFormat::IData, point, lenient);
        for (step, (stream, mid, fsn, shape, len)) in chunks.into_iter().enumerate() {
            let index = step as u64 + 1;
            if bench.inbound.fits(index, index - 1, len) {
                let data = on(stream, piece(mid, fsn, &shape, &"x".repeat(len)));
                if let Err(Refusal::Protocol(_)) = bench.accept(index, data) {
                    // The association ends here.
                    return Ok(());
                }
            }
            bench.relieve(false);
            if lenient && skips >> (step % 64) & 1 == 1 {
                let skipped = Skipped { stream: StreamId(stream), unordered: step % 2 == 0, number: mid };
                bench.inbound.skip(index, [skipped].into_iter(), &mut bench.deliverable).expect("no fault");
            }
            if step % 7 == 0 {
                bench.inbound.recv();
            }
            prop_assert!(bench.held() <= 6400);
            prop_assert_eq!(bench.inbound.check_invariants(), Ok(()));
        }
        bench.texts();
        let held = bench.held();
        for (stream, unordered) in [(0, false), (0, true), (1, false), (1, true), (2, false), (2, true)] {
            let skipped = Skipped { stream: StreamId(stream), unordered, number: 10 };
            bench.inbound.skip(0, [skipped].into_iter(), &mut bench.deliverable).expect("no fault");
        }
        bench.texts();
        prop_assert_eq!(bench.held(), 0, "of {} bytes", held);
    }
}

#[test]
fn numbers_wrap_for_ordered_and_unordered_messages_apart() {
    let mut bench = Bench::interleaved(true);
    bench.inbound.begin_at(Mid(u32::MAX - 1));
    let (last, before) = (u32::MAX, u32::MAX - 1);
    assert_eq!(bench.accept(6, piece(1, 0, "BE", "d")), HELD);
    assert_eq!(bench.accept(5, piece(0, 0, "BE", "c")), HELD);
    assert_eq!(bench.accept(7, piece(0, 0, "BU", "y")), HELD);
    assert_eq!(bench.accept(8, piece(last, 0, "BU", "x")), HELD);
    assert_eq!(bench.accept(1, piece(before, 0, "B", "a")), HELD);
    // The first two ordered messages are abandoned, and of the unordered ones the last before the wrap.
    let skipped = |unordered, number| Skipped { stream: StreamId(0), unordered, number };
    let lists = [skipped(false, last), skipped(true, last)];
    bench.inbound.skip(4, lists.into_iter(), &mut bench.deliverable).expect("no fault");
    assert_eq!(bench.texts(), ["c", "d"]);
    assert_eq!(bench.accept(9, piece(before, 1, "E", "too late")), GONE);
    assert_eq!(bench.accept(10, piece(0, 1, "EU", "z")), READY);
    assert_eq!(bench.accept(11, piece(2, 0, "BE", "e")), READY);
    assert_eq!(bench.texts(), ["yz", "e"]);
    assert_eq!((bench.held(), bench.inbound.check_invariants()), (0, Ok(())));
}
