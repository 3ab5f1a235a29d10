//! The time at which a report is due, its path, and the number of packets that it counts.

use super::*;

const NEW: PacketSummary = PacketSummary {
    new: 1,
    duplicates: 0,
    out_of_order: false,
    immediate: false,
    refused: false,
    forwarded: false,
};

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

/// Lets ten packets arrive in each millisecond from `from` to `until`, and returns the number of reports.
fn bulk(receiver: &mut Receiver, from: u64, until: u64) -> usize {
    let packets = (from * 10..until * 10).map(|tenth| Instant::ZERO + Duration::from_micros(100 * tenth));
    packets
        .filter(|&now| {
            receiver.on_packet(now, PathId(0), NEW);
            let due = receiver.is_due(now);
            if due {
                report(receiver, false);
            }
            due
        })
        .count()
}

#[test]
fn bulk_data_is_reported_in_batches_until_one_is_not_filled_within_a_millisecond() {
    let mut receiver = settled(&[("sack_batch", "8")]);
    assert_eq!(bulk(&mut receiver, 0, 2000), 10_000);
    assert_eq!(bulk(&mut receiver, 2000, 2800), 1000);

    receiver.on_packet(at(2800), PathId(0), NEW);
    receiver.on_packet(at(2800), PathId(0), NEW);
    assert_eq!((receiver.is_due(at(2800)), receiver.deadline()), (false, Some(at(2801))));
    receiver.on_time(at(2801));
    assert!(receiver.is_due(at(2801)));
    report(&mut receiver, false);
    assert_eq!(bulk(&mut receiver, 2801, 2901), 500, "every second packet for the rest of the second");
}

#[test]
fn batches_need_a_larger_buffer_and_a_frequency_below_their_size() {
    for settings in [
        [("sack_batch", "8"), ("receive_buffer", "96000B")],
        [("sack_batch", "2"), ("receive_buffer", "1MiB")],
    ] {
        assert_eq!(bulk(&mut settled(&settings), 0, 4000), 20_000, "{settings:?}");
    }
    assert_eq!(bulk(&mut settled(&[("sack_frequency", "1"), ("sack_batch", "8")]), 0, 4000), 40_000);
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
