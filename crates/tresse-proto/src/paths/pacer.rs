//! Pacing of one path: packets that the window allows are spread over the round trip (RFC 9002 §7.7).
//!
//! A token bucket, filled at a multiple of window over round-trip time. A path that has emptied it is held until some
//! packets may leave again, so that a timer serves several of them. A query is one comparison of times; all other
//! work is done when a packet leaves.

use std::num::NonZeroU64;
use std::time::Duration;

use tresse_policy::Instant;
use tresse_policy::engine::Window;

/// The bucket of one path. It starts full.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Pacer {
    /// Bytes that may still leave at once; below zero what the last packet took more.
    tokens: f64,
    /// Time at which it was filled last.
    filled: Instant,
    /// Nothing leaves before this.
    ready: Instant,
    /// Output is to be asked again then.
    wakes: bool,
    /// Delay with which it left.
    late: Duration,
}

/// Rate of a path, and the bytes that it may send at once.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(super) struct Flow {
    /// Bytes a second.
    rate: f64,
    /// Size of the bucket.
    burst: f64,
    /// A full packet.
    packet: f64,
    /// No pause is longer.
    longest_pause: Duration,
}

impl Flow {
    /// The pace of a path with this window, bytes a second if the controller sets one; none before its first round-trip time.
    pub(super) fn of(window: &Window, pacing_rate: Option<NonZeroU64>) -> Option<Self> {
        let srtt = window.srtt.filter(|srtt| !srtt.is_zero())?;
        let gain = if window.cwnd < window.ssthresh { SLOW_START_GAIN } else { GAIN };
        let by_window = || gain * window.cwnd as f64 / srtt.as_secs_f64();
        let rate = pacing_rate.map_or_else(by_window, |rate| rate.get() as f64);
        let packet = window.pmdcs as f64;
        let few = BURST_PACKETS * packet;
        let burst = if srtt < TIMER_STEP { few.max(OFFLOAD_RUN).max(in_time(rate, TIMER_STEP)) } else { few };
        // A window of few packets is not to idle the path; a pace that is set is kept.
        let longest_pause = if pacing_rate.is_some() { LONGEST_PAUSE } else { srtt / 2 };
        Some(Flow { rate, burst, packet, longest_pause })
    }

    /// Bytes that are worth a timer: what the path sends in its step, at least two packets.
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

    /// Since when what may leave again is later than is made up for.
    pub(super) fn overdue(&self, now: Instant) -> Option<Instant> {
        let due = self.ready + MOST_LATE;
        (due < now).then_some(due)
    }

    /// Time at which something may leave again, until that was noted.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.wakes.then_some(self.ready)
    }

    /// The deadline has come.
    pub(super) fn on_due(&mut self, now: Instant) {
        self.wakes = false;
        self.late = now.since(self.ready).min(MOST_LATE);
    }

    /// A packet with `bytes` of user data left, and what follows is to leave at the pace of `flow`, if there is one. Answers
    /// when the next may, if that is later.
    pub(super) fn on_sent(
        &mut self,
        now: Instant,
        bytes: usize,
        flow: impl FnOnce() -> Option<Flow>,
    ) -> Option<Instant> {
        // The rest of a burst asks for no pace: that takes divisions.
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
        // What would have left while a timer was late may leave at once.
        let late = std::mem::take(&mut self.late);
        let most = flow.burst + in_time(flow.rate, late);
        self.tokens = (self.tokens + in_time(flow.rate, now.since(self.filled))).min(most);
        self.filled = now;
    }
}

fn in_time(rate: f64, time: Duration) -> f64 {
    rate * time.as_secs_f64()
}

/// Multiple of window over round-trip time that RFC 9002 §7.7 suggests: variations of the round trip leave no window unused.
const GAIN: f64 = 1.25;
/// The same in slow start, where a window doubles in a round trip.
const SLOW_START_GAIN: f64 = 2.0;
/// Packets that may leave at once: QUIC's initial window (RFC 9002 §7.2).
const BURST_PACKETS: f64 = 10.0;
/// Bytes that kernels send in one piece by segmentation offload.
const OFFLOAD_RUN: f64 = 65_536.0;
/// Between packets, however slow a controller sets the pace: losses and round trips are to be noticed.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Timers of user space are about this coarse. Where the round trip is shorter none could pace.
const TIMER_STEP: Duration = Duration::from_millis(1);
/// The most by which a timer is late that is made up for.
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

    /// Sends packets as long as none is held, and returns how many these were.
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
