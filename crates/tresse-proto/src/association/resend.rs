//! Lost chunks and the paths that carry them again: `transmission` says what was lost, `paths` how the paths
//! fare, and a policy of `schedule/resend_path` chooses.

use tresse_policy::engine::resend_path;
use tresse_policy::{PathId, PathView};

use super::Association;
use crate::config::RetransmitPath;

impl Association {
    /// The path for what was lost on `lost_on`; when none can be used, the least doubtful one (RFC 7829 §3.2).
    pub(super) fn resend_path(&mut self, policy: RetransmitPath, lost_on: PathId) -> PathId {
        if policy == RetransmitPath::Same && self.paths.usable(lost_on) {
            return lost_on;
        }
        let usable = self.usable_views();
        let alternate = self.paths.alternate(lost_on);
        let choice = resend_path::choose(policy, lost_on, alternate, &usable);
        self.workspace.get().candidates = usable;
        choice.unwrap_or(alternate)
    }

    /// How the usable paths look to whoever sends again; to be given back to the workspace.
    pub(super) fn usable_views(&mut self) -> Vec<PathView> {
        let mut usable = std::mem::take(&mut self.workspace.get().candidates);
        usable.clear();
        usable.extend(self.all_usable());
        usable
    }

    /// The same one by one.
    pub(super) fn all_usable(&self) -> impl Iterator<Item = PathView> {
        let view = |path| self.paths.view(path, self.transmission.flight_on(path), false);
        self.paths.usable_ids().map(view)
    }

    /// Chunks of `path` were reported missing. With `recovers` their path has just entered fast recovery: one
    /// packet of them leaves whatever the window of its new path says (RFC 9260 §7.2.4).
    pub(super) fn redirect_missing(&mut self, path: PathId, recovers: bool) {
        let target = self.resend_path(self.config.fast_retransmit_path, path);
        if target != path {
            self.transmission.redirect(path, target, recovers);
        } else if recovers {
            self.transmission.grant_free_packet(path);
        }
    }

    /// Lets what is under way or waits on paths that cannot be used leave on those that can. There may have been
    /// none when the path was lost, and one has come back since: long before T3 that has backed off.
    ///
    /// A path that comes back also takes over what is lost and waits for a window that is full: else it sends new data
    /// before that (RFC 9260 §6.1 C), and where both paths lose their chunks in turn, what the peer waits for never leaves.
    pub(super) fn redirect_stranded(&mut self) {
        for path in self.path_ids() {
            let target = self.paths.alternate(path);
            if !self.paths.usable(path) && self.paths.usable(target) {
                self.transmission.redirect(path, target, true);
                self.transmission.hand_over(path, target);
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
        self.paths.window(path).room(self.transmission.flight_on(path)) > 0
    }

    /// A path with room for lost chunks that wait for another one, if the policies let them move on. They are
    /// that path's from then on.
    pub(super) fn move_losses_on(&mut self) -> Option<PathId> {
        let policies = [self.config.fast_retransmit_path, self.config.timeout_retransmit_path];
        if !policies.into_iter().any(resend_path::moves_on) {
            return None;
        }
        let to = self.paths.usable_ids().find(|&path| self.has_room(path))?;
        let from = self.path_ids().find(|&path| self.transmission.next_resend(path).is_some())?;
        self.transmission.redirect(from, to, false);
        Some(to)
    }
}
