//! Chunks that are sent again elsewhere before they count as lost: the books, and what acknowledgements are worth.

use super::super::resend::MovedChunk;
use super::*;

impl Bench {
    fn move_chunk(&mut self, index: u64, to: u8) -> Option<MovedChunk> {
        let moved = self.sent.move_chunk(index, PathId(to));
        self.check();
        moved
    }

    fn head(&self) -> Option<(u64, u8)> {
        self.sent.outstanding.head_of_line(self.now, false).map(|head| (head.index, head.path.0))
    }
}

#[test]
fn a_moved_chunk_flies_on_its_new_path_only() {
    let mut bench = Bench::new(2, &cmt());
    bench.send_over(&[1, 0, 1]);
    let moved = MovedChunk { from: PathId(1), bytes: LEN, flight: LEN, exit_point: 3 };
    assert_eq!(bench.move_chunk(1, 0), Some(moved));
    assert_eq!((bench.flight(0), bench.flight(1), bench.lost(0)), (LEN, LEN, vec![1]));
    assert_eq!((bench.queued(0), bench.queued(1)), (2 * LEN, LEN));
    assert_eq!(bench.load(1).timed.index(), None, "its round trip would be that of two paths");
    assert_eq!(bench.resend(0), Some(1));
    assert_eq!((bench.flight(0), bench.flight(1)), (2 * LEN, LEN));
    assert_eq!(bench.load(1).repairs.fast_retransmits, 0);
}

#[test]
fn only_what_is_in_flight_can_be_moved() {
    let mut bench = Bench::new(2, &cmt());
    bench.send_over(&[1, 0, 1]);
    bench.sack(0, 0, &[(2, 2)]);
    bench.time_out(1, 1);
    for index in [0, 1, 2, 3, 4] {
        assert_eq!(bench.move_chunk(index, 0), None, "{index}");
    }
}

#[test]
fn the_acknowledgement_of_a_moved_chunk_earns_no_window() {
    let mut bench = Bench::new(2, &cmt());
    bench.send_over(&[1, 0, 0]);
    bench.move_chunk(1, 0);
    bench.resend(0);
    bench.sack(0, 3, &[]);
    assert_eq!(bench.ack(0).map(|ack| ack.acked), Some(2 * LEN));
    assert_eq!(bench.progress(0).map(|progress| progress.uncredited), Some(LEN));
    // Alone it is reported all the same: T3 has to stop.
    bench.send(1, LEN);
    bench.move_chunk(4, 0);
    bench.resend(0);
    bench.sack(0, 4, &[]);
    let (acked, progress) = (bench.ack(0).map(|ack| ack.acked), bench.progress(0).expect("a report"));
    assert_eq!(
        (acked, progress.uncredited, progress.flight_after, progress.proven),
        (Some(0), LEN, 0, false)
    );
}

#[test]
fn the_head_of_line_is_what_the_cumulative_acknowledgement_waits_for() {
    let mut bench = Bench::new(2, &cmt());
    assert_eq!(bench.head(), None);
    bench.send_over(&[1, 0, 1]);
    assert_eq!(bench.head(), Some((1, 1)));
    bench.wait(30);
    assert_eq!(
        bench.sent.outstanding.head_of_line(bench.now, false).map(|head| head.age),
        Some(Duration::from_millis(30))
    );
    bench.sack(0, 1, &[(2, 2)]);
    assert_eq!(bench.head(), Some((2, 0)));
    bench.move_chunk(2, 1);
    assert_eq!(bench.head(), None, "it is no longer in flight");
    bench.resend(1);
    assert_eq!(bench.head(), None, "once is enough");
    bench.sack(0, 2, &[]);
    assert_eq!(bench.head(), Some((3, 1)));
}

#[test]
fn a_free_packet_that_was_left_over_does_not_take_a_moved_chunk_past_the_window() {
    let mut bench = Bench::new(2, &cmt());
    bench.send_over(&[1, 0]);
    bench.sent.outstanding.grant_free_packet(PathId(0));
    bench.sent.move_chunk(1, PathId(0)).expect("it is in flight");
    assert!(!bench.sent.may_resend(PathId(0), LEN), "1,000 bytes fill the window");
    assert!(bench.sent.may_resend(PathId(0), LEN + 1));
}

#[test]
fn a_duplicate_proves_the_first_path_of_a_moved_chunk_alive_unless_it_has_gone_again_twice() {
    let mut bench = Bench::new(2, &cmt());
    bench.send_over(&[1, 0, 1]);
    bench.move_chunk(1, 0);
    bench.resend(0);
    bench.sack(0, 2, &[]);
    assert_eq!(bench.sent.outstanding.on_duplicate(Tsn(1)), Some(PathId(1)));
    bench.move_chunk(3, 0);
    bench.resend(0);
    bench.move_chunk(3, 0);
    bench.resend(0);
    bench.sack(0, 3, &[]);
    assert_eq!(bench.sent.outstanding.on_duplicate(Tsn(3)), None, "path 0 may have brought both copies");
    assert!(bench.sent.awaits(PathId(1)));
}

#[test]
fn what_goes_again_and_fills_the_peers_window_asks_for_its_report() {
    let config = AssociationConfig { immediate_sack_when_full: true, ..cmt() };
    let asks = |window: usize| {
        let mut bench = Bench::new(2, &config);
        bench.send_over(&[1, 0, 0, 0]);
        bench.hear_window(0, 0, &[(2, 4)], &[], 1, window as u32).expect("a sound SACK");
        bench.move_chunk(1, 0);
        bench.resend(0);
        bench.sent.outstanding.ring.content(1).expect("in the ring").flags.unpacked().immediate
    };
    assert!(asks(2 * LEN - 1), "no other full one has room beside it");
    assert!(!asks(2 * LEN));
}
