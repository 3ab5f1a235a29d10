//! Round-trip times, the earliest chunk of a path, and when a window may grow (CUC).

use super::*;

fn millis(bench: &Bench, path: u8) -> Option<u128> {
    bench.progress(path).and_then(|progress| progress.rtt).map(|rtt| rtt.as_millis())
}

fn may_grow(bench: &Bench, path: u8) -> Option<bool> {
    bench.ack(path).map(|ack| ack.may_grow)
}

#[test]
fn one_chunk_of_a_path_is_timed_at_a_time() {
    let mut bench = Bench::new(1, &plain());
    bench.send(0, LEN);
    bench.wait(10);
    bench.send(0, LEN);
    bench.wait(20);
    bench.sack(0, 1, &[]);
    assert_eq!(millis(&bench, 0), Some(30));
    // 2 was sent while 1 was being timed.
    bench.sack(0, 2, &[]);
    assert_eq!(millis(&bench, 0), None);
    bench.send(0, LEN);
    bench.wait(25);
    bench.sack(0, 3, &[]);
    assert_eq!(millis(&bench, 0), Some(25));
}

#[test]
fn a_gap_block_times_too_and_each_path_by_itself() {
    let mut bench = Bench::new(2, &cmt());
    bench.send(0, LEN);
    bench.wait(5);
    bench.send(1, LEN);
    bench.wait(40);
    bench.sack(1, 0, &[(2, 2)]);
    assert_eq!((millis(&bench, 0), millis(&bench, 1)), (None, Some(40)));
    bench.wait(15);
    bench.sack(0, 2, &[]);
    assert_eq!((millis(&bench, 0), millis(&bench, 1)), (Some(60), None));
}

#[test]
fn a_sack_over_another_path_measures_only_when_the_switch_says_so() {
    let mut bench = Bench::new(
        2,
        &AssociationConfig {
            experiment: Experiment { rtt_over_any_path: true, ..Experiment::default() },
            ..cmt()
        },
    );
    bench.send(0, LEN);
    bench.wait(30);
    bench.sack(1, 1, &[]);
    assert_eq!(millis(&bench, 0), Some(30));

    let mut bench = Bench::new(
        2,
        &AssociationConfig {
            experiment: Experiment { rtt_over_any_path: false, ..Experiment::default() },
            ..cmt()
        },
    );
    bench.send(0, LEN);
    bench.wait(30);
    bench.sack(1, 1, &[]);
    assert_eq!(bench.progress(0).map(|progress| progress.rtt), Some(None));
    // The next chunk is timed anew.
    bench.send(0, LEN);
    bench.wait(35);
    bench.sack(0, 2, &[]);
    assert_eq!(millis(&bench, 0), Some(35));
}

#[test]
fn nothing_is_measured_from_what_was_sent_again() {
    let mut bench = Bench::new(1, &plain());
    bench.send_over(&[0, 0]);
    bench.wait(1000);
    bench.time_out(0, 0);
    bench.resend_all(0);
    bench.wait(1);
    bench.sack(0, 2, &[]);
    assert_eq!(millis(&bench, 0), None, "Karn");
}

#[test]
fn a_retransmission_before_a_timed_chunk_spoils_its_time() {
    let mut bench = Bench::new(1, &plain());
    bench.send_over(&[0, 0, 0, 0]);
    bench.sack(0, 1, &[(2, 2)]);
    bench.sack(0, 1, &[(2, 3)]);
    bench.send(0, LEN);
    assert_eq!(bench.load(0).timed.index(), Some(5));
    bench.sack(0, 1, &[(2, 4)]);
    assert_eq!(bench.lost(0), [2]);
    assert_eq!(bench.resend(0), Some(2));
    bench.wait(50);
    // RFC 9260 §6.3.1 C5: the acknowledgement of 5 may have waited for 2.
    bench.sack(0, 5, &[]);
    assert_eq!(millis(&bench, 0), None);
    bench.send(0, LEN);
    bench.wait(50);
    bench.sack(0, 6, &[]);
    assert_eq!(millis(&bench, 0), Some(50));
}

#[test]
fn a_path_whose_timed_chunk_moved_away_times_its_next_one() {
    let mut bench = Bench::new(2, &cmt());
    bench.send_over(&[0, 0, 0, 0]);
    bench.sack_for(0, 0, &[(2, 4)], 3);
    assert_eq!((bench.lost(0), bench.load(0).timed.index()), (vec![1], Some(1)));
    bench.sent.redirect(PathId(0), PathId(1), true);
    bench.check();
    assert_eq!(bench.resend_all(1), [1]);
    bench.send(0, LEN);
    bench.wait(20);
    bench.sack(0, 5, &[]);
    assert_eq!(millis(&bench, 0), Some(20));
}

#[test]
fn a_lost_chunk_that_was_never_sent_again_still_measures() {
    let mut bench = Bench::new(1, &cmt());
    bench.send_over(&[0; 4]);
    bench.sack_for(0, 0, &[(2, 4)], 3);
    bench.wait(44);
    bench.sack(0, 4, &[]);
    assert_eq!(millis(&bench, 0), Some(44));
}

#[test]
fn t3_starts_over_when_the_earliest_chunk_of_its_path_is_acknowledged() {
    let earliest = |bench: &Bench, path| bench.progress(path).map(|progress| progress.earliest_acked);
    let mut bench = Bench::new(2, &cmt());
    bench.send_over(&[0, 1, 0, 1, 0]);
    bench.sack(0, 0, &[(3, 3)]);
    assert_eq!(earliest(&bench, 0), Some(false), "1 was sent before");
    bench.sack(0, 0, &[(2, 3)]);
    assert_eq!(earliest(&bench, 1), Some(true), "of its own path, whatever the others do");
    bench.sack(0, 1, &[(1, 2)]);
    assert_eq!(earliest(&bench, 0), Some(true));
    assert_eq!(bench.progress(0).map(|progress| progress.flight_after), Some(1000));
}

#[test]
fn a_retransmission_that_got_lost_is_not_outlived_by_new_data() {
    let earliest = |bench: &Bench| bench.progress(0).map(|progress| progress.earliest_acked);
    let mut bench = Bench::new(1, &cmt());
    bench.send_over(&[0; 4]);
    bench.sack_for(0, 0, &[(2, 4)], 3);
    bench.wait(10);
    bench.resend(0);
    bench.wait(10);
    bench.send_over(&[0; 2]);
    bench.sack(0, 0, &[(2, 5)]);
    assert_eq!(earliest(&bench), Some(false), "1 was sent again before 5: T3 must not start over");
    bench.sack(0, 5, &[]);
    assert_eq!(earliest(&bench), Some(true));
}

#[test]
fn without_cuc_every_acknowledged_byte_lets_a_window_grow() {
    let config = AssociationConfig {
        experiment: Experiment { cwnd_update: CwndUpdate::Off, ..Experiment::default() },
        ..cmt()
    };
    let mut bench = Bench::new(1, &config);
    bench.send_over(&[0; 3]);
    bench.sack(0, 0, &[(3, 3)]);
    assert_eq!(may_grow(&bench, 0), Some(true));
}

#[test]
fn with_cuc_a_window_grows_when_its_own_path_progresses_in_order() {
    for cwnd_update in [CwndUpdate::V1, CwndUpdate::V2] {
        let mut bench = Bench::new(
            2,
            &AssociationConfig { experiment: Experiment { cwnd_update, ..Experiment::default() }, ..cmt() },
        );
        // Path 1 is behind; path 0 progresses in its own order, although no cumulative TSN moves.
        bench.send_over(&[1, 0, 0, 0, 1]);
        bench.sack(0, 0, &[(2, 2)]);
        assert_eq!(may_grow(&bench, 0), Some(true));
        bench.sack(0, 0, &[(2, 2), (4, 4)]);
        assert_eq!(may_grow(&bench, 0), Some(false), "3 is missing");
        bench.sack(0, 0, &[(2, 4)]);
        assert_eq!(may_grow(&bench, 0), Some(true));
        bench.sack(1, 0, &[(2, 5)]);
        assert_eq!(may_grow(&bench, 1), Some(false), "1 is missing");
        bench.sack(1, 5, &[]);
        assert_eq!(may_grow(&bench, 1), Some(true), "the cumulative TSN is progress for all it covers");
    }
}

#[test]
fn version_2_follows_retransmissions_apart() {
    let grows = |cwnd_update| {
        let mut bench = Bench::new(
            2,
            &AssociationConfig { experiment: Experiment { cwnd_update, ..Experiment::default() }, ..cmt() },
        );
        // 1 is lost on path 0 and goes again on path 1, behind 3 which was sent there once.
        bench.send_over(&[0, 0, 1, 1]);
        bench.time_out(0, 1);
        assert_eq!(bench.resend_all(1), [1, 2]);
        bench.sack(1, 0, &[(3, 3)]);
        may_grow(&bench, 1)
    };
    assert_eq!(grows(CwndUpdate::V2), Some(true), "3 is the earliest of those sent once");
    assert_eq!(grows(CwndUpdate::V1), Some(false), "1, sent again, stands before it");
}

#[test]
fn a_recovery_ends_when_its_path_is_repaired_or_the_cumulative_tsn_says_so() {
    for (by_pseudo, expected) in [(true, 5), (false, 0)] {
        let config = AssociationConfig {
            experiment: Experiment { pseudo_cumulative_recovery: by_pseudo, ..Experiment::default() },
            ..cmt()
        };
        let mut bench = Bench::new(2, &config);
        // 1 keeps the cumulative TSN back; on path 0 everything up to 5 is there.
        bench.send_over(&[1, 0, 0, 0, 0, 0]);
        bench.sack(0, 0, &[(2, 5)]);
        assert_eq!(bench.ack(0).map(|ack| ack.recovered_to), Some(expected), "{by_pseudo}");
        assert_eq!(bench.ack(0).map(|ack| ack.exit_point), Some(6));
    }
}

#[test]
fn a_waiting_retransmission_keeps_a_recovery_open() {
    let mut bench = Bench::new(1, &cmt());
    bench.send_over(&[0; 6]);
    bench.sack_for(0, 0, &[(2, 4)], 3);
    bench.sack(0, 0, &[(2, 5)]);
    assert_eq!(bench.ack(0).map(|ack| ack.recovered_to), Some(0), "1 waits to be sent again");
    bench.resend(0);
    bench.sack(0, 0, &[(2, 6)]);
    assert_eq!(bench.ack(0).map(|ack| ack.recovered_to), Some(0), "1 flies again");
    bench.sack(0, 6, &[]);
    assert_eq!(bench.ack(0).map(|ack| ack.recovered_to), Some(6));
}
