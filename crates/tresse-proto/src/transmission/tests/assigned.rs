//! Chunks that wait for the window of their path: what counts them, who sees them, and how they leave.

use super::*;
use crate::interface::reliability::Reliability;

const GONE: Result<(), SackFault> = Err(SackFault::Unsent);

impl Bench {
    /// Assigns a chunk of `len` bytes; returns its TSN.
    pub(super) fn assign(&mut self, path: u8, len: usize) -> u32 {
        let fragment = Fragment {
            stream: StreamId(0),
            mid: Mid(0),
            fsn: Fsn(0),
            ppid: Ppid(0),
            flags: DataFlags::WHOLE.into(),
            payload: Bytes::from(vec![0; len - HEADER]),
        };
        self.sent.assign(self.now, fragment, None, PathId(path));
        self.check();
        self.sent.outstanding.last_tsn().0
    }

    /// Sends what was assigned to `path` first; returns its TSN.
    pub(super) fn leave(&mut self, path: u8) -> Option<u32> {
        let (index, _) = self.sent.outstanding.next_assigned(PathId(path))?;
        let tsn = self.sent.send_assigned(self.now, index).map(|data| data.tsn.0);
        self.check();
        tsn
    }

    fn verdict_on_new(&self, path: u8) -> Verdict {
        self.sent.verdict(PathId(path), 20 * LEN, LEN, 2, || false)
    }
}

/// Chunk 1 in flight on path 0, chunks 2 and 3 assigned to it, chunk 4 in flight on path 1.
fn planned() -> Bench {
    let mut bench = Bench::new(2, &AssociationConfig { buffer_split: BufferSplit::None, ..cmt() });
    bench.send(0, LEN);
    bench.assign(0, LEN);
    bench.assign(0, LEN);
    bench.send(1, LEN);
    bench
}

#[test]
fn an_assigned_chunk_is_in_no_flight_but_in_the_send_buffer_and_in_the_peers_window() {
    let bench = planned();
    assert_eq!((bench.flight(0), bench.queued(0), bench.sent.outstanding.flight()), (LEN, 3 * LEN, 2 * LEN));
    assert_eq!(
        (bench.sent.outstanding.assigned_on(PathId(0)), bench.sent.outstanding.assigned()),
        (2 * LEN, 2 * LEN)
    );
    assert_eq!(bench.sent.peer_window(), 1_000_000 - 2 * LEN);
    assert_eq!(bench.verdict_on_new(1), Verdict::Go(1_000_000 - 4 * LEN));
    assert_eq!(bench.load(0).history.chunks_sent, 1);
}

#[test]
fn new_data_does_not_overtake_what_was_assigned_to_its_path() {
    let mut bench = planned();
    assert_eq!(bench.verdict_on_new(0), Verdict::Wait(Limit::CongestionWindow));
    bench.leave(0);
    bench.leave(0);
    assert!(matches!(bench.verdict_on_new(0), Verdict::Go(_)));
}

#[test]
fn no_more_is_assigned_than_allowed() {
    let bench = planned();
    let verdict = |most| bench.sent.verdict_ahead(PathId(0), most, LEN, 2);
    assert_eq!(verdict(3 * LEN), Verdict::Go(1_000_000 - 4 * LEN));
    assert_eq!(verdict(3 * LEN - 1), Verdict::Wait(Limit::CongestionWindow));
}

#[test]
fn it_leaves_as_what_is_sent_once_and_measures_the_path() {
    let mut bench = planned();
    bench.wait(30);
    assert_eq!([bench.leave(0), bench.leave(0), bench.leave(0)], [Some(2), Some(3), None]);
    assert_eq!(
        (bench.flight(0), bench.load(0).history.chunks_sent, bench.load(0).repairs.chunks_resent),
        (3 * LEN, 3, 0)
    );
    bench.sack(0, 1, &[(3, 3)]);
    bench.wait(20);
    bench.sack(0, 4, &[]);
    assert_eq!(bench.progress(0).and_then(|progress| progress.shortest), Some(Duration::from_millis(20)));
    assert!(bench.sent.outstanding.is_empty());
}

#[test]
fn gaps_above_it_are_no_missing_reports() {
    let mut bench = planned();
    for _ in 0..5 {
        bench.send(1, LEN);
    }
    bench.sack(0, 1, &[]);
    for end in 3..8 {
        bench.sack(1, 1, &[(3, end)]);
    }
    assert_eq!((bench.misses(2), bench.misses(3)), (0, 0));
    assert!(!bench.sent.outstanding.has_lost());
    // Nor are they once it has left, for what was there before.
    bench.leave(0);
    bench.sack(1, 1, &[(3, 8)]);
    assert_eq!(bench.misses(2), 0);
}

#[test]
fn the_peer_cannot_acknowledge_what_was_never_sent() {
    let mut bench = planned();
    assert_eq!(bench.hear(0, 2, &[], &[], 1), GONE);
    assert_eq!(bench.hear(0, 4, &[], &[], 1), GONE);
    for (renegable, promised) in [(&[(1, 1)][..], &[][..]), (&[], &[(2, 3)])] {
        let mut bench = planned();
        bench.hear(0, 1, renegable, promised, 1).expect("a cumulative TSN that was sent");
        assert!(bench.report.unsound);
        assert_eq!(bench.sent.outstanding.next_assigned(PathId(0)).map(|(index, _)| index), Some(2));
    }
    bench.leave(0);
    bench.sack(0, 2, &[(2, 2)]);
    assert_eq!(bench.hear(0, 3, &[], &[], 1), GONE);
}

#[test]
fn the_peers_window_must_have_room_when_it_leaves_unless_nothing_flies() {
    let mut bench = planned();
    let may = |bench: &Bench| bench.sent.may_send_assigned(PathId(0), 20 * LEN);
    assert!(may(&bench));
    bench.hear_window(1, 1, &[(3, 3)], &[], 1, 0).expect("a sound SACK");
    assert!(may(&bench), "one chunk may ask");
    bench.leave(0);
    assert!(!may(&bench));
    assert!(bench.sent.is_probing_window());
}

#[test]
fn what_everything_waits_for_needs_no_room_in_the_peers_window() {
    let mut bench = planned();
    let may = |bench: &Bench| bench.sent.may_send_assigned(PathId(0), 20 * LEN);
    bench.send(1, LEN);
    bench.hear_window(0, 0, &[(4, 4)], &[], 1, 0).expect("a sound SACK");
    assert!(!may(&bench), "chunk 1 comes first");
    bench.hear_window(0, 1, &[(3, 3)], &[], 1, 0).expect("a sound SACK");
    assert!(
        bench.sent.outstanding.flight() > 0 && may(&bench),
        "chunk 5 asks in vain as long as chunk 2 is missing"
    );
}

#[test]
fn its_path_must_have_room_and_nothing_lost() {
    let mut bench = planned();
    assert!(!bench.sent.may_send_assigned(PathId(0), LEN), "full");
    bench.time_out(0, 0);
    assert!(!bench.sent.may_send_assigned(PathId(0), 20 * LEN), "a lost chunk goes first");
    assert_eq!(bench.resend_all(0), [1]);
    assert!(bench.sent.may_send_assigned(PathId(0), 20 * LEN));
    assert!(!bench.sent.may_send_assigned(PathId(1), 20 * LEN), "nothing waits there");
}

#[test]
fn what_the_peer_waits_for_goes_before_what_was_lost() {
    let mut bench = planned();
    bench.send(0, LEN);
    bench.sack(0, 1, &[]);
    bench.time_out(0, 0);
    assert_eq!(bench.lost(0), [5]);
    let may = |bench: &Bench| bench.sent.may_send_assigned(PathId(0), 20 * LEN);
    assert!(may(&bench), "chunk 2 was never sent, and all wait for it");
    bench.leave(0);
    assert!(!may(&bench), "chunk 5 goes before chunk 3");
}

#[test]
fn what_is_handed_over_leaves_in_order_and_what_overtook_it_does_not_strike_it() {
    let mut bench = planned();
    bench.assign(1, LEN);
    bench.sent.outstanding.hand_over(PathId(0), PathId(1));
    bench.check();
    assert_eq!((bench.queued(0), bench.queued(1)), (LEN, 4 * LEN));
    bench.wait(10);
    assert_eq!([bench.leave(1), bench.leave(1), bench.leave(1)], [Some(2), Some(3), Some(5)]);
    assert_eq!(walk(&bench.load(1).fresh, &bench.sent.outstanding.ring), [4, 5]);
    assert_eq!(walk(&bench.load(1).again, &bench.sent.outstanding.ring), [2, 3]);
    assert_eq!(bench.load(1).repairs.chunks_resent, 0);
    bench.sack(1, 1, &[(3, 4)]);
    assert_eq!(bench.misses(2), 0);
    // To where there is no path, nothing is handed.
    bench.assign(0, LEN);
    bench.sent.outstanding.hand_over(PathId(0), PathId(7));
    assert_eq!(bench.sent.outstanding.assigned_on(PathId(0)), LEN);
}

#[test]
fn a_path_that_joined_later_takes_over_too() {
    let mut bench = planned();
    bench.sent.renew_path(PathId(2), 3);
    bench.sent.outstanding.hand_over(PathId(0), PathId(2));
    bench.check();
    assert_eq!(bench.sent.outstanding.assigned_on(PathId(2)), 2 * LEN);
    assert_eq!([bench.leave(2), bench.leave(2)], [Some(2), Some(3)]);
}

#[test]
fn a_timeout_leaves_it_where_it_is() {
    let mut bench = planned();
    assert_eq!(bench.time_out(0, 1), 1);
    assert_eq!((bench.lost(1), bench.sent.outstanding.assigned_on(PathId(0))), (vec![1], 2 * LEN));
}

#[test]
fn a_recovery_does_not_wait_for_it() {
    let mut bench = planned();
    assert_eq!(
        (bench.sent.outstanding.highest_on(PathId(0)), bench.sent.outstanding.highest_on(PathId(1))),
        (1, 4)
    );
    bench.leave(0);
    assert_eq!(bench.sent.outstanding.highest_on(PathId(0)), 2);
}

#[test]
fn it_is_given_up_when_its_lifetime_is_over_and_the_peer_is_told_to_go_on() {
    let mut bench = planned();
    let lifetime = Reliability::Lifetime(Duration::from_millis(50));
    let index = bench.offer_ahead(0, 9, lifetime);
    bench.wait(49);
    assert!(bench.sent.next_condemned(bench.now).is_none());
    bench.wait(1);
    let terms = bench.sent.next_condemned(bench.now).expect("its lifetime is over");
    assert!(!bench.sent.was_sent(&terms));
    let mut pieces = Vec::new();
    assert_eq!(bench.sent.abandon(&terms, false, &mut pieces), DATA);
    assert_eq!(pieces.concat().len(), DATA, "they come back to the application");
    bench.check();
    assert_eq!((index, bench.sent.outstanding.assigned()), (5, 2 * LEN));
    bench.leave(0);
    bench.leave(0);
    bench.sack(0, 4, &[]);
    bench.sent.advance();
    assert!(bench.sent.forward_is_due(), "its TSN has to be skipped");
}

#[test]
fn what_has_left_in_time_is_not_given_up() {
    let mut bench = planned();
    bench.offer_ahead(1, 9, Reliability::Lifetime(Duration::from_millis(50)));
    bench.leave(1);
    bench.wait(60);
    assert!(bench.sent.next_condemned(bench.now).is_none());
}

#[test]
fn it_does_not_count_as_what_arrived_early() {
    let mut bench = Bench::new(
        2,
        &AssociationConfig {
            chunk_rescheduling: ChunkRescheduling::Both,
            experiment: Experiment { rescheduling_threshold: 1, ..Experiment::default() },
            buffer_split: BufferSplit::None,
            ..cmt()
        },
    );
    bench.assign(0, LEN);
    bench.send(1, LEN);
    assert!(!bench.sent.fills_buffer_early(PathId(0), 2) && !bench.sent.fills_buffer_early(PathId(1), 2));
}
