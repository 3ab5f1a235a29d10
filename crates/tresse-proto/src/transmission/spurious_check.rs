//! Evidence that a reduction of one path's window was spurious: chunks that counted as lost were only late.
//!
//! A chunk was late if its first transmission arrived after it had counted as lost: it was acknowledged before its
//! retransmission, or too soon after it (RFC 3522 §3.2), or the peer reports it as a duplicate (RFC 3708 §3). A reduction was
//! spurious if all chunks that caused it were late. After T3 less evidence suffices (F-RTO, RFC 5682 §3.1): the first
//! acknowledgement may only repeat the contents of lost SACKs; if a second one acknowledges more chunks that were not
//! retransmitted, before any chunk sent later is acknowledged, the timeout was spurious. Independent of windows.

use std::collections::VecDeque;

use tresse_policy::Instant;

/// Losses of one path that may be spurious.
#[derive(Clone, Debug)]
pub(super) struct SpuriousCheck {
    /// Chunks recently marked as lost that are not known to be late, in the order of marking.
    struck: VecDeque<u64>,
    /// Number of chunks at the end of `struck` that caused the reduction.
    open: usize,
    /// True if the reduction was not spurious, or if too many losses were found to decide.
    stands: bool,
    /// Losses found by the current search: their number, and whether a late arrival of any of them would be ambiguous.
    found: (usize, bool),
    timeout: Option<Timeout>,
    /// Verdict on a spurious reduction, until it is taken.
    verdict: Option<SpuriousCut>,
}

/// A spurious window reduction.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct SpuriousCut {
    /// Time at which the late chunk was sent, if only one transmission can have arrived.
    pub(super) sent_at: Option<Instant>,
    /// True if T3 was spurious: the chunks that it marked as lost and that were not retransmitted are in flight.
    pub(super) timeout: bool,
}

/// First expiration of T3 since a chunk of the path was acknowledged.
#[derive(Copy, Clone, Debug)]
struct Timeout {
    at: Instant,
    /// Time of the first late acknowledgement since then.
    answered: Option<Instant>,
}

impl SpuriousCheck {
    pub(super) const NEW: Self = SpuriousCheck {
        struck: VecDeque::new(),
        open: 0,
        stands: true,
        found: (0, false),
        timeout: None,
        verdict: None,
    };

    /// Begins a search for losses.
    pub(super) fn begin(&mut self) {
        self.found = (0, false);
    }

    /// Notes that the chunk `index` was marked as lost. `once` is true if it had been sent once, so that a late arrival is
    /// unambiguous.
    pub(super) fn on_lost(&mut self, index: u64, once: bool) {
        if self.struck.len() == REMEMBERED {
            self.struck.pop_front();
        }
        self.struck.push_back(index);
        self.open += 1;
        self.found = (self.found.0 + 1, self.found.1 || !once);
        self.stands |= !once || self.open > REMEMBERED;
    }

    /// Notes that the window was reduced for the losses of the last search.
    pub(super) fn on_cut(&mut self) {
        let (open, stands) = self.found;
        (self.open, self.stands) = (open, stands || open > REMEMBERED);
        self.timeout = None;
    }

    /// Notes that T3 expired, before its losses are noted. A series of expirations counts as one.
    pub(super) fn on_timeout(&mut self, now: Instant) {
        if self.timeout.is_none_or(|timeout| timeout.answered.is_some()) {
            (self.open, self.stands) = (0, false);
            self.timeout = Some(Timeout { at: now, answered: None });
        }
    }

    /// Notes that chunks sent once were acknowledged, the latest of which was sent at `sent_at`.
    pub(super) fn on_answered(&mut self, sent_at: Instant) {
        if self.verdict.is_none() && self.timeout.is_some_and(|timeout| sent_at >= timeout.at) {
            self.timeout = None;
        }
    }

    /// Notes that the first transmission of the chunk `index` arrived; it was sent at `sent_at`, if that is certain. Returns
    /// whether the chunk was remembered as lost.
    pub(super) fn on_late(&mut self, index: u64, sent_at: Option<Instant>) -> bool {
        let Some(position) = self.struck.iter().rposition(|&struck| struck == index) else { return false };
        if position + self.open >= self.struck.len() {
            self.open -= 1;
            if self.open == 0 && !self.stands {
                self.settle(SpuriousCut { sent_at, timeout: self.timeout.is_some() });
            }
        }
        self.struck.remove(position);
        true
    }

    /// Notes the acknowledgement of a chunk that was sent on the path at `sent_at`, marked as lost by T3 and not retransmitted.
    pub(super) fn on_unrepeated(&mut self, now: Instant, sent_at: Instant) {
        let Some(timeout) = self.timeout.as_mut().filter(|timeout| sent_at < timeout.at) else { return };
        if *timeout.answered.get_or_insert(now) < now {
            self.settle(SpuriousCut { sent_at: Some(sent_at), timeout: true });
        }
    }

    /// Notes that the chunk `index` is retransmitted once more as a probe: a duplicate no longer proves that its first
    /// transmission was late.
    pub(super) fn on_probed(&mut self, index: u64) {
        if let Some(position) = self.struck.iter().rposition(|&struck| struck == index) {
            if position + self.open >= self.struck.len() {
                self.open -= 1;
                self.stands = true;
            }
            self.struck.remove(position);
        }
    }

    fn settle(&mut self, verdict: SpuriousCut) {
        self.verdict = Some(verdict);
        (self.open, self.stands, self.timeout) = (0, true, None);
    }

    /// Returns the verdict on a spurious reduction, once.
    pub(super) fn take_verdict(&mut self) -> Option<SpuriousCut> {
        self.verdict.take()
    }

    /// Returns whether T3 found the last losses: that gives no evidence of reordering.
    pub(super) fn timed_out(&self) -> bool {
        self.timeout.is_some()
    }
}

/// Most losses that are remembered, for later reports of duplicates.
const REMEMBERED: usize = 64;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// Check after a window reduction for these losses.
    fn cut_for(lost: &[u64]) -> SpuriousCheck {
        let mut spurious_check = SpuriousCheck::NEW;
        spurious_check.begin();
        lost.iter().for_each(|&index| spurious_check.on_lost(index, true));
        spurious_check.on_cut();
        spurious_check
    }

    #[test]
    fn a_cut_was_for_nothing_when_all_were_late_that_it_was_made_for() {
        let mut spurious_check = cut_for(&[3, 4]);
        assert!(spurious_check.on_late(3, Some(at(50))));
        assert!(!spurious_check.on_late(3, Some(at(50))), "once");
        assert_eq!(spurious_check.take_verdict(), None);
        assert!(spurious_check.on_late(4, Some(at(51))));
        assert_eq!(
            spurious_check.take_verdict(),
            Some(SpuriousCut { sent_at: Some(at(51)), timeout: false })
        );
        assert_eq!(spurious_check.take_verdict(), None);
    }

    #[test]
    fn what_is_lost_later_in_the_same_window_keeps_the_cut() {
        let mut spurious_check = cut_for(&[3]);
        spurious_check.begin();
        spurious_check.on_lost(9, true);
        assert!(spurious_check.on_late(3, Some(at(50))) && spurious_check.take_verdict().is_none());
        assert!(spurious_check.on_late(9, Some(at(60))) && spurious_check.take_verdict().is_some());
    }

    #[test]
    fn what_an_earlier_cut_was_made_for_says_nothing_of_a_later_one() {
        let mut spurious_check = cut_for(&[3]);
        spurious_check.begin();
        spurious_check.on_lost(9, true);
        spurious_check.on_cut();
        assert!(spurious_check.on_late(3, Some(at(50))) && spurious_check.take_verdict().is_none());
        assert!(spurious_check.on_late(9, Some(at(60))) && spurious_check.take_verdict().is_some());
    }

    #[test]
    fn what_had_gone_again_before_and_what_is_too_much_to_remember_keeps_the_cut() {
        let mut spurious_check = SpuriousCheck::NEW;
        spurious_check.begin();
        spurious_check.on_lost(3, false);
        spurious_check.on_cut();
        assert!(spurious_check.on_late(3, Some(at(50))) && spurious_check.take_verdict().is_none());
        let many: Vec<u64> = (1..=REMEMBERED as u64 + 1).collect();
        let mut spurious_check = cut_for(&many);
        for &index in &many {
            spurious_check.on_late(index, Some(at(50)));
        }
        assert_eq!(spurious_check.take_verdict(), None);
    }

    #[test]
    fn what_goes_a_third_time_keeps_the_cut() {
        let mut spurious_check = cut_for(&[3, 4]);
        spurious_check.on_probed(3);
        assert!(!spurious_check.on_late(3, None) && spurious_check.on_late(4, None));
        assert_eq!(spurious_check.take_verdict(), None);
    }

    #[test]
    fn t3_was_hasty_when_a_second_answer_brings_what_did_not_go_again() {
        let mut spurious_check = SpuriousCheck::NEW;
        spurious_check.on_timeout(at(1000));
        spurious_check.on_timeout(at(3000));
        spurious_check.on_unrepeated(at(3100), at(700));
        spurious_check.on_unrepeated(at(3100), at(701));
        assert_eq!(spurious_check.take_verdict(), None, "one report");
        spurious_check.on_unrepeated(at(3101), at(702));
        assert_eq!(
            spurious_check.take_verdict(),
            Some(SpuriousCut { sent_at: Some(at(702)), timeout: true })
        );
    }

    #[test]
    fn t3_was_right_when_something_sent_later_is_answered_first() {
        let mut spurious_check = SpuriousCheck::NEW;
        spurious_check.on_timeout(at(1000));
        spurious_check.on_unrepeated(at(1100), at(700));
        spurious_check.on_answered(at(1050));
        spurious_check.on_unrepeated(at(1200), at(701));
        assert_eq!(spurious_check.take_verdict(), None);
    }
}
