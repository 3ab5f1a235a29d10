//! Two ends connected without a network.

use super::*;

fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

/// A connection that one end opens. Segments for which `lost` returns true are dropped. Time advances in milliseconds,
/// and every segment takes 10 ms.
struct Talk {
    ends: [Connection; 2],
    under_way: Vec<(u64, usize, Segment)>,
    now: u64,
    segments: usize,
}

impl Talk {
    fn new() -> Self {
        let spec = TcpSpec::default();
        let ends = [Connection::new(&spec, 1024, 80), Connection::new(&spec, 80, 1024)];
        Talk { ends, under_way: Vec::new(), now: 0, segments: 0 }
    }

    fn run_until(&mut self, end: u64, mut lost: impl FnMut(usize, &Segment) -> bool) {
        while self.now < end {
            let now = at(self.now);
            let (due, waiting) = self.under_way.drain(..).partition(|(at, _, _)| *at <= self.now);
            self.under_way = waiting;
            for (_, to, segment) in due as Vec<(u64, usize, Segment)> {
                self.ends[to].on_segment(now, &segment);
            }
            for from in 0..2 {
                // The accepting end waits for the SYN of the other end.
                if from == 1 && !self.ends[1].met {
                    continue;
                }
                self.ends[from].on_time(now);
                while let Some(segment) = self.ends[from].transmit(now) {
                    self.segments += 1;
                    let read = Segment::decode(&segment.encode()).expect("what we write we read");
                    if !lost(from, &segment) {
                        self.under_way.push((self.now + 10, 1 - from, read));
                    }
                }
            }
            self.now += 1;
        }
    }
}

#[test]
fn a_request_and_its_answer_take_two_round_trips() {
    let mut talk = Talk::new();
    talk.ends[0].hand_over(300);
    talk.run_until(31, |_, _| false);
    assert_eq!(talk.ends[1].receiver.delivered(), 300, "SYN, its answer, the request");
    talk.ends[1].hand_over(5000);
    talk.ends[1].finish();
    talk.run_until(42, |_, _| false);
    assert!(talk.ends[0].receiver.is_complete());
    assert_eq!(talk.ends[0].receiver.delivered(), 5000);
    talk.run_until(60, |_, _| false);
    assert!(talk.ends[1].sender.is_done());
    assert_eq!(talk.ends[1].due(), None, "nothing is left to do");
}

#[test]
fn everything_arrives_whatever_is_lost_once() {
    // SYN, its answer, the acknowledgement, data, acknowledgements and the FIN are each lost in one run.
    for victim in 0..40 {
        let mut talk = Talk::new();
        talk.ends[0].hand_over(30_000);
        talk.ends[0].finish();
        let mut count = 0;
        talk.run_until(8_000, |_, _| {
            count += 1;
            count - 1 == victim
        });
        assert_eq!(talk.ends[1].receiver.delivered(), 30_000, "segment {victim} was lost");
        assert!(talk.ends[1].receiver.is_complete() && talk.ends[0].sender.is_done(), "segment {victim}");
    }
}

#[test]
fn one_loss_among_many_segments_costs_no_timeout() {
    let mut talk = Talk::new();
    talk.ends[0].hand_over(200_000);
    let mut data = 0;
    talk.run_until(3_000, |from, segment| {
        data += usize::from(from == 0 && segment.length > 0);
        from == 0 && data == 20 && segment.length > 0
    });
    let counters = talk.ends[0].sender.counters;
    assert_eq!(talk.ends[1].receiver.delivered(), 200_000);
    assert_eq!((counters.resent, counters.timeouts, counters.recoveries), (1, 0, 1), "{counters:?}");
}

#[test]
fn several_losses_of_one_window_are_one_recovery() {
    let mut talk = Talk::new();
    talk.ends[0].hand_over(400_000);
    let mut data = 0;
    talk.run_until(3_000, |from, segment| {
        data += usize::from(from == 0 && segment.length > 0);
        from == 0 && segment.length > 0 && [40, 43, 45, 50].contains(&data)
    });
    let counters = talk.ends[0].sender.counters;
    assert_eq!((counters.resent, counters.timeouts, counters.recoveries), (4, 0, 1), "{counters:?}");
    assert_eq!(talk.ends[1].receiver.delivered(), 400_000);
}

#[test]
fn a_peer_that_is_gone_is_asked_ever_more_rarely() {
    let mut talk = Talk::new();
    talk.ends[0].hand_over(1);
    talk.run_until(40_000, |from, segment| from == 0 && segment.length > 0);
    // At 0.02 s, and after 1, 2, 4, 8, 16 s.
    assert_eq!(talk.ends[0].sender.counters.timeouts, 5);
    assert_eq!(talk.ends[0].sender.window(), 1460);
}

#[test]
fn numbers_wrap() {
    let near = (1u64 << 33) - 5;
    assert_eq!(widen(3, near), (1 << 33) + 3);
    assert_eq!(widen(u32::MAX - 20, near), (1 << 33) - 21);
    assert_eq!(widen(u32::MAX, 0), 0, "before the beginning");
    let mut talk = Talk::new();
    talk.run_until(30, |_, _| false);
    let far = Segment {
        sequence: 1 << 31,
        length: 1000,
        ..talk.ends[0].segment(Outgoing { start: 1, length: 0, fin: false })
    };
    talk.ends[1].on_segment(at(30), &far);
    assert_eq!(talk.ends[1].receiver.beyond(), [], "beyond the window");
}
