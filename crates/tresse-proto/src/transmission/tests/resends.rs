//! Timeouts, what waits to be sent again and on which path, and when it may leave.

use super::*;

#[test]
fn a_timeout_loses_what_flies_on_its_path_and_nothing_else() {
    let mut bench = Bench::new(3, &cmt());
    bench.send_over(&[0, 1, 0, 2, 0]);
    bench.sack(0, 0, &[(3, 3)]);
    assert_eq!(bench.time_out(0, 1), 2);
    assert_eq!((bench.lost(0), bench.lost(1), bench.lost(2)), (vec![], vec![1, 5], vec![]));
    assert_eq!([0, 1, 2].map(|path| bench.flight(path)), [0, 1000, 1000]);
    // 3 stays booked on path 0: it was acknowledged there, though not for good.
    assert_eq!([0, 1, 2].map(|path| bench.queued(path)), [1000, 3000, 1000]);
    assert_eq!(bench.time_out(0, 1), 0, "nothing flies there any more");
}

#[test]
fn lost_chunks_leave_lowest_first_and_fly_on_their_new_path() {
    let mut bench = Bench::new(2, &cmt());
    bench.send_over(&[0, 0, 1, 0]);
    bench.time_out(0, 1);
    bench.wait(7);
    assert_eq!(bench.sent.next_resend(PathId(1)).map(|lost| (lost.index, lost.bytes)), Some((1, LEN)));
    assert_eq!(bench.sent.next_resend(PathId(0)), None);
    assert_eq!(bench.resend_all(1), [1, 2, 4]);
    assert_eq!((bench.flight(0), bench.flight(1)), (0, 4000));
    assert_eq!(walk(&bench.load(1).again, &bench.sent.outstanding.ring), [1, 2, 4]);
    assert_eq!(bench.load(1).repairs.chunks_resent, 3);
    assert_eq!(
        bench.sent.outstanding.ring.get(1).map(|sent| (sent.sends, sent.sent_at)),
        Some((2, bench.now))
    );
    // The next timeout takes first transmissions and repeated ones alike.
    assert_eq!(bench.time_out(1, 0), 4);
    assert_eq!(bench.lost(0), [1, 2, 3, 4]);
}

#[test]
fn what_does_not_wait_cannot_be_sent_again() {
    let mut bench = Bench::new(1, &cmt());
    bench.send_over(&[0, 0]);
    for index in [0, 1, 2, 3, u64::MAX] {
        assert!(bench.sent.resend(bench.now, index).is_none(), "{index}");
        bench.check();
    }
}

#[test]
fn the_window_gates_lost_chunks_and_a_free_packet_passes_it() {
    let mut bench = Bench::new(1, &plain());
    let may = |bench: &Bench, cwnd| bench.sent.may_resend(PathId(0), cwnd);
    bench.send_over(&[0; 6]);
    assert!(!may(&bench, 1_000_000), "nothing is lost");
    bench.sack(0, 0, &[(2, 2)]);
    bench.sack(0, 0, &[(2, 3)]);
    bench.sack(0, 0, &[(2, 4)]);
    assert!(bench.sent.outstanding.has_lost());
    assert_eq!(bench.flight(0), 2000);
    assert!(may(&bench, 2001) && !may(&bench, 2000) && !may(&bench, 0));
    // Entering fast recovery lets one packet leave whatever the window says (RFC 9260 §7.2.4).
    bench.sent.outstanding.grant_free_packet(PathId(0));
    assert!(may(&bench, 0));
    bench.sent.outstanding.on_resent(PathId(0));
    assert!(!may(&bench, 2000) && may(&bench, 2001), "one packet, not two");
}

#[test]
fn a_timeout_lets_one_packet_leave_on_its_target() {
    let mut bench = Bench::new(2, &cmt());
    bench.send_over(&[0, 0, 1, 1]);
    bench.time_out(0, 1);
    assert!(bench.sent.may_resend(PathId(1), 0), "RFC 9260 §6.3.3 E3: at once");
    assert_eq!(bench.resend(1), Some(1));
    assert!(!bench.sent.may_resend(PathId(1), 3000) && bench.sent.may_resend(PathId(1), 3001));
    // A timeout that finds nothing in flight grants nothing.
    let mut bench = Bench::new(2, &cmt());
    bench.time_out(0, 1);
    assert!(!bench.load(1).free_packet);
}

#[test]
fn what_waits_for_a_dead_path_moves_to_another() {
    let mut bench = Bench::new(3, &cmt());
    bench.send_over(&[0, 1, 0, 2]);
    bench.time_out(0, 0);
    bench.time_out(2, 1);
    bench.sent.redirect(PathId(0), PathId(1), true);
    bench.check();
    assert_eq!((bench.lost(0), bench.lost(1)), (vec![], vec![1, 3, 4]));
    assert_eq!([0, 1, 2].map(|path| bench.queued(path)), [0, 4000, 0]);
    assert!(bench.load(1).free_packet);
    // To itself, or to a path that does not exist: nothing moves.
    bench.sent.redirect(PathId(1), PathId(1), true);
    bench.sent.redirect(PathId(1), PathId(3), true);
    bench.sent.redirect(PathId(9), PathId(1), true);
    bench.check();
    assert_eq!(bench.lost(1), [1, 3, 4]);
    bench.sack(0, 4, &[]);
    assert_eq!(bench.report.released, 4 * DATA);
}

#[test]
fn moving_nothing_grants_nothing() {
    let mut bench = Bench::new(2, &cmt());
    bench.send_over(&[0]);
    bench.sent.redirect(PathId(0), PathId(1), true);
    assert!(!bench.load(1).free_packet);
    assert_eq!(bench.flight(0), 1000, "what flies is left to T3");
}
