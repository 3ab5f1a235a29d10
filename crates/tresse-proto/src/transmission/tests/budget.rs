//! Verdicts on new data: the path's window, the peer's, and the split buffers with worked numbers.

use super::*;
use crate::config::{BufferAllocation, PeerWindowTest, Size, SwitchValue};
use crate::interface::stats::Limit;

/// User data of a full chunk.
const FULL: usize = 1000;

fn split(buffer_split: BufferSplit, counts: SplitCounts, send_buffer: usize) -> AssociationConfig {
    AssociationConfig {
        buffer_split,
        buffer_allocation: BufferAllocation::Equal,
        experiment: Experiment { split_counts: counts, ..Experiment::default() },
        send_buffer: Size(send_buffer),
        ..cmt()
    }
}

impl Bench {
    /// The verdict on a path whose congestion window is no limit.
    fn verdict(&self, path: u8) -> Verdict {
        self.sent.verdict(PathId(path), usize::MAX, FULL, self.sent.outstanding.loads.len(), || false)
    }

    /// Lets the peer announce `window` without acknowledging anything.
    fn announce(&mut self, window: u32) {
        let cumulative = self.sent.outstanding.cumulative_tsn().0;
        self.hear_window(0, cumulative, &[], &[], 1, window).expect("sound");
    }
}

#[test]
fn the_congestion_window_is_a_gate_not_a_measure() {
    let config = split(BufferSplit::None, SplitCounts::Outstanding, 1 << 20);
    let mut bench = Bench::new(2, &config);
    bench.send_over(&[0, 0, 0]);
    let verdict = |bench: &Bench, cwnd| bench.sent.verdict(PathId(0), cwnd, FULL, 2, || false);
    assert_eq!(verdict(&bench, 3001), Verdict::Go(997_000), "RFC 9260 §6.1 B");
    assert_eq!(verdict(&bench, 3000), Verdict::Wait(Limit::CongestionWindow));
    assert_eq!(
        bench.sent.verdict(PathId(1), 1, FULL, 2, || false),
        Verdict::Go(997_000),
        "each path by itself"
    );
    assert_eq!(
        bench.sent.verdict(PathId(2), 1, FULL, 2, || false),
        Verdict::Wait(Limit::Path),
        "there is none"
    );
    bench.time_out(0, 0);
    assert_eq!(verdict(&bench, 3001), Verdict::Wait(Limit::CongestionWindow), "what was lost goes first");
}

#[test]
fn a_window_tested_at_sacks_holds_until_the_next_one() {
    let mut config = split(BufferSplit::None, SplitCounts::Outstanding, 1 << 20);
    config.experiment.peer_window_test = PeerWindowTest::Sack;
    let mut bench = Bench::new(2, &config);
    bench.announce(3000);
    bench.send_over(&[0, 0, 0, 0]);
    assert_eq!(
        bench.verdict(0),
        Verdict::Go(FULL),
        "3,000 bytes were room enough, and nothing was heard since"
    );
    bench.announce(6999);
    assert_eq!(bench.verdict(0), Verdict::Wait(Limit::ReceiveBuffer), "2,999 bytes are not");
    assert_eq!(bench.verdict(1), Verdict::Go(FULL), "one packet on a path with nothing in flight");
    bench.send_over(&[1]);
    assert_eq!(bench.verdict(1), Verdict::Wait(Limit::ReceiveBuffer));
    assert!(!bench.sent.is_probing_window(), "5,000 bytes are what the peer can take");
    bench.announce(4999);
    assert!(bench.sent.is_probing_window(), "now they are more");
    bench.announce(8000);
    assert_eq!(bench.verdict(0), Verdict::Go(3000));
}

#[test]
fn a_closed_window_lets_one_probe_out() {
    let mut bench = Bench::new(2, &split(BufferSplit::None, SplitCounts::Outstanding, 1 << 20));
    bench.announce(0);
    assert!(!bench.sent.is_probing_window());
    assert_eq!(bench.verdict(0), Verdict::Go(FULL));
    bench.send(0, FULL);
    assert!(bench.sent.is_probing_window());
    assert_eq!(bench.verdict(0), Verdict::Wait(Limit::ReceiveBuffer));
    assert_eq!(bench.verdict(1), Verdict::Wait(Limit::ReceiveBuffer), "one for all paths");
    bench.announce(10_000);
    assert!(!bench.sent.is_probing_window());
}

#[test]
fn what_probed_a_closed_window_goes_again_when_it_opens() {
    let mut bench = Bench::new(2, &split(BufferSplit::None, SplitCounts::Outstanding, 1 << 20));
    bench.announce(0);
    bench.send(1, 400);
    bench.send(1, 600);
    // Still closed; then its T3, and the probe goes again on the other path.
    bench.announce(0);
    assert_eq!((bench.report.reopened, bench.flight(1)), (false, 1000));
    bench.time_out(1, 0);
    bench.resend_all(0);
    bench.announce(0);
    assert_eq!((bench.report.reopened, bench.flight(0)), (false, 1000));
    bench.announce(3000);
    assert_eq!((bench.report.reopened, bench.flight(0)), (true, 0));
    assert_eq!(bench.lost(0), [1, 2]);
    assert!(bench.sent.may_resend(PathId(0), 0), "whatever the congestion window says");
    bench.resend_all(0);
    // Once only: from now on it is in flight like any other chunk.
    bench.announce(3000);
    assert_eq!((bench.report.reopened, bench.flight(0)), (false, 1000));
}

/// With `PeerWindowTest::Sack` each path has a probe.
#[test]
fn the_probes_of_all_paths_go_again_when_the_window_opens() {
    let mut bench = Bench::new(2, &split(BufferSplit::None, SplitCounts::Outstanding, 1 << 20));
    bench.announce(0);
    bench.send(0, FULL);
    bench.send(1, FULL);
    bench.announce(3000);
    assert_eq!((bench.report.reopened, bench.flight(0), bench.flight(1)), (true, 0, 0));
    for path in [PathId(0), PathId(1)] {
        assert!(bench.sent.may_resend(path, 0), "path {}, whatever its congestion window says", path.0);
    }
}

#[test]
fn a_probe_that_was_taken_is_not_sent_again() {
    let mut bench = Bench::new(1, &split(BufferSplit::None, SplitCounts::Outstanding, 1 << 20));
    bench.announce(0);
    bench.send(0, FULL);
    bench.hear_window(0, 1, &[], &[], 1, 3000).expect("sound");
    assert_eq!((bench.report.reopened, bench.sent.outstanding.has_lost()), (false, false));
    bench.send(0, FULL);
    bench.announce(0);
    bench.announce(3000);
    assert_eq!((bench.report.reopened, bench.flight(0)), (false, FULL), "it was sent into an open window");
}

#[test]
fn no_runt_is_sent_into_a_nearly_full_window() {
    let mut bench = Bench::new(1, &split(BufferSplit::None, SplitCounts::Outstanding, 1 << 20));
    bench.send(0, FULL);
    bench.announce(2000);
    assert_eq!(bench.verdict(0), Verdict::Go(1000), "exactly one more");
    bench.announce(1999);
    assert_eq!(bench.verdict(0), Verdict::Wait(Limit::ReceiveBuffer), "999 would be a runt");
    // With nothing in flight no acknowledgement will come to open the window.
    bench.hear_window(0, 1, &[], &[], 1, 999).expect("sound");
    assert_eq!(bench.verdict(0), Verdict::Go(1000));
}

#[test]
fn half_of_the_send_buffer_is_a_paths_own() {
    for kind in [BufferSplit::Sender, BufferSplit::Both] {
        let mut bench = Bench::new(2, &split(kind, SplitCounts::Outstanding, 8000));
        bench.send_over(&[0, 0, 0]);
        assert!(matches!(bench.verdict(0), Verdict::Go(_)), "3000 and one more are 4000");
        bench.send(0, LEN);
        assert_eq!(bench.verdict(0), Verdict::Wait(Limit::SendBuffer), "{kind:?}");
        assert!(matches!(bench.verdict(1), Verdict::Go(_)));
    }
}

#[test]
fn half_of_what_the_peer_can_hold_is_a_paths_own() {
    for kind in [BufferSplit::Receiver, BufferSplit::Both] {
        let mut bench = Bench::new(2, &split(kind, SplitCounts::Outstanding, 1 << 20));
        bench.send_over(&[0, 0, 0, 1]);
        // The peer's buffer is what it announces: flight is already taken off and added again.
        bench.announce(8000);
        assert!(matches!(bench.verdict(0), Verdict::Go(4000)), "{kind:?}");
        bench.send(0, LEN);
        assert_eq!(bench.verdict(0), Verdict::Wait(Limit::ReceiveBuffer), "{kind:?}");
        assert_eq!(bench.verdict(1), Verdict::Go(3000));
    }
}

#[test]
fn no_split_lets_one_path_fill_both_buffers() {
    let mut bench = Bench::new(2, &split(BufferSplit::None, SplitCounts::Queued, 4000));
    bench.send_over(&[0; 6]);
    bench.announce(8000);
    assert_eq!(bench.verdict(0), Verdict::Go(2000));
    let mut bench = Bench::new(2, &split(BufferSplit::Sender, SplitCounts::Outstanding, 1 << 20));
    bench.send_over(&[0; 6]);
    bench.announce(8000);
    assert_eq!(bench.verdict(0), Verdict::Go(2000), "the sender's split leaves the peer's buffer alone");
    let mut bench = Bench::new(2, &split(BufferSplit::Receiver, SplitCounts::Outstanding, 4000));
    bench.send_over(&[0; 3]);
    assert_eq!(bench.verdict(0), Verdict::Go(997_000), "and the receiver's the own one");
}

#[test]
fn queued_bytes_count_until_they_are_released_outstanding_ones_while_they_fly() {
    for (counts, expected) in [
        (SplitCounts::Queued, Verdict::Wait(Limit::SendBuffer)),
        (SplitCounts::Outstanding, Verdict::Go(999_000)),
    ] {
        let mut bench = Bench::new(2, &split(BufferSplit::Sender, counts, 8000));
        bench.send_over(&[0; 4]);
        // Three of four are there, but may be taken back.
        bench.nr_sack(0, 0, &[(2, 4)], &[]);
        assert_eq!(bench.verdict(0), expected, "{counts:?}");
        bench.nr_sack(0, 0, &[], &[(2, 4)]);
        assert_eq!(bench.verdict(0), Verdict::Go(999_000), "{counts:?}: released");
    }
}

#[test]
fn overbooking_lets_a_path_exceed_its_share_of_the_receive_buffer_by_a_packet() {
    for (overbooking, expected) in [(false, Verdict::Wait(Limit::ReceiveBuffer)), (true, Verdict::Go(4000))] {
        let mut config = split(BufferSplit::Both, SplitCounts::Outstanding, 1 << 20);
        config.experiment.split_overbooking = overbooking;
        let mut bench = Bench::new(2, &config);
        bench.send_over(&[0; 4]);
        bench.announce(8000);
        assert_eq!(bench.verdict(0), expected, "4000 of 4000");
        bench.send(0, LEN);
        assert_eq!(bench.verdict(0), Verdict::Wait(Limit::ReceiveBuffer), "5000 of 4000");
    }
    // The own buffer is never overbooked.
    let mut config = split(BufferSplit::Sender, SplitCounts::Outstanding, 8000);
    config.experiment.split_overbooking = true;
    let mut bench = Bench::new(2, &config);
    bench.send_over(&[0; 4]);
    assert_eq!(bench.verdict(0), Verdict::Wait(Limit::SendBuffer));
}

#[test]
fn a_share_smaller_than_a_packet_does_not_silence_a_path() {
    for kind in BufferSplit::ALL {
        let mut bench = Bench::new(4, &split(*kind, SplitCounts::Queued, 2000));
        bench.send(0, LEN);
        bench.announce(3000);
        assert_eq!(bench.verdict(1), Verdict::Go(2000), "{}: 500 would be its part", kind.print());
    }
}

fn shared(path_suspension: bool) -> Bench {
    let config = AssociationConfig {
        buffer_allocation: BufferAllocation::Paths,
        path_suspension,
        ..split(BufferSplit::Both, SplitCounts::Outstanding, 100_000)
    };
    Bench::new(2, &config)
}

#[test]
fn an_allocation_is_a_gate_and_never_silences_a_path() {
    let mut bench = shared(false);
    assert_eq!(bench.sent.shared_buffer(), Some((100_000, Limit::SendBuffer)));
    bench.sent.allocate(&[2500, 0], Limit::SendBuffer);
    bench.send_over(&[0, 0]);
    assert_eq!(bench.verdict(0), Verdict::Go(998_000), "2,000 of 2,500 bytes");
    assert_eq!(bench.verdict(1), Verdict::Go(998_000), "nothing is under way there");
    bench.send_over(&[0, 1]);
    assert_eq!(bench.verdict(0), Verdict::Wait(Limit::SendBuffer));
    assert_eq!(bench.verdict(1), Verdict::Wait(Limit::SendBuffer));
    bench.announce(50_000);
    assert_eq!(bench.sent.shared_buffer(), Some((50_000, Limit::ReceiveBuffer)), "the smaller of the two");
}

#[test]
fn a_path_without_an_allocation_is_suspended_where_paths_may_be() {
    let mut bench = shared(true);
    bench.sent.allocate(&[2500, 0], Limit::SendBuffer);
    bench.send_over(&[0, 0]);
    assert_eq!(bench.verdict(1), Verdict::Wait(Limit::SendBuffer));
    bench.sent.allocate(&[2500, 1], Limit::SendBuffer);
    assert_eq!(bench.verdict(1), Verdict::Go(998_000), "it is tried with one packet");
}

#[test]
fn a_path_is_suspended_also_when_nothing_is_in_flight_unless_it_is_resumed() {
    let mut bench = shared(true);
    bench.sent.allocate(&[2500, 0], Limit::SendBuffer);
    assert_eq!(bench.verdict(1), Verdict::Wait(Limit::SendBuffer), "the other one goes first");
    assert!(bench.sent.resume_paths());
    assert!(matches!(bench.verdict(1), Verdict::Go(_)));
    assert!(!bench.sent.resume_paths(), "none is suspended any more");
}

#[test]
fn an_allocation_when_short_holds_until_it_is_given_up_and_equal_parts_then() {
    let config = AssociationConfig {
        buffer_allocation: BufferAllocation::WhenShort,
        ..split(BufferSplit::Sender, SplitCounts::Outstanding, 10_000)
    };
    let mut bench = Bench::new(2, &config);
    bench.send_over(&[0, 0]);
    assert!(matches!(bench.verdict(0), Verdict::Go(_)), "2,000 of 5,000 bytes");
    bench.sent.allocate(&[1500, 8500], Limit::SendBuffer);
    assert_eq!(bench.verdict(0), Verdict::Wait(Limit::SendBuffer));
    bench.sent.allocate(&[], Limit::SendBuffer);
    assert!(matches!(bench.verdict(0), Verdict::Go(_)));
    bench.send_over(&[0, 0, 0]);
    assert_eq!(bench.verdict(0), Verdict::Wait(Limit::SendBuffer), "its half is full");
}
