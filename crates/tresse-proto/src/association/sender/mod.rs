//! The sending side of an association: its queues (`outbound`), the outstanding data (`transmission`) and the paths (`paths`),
//! kept consistent. Queries that need all three are here: the amount of new data that a path may carry, the limit of a path, and
//! the path of a retransmission.
//!
//! Policies select among paths that could all send, and the association handles chunk types, states and extensions.

mod abandon;
mod losses;
mod room;
mod write;

use std::net::IpAddr;
use std::sync::Arc;

use tresse_policy::schedule::{OpenPath, PathView};
use tresse_policy::sharing::PathSample;
use tresse_policy::{Instant, PathId};

use super::PathSeed;
use super::settings::Settings;
use crate::collections::InlineVec;
use crate::coverage::Coverage;
use crate::fragment::DataFormat;
use crate::interface::error::NoSuchPath;
use crate::interface::event::Event;
use crate::outbound::Outbound;
use crate::paths::{Member, Paths};
use crate::transmission::Transmission;

pub(super) use room::Load;
pub(super) use write::Burst;

use abandon::AbandonLog;

/// The sending side of an association.
pub(crate) struct Sender {
    pub(crate) config: Arc<Settings>,
    pub(crate) paths: Paths,
    pub(crate) outbound: Outbound,
    pub(super) transmission: Transmission,
    bursts: Bursts,
    /// Counts of abandoned messages; allocated with the first one.
    abandoned: Option<Box<AbandonLog>>,
    pub(super) coverage: Coverage,
}

/// Vectors for views of paths, reused so that a packet needs no allocation.
#[derive(Default)]
pub(super) struct Views {
    pub(super) candidates: Vec<PathView>,
    /// The paths open to new data, and the bytes that the peer can take there.
    pub(super) open: Vec<OpenPath>,
    pub(super) samples: Vec<PathSample>,
}

/// Packets with user data that each path sent at one instant, which Max.Burst bounds (RFC 9260 §6.1 D).
///
/// Only a later instant restarts the count, not an event: otherwise an application that refills the send buffer at the instant of
/// a SACK would lift the limit, and several SACKs that arrive at once would release a burst each.
#[derive(Debug)]
struct Bursts {
    instant: Instant,
    sent: InlineVec<u32>,
}

impl Bursts {
    /// Returns whether `path` has sent fewer than `limit` packets at this instant; 0 sets no limit.
    fn allows(&self, path: PathId, limit: u32) -> bool {
        limit == 0 || self.sent.get(path.index()).is_some_and(|&sent| sent < limit)
    }

    fn count(&mut self, path: PathId) {
        if let Some(sent) = self.sent.get_mut(path.index()) {
            *sent = sent.saturating_add(1);
        }
    }
}

impl Sender {
    /// Creates a sending side with nothing to send.
    pub(super) fn new(
        config: Arc<Settings>,
        paths: Paths,
        outbound: Outbound,
        mut transmission: Transmission,
    ) -> Self {
        transmission.cover_paths(paths.len());
        let bursts = Bursts { instant: Instant::ZERO, sent: std::iter::repeat_n(0, paths.len()).collect() };
        let coverage = Coverage::default();
        let mut sender = Sender { config, paths, outbound, transmission, bursts, abandoned: None, coverage };
        sender.refresh_usable();
        sender
    }

    /// Begins output at `now`: a later instant than before restarts the count of bursts.
    pub(super) fn begin(&mut self, now: Instant) {
        if self.bursts.instant != now {
            self.bursts.instant = now;
            self.bursts.sent.fill(0);
        }
    }

    /// Accounts for a packet with user data that was sent on `path`, of `len` bytes without the common header. Returns whether
    /// nothing was in flight there before.
    pub(super) fn on_data_sent(&mut self, now: Instant, path: PathId, len: usize) -> bool {
        self.bursts.count(path);
        let late = self.transmission.outstanding.is_answered_late(path);
        self.paths.on_data_sent(path, now, len, late)
    }

    /// Adds `path`, which may have the slot of a removed one.
    pub(super) fn on_path_joined(&mut self, path: PathId) {
        let count = self.paths.len();
        self.transmission.renew_path(path, count);
        self.outbound.cover_paths(count);
        while self.bursts.sent.len() < count {
            self.bursts.sent.push(0);
        }
    }

    /// Passes to the queues which paths may carry new data, after a path was added or changed its state or its rank.
    pub(super) fn refresh_usable(&mut self) {
        for path in self.path_ids() {
            self.outbound.set_usable(path, self.paths.may_carry_new_data(path));
        }
    }

    pub(super) fn path_ids(&self) -> impl ExactSizeIterator<Item = PathId> + use<> {
        (0..self.paths.len()).map(|position| PathId(position as u8))
    }

    /// The addresses of the paths, by position. A local address that is being removed is replaced by another one of its family;
    /// without one, the path is left out.
    pub(crate) fn path_seeds(&self) -> impl Iterator<Item = PathSeed> {
        self.paths.living().filter_map(|path| {
            let alike = |own: &IpAddr| own.is_ipv4() == path.remote().is_ipv4();
            Some(PathSeed {
                local: if path.stays() { path.local() } else { self.paths.local_addresses().find(alike)? },
                remote: path.remote(),
                encapsulation_port: path.encapsulation_port(),
                confirmed: path.is_confirmed(),
            })
        })
    }

    /// Checks that `path` belongs to the association.
    ///
    /// # Errors
    /// It does not.
    pub(crate) fn joined(&self, path: PathId) -> Result<(), NoSuchPath> {
        let count = self.paths.len();
        let joined = path.index() < count && self.paths.member(path) == Member::Joined;
        if joined { Ok(()) } else { Err(NoSuchPath { path, count }) }
    }

    /// The path between these addresses, the local one first, if it may carry user data.
    pub(super) fn path_for_data(&self, (local, remote): (IpAddr, IpAddr)) -> Option<PathId> {
        self.paths.find(local, remote).filter(|&path| self.paths.accepts_data(path))
    }

    /// The addresses in `listed` that the association does not have and could use. An INIT with one of them is refused, so that
    /// no other host takes over the association (RFC 9260 §5.2.2).
    pub(crate) fn newcomers(&self, listed: impl Iterator<Item = IpAddr>) -> Vec<IpAddr> {
        let known = |address| self.paths.find_remote(address).is_some();
        let usable =
            |address: IpAddr| self.paths.iter().any(|path| path.local().is_ipv4() == address.is_ipv4());
        listed.filter(|&address| !known(address) && usable(address)).collect()
    }

    /// Returns whether a path to this address of the peer is confirmed (RFC 9260 §5.4).
    pub(crate) fn has_confirmed(&self, remote: IpAddr) -> bool {
        self.paths.living().any(|path| path.remote() == remote && path.is_confirmed())
    }

    /// The peer's address on each path, with `port`: the keys under which the endpoint finds the association.
    pub(crate) fn destinations(&self, port: u16) -> impl Iterator<Item = (IpAddr, u16)> {
        self.paths.living().map(move |path| (path.remote(), port))
    }

    /// Returns whether nothing waits to be sent and nothing is in flight, as in an association that only receives.
    pub(super) fn is_idle(&self) -> bool {
        self.outbound.is_empty() && self.transmission.outstanding.is_empty()
    }

    /// Takes the next event on a stream whose queue fell below its low-water mark.
    pub(super) fn pop_low(&mut self) -> Option<Event> {
        self.outbound.pop_low().map(|(stream, unsent)| Event::LowWater { stream, unsent })
    }

    /// The type of chunk that carries user data.
    pub(super) fn data_format(&self) -> DataFormat {
        self.paths.data_format
    }

    /// Bytes that authentication and protection need in every packet.
    pub(super) fn overhead(&self) -> usize {
        usize::from(self.paths.overhead)
    }

    /// Most bytes of user data in a chunk that is alone in its packet and fits every path.
    fn full_payload(&self) -> usize {
        self.paths.smallest_payload().saturating_sub(self.overhead())
    }

    /// Size of such a chunk in bytes, header included.
    pub(super) fn full_chunk(&self) -> usize {
        self.data_format().header_len() + self.full_payload()
    }

    /// Replaces `samples` by those of all paths, by position.
    pub(super) fn fill_samples(&self, samples: &mut Vec<PathSample>) {
        samples.clear();
        samples.extend(
            self.path_ids()
                .map(|path| self.paths.sample(path, self.transmission.outstanding.flight_on(path))),
        );
    }

    /// Replaces `samples` by those of the usable paths. A path whose packets cannot hold a chunk of `bytes` bytes has no room in
    /// its sample.
    pub(super) fn fill_usable(&self, bytes: usize, samples: &mut Vec<PathSample>) {
        samples.clear();
        samples.extend(self.paths.usable_ids().map(|path| {
            let sample = self.paths.sample(path, self.transmission.outstanding.flight_on(path));
            let room = if sample.pmdcs < bytes + self.overhead() { 0 } else { sample.room };
            PathSample { room, ..sample }
        }));
    }

    /// Stops T3 on a path on which nothing is outstanding. Chunks that were reinjected from the path count as outstanding:
    /// otherwise its failure would never be detected, as long as chunks are reinjected from it in time.
    pub(super) fn settle_t3(&mut self, path: PathId) {
        if !self.transmission.awaits(path) {
            self.paths.stop_t3(path);
        }
    }

    /// Restarts T3 on a path on which something is outstanding (see [`settle_t3`](Self::settle_t3)), and stops it on others.
    pub(super) fn restart_t3(&mut self, now: Instant, path: PathId) {
        if self.transmission.awaits(path) {
            self.paths.restart_t3(path, now);
        } else {
            self.paths.stop_t3(path);
        }
    }
}
