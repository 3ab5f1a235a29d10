//! Promises of each congestion controller, as far as disjoint paths show them.

use crate::common::{checked, scenario, two_paths};
use crate::fairness::{COUPLED, UNCOUPLED};
use tresse_sim::{Outcome, Scenario};

/// User data that a path of 10 Mbit/s carries: 1,452 of 1,500 bytes.
const PATH_MBPS: f64 = 9.68;

fn all() -> impl Iterator<Item = &'static str> {
    UNCOUPLED.into_iter().chain(COUPLED)
}

/// Two paths of 10 Mbit/s and 20 ms with buffers that are no limit, but for the overrides; with DAC, as by default.
fn run(controller: &str, overrides: &[(&str, &str)]) -> Outcome {
    let base = [
        ("transport.congestion_control", controller),
        ("transport.delayed_ack", "true"),
        ("transport.send_buffer", "2MiB"),
        ("transport.receive_buffer", "2MiB"),
        ("settle", "8s"),
        ("measure", "8s"),
    ];
    checked(&two_paths(&[&base[..], overrides].concat()))
}

#[track_caller]
fn assert_carries(least_mbps: f64, controller: &str, outcome: &Outcome) {
    let mbps = outcome.throughput_mbps;
    assert!(mbps >= 0.95 * least_mbps, "{controller}: {mbps} of {least_mbps}: {:#?}", outcome.paths);
}

#[test]
fn two_equal_paths_are_filled_by_all_but_cmt_rp_v1() {
    for controller in all().filter(|&controller| controller != "cmt_rp_v1") {
        assert_carries(2.0 * PATH_MBPS, controller, &run(controller, &[]));
    }
}

/// A loss leaves one packet of a window that is not more than half of all, and the window then grows
/// by the path's small part of all thresholds: meanwhile the path is not full.
#[test]
fn cmt_rp_v1_leaves_one_of_two_equal_paths_at_a_time() {
    let outcome = run("cmt_rp_v1", &[]);
    assert_carries(1.5 * PATH_MBPS, "cmt_rp_v1", &outcome);
    let fuller = outcome.paths.iter().map(|path| path.throughput_mbps).fold(0.0, f64::max);
    assert!(fuller >= 0.95 * PATH_MBPS, "{:#?}", outcome.paths);
}

#[test]
fn unlike_paths_are_filled_by_all() {
    for controller in all() {
        let outcome = run(controller, &[("path.1.rate", "5Mbit/s"), ("path.1.delay", "40ms")]);
        assert_carries(1.5 * PATH_MBPS, controller, &outcome);
    }
}

#[test]
fn a_lossy_path_makes_none_worse_than_the_other_path_alone_and_coupled_ones_leave_it() {
    let lossy = |controller| {
        let outcome = run(controller, &[("path.1.loss", "1%")]);
        assert_carries(PATH_MBPS, controller, &outcome);
        outcome.paths[1].throughput_mbps
    };
    let [rfc9260, cubic] = UNCOUPLED.map(lossy);
    assert!(cubic >= rfc9260, "{cubic}, {rfc9260}");
    for controller in COUPLED {
        let coupled = lossy(controller);
        assert!(coupled <= 0.8 * rfc9260, "{controller}: {coupled}, rfc9260: {rfc9260}");
    }
}

/// Queues of 200 packets behind paths that 42 fill. `rfc9260` has to fill the queue to find the end of its slow start.
#[test]
fn the_first_slow_start_of_cubic_ends_before_a_deep_queue_is_full() {
    let dropped = |controller: &str, paths: usize| {
        let deep = "[[path]]\nrate = \"10Mbit/s\"\ndelay = \"25ms\"\nqueue = \"200 packets\"\n";
        let text = format!(
            "preset = \"cmt\"\nsettle = \"0s\"\nmeasure = \"3s\"\n[transport]\nsend_buffer = \"4MiB\"\n\
             receive_buffer = \"4MiB\"\ncongestion_control = \"{controller}\"\n{}",
            deep.repeat(paths)
        );
        let outcome = checked(&Scenario::from_toml(&text, "deep").unwrap_or_else(|error| panic!("{error}")));
        outcome.paths.iter().map(|path| path.dropped_queue_full).sum::<u64>()
    };
    assert_eq!(dropped("cubic", 1), 0);
    assert!(dropped("rfc9260", 1) > 100, "where slow start goes on to a loss");
    // Reports are more frequent over two paths, and the five rounds of slow growth add more to a window.
    let (cubic, rfc9260) = (dropped("cubic", 2), dropped("rfc9260", 2));
    assert!(cubic <= rfc9260 / 2, "{cubic} of {rfc9260}");
}

/// The scheduler limits both paths and not their windows, when one of them grows from 10 to 75 ms: that is no queue, and the
/// window that is too small now grows as in slow start.
#[test]
fn a_path_that_becomes_longer_before_its_window_limits_is_soon_full_again() {
    for grows in ["path.0.change.0.delay", "path.1.change.0.delay"] {
        let overrides = [(grows, "75ms"), ("settle", "9454ms"), ("measure", "500ms")];
        let outcome = checked(&scenario("adaptive/changing.toml", &overrides));
        assert!(outcome.throughput_mbps > 0.95 * 2.0 * PATH_MBPS, "{grows}: {}", outcome.throughput_mbps);
    }
}

#[test]
fn everything_arrives_over_lossy_paths_with_every_controller() {
    let overrides = [
        ("path.0.loss", "3%"),
        ("path.1.loss", "10%"),
        ("path.1.queue", "10 packets"),
        ("traffic.stop", "10s"),
        ("settle", "3s"),
        ("measure", "200s"),
    ];
    for controller in all() {
        let outcome = run(controller, &overrides);
        assert!(outcome.run.messages_accepted > 20, "{controller}: {:?}", outcome.run);
        assert_eq!(outcome.run.messages_delivered, outcome.run.messages_accepted, "{controller}");
        assert_eq!(outcome.association.ended.as_deref(), Some("shut down"), "{controller}");
    }
}
