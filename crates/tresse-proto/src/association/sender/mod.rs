//! The sending side of an association: its queues (`outbound`), the outstanding data (`transmission`) and the paths
//! (`paths`), kept in step. It answers questions that need all three: the amount of new data that a path may carry, the limit
//! of a path, and the path of a retransmission.
//!
//! Policies select among paths that could all send, and the association handles chunk types, states and extensions; this
//! module does neither.

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
    /// Messages that were given up; made with the first.
    abandoned: Option<Box<AbandonLog>>,
    pub(super) coverage: Coverage,
}

/// Vectors to show paths in, kept so that none is allocated for a packet.
#[derive(Default)]
pub(super) struct Views {
    pub(super) candidates: Vec<PathView>,
    /// The open ones of them, and what the peer can take there.
    pub(super) open: Vec<OpenPath>,
    pub(super) samples: Vec<PathSample>,
}

/// Packets with user data that each path sent at one instant, which Max.Burst bounds (RFC 9260 §6.1 D).
///
/// The count starts anew with time alone, not with an event: otherwise an application that refills the send buffer at
/// the instant of a SACK would lift the limit, and several SACKs that arrive at once would release a burst each.
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
    /// With nothing to send yet.
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

    /// Packets leave at `now` from here on.
    pub(super) fn begin(&mut self, now: Instant) {
        if self.bursts.instant != now {
            self.bursts.instant = now;
            self.bursts.sent.fill(0);
        }
    }

    /// A packet of `len` bytes, SCTP headers not included, with user data was sent on `path`; returns whether nothing was
    /// in flight there before.
    pub(super) fn on_data_sent(&mut self, now: Instant, path: PathId, len: usize) -> bool {
        self.bursts.count(path);
        let late = self.transmission.outstanding.is_answered_late(path);
        self.paths.on_data_sent(path, now, len, late)
    }

    /// `path` has joined, perhaps in the place of one that is gone.
    pub(super) fn on_path_joined(&mut self, path: PathId) {
        let count = self.paths.len();
        self.transmission.renew_path(path, count);
        self.outbound.cover_paths(count);
        while self.bursts.sent.len() < count {
            self.bursts.sent.push(0);
        }
    }

    /// Tells the queues which paths carry new data, after a path was added or changed its state or its rank.
    pub(super) fn refresh_usable(&mut self) {
        for path in self.path_ids() {
            self.outbound.set_usable(path, self.paths.may_carry_new_data(path));
        }
    }

    pub(super) fn path_ids(&self) -> impl ExactSizeIterator<Item = PathId> + use<> {
        (0..self.paths.len()).map(|position| PathId(position as u8))
    }

    /// Its paths, by position. Those from an own address that the peer was asked to forget begin at another one.
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

    /// Returns whether `path` is one of the association.
    ///
    /// # Errors
    /// It is none.
    pub(crate) fn joined(&self, path: PathId) -> Result<(), NoSuchPath> {
        let count = self.paths.len();
        let joined = path.index() < count && self.paths.member(path) == Member::Joined;
        if joined { Ok(()) } else { Err(NoSuchPath { path, count }) }
    }

    /// The path between these addresses, the own one first, if it may carry user data.
    pub(super) fn path_for_data(&self, (local, remote): (IpAddr, IpAddr)) -> Option<PathId> {
        self.paths.find(local, remote).filter(|&path| self.paths.accepts_data(path))
    }

    /// The addresses among these that the association does not have and could use: an INIT with one of them is
    /// refused, so that no other host takes the association over (RFC 9260 §5.2.2).
    pub(crate) fn newcomers(&self, listed: impl Iterator<Item = IpAddr>) -> Vec<IpAddr> {
        let known = |address| self.paths.find_remote(address).is_some();
        let usable =
            |address: IpAddr| self.paths.iter().any(|path| path.local().is_ipv4() == address.is_ipv4());
        listed.filter(|&address| !known(address) && usable(address)).collect()
    }

    /// Returns whether the peer has shown that it owns this address (RFC 9260 §5.4).
    pub(crate) fn has_confirmed(&self, remote: IpAddr) -> bool {
        self.paths.living().any(|path| path.remote() == remote && path.is_confirmed())
    }

    /// The peer's address on each path with its `port`: what the peer is found by.
    pub(crate) fn destinations(&self, port: u16) -> impl Iterator<Item = (IpAddr, u16)> {
        self.paths.living().map(move |path| (path.remote(), port))
    }

    /// Returns whether nothing waits to be sent and nothing is in flight, as in an association that only receives.
    pub(super) fn is_idle(&self) -> bool {
        self.outbound.is_empty() && self.transmission.outstanding.is_empty()
    }

    /// The next stream whose queue fell below its low-water mark, for the event of the application.
    pub(super) fn pop_low(&mut self) -> Option<Event> {
        self.outbound.pop_low().map(|(stream, unsent)| Event::LowWater { stream, unsent })
    }

    /// The chunk that user data travels in.
    pub(super) fn data_format(&self) -> DataFormat {
        self.paths.data_format
    }

    /// Bytes of every packet that authentication and protection take.
    pub(super) fn overhead(&self) -> usize {
        usize::from(self.paths.overhead)
    }

    /// Most user data that a DATA chunk carries in a packet of its own on every path.
    fn full_payload(&self) -> usize {
        self.paths.smallest_payload().saturating_sub(self.overhead())
    }

    /// The size of that chunk, its header included.
    pub(super) fn full_chunk(&self) -> usize {
        self.data_format().header_len() + self.full_payload()
    }

    /// Fills in samples of all paths, by position.
    pub(super) fn fill_samples(&self, samples: &mut Vec<PathSample>) {
        samples.clear();
        samples.extend(
            self.path_ids()
                .map(|path| self.paths.sample(path, self.transmission.outstanding.flight_on(path))),
        );
    }

    /// Fills in samples of the usable paths; one whose packets cannot hold a chunk of `bytes` has no room for it.
    pub(super) fn fill_usable(&self, bytes: usize, samples: &mut Vec<PathSample>) {
        samples.clear();
        samples.extend(self.paths.usable_ids().map(|path| {
            let sample = self.paths.sample(path, self.transmission.outstanding.flight_on(path));
            let room = if sample.pmdcs < bytes + self.overhead() { 0 } else { sample.room };
            PathSample { room, ..sample }
        }));
    }

    /// T3 stops on a path that has no answer to give any more. A path that chunks left early has: else one that died
    /// would never be found, as long as they leave it in time.
    pub(super) fn settle_t3(&mut self, path: PathId) {
        if !self.transmission.awaits(path) {
            self.paths.stop_t3(path);
        }
    }

    /// T3 starts over on a path that has an answer to give, and else stops.
    pub(super) fn restart_t3(&mut self, now: Instant, path: PathId) {
        if self.transmission.awaits(path) {
            self.paths.restart_t3(path, now);
        } else {
            self.paths.stop_t3(path);
        }
    }
}
