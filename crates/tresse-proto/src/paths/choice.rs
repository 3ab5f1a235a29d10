//! Which path to take when no scheduler is asked: for control chunks, after a timeout, for SACKs.

use super::{Path, Paths};
use crate::path_id::PathId;
use crate::schedule::ack_path::{self, DataSource};
use crate::stats::PathState;

impl Paths {
    /// Whether data may be sent on the path: it is confirmed and active.
    pub(crate) fn usable(&self, id: PathId) -> bool {
        self.get(id).state() == PathState::Active
    }

    /// The paths on which data may be sent.
    pub(crate) fn usable_ids(&self) -> impl Iterator<Item = PathId> {
        self.paths.iter().filter(|path| path.state() == PathState::Active).map(|path| path.id)
    }

    /// The path for control chunks, and for data where only one path is used: the primary if it is
    /// usable, else another usable one, else the confirmed one with the fewest errors (RFC 9260 §6.4).
    pub(crate) fn best_for_control(&self) -> PathId {
        let rank = |path: &&Path| {
            let primary = path.id == self.primary;
            (path.state() != PathState::Active, !path.health.confirmed(), path.health.errors(), !primary)
        };
        if self.paths.get(self.primary.index()).is_some_and(|path| path.state() == PathState::Active) {
            return self.primary;
        }
        self.paths.iter().min_by_key(rank).map_or(self.primary, |path| path.id)
    }

    /// Whether new data may go on the path: on every usable one where paths are used concurrently, else
    /// on the one for control chunks alone; that one serves also when none is usable (RFC 9260 §8.2).
    pub(crate) fn may_carry_new_data(&self, id: PathId) -> bool {
        (self.rules.concurrent && self.usable(id)) || id == self.best_for_control()
    }

    /// Where to send again what timed out on `id`: another usable path, at best one that shares no
    /// address with it (RFC 9260 §6.4.1); else `id` itself.
    pub(crate) fn alternate(&self, id: PathId) -> PathId {
        let from = self.get(id);
        // After `id` in turn, so that the chunks of several failing paths do not all meet on one.
        let turn = |other: &PathId| (other.index() + self.paths.len() - id.index()) % self.paths.len();
        self.usable_ids()
            .filter(|&other| other != id)
            .min_by_key(|other| {
                let to = self.get(*other);
                (to.local == from.local || to.remote == from.remote, turn(other))
            })
            .unwrap_or(id)
    }

    /// The path that carries the next SACK; `first`, `last` and `sources` say which paths brought
    /// DATA since the last one.
    pub(crate) fn ack_path(
        &self,
        first: PathId,
        last: PathId,
        sources: impl IntoIterator<Item = PathId>,
    ) -> PathId {
        let sources = sources.into_iter().filter_map(|id| {
            let path = self.paths.get(id.index())?;
            Some(DataSource { path: id, srtt: path.srtt(), last_sack: path.last_sack })
        });
        let path = ack_path::choose(self.rules.sack_path, self.primary, first, last, sources);
        // Until it is confirmed, a path carries nothing but heartbeats (RFC 9260 §5.4); one that is
        // inactive would swallow the SACK.
        if self.usable(path) { path } else { self.best_for_control() }
    }
}
