//! What late chunks of a slow path cost ordered data, and what sending them again early saves.

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
            let with = [("transport.chunk_rescheduling", rule), ("transport.moved_chunk_cut", cut)];
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
    let repeat = ("transport.opportunistic_retransmission", "true");
    let punish = ("transport.penalisation", "true");
    let (poor, repeated, both) = (run(&[]), run(&[repeat]), run(&[repeat, punish]));
    assert!(repeated > 1.5 * poor, "{repeated}, without {poor}");
    assert!(both > 1.5 * poor, "{both}, without {poor}");
}
