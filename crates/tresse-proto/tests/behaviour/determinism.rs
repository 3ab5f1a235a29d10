//! The same seed gives the same bytes at the same time; another seed gives others.

use std::time::Duration;

use tresse_proto::AssociationConfig;

use crate::common::{Dice, Pair};

/// Time, direction and bytes of every packet of a lossy transfer with heartbeats and a shutdown.
fn trace(seed: u8) -> Vec<(u64, bool, Vec<u8>)> {
    let mut pair = Pair::with_seed(2, &AssociationConfig::default(), seed);
    let mut dice = Dice::new(5);
    pair.network = Box::new(move |_| (!dice.hits(0.05)).then(|| Duration::from_millis(5 + dice.below(30))));
    pair.connect();
    pair.run_until(Duration::from_secs(60), |pair| pair.client().is_established());
    for number in 0..100 {
        pair.send((number % 4) as u16, number, 100 + 50 * number as usize);
    }
    pair.run_for(Duration::from_secs(120));
    let now = pair.now;
    pair.client().shutdown(now);
    pair.run_for(Duration::from_secs(20));
    pair.wire.iter().map(|flight| (flight.sent.as_nanos(), flight.to_server, flight.bytes.to_vec())).collect()
}

#[test]
fn a_run_can_be_repeated_byte_by_byte() {
    let first = trace(1);
    assert!(first.len() > 300, "{} packets", first.len());
    assert!(first == trace(1));
}

#[test]
fn seeds_feed_tags_tsns_cookies_and_jitter() {
    let (one, two) = (trace(1), trace(2));
    let init = |trace: &[(u64, bool, Vec<u8>)]| trace[0].2.clone();
    // Initiate Tag and initial TSN of the INIT (RFC 9260 §3.3.2).
    assert_ne!(init(&one)[16..20], init(&two)[16..20]);
    assert_ne!(init(&one)[28..32], init(&two)[28..32]);
    let heartbeats = |trace: &[(u64, bool, Vec<u8>)]| -> Vec<u64> {
        trace.iter().filter(|(_, _, bytes)| bytes[12] == 4).map(|(at, ..)| *at).collect()
    };
    assert_ne!(heartbeats(&one).last(), heartbeats(&two).last());
}
