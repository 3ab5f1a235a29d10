//! Impairments of links: the transport survives them, counters show them, and they change nothing when they are off.

use tresse_sim::{Outcome, PathOutcome, RunOptions, Scenario, run};

use crate::common::{checked, scenario, two_paths};

/// The paper's two paths with `lines` added to the second one, for a transfer that has ample time to end.
fn impaired(lines: &str, overrides: &[(&str, &str)]) -> Scenario {
    let text = format!(
        r#"
        preset = "pfldnet2010"
        settle = "1s"
        measure = "200s"
        [traffic]
        streams = 2
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
    let mut scenario = Scenario::from_toml(&text, "impaired").unwrap_or_else(|error| panic!("{error}"));
    scenario.set_all(overrides.iter().copied()).unwrap_or_else(|error| panic!("{error}"));
    scenario
}

/// Runs it checked; everything must have come out by the end.
fn survived(lines: &str, overrides: &[(&str, &str)]) -> Outcome {
    let outcome = checked(&impaired(lines, overrides));
    let facts = &outcome.run;
    assert!(facts.messages_accepted > 1000, "{lines}: {outcome:#?}");
    assert_eq!(facts.messages_delivered, facts.messages_accepted, "{lines}");
    assert_eq!(outcome.association.ended.as_deref(), Some("shut down"), "{lines}");
    outcome
}

/// Each impairment with what must have been counted on the path that has it.
type Seen = fn(&PathOutcome) -> u64;
const IMPAIRMENTS: &[(&str, Seen)] = &[
    ("discipline = \"red\"\nred = { min_threshold = 5, max_threshold = 30 }", |path| path.dropped_early),
    ("discipline = \"red\"\nred = { min_threshold = 5, uniform_drops = true }", |path| path.dropped_early),
    ("discipline = \"codel\"", |path| path.dropped_early),
    ("discipline = \"codel\"\nqueue = \"5 packets\"", |path| path.dropped_queue_full),
    ("bit_error_rate = 1e-6", |path| path.damaged),
    ("gilbert_elliott = { p = \"0.5%\", r = 0.3 }", |path| path.dropped_loss),
    ("duplicate = \"5%\"", |path| path.duplicated),
    ("reorder = \"2%\"\nreorder_delay = \"15ms\"", |path| path.late),
    ("change = [{ at = \"5s\", outage = true }, { at = \"9s\", outage = false }]", |path| {
        path.dropped_outage
    }),
    ("change = [{ at = \"5s\", loss = \"10%\" }]", |path| path.dropped_loss),
    ("change = [{ at = \"5s\", rate = \"100kbit/s\" }, { at = \"15s\", rate = \"5Mbit/s\" }]", |path| {
        path.chunks_sent
    }),
    ("change = [{ at = \"5s\", delay = \"200ms\" }, { at = \"9s\", delay = \"1ms\" }]", |path| {
        path.chunks_sent
    }),
];

#[test]
fn every_impairment_is_survived_and_counted() {
    for (lines, seen) in IMPAIRMENTS {
        for preset in ["pfldnet2010", "cmt"] {
            let outcome = survived(lines, &[("preset", preset)]);
            assert!(seen(&outcome.paths[1]) > 0, "{preset}, {lines}: {:#?}", outcome.paths[1]);
        }
    }
}

#[test]
fn all_impairments_together_are_survived() {
    let all = "discipline = \"codel\"\nbit_error_rate = 1e-6\nduplicate = \"2%\"\nreorder = \"1%\"
        reorder_delay = \"5ms\"\ngilbert_elliott = { p = 0.01, r = 0.5 }
        change = [{ at = \"3s\", outage = true }, { at = \"4s\", outage = false, delay = \"2ms\" }]";
    for seed in ["1", "2", "3"] {
        survived(all, &[("seed", seed)]);
    }
}

#[test]
fn damaged_packets_are_delivered_and_found_by_their_checksum() {
    let scenario = impaired("bit_error_rate = 2e-6", &[]);
    let outcome = checked(&scenario);
    let discarded = |discards: &tresse_sim::Discarded| {
        discards.0.iter().find(|(reason, _)| *reason == "bad_checksum").map_or(0, |(_, count)| *count)
    };
    let path = &outcome.paths[1];
    // The discards are those of the whole run, the path's counters those after a second.
    let delivered = path.damaged - path.dropped_damaged;
    let found = discarded(&outcome.association.receiver_discards);
    assert!(delivered > 100 && found >= delivered, "{found} of {delivered}");
    assert!(found - delivered < 50, "{found} of {delivered}");
    assert!(discarded(&outcome.association.sender_discards) > 0, "SACKs are damaged as well");
    let verified = RunOptions { checksums: true, ..RunOptions::default() };
    assert_eq!(run(&scenario, verified).expect("it runs"), outcome, "with real checksums throughout");
}

#[test]
fn an_outage_stops_its_path_for_as_long_as_it_lasts() {
    let outage = "change = [{ at = \"5s\", outage = true }, { at = \"9s\", outage = false }]";
    let measured = |settle, measure| {
        let times = [("settle", settle), ("measure", measure), ("traffic.stop", "1h")];
        checked(&impaired(outage, &times))
    };
    // What was in the air at 5 s has arrived after 10 ms.
    let during = measured("5020ms", "3970ms");
    assert_eq!((during.paths[1].wire_mbps, during.paths[1].loss), (0.0, 1.0), "{during:#?}");
    assert!(during.paths[0].wire_mbps > 1.0, "the other path goes on: {during:#?}");
    let after = measured("20s", "5s");
    assert_eq!(after.paths[1].dropped_outage, 0);
    assert!(after.paths[1].wire_mbps > 5.0, "{after:#?}");
}

#[test]
fn active_queue_management_keeps_the_queue_short() {
    let mean = |lines: &str| checked(&two_paths_with(lines)).paths[1].queue_mean_packets;
    let standing = mean("discipline = \"drop_tail\"");
    for lines in
        ["discipline = \"codel\"", "discipline = \"red\"\nred = { min_threshold = 5, max_threshold = 15 }"]
    {
        let managed = mean(lines);
        assert!(managed < standing / 2.0, "{lines}: {managed} packets, {standing} without");
    }
}

/// Packets that CoDel holds when the measurement begins count when CoDel decides about them.
#[test]
fn all_that_a_dead_link_drops_is_a_share_of_one() {
    let text = r#"
        settle = "2s"
        measure = "50ms"
        start_jitter = "0s"
        [[path]]
        rate = "1Mbit/s"
        delay = "50ms"
        discipline = "codel"
        change = [{ at = "2s", outage = true }]
        "#;
    let scenario = Scenario::from_toml(text, "outage").unwrap_or_else(|error| panic!("{error}"));
    let path = &checked(&scenario).paths[0];
    assert!(path.dropped_outage > 2, "{path:?}");
    assert_eq!(path.loss, 1.0);
}

/// Buffers large enough to keep a queue standing.
fn two_paths_with(lines: &str) -> Scenario {
    let large = [
        ("transport.send_buffer", "1MiB"),
        ("transport.receive_buffer", "1MiB"),
        ("settle", "10s"),
        ("measure", "20s"),
        ("traffic.stop", "1h"),
    ];
    impaired(lines, &large)
}

#[test]
fn impaired_runs_repeat() {
    let scenario = impaired(
        "discipline = \"codel\"\nbit_error_rate = 1e-6\nduplicate = \"2%\"\nreorder = \"1%\"",
        &[("measure", "5s")],
    );
    let reference = checked(&scenario);
    assert_eq!(checked(&scenario), reference);
    let again = Scenario::from_toml(&scenario.to_toml(), "impaired").expect("what we print we read");
    assert_eq!(checked(&again).run.trace_hash, reference.run.trace_hash);
}

/// Generators are the impairments' own: one that hardly ever strikes leaves the losses as they were.
#[test]
fn an_impairment_does_not_change_what_others_draw() {
    let lost = |duplicate| {
        let overrides = [("path.1.loss", "1%"), ("path.1.duplicate", duplicate)];
        checked(&two_paths(&overrides)).run.trace_hash
    };
    assert_eq!(lost("0"), lost("1e-15"));
}

#[test]
fn what_sacks_seem_to_take_back_is_no_throughput() {
    // SACKs that overtake each other on the way back look like reneging.
    let reordered = scenario(
        "pfldnet2010/two-paths.toml",
        &[
            ("settle", "0s"),
            ("measure", "20s"),
            ("traffic.volume", "2MB"),
            ("path.0.reorder", "0.3"),
            ("path.0.reorder_delay", "10ms"),
            ("path.1.reorder", "0.3"),
            ("path.1.reorder_delay", "10ms"),
        ],
    );
    let outcome = checked(&reordered);
    let acknowledged: f64 = outcome.paths.iter().map(|path| path.throughput_mbps).sum();
    assert!(outcome.completed_s.is_some(), "everything was delivered");
    assert!(acknowledged <= outcome.throughput_mbps * (1.0 + 1e-9), "{acknowledged} {outcome:?}");
}
