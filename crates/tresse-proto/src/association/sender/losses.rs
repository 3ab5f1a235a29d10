//! Lost chunks and the paths that retransmit them: `transmission` provides the chunks, `paths` the state of the
//! paths, and a policy of `schedule/resend_path` selects.

use tresse_policy::congestion::Sizes;
use tresse_policy::engine::resend_path;
use tresse_policy::schedule::PathView;
use tresse_policy::{Instant, PathId};
use tresse_wire::{List, Tsn};

use super::Sender;
use crate::config::RetransmitPath;
use crate::coverage::Mechanism;
use crate::paths::Member;
use crate::transmission::{AckReport, ResponseTime, empty_path, move_flight, watch_timeout};

impl Sender {
    /// The path for retransmissions of chunks that were lost on `lost_on`; if no path is usable, that of `Paths::alternate`
    /// (RFC 7829 §3.2).
    pub(in crate::association) fn resend_path(
        &self,
        policy: RetransmitPath,
        lost_on: PathId,
        views: &mut Vec<PathView>,
    ) -> PathId {
        if policy == RetransmitPath::Same && self.paths.usable(lost_on) {
            return lost_on;
        }
        let view = |path| self.paths.view(path, self.transmission.outstanding.flight_on(path), false);
        views.clear();
        views.extend(self.paths.usable_ids().map(view));
        let alternate = self.paths.alternate(lost_on);
        resend_path::choose(policy, lost_on, alternate, views).unwrap_or(alternate)
    }

    /// Moves chunks of `path` that were reported missing to the path of their retransmission. `recovers` says that `path` has
    /// just entered fast recovery: then one packet of them may exceed the window of its new path (RFC 9260 §7.2.4).
    pub(in crate::association) fn on_missing(
        &mut self,
        path: PathId,
        recovers: bool,
        views: &mut Vec<PathView>,
    ) {
        if recovers {
            self.transmission.outstanding.watch_cut(path);
        }
        let target = self.resend_path(self.config.fast_retransmit_path, path, views);
        if target != path {
            self.transmission.redirect(path, target, recovers);
        } else if recovers {
            self.transmission.outstanding.grant_free_packet(path);
        }
    }

    /// Marks chunks of `path` as lost that are overdue and were sent before an acknowledged one (RACK, RFC 8985).
    pub(in crate::association) fn find_overdue(
        &mut self,
        now: Instant,
        path: PathId,
        views: &mut Vec<PathView>,
    ) {
        let before = self.transmission.outstanding.flight_on(path);
        let exit_point = self.transmission.outstanding.highest_on(path);
        let (lost, _, again) = self.transmission.look_again(now, path);
        self.paths.look_again(path, again);
        if lost {
            self.coverage.note(Mechanism::Overdue);
            let flight = self.transmission.outstanding.flight_on(path);
            let repairs = self.paths.window(path).repairs();
            let window = Sizes::from(self.paths.window(path));
            self.paths.on_late_loss(now, path, before - flight, flight, exit_point);
            let cwnd = self.paths.window(path).cwnd;
            self.paths.path_mut_quietly(path).note_cut(window, cwnd);
            self.on_missing(path, self.paths.window(path).repairs() != repairs, views);
            self.settle_t3(path);
        }
    }

    /// Handles chunks of `path` on which the peer reneged: T3 starts (RFC 9260 §6.3.2 R4). A path that is no longer used has no
    /// T3; its chunks are retransmitted on another one. Returns whether nothing was in flight on `path` before.
    pub(in crate::association) fn on_reneged(&mut self, now: Instant, path: PathId) -> bool {
        if self.paths.member(path) > Member::Pending {
            empty_path(&mut self.transmission, path, self.paths.alternate(path));
            return false;
        }
        self.paths.on_data_sent(path, now, 0, false)
    }

    /// Handles the expiry of T3-rtx on `path` (RFC 9260 §6.3.3): all chunks in flight there are retransmitted.
    pub(in crate::association) fn on_timeout(
        &mut self,
        now: Instant,
        path: PathId,
        views: &mut Vec<PathView>,
    ) {
        let target = self.resend_path(self.config.timeout_retransmit_path, path, views);
        watch_timeout(&mut self.transmission, now, path);
        self.transmission.on_timeout(path, target);
        self.transmission.outstanding.hand_over(path, target);
    }

    /// Handles a tail loss probe on `path` that was not acknowledged. If packets arrive on other paths, `path` is suspected: all
    /// chunks in flight there are moved to another path at once, in TSN order, and T3 still waits for `path` to acknowledge them.
    /// Otherwise the probe may have been lost, and is repeated. Returns whether the path is suspected now.
    pub(in crate::association) fn on_silence(
        &mut self,
        now: Instant,
        path: PathId,
        views: &mut Vec<PathView>,
    ) -> bool {
        let target = self.resend_path(self.config.timeout_retransmit_path, path, views);
        let alternate = if target == path { self.paths.alternate(path) } else { target };
        let probes_window = self.transmission.is_probing_window();
        let suspected = !probes_window && alternate != path && self.paths.suspect(path);
        if suspected {
            self.coverage.note(Mechanism::PathSuspected);
            move_flight(&mut self.transmission, path, alternate);
            self.transmission.outstanding.hand_over(path, alternate);
            self.refresh_usable();
        } else {
            self.transmission.probe_tail(now, path);
        }
        suspected
    }

    /// Moves data in flight or queued on unusable paths to usable ones, and from unconfirmed paths to a confirmed one, even if
    /// that is potentially failed (RFC 7829 §4.1). There may have been no usable path when the path failed; one that works since
    /// is used long before a backed-off T3 expires.
    ///
    /// A path with room in its window also takes over lost chunks that wait for a full window. Otherwise it would send new data
    /// before them (RFC 9260 §6.1 C), and if both paths lose their chunks in turn, the head-of-line chunk would never leave.
    pub(in crate::association) fn redirect_stranded(&mut self) {
        for path in self.path_ids() {
            let target = self.paths.alternate(path);
            let better = self.paths.usable(target)
                || !self.paths.accepts_data(path) && self.paths.accepts_data(target);
            if !self.paths.usable(path) && better {
                self.transmission.redirect(path, target, true);
                self.transmission.outstanding.hand_over(path, target);
                self.transmission.on_timeout(path, target);
                self.settle_t3(path);
            } else if self.config.timeout_retransmit_path != RetransmitPath::Same
                && !self.has_room(path)
                && let Some(back) = self.paths.usable_ids().find(|&path| self.has_room(path))
            {
                self.transmission.redirect(path, back, false);
            }
        }
    }

    fn has_room(&self, path: PathId) -> bool {
        self.paths.window(path).room(self.transmission.outstanding.flight_on(path)) > 0
    }

    /// The path of the next retransmissions, if any may leave.
    pub(in crate::association) fn path_with_lost(&mut self) -> Option<PathId> {
        if !self.transmission.outstanding.has_lost() {
            return None;
        }
        self.path_ids().find(|&path| self.may_resend(path)).or_else(|| self.move_losses_on())
    }

    /// Moves lost chunks from the path for whose window they wait to one with room, if the policies allow that; returns the
    /// latter.
    fn move_losses_on(&mut self) -> Option<PathId> {
        let policies = [self.config.fast_retransmit_path, self.config.timeout_retransmit_path];
        if !policies.into_iter().any(resend_path::moves_on) {
            return None;
        }
        let to = self.paths.usable_ids().find(|&path| self.has_room(path))?;
        let from = self.path_ids().find(|&path| self.transmission.next_resend(path).is_some())?;
        self.transmission.redirect(from, to, false);
        Some(to)
    }

    /// Passes the round-trip times of all paths to `transmission`, before an acknowledgement is processed: they attribute it to
    /// one of several transmissions of a chunk.
    pub(in crate::association) fn update_response_times(&mut self) {
        if self.transmission.copies.is_on() {
            for path in self.path_ids() {
                let known = self.paths.get(path);
                let (shortest, usual) = (known.shortest_rtt(), known.srtt());
                self.transmission.copies.tell_trip(path, ResponseTime { shortest, usual });
            }
        }
    }

    /// Handles the TSNs that the peer reports as duplicates: if such a chunk was reinjected, the path that it left has delivered
    /// it.
    pub(in crate::association) fn on_duplicates(&mut self, now: Instant, duplicates: List<'_, Tsn>) {
        if duplicates.is_empty() || !self.transmission.outstanding.has_departed() {
            return;
        }
        for tsn in duplicates.iter() {
            if let Some(path) = self.transmission.outstanding.on_duplicate(tsn) {
                self.restart_t3(now, path);
            }
        }
    }

    /// Passes the results of an acknowledgement to the paths and their windows, and lost chunks to their retransmission paths.
    pub(in crate::association) fn apply_report(
        &mut self,
        now: Instant,
        report: &AckReport,
        views: &mut Vec<PathView>,
    ) {
        let losing = report.acks.iter().filter(|ack| ack.lost);
        let before: Vec<_> = losing.map(|ack| (ack.path, self.paths.window(ack.path).repairs())).collect();
        self.paths.on_sack(now, &report.acks, &report.progress);
        for (path, recovery) in before {
            self.on_missing(path, self.paths.window(path).repairs() != recovery, views);
        }
        for &(path, sent_at) in &report.spurious {
            if self.paths.undo_cut(now, path, sent_at) {
                self.coverage.note(Mechanism::CutUndone);
                self.refresh_usable();
            }
            self.restart_t3(now, path);
        }
        if report.reopened {
            self.path_ids().for_each(|path| self.settle_t3(path));
        }
    }
}
