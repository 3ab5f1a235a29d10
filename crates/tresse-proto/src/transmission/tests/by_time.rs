//! Losses found by time of sending: what was overtaken on its own path, whatever was sent again before.

use super::*;
use crate::interface::reliability::Reliability;

/// A sender on two paths. Path 0 has a round trip of 40 ms, by what its first chunk took.
fn bench() -> Bench {
    let config = AssociationConfig { loss_detection: LossDetection::Rack, ..AssociationConfig::default() };
    let mut bench = Bench::new(2, &config);
    bench.send_over(&[0]);
    bench.wait(40);
    bench.sack(0, 1, &[]);
    bench
}

fn look_again(bench: &mut Bench) -> (bool, Option<Duration>) {
    let (lost, _, due) = bench.sent.look_again(bench.now, PathId(0));
    bench.check();
    (lost, due.map(|due| due.since(bench.now)))
}

#[test]
fn what_was_overtaken_is_lost_a_quarter_of_a_round_trip_later_unless_it_comes() {
    let mut bench = bench();
    bench.send_over(&[0]);
    bench.wait(1);
    bench.send_over(&[0]);
    bench.wait(40);
    bench.sack(1, 1, &[(2, 2)]);
    assert_eq!(bench.lost(0), [] as [u32; 0]);
    let due = bench.progress(0).and_then(|step| step.look_again);
    assert_eq!(due.map(|due| due.since(bench.now)), Some(Duration::from_millis(9)), "1 ms is over");
    bench.wait(8);
    assert_eq!(look_again(&mut bench), (false, Some(Duration::from_millis(1))));
    bench.wait(1);
    assert_eq!(look_again(&mut bench), (true, None));
    assert_eq!(bench.lost(0), [2]);
}

#[test]
fn three_later_packets_show_a_loss_at_once_over_whatever_path_the_report_comes() {
    let mut bench = bench();
    bench.send_over(&[0; 4]);
    bench.wait(40);
    bench.sack(1, 1, &[(2, 4)]);
    assert_eq!(bench.lost(0), [2]);
    assert!(bench.ack(0).is_some_and(|ack| ack.lost));
}

#[test]
fn what_another_path_brings_overtakes_nothing() {
    let mut bench = bench();
    bench.send_over(&[0, 1, 1, 1, 1]);
    bench.wait(40);
    bench.sack(1, 1, &[(2, 5)]);
    bench.wait(100);
    assert_eq!(look_again(&mut bench), (false, None));
    assert_eq!(bench.lost(0), [] as [u32; 0]);
}

#[test]
fn what_was_sent_again_is_found_lost_as_often_as_it_is() {
    let mut bench = bench();
    bench.send_over(&[0; 4]);
    bench.wait(40);
    bench.sack(0, 1, &[(2, 4)]);
    for last in [5, 6, 7] {
        assert_eq!(bench.resend(0), Some(2));
        bench.wait(1);
        bench.send_over(&[0]);
        bench.wait(40);
        bench.sack(0, 1, &[(2, last)]);
        assert_eq!(bench.lost(0), [2], "{last} was sent later");
        assert!(bench.progress(0).is_some_and(|step| step.lost_retransmission == (last > 5)));
    }
}

#[test]
fn the_end_of_what_was_sent_goes_again_and_its_answer_shows_what_is_missing() {
    let mut bench = bench();
    bench.send_over(&[0; 3]);
    bench.wait(80);
    assert!(bench.sent.probe_tail(bench.now, PathId(0)));
    assert_eq!((bench.lost(0), bench.resend(0)), (vec![4], Some(4)));
    assert!(bench.sent.may_resend(PathId(0), 0) || bench.lost(0).is_empty());
    bench.wait(40);
    bench.sack(0, 1, &[(3, 3)]);
    assert_eq!(bench.lost(0), [2, 3]);
    assert!(!bench.sent.probe_tail(bench.now, PathId(0)), "what is missing is known");
}

/// The probe leaves ten milliseconds before the answer to its chunk, which shows that chunk 2 is missing.
#[test]
fn an_answer_that_is_too_early_for_the_probe_is_for_what_it_repeats() {
    let mut bench = bench();
    bench.send_over(&[0]);
    bench.wait(30);
    bench.send_over(&[0]);
    bench.wait(30);
    assert!(bench.sent.probe_tail(bench.now, PathId(0)));
    assert_eq!(bench.resend(0), Some(3));
    bench.wait(10);
    bench.sack(0, 1, &[(2, 2)]);
    assert_eq!(bench.lost(0), [2]);
}

/// RFC 8985 §7.4.2.
#[test]
fn a_loss_that_the_probe_repaired_is_one_unless_the_peer_has_both() {
    for (millis, duplicates, lost) in [(40, &[][..], true), (40, &[Tsn(3)], false), (30, &[], false)] {
        let mut bench = bench();
        bench.send_over(&[0; 2]);
        bench.wait(40);
        bench.sack(0, 2, &[]);
        bench.wait(20);
        assert!(bench.sent.probe_tail(bench.now, PathId(0)));
        assert_eq!(bench.resend(0), Some(3));
        bench.wait(millis);
        bench.hear_duplicates(3, duplicates);
        let ack = bench.ack(0).expect("what was acknowledged");
        assert_eq!((ack.lost, ack.lost_bytes), (lost, if lost { LEN } else { 0 }), "{millis} {duplicates:?}");
    }
}

#[test]
fn what_timed_out_after_its_probe_is_no_second_loss() {
    let mut bench = bench();
    bench.send_over(&[0]);
    bench.wait(80);
    assert!(bench.sent.probe_tail(bench.now, PathId(0)));
    assert_eq!(bench.resend(0), Some(2));
    bench.wait(300);
    bench.time_out(0, 0);
    assert_eq!(bench.resend(0), Some(2));
    bench.wait(40);
    bench.sack(0, 2, &[]);
    assert!(bench.ack(0).is_some_and(|ack| !ack.lost));
}

#[test]
fn a_report_of_moved_chunks_alone_leaves_what_was_overtaken_watched() {
    let mut bench = bench();
    bench.send_over(&[1, 0]);
    bench.wait(1);
    bench.send_over(&[0]);
    assert!(bench.sent.move_chunk(2, PathId(0)).is_some());
    assert_eq!(bench.resend(0), Some(2));
    bench.wait(40);
    bench.sack(0, 1, &[(3, 3)]);
    let due = |bench: &Bench| bench.progress(0).and_then(|step| step.look_again);
    assert!(due(&bench).is_some(), "TSN 3 was overtaken");
    bench.wait(1);
    bench.sack(0, 2, &[(2, 2)]);
    assert!(due(&bench).is_some(), "it still is");
}

#[test]
fn the_end_of_a_message_with_a_lifetime_is_probed_and_not_that_of_counted_retransmissions() {
    let lifetime = Reliability::Lifetime(Duration::from_millis(100));
    for (reliability, millis, probed) in [
        (lifetime, 80, true),
        (lifetime, 100, false),
        (Reliability::Priority(1), 80, true),
        (Reliability::Retransmissions(3), 80, false),
    ] {
        let mut bench = bench();
        bench.offer(0, 0, 1, "BE", reliability);
        bench.wait(millis);
        assert_eq!(bench.sent.probe_tail(bench.now, PathId(0)), probed, "{reliability:?} after {millis} ms");
        assert_eq!(bench.resend(0), probed.then_some(2));
        assert!(bench.give_up().is_empty());
    }
}

#[test]
fn nothing_in_flight_is_not_probed() {
    let mut bench = bench();
    assert!(!bench.sent.probe_tail(bench.now, PathId(0)));
}

#[test]
fn what_was_late_and_went_again_makes_patient() {
    let mut bench = bench();
    bench.send_over(&[0; 4]);
    bench.wait(40);
    bench.sack(0, 1, &[(2, 4)]);
    assert_eq!(bench.resend(0), Some(2));
    let patience = |bench: &mut Bench| {
        bench.send_over(&[0]);
        bench.wait(1);
        bench.send_over(&[0; 3]);
        bench.wait(40);
        let cumulative = bench.sent.outstanding.cumulative_tsn().0;
        bench.sack(0, cumulative, &[(2, 4)]);
        bench.progress(0).and_then(|step| step.look_again).map(|due| due.since(bench.now))
    };
    bench.wait(5);
    bench.recovering = true;
    bench.hear_duplicates(5, &[Tsn(2)]);
    assert_eq!(
        patience(&mut bench),
        Some(Duration::from_millis(19)),
        "half a round trip, of which 1 ms is over"
    );
}
