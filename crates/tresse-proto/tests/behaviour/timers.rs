//! Loss on the wire: fast retransmission, T3 and what both do to the windows, seen from outside.

use std::time::Duration;

use tresse_proto::AssociationConfig;
use tresse_proto::config::Size;
use tresse_wire::DATA_HEADER_LEN;

use crate::common::{Pair, by_reports};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const M: usize = 1452;

/// One path with a window of 20 full packets and no limit on bursts.
fn wide() -> AssociationConfig {
    by_reports().with(|c| {
        c.initial_window = Size(20 * M);
        c.congestion_control = "rfc9260".to_owned();
        c.max_burst = 0;
        c.mtu_discovery = false;
    })
}

/// Sends one message of `chunks` full chunks; the ones at these positions (from 0) are lost when first sent.
/// Answers when DATA packets left, in ms from then, and which chunk each carried.
fn send_with_losses(pair: &mut Pair, chunks: usize, lost: &'static [u32]) -> Vec<(u64, u32)> {
    let (start, before) = (pair.now, pair.wire.len());
    let mut first = None;
    let mut seen = Vec::new();
    pair.network = Box::new(move |flight| {
        for chunk in flight.chunks() {
            if let tresse_wire::Chunk::Data(data) = chunk {
                let position = data.tsn.distance_from(*first.get_or_insert(data.tsn));
                if lost.contains(&position) && !seen.contains(&position) {
                    seen.push(position);
                    return None;
                }
            }
        }
        Some(ms(10))
    });
    pair.send(0, 1, chunks * M);
    pair.run_until(Duration::from_secs(60), |pair| pair.server.received.len() == 1);
    pair.run_for(ms(500));
    pair.server.received.clear();
    let mut base = None;
    let data = pair.sent_since(before).iter().filter(|flight| flight.to_server && flight.has_data());
    data.map(|flight| {
        let tsn = flight.chunks().into_iter().find_map(|chunk| match chunk {
            tresse_wire::Chunk::Data(data) => Some(data.tsn),
            _ => None,
        });
        let tsn = tsn.expect("DATA");
        let position = tsn.distance_from(*base.get_or_insert(tsn));
        ((flight.sent - start).as_millis() as u64, position)
    })
    .collect()
}

#[test]
fn a_lost_packet_is_repeated_after_three_missing_reports() {
    for config in [
        wide(),
        wide().with(|c| {
            c.delayed_ack = false;
            c.experiment.split_fast_retransmit = false;
        }),
    ] {
        let mut pair = Pair::established(1, &config);
        let sent = send_with_losses(&mut pair, 12, &[2]);
        assert_eq!(sent.len(), 13);
        assert_eq!(sent[12], (20, 2), "one round trip later, without waiting for a timer");
        let stats = pair.path(0);
        assert_eq!((stats.fast_retransmits, stats.chunks_resent, stats.timeouts), (1, 1, 0));
        // RFC 9260 §7.2.3: half of the window, which had grown before the cut.
        assert_eq!(stats.cwnd, stats.ssthresh);
        assert!((10 * M..=12 * M).contains(&stats.ssthresh), "{}", stats.ssthresh / M);
    }
}

#[test]
fn several_losses_of_one_window_cut_it_once() {
    let mut pair = Pair::established(1, &wide());
    let sent = send_with_losses(&mut pair, 18, &[2, 4, 7]);
    let mut again: Vec<u32> = sent[18..].iter().map(|&(_, position)| position).collect();
    again.sort_unstable();
    assert_eq!(again, [2, 4, 7]);
    let stats = pair.path(0);
    assert_eq!((stats.fast_retransmits, stats.timeouts), (3, 0));
    assert!(stats.ssthresh >= 10 * M, "cut once: {}", stats.ssthresh / M);
}

#[test]
fn the_last_packet_waits_for_t3() {
    let mut pair = Pair::established(1, &wide());
    let sent = send_with_losses(&mut pair, 5, &[4]);
    assert_eq!(sent.len(), 6);
    // RTO.Min is 1 s. T3 started over when the earliest outstanding chunk was acknowledged at 20 ms, and
    // again with the last SACK, which the delay of 200 ms may hold back.
    let (at, position) = sent[5];
    assert!(position == 4 && (1020..=1230).contains(&at), "{at}");
    let stats = pair.path(0);
    assert_eq!((stats.timeouts, stats.fast_retransmits), (1, 0));
    // RFC 9260 §6.3.3 E1: half of the window, and one packet to begin with. Waiting for T3 is no idleness,
    // which would have halved it once more.
    assert!(
        stats.cwnd <= 2 * (M + DATA_HEADER_LEN) && stats.ssthresh >= 10 * M,
        "{} {}",
        stats.cwnd / M,
        stats.ssthresh / M
    );
}

#[test]
fn a_lost_retransmission_waits_for_t3_too() {
    let mut pair = Pair::established(1, &wide());
    let mut losses = 0;
    let mut first = None;
    pair.network = Box::new(move |flight| {
        let hit = flight.chunks().iter().any(|chunk| match chunk {
            tresse_wire::Chunk::Data(data) => data.tsn.distance_from(*first.get_or_insert(data.tsn)) == 3,
            _ => false,
        });
        losses += u32::from(hit);
        (!hit || losses > 2).then_some(ms(10))
    });
    pair.send(0, 1, 15 * M);
    pair.run_until(Duration::from_secs(60), |pair| pair.server.received.len() == 1);
    let stats = pair.path(0);
    assert_eq!((stats.fast_retransmits, stats.timeouts, stats.chunks_resent), (1, 1, 2));
}

#[test]
fn a_lost_retransmission_of_a_busy_path_does_not_wait_for_t3() {
    for (multiple_fast_retransmit, expected) in [(true, (2, 0)), (false, (1, 1))] {
        let mut pair = Pair::established(
            1,
            &wide().with(|c| c.experiment.multiple_fast_retransmit = multiple_fast_retransmit),
        );
        let (mut losses, mut first) = (0, None);
        pair.network = Box::new(move |flight| {
            let hit = flight.chunks().iter().any(|chunk| match chunk {
                tresse_wire::Chunk::Data(data) => data.tsn.distance_from(*first.get_or_insert(data.tsn)) == 3,
                _ => false,
            });
            losses += u32::from(hit);
            (!hit || losses > 2).then_some(ms(10))
        });
        for number in 0..200 {
            pair.send(0, number, M);
        }
        pair.run_until(Duration::from_secs(60), |pair| pair.server.received.len() == 200);
        let stats = pair.path(0);
        assert_eq!((stats.fast_retransmits, stats.timeouts), expected);
    }
}

#[test]
fn a_lost_sack_costs_nothing() {
    let mut pair = Pair::established(1, &wide());
    let (mut data, mut sacks) = (0, 0);
    pair.network = Box::new(move |flight| {
        data += u32::from(flight.has_data());
        sacks += u32::from(!flight.to_server);
        // Every third one, as long as others follow.
        (flight.to_server || sacks % 3 != 0 || data > 90).then_some(ms(10))
    });
    for number in 0..100 {
        pair.send(0, number, M);
    }
    pair.run_until(Duration::from_secs(30), |pair| pair.server.received.len() == 100);
    pair.run_for(Duration::from_secs(3));
    let stats = pair.path(0);
    assert_eq!((stats.fast_retransmits, stats.timeouts), (0, 0));
    assert_eq!(stats.bytes_acked, 100 * M as u64);
}

#[test]
fn an_idle_window_shrinks_to_four_packets() {
    let config = wide().with(|c| c.heartbeat_interval = Duration::ZERO);
    let mut pair = Pair::established(1, &config);
    pair.send(0, 1, 10 * M);
    pair.run_for(ms(900));
    let before = pair.path(0).cwnd;
    assert!(before >= 20 * M);
    // Each RTO of 1 s without data halves it (RFC 9260 §7.2.1).
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.path(0).cwnd, before / 2);
    pair.run_for(Duration::from_secs(30));
    assert_eq!((pair.path(0).cwnd, pair.path(0).ssthresh), (4 * (M + DATA_HEADER_LEN), before));
    let deadline = pair.client.endpoint.poll_timeout();
    assert_eq!(deadline, None, "then nothing more is to be done");
}

#[test]
fn round_trips_are_measured_per_path() {
    let mut pair = Pair::new(3, &AssociationConfig::default());
    pair.network = Box::new(|flight| Some(ms(10 + 15 * u64::from(flight.path()))));
    let mut pair = pair.settled();
    for number in 0..600 {
        pair.send(0, number, 1000);
    }
    pair.run_until(Duration::from_secs(30), |pair| pair.server.received.len() == 600);
    let now = pair.now;
    let srtts: Vec<u128> =
        pair.client().path_stats(now).iter().map(|path| path.srtt.expect("measured").as_millis()).collect();
    // The way there takes 10, 25 or 40 ms, the way back any of these, and a SACK may be delayed.
    assert!(srtts.is_sorted() && srtts[0] >= 20 && srtts[2] >= 50 && srtts[2] <= 290, "{srtts:?}");
}
