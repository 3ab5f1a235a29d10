//! Two paths together are not slower than the better one, whatever the paths, the buffers and the messages are like. Each
//! setup is one that random ones had brought to light: there both together carried an eighth to two thirds of it.

use crate::common::two_paths;
use tresse_sim::{RunOptions, Scenario, run};

/// Rate, delay and loss.
type Link = (&'static str, &'static str, &'static str);

/// Throughput of the preset `cmt` over both paths as a part of that over the first alone.
fn both_to_one(better: Link, other: Link, buffer: &str, messages: (&str, &str)) -> f64 {
    varying_both_to_one((better, "0s"), (other, "0s"), (buffer, buffer), messages)
}

/// The same over paths on which each packet takes up to so much longer by chance, with a send and a receive buffer.
fn varying_both_to_one(
    (better, jitter): (Link, &str),
    (other, more_jitter): (Link, &str),
    buffers: (&str, &str),
    messages: (&str, &str),
) -> f64 {
    let mut settings = vec![
        ("preset", "cmt"),
        ("settle", "5s"),
        ("measure", "6s"),
        ("transport.send_buffer", buffers.0),
        ("transport.receive_buffer", buffers.1),
        ("traffic.message_size", messages.0),
        ("traffic.streams", messages.1),
    ];
    settings.extend([("path.0.rate", better.0), ("path.0.delay", better.1), ("path.0.loss", better.2)]);
    settings.extend([("path.1.rate", other.0), ("path.1.delay", other.1), ("path.1.loss", other.2)]);
    settings.extend([("path.0.jitter", jitter), ("path.1.jitter", more_jitter)]);
    let carried = |more: &[(&str, &str)]| {
        let scenario = two_paths(&[&settings[..], more].concat());
        run(&scenario, RunOptions::default()).unwrap_or_else(|error| panic!("{error}")).throughput_mbps
    };
    carried(&[]) / carried(&[("transport.concurrent", "false")])
}

fn assert_not_slower(ratio: f64) {
    assert!(ratio >= 0.95, "both paths carry {ratio:.3} of what the better one does");
}

#[test]
fn beside_a_short_path_a_long_one_rests_where_the_buffer_is_short() {
    let ratio = both_to_one(("20Mbit/s", "3ms", "0"), ("10Mbit/s", "130ms", "0"), "38KiB", ("200B", "4"));
    assert_not_slower(ratio);
}

#[test]
fn beside_a_fast_path_a_thin_one_rests_where_the_buffer_is_short() {
    let ratio = both_to_one(("19Mbit/s", "3ms", "0"), ("1Mbit/s", "20ms", "0"), "33KiB", ("200B", "4"));
    assert_not_slower(ratio);
}

#[test]
fn a_path_that_loses_is_not_slowed_down_by_one_that_is_thin_and_long() {
    let ratio = both_to_one(("8Mbit/s", "4ms", "0.2%"), ("600kbit/s", "100ms", "0"), "20KiB", ("200B", "4"));
    assert_not_slower(ratio);
}

#[test]
fn what_a_short_path_loses_does_not_go_again_over_a_long_one() {
    let ratio =
        both_to_one(("20Mbit/s", "2ms", "1.8%"), ("20Mbit/s", "101ms", "0.2%"), "151KiB", ("38656B", "1"));
    assert_not_slower(ratio);
}

#[test]
fn a_buffer_that_the_better_path_nearly_needs_is_not_given_to_the_other() {
    let ratio = both_to_one(("13Mbit/s", "24ms", "0"), ("5Mbit/s", "125ms", "0"), "125KiB", ("200B", "1"));
    assert_not_slower(ratio);
}

/// Unordered messages of a quarter of the buffer. The estimate of the better path must not stay at the few packets that its
/// first rounds had in flight.
#[test]
fn a_fast_path_that_the_buffer_limits_from_the_start_is_not_taken_to_be_full() {
    let text = r#"
        preset = "cmt"
        settle = "8s"
        measure = "10s"
        transport = { send_buffer = "81KiB", receive_buffer = "81KiB" }
        traffic = { streams = 2, message_size = "20736B", ordered = false }
        path = [
            { rate = "559kbit/s", delay = "36.33ms", queue = "100 packets" },
            { rate = "52.402Mbit/s", delay = "6.89ms", queue = "106 packets" },
        ]
    "#;
    let scenario = Scenario::from_toml(text, "limited").expect("a good scenario");
    let outcome = run(&scenario, RunOptions::default()).unwrap_or_else(|error| panic!("{error}"));
    assert!(outcome.throughput_mbps > 33.0, "{}", outcome.throughput_mbps);
}

#[test]
fn a_fast_path_whose_delay_varies_is_not_taken_to_be_full() {
    let better = (("30Mbit/s", "1.6ms", "0"), "1.6ms");
    let other = (("1.4Mbit/s", "2.4ms", "0"), "2.4ms");
    assert_not_slower(varying_both_to_one(better, other, ("113KiB", "113KiB"), ("1000B", "4")));
}

/// Less than half of it without what `sharing/delivery_rate.rs` knows.
#[test]
fn a_path_that_varies_nearly_as_much_as_it_is_long_is_filled_while_that_brings_more() {
    let better = (("25Mbit/s", "11ms", "0"), "9ms");
    let other = (("8Mbit/s", "126ms", "0"), "100ms");
    let ratio = varying_both_to_one(better, other, ("158KiB", "1MiB"), ("40448B", "16"));
    assert!(ratio >= 0.8, "both paths carry {ratio:.3} of what the better one does");
}
