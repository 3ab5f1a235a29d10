//! Spurious reactions on a path: the reversal of window reductions, and the suspicion that the path has failed.

use tresse_policy::congestion::Sizes;
use tresse_policy::{Instant, PathId, PathState};

use super::{Path, Paths};

impl Path {
    /// Notes that the window was `before` and now has `cwnd` bytes; if it was reduced, the reduction may prove spurious.
    pub(crate) fn note_cut(&mut self, before: Sizes, cwnd: usize) {
        if cwnd < before.cwnd {
            self.traffic.before_cut = Some(before);
        }
    }

    /// Makes the last reduction of the window final.
    pub(super) fn keep_cut(&mut self) {
        if let Some(traffic) = self.traffic.changed() {
            traffic.before_cut = None;
        }
    }
}

impl Paths {
    /// Undoes the last reduction of the window, because the data was late and not lost, and clears the error counters.
    /// `sent_at` is the time at which the late data was sent, if that is certain: its round trip raises the RTO (RFC 4015
    /// §3.2). Returns false if there is nothing to undo.
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

    /// Suspects a path that does not answer while other paths do, before the timeout that RFC 7829 requires. The path carries
    /// no new data until it answers, and the caller probes it at once. Returns whether the path has just become suspected.
    pub(crate) fn suspect(&mut self, id: PathId) -> bool {
        // A packet on another path counts only if it arrived since this path went silent: that path may have failed, too, and
        // with it the SACKs for this one.
        let since = self.get(id).traffic.silent_since;
        let answers = |path: &Path| path.id != id && path.state() == PathState::Active && path.heard > since;
        if !self.get(id).tolerance(&self.rules).has_potentially_failed()
            || self.get(id).state() != PathState::Active
            || !self.paths.iter().any(answers)
        {
            return false;
        }
        let may_probe = !self.mtu_search_over;
        let path = self.path_mut(id);
        path.health.on_suspected();
        // The path may drop full packets only: a heartbeat is short, and would be answered before T3 detects that.
        if path.mtu.on_timeout(may_probe) {
            self.refresh_payload(id);
        }
        self.refresh_usable(id);
        true
    }
}
