//! Paths that join and leave while the association runs (RFC 5061). A path keeps its number while it exists; a path that joins
//! later may take the slot, and the number, of a removed one.

use std::net::IpAddr;

use tresse_policy::{Instant, PathId};

use super::Paths;
use super::health::PathHealth;
use super::path::{Member, Path};
use super::rtt::Rtt;

/// RTO and errors of a path that was never confirmed, for the pair that is tried next.
#[derive(Debug)]
pub(crate) struct Tried(PathHealth, Rtt);

impl Paths {
    /// Returns the paths that are not removed, by position.
    pub(crate) fn living(&self) -> impl Iterator<Item = &Path> {
        self.paths.iter().filter(|path| path.member != Member::Gone)
    }

    /// Returns the paths that belong to the association, by position.
    pub(crate) fn joined(&self) -> impl Iterator<Item = &Path> + Clone {
        self.paths.iter().filter(|path| path.member == Member::Joined)
    }

    /// Returns the paths that join as soon as the peer confirms their local address.
    pub(crate) fn pending(&self) -> impl Iterator<Item = &Path> {
        self.paths.iter().filter(|path| path.member == Member::Pending)
    }

    /// Returns the membership of a path in the association.
    pub(crate) fn member(&self, id: PathId) -> Member {
        self.get(id).member
    }

    /// Returns the local addresses that the association has or is about to have, each once, in the order in which their
    /// paths joined.
    pub(crate) fn local_addresses(&self) -> impl Iterator<Item = IpAddr> + Clone {
        self.distinct(|path| path.stays().then_some(path.local))
    }

    /// Returns whether `address` is one of the local addresses.
    pub(crate) fn has_local(&self, address: IpAddr) -> bool {
        self.paths.iter().any(|path| path.stays() && path.local == address)
    }

    /// Returns the path between these addresses, or else a path to `remote`: the peer may use another of the local addresses
    /// than the path does.
    pub(crate) fn between(&self, local: IpAddr, remote: IpAddr) -> Option<PathId> {
        self.find(local, remote).or_else(|| self.find_remote(remote))
    }

    /// Returns the peer's addresses, each once, in the order in which their paths joined.
    pub(crate) fn remote_addresses(&self) -> impl Iterator<Item = IpAddr> + Clone {
        self.distinct(|path| (path.member != Member::Gone).then_some(path.remote))
    }

    /// Returns whether one more path is possible.
    pub(crate) fn has_place(&self) -> bool {
        self.living().count() < self.rules.max_paths
    }

    /// Adds a path between these addresses, the local one first, which heartbeats have to confirm (RFC 5061 §5.3 F14). Returns
    /// `None` if there are as many paths as allowed.
    pub(crate) fn join(
        &mut self,
        now: Instant,
        between: (IpAddr, IpAddr),
        encapsulation_port: Option<u16>,
        member: Member,
    ) -> Option<PathId> {
        let gone = self.paths.iter().find(|path| path.member == Member::Gone).map(|path| path.id);
        let id = match gone {
            Some(id) => {
                let (path, window) = self.fresh(id, now, between, encapsulation_port, false);
                let former = std::mem::replace(&mut self.paths[id.index()], path).rank;
                // The new path is the last one; those that joined after the removed one move up.
                let later = self.paths.iter_mut().filter(|path| path.rank > former);
                later.for_each(|path| path.rank -= 1);
                self.paths[id.index()].rank = (self.paths.len() - 1) as u8;
                self.windows.begin(id, window);
                id
            }
            None => self.add(now, between.0, between.1, encapsulation_port, false)?,
        };
        let path = self.path_mut(id);
        path.health = PathHealth::unknown();
        path.member = member;
        self.refresh_payload(id);
        Some(id)
    }

    /// Returns the joined paths that were never confirmed, and that left at least this number of heartbeats unanswered.
    pub(crate) fn unproven(&self, least: u32) -> impl Iterator<Item = &Path> {
        self.joined().filter(move |path| !path.health.confirmed() && path.errors() >= least)
    }

    /// Returns the RTO and the errors of a path, which [`resume`](Self::resume) gives to another one.
    pub(crate) fn tried(&self, id: PathId) -> Tried {
        let path = self.get(id);
        Tried(path.health.passed_on(), path.rtt.clone())
    }

    /// Lets a path that has just joined go on with the RTO and the errors of another one. So probes become rarer, however many
    /// pairs are tried in turn.
    pub(crate) fn resume(&mut self, id: PathId, tried: Tried) {
        let path = self.path_mut(id);
        (path.health, path.rtt) = (tried.0, tried.1);
    }

    /// Changes the membership of a path that is not removed.
    pub(crate) fn set_member(&mut self, id: PathId, member: Member) {
        let path = self.path_mut(id);
        path.member = member;
        if member != Member::Joined {
            path.t3 = None;
            if let Some(traffic) = path.traffic.changed() {
                traffic.idle_since = None;
            }
            path.heartbeats.stop();
        }
        self.refresh_usable(id);
        self.refresh_payload(id);
        if !self.get(self.primary).stays() {
            self.primary = self.best_for_control();
        }
    }

    /// Returns whether data may be sent on the path if no other is better: the path belongs to the association and is confirmed
    /// (RFC 9260 §5.4).
    pub(crate) fn accepts_data(&self, id: PathId) -> bool {
        let path = self.get(id);
        path.member == Member::Joined && path.health.confirmed()
    }

    /// Returns the addresses at one end of the paths, each once, in the order in which their first paths joined: slots do not
    /// show that, because a path that joins takes the slot of a removed one. There are few paths: looking back is cheaper
    /// than a list, and one request of the peer would need several lists.
    fn distinct(&self, end: impl Fn(&Path) -> Option<IpAddr> + Copy) -> impl Iterator<Item = IpAddr> + Clone {
        let next = move |after: Option<u8>| {
            let later = self.paths.iter().filter(move |path| after.is_none_or(|rank| path.rank > rank));
            later.min_by_key(|path| path.rank)
        };
        std::iter::successors(next(None), move |path| next(Some(path.rank))).filter_map(move |path| {
            let before = |other: &&Path| other.rank < path.rank;
            let met = |address| self.paths.iter().filter(before).any(|other| end(other) == Some(address));
            end(path).filter(|&address| !met(address))
        })
    }
}

impl Path {
    /// Returns whether the path belongs to the association, or is about to.
    pub(crate) fn stays(&self) -> bool {
        self.member <= Member::Pending
    }
}
