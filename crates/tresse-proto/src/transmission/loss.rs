//! Finding losses: missing reports, apart for each path (SFR), and timeouts.

use tresse_policy::PathId;

use super::departed::Departed;
use super::ring::{Mark, Sent};
use super::sack::Note;
use super::{Standing, Transmission};

/// Missing reports after which a chunk counts as lost (RFC 9260 §7.2.4).
pub(super) const MISSING_REPORTS: u8 = 3;

/// How a loss was found.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Evidence {
    /// By missing reports.
    Missing,
    /// By T3, or as good as.
    Timeout,
    /// The peer reported the packet as damaged.
    Report,
    /// None: it goes again because everything waits for it.
    Early,
}

impl Transmission {
    /// Counts missing reports and declares lost what has three.
    ///
    /// With split fast retransmit a chunk is struck only by a newly acknowledged later one of its own
    /// path, since only on one path does later mean overtaken (Iyengar et al., §III). Without, by any
    /// later one, or, with `all`, whenever it is reported missing: in fast recovery, when the cumulative
    /// TSN moves (RFC 9260 §7.2.4). A chunk that was sent again is struck with MFR only. Where copies mend losses, a later
    /// copy on its path strikes a chunk too.
    pub(super) fn strike(&mut self, notes: &mut [Note], dac_count: u8, all: bool) {
        for position in 0..self.loads.len() {
            let bound = if self.rules.split_fast_retransmit {
                notes.get(position).map_or(0, |note| note.highest_new)
            } else {
                let reported = self.acked.iter().next_back().filter(|_| all).map_or(0, |last| last.end);
                notes.iter().map(|note| note.highest_new).fold(reported, u64::max)
            };
            self.strike_path(position, bound, notes, dac_count);
            if self.rules.multiple_fast_retransmit {
                self.strike_again(position, notes);
            }
            if self.copies.is_some() {
                self.strike_copies(position, notes);
            }
        }
    }

    /// Multiple fast retransmissions (Caro et al.): what was sent again is struck by newly acknowledged chunks that
    /// were sent for the first time on its path later, one for each SACK. Of what left at the same instant nobody knows
    /// which was first.
    fn strike_again(&mut self, position: usize, notes: &mut [Note]) {
        let Some(latest) = notes.get(position).and_then(|note| note.latest_new) else { return };
        let mut next = self.loads[position].again.head();
        while let Some(index) = next {
            next = self.loads[position].again.after(&self.ring, index);
            let Some(sent) = self.ring.get_mut(index).filter(|sent| sent.sent_at < latest) else { break };
            sent.misses = sent.misses.saturating_add(1);
            if sent.misses >= MISSING_REPORTS {
                self.lose(index, PathId(position as u8), Evidence::Missing);
                if let Some(note) = notes.get_mut(position) {
                    note.lost = true;
                }
            }
        }
    }

    fn strike_path(&mut self, position: usize, bound: u64, notes: &mut [Note], dac_count: u8) {
        // Copies have lower TSNs than what left before them.
        let latest = notes.get(position).filter(|_| self.mends_by_copies()).and_then(|note| note.latest_new);
        let mut next = self.loads[position].fresh.head();
        let overtaken = |sent: &Sent| latest.is_some_and(|latest| sent.sent_at < latest);
        while let Some(index) = next {
            if index >= bound && !self.ring.get(index).is_some_and(overtaken) {
                break;
            }
            next = self.loads[position].fresh.after(&self.ring, index);
            let strikes = self.rules.strikes(index, notes, dac_count);
            let Some(sent) = self.ring.get_mut(index) else { break };
            sent.misses = sent.misses.saturating_add(strikes);
            if sent.misses >= MISSING_REPORTS {
                self.lose(index, PathId(position as u8), Evidence::Missing);
                if let Some(note) = notes.get_mut(position) {
                    note.lost = true;
                }
            }
        }
    }

    /// T3 of `path` expired: everything in flight there is lost and goes again on `target`
    /// (RFC 9260 §6.3.3). Answers how many chunks that were.
    pub(crate) fn on_timeout(&mut self, path: PathId, target: PathId) -> usize {
        let mut count = 0;
        while let Some(index) =
            self.load(path).and_then(|load| load.fresh.head().or_else(|| load.again.head()))
        {
            self.lose(index, target, Evidence::Timeout);
            count += 1;
        }
        if let Some(load) = self.loads.get_mut(path.index()) {
            load.timed = Mark::default();
            load.departed = Departed::default();
        }
        self.drop_copies(path);
        if let Some(load) = self.loads.get_mut(target.index()) {
            load.free_packet |= count > 0;
        }
        self.on_forward_lost(path);
        count
    }

    /// Lets `path` send one packet of lost chunks whatever its window says: it just entered fast recovery.
    pub(crate) fn grant_free_packet(&mut self, path: PathId) {
        if let Some(load) = self.loads.get_mut(path.index()) {
            load.free_packet = true;
        }
    }

    /// When the window has opened far enough, what probed it goes again at once: the peer has probably dropped it,
    /// and a T3 that has backed off would let the open window lie idle. Answers the path.
    pub(super) fn recall_probe(&mut self) -> Option<PathId> {
        let (ring, announced) = (&self.ring, self.announced());
        let first = self.probe.end_if(|first| {
            announced > 0 && ring.get(first).is_none_or(|probe| probe.bytes() <= announced)
        })?;
        let mut path = None;
        // Nothing newer was sent while it was under way.
        for index in first..=self.ring.highest() {
            let flying = self.ring.get(index).filter(|sent| sent.standing == Standing::InFlight);
            if let Some(last) = flying.map(|sent| sent.path) {
                self.lose(index, last, Evidence::Timeout);
                path = Some(last);
            }
        }
        self.grant_free_packet(path?);
        path
    }

    /// Declares a chunk in flight lost; it waits to be sent again on `target`.
    pub(super) fn lose(&mut self, index: u64, target: PathId, by: Evidence) {
        let Some(sent) = self.ring.get_mut(index) else { return };
        if sent.standing != Standing::InFlight {
            return;
        }
        sent.standing = Standing::Lost;
        sent.misses = 0;
        let (path, bytes, sends) = (sent.path, sent.bytes(), sent.sends);
        sent.moved |= path != target;
        sent.path = target;
        if let Some(load) = self.loads.get_mut(path.index()) {
            let order = if sends == 1 { &mut load.fresh } else { &mut load.again };
            order.unlink(&mut self.ring, index);
            load.flight -= bytes;
            load.queued -= bytes;
            match by {
                Evidence::Missing => load.repairs.fast_retransmits += 1,
                Evidence::Report => load.repairs.drop_reports += 1,
                Evidence::Timeout | Evidence::Early => {}
            }
            self.flight -= bytes;
        }
        if let Some(load) = self.loads.get_mut(target.index()) {
            load.lost.insert(index);
            load.queued += bytes;
        }
        if self.revocable.is_some() && by != Evidence::Early {
            self.note_struck(index);
        }
    }
}
