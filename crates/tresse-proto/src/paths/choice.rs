//! Selection of a path without a scheduler: for control chunks, after a timeout, for SACKs.

use std::time::Duration;

use tresse_policy::engine::ack_path::{self, DataSource};
use tresse_policy::{Instant, PathId, PathState};

use super::member::Member;
use super::{Path, Paths};
use crate::config::SackPath;

impl Paths {
    /// Returns whether data may be sent on the path: it is confirmed and active.
    pub(crate) fn usable(&self, id: PathId) -> bool {
        self.get(id).state() == PathState::Active
    }

    /// The paths on which data may be sent.
    pub(crate) fn usable_ids(&self) -> impl Iterator<Item = PathId> {
        self.paths.iter().filter(|path| path.state() == PathState::Active).map(|path| path.id)
    }

    /// The path for control chunks, and for data where only one path is used: the primary if it is
    /// usable, else another usable one, else the confirmed one with the fewest errors, potentially failed
    /// ones before inactive ones (RFC 9260 §6.4, RFC 7829 §3.2 and §4.1).
    pub(crate) fn best_for_control(&self) -> PathId {
        let rank = |path: &&Path| {
            let primary = path.id == self.primary;
            (path.rank(), !path.health.confirmed(), path.health.errors(), !primary)
        };
        if self.paths.get(self.primary.index()).is_some_and(|path| path.state() == PathState::Active) {
            return self.primary;
        }
        self.joined().min_by_key(rank).map_or(self.primary, |path| path.id)
    }

    /// Returns whether new data may go on the path: on every usable one where paths are used concurrently, else on the
    /// one for control chunks alone; that one serves also when none is usable (RFC 9260 §8.2), if it is confirmed.
    pub(crate) fn may_carry_new_data(&self, id: PathId) -> bool {
        (self.rules.concurrent && self.usable(id)) || (id == self.best_for_control() && self.accepts_data(id))
    }

    /// Path of a retransmission of what timed out on `id`: another usable path, at best one that shares no address with
    /// it (RFC 9260 §6.4.1). Where there is none: `id` itself, or by RFC 7829 §3.2 the confirmed path with the fewest
    /// errors, potentially failed ones before inactive ones. A path that leaves does not stand in for itself.
    pub(crate) fn alternate(&self, id: PathId) -> PathId {
        let from = self.get(id);
        // After `id` in turn, so that the chunks of several failing paths do not all meet on one.
        let turn = |other: PathId| (other.index() + self.paths.len() - id.index()) % self.paths.len();
        let rank = |to: &&Path| {
            let doubts = to.rank();
            let errors = if doubts == 0 { 0 } else { to.health.errors() };
            let shares = to.local == from.local || to.remote == from.remote;
            (doubts, errors, to.id == id, shares, turn(to.id))
        };
        let dormant = from.tolerance(&self.rules).has_potentially_failed();
        let candidate =
            |path: &&Path| path.health.confirmed() && (dormant || path.state() == PathState::Active);
        let best = self.joined().filter(candidate).min_by_key(rank);
        match best {
            Some(path) => path.id,
            None if from.member == Member::Joined => id,
            None => self.best_for_control(),
        }
    }

    /// Returns whether a SACK may travel on the path although it brought none of what the SACK reports.
    pub(crate) fn may_report(&self, id: PathId, now: Instant) -> bool {
        if self.rules.sack_path != SackPath::Fastest || !self.usable(id) {
            return false;
        }
        let path = self.get(id);
        path.srtt().is_some_and(|srtt| now.since(path.heard) <= srtt * HEARD_FOR)
    }

    /// Time by which a path on which a SACK leaves now should have been heard again, if SACKs take paths that did not
    /// bring what they report.
    pub(crate) fn heard_by(&self, id: PathId, now: Instant) -> Option<Instant> {
        if self.rules.sack_path != SackPath::Fastest || self.paths.len() < 2 {
            return None;
        }
        self.get(id).srtt().map(|srtt| now + srtt * HEARD_FOR + Duration::from_nanos(1))
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
            Some(DataSource { path: id, srtt: path.srtt(), last_sack: path.traffic.last_sack })
        });
        let path = ack_path::choose(self.rules.sack_path, self.primary, first, last, sources);
        // Until it is confirmed, a path carries nothing but heartbeats (RFC 9260 §5.4); one that is
        // inactive would swallow the SACK.
        if self.usable(path) { path } else { self.best_for_control() }
    }
}

impl Path {
    /// Distrust of it: 0 when it is usable.
    fn rank(&self) -> u8 {
        match self.state() {
            PathState::Active => 0,
            PathState::PotentiallyFailed => 1,
            PathState::Inactive | PathState::Unconfirmed | PathState::Removed => 2,
        }
    }
}

/// A path on which nothing arrived for so many round trips may have failed in that direction, and so in the other.
const HEARD_FOR: u32 = 2;
