//! Duplicates of latency-critical messages: what they may not take from new data, and when they count as lost.

use super::*;
use crate::config::BufferAllocation;
use crate::interface::stats::Limit;

const PATH: PathId = PathId(1);

fn bench(config: &AssociationConfig) -> Bench {
    let mut bench = Bench::new(2, config);
    bench.sent.start_copying(CopyScope::Latency);
    bench
}

impl Bench {
    /// Copies what has its turn on path 1; returns its TSN.
    fn copy(&mut self) -> u32 {
        assert!(self.sent.copy_candidate(PATH).is_some(), "nothing has its turn");
        let tsn = self.sent.send_copy(self.now, PATH).expect("a copy").tsn.0;
        self.check();
        tsn
    }

    fn verdict_of(&self, cwnd: usize) -> Verdict {
        self.sent.verdict(PATH, cwnd, LEN, 2, || false)
    }
}

#[test]
fn new_data_waits_for_no_copy_that_was_not_sent() {
    let mut bench = bench(&cmt());
    bench.send_over(&[0, 0]);
    assert_eq!(bench.sent.copy_candidate(PATH).map(|one| (one.from, one.fresh)), Some((PathId(0), true)));
    assert!(matches!(bench.verdict_of(9000), Verdict::Go(_)));
    assert!(!bench.sent.copies.is_of_everything() && bench.sent.copies.is_on());
}

#[test]
fn copies_hold_no_part_of_a_buffer_but_fill_the_window() {
    let config = AssociationConfig { buffer_allocation: BufferAllocation::WhenShort, ..cmt() };
    let mut bench = bench(&config);
    bench.sent.allocate(&[2 * LEN, 2 * LEN], Limit::ReceiveBuffer);
    bench.send_over(&[0, 0, 1]);
    assert_eq!([bench.copy(), bench.copy()], [1, 2]);
    assert_eq!(bench.flight(1), 3 * LEN);
    assert!(matches!(bench.verdict_of(4 * LEN), Verdict::Go(_)), "one of two chunks of its allocation");
    assert_eq!(bench.verdict_of(3 * LEN), Verdict::Wait(Limit::CongestionWindow));
    bench.send(1, LEN);
    assert_eq!(
        bench.verdict_of(4 * LEN),
        Verdict::Wait(Limit::ReceiveBuffer),
        "which the buffer forbids anyway"
    );
}

#[test]
fn a_copy_is_struck_by_what_left_after_it_not_by_what_has_a_higher_tsn() {
    let mut bench = bench(&cmt());
    bench.send(0, LEN);
    bench.wait(1);
    bench.send_over(&[1, 1, 1, 1]);
    bench.wait(1);
    assert_eq!(bench.copy(), 1);
    bench.wait(20);
    for last in 2..=5 {
        bench.sack(1, 0, &[(2, last)]);
    }
    assert_eq!(bench.flight(1), LEN, "they all left before it");
    bench.send_over(&[1, 1, 1]);
    bench.wait(20);
    for last in 6..=8 {
        bench.sack(1, 0, &[(2, last)]);
    }
    assert_eq!(bench.flight(1), 0, "they left after it");
    assert!(bench.ack(1).is_some_and(|ack| ack.lost), "its path pays for it");
}

#[test]
fn the_means_of_copying_are_given_up_when_none_is_under_way() {
    let mut bench = bench(&cmt());
    bench.send(0, LEN);
    assert_eq!(bench.copy(), 1);
    bench.sent.copies.stop();
    assert!(bench.sent.copies.is_on(), "one is under way");
    bench.wait(20);
    bench.sack(0, 1, &[]);
    bench.sent.on_timeout(PATH, PATH);
    bench.sent.copies.stop();
    assert!(!bench.sent.copies.is_on());
    let mut everything = Bench::new(2, &cmt());
    everything.sent.start_copying(CopyScope::Everything);
    everything.sent.copies.stop();
    assert!(everything.sent.copies.is_of_everything(), "a path scheduler wants it");
}
