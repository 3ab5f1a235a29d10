//! Chunks that are under way on several paths: whose arrival an acknowledgement means, and what it is worth.
//!
//! Path 0 answers after 20 ms, path 1 after 60 ms, unless a test says otherwise.

use super::*;
use crate::interface::reliability::Reliability;

const FAST: u64 = 20;
const SLOW: u64 = 60;

impl Bench {
    fn copying() -> Self {
        Self::copying_between(FAST, SLOW)
    }

    fn copying_between(first: u64, second: u64) -> Self {
        let mut bench = Bench::new(2, &cmt());
        bench.sent.start_copying(CopyScope::Everything);
        for (path, millis) in [(0, first), (1, second)] {
            let usual = Duration::from_millis(millis);
            bench.sent.copies.tell_trip(PathId(path), ResponseTime { shortest: usual, usual: Some(usual) });
        }
        bench
    }

    /// Copies on `path` as many chunks as have not had their turn there; answers their TSNs.
    fn copy_all(&mut self, path: u8) -> Vec<u32> {
        let mut copied = Vec::new();
        while self.sent.copy_candidate(PathId(path)).is_some() {
            let data = self.sent.send_copy(self.now, PathId(path)).expect("a copy");
            copied.push(data.tsn.0);
            self.check();
        }
        copied
    }

    /// Sends `count` chunks on path 0 and copies them on path 1.
    fn send_twice(&mut self, count: usize) {
        for _ in 0..count {
            self.send(0, LEN);
        }
        assert_eq!(self.copy_all(1).len(), count);
    }

    /// A SACK that reports `duplicates` too.
    pub(super) fn sack_twice(&mut self, via: u8, cumulative: u32, gaps: &[Block], duplicates: &[u32]) {
        let (gaps, duplicates) = (blocks(gaps), duplicates.iter().copied().map(Tsn).collect::<Vec<_>>());
        let view = SackView {
            cumulative_tsn: Tsn(cumulative),
            a_rwnd: 1_000_000,
            renegable: List::Values(&gaps),
            non_renegable: List::Values(&[]),
            duplicates: List::Values(&duplicates),
            dac_count: 1,
        };
        self.sent.on_sack(self.now, view, PathId(via), false, &mut self.report).expect("a sound SACK");
        self.check();
    }

    /// Last report on `path`: bytes acknowledged, whether its window may grow, whether anything was lost.
    fn told(&self, path: u8) -> Option<(usize, bool, bool)> {
        self.ack(path).map(|ack| (ack.acked, ack.may_grow, ack.lost))
    }

    /// The round trip that the last report measured on `path`, in milliseconds.
    fn measured(&self, path: u8) -> Option<u128> {
        self.progress(path)?.rtt.map(|rtt| rtt.as_millis())
    }

    fn proven(&self, path: u8) -> Option<bool> {
        self.progress(path).map(|progress| progress.proven)
    }
}

#[test]
fn each_chunk_is_copied_once_on_every_other_path() {
    let mut bench = Bench::copying();
    bench.send_over(&[0, 1, 0]);
    assert_eq!((bench.copy_all(0), bench.copy_all(1)), (vec![2], vec![1, 3]));
    assert_eq!((bench.copy_all(0), bench.copy_all(1)), (vec![], vec![]));
    assert_eq!((bench.flight(0), bench.flight(1)), (3 * LEN, 3 * LEN), "both windows pay");
    assert_eq!(
        (bench.sent.outstanding.flight(), bench.sent.peer_window()),
        (3 * LEN, 1_000_000 - 3 * LEN),
        "the peer's once"
    );
    assert_eq!((bench.queued(0), bench.queued(1)), (2 * LEN, LEN));
    assert_eq!((bench.load(0).repairs.copies_sent, bench.load(1).repairs.copies_sent), (1, 2));
}

#[test]
fn what_was_acknowledged_before_its_turn_is_not_copied() {
    let mut bench = Bench::copying();
    bench.send_over(&[0, 0, 0, 0]);
    bench.wait(FAST);
    bench.sack(0, 1, &[(2, 2)]);
    assert_eq!(bench.copy_all(1), [2, 4]);
}

#[test]
fn new_data_waits_for_copies_and_copies_for_the_window() {
    let mut bench = Bench::copying();
    bench.send_over(&[0, 0]);
    let (path, verdict) = (PathId(1), |bench: &Bench| bench.sent.verdict(PathId(1), 9000, LEN, 2, || false));
    assert!(bench.sent.copy_candidate(path).is_some());
    assert_eq!(verdict(&bench), Verdict::Wait(Limit::CongestionWindow));
    assert!(bench.sent.may_copy(path, 1));
    assert!(bench.sent.send_copy(bench.now, path).is_some());
    assert!(!bench.sent.may_copy(path, LEN) && bench.sent.may_copy(path, LEN + 1));
    bench.copy_all(1);
    assert!(matches!(verdict(&bench), Verdict::Go(_)));
}

#[test]
fn copies_without_an_answer_do_not_hold_up_what_follows_once_everything_is_acknowledged() {
    let mut bench = Bench::copying();
    bench.send_twice(2);
    let verdict = |bench: &Bench| bench.sent.verdict(PathId(1), 2 * LEN, LEN, 2, || false);
    assert_eq!(verdict(&bench), Verdict::Wait(Limit::CongestionWindow));
    bench.wait(FAST);
    bench.sack_twice(0, 2, &[], &[]);
    assert_eq!(bench.flight(1), 2 * LEN);
    assert!(matches!(verdict(&bench), Verdict::Go(_)));
    bench.send(1, LEN);
    assert_eq!(verdict(&bench), Verdict::Wait(Limit::CongestionWindow), "a packet at a time");
}

#[test]
fn nor_what_was_lost_elsewhere() {
    let mut bench = Bench::copying();
    bench.send_twice(2);
    bench.wait(FAST);
    bench.send(0, LEN);
    bench.sack_twice(0, 2, &[], &[]);
    bench.time_out(0, 1);
    bench.sent.outstanding.on_resent(PathId(1));
    assert_eq!((bench.lost(1), bench.flight(1)), (vec![3], 2 * LEN));
    assert!(bench.sent.may_resend(PathId(1), 2 * LEN));
    assert_eq!(bench.resend(1), Some(3));
}

#[test]
fn both_arrivals_are_told_and_each_path_is_credited_with_its_own() {
    let mut bench = Bench::copying();
    bench.send_twice(2);
    bench.wait(FAST);
    bench.sack_twice(0, 2, &[], &[]);
    assert_eq!((bench.told(0), bench.told(1)), (Some((2 * LEN, true, false)), None));
    assert_eq!((bench.measured(0), bench.proven(0)), (Some(20), Some(true)), "path 1 had not had the time");
    assert_eq!((bench.flight(0), bench.flight(1)), (0, 2 * LEN), "they are still under way there");
    assert!(bench.sent.outstanding.is_empty() && bench.sent.awaits(PathId(1)));
    bench.wait(SLOW - FAST);
    bench.sack_twice(1, 2, &[], &[1]);
    assert_eq!((bench.told(0), bench.told(1)), (None, Some((LEN, true, false))));
    assert_eq!((bench.measured(1), bench.proven(1)), (Some(60), Some(true)));
    bench.wait(1);
    bench.sack_twice(1, 2, &[], &[2]);
    assert_eq!(bench.measured(1), None, "it was sent before the last measurement");
    assert_eq!((bench.flight(1), bench.sent.awaits(PathId(1))), (0, false));
}

#[test]
fn one_report_for_both_arrivals_measures_both_paths() {
    let mut bench = Bench::copying_between(FAST, FAST);
    bench.send_twice(1);
    bench.wait(FAST + 2);
    bench.sack_twice(1, 1, &[], &[1]);
    assert_eq!((bench.measured(0), bench.measured(1)), (Some(22), Some(22)));
    assert_eq!((bench.flight(0), bench.flight(1)), (0, 0));
}

#[test]
fn an_acknowledgement_that_could_be_for_either_measures_and_proves_nothing() {
    let mut bench = Bench::copying_between(FAST, FAST);
    bench.send_twice(1);
    bench.wait(FAST);
    bench.sack_twice(0, 1, &[], &[]);
    assert_eq!((bench.told(0), bench.told(1)), (Some((LEN, true, false)), None));
    assert_eq!((bench.measured(0), bench.proven(0)), (None, Some(false)));
    // With the duplicate both are known to have arrived.
    bench.wait(1);
    bench.sack_twice(1, 1, &[], &[1]);
    assert_eq!((bench.measured(1), bench.proven(1)), (Some(21), Some(true)));
}

#[test]
fn what_comes_when_the_slow_path_answers_is_its_own() {
    let mut bench = Bench::copying();
    bench.send_twice(1);
    bench.wait(SLOW);
    bench.sack_twice(1, 1, &[], &[]);
    assert_eq!((bench.told(0), bench.told(1)), (None, Some((LEN, true, false))));
    assert_eq!((bench.flight(0), bench.flight(1)), (LEN, 0), "the fast path has not answered");
    assert!(bench.sent.outstanding.is_empty() && bench.sent.awaits(PathId(0)));
    assert_eq!(bench.proven(1), Some(false));
}

#[test]
fn a_path_that_was_never_measured_is_believed_where_its_reports_come_over_it_or_the_other_is_overdue() {
    for (via, wait, by_copy) in [(1, FAST, true), (1, 3 * FAST, true), (0, 3 * FAST, true), (0, FAST, false)]
    {
        let mut bench = Bench::copying();
        bench.sent.copies.tell_trip(PathId(1), ResponseTime::default());
        bench.send_twice(1);
        bench.wait(wait);
        bench.sack_twice(via, 1, &[], &[]);
        assert_eq!(bench.told(1).is_some(), by_copy, "after {wait} ms over path {via}");
    }
}

#[test]
fn a_hole_that_a_copy_fills_is_a_loss_of_the_path_that_left_it() {
    let mut bench = Bench::copying();
    bench.send_twice(3);
    // 1 is lost on path 0.
    bench.wait(FAST);
    bench.sack_twice(0, 0, &[(2, 2)], &[]);
    bench.sack_twice(0, 0, &[(2, 3)], &[]);
    assert_eq!((bench.misses(1), bench.told(0)), (2, Some((LEN, false, false))));
    bench.wait(30);
    assert_eq!(bench.send(0, LEN), 4);
    // Its copy arrives before the third strike, and earns path 1 what it did.
    bench.wait(SLOW - FAST - 30);
    bench.sack_twice(1, 3, &[], &[]);
    assert_eq!((bench.told(0), bench.told(1)), (None, Some((LEN, true, false))));
    assert_eq!((bench.flight(0), bench.lost(0)), (2 * LEN, vec![]), "1 still counts, and 4");
    bench.wait(10);
    bench.sack_twice(0, 4, &[], &[]);
    assert_eq!(bench.told(0), Some((LEN, false, true)), "the third strike");
    assert_eq!((bench.flight(0), bench.flight(1)), (0, 2 * LEN));
    assert_eq!(bench.lost(0), [], "there is nothing to send again");
}

#[test]
fn three_answers_for_later_copies_are_a_loss_where_no_duplicate_came() {
    let mut bench = Bench::copying();
    bench.send_twice(5);
    bench.wait(FAST);
    bench.sack_twice(0, 5, &[], &[]);
    bench.wait(SLOW - FAST);
    for (tsn, told) in [(2, (LEN, false, false)), (3, (LEN, false, false)), (4, (LEN, false, true))] {
        bench.sack_twice(1, 5, &[], &[tsn]);
        assert_eq!(bench.told(1), Some(told), "duplicate {tsn}");
    }
    assert_eq!((bench.flight(1), bench.told(0)), (LEN, None));
    bench.sack_twice(1, 5, &[], &[1]);
    assert_eq!(bench.told(1), None, "it comes too late");
}

#[test]
fn a_lost_chunk_goes_again_and_a_copy_that_arrives_first_spares_it() {
    let mut bench = Bench::copying();
    bench.send_twice(4);
    bench.wait(FAST);
    for last in 2..=4 {
        bench.sack_twice(0, 0, &[(2, last)], &[]);
    }
    assert_eq!((bench.lost(0), bench.told(0)), (vec![1], Some((LEN, false, true))));
    bench.wait(SLOW - FAST);
    bench.sack_twice(1, 4, &[], &[]);
    assert_eq!((bench.lost(0), bench.told(1)), (vec![], Some((LEN, true, false))));
    assert!(bench.sent.outstanding.is_empty());
}

#[test]
fn what_just_went_again_leaves_the_answer_to_the_copy_that_had_the_time() {
    let mut bench = Bench::copying();
    bench.send(1, LEN);
    assert_eq!(bench.copy_all(0), [1]);
    bench.send_over(&[0, 0, 0]);
    bench.wait(FAST);
    bench.sent.move_chunk(1, PathId(1)).expect("it is in flight");
    assert_eq!(bench.resend(1), Some(1));
    bench.sack_twice(0, 1, &[], &[]);
    assert_eq!((bench.told(0), bench.told(1)), (Some((LEN, true, false)), None));
    assert_eq!(
        (bench.measured(0), bench.proven(0)),
        (None, Some(false)),
        "the first sending may have arrived late"
    );
    for tsn in 2..=4 {
        bench.wait(1);
        bench.sack_twice(0, tsn, &[], &[]);
        assert_eq!(bench.told(0).map(|(_, _, lost)| lost), Some(false), "path 0 lost nothing");
    }
    assert_eq!((bench.flight(0), bench.flight(1)), (0, LEN));
    bench.wait(SLOW - 3);
    bench.sack_twice(1, 4, &[], &[1]);
    assert_eq!((bench.told(1), bench.flight(1)), (Some((LEN, true, false)), 0), "and path 1 repeated it");
}

#[test]
fn a_report_that_was_overtaken_still_answers_for_copies() {
    let mut bench = Bench::copying();
    bench.send_twice(2);
    bench.wait(FAST);
    bench.sack_twice(0, 2, &[], &[]);
    bench.wait(SLOW - FAST);
    let duplicates = [Tsn(1)];
    let (now, duplicates) = (bench.now, List::Values(&duplicates));
    assert!(bench.sent.on_late_duplicates(now, duplicates, PathId(1), &mut bench.report));
    assert_eq!((bench.told(1), bench.measured(1)), (Some((LEN, true, false)), Some(60)));
    assert_eq!((bench.flight(1), bench.report.advanced), (LEN, false));
}

#[test]
fn a_path_that_was_told_of_what_is_given_up_is_waited_for_when_it_has_answered_for_its_copies() {
    let mut bench = Bench::copying();
    bench.send_twice(1);
    bench.offer(0, 0, 2, "BE", Reliability::Retransmissions(0));
    bench.wait(FAST);
    bench.sack_twice(0, 1, &[], &[]);
    bench.time_out(0, 0);
    assert_eq!(bench.give_up(), [2]);
    assert!(bench.forward_in(1, 1500).is_some());
    bench.wait(SLOW - FAST);
    let duplicates = [Tsn(1)];
    let (now, duplicates) = (bench.now, List::Values(&duplicates));
    assert!(bench.sent.on_late_duplicates(now, duplicates, PathId(1), &mut bench.report));
    assert_eq!((bench.flight(1), bench.progress(1).map(|progress| progress.awaits)), (0, Some(true)));
}

#[test]
fn made_up_duplicates_are_worth_no_more_than_the_copies_there_were() {
    let mut bench = Bench::copying();
    bench.send_twice(2);
    bench.wait(SLOW);
    bench.sack_twice(1, 0, &[], &[1, 1, 1, 7, 0, 0x8000_0000, u32::MAX]);
    assert_eq!((bench.told(0), bench.told(1)), (None, Some((LEN, true, false))));
    assert_eq!((bench.flight(0), bench.flight(1)), (2 * LEN, LEN));
}

#[test]
fn a_timeout_gives_up_the_copies_of_its_path_and_sends_nothing_again_for_them() {
    let mut bench = Bench::copying();
    bench.send_twice(3);
    assert_eq!(bench.time_out(1, 0), 0);
    assert_eq!((bench.flight(0), bench.flight(1), bench.lost(0)), (3 * LEN, 0, vec![]));
    assert_eq!(bench.copy_all(1), [], "each chunk is copied once");
    assert_eq!(bench.time_out(0, 1), 3);
    assert_eq!((bench.flight(0), bench.lost(1)), (0, vec![1, 2, 3]));
}

#[test]
fn early_arrivals_are_counted_without_copies() {
    let mut bench = Bench::copying();
    bench.send_over(&[0, 1, 0]);
    bench.copy_all(0);
    bench.copy_all(1);
    assert_eq!(bench.sent.outstanding.held_early(), 0);
    bench.wait(FAST);
    bench.sack_twice(0, 0, &[(3, 3)], &[]);
    assert_eq!(bench.sent.outstanding.held_early(), LEN);
}
