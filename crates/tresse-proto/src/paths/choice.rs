//! Selection of a path without a path scheduler: for control chunks, after a timeout, for SACKs.

use std::time::Duration;

use tresse_policy::engine::ack_path::{self, DataSource};
use tresse_policy::{Instant, PathId, PathState};

use super::path::Member;
use super::{Path, Paths};
use crate::config::SackPath;

impl Paths {
    /// Returns whether the path is usable: confirmed and active.
    pub(crate) fn usable(&self, id: PathId) -> bool {
        self.get(id).state() == PathState::Active
    }

    /// Returns the usable paths.
    pub(crate) fn usable_ids(&self) -> impl Iterator<Item = PathId> {
        self.paths.iter().filter(|path| path.state() == PathState::Active).map(|path| path.id)
    }

    /// Returns the path for control chunks, and for data if only one path is used: the primary path if it is usable, else
    /// another usable path, else the confirmed path with the fewest errors, potentially failed ones before inactive ones (RFC
    /// 9260 §6.4, RFC 7829 §3.2 and §4.1).
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

    /// Returns whether new data may be sent on the path: every usable path with concurrent transfer, else only the path for
    /// control chunks. That path also carries data if none is usable (RFC 9260 §8.2), provided that it is confirmed.
    pub(crate) fn may_carry_new_data(&self, id: PathId) -> bool {
        (self.rules.concurrent && self.usable(id)) || (id == self.best_for_control() && self.accepts_data(id))
    }

    /// Returns the path for retransmissions after a timeout on `id`: another usable path, preferably one that shares no address
    /// with it (RFC 9260 §6.4.1). If there is none, this is `id` itself, or by RFC 7829 §3.2 the confirmed path with the fewest
    /// errors, potentially failed ones before inactive ones. It is never `id` if that path is leaving and another one is left.
    pub(crate) fn alternate(&self, id: PathId) -> PathId {
        let from = self.get(id);
        // Equal paths take turns after `id`, so that the chunks of several failing paths do not all use one path.
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

    /// Returns whether a SACK may be sent on the path although none of the data that it reports arrived there.
    pub(crate) fn may_report(&self, id: PathId, now: Instant) -> bool {
        if self.rules.sack_path != SackPath::Fastest || !self.usable(id) {
            return false;
        }
        let path = self.get(id);
        path.srtt().is_some_and(|srtt| now.since(path.heard) <= srtt * HEARD_FOR)
    }

    /// Returns the time by which another packet should have arrived on the path if a SACK is sent on it now. `None` unless
    /// SACKs may be sent on paths on which the reported data did not arrive.
    pub(crate) fn heard_by(&self, id: PathId, now: Instant) -> Option<Instant> {
        if self.rules.sack_path != SackPath::Fastest || self.paths.len() < 2 {
            return None;
        }
        self.get(id).srtt().map(|srtt| now + srtt * HEARD_FOR + Duration::from_nanos(1))
    }

    /// Returns the path for the next SACK. `first`, `last` and `sources` are the paths on which DATA arrived since the last
    /// SACK: the first one, the last one, and all.
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
        // An unconfirmed path carries heartbeats only (RFC 9260 §5.4), and on an inactive path the SACK would be lost.
        if self.usable(path) { path } else { self.best_for_control() }
    }
}

impl Path {
    /// Returns a rank by the state of the path: 0 if it is usable, more if it is worse.
    fn rank(&self) -> u8 {
        match self.state() {
            PathState::Active => 0,
            PathState::PotentiallyFailed => 1,
            PathState::Inactive | PathState::Unconfirmed | PathState::Removed => 2,
        }
    }
}

/// Number of round trips without a packet after which a path may have failed in that direction, and so in the other.
const HEARD_FOR: u32 = 2;
