//! The receiver as the association sees it: TSNs and packets in, reports out.

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;
use tresse_wire::{ChecksumRule, Chunk, CommonHeader, GapBlock, List, Packet, Seal};

use super::delay::PathSet;
use super::tsn_map::MAX_RANGES;
use super::*;

mod due;

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
