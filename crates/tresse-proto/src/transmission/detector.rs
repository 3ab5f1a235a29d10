//! Loss detection on one path by time of sending (RACK, RFC 8985 §6): a chunk is lost if a chunk that was sent later, by more
//! than the reordering window, has arrived.
//!
//! Only transmissions on the same path are compared, whatever path a SACK takes, as in split fast retransmit; retransmissions
//! are treated alike. The reordering window of a path is a quarter of its minimum RTT, and grows by a quarter after each round
//! with a spurious retransmission. It is zero during a recovery and after three later packets, as long as the path's packets
//! keep their order. The inputs are times of sending, not chunks.

use std::time::Duration;

use tresse_policy::Instant;

use super::ring::Mark;
use super::spurious_check::SpuriousCheck;

/// Missing reports after which a chunk counts as lost (RFC 9260 §7.2.4).
pub(super) const MISSING_REPORTS: u8 = 3;

/// Transmission on a path. Transmissions are ordered by time, and at the same instant by TSN.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Sending {
    pub(super) at: Instant,
    pub(super) index: u64,
    /// True for a retransmission.
    pub(super) again: bool,
}

impl Sending {
    /// Returns whether `later` certainly left after this transmission. Chunks that leave at one instant do so in TSN order, but
    /// new data may leave before or after retransmissions.
    fn is_overtaken_by(self, later: Sending) -> bool {
        later > self && (later.at > self.at || later.again == self.again)
    }
}

/// Newly acknowledged chunks of one path whose acknowledgement can be for no other transmission.
#[derive(Copy, Clone, Default, Debug)]
pub(super) struct NewlyAcked {
    /// The earliest transmission of a chunk that was sent once.
    pub(super) first: Option<Sending>,
    /// The latest transmission of a chunk that was sent once.
    pub(super) last: Option<Sending>,
    /// The latest transmission of a chunk that was sent more than once.
    pub(super) again: Option<Sending>,
    /// Number of chunks that were sent once, and their bytes.
    pub(super) chunks: usize,
    pub(super) bytes: usize,
}

impl NewlyAcked {
    /// Adds a chunk of `bytes` that was sent `sends` times, the last time at `at`. The `Sending` is built here: passed in
    /// memory, it would have to wait for its stores, which takes 5 % of the time of messages of 64 bytes.
    pub(super) fn add(&mut self, at: Instant, index: u64, sends: u16, bytes: usize) {
        let sending = Sending { at, index, again: sends > 1 };
        if sends > 1 {
            self.again = self.again.max(Some(sending));
            return;
        }
        if self.last.is_none_or(|last| sending > last) {
            self.last = Some(sending);
            self.first.get_or_insert(sending);
        } else if self.first.is_some_and(|first| sending < first) {
            self.first = Some(sending);
        }
        self.chunks += 1;
        self.bytes += bytes;
    }

    pub(super) fn is_any(&self) -> bool {
        self.last.is_some() || self.again.is_some()
    }

    /// The time of sending of the latest one.
    pub(super) fn latest(&self) -> Option<Instant> {
        self.last.max(self.again).map(|sending| sending.at)
    }

    /// Estimated number of packets that carried the chunks that were sent once.
    fn packets(&self) -> usize {
        self.chunks.min(1 + self.bytes / PACKET_BYTES)
    }
}

/// State of a chunk in flight in loss detection.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum LossState {
    /// No chunk that was sent later has arrived.
    Open,
    /// The chunk counts as lost from this time on.
    Until(Instant),
    Lost,
}

/// Acknowledgements on a path, and the state of its loss detection.
#[derive(Clone, Debug)]
pub(super) struct LossDetector {
    /// The latest transmission that has arrived, and its round-trip time.
    newest: Option<Sending>,
    rtt: Duration,
    shortest: Shortest,
    /// True if packets arrived in another order than they left.
    reordered: bool,
    /// Number of packets that arrived while an earlier chunk was missing.
    overtakers: usize,
    /// The reordering window in quarters of the minimum RTT.
    quarters: u32,
    /// Number of recoveries until `quarters` is reset to 1.
    persist: u8,
    /// Start of the current round: `quarters` grows again only after the acknowledgement of a later transmission.
    round: Instant,
    /// Time at which the recovery began with a loss; it ends when a later transmission is acknowledged.
    recovers: Option<Instant>,
    /// The chunk that was last retransmitted as a tail loss probe, until it is acknowledged or lost.
    pub(super) probe: Mark,
    /// The transmission before that of the last tail loss probe.
    pub(super) probed: Option<Sending>,
    /// Check of the recent losses: whether the chunks were only late.
    pub(super) spurious_check: SpuriousCheck,
}

impl LossDetector {
    pub(super) const NEW: Self = LossDetector {
        newest: None,
        rtt: Duration::ZERO,
        shortest: Shortest::NEW,
        reordered: false,
        overtakers: 0,
        quarters: 1,
        persist: 0,
        round: Instant::ZERO,
        recovers: None,
        probe: Mark::NONE,
        probed: None,
        spurious_check: SpuriousCheck::NEW,
    };

    /// Processes the chunks that a SACK at `now` newly acknowledges.
    pub(super) fn on_answers(&mut self, now: Instant, answered: &NewlyAcked) {
        let before = self.newest;
        self.reordered |= answered.first.is_some() && before.is_some() && answered.first < before;
        if let Some(last) = answered.last {
            self.shortest.add(now, now.since(last.at));
            self.spurious_check.on_answered(last.at);
        }
        // An acknowledgement earlier than the minimum RTT is for an earlier transmission, which is known for the probe: it left
        // while the acknowledgement was on its way.
        let again = answered.again.and_then(|sending| {
            let fits = now.since(sending.at) >= self.shortest.get();
            if fits { Some(sending) } else { self.probed.filter(|probed| probed.index == sending.index) }
        });
        for sending in [answered.last, again].into_iter().flatten() {
            if Some(sending) > self.newest {
                self.newest = Some(sending);
                self.rtt = now.since(sending.at);
            }
        }
        self.overtakers = self.overtakers.saturating_add(answered.packets());
        if self.recovers.is_some_and(|since| self.newest.is_some_and(|newest| newest.at > since)) {
            self.recovers = None;
            self.persist = self.persist.saturating_sub(1);
            if self.persist == 0 {
                self.quarters = 1;
            }
        }
    }

    /// State of `sending` at `now`. The caller walks each list in the order of sending, up to the first chunk that is not lost.
    pub(super) fn judge(&self, now: Instant, sending: Sending) -> LossState {
        if !self.newest.is_some_and(|newest| sending.is_overtaken_by(newest)) {
            return LossState::Open;
        }
        let due = sending.at + self.rtt + self.reordering_window();
        if due <= now { LossState::Lost } else { LossState::Until(due) }
    }

    /// Notes that no chunk in flight was overtaken.
    pub(super) fn on_order(&mut self) {
        self.overtakers = 0;
    }

    /// Returns whether the chunk `index`, last retransmitted at `sent_at`, was the tail loss probe, and its acknowledgement at
    /// `now` is not too early to be for the probe.
    pub(super) fn is_answer_to_probe(&mut self, now: Instant, index: u64, sent_at: Instant) -> bool {
        self.probe.end_if(|probe| probe == index).is_some() && now.since(sent_at) >= self.shortest.get()
    }

    /// Notes that the chunk `index` was marked as lost. `once` is true if it had been sent once.
    pub(super) fn on_lost(&mut self, now: Instant, index: u64, once: bool) {
        self.probe.end_if(|probe| probe == index);
        self.recovers.get_or_insert(now);
        self.spurious_check.on_lost(index, once);
    }

    /// Notes that the first transmission of the chunk `index` arrived; it was sent at `sent_at`, if that is certain. If the
    /// chunk was marked as lost, it was only late.
    pub(super) fn on_late(&mut self, now: Instant, index: u64, sent_at: Option<Instant>) {
        let by_order = !self.spurious_check.timed_out();
        if self.spurious_check.on_late(index, sent_at)
            && by_order
            && self.newest.is_some_and(|newest| newest.at >= self.round)
        {
            self.round = now;
            self.reordered = true;
            self.quarters = (self.quarters + 1).min(MOST_QUARTERS);
            self.persist = PERSISTENCE;
        }
    }

    /// The minimum RTT; zero before the first sample.
    pub(super) fn shortest(&self) -> Duration {
        self.shortest.get()
    }

    /// The reordering window (RFC 8985 §6.2 step 4).
    fn reordering_window(&self) -> Duration {
        if !self.reordered && (self.recovers.is_some() || self.overtakers >= OVERTAKERS) {
            return Duration::ZERO;
        }
        (self.shortest.get() / 4 * self.quarters).min(self.rtt)
    }
}

impl Default for LossDetector {
    fn default() -> Self {
        Self::NEW
    }
}

/// Minimum RTT of the last one or two spans: the RTT of a path may grow.
#[derive(Copy, Clone, Debug)]
struct Shortest {
    since: Instant,
    current: Duration,
    before: Duration,
}

impl Shortest {
    const NEW: Self = Shortest { since: Instant::ZERO, current: Duration::MAX, before: Duration::MAX };

    fn add(&mut self, now: Instant, sample: Duration) {
        if now.since(self.since) > SPAN {
            (self.before, self.current) = (self.current, Duration::MAX);
            self.since = now;
        }
        self.current = self.current.min(sample);
    }

    /// The minimum RTT; zero before the first sample.
    fn get(&self) -> Duration {
        let shortest = self.current.min(self.before);
        if shortest == Duration::MAX { Duration::ZERO } else { shortest }
    }
}

/// Number of later packets that prove a loss at once, like three missing reports (DupThresh, RFC 8985 §6.2 step 4).
const OVERTAKERS: usize = 3;
/// Bytes of chunks per packet in the estimate: more need a second packet on some usual paths.
const PACKET_BYTES: usize = 1200;
/// Recoveries for which a larger reordering window is kept (RFC 8985 §6.2 step 4).
const PERSISTENCE: u8 = 16;
/// Largest reordering window in quarters; the round-trip time bounds the window anyway.
const MOST_QUARTERS: u32 = 16;
/// Half of the time for which a minimum RTT holds at most.
const SPAN: Duration = Duration::from_secs(15);

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: u64 = 40;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(1000 + millis)
    }

    fn sent(millis: u64, index: u64) -> Sending {
        Sending { at: at(millis), index, again: false }
    }

    fn answered(sendings: &[Sending]) -> NewlyAcked {
        let mut answered = NewlyAcked::default();
        for &sending in sendings {
            answered.add(sending.at, sending.index, 1, 1452);
        }
        answered
    }

    /// A path with a round trip of 40 ms, on which a packet leaves every 10 ms; packets 1 and 3 have arrived.
    fn detector() -> LossDetector {
        let mut detector = LossDetector::NEW;
        detector.on_answers(at(10 + RTT), &answered(&[sent(10, 1)]));
        detector.on_order();
        detector.on_answers(at(30 + RTT), &answered(&[sent(30, 3)]));
        detector
    }

    #[test]
    fn what_was_overtaken_is_lost_a_quarter_of_a_round_trip_after_it_was_due() {
        let detector = detector();
        let now = at(30 + RTT);
        assert_eq!(detector.judge(now, sent(40, 4)), LossState::Open);
        assert_eq!(detector.judge(now, sent(25, 2)), LossState::Until(at(25 + RTT + 10)));
        assert_eq!(detector.judge(at(25 + RTT + 10), sent(25, 2)), LossState::Lost);
        assert_eq!(detector.judge(now, sent(20, 2)), LossState::Lost, "10 ms late already");
    }

    #[test]
    fn three_packets_that_overtook_it_leave_no_doubt_while_there_was_order() {
        let mut detector = detector();
        let now = at(32 + RTT);
        detector.on_answers(now, &answered(&[sent(31, 4), sent(32, 5)]));
        assert_eq!(detector.judge(now, sent(29, 2)), LossState::Lost);
        detector.reordered = true;
        assert_eq!(detector.judge(now, sent(29, 2)), LossState::Until(at(29 + RTT + 10)));
    }

    #[test]
    fn small_chunks_that_may_have_been_one_packet_count_as_one() {
        let mut detector = detector();
        let mut small = NewlyAcked::default();
        for index in 4..10 {
            small.add(at(31), index, 1, 100);
        }
        detector.on_answers(at(31 + RTT), &small);
        assert_eq!(detector.judge(at(31 + RTT), sent(30, 2)), LossState::Until(at(30 + RTT + 10)));
    }

    #[test]
    fn new_data_of_the_same_instant_overtakes_nothing_that_was_sent_again() {
        let again = |millis, index| Sending { again: true, ..sent(millis, index) };
        let mut detector = detector();
        let late = at(100 + 3 * RTT);
        detector.on_answers(at(40 + RTT), &answered(&[sent(40, 7), sent(40, 8), sent(40, 9)]));
        assert_eq!(detector.judge(late, sent(40, 6)), LossState::Lost, "new data has the order of its TSNs");
        assert_eq!(detector.judge(late, again(40, 2)), LossState::Open);
        assert_eq!(detector.judge(late, again(39, 2)), LossState::Lost);
        let mut repeated = NewlyAcked::default();
        repeated.add(at(50), 11, 2, PACKET_BYTES);
        detector.on_answers(at(50 + RTT), &repeated);
        assert_eq!(detector.judge(late, sent(50, 10)), LossState::Open, "nor the other way round");
        assert_eq!(detector.judge(late, again(50, 10)), LossState::Lost);
    }

    #[test]
    fn a_late_packet_shows_that_order_is_not_kept() {
        let mut detector = detector();
        assert!(!detector.reordered);
        detector.on_answers(at(72), &answered(&[sent(20, 2)]));
        assert!(detector.reordered);
        assert_eq!(detector.newest, Some(sent(30, 3)));
    }

    #[test]
    fn an_answer_to_what_was_sent_again_counts_unless_it_came_too_soon() {
        let again = |after| {
            let mut detector = detector();
            let mut answered = NewlyAcked::default();
            answered.add(at(100), 2, 2, 1452);
            detector.on_answers(at(100 + after), &answered);
            detector.newest
        };
        assert_eq!(again(RTT - 1), Some(sent(30, 3)), "the first sending was late");
        assert_eq!(again(RTT), Some(Sending { again: true, ..sent(100, 2) }));
    }

    #[test]
    fn what_went_again_in_vain_makes_patient_once_a_round() {
        let mut detector = detector();
        for index in [2, 12, 22] {
            detector.on_lost(at(80), index, true);
        }
        detector.on_late(at(120), 2, None);
        detector.on_late(at(121), 12, None);
        assert_eq!((detector.quarters, detector.reordering_window()), (2, Duration::from_millis(20)));
        detector.on_answers(at(165), &answered(&[sent(122, 30)]));
        detector.on_late(at(166), 22, None);
        detector.on_late(at(166), 22, None);
        assert_eq!((detector.quarters, detector.reordering_window()), (3, Duration::from_millis(30)));
        for round in 0..16 {
            detector.on_lost(at(200 + 100 * round), 40 + round, true);
            detector.on_answers(at(290 + 100 * round), &answered(&[sent(250 + 100 * round, 60 + round)]));
        }
        assert_eq!(detector.quarters, 1, "forgotten after 16 recoveries");
    }

    #[test]
    fn the_patience_is_no_longer_than_a_round_trip() {
        let mut detector = LossDetector { reordered: true, quarters: MOST_QUARTERS, ..detector() };
        assert_eq!(detector.reordering_window(), Duration::from_millis(RTT));
        // The RTT of the path has grown.
        detector.on_answers(at(40_000), &answered(&[sent(39_800, 90)]));
        detector.on_answers(at(80_000), &answered(&[sent(79_800, 91)]));
        assert_eq!(detector.shortest.get(), Duration::from_millis(200));
    }
}
