//! Missing reports: which chunks are struck, how often, and when one is lost.

use super::*;

#[test]
fn the_third_missing_report_loses_a_chunk() {
    for config in [plain(), cmt()] {
        let mut bench = Bench::new(1, &config);
        bench.send_over(&[0; 5]);
        bench.sack(0, 0, &[(2, 2)]);
        bench.sack(0, 0, &[(2, 3)]);
        assert_eq!((bench.misses(1), bench.lost(0).len()), (2, 0));
        bench.sack(0, 0, &[(2, 4)]);
        assert_eq!(bench.lost(0), [1]);
        assert_eq!(bench.ack(0).map(|ack| (ack.lost, ack.acked)), Some((true, 1000)));
        assert_eq!(bench.flight(0), 1000, "5");
        assert_eq!(bench.queued(0), 5000);
        let mut stats = stats_of(&bench);
        assert_eq!((stats.fast_retransmits, stats.chunks_resent), (1, 0));
        assert_eq!(bench.resend(0), Some(1));
        stats = stats_of(&bench);
        assert_eq!((stats.chunks_sent, stats.chunks_resent, stats.bytes_sent), (5, 1, 5 * DATA as u64));
        assert_eq!((stats.flight, stats.queued), (2000, 5000));
    }
}

#[test]
fn only_newly_acknowledged_later_chunks_strike() {
    let mut bench = Bench::new(1, &plain());
    bench.send_over(&[0; 8]);
    // Highest newly acknowledged (RFC 9260 §7.2.4): 3, then 5; 6 is later than both.
    bench.sack(0, 0, &[(3, 3)]);
    assert_eq!([1, 2, 4, 6].map(|index| bench.misses(index)), [1, 1, 0, 0]);
    bench.sack(0, 0, &[(3, 3), (5, 5)]);
    assert_eq!([1, 2, 4, 6].map(|index| bench.misses(index)), [2, 2, 1, 0]);
    // The same blocks again strike nobody.
    bench.sack(0, 0, &[(3, 3), (5, 5)]);
    assert_eq!([1, 2, 4, 6].map(|index| bench.misses(index)), [2, 2, 1, 0]);
    // 2 is newly acknowledged, and of the missing ones only 1 is earlier.
    bench.sack(0, 0, &[(2, 3), (5, 5)]);
    assert_eq!(bench.lost(0), [1]);
    assert_eq!(bench.misses(4), 1);
}

#[test]
fn a_late_chunk_strikes_nothing_that_was_sent_after_it() {
    let mut bench = Bench::new(1, &plain());
    bench.send_over(&[0; 8]);
    bench.sack(0, 0, &[(2, 3), (5, 5)]);
    assert_eq!((bench.misses(1), bench.misses(4)), (1, 1));
    // 1 was only late: the cumulative TSN moves to 3, but nothing later than 4 is new. Outside fast
    // recovery that is no missing report for 4.
    bench.sack(0, 3, &[(2, 2)]);
    assert_eq!(bench.misses(4), 1);
}

/// A bench whose chunk 1 was lost, sent again at 10 ms, and lost again; 6 to 8 were sent at 20 ms.
fn lost_twice(config: &AssociationConfig) -> Bench {
    let mut bench = Bench::new(2, config);
    bench.send_over(&[0; 5]);
    for last in 2..=4 {
        bench.sack(0, 0, &[(2, last)]);
    }
    bench.wait(10);
    assert_eq!(bench.resend(0), Some(1));
    bench.wait(10);
    bench.send_over(&[0; 3]);
    bench
}

#[test]
fn what_was_sent_again_is_struck_by_what_was_sent_later_still() {
    let mut bench = lost_twice(&cmt());
    bench.sack(0, 0, &[(2, 5)]);
    assert_eq!(bench.misses(1), 0, "5 was sent before 1 was again");
    for (last, misses) in [(6, 1), (7, 2)] {
        bench.sack(0, 0, &[(2, last)]);
        assert_eq!(bench.misses(1), misses);
    }
    bench.sack(0, 0, &[(2, 8)]);
    assert_eq!((bench.lost(0), bench.ack(0).is_some_and(|ack| ack.lost)), (vec![1], true));
    assert_eq!(bench.resend(0), Some(1), "a third time, without a timeout");
}

#[test]
fn without_mfr_and_from_another_path_it_is_not_struck() {
    let off = AssociationConfig {
        experiment: Experiment { multiple_fast_retransmit: false, ..Experiment::default() },
        ..cmt()
    };
    let mut bench = lost_twice(&off);
    for last in 5..=8 {
        bench.sack(0, 0, &[(2, last)]);
    }
    assert_eq!(bench.misses(1), 0);
    let mut bench = lost_twice(&cmt());
    bench.send_over(&[1; 5]);
    for last in 9..=13 {
        bench.sack(1, 0, &[(2, 5), (9, last)]);
    }
    assert_eq!(bench.misses(1), 0);
}

#[test]
fn in_fast_recovery_progress_strikes_all_that_is_missing() {
    for (config, expected) in [(plain(), 2), (cmt(), 1)] {
        let mut bench = Bench::new(1, &config);
        bench.send_over(&[0; 8]);
        bench.sack(0, 0, &[(2, 3), (5, 5)]);
        bench.recovering = true;
        // Without progress only what is newly acknowledged counts (RFC 9260 §7.2.4).
        bench.sack(0, 0, &[(2, 3), (5, 5)]);
        assert_eq!(bench.misses(4), 1);
        // With split fast retransmit the rule is left out: progress may be another path's.
        bench.sack(0, 3, &[(2, 2)]);
        assert_eq!((bench.misses(4), bench.misses(6)), (expected, 0));
    }
}

#[test]
fn with_split_fast_retransmit_only_the_own_path_strikes() {
    let mut bench = Bench::new(2, &cmt());
    // Path 1 is slow: 1 and 3 are merely behind.
    bench.send_over(&[1, 0, 1, 0, 0, 0, 0]);
    bench.sack(0, 0, &[(2, 2)]);
    bench.sack(0, 0, &[(2, 2), (4, 5)]);
    bench.sack(0, 0, &[(2, 2), (4, 6)]);
    bench.sack(0, 0, &[(2, 2), (4, 7)]);
    assert_eq!((bench.misses(1), bench.misses(3), bench.lost(1).len()), (0, 0, 0));
    // 3 overtook 1 on their own path.
    bench.sack(1, 0, &[(2, 7)]);
    assert_eq!(bench.misses(1), 1);
}

#[test]
fn without_it_a_slow_path_looks_like_loss() {
    let config = AssociationConfig {
        experiment: Experiment { split_fast_retransmit: false, ..Experiment::default() },
        delayed_ack: false,
        ..cmt()
    };
    let mut bench = Bench::new(2, &config);
    bench.send_over(&[1, 0, 1, 0, 0, 0, 0]);
    bench.sack(0, 0, &[(2, 2)]);
    bench.sack(0, 0, &[(2, 2), (4, 5)]);
    bench.sack(0, 0, &[(2, 2), (4, 6)]);
    assert_eq!(bench.lost(1), [1]);
    bench.sack(0, 0, &[(2, 2), (4, 7)]);
    assert_eq!(bench.lost(1), [1, 3]);
}

/// The table of the delayed-ack algorithm (CMT-DAC, Iyengar et al. §III.C): what the newly acknowledged
/// chunks of a SACK for three packets count for a missing chunk of path 0.
#[test]
fn a_delayed_sack_strikes_for_every_packet_that_overtook() {
    let struck = |paths: &[u8], gaps: &[Block], packets: u8, config: &AssociationConfig| {
        let mut bench = Bench::new(2, config);
        bench.send_over(paths);
        bench.sack_for(0, 0, gaps, packets);
        bench.misses(1)
    };
    let on = AssociationConfig { delayed_ack: true, ..cmt() };
    let off = AssociationConfig { delayed_ack: false, ..cmt() };
    // All new ones on one path and after the missing one: as many as the packets.
    assert_eq!(struck(&[0; 4], &[(2, 3)], 2, &on), 2);
    assert_eq!(struck(&[0; 4], &[(2, 3)], 1, &on), 1);
    // New ones on two paths: one.
    assert_eq!(struck(&[0, 0, 1, 0], &[(2, 3)], 2, &on), 1);
    // Without DAC the count means nothing.
    assert_eq!(struck(&[0; 4], &[(2, 3)], 2, &off), 1);

    // A missing one between the new ones: one.
    let mut bench = Bench::new(2, &on);
    bench.send_over(&[0; 4]);
    bench.sack_for(0, 0, &[(2, 2), (4, 4)], 2);
    assert_eq!((bench.misses(1), bench.misses(3)), (2, 1));

    // Three packets at once lose it.
    let mut bench = Bench::new(2, &on);
    bench.send_over(&[0; 4]);
    bench.sack_for(0, 0, &[(2, 4)], 3);
    assert_eq!(bench.lost(0), [1]);
}

#[test]
fn a_chunk_that_was_sent_again_is_not_struck() {
    let mut bench = Bench::new(1, &cmt());
    bench.send_over(&[0; 4]);
    bench.sack_for(0, 0, &[(2, 4)], 3);
    assert_eq!(bench.resend(0), Some(1));
    bench.send_over(&[0; 4]);
    bench.sack_for(0, 0, &[(2, 8)], 3);
    assert_eq!((bench.lost(0).len(), bench.flight(0)), (0, 1000), "only T3 can lose it now");
    assert_eq!(bench.time_out(0, 0), 1);
    assert_eq!(bench.lost(0), [1]);
}

/// GLOBECOM 2010 paper, §IV-D: chunks that were moved from another path say nothing of the new one.
#[test]
fn acknowledged_chunks_that_moved_strike_only_without_smart_fast_retransmit() {
    for (smart, expected) in [(true, 0), (false, 1)] {
        let config = AssociationConfig {
            experiment: Experiment { smart_fast_retransmit: smart, ..Experiment::default() },
            ..cmt()
        };
        let mut bench = Bench::new(2, &config);
        bench.send_over(&[0, 1, 0, 0]);
        bench.time_out(0, 1);
        assert_eq!(bench.resend_all(1), [1, 3, 4]);
        // 3 and 4, acknowledged on path 1 now, were sent after 2 only by their TSNs.
        bench.sack(1, 0, &[(3, 4)]);
        assert_eq!(bench.misses(2), expected, "smart_fast_retransmit {smart}");
    }
}

#[test]
fn smart_fast_retransmit_exempts_whatever_moved_for_whichever_reason() {
    for (smart, expected) in [(true, 0), (false, 1)] {
        let config = AssociationConfig {
            experiment: Experiment { smart_fast_retransmit: smart, ..Experiment::default() },
            ..cmt()
        };
        let mut bench = Bench::new(2, &config);
        bench.send_over(&[1, 0, 0, 0, 0]);
        bench.sack_for(0, 0, &[(3, 5)], 3);
        bench.sent.redirect(PathId(0), PathId(1), true);
        assert_eq!(bench.resend_all(1), [2]);
        bench.sack(1, 0, &[(2, 5)]);
        assert_eq!(bench.misses(1), expected, "smart_fast_retransmit {smart}");
    }
}

/// The same section exempts nothing else: what timed out and went again on its own path was sent there.
#[test]
fn smart_fast_retransmit_exempts_nothing_that_stayed_on_its_path() {
    for smart in [true, false] {
        let config = AssociationConfig {
            experiment: Experiment {
                smart_fast_retransmit: smart,
                split_fast_retransmit: false,
                ..Experiment::default()
            },
            ..cmt()
        };
        let mut bench = Bench::new(2, &config);
        bench.send_over(&[1, 0, 0]);
        bench.time_out(0, 0);
        assert_eq!(bench.resend_all(0), [2, 3]);
        bench.sack(0, 0, &[(2, 3)]);
        assert_eq!(bench.misses(1), 1, "smart_fast_retransmit {smart}");
    }
}

fn stats_of(bench: &Bench) -> PathStats {
    let mut paths = crate::paths::Paths::new(
        &bench.config,
        &tresse_policy::Registry::default(),
        std::sync::Arc::new(crate::paths::PathRules::new(&bench.config)),
        crate::fragment::DataFormat::Data,
        bench.now,
        1,
    )
    .expect("a known controller");
    let address = std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
    let path = paths.add(bench.now, address, address, None, true).expect("room for a path");
    let mut stats = paths.stats(path, bench.now);
    bench.sent.fill_stats(PathId(0), &mut stats);
    stats
}
