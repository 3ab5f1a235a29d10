//! Heartbeats of a path: times, contents, and the check of an acknowledgement (RFC 9260 §5.4, §8.3).
//!
//! A heartbeat carries its path, its sending time and a nonce. An answer is accepted if all three match a heartbeat of that
//! path that has not been answered yet, even if the answer is late. Heartbeats sent while another one awaits its answer repeat
//! the nonce of that one, and one answer to any of them is accepted.

use std::time::Duration;

use rand_chacha::ChaCha12Rng;
use rand_core::Rng;
use tresse_policy::engine::nanos;
use tresse_policy::{Instant, PathId, PathState};

/// Content of the Heartbeat Info parameter, opaque to the peer.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct HeartbeatInfo {
    pub(super) path: PathId,
    pub(super) sent: Instant,
    pub(super) nonce: u64,
}

/// Length of that content in bytes.
pub(crate) const HEARTBEAT_INFO_LEN: usize = 17;

impl HeartbeatInfo {
    pub(super) fn to_bytes(self) -> [u8; HEARTBEAT_INFO_LEN] {
        let mut bytes = [self.path.0; HEARTBEAT_INFO_LEN];
        bytes[1..9].copy_from_slice(&self.sent.as_nanos().to_be_bytes());
        bytes[9..].copy_from_slice(&self.nonce.to_be_bytes());
        bytes
    }

    /// Returns `None` if the bytes are not in the format of [`to_bytes`](Self::to_bytes).
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let (&path, rest) = bytes.split_first()?;
        let (sent, rest) = rest.split_first_chunk()?;
        let nonce = rest.try_into().ok()?;
        Some(HeartbeatInfo {
            path: PathId(path),
            sent: Instant::from_nanos(u64::from_be_bytes(*sent)),
            nonce: u64::from_be_bytes(nonce),
        })
    }
}

/// The heartbeats of one path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Heartbeats {
    /// Time at which the last heartbeat was sent, or at which the first period began.
    since: Instant,
    /// Random part of the next period, in 1/65536 of the RTO; the period also has HB.interval and half an RTO.
    jitter: u16,
    /// Nonce of the last heartbeat.
    nonce: u64,
    /// Time from the first heartbeat with this nonce to the last one, in milliseconds, rounded up. 16 bits keep an idle
    /// association within 2 KiB.
    span: u16,
    /// True if the last heartbeat may still be answered.
    answerable: bool,
    /// Time at which it counts as unanswered.
    answer_due: Option<Instant>,
    /// True if a heartbeat is due and waits for a packet.
    queued: bool,
    /// True if DATA has arrived on the path since the last heartbeat was sent.
    data_since: bool,
}

/// Conditions that determine the next heartbeat, besides the state of the heartbeats themselves.
#[derive(Copy, Clone, Debug)]
pub(super) struct Pace {
    /// HB.interval; with zero, only heartbeats that confirm a path are sent.
    pub(super) interval: Duration,
    pub(super) rto: Duration,
    pub(super) state: PathState,
    /// True if data is in flight: its acknowledgement or loss shows as much as a probe of a potentially failed path would.
    pub(super) busy: bool,
    /// Interval of heartbeats on a failed path, where other paths carry data that this one could.
    pub(super) wanted_back: Option<Duration>,
    /// Time at which data was last sent; data replaces a heartbeat.
    pub(super) last_data: Instant,
    /// Time before which no unconfirmed path is probed: HB.Max.Burst is 1 per RTO.
    pub(super) next_probe: Instant,
    /// True if the round-trip time of the path is needed and not known.
    pub(super) unmeasured: bool,
    /// Interval at which the round-trip time is measured, if it is needed.
    pub(super) measured_every: Option<Duration>,
}

impl Heartbeats {
    pub(super) fn new(now: Instant) -> Self {
        Heartbeats {
            since: now,
            jitter: u16::MAX / 2,
            nonce: 0,
            span: 0,
            answerable: false,
            answer_due: None,
            queued: false,
            data_since: false,
        }
    }

    /// Begins the first period.
    pub(super) fn start(&mut self, now: Instant, rng: &mut ChaCha12Rng) {
        self.since = now;
        self.jitter = draw_jitter(rng);
    }

    /// Discards a queued heartbeat, and no longer awaits an answer.
    pub(super) fn stop(&mut self) {
        self.answerable = false;
        self.answer_due = None;
        self.queued = false;
    }

    /// Returns the time at which the next heartbeat is due. It is `None` while one is queued; while one awaits its answer, only
    /// a path of `wanted_back` is probed again.
    pub(super) fn due(&self, pace: &Pace) -> Option<Instant> {
        if self.queued {
            return None;
        }
        let failed = matches!(pace.state, PathState::PotentiallyFailed | PathState::Inactive);
        let soon =
            pace.wanted_back.filter(|_| failed && !pace.interval.is_zero()).map(|pause| self.since + pause);
        let regular = self.regularly_due(pace);
        soon.into_iter().chain(regular).min()
    }

    /// Returns the same without `wanted_back` (RFC 9260 §8.3, RFC 7829 §3.2).
    fn regularly_due(&self, pace: &Pace) -> Option<Instant> {
        if self.answer_due.is_some() {
            return None;
        }
        if pace.state == PathState::Unconfirmed {
            return Some(self.since.max(pace.next_probe));
        }
        if pace.interval.is_zero() {
            return None;
        }
        if pace.state == PathState::PotentiallyFailed {
            // The path is probed at once, and again as soon as a heartbeat stayed unanswered (RFC 7829 §3.2).
            return (!pace.busy).then_some(self.since);
        }
        if pace.unmeasured {
            return Some(self.since);
        }
        // RTO ± 50 % (RFC 9260 §8.3), so that the heartbeats of paths and peers do not synchronise.
        let spread = nanos(pace.rto).saturating_mul(u64::from(self.jitter)) >> u16::BITS;
        let period = pace.interval + pace.rto / 2 + Duration::from_nanos(spread);
        // Data replaces a heartbeat where its acknowledgement would show that the path works. The acknowledgement of a
        // retransmission shows nothing, and an inactive path may carry nothing else for long.
        let asked =
            if pace.state == PathState::Inactive { self.since } else { self.since.max(pace.last_data) };
        let idle = asked + period;
        let measured = pace.measured_every.map(|period| self.since.max(pace.last_data) + period);
        Some(measured.map_or(idle, |measured| measured.min(idle)))
    }

    /// Notes that DATA arrived on the path; returns whether it is the first since the last heartbeat.
    pub(super) fn on_data(&mut self) -> bool {
        !std::mem::replace(&mut self.data_since, true)
    }

    /// Returns whether DATA has arrived since the last heartbeat was sent.
    pub(super) fn data_since(&self) -> bool {
        self.data_since
    }

    /// Returns the time at which the last heartbeat was sent, or at which the first period began.
    pub(super) fn since(&self) -> Instant {
        self.since
    }

    pub(super) fn answer_due(&self) -> Option<Instant> {
        self.answer_due
    }

    pub(super) fn on_due(&mut self) {
        self.queued = true;
    }

    /// Notes that a heartbeat is sent; returns its nonce.
    pub(super) fn on_sent(&mut self, now: Instant, rto: Duration, rng: &mut ChaCha12Rng) -> u64 {
        // If the round trip is longer than the interval of heartbeats, every answer arrives after the next heartbeat was sent.
        let (nonce, span) = if self.answer_due.is_some() {
            let longer = nanos(now.since(self.since)).div_ceil(1_000_000);
            (self.nonce, self.span.saturating_add(u16::try_from(longer).unwrap_or(u16::MAX)))
        } else {
            (rng.next_u64(), 0)
        };
        *self = Heartbeats {
            since: now,
            jitter: draw_jitter(rng),
            nonce,
            span,
            answerable: true,
            // A heartbeat that is sent while another one awaits its answer is no second failure.
            answer_due: self.answer_due.or(Some(now + rto)),
            queued: false,
            data_since: false,
        };
        nonce
    }

    /// Ends the wait for the answer, which did not come in time. A late answer still proves the path.
    pub(super) fn on_expired(&mut self) {
        self.answer_due = None;
    }

    /// Returns whether this answers the last heartbeat or one with the same nonce. Only one answer is accepted.
    pub(super) fn accept(&mut self, info: &HeartbeatInfo) -> bool {
        let before = Duration::from_millis(self.span.into());
        let sent = info.sent <= self.since && self.since.since(info.sent) <= before;
        let fits = self.answerable && self.nonce == info.nonce && sent;
        if fits {
            self.answerable = false;
            self.answer_due = None;
        }
        fits
    }
}

fn draw_jitter(rng: &mut ChaCha12Rng) -> u16 {
    (rng.next_u32() >> u16::BITS) as u16
}

#[cfg(test)]
mod tests {
    use rand_core::SeedableRng;

    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn pace(state: PathState) -> Pace {
        Pace {
            interval: Duration::from_secs(30),
            rto: Duration::from_secs(1),
            state,
            busy: false,
            wanted_back: None,
            last_data: Instant::ZERO,
            next_probe: Instant::ZERO,
            unmeasured: false,
            measured_every: None,
        }
    }

    #[test]
    fn information_reads_back_and_nothing_else_does() {
        let info = HeartbeatInfo { path: PathId(3), sent: at(1234), nonce: 0x0102_0304_0506_0708 };
        let bytes = info.to_bytes();
        assert_eq!(HeartbeatInfo::parse(&bytes), Some(info));
        assert_eq!(HeartbeatInfo::parse(&bytes[..16]), None);
        assert_eq!(HeartbeatInfo::parse(&[&bytes[..], &[0]].concat()), None);
        assert_eq!(HeartbeatInfo::parse(&[]), None);
    }

    #[test]
    fn the_period_is_the_interval_and_half_to_one_and_a_half_rto() {
        let mut rng = ChaCha12Rng::seed_from_u64(1);
        let mut heartbeats = Heartbeats::new(at(0));
        let mut seen = Vec::new();
        for _ in 0..200 {
            heartbeats.start(at(1000), &mut rng);
            seen.push(heartbeats.due(&pace(PathState::Active)).unwrap() - at(1000));
        }
        let (shortest, longest) = (seen.iter().min().unwrap(), seen.iter().max().unwrap());
        assert!((30.5..30.6).contains(&shortest.as_secs_f64()), "{shortest:?}");
        assert!((31.4..31.5).contains(&longest.as_secs_f64()), "{longest:?}");
    }

    #[test]
    fn data_puts_heartbeats_off_and_interval_zero_stops_them() {
        let heartbeats = Heartbeats::new(at(0));
        let idle = pace(PathState::Active);
        let busy = Pace { last_data: at(10_000), ..idle };
        let later = |pace| heartbeats.due(pace).unwrap();
        assert_eq!(later(&busy) - later(&idle), Duration::from_secs(10));
        let inactive = Pace { state: PathState::Inactive, ..busy };
        assert_eq!(later(&inactive), later(&idle), "data does not put off what would bring a path back");
        let off = Pace { interval: Duration::ZERO, ..idle };
        assert_eq!(heartbeats.due(&off), None);
        assert_eq!(heartbeats.due(&Pace { state: PathState::Inactive, ..off }), None);
        assert_eq!(heartbeats.due(&Pace { state: PathState::Unconfirmed, ..off }), Some(at(0)));
    }

    #[test]
    fn an_unconfirmed_path_is_probed_at_once_and_again_when_unanswered() {
        let mut rng = ChaCha12Rng::seed_from_u64(1);
        let mut heartbeats = Heartbeats::new(at(5));
        let unconfirmed = pace(PathState::Unconfirmed);
        assert_eq!(heartbeats.due(&unconfirmed), Some(at(5)));
        assert_eq!(heartbeats.due(&Pace { next_probe: at(900), ..unconfirmed }), Some(at(900)));
        heartbeats.on_due();
        assert_eq!(heartbeats.due(&unconfirmed), None);
        heartbeats.on_sent(at(6), Duration::from_secs(1), &mut rng);
        assert_eq!((heartbeats.due(&unconfirmed), heartbeats.answer_due()), (None, Some(at(1006))));
        heartbeats.on_expired();
        assert_eq!(heartbeats.due(&unconfirmed), Some(at(6)), "at once");
    }

    #[test]
    fn a_potentially_failed_path_is_probed_at_once_unless_data_is_in_flight() {
        let mut rng = ChaCha12Rng::seed_from_u64(1);
        let mut heartbeats = Heartbeats::new(at(5));
        let failed = pace(PathState::PotentiallyFailed);
        assert_eq!(heartbeats.due(&failed), Some(at(5)));
        assert_eq!(heartbeats.due(&Pace { busy: true, ..failed }), None);
        assert_eq!(heartbeats.due(&Pace { interval: Duration::ZERO, ..failed }), None);
        heartbeats.on_sent(at(100), Duration::from_secs(2), &mut rng);
        assert_eq!(heartbeats.due(&failed), None, "the answer is awaited");
        heartbeats.on_expired();
        assert_eq!(heartbeats.due(&failed), Some(at(100)), "again at once");
    }

    #[test]
    fn an_answer_fits_once_also_when_late() {
        let mut rng = ChaCha12Rng::seed_from_u64(1);
        let mut heartbeats = Heartbeats::new(at(0));
        let nonce = heartbeats.on_sent(at(10), Duration::from_secs(1), &mut rng);
        let info = HeartbeatInfo { path: PathId(0), sent: at(10), nonce };
        assert!(!heartbeats.accept(&HeartbeatInfo { nonce: nonce ^ 1, ..info }));
        assert!(!heartbeats.accept(&HeartbeatInfo { sent: at(11), ..info }));
        heartbeats.on_expired();
        assert!(heartbeats.accept(&info));
        assert!(!heartbeats.accept(&info));
    }

    #[test]
    fn a_path_that_failed_is_asked_often_where_it_is_wanted_back_and_that_is_no_failure_more() {
        let mut rng = ChaCha12Rng::seed_from_u64(1);
        for state in [PathState::PotentiallyFailed, PathState::Inactive] {
            let mut heartbeats = Heartbeats::new(at(0));
            let failed = Pace { wanted_back: Some(Duration::from_millis(500)), ..pace(state) };
            heartbeats.on_sent(at(1000), Duration::from_secs(8), &mut rng);
            assert_eq!(heartbeats.due(&failed), Some(at(1500)));
            assert_eq!(heartbeats.due(&Pace { wanted_back: None, ..failed }), None);
            let nonce = heartbeats.on_sent(at(1500), Duration::from_secs(8), &mut rng);
            assert_eq!(heartbeats.answer_due(), Some(at(9000)));
            let info = HeartbeatInfo { path: PathId(0), sent: at(1000), nonce };
            assert!(!heartbeats.accept(&HeartbeatInfo { sent: at(999), ..info }));
            assert!(heartbeats.accept(&info), "the first is answered as well as the second");
            assert!(!heartbeats.accept(&HeartbeatInfo { sent: at(1500), ..info }));
            assert_ne!(heartbeats.on_sent(at(2000), Duration::from_secs(8), &mut rng), nonce);
        }
        let active = Pace { wanted_back: Some(Duration::from_millis(500)), ..pace(PathState::Active) };
        assert_eq!(Heartbeats::new(at(0)).due(&active), Heartbeats::new(at(0)).due(&pace(PathState::Active)));
    }
}
