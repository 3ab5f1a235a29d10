//! Promises of each congestion controller, as far as disjoint paths show them.

use crate::common::{checked, two_paths};
use crate::fairness::{COUPLED, UNCOUPLED};
use tresse_sim::Outcome;

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
