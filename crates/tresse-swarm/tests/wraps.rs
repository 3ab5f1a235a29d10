//! The numbers of messages wrap in the middle of a conversation: nobody counts to 2³² first, so both sides begin shortly
//! before (`messages_wrap_in`).

use std::collections::BTreeMap;

use tresse_swarm::{Script, census};

/// Ordered and unordered messages, short and long ones, on two streams and in both directions, of which some are given up:
/// the numbers of each stream wrap with the sixth, and those of unordered I-DATA apart from the others.
const TALK: &str = "\
seed 2
path rate=5Mbit/s delay=20ms queue=50 loss=0.1
path rate=2Mbit/s delay=30ms queue=20 loss=0.2
client preset=cmt messages_wrap_in=5 outbound_streams=2 rto_min=50ms rto_initial=100ms rto_max=1s SETTING
server preset=cmt messages_wrap_in=5 outbound_streams=2 rto_min=50ms rto_initial=100ms rto_max=1s SETTING
at 0s client connect addresses=2
at 100ms client send len=1000 stream=0 times=20 retransmissions=0
at 100ms client send len=5000 stream=0 times=4
at 150ms client send len=700 stream=0 times=20 retransmissions=0 unordered
at 200ms client send len=9000 stream=1 times=20 lifetime=40ms
at 200ms server send len=300 stream=0 times=40 lifetime=1ms
at 300ms server send len=1200 stream=1 times=30 unordered
at 400ms server send len=4000 stream=1 times=20 retransmissions=0
";

/// What was at work while [`TALK`] was played, with another setting and from each of some seeds.
fn at_work(setting: &str, seeds: u64) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for seed in 0..seeds {
        let mut script: Script = TALK.replace("SETTING", setting).parse().expect("a script");
        script.seed = seed;
        let (outcome, census) = census(&script);
        if let Err(breach) = outcome {
            panic!("seed {seed} breaks a rule {breach}\n\n{script}");
        }
        census.counts().for_each(|(name, count)| *counts.entry(name.to_owned()).or_default() += count);
    }
    counts
}

#[test]
fn mids_wrap_in_order_out_of_order_and_where_messages_are_given_up() {
    let counts = at_work("interleaving=true", 10);
    assert!(counts["sent: I-DATA with MID 4294967295"] > 0);
    assert!(counts["sent: I-FORWARD-TSN with a MID before the wrap"] > 0);
    assert!(counts["told: a message was given up that was sent"] > 0);
    assert_eq!(counts["sent: DATA"], 0);
}

#[test]
fn ssns_wrap_where_messages_are_given_up() {
    let counts = at_work("interleaving=false", 10);
    assert!(counts["sent: data with SSN 65535"] > 0);
    assert!(counts["sent: FORWARD-TSN with an SSN before the wrap"] > 0);
    assert_eq!(counts["sent: I-DATA"], 0);
}

#[test]
fn streams_that_begin_anew_do_so_at_0_whatever_they_began_with() {
    let mut counts = BTreeMap::new();
    for interleaving in ["interleaving=true", "interleaving=false"] {
        for seed in 0..6 {
            let anew = "\
at 600ms client reset stream=0 direction=both
at 1500ms client send len=900 stream=0 times=9
at 1500ms server send len=900 stream=0 times=9
at 2s client restart
at 2100ms client connect addresses=2
at 2200ms client send len=900 stream=0 times=9 unordered
at 2200ms server send len=900 stream=0 times=9
";
            let text = format!("{TALK}{anew}").replace("SETTING", interleaving);
            let mut script: Script = text.parse().expect("a script");
            script.seed = seed;
            let (outcome, census) = census(&script);
            outcome.unwrap_or_else(|breach| panic!("seed {seed} breaks a rule {breach}\n\n{script}"));
            census.counts().for_each(|(name, count)| *counts.entry(name.to_owned()).or_insert(0) += count);
        }
    }
    assert!(counts["told: inbound streams begin anew"] > 0, "{counts:?}");
    assert!(counts["told: the peer has restarted"] > 0, "{counts:?}");
}
