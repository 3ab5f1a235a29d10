//! Cost of a slow path's late chunks for ordered data, and the gain of reinjecting them early.

use tresse_sim::{Outcome, Scenario};

use crate::common::checked;

/// Ordered data over a path of 20 Mbit/s and one of 250 kbit/s, whose queue alone holds more than a second.
fn unlike_paths(overrides: &[(&str, &str)]) -> Outcome {
    let text = r#"
        preset = "pfldnet2010"
        settle = "5s"
        measure = "20s"
        [transport]
        send_buffer = "300KiB"
        receive_buffer = "300KiB"
        [[path]]
        rate = "20Mbit/s"
        delay = "5ms"
        queue = "50 packets"
        [[path]]
        rate = "250kbit/s"
        delay = "5ms"
        queue = "50 packets"
        "#;
    let mut scenario = Scenario::from_toml(text, "unlike").unwrap_or_else(|error| panic!("{error}"));
    scenario.set_all(overrides.iter().copied()).unwrap_or_else(|error| panic!("{error}"));
    checked(&scenario)
}

#[test]
fn rescheduling_keeps_the_fast_path_busy_although_the_slow_one_is_late() {
    for rule in ["sender", "both"] {
        for cut in ["bytes", "loss"] {
            let with =
                [("transport.chunk_rescheduling", rule), ("transport.experiment.reinjection_cut", cut)];
            let (on, off) = (unlike_paths(&with), unlike_paths(&[]));
            let (good, poor) = (on.throughput_mbps, off.throughput_mbps);
            assert!(good > 1.5 * poor, "{rule}, {cut}: {good}, without {poor}");
        }
    }
}

/// The receive buffer is short, nothing splits it, and the slow path fills it.
#[test]
fn what_mptcp_does_helps_where_the_receive_buffer_is_short_and_nothing_splits_it() {
    let short = [("transport.receive_buffer", "128KiB"), ("transport.buffer_split", "none")];
    let run = |switches: &[(&str, &str)]| unlike_paths(&[&short[..], switches].concat()).throughput_mbps;
    let repeat = ("transport.experiment.opportunistic_retransmission", "true");
    let punish = ("transport.experiment.penalisation", "true");
    let (poor, repeated, both) = (run(&[]), run(&[repeat]), run(&[repeat, punish]));
    assert!(repeated > 1.5 * poor, "{repeated}, without {poor}");
    assert!(both > 1.5 * poor, "{both}, without {poor}");
}

/// T3 of a path waits for chunks that left it early too, so that leaving it hides nothing.
#[test]
fn a_path_that_dies_silently_is_found_as_soon_as_without_rescheduling() {
    let found = |rule: &str| {
        let text = r#"
            preset = "cmt"
            settle = "5s"
            measure = "10s"
            [transport]
            loss_detection = "rfc9260"
            send_buffer = "200KiB"
            receive_buffer = "200KiB"
            [[path]]
            rate = "10Mbit/s"
            delay = "10ms"
            [[path]]
            rate = "10Mbit/s"
            delay = "10ms"
            [[path.change]]
            at = "5s"
            outage = true
            "#;
        let mut scenario = Scenario::from_toml(text, "silent").unwrap_or_else(|error| panic!("{error}"));
        let overrides = [("transport.chunk_rescheduling", rule)];
        scenario.set_all(overrides).unwrap_or_else(|error| panic!("{error}"));
        let outcome = checked(&scenario);
        assert!(outcome.throughput_mbps > 6.0, "{rule}: {} Mbit/s over the other", outcome.throughput_mbps);
        (outcome.paths[1].timeouts, outcome.paths[1].state, outcome.paths[0].timeouts)
    };
    let without = found("off");
    assert_eq!((without.1, without.2), (Some("potentially_failed"), 0));
    for rule in ["sender", "receiver", "both", "by_deadline"] {
        assert_eq!(found(rule), without, "{rule}");
    }
}
