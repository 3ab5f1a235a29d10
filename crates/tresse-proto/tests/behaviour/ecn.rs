//! Congestion marks end to end: who is cut, who is not, and what happens when the chunks about them get lost (ECN, RFC
//! 4960 appendix A).

use std::time::Duration;

use tresse_proto::config::Size;
use tresse_proto::{AssociationConfig, Ecn, PathStats};
use tresse_wire::ChunkKind;

use crate::common::{Flight, Pair};

const M: usize = 1452;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Windows of twenty packets, of which a cut leaves half, and no limit to bursts.
fn wide() -> AssociationConfig {
    AssociationConfig::default().with(|c| {
        c.initial_window = Size(20 * M);
        c.max_burst = 0;
        c.congestion_control = "rfc9260".to_owned();
    })
}

fn paths(pair: &mut Pair) -> Vec<PathStats> {
    let now = pair.now;
    pair.client().path_stats(now)
}

/// Marks the packet that brings the `number`th data on `path` to the server.
fn mark_one(pair: &mut Pair, path: u8, number: usize) {
    let mut seen = 0;
    pair.congested = Box::new(move |flight| {
        seen += usize::from(flight.to_server && flight.has_data() && flight.path() == path);
        seen == number && flight.to_server && flight.has_data() && flight.path() == path
    });
}

fn count(pair: &Pair, from: usize, kind: ChunkKind) -> usize {
    pair.sent_since(from).iter().filter(|flight| flight.carries(kind)).count()
}

#[test]
fn only_the_path_that_met_congestion_is_cut_and_nothing_is_sent_again() {
    let mut pair = Pair::established(2, &wide());
    let before: Vec<usize> = paths(&mut pair).iter().map(|path| path.cwnd).collect();
    mark_one(&mut pair, 1, 3);
    let from = pair.wire.len();
    pair.send(0, 1, 30 * M);
    pair.run_for(ms(400));
    assert_eq!(pair.server.received.len(), 1);
    let after = paths(&mut pair);
    assert_eq!(
        after.iter().map(|path| (path.mark_cuts, path.chunks_resent)).collect::<Vec<_>>(),
        [(0, 0), (1, 0)]
    );
    assert!(after[0].cwnd >= before[0], "{} after {}", after[0].cwnd, before[0]);
    assert!(after[1].cwnd <= before[1] / 2 + M, "{} after {}", after[1].cwnd, before[1]);
    let cwr = |flight: &&Flight| flight.carries(ChunkKind::CWR);
    assert!(pair.sent_since(from).iter().filter(cwr).all(|flight| flight.to_server && flight.path() == 1));
    let now = pair.now;
    assert_eq!(pair.server().path_stats(now)[1].marks, 1);
}

#[test]
fn an_answer_that_is_lost_is_given_again() {
    let mut pair = Pair::established(1, &wide());
    pair.lose(ChunkKind::CWR, 2);
    mark_one(&mut pair, 0, 1);
    for number in 0..4 {
        pair.send(0, number, 10 * M);
        pair.run_for(ms(100));
    }
    let from = pair.wire.len();
    pair.send(0, 4, 10 * M);
    pair.run_for(ms(500));
    assert_eq!(
        (count(&pair, from, ChunkKind::ECNE), count(&pair, from, ChunkKind::CWR)),
        (0, 0),
        "it is over"
    );
    assert_eq!(paths(&mut pair)[0].mark_cuts, 1);
    assert_eq!(pair.server.received.len(), 5);
}

#[test]
fn every_packet_may_be_marked_for_ever_and_the_data_arrives() {
    for congestion_control in
        ["rfc9260", "cubic", "coupled_cubic", "cmt_rp_v1", "cmt_rp_v2", "lia", "olia", "balia"]
    {
        let config = wide().with(|c| c.congestion_control = congestion_control.to_owned());
        let mut pair = Pair::established(2, &config);
        pair.congested = Box::new(|_| true);
        pair.send(0, 1, 400 * M);
        pair.run_until(ms(20_000), |pair| pair.server.received.len() == 1);
        for path in paths(&mut pair) {
            assert_eq!((path.chunks_resent, path.timeouts), (0, 0), "{congestion_control}");
            let cut = path.mark_cuts > 3 && (1..=8 * M).contains(&path.cwnd);
            assert!(cut, "{congestion_control}: {path:?}");
        }
    }
}

#[test]
fn who_does_not_speak_it_sends_nothing_that_may_be_marked() {
    let without = wide().with(|c| c.ecn = false);
    for (client, server) in [(wide(), without.clone()), (without.clone(), wide())] {
        let mut pair = Pair::unlike(1, &client, &server, 1).settled();
        pair.send(0, 1, 10 * M);
        pair.run_until(ms(1000), |pair| pair.server.received.len() == 1);
        assert!(pair.wire.iter().all(|flight| flight.transmit.ecn == Ecn::NotEct));
    }
}

/// A window that a mark has cut repairs what is lost in it at once, and is not cut again.
#[test]
fn a_loss_beside_a_mark_is_repaired_and_costs_nothing_more() {
    let mut pair = Pair::established(1, &wide());
    mark_one(&mut pair, 0, 1);
    let mut seen = 0;
    pair.network = Box::new(move |flight| {
        seen += usize::from(flight.has_data());
        (!(flight.has_data() && seen == 5)).then_some(ms(10))
    });
    pair.send(0, 1, 20 * M);
    pair.run_until(ms(500), |pair| pair.server.received.len() == 1);
    let path = &paths(&mut pair)[0];
    assert_eq!((path.mark_cuts, path.fast_retransmits, path.timeouts), (1, 1, 0));
    assert_eq!(path.ssthresh, 10 * M);
}

/// Some networks drop what they do not know.
#[test]
fn a_path_that_swallows_what_may_be_marked_is_used_without_marks() {
    let mut pair = Pair::established(2, &wide());
    let swallows = |flight: &Flight| flight.path() == 1 && flight.transmit.ecn != Ecn::NotEct;
    pair.network = Box::new(move |flight| (!swallows(flight)).then_some(ms(10)));
    pair.send(0, 1, 30 * M);
    pair.run_until(ms(3000), |pair| pair.server.received.len() == 1);
    pair.run_for(ms(3000));
    let from = pair.wire.len();
    for number in 2..12 {
        pair.send(0, number, 10 * M);
        pair.run_for(ms(200));
    }
    assert_eq!(pair.server.received.len(), 11);
    let data = |flight: &&Flight| flight.to_server && flight.has_data();
    let codepoints = |path| {
        let on_path = pair.sent_since(from).iter().filter(data).filter(move |flight| flight.path() == path);
        on_path.map(|flight| flight.transmit.ecn).collect::<Vec<_>>()
    };
    assert!(!codepoints(1).is_empty() && codepoints(1).iter().all(|ecn| *ecn == Ecn::NotEct));
    assert!(codepoints(0).contains(&Ecn::Ect0));
    assert!(paths(&mut pair)[1].timeouts <= 1);
}
