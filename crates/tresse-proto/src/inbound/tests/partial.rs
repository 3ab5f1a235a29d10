//! Messages delivered in parts: when, in which order, and how they end.

use super::*;

/// Size of a chunk with a kilobyte of user data, header included.
const CHUNK: usize = 1016;

/// Returns a kilobyte of user data for the fragment `index`.
fn kilobyte(index: u64) -> String {
    char::from(b'a' + (index % 26) as u8).to_string().repeat(1000)
}

impl Bench {
    /// Passes a chunk with a kilobyte on stream 0; returns whether there was room.
    fn bring(&mut self, index: u64, ssn: u16, shape: &str) -> bool {
        let fits = self.inbound.fits(index, index - 1, 1000);
        if fits {
            self.accept(index, chunk(ssn, shape, &kilobyte(index))).expect("accepted");
        }
        self.relieve(false);
        fits
    }

    /// Takes the next message or part, as an application that reads on at once; returns the kind and the length.
    fn take(&mut self) -> Option<(Part, usize)> {
        let message = self.inbound.recv()?;
        self.relieve(false);
        Some((message.part, message.payload.len()))
    }
}

#[test]
fn a_message_longer_than_the_buffer_goes_out_in_parts() {
    let mut bench = Bench::new(10 * CHUNK, 1);
    for index in 1..=10 {
        assert!(bench.bring(index, 0, if index == 1 { "B" } else { "" }));
        assert!(!bench.inbound.has_ready(), "the next chunk may be its end");
    }
    assert!(!bench.bring(11, 0, ""), "no room, but now there is something to take");
    assert_eq!(bench.deliverable(), [(1, 10)]);
    assert_eq!(bench.take(), Some((Part::First, 10_000)));
    assert_eq!((bench.take(), bench.inbound.used()), (None, 0));
    // From now on, data is delivered as it arrives, in as few parts as the application's reads allow.
    assert!(bench.bring(11, 0, ""));
    assert_eq!(bench.take(), Some((Part::Middle, 1000)));
    assert!(bench.bring(13, 0, ""));
    assert_eq!(bench.take(), None);
    assert!(bench.bring(12, 0, "") && bench.bring(14, 0, ""));
    assert_eq!(bench.take(), Some((Part::Middle, 3000)));
    assert!(bench.bring(15, 0, "") && bench.bring(16, 0, "E"));
    assert_eq!(bench.take(), Some((Part::Last, 2000)));
    assert_eq!(bench.deliverable(), [(11, 11), (12, 13), (14, 14), (15, 15), (16, 16)]);
    assert!(bench.bring(17, 1, "BE"));
    assert_eq!((bench.take(), bench.inbound.used()), (Some((Part::Whole, 1000)), 0));
}

#[test]
fn parts_that_were_not_taken_become_a_message_again() {
    let mut bench = Bench::with(10_000, 1, DataFormat::Data, 2000, false);
    bench.bring(1, 0, "B");
    assert!(!bench.inbound.has_ready());
    bench.bring(2, 0, "");
    assert!(bench.inbound.has_ready(), "this much is handed out");
    bench.bring(3, 0, "E");
    assert_eq!(bench.take(), Some((Part::Whole, 3000)));
    bench.bring(4, 1, "B");
    bench.bring(5, 1, "");
    assert_eq!(bench.take(), Some((Part::First, 2000)));
    bench.bring(6, 1, "");
    bench.bring(7, 1, "E");
    assert_eq!(bench.take(), Some((Part::Last, 2000)));
    assert_eq!(bench.inbound.used(), 0);
}

#[test]
fn what_a_gap_holds_up_stays_whole_as_long_as_the_gap_can_be_filled() {
    let mut bench = Bench::new(10 * CHUNK, 1);
    bench.bring(1, 0, "B");
    for index in 3..=11 {
        bench.bring(index, index as u16 - 3, if index == 3 { "E" } else { "BE" });
    }
    assert!(!bench.inbound.fits(12, 11, 1000));
    bench.relieve(true);
    assert!(!bench.inbound.has_ready(), "index 2 may still come");
    assert!(bench.inbound.fits(2, 11, 1000));
    bench.accept(2, chunk(0, "", &kilobyte(2))).expect("accepted");
    assert_eq!(bench.take(), Some((Part::Whole, 3000)));
}

#[test]
fn the_chunk_that_all_others_wait_for_is_taken_whatever_its_length() {
    let mut bench = Bench::new(1600, 1);
    bench.accept(2, chunk(1, "BE", &"x".repeat(1000))).expect("accepted");
    assert!(!bench.inbound.fits(1, 2, 9000), "longer than what gaps may take");
    assert!(bench.inbound.waits_for_it(1, 0));
    bench.accept(1, chunk(0, "BE", &"y".repeat(9000))).expect("accepted");
    assert!(!bench.inbound.fits(4, 5, 9000));
    assert!(!bench.inbound.waits_for_it(4, 2), "it is not the first that is missing");
    assert!(!bench.inbound.waits_for_it(3, 2), "two messages can be taken");
    assert_eq!((bench.take(), bench.take()), (Some((Part::Whole, 9000)), Some((Part::Whole, 1000))));
}

/// A packet brings the only missing chunk, for which there is no room, and another chunk behind it.
#[test]
fn what_comes_behind_the_chunk_that_all_others_wait_for_does_not_hide_it() {
    // Six chunks take more than twice the buffer.
    let mut bench = Bench::new(3 * CHUNK - 1, 2);
    for (index, shape) in [(1, "B"), (2, ""), (4, ""), (5, ""), (6, "")] {
        bench.accept(index, chunk(0, shape, &kilobyte(index))).expect("accepted");
    }
    bench.accept(3, chunk(0, "", &kilobyte(3))).expect("accepted");
    bench.accept(8, on(1, chunk(0, "BE", "x"))).expect("accepted");
    assert_eq!(bench.texts(), ["x"]);
    assert!(!bench.inbound.fits(7, 8, 1000) && !bench.inbound.waits_for_it(7, 6));
    assert!(!bench.inbound.fits(9, 8, 1));
    bench.relieve(true);
    assert_eq!(bench.take(), Some((Part::First, 6000)));
    assert!(bench.inbound.fits(7, 8, 1000));
}

#[test]
fn a_chunk_longer_than_twice_the_buffer_does_not_keep_out_the_one_before_it() {
    let mut bench = Bench::new(1000, 1);
    let rest = "r".repeat(3000);
    assert!(bench.inbound.fits(2, 1, rest.len()), "an empty buffer takes anything");
    assert_eq!(bench.accept(2, chunk(0, "E", &rest)), HELD);
    assert!(!bench.inbound.fits(1, 2, 900));
    assert!(bench.inbound.waits_for_it(1, 0));
    bench.accept(1, chunk(0, "B", "first")).expect("accepted");
    assert_eq!(bench.texts(), [format!("first{rest}")]);
}

/// Two unordered messages cannot be delivered in parts at once: the end of a message beyond a gap may have to wait for room
/// that only the message in the gap could free.
#[test]
fn a_message_beyond_a_gap_does_not_go_out_in_parts_before_one_in_it() {
    for data_format in [DataFormat::Data, DataFormat::IData] {
        // Room for three chunks where gaps are filled, and for one more that all others wait for.
        let header = data_format.header_len();
        let mut bench = Bench::with((1000 + header) * 3 / 2, 1, data_format, 1000, false);
        let piece = |index: u64| {
            let (mid, fsn) = ((index - 1) / 5, (index - 1) % 5);
            let shape = ["BU", "U", "U", "U", "EU"][fsn as usize];
            InboundData { mid: Mid(mid as u32), fsn: Fsn(fsn as u32), ..chunk(0, shape, &kilobyte(index)) }
        };
        let mut got = String::new();
        for index in [6, 8, 1, 2, 3, 4, 5] {
            let highest = bench.early.last().copied().unwrap_or(bench.cumulative);
            let fits = bench.inbound.fits(index, highest, 1000)
                || bench.inbound.waits_for_it(index, bench.cumulative);
            assert!(fits || index > 5, "{data_format:?}: {index} with {} bytes held", bench.inbound.used());
            if fits {
                bench.accept(index, piece(index)).expect("accepted");
            }
            bench.relieve(!bench.early.is_empty());
            got.extend(bench.texts());
        }
        assert_eq!(got, (1..=5).map(kilobyte).collect::<String>(), "{data_format:?}");
    }
}

#[test]
fn messages_that_wait_to_be_taken_keep_others_whole() {
    let mut bench = Bench::new(10 * CHUNK, 1);
    bench.bring(1, 0, "BE");
    for index in 2..=10 {
        bench.bring(index, 1, if index == 2 { "B" } else { "" });
    }
    assert!(!bench.bring(11, 1, "E"));
    // Taking the first message frees the missing room.
    assert_eq!((bench.take(), bench.take()), (Some((Part::Whole, 1000)), None));
    assert!(bench.bring(11, 1, "E"));
    assert_eq!(bench.take(), Some((Part::Whole, 10_000)));
}

#[test]
fn a_reader_that_takes_too_little_gets_parts_without_another_packet() {
    let mut bench = Bench::new(10 * CHUNK, 2);
    bench.accept(1, chunk(0, "BEU", "!")).expect("accepted");
    for index in 2..=10 {
        bench.bring(index, 0, if index == 2 { "B" } else { "" });
    }
    assert!(!bench.bring(11, 0, ""));
    assert_eq!(bench.take(), Some((Part::Whole, 1)));
    assert!(bench.inbound.fits(11, 10, 1000), "it fits now");
    let mut bench = Bench::new(9_500, 2);
    bench.accept(1, chunk(0, "BEU", "!")).expect("accepted");
    for index in 2..=10 {
        bench.bring(index, 0, if index == 2 { "B" } else { "" });
    }
    assert!(!bench.bring(11, 0, ""));
    assert_eq!((bench.take(), bench.take()), (Some((Part::Whole, 1)), Some((Part::First, 9000))));
}

#[test]
fn nothing_overtakes_in_its_stream_what_goes_out_in_parts() {
    let mut bench = Bench::with(100_000, 2, DataFormat::Data, 1000, false);
    bench.bring(1, 0, "B");
    assert_eq!(bench.take(), Some((Part::First, 1000)));
    bench.bring(4, 1, "BE");
    assert_eq!(bench.take(), None);
    bench.accept(5, on(1, chunk(0, "BE", "other stream"))).expect("accepted");
    assert_eq!(bench.take(), Some((Part::Whole, 12)));
    bench.bring(2, 0, "");
    bench.bring(3, 0, "E");
    assert_eq!((bench.take(), bench.take()), (Some((Part::Last, 2000)), Some((Part::Whole, 1000))));
}

#[test]
fn a_message_whose_turn_has_not_come_stays_whole() {
    let mut bench = Bench::with(100_000, 2, DataFormat::Data, 1000, false);
    bench.bring(2, 1, "B");
    bench.bring(3, 1, "");
    assert_eq!(bench.take(), None);
    bench.bring(1, 0, "BE");
    assert_eq!(bench.take(), Some((Part::Whole, 1000)));
    bench.bring(4, 1, "");
    assert_eq!(bench.take(), Some((Part::First, 3000)), "now it has");
}

#[test]
fn an_abandoned_message_ends_its_parts() {
    let abandoned = |given_up: u16| {
        let mut bench = Bench::with(10_000, 1, DataFormat::Data, 1000, true);
        bench.bring(1, 0, "B");
        assert_eq!(bench.take(), Some((Part::First, 1000)));
        bench.bring(2, 0, "");
        bench.bring(5, 1, "BE");
        let skipped = Skipped { stream: StreamId(0), unordered: false, number: given_up.into() };
        let up_to = if given_up == 0 { 4 } else { 2 };
        bench.inbound.skip(up_to, [skipped].into_iter(), &mut bench.deliverable).expect("no fault");
        bench
    };
    let mut bench = abandoned(0);
    assert_eq!(bench.take(), Some((Part::Middle, 1000)));
    assert_eq!(bench.take(), Some((Part::Abandoned, 0)));
    assert_eq!(bench.take(), Some((Part::Whole, 1000)));
    assert_eq!(bench.inbound.used(), 0);
    let mut bench = abandoned(u16::MAX);
    assert_eq!((bench.take(), bench.take()), (Some((Part::Middle, 1000)), None), "an older one was given up");
}

#[test]
fn a_restart_ends_what_was_handed_out_in_parts() {
    for data_format in [DataFormat::Data, DataFormat::IData] {
        let mut old = Bench::with(10_000, 2, data_format, 1000, false);
        old.bring(1, 0, "B");
        old.accept(5, on(1, chunk(0, "B", "whole or not at all"))).expect("accepted");
        let mut new = Bench::with(10_000, 2, data_format, 1000, false);
        new.inbound.keep_ready(old.inbound);
        assert_eq!(
            (new.take(), new.take(), new.take()),
            (Some((Part::First, 1000)), Some((Part::Abandoned, 0)), None)
        );
    }
}

#[test]
fn what_contradicts_a_message_in_parts_is_a_fault() {
    for (index, shape) in [(2, "B"), (2, "BE"), (3, "BE")] {
        let mut bench = Bench::with(10_000, 1, DataFormat::Data, 1000, false);
        bench.bring(1, 0, "B");
        if index == 3 {
            bench.bring(2, 0, "");
        }
        assert!(matches!(bench.accept(index, chunk(1, shape, "x")), Err(Refusal::Protocol(_))), "{shape}");
    }
}

proptest! {
    /// Whatever the sizes, the buffer and the pace of reads, all bytes are delivered in order, and a message that the buffer
    /// has room for is delivered whole if the application is not behind.
    #[test]
    fn everything_comes_out_in_order_whatever_the_parts(
        messages in prop::collection::vec((0u16..3, 1usize..30), 1..12),
        point in prop::sample::select(vec![0usize, 1, 3000]),
        data_format in prop::sample::select(vec![DataFormat::Data, DataFormat::IData]),
        reads in any::<u64>(),
    ) {
        let mut bench = Bench::with(10 * (CHUNK + 4), 3, data_format, point, false);
        let (mut sent, mut got) = (vec![String::new(); 3], vec![String::new(); 3]);
        let mut next = [0u16; 3];
        let mut index = 1;
        let mut lengths = vec![Vec::new(); 3];
        for &(stream, pieces) in &messages {
            lengths[usize::from(stream)].push(pieces);
        }
        let take = |bench: &mut Bench, got: &mut Vec<String>| {
            let message = bench.inbound.recv()?;
            bench.relieve(false);
            let stream = usize::from(message.stream.0);
            let whole = message.part == Part::Whole;
            assert!(whole || point > 0 || lengths[stream][usize::from(message.ssn.0)] > 10);
            got[stream].push_str(&String::from_utf8_lossy(&message.payload.into_bytes()));
            Some(())
        };
        for (stream, pieces) in messages {
            let ssn = next[usize::from(stream)];
            next[usize::from(stream)] += 1;
            for piece in 0..pieces {
                let shape = [if piece == 0 { "B" } else { "" }, if piece + 1 == pieces { "E" } else { "" }].concat();
                let data = InboundData { fsn: Fsn(piece as u32), ..on(stream, chunk(ssn, &shape, &kilobyte(index))) };
                let mut turns = 0;
                while !bench.inbound.fits(index, index - 1, 1000) {
                    bench.relieve(false);
                    prop_assert!(bench.inbound.has_ready(), "a full buffer always has something to take");
                    take(&mut bench, &mut got);
                    turns += 1;
                    prop_assert!(turns < 100);
                }
                sent[usize::from(stream)].push_str(&kilobyte(index));
                bench.accept(index, data).expect("accepted");
                prop_assert_eq!(bench.inbound.check_invariants(), Ok(()));
                index += 1;
                if reads >> (index % 64) & 1 == 1 {
                    while take(&mut bench, &mut got).is_some() {}
                }
            }
        }
        while take(&mut bench, &mut got).is_some() {}
        prop_assert_eq!(got, sent);
        prop_assert_eq!(bench.inbound.used(), 0);
        let marked: u64 = bench.deliverable().iter().map(|(first, last)| last - first + 1).sum();
        prop_assert_eq!(marked, index - 1);
    }
}
