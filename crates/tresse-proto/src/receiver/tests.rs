//! The receiver as the association sees it: TSNs and packets in, reports out.

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;
use tresse_wire::{ChecksumRule, Chunk, CommonHeader, GapBlock, List, Packet, Seal};

use super::delay::PathSet;
use super::tsn_map::MAX_RANGES;
use super::*;

const HEADER: CommonHeader = CommonHeader { source_port: 1, destination_port: 2, verification_tag: 3 };
const MTU_ROOM: usize = 1452;

/// A report, read back from the packet.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Seen {
    nr: bool,
    flags: u8,
    cumulative: Tsn,
    window: u32,
    renegable: Vec<(u16, u16)>,
    kept: Vec<(u16, u16)>,
    duplicates: Vec<u32>,
}

fn config(settings: &[(&str, &str)]) -> AssociationConfig {
    let mut config = AssociationConfig::preset("rfc9260").expect("a preset");
    for (name, value) in settings {
        config.set(name, value).expect("a valid setting");
    }
    config
}

/// A receiver whose peer starts at TSN 1, so that TSN and index agree.
fn receiver(settings: &[(&str, &str)]) -> Receiver {
    receiver_from(Tsn(1), settings)
}

fn receiver_from(initial: Tsn, settings: &[(&str, &str)]) -> Receiver {
    let config = config(settings);
    Receiver::new(initial, &config, config.delayed_ack)
}

/// Classifies and records each TSN that is new, as an association with endless buffer would.
fn arrive(receiver: &mut Receiver, tsns: impl IntoIterator<Item = u32>) {
    for tsn in tsns {
        if let Arrival::New(index) = receiver.classify(Tsn(tsn)) {
            receiver.record(index);
        }
    }
}

fn report_in(receiver: &mut Receiver, limit: usize, window: u32, nr: bool) -> Result<Seen, NoRoom> {
    let mut bytes = Vec::new();
    let mut writer = PacketWriter::new(&mut bytes, HEADER, limit);
    receiver.write_report(window, nr, &mut writer)?;
    writer.finish(Seal::Crc32c);
    assert!(bytes.len() <= limit, "{} bytes in a packet of {limit}", bytes.len());
    let packet = Packet::parse(&bytes, ChecksumRule::Verify).expect("a packet");
    let blocks = |list: List<'_, GapBlock>| list.iter().map(|block| (block.start, block.end)).collect();
    let duplicates = |list: List<'_, Tsn>| list.iter().map(|tsn| tsn.0).collect();
    Ok(match packet.chunks().next() {
        Some(Ok(Chunk::Sack(sack))) => Seen {
            nr: false,
            flags: sack.flags,
            cumulative: sack.cumulative_tsn,
            window: sack.a_rwnd,
            renegable: blocks(sack.gaps),
            kept: Vec::new(),
            duplicates: duplicates(sack.duplicates),
        },
        Some(Ok(Chunk::NrSack(sack))) => Seen {
            nr: true,
            flags: sack.flags,
            cumulative: sack.cumulative_tsn,
            window: sack.a_rwnd,
            renegable: blocks(sack.renegable),
            kept: blocks(sack.non_renegable),
            duplicates: duplicates(sack.duplicates),
        },
        other => panic!("no report: {other:?}"),
    })
}

fn report(receiver: &mut Receiver, nr: bool) -> Seen {
    report_in(receiver, MTU_ROOM, 1000, nr).expect("room for a report")
}

// ---- arrivals ----

#[test]
fn before_the_first_data_the_cumulative_tsn_is_the_one_before_the_initial() {
    let mut receiver = receiver_from(Tsn(0), &[]);
    assert_eq!((receiver.cumulative(), receiver.cumulative_tsn(), receiver.highest()), (0, Tsn(u32::MAX), 0));
    let seen = report(&mut receiver, false);
    assert_eq!((seen.cumulative, seen.window, seen.renegable), (Tsn(u32::MAX), 1000, vec![]));
}

#[test]
fn a_tsn_is_new_once() {
    let mut receiver = receiver(&[]);
    assert_eq!(receiver.classify(Tsn(1)), Arrival::New(1));
    assert_eq!(receiver.classify(Tsn(1)), Arrival::New(1), "not recorded yet");
    arrive(&mut receiver, [1, 2, 5]);
    for tsn in [1, 2, 5] {
        assert_eq!(receiver.classify(Tsn(tsn)), Arrival::Duplicate, "{tsn}");
    }
    assert_eq!(receiver.classify(Tsn(4)), Arrival::New(4));
    assert_eq!((receiver.cumulative(), receiver.highest(), receiver.has_gaps()), (2, 5, true));
    arrive(&mut receiver, [4]);
    assert_eq!(receiver.highest(), 5);
}

#[test]
fn filling_a_gap_moves_the_cumulative_tsn_over_what_waited() {
    let mut receiver = receiver(&[]);
    arrive(&mut receiver, [2, 3, 5]);
    assert_eq!(receiver.cumulative(), 0);
    arrive(&mut receiver, [1]);
    assert_eq!((receiver.cumulative(), receiver.has_gaps()), (3, true));
    arrive(&mut receiver, [4]);
    assert_eq!((receiver.cumulative(), receiver.has_gaps()), (5, false));
}

#[test]
fn what_cannot_be_reported_is_outside() {
    let mut receiver = receiver(&[]);
    arrive(&mut receiver, 1..=10);
    assert_eq!(receiver.classify(Tsn(10 + 65_535)), Arrival::New(10 + 65_535));
    assert_eq!(receiver.classify(Tsn(10 + 65_536)), Arrival::Outside);
    assert_eq!(receiver.classify(Tsn(10 + (1 << 31))), Arrival::Outside);
    assert_eq!(receiver.classify(Tsn(0)), Arrival::Outside, "before the initial TSN");
    assert_eq!(receiver.classify(Tsn(u32::MAX)), Arrival::Outside);
}

#[test]
fn tsns_wrap_around() {
    let start = u32::MAX - 2;
    let mut receiver = receiver_from(Tsn(start), &[]);
    arrive(&mut receiver, [start, start + 1, 0, 1, 3]);
    assert_eq!((receiver.cumulative_tsn(), receiver.cumulative()), (Tsn(start + 1), 2));
    assert_eq!(receiver.classify(Tsn(u32::MAX)), Arrival::New(3));
    assert_eq!(report(&mut receiver, false).renegable, [(2, 3), (5, 5)]);
    arrive(&mut receiver, [u32::MAX, 2]);
    assert_eq!((receiver.cumulative_tsn(), receiver.cumulative()), (Tsn(3), 7));
    assert_eq!(receiver.classify(Tsn(start)), Arrival::Duplicate);
}

#[test]
fn a_flood_of_gaps_is_bounded_and_the_lowest_missing_tsn_still_welcome() {
    let mut receiver = receiver(&[]);
    let mut outside = 0;
    for tsn in (3..65_000).step_by(2) {
        match receiver.classify(Tsn(tsn)) {
            Arrival::New(index) => receiver.record(index),
            Arrival::Outside => outside += 1,
            Arrival::Duplicate => panic!("{tsn} came once"),
        }
    }
    assert_eq!(outside, (65_000 - 3usize).div_ceil(2) - MAX_RANGES);
    assert_eq!(report(&mut receiver, false).renegable.len(), (MTU_ROOM - 12 - 16) / 4);
    // An arrival that fills a gap opens no range, so it is always accepted.
    let end = 2 * MAX_RANGES as u32 + 1;
    arrive(&mut receiver, 1..=end);
    assert_eq!((receiver.cumulative(), receiver.has_gaps()), (u64::from(end), false));
}

#[test]
fn what_was_skipped_counts_as_arrived() {
    let start = u32::MAX - 2;
    let mut receiver = receiver_from(Tsn(start), &[]);
    arrive(&mut receiver, [start + 2, 1, 2, 4]);
    assert_eq!(receiver.skip_to(Tsn(0)), Some(4), "over the wrap, and over what had arrived in between");
    assert_eq!((receiver.cumulative(), receiver.cumulative_tsn()), (6, Tsn(2)), "and on over what waited");
    assert_eq!(report(&mut receiver, false).renegable, [(2, 2)]);
    assert_eq!(
        receiver.classify(Tsn(start)),
        Arrival::Duplicate,
        "late is the same as twice (RFC 3758 §3.6)"
    );
    // TSNs as far ahead as possible date from before a renumbering.
    for stale in [Tsn(2), Tsn(start), Tsn(2 + (1 << 31)), Tsn((1 << 31) - 10), Tsn(3 + (1 << 30))] {
        assert_eq!(receiver.skip_to(stale), None);
    }
    assert_eq!(receiver.skip_to(Tsn(1_000_000_000)), Some(1_000_000_004), "however far");
    assert_eq!((receiver.highest(), receiver.has_gaps()), (1_000_000_004, false));
}

proptest! {
    /// Any order of arrival, from any initial TSN, with duplicates and skips: the reports describe exactly what arrived.
    #[test]
    fn reports_describe_exactly_what_arrived(
        initial in any::<u32>(),
        arrivals in prop::collection::vec((0u32..120, prop::bool::weighted(0.02)), 1..200),
        policy in 0usize..3,
    ) {
        let policy = ["off", "delivered", "everything"][policy];
        let mut receiver = receiver_from(Tsn(initial), &[("nr_sack", policy)]);
        let nr = policy != "off";
        let mut here = BTreeSet::new();
        let mut promised = BTreeSet::new();
        for (offset, skip) in arrivals {
            let index = u64::from(offset) + 1;
            if skip {
                let news = receiver.skip_to(Tsn(initial.wrapping_add(offset)));
                let missing = (1..=index).any(|index| here.insert(index));
                here.extend(1..=index);
                prop_assert_eq!(news.is_some(), missing);
            } else {
                let arrival = receiver.classify(Tsn(initial.wrapping_add(offset)));
                let expected = if here.insert(index) { Arrival::New(index) } else { Arrival::Duplicate };
                prop_assert_eq!(arrival, expected);
                receiver.record(index);
            }
            if offset % 3 == 0 && !skip {
                receiver.mark_deliverable(index..index + 1);
                promised.insert(index);
            }
            let seen = report(&mut receiver, nr);
            let cumulative = (1..).take_while(|index| here.contains(index)).count() as u64;
            prop_assert_eq!(seen.cumulative, Tsn(initial.wrapping_sub(1).wrapping_add(cumulative as u32)));
            let listed = |blocks: &[(u16, u16)]| -> Vec<u64> {
                let offsets = blocks.iter().flat_map(|&(start, end)| start..=end);
                offsets.map(|offset| cumulative + u64::from(offset)).collect()
            };
            let beyond = |kept: bool| -> Vec<u64> {
                let is_kept = |index: &u64| match policy {
                    "off" => false,
                    "delivered" => promised.contains(index),
                    _ => true,
                };
                here.iter().copied().filter(|index| *index > cumulative && is_kept(index) == kept).collect()
            };
            prop_assert_eq!(listed(&seen.renegable), beyond(false));
            prop_assert_eq!(listed(&seen.kept), beyond(true));
        }
    }
}

// ---- contents of reports ----

#[test]
fn duplicates_are_listed_once_for_each_extra_copy_and_then_forgotten() {
    let mut receiver = receiver(&[]);
    arrive(&mut receiver, [1, 1, 2, 1]);
    assert_eq!(report(&mut receiver, false).duplicates, [1, 1]);
    assert_eq!(report(&mut receiver, false).duplicates, []);
}

#[test]
fn duplicates_beyond_a_packetful_are_not_remembered() {
    let mut receiver = receiver(&[]);
    arrive(&mut receiver, std::iter::repeat_n(1, 10_000));
    assert_eq!(report(&mut receiver, false).duplicates.len(), 256);
}

#[test]
fn a_report_is_cut_to_the_room_lowest_blocks_first_duplicates_last() {
    let mut receiver = receiver(&[("nr_sack", "everything")]);
    arrive(&mut receiver, [1, 1, 3, 5, 7, 9]);
    let full = 12 + 20 + 5 * 4;
    let cut = |receiver: &mut Receiver, limit| {
        let seen = report_in(receiver, limit, 1000, true).expect("room");
        arrive(receiver, [1]);
        (seen.kept.len(), seen.kept.last().copied(), seen.duplicates.len())
    };
    assert_eq!(cut(&mut receiver, full), (4, Some((8, 8)), 1));
    assert_eq!(cut(&mut receiver, full - 4), (4, Some((8, 8)), 0));
    assert_eq!(cut(&mut receiver, full - 8), (3, Some((6, 6)), 0));
    assert_eq!(cut(&mut receiver, 12 + 20), (0, None, 0));
}

#[test]
fn of_too_many_promised_blocks_the_lowest_and_those_that_grew_last_are_told() {
    let mut receiver = receiver(&[("nr_sack", "everything"), ("nr_sack_blocks", "8")]);
    let told = |receiver: &mut Receiver| report(receiver, true).kept;
    // 2, 4, 6 and so on up to 60.
    arrive(&mut receiver, (1..=30).map(|half| 2 * half));
    let one = |tsn: u16| (tsn, tsn);
    assert_eq!(told(&mut receiver), [2, 4, 6, 8, 54, 56, 58, 60].map(one));
    assert_eq!(told(&mut receiver), [2, 4, 6, 8, 54, 56, 58, 60].map(one), "until something else comes");
    arrive(&mut receiver, [31]);
    let lowest = [one(2), one(4), one(6), one(8)];
    assert_eq!(told(&mut receiver), [&lowest[..], &[(30, 32), one(56), one(58), one(60)]].concat());
    arrive(&mut receiver, [20]);
    let repeated = [one(20), (30, 32), one(58), one(60)];
    assert_eq!(
        told(&mut receiver),
        [&lowest[..], &repeated].concat(),
        "a chunk came again: the peer had not heard"
    );
    arrive(&mut receiver, [3]);
    let lowest = [(2, 4), one(6), one(8), one(10)];
    assert_eq!(told(&mut receiver), [&lowest[..], &[one(20), (30, 32), one(60)]].concat(), "no block twice");
    arrive(&mut receiver, [1]);
    // The cumulative TSN is 4 now, and offsets count from it. The latest arrivals beyond it are 20, 31 and 60.
    let blocks = [one(2), one(4), one(6), one(8), one(10), one(16), (26, 28), one(56)];
    assert_eq!(told(&mut receiver), blocks);
}

#[test]
fn blocks_that_may_be_taken_back_are_always_the_lowest() {
    for (policy, nr) in [("off", false), ("delivered", true), ("everything", false)] {
        let mut receiver = receiver(&[("nr_sack", policy), ("nr_sack_blocks", "8")]);
        arrive(&mut receiver, (1..=30).map(|half| 2 * half));
        assert_eq!(report(&mut receiver, nr).renegable.len(), 30, "{policy}: none need be left out");
        let seen = report_in(&mut receiver, 12 + 20 + 8 * 4, 1000, nr).expect("room");
        let fit = if nr { 8 } else { 9 };
        assert_eq!(seen.renegable.last(), Some(&(2 * fit, 2 * fit)), "{policy}");
    }
}

#[test]
fn what_came_last_is_remembered_within_bounds_and_forgotten_with_the_last_gap() {
    let mut receiver = receiver(&[("nr_sack_blocks", "0"), ("nr_sack", "everything")]);
    arrive(&mut receiver, (1..=2000).map(|half| 2 * half));
    let told = report(&mut receiver, true).kept;
    assert_eq!(told.len(), 355, "a full packet");
    assert_eq!(told.iter().filter(|block| block.0 > 3000).count(), 64);
    arrive(&mut receiver, (0..2000).map(|half| 2 * half + 1));
    assert!(report(&mut receiver, true).kept.is_empty());
    arrive(&mut receiver, (2001..=2010).map(|half| 2 * half));
    assert_eq!(report(&mut receiver, true).kept.len(), 10);
    assert!(!receiver.map.latest.is_empty());
    receiver.skip_to(Tsn(4020));
    assert!(receiver.map.latest.is_empty(), "what was given up closes gaps too");
}

proptest! {
    /// However few blocks a report may have, it lists no TSN that has not arrived, and all reports together list every TSN that
    /// has.
    #[test]
    fn whatever_reports_leave_out_all_of_them_together_tell_everything(
        arrivals in prop::collection::vec(0u32..200, 1..300),
        most in 8u16..20,
    ) {
        let most_text = most.to_string();
        let mut receiver = receiver(&[("nr_sack", "everything"), ("nr_sack_blocks", &most_text)]);
        let (mut here, mut heard) = (BTreeSet::new(), BTreeSet::new());
        for tsn in arrivals {
            arrive(&mut receiver, [tsn + 1]);
            here.insert(tsn + 1);
            let seen = report(&mut receiver, true);
            prop_assert!(seen.kept.len() <= usize::from(most) && seen.renegable.is_empty());
            prop_assert!(seen.kept.windows(2).all(|pair| pair[0].1 + 1 < pair[1].0), "{:?}", seen.kept);
            heard.extend(1..=seen.cumulative.0);
            let offsets = seen.kept.iter().flat_map(|&(start, end)| start..=end);
            heard.extend(offsets.map(|offset| seen.cumulative.0 + u32::from(offset)));
            prop_assert_eq!(&heard, &here);
        }
    }
}

#[test]
fn without_room_for_a_report_nothing_changes() {
    let mut receiver = receiver(&[]);
    arrive(&mut receiver, [1, 1]);
    receiver.on_packet(
        Instant::ZERO,
        PathId(0),
        PacketSummary { new: 1, duplicates: 1, ..Default::default() },
    );
    assert!(report_in(&mut receiver, 12 + 12, 1000, false).is_err());
    assert!(receiver.is_due(Instant::ZERO) && receiver.is_pending());
    assert_eq!(report(&mut receiver, false).duplicates, [1]);
    assert!(!receiver.is_pending());
}

#[test]
fn delivered_splits_the_blocks_where_the_promise_changes() {
    let mut receiver = receiver(&[("nr_sack", "delivered")]);
    arrive(&mut receiver, [2, 3, 4, 5, 6, 8]);
    receiver.mark_deliverable(3..5);
    receiver.mark_deliverable(8..9);
    let seen = report(&mut receiver, true);
    assert_eq!((seen.nr, seen.renegable, seen.kept), (true, vec![(2, 2), (5, 6)], vec![(3, 4), (8, 8)]));
    // Cut short, the lowest blocks of both kinds are there.
    let seen = report_in(&mut receiver, 12 + 20 + 3 * 4, 1000, true).expect("room");
    assert_eq!((seen.renegable, seen.kept), (vec![(2, 2), (5, 6)], vec![(3, 4)]));
}

#[test]
fn what_is_promised_stays_so_until_the_cumulative_tsn_passes_it() {
    let mut receiver = receiver(&[("nr_sack", "delivered")]);
    arrive(&mut receiver, [2, 3, 5]);
    receiver.mark_deliverable(2..4);
    for _ in 0..3 {
        assert_eq!(report(&mut receiver, true).kept, [(2, 3)]);
    }
    arrive(&mut receiver, [1]);
    let seen = report(&mut receiver, true);
    assert_eq!((seen.cumulative, seen.kept, seen.renegable), (Tsn(3), vec![], vec![(2, 2)]));
}

#[test]
fn promises_are_bounded_and_forgotten_once_passed() {
    let mut receiver = receiver(&[("nr_sack", "delivered")]);
    let last = 4 * MAX_RANGES as u32;
    arrive(&mut receiver, 3..=last);
    for index in (3..u64::from(last)).step_by(2) {
        receiver.mark_deliverable(index..index + 1);
    }
    assert_eq!(receiver.map.deliverable().len(), MAX_RANGES);
    // Beyond the bound, an index that touches a range can still be marked: it adds no range.
    receiver.mark_deliverable(4..5);
    assert_eq!(receiver.map.deliverable().iter().next(), Some(3..6));
    arrive(&mut receiver, 1..=2);
    assert!(receiver.map.deliverable().is_empty());
    receiver.mark_deliverable(1..10);
    assert!(receiver.map.deliverable().is_empty(), "the cumulative TSN promises it already");
}

#[test]
fn everything_is_non_renegable_or_nothing_is_by_policy() {
    for (policy, nr, renegable, kept) in [
        ("everything", true, vec![], vec![(2, 2)]),
        ("everything", false, vec![(2, 2)], vec![]),
        ("delivered", false, vec![(2, 2)], vec![]),
        ("off", false, vec![(2, 2)], vec![]),
    ] {
        let mut receiver = receiver(&[("nr_sack", policy)]);
        arrive(&mut receiver, [2]);
        receiver.mark_deliverable(2..3);
        let seen = report(&mut receiver, nr);
        assert_eq!((seen.nr, seen.renegable, seen.kept), (nr, renegable, kept), "{policy}, NR-SACK {nr}");
    }
}

#[test]
fn only_the_delayed_ack_counts_packets() {
    for (packets, flags) in [(0, 0x00), (1, 0x40), (2, 0x80), (3, 0xC0), (4, 0xC0), (300, 0xC0)] {
        for (switch, flags) in [("true", flags), ("false", 0)] {
            let mut receiver = concurrent(&[("delayed_ack", switch)]);
            for _ in 0..packets {
                receiver.on_packet(Instant::ZERO, PathId(0), NEW);
            }
            assert_eq!(report(&mut receiver, true).flags, flags, "{packets} packets, delayed_ack = {switch}");
            assert_eq!(report(&mut receiver, true).flags, 0, "the count starts over");
        }
    }
}

/// RFC 9260 §6.7, §3.3.4: where data cannot overtake other data, a gap is a loss, and the flags are 0.
#[test]
fn the_delayed_ack_is_for_data_of_several_paths() {
    let gap = PacketSummary { out_of_order: true, ..NEW };
    let mut receiver = settled(&[("delayed_ack", "true")]);
    let mut hurries = |millis: u64, path: u8, what: PacketSummary| {
        receiver.on_packet(at(millis), PathId(path), what);
        let (hurries, counts) = (receiver.is_due(at(millis)), report(&mut receiver, true).flags != 0);
        assert_ne!(hurries, counts);
        hurries
    };
    assert!(hurries(0, 0, gap), "one path");
    assert!(hurries(10, 1, PacketSummary { new: 0, refused: true, ..gap }), "nothing new");
    assert!(!hurries(20, 1, gap), "two paths");
    assert!(!hurries(999, 1, gap));
    assert!(hurries(1001, 1, gap), "the other one has brought nothing for a second");
    assert!(!hurries(1500, 0, gap));
    assert!(hurries(2600, 2, gap), "one after the other");
}

// ---- when a report is due ----

const NEW: PacketSummary = PacketSummary {
    new: 1,
    duplicates: 0,
    out_of_order: false,
    immediate: false,
    refused: false,
    forwarded: false,
};

/// A receiver that has reported the first DATA of the association.
fn settled(settings: &[(&str, &str)]) -> Receiver {
    let mut receiver = receiver(settings);
    receiver.on_packet(Instant::ZERO, PathId(0), NEW);
    report(&mut receiver, false);
    receiver
}

/// The same, with data arriving over two paths.
fn concurrent(settings: &[(&str, &str)]) -> Receiver {
    let mut receiver = settled(settings);
    receiver.on_packet(Instant::ZERO, PathId(1), NEW);
    report(&mut receiver, false);
    receiver
}

#[test]
fn the_first_data_is_reported_at_once_then_every_second_packet() {
    let mut receiver = receiver(&[]);
    assert!(!receiver.is_due(Instant::FAR_FUTURE) && !receiver.is_pending());
    receiver.on_packet(Instant::ZERO, PathId(0), NEW);
    assert!(receiver.is_due(Instant::ZERO));
    report(&mut receiver, false);
    for _ in 0..3 {
        receiver.on_packet(Instant::ZERO, PathId(0), NEW);
        assert!(!receiver.is_due(Instant::ZERO) && receiver.is_pending());
        receiver.on_packet(Instant::ZERO, PathId(1), NEW);
        assert!(receiver.is_due(Instant::ZERO), "packets count for the association, not for a path");
        report(&mut receiver, false);
    }
}

#[test]
fn the_frequency_is_a_setting() {
    for frequency in [1, 3, 7] {
        let mut receiver = settled(&[("sack_frequency", &frequency.to_string())]);
        let before = (0..100).take_while(|_| {
            receiver.on_packet(Instant::ZERO, PathId(0), NEW);
            !receiver.is_due(Instant::ZERO)
        });
        assert_eq!(before.count(), frequency - 1);
    }
}

#[test]
fn a_window_below_the_frequency_waits_for_the_timer_a_few_times_only() {
    let mut receiver = settled(&[("sack_frequency", "64")]);
    let mut now = Instant::ZERO;
    // The peer sends 11 packets, and then nothing until all are reported. `stalls` counts the expirations of the timer in a
    // row.
    let mut stalls = 0;
    for _ in 0..50 {
        for _ in 0..11 {
            receiver.on_packet(now, PathId(0), NEW);
            if receiver.is_due(now) {
                report(&mut receiver, false);
                stalls = 0;
            }
        }
        if let Some(timer) = receiver.deadline() {
            now = timer;
            receiver.on_time(now);
            assert!(receiver.is_due(now));
            stalls += 1;
            report(&mut receiver, false);
        }
        assert!(stalls <= 2, "no report leaves while the peer sends");
    }
    // After an expiration with a single packet, the frequency is that of RFC 9260 §6.2.
    receiver.on_packet(now, PathId(0), NEW);
    let timer = receiver.deadline().expect("it runs");
    receiver.on_time(timer);
    report(&mut receiver, false);
    receiver.on_packet(timer, PathId(0), NEW);
    assert!(!receiver.is_due(timer));
    receiver.on_packet(timer, PathId(0), NEW);
    assert!(receiver.is_due(timer));
}

#[test]
fn the_sack_timer_runs_from_the_first_unreported_packet() {
    let mut receiver = settled(&[("sack_frequency", "9")]);
    let at = |ms| Instant::ZERO + Duration::from_millis(ms);
    assert_eq!(receiver.deadline(), None);
    receiver.on_packet(at(10), PathId(0), NEW);
    receiver.on_packet(at(150), PathId(0), NEW);
    assert_eq!(receiver.deadline(), Some(at(210)));
    assert!(!receiver.is_due(at(209)) && receiver.is_due(at(210)));
    report(&mut receiver, false);
    assert_eq!((receiver.deadline(), receiver.is_due(at(9999))), (None, false));
    receiver.on_packet(at(300), PathId(0), NEW);
    assert_eq!(receiver.deadline(), Some(at(500)));
    receiver.demand();
    assert_eq!(receiver.deadline(), None, "nothing to wait for: it is due");
}

#[test]
fn what_hurries_a_report() {
    let quiet = PacketSummary { duplicates: 1, ..NEW };
    let gap = PacketSummary { out_of_order: true, ..NEW };
    let duplicates_only = PacketSummary { new: 0, duplicates: 2, ..NEW };
    let immediate = PacketSummary { immediate: true, ..NEW };
    let refused = PacketSummary { refused: true, ..NEW };
    for (what, plain, delayed) in [
        (NEW, false, false),
        (quiet, false, false),
        (gap, true, false),
        (duplicates_only, true, true),
        (immediate, true, true),
        (refused, true, true),
    ] {
        for (switch, expected) in [("false", plain), ("true", delayed)] {
            let mut receiver = concurrent(&[("delayed_ack", switch)]);
            receiver.on_packet(Instant::ZERO, PathId(0), what);
            assert_eq!(receiver.is_due(Instant::ZERO), expected, "{what:?}, delayed_ack = {switch}");
        }
    }
}

#[test]
fn a_demanded_report_is_due_without_data() {
    let mut receiver = settled(&[]);
    receiver.demand();
    assert!(receiver.is_due(Instant::ZERO) && receiver.is_pending());
    report(&mut receiver, false);
    assert!(!receiver.is_due(Instant::ZERO) && !receiver.is_pending());
}

#[test]
fn sources_are_those_since_the_last_report() {
    let mut receiver = settled(&[]);
    for path in [3, 250, 1, 3, 64] {
        receiver.on_packet(Instant::ZERO, PathId(path), NEW);
    }
    let sources = receiver.sources();
    assert_eq!((sources.first, sources.last), (PathId(3), PathId(64)));
    let paths: Vec<u8> = (0..=255).filter(|&path| sources.paths.contains(PathId(path))).collect();
    assert_eq!(paths, [1, 3, 64, 250]);
    report(&mut receiver, false);
    assert_eq!(receiver.sources(), sources, "a window update goes where the report went");
    receiver.on_packet(Instant::ZERO, PathId(7), NEW);
    let only = Sources { first: PathId(7), last: PathId(7), paths: PathSet::only(PathId(7)) };
    assert_eq!(receiver.sources(), only);
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

#[test]
fn a_report_on_another_path_than_its_datas_is_asked_after() {
    let mut receiver = settled(&[]);
    let (a, b) = (PathId(0), PathId(1));
    let report_over = |receiver: &mut Receiver, from: PathId, over: PathId, heard_by: Instant| {
        receiver.on_packet(Instant::ZERO, from, NEW);
        report(receiver, false);
        receiver.on_reported_over(over, heard_by);
        receiver.deadline()
    };
    assert_eq!(report_over(&mut receiver, a, a, at(5)), None, "where its data came from");
    assert_eq!(report_over(&mut receiver, a, b, at(10)), Some(at(10)));
    assert_eq!(
        report_over(&mut receiver, a, b, at(20)),
        Some(at(20)),
        "and the later one says what this says"
    );
    assert_eq!(receiver.pop_watched(at(19)), None);
    assert_eq!((receiver.pop_watched(at(20)), receiver.pop_watched(at(20))), (Some(b), None));
    report_over(&mut receiver, a, b, at(25));
    assert_eq!(report_over(&mut receiver, b, b, at(28)), None, "it was heard since");
    report_over(&mut receiver, a, b, at(30));
    assert_eq!(report_over(&mut receiver, a, a, at(40)), None, "it says all that the other said");
}

#[test]
fn repeats_of_a_report_come_to_an_end_though_one_path_alone_is_usable() {
    let mut receiver = settled(&[]);
    receiver.on_packet(Instant::ZERO, PathId(0), NEW);
    receiver.on_packet(Instant::ZERO, PathId(1), NEW);
    let mut repeats = 0;
    loop {
        report(&mut receiver, false);
        receiver.on_reported_over(PathId(0), at(5));
        if receiver.pop_watched(at(5)).is_none() {
            break;
        }
        receiver.demand_elsewhere();
        repeats += 1;
        assert!(repeats < 3);
    }
    assert!(repeats > 0);
}

#[test]
fn a_window_update_is_worth_a_quarter_of_the_buffer_or_a_way_out_of_nothing() {
    let buffer = 100_000;
    let mut receiver = receiver(&[("receive_buffer", "100000B"), ("mtu", "1500B")]);
    assert!(!receiver.wants_window_update(buffer, buffer), "INIT announced it all");
    for (announced, window, wanted) in [
        (50_000, 74_999, false),
        (50_000, 75_000, true),
        (50_000, 40_000, false),
        (0, 2999, false),
        (0, 3000, true),
        (1499, 3000, true),
        (1500, 3000, false),
    ] {
        report_in(&mut receiver, MTU_ROOM, announced, false).expect("room");
        assert_eq!(receiver.wants_window_update(window, buffer), wanted, "from {announced} to {window}");
    }
    // In a buffer of less than two packets, only the quarter can cause an update.
    report_in(&mut receiver, MTU_ROOM, 0, false).expect("room");
    assert!(receiver.wants_window_update(500, 2000) && !receiver.wants_window_update(499, 2000));
}
