//! TCP that crosses the paths: whether it behaves as TCP is known to, and how the association and it get along.

use crate::common::{checked, scenario};
use tresse_sim::{Outcome, Scenario};

/// User data's share of a full TCP packet: 1,460 of 1,500 bytes.
const PAYLOAD: f64 = 1460.0 / 1500.0;

/// One path of 10 Mbit/s and 20 ms, on which the association stays silent.
const SILENT: &str = r#"
settle = "10s"
measure = "60s"
[traffic]
start = "900h"
[[path]]
rate = "10Mbit/s"
delay = "20ms"
queue = "50 packets"
"#;

const FLOW: &str = "[[cross]]\nkind = \"bulk\"\n";

fn outcome(text: &str, overrides: &[(&str, &str)]) -> Outcome {
    let mut scenario = Scenario::from_toml(text, "cross").unwrap_or_else(|error| panic!("{error}"));
    scenario.set_all(overrides.iter().copied()).unwrap_or_else(|error| panic!("{error}"));
    let outcome = checked(&scenario);
    assert_eq!(outcome.run.unroutable_packets, 0);
    outcome
}

#[test]
fn one_flow_fills_the_link() {
    for reverse in ["false", "true"] {
        let outcome = outcome(&format!("{SILENT}{FLOW}"), &[("cross.0.reverse", reverse)]);
        let flow = &outcome.cross[0];
        assert!(flow.throughput_mbps >= 0.95 * 10.0 * PAYLOAD, "{flow:?}");
        assert!(flow.throughput_mbps <= 10.0 * PAYLOAD + 0.01, "{flow:?}");
        // A saw-tooth over 83 segments is 42 round trips of 40 to 100 ms long.
        assert!((10..60).contains(&flow.recoveries) && flow.timeouts == 0, "{flow:?}");
        assert!(flow.segments_resent * 50 < flow.segments, "{flow:?}");
    }
}

#[test]
fn two_flows_share_a_link_fairly() {
    let outcome = outcome(&format!("{SILENT}{FLOW}{FLOW}"), &[("measure", "240s")]);
    let [one, other] = [0, 1].map(|pair| outcome.cross[pair].throughput_mbps);
    assert!(one + other >= 0.95 * 10.0 * PAYLOAD, "{one} + {other}");
    assert!(one.min(other) / one.max(other) > 0.75, "{one} and {other}");
}

/// Mathis, Semke, Mahdavi and Ott 1997: a window that grows by a segment a round trip, and is halved with probability p
/// for each segment, gives MSS / RTT x sqrt(3 / 2p), and less where timeouts are frequent.
#[test]
fn loss_takes_its_toll_by_the_square_root() {
    let rate = |loss: &str| {
        let settings = [("path.0.rate", "100Mbit/s"), ("path.0.delay", "50ms"), ("path.0.loss", loss)];
        let long = [("path.0.reverse.loss", "0"), ("measure", "600s")];
        outcome(&format!("{SILENT}{FLOW}"), &[&settings[..], &long[..]].concat()).cross[0].throughput_mbps
    };
    let law = |loss: f64| 1460.0 * 8e-6 / 0.1 * (1.5 / loss).sqrt();
    let rates = [0.001, 0.004, 0.016].map(|loss| (loss, rate(&loss.to_string())));
    for (loss, rate) in rates {
        let ratio = rate / law(loss);
        assert!((0.7..1.3).contains(&ratio), "{rate} Mbit/s at a loss of {loss}, {ratio} times the law");
    }
    for pair in rates.windows(2) {
        let ratio = pair[0].1 / pair[1].1;
        assert!((1.6..2.6).contains(&ratio), "four times the loss takes {ratio} times the rate");
    }
}

#[test]
fn a_flow_ends_when_it_is_told_to() {
    let outcome = outcome(&format!("{SILENT}{FLOW}"), &[("cross.0.stop", "5s")]);
    assert_eq!((outcome.cross[0].throughput_mbps, outcome.cross[0].segments), (0.0, 0));
    assert!(outcome.run.packets > 1000);
}

const WEB: &str = "[[cross]]\nkind = \"web\"\nusers = 5\nthink = \"500ms\"\n";

#[test]
fn an_answer_on_an_idle_path_takes_two_round_trips() {
    let small = [("cross.0.response", "1000B"), ("cross.0.response_shape", "1000")];
    for reverse in ["false", "true"] {
        let outcome =
            outcome(&format!("{SILENT}{WEB}"), &[&small[..], &[("cross.0.reverse", reverse)]].concat());
        let web = &outcome.cross[0];
        let (answers, wait) = (web.answers.expect("web"), web.answer_ms.expect("answers came"));
        // Two round trips of 40 ms, four packets of at most 1,060 bytes.
        assert!((80.0..83.0).contains(&wait), "{web:?}");
        // Five users with a cycle of 582 ms; standard error 4 %.
        assert!((f64::from(answers as u32) / (5.0 * 60.0 / 0.582) - 1.0).abs() < 0.15, "{web:?}");
        assert_eq!(web.timeouts, 0);
    }
}

#[test]
fn answers_survive_loss() {
    let lossy = [("path.0.loss", "3%"), ("measure", "120s"), ("cross.0.rto_min", "200ms")];
    let outcome = outcome(&format!("{SILENT}{WEB}"), &lossy);
    let web = &outcome.cross[0];
    assert!(web.answers.expect("web") > 300 && web.segments_resent > 50, "{web:?}");
}

#[test]
fn the_association_and_a_flow_share_a_link() {
    let both = [("traffic.start", "0s"), ("preset", "rfc9260"), ("measure", "120s")];
    let outcome = outcome(&format!("{SILENT}{FLOW}"), &both);
    let (ours, theirs) = (outcome.throughput_mbps, outcome.cross[0].throughput_mbps);
    assert!(ours + theirs >= 0.93 * 10.0 * PAYLOAD, "{ours} and {theirs}");
    assert!((0.5..2.0).contains(&(ours / theirs)), "{ours} and {theirs}");
}

#[test]
fn cross_traffic_is_drawn_from_the_seed() {
    let hash = |seed| outcome(&format!("{SILENT}{WEB}"), &[("measure", "5s"), ("seed", seed)]).run.trace_hash;
    assert_eq!(hash("1"), hash("1"));
    assert_ne!(hash("1"), hash("2"));
}

#[test]
fn captures_show_both_protocols() {
    let text = format!("{SILENT}{FLOW}");
    let mut scenario = Scenario::from_toml(&text, "cross").expect("a good scenario");
    scenario.set_all([("settle", "1s"), ("measure", "2s"), ("traffic.start", "0s")]).expect("good settings");
    let mut file = Vec::new();
    let options = tresse_sim::RunOptions { pcap: Some(&mut file), ..Default::default() };
    let captured = tresse_sim::run(&scenario, options).expect("it runs");
    assert_eq!(captured, checked(&scenario), "a capture changes nothing");
    let packets = |protocol: u8| {
        // An IPv4 header of five words from 10.0.0.0/15.
        file.windows(13).filter(|at| at[0] == 0x45 && at[9] == protocol && at[12] == 10).count()
    };
    assert!(packets(6) > 100 && packets(132) > 100, "{} and {}", packets(6), packets(132));
}

/// A stream with little to say beside one that is saturated (INFOCOM 2011 workshops).
#[test]
fn short_messages_pass_bulk_by_priority() {
    let talk =
        "[traffic]\nstreams = 2\n[[traffic.sporadic]]\nstream = 0\ngap = \"200ms\"\nsize = \"1B..100B\"\n";
    let path = "[[path]]\nrate = \"1Mbit/s\"\ndelay = \"20ms\"\nqueue = \"10 packets\"\n[transport]\nsend_buffer = \"64KiB\"\n";
    let text = format!("settle = \"5s\"\nmeasure = \"60s\"\npreset = \"rfc9260\"\n{talk}{path}");
    let mean = |scheduler: &str| {
        let config = if scheduler == "priority" { "0=1,1=2" } else { "" };
        let settings =
            [("transport.stream_scheduler", scheduler), ("transport.stream_scheduler_config", config)];
        let outcome = outcome(&text, &settings);
        assert!((200..400).contains(&outcome.streams[0].messages), "{outcome:#?}");
        assert!(outcome.throughput_mbps > 0.9, "{outcome:#?}");
        outcome.streams[0].delay_ms.expect("messages came").mean
    };
    let (fcfs, priority) = (mean("first_come"), mean("priority"));
    assert!(priority < 0.9 * fcfs, "{fcfs} ms first come, first served, and {priority} ms by priority");
}

#[test]
fn the_dumbbells_of_the_repository_run() {
    // Where the first message comes in a moment, and where it waits for what was sent before it.
    for (path, measure) in [("infocom2011/dumbbell.toml", "5s"), ("infocom2011/slow-dumbbell.toml", "100s")] {
        let outcome = checked(&scenario(path, &[("settle", "2s"), ("measure", measure)]));
        assert_eq!(outcome.cross.len(), 5, "{path}");
        assert!(outcome.streams[0].messages > 0 && outcome.cross[0].throughput_mbps > 0.0, "{outcome:#?}");
    }
}

/// Two paths of 10 Mbit/s, a TCP flow on each. Shares that follow the paths give way to whoever fills queues; those of the
/// default, with buffers that are large enough, do not.
#[test]
fn by_default_an_association_keeps_its_part_beside_tcp_on_unlike_paths() {
    let path =
        |delay| format!("[[path]]\nrate = \"10Mbit/s\"\ndelay = \"{delay}\"\nqueue = \"100 packets\"\n");
    let (near, far) = (path("10ms"), path("50ms"));
    let text = format!("settle = \"10s\"\nmeasure = \"20s\"\n{near}{far}{FLOW}{FLOW}path = 1\n");
    let ours = |shares| outcome(&text, &[("transport.buffer_allocation", shares)]).throughput_mbps;
    let (default, following) = (ours("when_short"), ours("paths"));
    assert!(default > 6.0 && default > 2.0 * following, "{default} beside {following} Mbit/s of 20");
}
