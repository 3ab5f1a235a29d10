//! Links that damage packets, and what reports of it save (PKTDROP).

use tresse_sim::{Outcome, Scenario};

use crate::common::checked;

/// One path of 20 Mbit/s and 10 ms that damages one packet in forty, and carries SACKs back as badly.
fn damaging(overrides: &[(&str, &str)]) -> Outcome {
    let text = r#"
        preset = "cmt"
        settle = "2s"
        measure = "20s"
        [transport]
        send_buffer = "512KiB"
        receive_buffer = "512KiB"
        [[path]]
        rate = "20Mbit/s"
        delay = "10ms"
        queue = "50 packets"
        bit_error_rate = 2e-6
        "#;
    let mut scenario = Scenario::from_toml(text, "damaging").unwrap_or_else(|error| panic!("{error}"));
    scenario.set_all(overrides.iter().copied()).unwrap_or_else(|error| panic!("{error}"));
    checked(&scenario)
}

/// User data of a packet of 1,500 bytes, times the share of packets that come undamaged, times 20 Mbit/s.
const POSSIBLE_MBPS: f64 = 20.0 * 0.968 * 0.976;

/// One damaged packet in sixty is hit in its headers and can be reported by nobody: the window still pays for those.
#[test]
fn with_reports_little_but_the_retransmissions_is_lost() {
    for seed in ["1", "2", "3"] {
        let with = damaging(&[("seed", seed)]);
        let without = damaging(&[("seed", seed), ("transport.drop_reports", "false")]);
        let (good, poor) = (with.throughput_mbps, without.throughput_mbps);
        assert!(good > 0.8 * POSSIBLE_MBPS && good < 1.01 * POSSIBLE_MBPS, "{good} of {POSSIBLE_MBPS}");
        assert!(good > 1.5 * poor, "{good}, without {poor}");
        let path = &with.paths[0];
        assert!(path.drop_reports > 20 * path.fast_retransmits, "{path:#?}");
        assert_eq!(without.paths[0].drop_reports, 0);
    }
}

/// Losses by a full queue still halve the window: the queue does not stay full.
#[test]
fn reports_do_not_hide_congestion() {
    let narrow = [("path.0.queue", "10 packets"), ("path.0.bit_error_rate", "1e-7")];
    let outcome = damaging(&narrow);
    let path = &outcome.paths[0];
    assert!(path.dropped_queue_full > 20 && path.fast_retransmits >= path.dropped_queue_full, "{path:#?}");
    assert!(path.loss < 0.01, "{path:#?}");
}
