//! Spurious reactions on a path, and their undoing: reductions of its window, and the suspicion that it has failed.

use tresse_policy::congestion::Sizes;
use tresse_policy::{Instant, PathId, PathState};

use super::{Path, Paths};

impl Path {
    /// Its window was `before`, has `cwnd` bytes now, and has perhaps been cut for losses that may turn out to be none.
    pub(crate) fn note_cut(&mut self, before: Sizes, cwnd: usize) {
        if cwnd < before.cwnd {
            self.traffic.before_cut = Some(before);
        }
    }

    /// Its window was last cut for good.
    pub(super) fn keep_cut(&mut self) {
        if let Some(traffic) = self.traffic.changed() {
            traffic.before_cut = None;
        }
    }
}

impl Paths {
    /// Takes back the last cut of the window, as the data was late: the window is what it was before, and the path answers.
    /// `sent_at` is when what was late had left, if that is certain: such a round trip tells T3 how long to wait (RFC 4015
    /// §3.2). Answers false where there is nothing to take back.
    pub(crate) fn undo_cut(&mut self, now: Instant, id: PathId, sent_at: Option<Instant>) -> bool {
        let path = self.path_mut(id);
        let Some(before) = path.traffic.before_cut.take() else { return false };
        path.counters.cuts_undone = path.counters.cuts_undone.saturating_add(1);
        self.windows.on_spurious(now, id, before);
        if let Some(sent_at) = sent_at {
            self.on_rtt(id, now.since(sent_at));
        }
        self.on_answered(id);
        true
    }

    /// The path is silent while others speak (RFC 7829 has a timeout for the first sign): it carries no new data until it
    /// answers, and is to be asked at once. Returns whether it has just become suspect.
    pub(crate) fn suspect(&mut self, id: PathId) -> bool {
        // What others said before may be the last that came over a path which failed, and took the reports on this one.
        let since = self.get(id).traffic.silent_since;
        let speaks = |path: &Path| path.id != id && path.state() == PathState::Active && path.heard > since;
        if !self.get(id).tolerance(&self.rules).has_potentially_failed()
            || self.get(id).state() != PathState::Active
            || !self.paths.iter().any(speaks)
        {
            return false;
        }
        let may_probe = !self.mtu_search_over;
        let path = self.path_mut(id);
        path.health.on_suspected();
        // It may swallow full packets alone: what asks it is short, and answered before T3 could tell.
        if path.mtu.on_timeout(may_probe) {
            self.refresh_payload(id);
        }
        self.refresh_usable(id);
        true
    }
}
