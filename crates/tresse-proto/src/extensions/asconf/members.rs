//! Paths that are added and removed with their addresses: the pairs of a new address, the search for one that works, and
//! substitutes, which are paths that exist only because an address had no other partner.
//!
//! This module changes the paths itself. It returns further effects, on data, streams and the application, as [`Change`]s, in
//! order; the association carries them out.

use std::net::IpAddr;

use crate::config::{AssociationConfig, PathPairs};
use crate::interface::event::Event;
use crate::paths::{Member, Path, Paths, partners};
use tresse_policy::Instant;
use tresse_policy::PathId;
use tresse_policy::PathState;

/// Initial capacity for changes: a chunk has several requests, each with about three changes.
const MOST_AT_ONCE: usize = 32;

/// Unanswered heartbeats after which a path that was never confirmed gives way to another pair: one may have been lost.
const FAILED_PROBES: u32 = 2;

/// The paths of an association, to be changed with its addresses.
pub(crate) struct Members<'a> {
    pub(crate) paths: &'a mut Paths,
    pub(super) config: &'a AssociationConfig,
    now: Instant,
    changes: Vec<Change>,
}

/// Effect of a change of addresses.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Change {
    /// This path was added, perhaps in the slot of a removed one.
    Joined(PathId),
    /// Nothing is sent on `path` any more.
    Emptied {
        /// The path.
        path: PathId,
        /// Path for its user data.
        data: PathId,
        /// Path for its control chunks.
        control: PathId,
    },
    /// An event for the application.
    Tell(Event),
    /// A malformed request, to be counted.
    DiscardMalformed,
}

impl<'a> Members<'a> {
    /// Gives access to these paths, which use these settings.
    pub(crate) fn new(paths: &'a mut Paths, config: &'a AssociationConfig, now: Instant) -> Self {
        Members { paths, config, now, changes: Vec::new() }
    }

    /// Returns the effects, in order.
    pub(crate) fn into_changes(self) -> Vec<Change> {
        self.changes
    }

    pub(super) fn note(&mut self, change: Change) {
        // One allocation suffices for nearly all chunks.
        if self.changes.is_empty() {
            self.changes.reserve(MOST_AT_ONCE);
        }
        self.changes.push(change);
    }

    /// Adds the paths of a new own address; they are pending until the peer agrees.
    pub(super) fn join_local(&mut self, local: IpAddr) {
        self.pair_local(local, Member::Pending);
    }

    /// Adds the paths of a new address of the peer. `came_to` is the own address at which a packet from there arrived, with the
    /// peer's UDP port. Returns whether there was a slot for at least one path.
    pub(super) fn join_remote(&mut self, remote: IpAddr, came_to: Option<(IpAddr, Option<u16>)>) -> bool {
        let side = self.paths.remote_addresses().chain([remote]);
        let others = self.paths.local_addresses();
        let mut locals: Vec<IpAddr> = partners(self.config.path_pairs, remote, side, others).collect();
        if let Some((local, _)) = came_to.filter(|&(local, _)| self.paths.has_local(local)) {
            // This pair has just proved to work; the pair by position may not work.
            match self.config.path_pairs {
                PathPairs::ByPosition => locals = vec![local],
                PathPairs::FullMesh => locals.sort_by_key(|&other| other != local),
            }
        }
        let port = came_to.map_or_else(|| self.port_towards(remote), |(_, port)| port);
        let mut any = false;
        for local in locals {
            let pending = self.paths.pending().any(|path| path.local() == local);
            let member = if pending { Member::Pending } else { Member::Joined };
            any |= self.join((local, remote), port, member).is_some();
        }
        any
    }

    /// Makes the paths from an own address full members, after the peer has agreed to the address.
    pub(super) fn admit_local(&mut self, local: IpAddr) {
        for path in self.paths_from(local) {
            self.paths.set_member(path, Member::Joined);
        }
    }

    /// Takes the paths from an own address into use again, after the peer refused to remove the address.
    pub(super) fn keep_local(&mut self, local: IpAddr) {
        for path in self.paths_from(local) {
            if self.paths.member(path) == Member::Leaving {
                self.paths.set_member(path, Member::Joined);
            }
        }
    }

    /// Takes the paths from an own address out of use.
    pub(super) fn leave_local(&mut self, local: IpAddr) {
        for path in self.paths_from(local) {
            self.paths.set_member(path, Member::Leaving);
            self.empty(path);
        }
    }

    /// Removes an own address and its paths.
    pub(super) fn drop_local(&mut self, local: IpAddr) {
        let paths = self.paths_from(local);
        let partners: Vec<IpAddr> = paths.iter().map(|&path| self.paths.get(path).remote()).collect();
        paths.into_iter().for_each(|path| self.drop_path(path));
        for remote in partners {
            if self.paths.find_remote(remote).is_none() {
                self.join_remote(remote, None);
            }
        }
    }

    /// Removes an address of the peer and its paths.
    pub(super) fn drop_remote(&mut self, remote: IpAddr) {
        let towards = self.paths.living().filter(|path| path.remote() == remote);
        let paths: Vec<(PathId, IpAddr, Member)> =
            towards.map(|path| (path.id(), path.local(), path.member())).collect();
        paths.iter().for_each(|&(path, ..)| self.drop_path(path));
        for (_, local, member) in paths {
            if member != Member::Leaving && !self.paths.has_local(local) {
                self.pair_local(local, member);
            }
        }
    }

    /// Returns the address of the peer that no path reaches, and whose paths have the most errors.
    pub(super) fn most_failed_remote(&self) -> Option<IpAddr> {
        let inactive = self.paths.living().filter(|path| path.state() == PathState::Inactive);
        let reached = |remote| {
            self.paths.living().any(|path| path.remote() == remote && path.state() != PathState::Inactive)
        };
        inactive.filter(|path| !reached(path.remote())).max_by_key(|path| path.errors()).map(Path::remote)
    }

    /// Removes substitutes, even working ones, after `path` was shown to work: those that share an address with it, and whose two
    /// addresses both have another working path.
    pub(crate) fn drop_substitutes(&mut self, path: PathId) {
        if self.config.path_pairs != PathPairs::ByPosition {
            return;
        }
        let better = self.paths.get(path);
        let works = |other: &Path| other.state() == PathState::Active;
        let substitutes: Vec<PathId> = self
            .paths
            .living()
            .filter(|path| path.id() != better.id() && path.stays())
            .filter(|path| path.local() == better.local() || path.remote() == better.remote())
            .filter(|path| self.serves(|other| works(other) && other.local() == path.local(), path))
            .filter(|path| self.serves(|other| works(other) && other.remote() == path.remote(), path))
            .map(Path::id)
            .collect();
        substitutes.into_iter().for_each(|path| self.drop_path(path));
    }

    /// After a heartbeat on `id` was not answered: if the path was never confirmed, the next free pair of its address is tried.
    /// Links may carry no pairs but those of their own, and positions do not show which these are once addresses have changed.
    pub(crate) fn try_next_pair(&mut self, id: PathId) {
        let paths = &*self.paths;
        let Some(path) = paths.unproven(FAILED_PROBES).find(|path| path.id() == id) else { return };
        let (local, remote) = (path.local(), path.remote());
        let of_local = paths.remote_addresses().map(|other| (local, other));
        let of_remote = paths.joined().map(|other| (other.local(), remote));
        let free = of_local.chain(of_remote).filter(|&pair| self.may_move(path, pair));
        // By value, since the order of the paths changes: from the present pair upwards, then from the smallest one.
        let next = free.min_by_key(|&pair| (pair.0 != local, pair < (local, remote), pair));
        let Some(next) = next else { return };
        let tried = paths.tried(id);
        if let Some(path) = self.move_path(id, next) {
            self.paths.resume(path, tried);
        }
    }

    /// After a packet came over a pair of known addresses that no path has: a path with one of them takes the pair, if heartbeats
    /// failed on it. So the peer's search for a pair that works succeeds.
    pub(crate) fn take_pair(&mut self, pair: (IpAddr, IpAddr)) {
        let failing = self.paths.unproven(1).find(|path| self.may_move(path, pair)).map(Path::id);
        failing.into_iter().for_each(|path| {
            self.move_path(path, pair);
        });
    }

    /// Returns whether `path` may give way to a pair: no path has it, and no path of the address that both share was confirmed.
    fn may_move(&self, path: &Path, (local, remote): (IpAddr, IpAddr)) -> bool {
        let any = |such: &dyn Fn(&Path) -> bool| self.paths.joined().any(such);
        let works = |other: &Path| self.paths.accepts_data(other.id());
        let of_local = path.local() == local && !any(&|other| works(other) && other.local() == local);
        let of_remote = path.remote() == remote && !any(&|other| works(other) && other.remote() == remote);
        self.config.path_pairs == PathPairs::ByPosition
            && (of_local || of_remote)
            && local.is_ipv4() == remote.is_ipv4()
            && any(&|other| other.local() == local)
            && self.paths.find(local, remote).is_none()
    }

    /// Adds a path for a pair that shares an address with the path `id`, which is removed unless its other address has no other.
    fn move_path(&mut self, id: PathId, pair: (IpAddr, IpAddr)) -> Option<PathId> {
        let path = self.paths.get(id);
        let served = if path.local() == pair.0 {
            self.serves(|other| other.remote() == path.remote(), path)
        } else {
            self.serves(|other| other.local() == path.local(), path)
        };
        let port = self.port_towards(pair.1);
        if served {
            self.drop_path(id);
        }
        let path = self.paths.join(self.now, pair, port, Member::Joined)?;
        self.note(Change::Joined(path));
        Some(path)
    }

    /// Adds the paths of an own address that has none.
    fn pair_local(&mut self, local: IpAddr, member: Member) {
        let side = self.paths.local_addresses().chain([local]);
        let others = self.paths.remote_addresses();
        let remotes: Vec<IpAddr> = partners(self.config.path_pairs, local, side, others).collect();
        for remote in remotes {
            self.join((local, remote), self.port_towards(remote), member);
        }
    }

    /// Returns the living paths from an own address.
    fn paths_from(&self, local: IpAddr) -> Vec<PathId> {
        self.paths.living().filter(|path| path.local() == local).map(Path::id).collect()
    }

    /// Moves user data and control chunks of a path to other paths.
    fn empty(&mut self, path: PathId) {
        let (data, control) = (self.paths.alternate(path), self.paths.best_for_control());
        self.note(Change::Emptied { path, data, control });
    }

    fn drop_path(&mut self, path: PathId) {
        self.paths.set_member(path, Member::Gone);
        // Reported now, because another path may take the slot afterwards.
        if let Some(state) = self.paths.path_mut_quietly(path).unreported() {
            self.note(Change::Tell(Event::PathChanged { path, state }));
        }
        self.empty(path);
    }

    fn join(&mut self, between: (IpAddr, IpAddr), port: Option<u16>, member: Member) -> Option<PathId> {
        self.make_place(between);
        let path = self.paths.join(self.now, between, port, member)?;
        self.note(Change::Joined(path));
        Some(path)
    }

    /// Before a path between these addresses is added, removes the substitutes for it that do not work. With pairs by position an
    /// address needs no other path than it would have had at set-up.
    fn make_place(&mut self, (local, remote): (IpAddr, IpAddr)) {
        if self.config.path_pairs != PathPairs::ByPosition {
            return;
        }
        let has_other = |path: &Path| match (path.local() == local, path.remote() == remote) {
            (true, false) => self.serves(|other| other.remote() == path.remote(), path),
            (false, true) => self.serves(|other| other.local() == path.local(), path),
            _ => false,
        };
        let candidates = self.paths.living().filter(|path| path.stays() && path.state() != PathState::Active);
        let substitutes: Vec<PathId> = candidates.filter(|path| has_other(path)).map(Path::id).collect();
        substitutes.into_iter().for_each(|path| self.drop_path(path));
    }

    /// Returns whether a path other than `beside` satisfies `such`.
    fn serves(&self, such: impl Fn(&Path) -> bool, beside: &Path) -> bool {
        self.paths.living().any(|other| other.id() != beside.id() && such(other))
    }

    /// Returns the peer's UDP port at an address: that of a path to this address, or else of any path.
    fn port_towards(&self, remote: IpAddr) -> Option<u16> {
        let path = self.paths.find_remote(remote).unwrap_or_else(|| self.paths.best_for_control());
        self.paths.get(path).encapsulation_port()
    }
}
