//! Links that carry smaller packets than their neighbours, and say nothing about it.

use tresse_sim::{Outcome, Scenario};

use crate::common::checked;

/// Two paths of 10 Mbit/s, with `lines` added to the second one; everything sent within 20 s comes out.
fn transfer(lines: &str, switches: &str) -> Outcome {
    let text = format!(
        r#"
        preset = "cmt"
        settle = "1s"
        measure = "60s"
        [transport]
        {switches}
        [traffic]
        streams = 2
        message_size = "20kB"
        stop = "20s"
        [[path]]
        rate = "10Mbit/s"
        delay = "10ms"
        [[path]]
        rate = "10Mbit/s"
        delay = "10ms"
        {lines}
        "#
    );
    let outcome = checked(&Scenario::from_toml(&text, "mtu").unwrap_or_else(|error| panic!("{error}")));
    assert_eq!(outcome.run.messages_delivered, outcome.run.messages_accepted, "{lines}");
    assert_eq!(outcome.association.ended.as_deref(), Some("shut down"), "{lines}");
    outcome
}

/// Bytes delivered, in megabytes: 20 s of 20 Mbit/s are 50.
fn megabytes(outcome: &Outcome) -> f64 {
    outcome.run.messages_delivered as f64 * 20e3 / 1e6
}

#[test]
fn a_narrow_link_costs_no_more_than_its_smaller_packets() {
    let (wide, narrow) = (transfer("", ""), transfer("mtu = \"1400B\"", ""));
    assert_eq!(wide.paths[1].dropped_too_large, 0);
    // Three probes of each size that does not pass, and nothing else, was too large.
    assert!((3..=24).contains(&narrow.paths[1].dropped_too_large), "{}", narrow.paths[1].dropped_too_large);
    assert_eq!(narrow.paths[1].timeouts, 0);
    let ratio = megabytes(&narrow) / megabytes(&wide);
    assert!((0.97..1.0).contains(&ratio), "{ratio}");
}

#[test]
fn a_link_that_becomes_narrow_in_mid_transfer_is_noticed() {
    let wide = transfer("", "");
    let narrowed = transfer("change = [{ at = \"8s\", mtu = \"1300B\" }]", "");
    assert!(narrowed.paths[1].dropped_too_large > 0);
    assert!(narrowed.paths[1].timeouts <= 4, "{}", narrowed.paths[1].timeouts);
    let ratio = megabytes(&narrowed) / megabytes(&wide);
    assert!(ratio > 0.85, "{ratio}");
}

#[test]
fn without_the_search_a_narrow_link_carries_no_full_packet() {
    let outcome = transfer("mtu = \"1400B\"", "mtu_discovery = false");
    let with = transfer("mtu = \"1400B\"", "");
    assert!(megabytes(&outcome) < 0.6 * megabytes(&with), "{} MB", megabytes(&outcome));
}

#[test]
fn the_search_costs_next_to_nothing_where_all_is_well() {
    // With CUBIC a path rests for two seconds after slow start in one of the two, which has nothing to do with the search.
    let transfer = |switches: &str| transfer("", &format!("congestion_control = \"rfc9260\"\n{switches}"));
    let (with, without) = (transfer(""), transfer("mtu_discovery = false"));
    let ratio = megabytes(&with) / megabytes(&without);
    assert!((0.995..1.005).contains(&ratio), "{ratio}");
}
