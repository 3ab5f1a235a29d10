//! Throughput of the papers' simplest setups, at a scale of seconds; the lab measures them at full length.

use crate::common::{checked, scenario, two_paths};
use tresse_proto::Limit;
use tresse_sim::{Outcome, RunOptions, Scenario, Shares, run};

/// User data's share of a full packet: 1,452 of 1,500 bytes.
const PAYLOAD: f64 = 0.968;

fn assert_at_least(least: f64, value: f64, outcome: &Outcome) {
    assert!(value >= least, "{value} is below {least}: {outcome:#?}");
}

/// No link gives out more than its rate, and one packet that was on its way when the measurement began.
fn assert_links_keep_their_rates(rates: &[f64], outcome: &Outcome) {
    let edge = 1500.0 * 8.0 / 1e6 / outcome.measured_s;
    for (path, rate) in outcome.paths.iter().zip(rates) {
        assert!(path.wire_mbps <= rate + edge, "{} exceeds {rate}: {outcome:#?}", path.wire_mbps);
    }
}

#[test]
fn one_path_carries_its_rate() {
    let single =
        [("preset", "rfc9260"), ("transport.send_buffer", "256KiB"), ("transport.receive_buffer", "256KiB")];
    let outcome = checked(&two_paths(&single));
    assert_at_least(0.95 * 10.0 * PAYLOAD, outcome.throughput_mbps, &outcome);
    assert_links_keep_their_rates(&[10.0], &outcome);
    assert_eq!(outcome.paths[1].chunks_sent, 0);
}

#[test]
fn two_similar_paths_add_up_with_either_stream_map() {
    for map in ["any", "fixed:0,1"] {
        let outcome = checked(&two_paths(&[("transport.stream_map", map), ("measure", "10s")]));
        assert_at_least(0.95 * 20.0 * PAYLOAD, outcome.throughput_mbps, &outcome);
        assert_links_keep_their_rates(&[10.0, 10.0], &outcome);
    }
}

/// On paths of 10 and 75 ms equal shares of 128 KiB leave the long path half empty; shares that follow the paths and
/// acknowledgements over the short one fill both (docs/adaptive.md).
#[test]
fn shares_that_follow_the_paths_fill_them_with_smaller_buffers() {
    let settings = [
        ("transport.stream_map", "fixed:0,1"),
        ("transport.send_buffer", "128KiB"),
        ("transport.receive_buffer", "128KiB"),
        ("path.1.delay", "75ms"),
        ("settle", "10s"),
    ];
    let equal = checked(&two_paths(&settings));
    assert!(equal.throughput_mbps < 0.65 * 20.0 * PAYLOAD, "{equal:#?}");
    let follow = [("transport.buffer_allocation", "paths"), ("transport.sack_path", "fastest")];
    let shared = checked(&two_paths(&[&settings[..], &follow].concat()));
    assert_at_least(0.95 * 20.0 * PAYLOAD, shared.throughput_mbps, &shared);
    assert!(shared.paths.iter().all(|path| path.queue_mean_packets < 4.0), "no queue stands: {shared:#?}");
}

/// A path that is full but for a packet does not miss its whole rate while it waits for a long one (docs/adaptive.md).
/// When it counted so, the long path rested, and 10.4 Mbit/s were carried.
#[test]
fn a_long_path_does_not_rest_for_what_the_short_one_carries_all_the_same() {
    let settings = [
        ("preset", "cmt"),
        ("transport.send_buffer", "80KiB"),
        ("transport.receive_buffer", "80KiB"),
        ("path.1.delay", "50ms"),
        ("settle", "10s"),
        ("measure", "15s"),
    ];
    let outcome = checked(&two_paths(&settings));
    assert_at_least(11.2, outcome.throughput_mbps, &outcome);
}

const ADAPTIVE: [(&str, &str); 6] = [
    ("transport.stream_map", "adaptive"),
    ("transport.buffer_allocation", "paths"),
    ("transport.sack_path", "fastest"),
    ("transport.path_scheduler", "stms"),
    ("transport.nr_sack", "everything"),
    ("transport.experiment.rtt_over_any_path", "true"),
];

/// The adaptive map is told nothing of the paths, and needs no help from an application that feeds streams in turn.
#[test]
fn the_adaptive_map_uses_unlike_paths_whatever_the_application_feeds() {
    let settings =
        [("transport.send_buffer", "128KiB"), ("transport.receive_buffer", "128KiB"), ("settle", "10s")];
    let rates = checked(&two_paths(&[&settings[..], &ADAPTIVE, &[("path.1.rate", "25Mbit/s")]].concat()));
    assert_at_least(0.97 * 35.0 * PAYLOAD, rates.throughput_mbps, &rates);
    let delays = checked(&two_paths(&[&settings[..], &ADAPTIVE, &[("path.1.delay", "50ms")]].concat()));
    assert_at_least(0.97 * 20.0 * PAYLOAD, delays.throughput_mbps, &delays);
}

/// With 64 KiB a path of 50 ms joins one of 10 for good if data is left to the short one; else it comes and goes. The
/// receive buffer holds as much user data with the headers of its chunks.
#[test]
fn the_adaptive_map_uses_a_slower_path_with_less_buffer_when_data_is_left_to_the_fast_one() {
    let small = [
        ("transport.send_buffer", "64KiB"),
        ("transport.receive_buffer", "66300B"),
        ("path.1.delay", "50ms"),
        ("settle", "10s"),
    ];
    let outcome = checked(&two_paths(&[&small[..], &ADAPTIVE].concat()));
    // 12.83 Mbit/s is what buffers of 64 KiB can hold of both paths without regard to order (docs/adaptive.md).
    assert_at_least(0.97 * 12.83, outcome.throughput_mbps, &outcome);
}

/// With 80 KiB a path of 75 ms pays beside one of 10, as long as neither claims buffer that it does not use.
#[test]
fn the_adaptive_map_comes_close_to_the_bound_with_a_much_slower_path() {
    let small = [
        ("transport.send_buffer", "80KiB"),
        ("transport.receive_buffer", "80KiB"),
        ("transport.sack_frequency", "1"),
        // With after_sack each SACK announces one message less, and 11.96 Mbit/s are carried: 94.5 % of the bound.
        ("traffic.read", "before_sack"),
        ("path.1.delay", "75ms"),
        ("settle", "10s"),
    ];
    let outcome = checked(&two_paths(&[&small[..], &ADAPTIVE].concat()));
    // 12.66 Mbit/s is the bound; without the slower path it is 9.68.
    assert_at_least(0.97 * 12.66, outcome.throughput_mbps, &outcome);
}

/// Where a second path of 75 ms could only make the first one wait, it is left alone.
#[test]
fn the_adaptive_map_does_without_a_path_that_costs_more_than_it_carries() {
    let small = [
        ("transport.send_buffer", "48KiB"),
        ("transport.receive_buffer", "48KiB"),
        ("path.1.delay", "75ms"),
        ("settle", "10s"),
    ];
    let outcome = checked(&two_paths(&[&small[..], &ADAPTIVE].concat()));
    assert_at_least(0.97 * 10.0 * PAYLOAD, outcome.throughput_mbps, &outcome);
}

/// A message of a latency-critical stream meets no queue of bulk data, and bulk data fills both paths all the same.
#[test]
fn a_latency_critical_stream_is_not_held_up_by_bulk_streams_that_fill_the_paths() {
    let text = r#"
        preset = "adaptive"
        settle = "5s"
        measure = "10s"
        [transport]
        send_buffer = "256KiB"
        receive_buffer = "256KiB"
        stream_classes = "2=latency"
        [traffic]
        streams = 3
        [[traffic.sporadic]]
        stream = 2
        gap = "50ms"
        size = "1B..100B"
        [[path]]
        rate = "10Mbit/s"
        delay = "10ms"
        [[path]]
        rate = "10Mbit/s"
        delay = "50ms"
    "#;
    let outcome = checked(&tresse_sim::Scenario::from_toml(text, "urgent").expect("a scenario"));
    assert_at_least(0.97 * 20.0 * PAYLOAD, outcome.throughput_mbps, &outcome);
    let delay = outcome.streams[2].delay_ms.expect("messages came").mean;
    assert!(delay < 1.1 * (10.0 + 1.2), "one way and a packet's transmission are 11.2 ms: {delay}");
}

/// Where a path chooses a stream for every packet, small messages wait for the queue and no longer. Where it may choose only when a
/// message of 16 KiB ends, the streams of the path on which none ends wait for hundreds of milliseconds.
#[test]
fn small_messages_beside_interleaved_bulk_wait_for_one_queue() {
    let text = r#"
        settle = "5s"
        measure = "10s"
        [transport]
        stream_map = "adaptive"
        stream_scheduler = "fair_bandwidth"
        interleaving = true
        [traffic]
        streams = 2
        message_size = "16KiB"
        [[traffic.sporadic]]
        stream = 1
        gap = "70ms"
        size = "1B..1000B"
        [[path]]
        rate = "20Mbit/s"
        delay = "200us"
        queue = "83 packets"
        [[path]]
        rate = "20Mbit/s"
        delay = "200us"
        queue = "83 packets"
    "#;
    let outcome = checked(&tresse_sim::Scenario::from_toml(text, "small").expect("a scenario"));
    assert_at_least(0.97 * 40.0 * PAYLOAD, outcome.throughput_mbps, &outcome);
    let delay = outcome.streams[1].delay_ms.expect("messages came");
    assert!(delay.p95 < 52.0, "83 packets at 20 Mbit/s are 50 ms: {delay:?}");
}

/// When one of two paths dies in mid-transfer, the other is full again in the fourth second, and nothing is lost or
/// doubled: also when it was the path that all SACKs took, whose timeout costs the other one its window.
#[test]
fn the_adaptive_map_goes_on_without_a_path_that_died() {
    for (dies, stays) in [(0, 1), (1, 0)] {
        let outage = format!("path.{dies}.change.0.outage");
        let settings =
            [("path.1.delay", "30ms"), (&outage, "true"), ("settle", "11500ms"), ("measure", "2s")];
        let outcome = checked(&scenario("adaptive/changing.toml", &settings));
        assert_at_least(0.95 * 10.0 * PAYLOAD, outcome.throughput_mbps, &outcome);
        assert_at_least(0.95 * 10.0 * PAYLOAD, outcome.paths[stays].throughput_mbps, &outcome);
    }
}

/// Who took its SACKs over the path that died needs more in flight than before, and has it when that is known: three
/// round trips and a timeout after the death the long path is full.
#[test]
fn a_long_path_is_full_soon_after_the_one_that_carried_its_sacks_died() {
    let settings = [
        ("path.1.delay", "75ms"),
        ("path.0.change.0.outage", "true"),
        ("settle", "9452ms"),
        ("measure", "500ms"),
    ];
    let outcome = checked(&scenario("adaptive/changing.toml", &settings));
    assert_at_least(0.95 * 10.0 * PAYLOAD, outcome.throughput_mbps, &outcome);
}

/// Streams bound to paths of 10 and 25 Mbit/s: who refills in turn fills the send buffer with what waits for the slow
/// path (PFLDNeT 2010, figure 6).
#[test]
fn only_refilling_by_queue_uses_a_faster_path() {
    let settings = [
        ("transport.stream_map", "fixed:0,1"),
        ("transport.send_buffer", "512KiB"),
        ("transport.receive_buffer", "512KiB"),
        ("path.1.rate", "25Mbit/s"),
        ("settle", "10s"),
    ];
    let in_turn = checked(&two_paths(&settings));
    let [slow, fast] = [0, 1].map(|stream| in_turn.streams[stream].throughput_mbps);
    assert!((fast / slow - 1.0).abs() < 0.05, "{in_turn:#?}");
    // A larger buffer would not help: what fills it may only use the other path.
    assert_eq!(most_often(&in_turn.limited_by.paths[1]), Limit::Scheduler);

    let by_queue = checked(&two_paths(&[&settings[..], &[("traffic.refill", "by_queue")]].concat()));
    assert_at_least(0.9 * 25.0 * PAYLOAD, by_queue.streams[1].throughput_mbps, &by_queue);
    assert_at_least(0.9 * 10.0 * PAYLOAD, by_queue.streams[0].throughput_mbps, &by_queue);
}

fn most_often(shares: &Shares) -> Limit {
    let shares = Limit::ALL.map(|limit| (limit, shares.of(limit)));
    shares.into_iter().max_by(|(_, one), (_, other)| one.total_cmp(other)).expect("there are limits").0
}

#[test]
fn framing_takes_its_share_of_the_rate() {
    let outcome = checked(&two_paths(&[("path.1.rate", "2Mbit/s"), ("framing", "7B")]));
    // A packet of 1,500 bytes takes as long as 1,507 without framing would.
    assert_links_keep_their_rates(&[10.0, 2.0].map(|rate| rate * 1500.0 / 1507.0), &outcome);
    assert_at_least(0.95 * 2.0, outcome.paths[1].wire_mbps, &outcome);
}

#[test]
fn a_small_buffer_bounds_the_rate_by_the_round_trip() {
    let small = [("transport.send_buffer", "16KiB"), ("transport.receive_buffer", "16KiB")];
    let outcome = checked(&two_paths(&small));
    // 16 KiB in a round trip of 20 ms and one packet's 1.2 ms; 10 % for what is counted at the edges.
    let bound = 16.0 * 1024.0 * 8.0 / 0.0212 / 1e6;
    assert_at_least(0.5 * bound, outcome.throughput_mbps, &outcome);
    assert!(outcome.throughput_mbps <= 1.1 * bound, "{outcome:#?}");
}

#[test]
fn shares_of_time_add_up() {
    let outcome = checked(&two_paths(&[]));
    let sum = |shares: &Shares| Limit::ALL.iter().map(|limit| shares.of(*limit)).sum::<f64>();
    for shares in outcome.limited_by.paths.iter().chain([&outcome.limited_by.total]) {
        assert!((sum(shares) - 1.0).abs() < 1e-6, "{:#?}", outcome.limited_by);
    }
}

#[test]
fn the_scenarios_of_the_repository_run() {
    for path in ["wifi-lte.toml", "two-paths-100mbit.toml", "pfldnet2010/two-paths.toml"] {
        let outcome =
            checked(&scenario(path, &[("settle", "1s"), ("measure", "1s"), ("record.interval", "50ms")]));
        assert!(outcome.throughput_mbps > 1.0, "{path}: {outcome:#?}");
        let series = outcome.series.expect("asked for");
        assert!(series.time_s.len() > 10 && series.paths.len() == 2);
    }
}

#[test]
fn a_stopped_run_gives_what_it_has() {
    let stop = std::sync::atomic::AtomicBool::new(false);
    let mut progress = |share: f64| stop.store(share > 0.6, std::sync::atomic::Ordering::Relaxed);
    let options = RunOptions { progress: Some(&mut progress), stop: Some(&stop), ..RunOptions::default() };
    let outcome = run(&two_paths(&[]), options).expect("it runs");
    assert!(outcome.interrupted && outcome.measured_s < 5.0 && outcome.throughput_mbps > 1.0, "{outcome:#?}");
}

/// Between what comes over 1 ms and what comes over 100 ms lie some 800 gaps: more than a report has room for. The short
/// path's data is acknowledged all the same, by reports of a fifth of a packet.
#[test]
fn reports_that_cannot_list_every_gap_slow_neither_of_two_unlike_paths() {
    let settings = [
        ("path.0.delay", "1ms"),
        ("path.1.delay", "100ms"),
        // Nothing is dropped there: whatever went again was taken for lost.
        ("path.1.queue", "4000 packets"),
        ("transport.send_buffer", "16MiB"),
        ("transport.receive_buffer", "16MiB"),
        ("settle", "3s"),
        ("measure", "2s"),
    ];
    let mended = checked(&scenario("two-paths-100mbit.toml", &settings));
    assert_at_least(0.85 * 200.0 * PAYLOAD, mended.throughput_mbps, &mended);
    assert_eq!(mended.paths[1].chunks_resent, 0, "what is left out is not taken for lost: {mended:#?}");
}

/// Once data is steady, a SACK acknowledges four packets: as much is carried as with a SACK for each second one.
#[test]
fn fast_paths_carry_as_much_with_fewer_sacks() {
    let run = |batch| {
        let overrides = [("settle", "3s"), ("measure", "5s"), ("transport.sack_batch", batch)];
        checked(&scenario("two-paths-100mbit.toml", &overrides))
    };
    let (each_second, batches) = (run("1"), run("4"));
    assert_at_least(0.998 * each_second.throughput_mbps, batches.throughput_mbps, &batches);
    let sacks = |outcome: &Outcome| (outcome.run.packets - outcome.run.data_chunks) as f64;
    assert!(sacks(&batches) < 0.7 * sacks(&each_second), "{} {}", sacks(&batches), sacks(&each_second));
}

/// The slow start of this path over a satellite lasts until the end. In its last two seconds data comes fast enough for batches, with
/// which the window would grow half as fast.
#[test]
fn a_long_slow_start_has_a_sack_for_each_second_packet() {
    let text = "preset = \"cmt\"\nsettle = \"0s\"\nmeasure = \"16s\"\n\
                [transport]\nsend_buffer = \"64MiB\"\nreceive_buffer = \"64MiB\"\n\
                [[path]]\nrate = \"300Mbit/s\"\ndelay = \"300ms\"\nqueue = \"12000 packets\"\n";
    let sent = |batch| {
        let mut scenario = Scenario::from_toml(text, "long").unwrap_or_else(|error| panic!("{error}"));
        scenario.set("transport.sack_batch", batch).unwrap_or_else(|error| panic!("{error}"));
        checked(&scenario).run.data_chunks as f64
    };
    let (each_second, batches) = (sent("1"), sent("4"));
    assert!(batches >= 0.99 * each_second, "{batches} of {each_second}");
}
