//! Pacing of one path: packets that the window allows are spread over the round trip (RFC 9002 §7.7).
//!
//! A token bucket is filled at a multiple of window over round-trip time. A path that has emptied it waits until several
//! packets may leave, so that one timer serves them all. A query compares two times; all other work is done when a packet
//! leaves.

use std::num::NonZeroU64;
use std::time::Duration;

use tresse_policy::Instant;
use tresse_policy::engine::Window;

/// The token bucket of one path. It starts full.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Pacer {
    /// Bytes that may still leave at once; negative if the last packet took more than there was.
    tokens: f64,
    /// Time at which the bucket was last filled.
    filled: Instant,
    /// Time before which nothing leaves.
    ready: Instant,
    /// True if the driver is to poll again at that time.
    wakes: bool,
    /// Delay of the last timer.
    late: Duration,
}

/// Pacing rate of a path, and the bytes that the path may send at once.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(super) struct Flow {
    /// Rate in bytes per second.
    rate: f64,
    /// Size of the bucket in bytes.
    burst: f64,
    /// Size of a full packet in bytes.
    packet: f64,
    /// Longest pause between packets.
    longest_pause: Duration,
}

impl Flow {
    /// Returns the pacing of a path with this window and, if the controller sets one, this rate in bytes per second; `None`
    /// before the first round-trip sample.
    pub(super) fn of(window: &Window, pacing_rate: Option<NonZeroU64>) -> Option<Self> {
        let srtt = window.srtt.filter(|srtt| !srtt.is_zero())?;
        let gain = if window.cwnd < window.ssthresh { SLOW_START_GAIN } else { GAIN };
        let by_window = || gain * window.cwnd as f64 / srtt.as_secs_f64();
        let rate = pacing_rate.map_or_else(by_window, |rate| rate.get() as f64);
        let packet = window.pmdcs as f64;
        let few = BURST_PACKETS * packet;
        let burst = if srtt < TIMER_STEP { few.max(OFFLOAD_RUN).max(in_time(rate, TIMER_STEP)) } else { few };
        // Pacing must not leave a path with a window of few packets idle; but a rate that the controller sets is kept.
        let longest_pause = if pacing_rate.is_some() { LONGEST_PAUSE } else { srtt / 2 };
        Some(Flow { rate, burst, packet, longest_pause })
    }

    /// Returns the bytes that justify a timer: those that the path sends in a timer step, at least two packets.
    fn quantum(&self) -> f64 {
        in_time(self.rate, TIMER_STEP).clamp(2.0 * self.packet, self.burst)
    }
}

impl Pacer {
    pub(super) const NEW: Self = Pacer {
        tokens: f64::INFINITY,
        filled: Instant::ZERO,
        ready: Instant::ZERO,
        wakes: false,
        late: Duration::ZERO,
    };

    /// Returns whether nothing may leave at `now`.
    #[inline]
    pub(super) fn holds(&self, now: Instant) -> bool {
        now < self.ready
    }

    /// Returns the time from which a delay is not made up for, if released data has waited longer than that.
    pub(super) fn overdue(&self, now: Instant) -> Option<Instant> {
        let due = self.ready + MOST_LATE;
        (due < now).then_some(due)
    }

    /// Returns the time at which packets may leave again, until [`on_due`](Self::on_due) is called.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.wakes.then_some(self.ready)
    }

    /// Notes that the timer has expired.
    pub(super) fn on_due(&mut self, now: Instant) {
        self.wakes = false;
        self.late = now.since(self.ready).min(MOST_LATE);
    }

    /// Notes that a packet with `bytes` of chunks left; the next ones are paced by `flow`, if it returns a rate. Returns the
    /// time at which the next packet may leave, if that is later.
    pub(super) fn on_sent(
        &mut self,
        now: Instant,
        bytes: usize,
        flow: impl FnOnce() -> Option<Flow>,
    ) -> Option<Instant> {
        // The rest of a burst does not compute the rate, which takes divisions.
        if self.is_filled(now) && self.tokens > bytes as f64 {
            self.tokens -= bytes as f64;
            return None;
        }
        let flow = flow()?;
        self.fill(now, &flow);
        self.tokens = (self.tokens - bytes as f64).max(-flow.packet);
        if self.tokens > 0.0 {
            return None;
        }
        let longest = flow.longest_pause.as_secs_f64();
        let pause = ((flow.quantum() - self.tokens) / flow.rate).min(longest);
        self.ready = now + Duration::from_secs_f64(pause);
        self.wakes = true;
        Some(self.ready)
    }

    fn is_filled(&self, now: Instant) -> bool {
        now <= self.filled && self.tokens.is_finite()
    }

    fn fill(&mut self, now: Instant, flow: &Flow) {
        if self.is_filled(now) {
            return;
        }
        if self.wakes && self.ready <= now {
            self.on_due(now);
        }
        // Data that would have left while the timer was late may leave at once.
        let late = std::mem::take(&mut self.late);
        let most = flow.burst + in_time(flow.rate, late);
        self.tokens = (self.tokens + in_time(flow.rate, now.since(self.filled))).min(most);
        self.filled = now;
    }
}

fn in_time(rate: f64, time: Duration) -> f64 {
    rate * time.as_secs_f64()
}

/// Multiple of window over round-trip time that RFC 9002 §7.7 suggests: with it, variations of the RTT leave no part of the
/// window unused.
const GAIN: f64 = 1.25;
/// The same multiple in slow start, where a window doubles in a round trip.
const SLOW_START_GAIN: f64 = 2.0;
/// Packets that may leave at once, as in QUIC's initial window (RFC 9002 §7.2).
const BURST_PACKETS: f64 = 10.0;
/// Bytes that kernels send in one call by segmentation offload.
const OFFLOAD_RUN: f64 = 65_536.0;
/// Longest pause at a rate that a controller sets: losses and round trips have to be noticed.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Resolution of timers in user space, approximately. A shorter round trip cannot be paced by timers.
const TIMER_STEP: Duration = Duration::from_millis(1);
/// Largest delay of a timer that is made up for.
const MOST_LATE: Duration = Duration::from_millis(2);

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: usize = 1000;

    fn window(packets: usize, srtt: Duration) -> Window {
        let window = Window::new(PACKET, false, packets * PACKET);
        Window { ssthresh: packets * PACKET, srtt: Some(srtt), ..window }
    }

    fn at(micros: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(micros)
    }

    /// Sends packets until one is held, and returns their number.
    fn send(pacer: &mut Pacer, now: Instant, window: &Window) -> usize {
        let mut sent = 0;
        while !pacer.holds(now) && sent < 1000 {
            pacer.on_sent(now, PACKET, || Flow::of(window, None));
            sent += 1;
        }
        sent
    }

    #[test]
    fn a_burst_is_ten_packets_and_what_follows_comes_at_the_pace() {
        // 100 packets in 100 ms: 1.25 packets a millisecond, two of them 1.6 ms.
        let window = window(100, Duration::from_millis(100));
        let mut pacer = Pacer::NEW;
        assert_eq!(send(&mut pacer, at(1000), &window), 10);
        assert_eq!(pacer.deadline(), Some(at(2600)));
        assert_eq!(send(&mut pacer, at(2599), &window), 0);
        assert_eq!(send(&mut pacer, at(2600), &window), 2);
        assert_eq!(send(&mut pacer, at(4200), &window), 2);
        let rest: usize = (4..1000).map(|step| send(&mut pacer, at(1000 + 1600 * step), &window)).sum();
        assert!((1990..=1994).contains(&rest), "{rest} packets in 996 pauses");
    }

    #[test]
    fn slow_start_is_twice_as_fast_as_its_window() {
        let pace = |ssthresh| {
            Flow::of(&Window { ssthresh, ..window(100, Duration::from_millis(100)) }, None).unwrap()
        };
        assert_eq!(pace(usize::MAX).rate, 2e6);
        assert_eq!(pace(100 * PACKET).rate, 1.25e6);
    }

    #[test]
    fn a_controllers_pace_goes_before_that_of_the_window() {
        let window = window(100, Duration::from_millis(100));
        assert_eq!(Flow::of(&window, NonZeroU64::new(70_000)).map(|flow| flow.rate), Some(70_000.0));
    }

    #[test]
    fn a_path_that_was_silent_has_one_burst_and_no_more() {
        let window = window(100, Duration::from_millis(100));
        let mut pacer = Pacer::NEW;
        send(&mut pacer, at(0), &window);
        pacer.on_due(at(1600));
        assert_eq!(send(&mut pacer, at(10_000_000), &window), 10);
    }

    #[test]
    fn what_a_late_timer_missed_leaves_when_it_fires() {
        // 12.5 packets a millisecond; a timer is worth ten packets, which are 800 µs.
        let window = window(100, Duration::from_millis(10));
        let mut pacer = Pacer::NEW;
        assert_eq!(send(&mut pacer, at(0), &window), 10);
        assert_eq!(pacer.deadline(), Some(at(800)));
        let sent: usize = (1..=100).map(|step| send(&mut pacer, at(1300 * step), &window)).sum();
        assert!((1610..=1640).contains(&sent), "{sent} packets in 130 ms, and 1625 are the pace");
    }

    #[test]
    fn a_round_trip_below_a_timer_step_holds_nothing_up() {
        let window = window(1000, Duration::from_micros(200));
        let mut pacer = Pacer::NEW;
        assert_eq!(send(&mut pacer, at(0), &window), 1000);
        let small = Window { cwnd: 10 * PACKET, ..window };
        assert!(Flow::of(&small, None).is_some_and(|flow| flow.burst >= OFFLOAD_RUN));
    }

    #[test]
    fn nothing_is_held_before_the_first_round_trip_time() {
        let window = Window { srtt: None, ..window(100, Duration::from_millis(1)) };
        let mut pacer = Pacer::NEW;
        assert_eq!(send(&mut pacer, at(0), &window), 1000);
        assert_eq!(pacer.deadline(), None);
    }

    #[test]
    fn a_tiny_window_waits_for_half_a_round_trip_at_most() {
        let window = window(1, Duration::from_millis(100));
        let mut pacer = Pacer::NEW;
        send(&mut pacer, at(0), &window);
        assert!(pacer.deadline() <= Some(at(50_000)));
    }

    #[test]
    fn a_deadline_that_was_noted_is_none() {
        let window = window(100, Duration::from_millis(100));
        let mut pacer = Pacer::NEW;
        send(&mut pacer, at(0), &window);
        pacer.on_due(at(2000));
        assert_eq!(pacer.deadline(), None);
    }
}
