//! Explicit congestion notification (RFC 4960 appendix A, RFC 3168 §6.1): congestion marks, which ECNE reports until CWR answers
//! them, and the highest TSN at the last window reduction for a mark.
//!
//! This module is independent of windows and of the first TSN: the association determines the path of a mark, and reduces its
//! window. Marks are kept separately for each path, because a lower TSN may have been sent later on another path.

use crate::collections::LazyState;
use tresse_policy::PathId;
use tresse_policy::engine::path_entry;
use tresse_wire::{Chunk, Chunks, PacketWriter};
use tresse_wire::{Ecne, Tsn};
/// Congestion marks of one association, in both directions; allocated at the first mark.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    /// ECNEs to send; at most one for each path.
    echoes: Vec<Echo>,
    /// Counters by path.
    tallies: Vec<EcnCounts>,
}

/// A mark for which the peer has not sent CWR.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct Echo {
    path: PathId,
    index: u64,
    tsn: Tsn,
    /// Packets that arrived with a mark since the last CWR.
    packets: u32,
}

/// ECN state and counters of one path.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
struct EcnCounts {
    /// Packets that arrived with a mark.
    marks: u64,
    /// Window reductions for marks that the peer reported.
    cuts: u64,
    /// The highest index sent on any path at the last of these reductions.
    cut_after: u64,
    /// The index of the chunk in the peer's last ECNE.
    named: u64,
    /// The network may drop ECN-capable packets of this path.
    distrusted: bool,
}

impl LazyState for Marks {
    const INITIAL: &Self = &Marks { echoes: Vec::new(), tallies: Vec::new() };
}

/// Returns index and TSN of the lowest user data in a packet; `arrived` returns the index of data that has arrived.
pub(crate) fn lowest_of(packet: &[u8], arrived: impl Fn(Tsn) -> Option<u64>) -> Option<(u64, Tsn)> {
    let tsns = Chunks::of(packet).flatten().filter_map(|chunk| match chunk {
        Chunk::Data(data) => Some(data.tsn),
        Chunk::IData(data) => Some(data.tsn),
        _ => None,
    });
    tsns.filter_map(|tsn| Some((arrived(tsn)?, tsn))).min_by_key(|&(index, _)| index)
}

impl Marks {
    /// Records a packet that arrived on `path` with a mark; `index` and `tsn` are those of its lowest user data. Of several marks
    /// for which no CWR has arrived, the latest is reported, so that the peer knows whether it has reacted since.
    pub(crate) fn on_mark(&mut self, path: PathId, index: u64, tsn: Tsn) {
        self.tally(path).marks += 1;
        match self.echoes.iter_mut().find(|echo| echo.path == path) {
            Some(echo) => {
                echo.packets = echo.packets.saturating_add(1);
                if echo.index < index {
                    (echo.index, echo.tsn) = (index, tsn);
                }
            }
            None => self.echoes.push(Echo { path, index, tsn, packets: 1 }),
        }
    }

    /// Writes the due ECNEs, as far as they fit.
    pub(crate) fn write_echoes(&self, writer: &mut PacketWriter<'_>) {
        for echo in self.echoes() {
            if writer.push(&Chunk::Ecne(echo)).is_err() {
                break;
            }
        }
    }

    /// Returns the ECNEs to send with every SACK. They contain the number of packets (draft-stewart-tsvwg-sctpecn), because
    /// usrsctp 0.9.5 discards all chunks behind a shorter ECNE of RFC 4960, which ends its associations.
    fn echoes(&self) -> impl Iterator<Item = Ecne> {
        self.echoes.iter().map(|echo| Ecne { lowest_tsn: echo.tsn, marked_packets: Some(echo.packets) })
    }

    /// Processes a CWR for the mark on the chunk `index`. The peer sends CWR on the path whose window it reduced, before the next
    /// data there.
    pub(crate) fn on_reduced(&mut self, via: PathId, index: u64) {
        let answered = |echo: &Echo| echo.index == index || (echo.path == via && echo.index < index);
        self.echoes.retain(|echo| !answered(echo));
    }

    /// Forgets all ECNEs to send: their TSNs are invalid after a reset of TSNs.
    pub(crate) fn forget_echoes(&mut self) {
        self.echoes.clear();
    }

    /// Records that an ECNE of the peer reports the chunk `index`, sent on `path`.
    pub(crate) fn on_named(&mut self, path: PathId, index: u64) {
        self.tally(path).named = index;
    }

    /// Returns the path of the chunk `index`, if it was in the last ECNE for this path.
    pub(crate) fn path_of(&self, index: u64) -> Option<PathId> {
        self.tallies.iter().position(|tally| tally.named == index).map(|position| PathId(position as u8))
    }

    /// Returns whether a mark on the chunk `index` is new: the chunk was sent on `path` after the last reduction of its window
    /// for a mark.
    pub(crate) fn is_new_mark(&self, path: PathId, index: u64) -> bool {
        self.tallies.get(path.index()).is_none_or(|tally| index > tally.cut_after)
    }

    /// Records that the window of `path` was reduced when `highest` was the highest index sent.
    pub(crate) fn on_cut(&mut self, path: PathId, highest: u64) {
        let tally = self.tally(path);
        tally.cuts += 1;
        tally.cut_after = highest;
    }

    /// Ends ECN on `path`: its packets are no longer sent as ECN-capable.
    pub(crate) fn stop_marking(&mut self, path: PathId) {
        self.tally(path).distrusted = true;
    }

    /// Returns whether ECN on `path` has ended.
    pub(crate) fn has_stopped_marking(&self, path: PathId) -> bool {
        self.tallies.get(path.index()).is_some_and(|tally| tally.distrusted)
    }

    /// Resets the state of a path whose slot another path has taken.
    pub(crate) fn renew_path(&mut self, path: PathId) {
        if let Some(tally) = self.tallies.get_mut(path.index()) {
            *tally = EcnCounts::default();
        }
    }

    /// Returns the packets that arrived on `path` with a mark, and the reductions of its window for marks.
    pub(crate) fn counts(&self, path: PathId) -> (u64, u64) {
        self.tallies.get(path.index()).map_or((0, 0), |tally| (tally.marks, tally.cuts))
    }

    fn tally(&mut self, path: PathId) -> &mut EcnCounts {
        path_entry(&mut self.tallies, path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: PathId = PathId(0);
    const B: PathId = PathId(1);

    fn told(marks: &Marks) -> Vec<u32> {
        marks.echoes().map(|echo| echo.lowest_tsn.0).collect()
    }

    #[test]
    fn a_mark_is_told_until_it_is_answered() {
        let mut marks = Marks::default();
        marks.on_mark(A, 5, Tsn(105));
        assert_eq!(told(&marks), [105]);
        marks.on_reduced(A, 4);
        assert_eq!(told(&marks), [105], "the answer to an older one");
        marks.on_reduced(A, 5);
        assert_eq!(told(&marks), [0; 0]);
    }

    #[test]
    fn the_latest_mark_of_a_path_is_told() {
        let mut marks = Marks::default();
        for index in [5, 9, 7] {
            marks.on_mark(A, index, Tsn(100 + index as u32));
        }
        assert_eq!((told(&marks), marks.counts(A)), (vec![109], (3, 0)));
        assert_eq!(marks.echoes().map(|echo| echo.marked_packets).collect::<Vec<_>>(), [Some(3)]);
    }

    #[test]
    fn paths_are_answered_apart() {
        let mut marks = Marks::default();
        marks.on_mark(A, 10, Tsn(110));
        marks.on_mark(B, 12, Tsn(112));
        assert_eq!(told(&marks), [110, 112]);
        marks.on_reduced(B, 15);
        assert_eq!(told(&marks), [110], "what is older there may have been sent later here");
        marks.on_reduced(B, 10);
        assert_eq!(told(&marks), [0; 0], "named itself, over whatever path");
    }

    #[test]
    fn a_mark_is_news_once_in_a_window() {
        let mut marks = Marks::default();
        assert!(marks.is_new_mark(A, 3));
        marks.on_cut(A, 20);
        assert!(!marks.is_new_mark(A, 3) && !marks.is_new_mark(A, 20));
        assert!(marks.is_new_mark(A, 21) && marks.is_new_mark(B, 3));
        assert_eq!(marks.counts(A), (0, 1));
    }

    #[test]
    fn what_was_named_before_is_recognised() {
        let mut marks = Marks::default();
        marks.on_named(B, 7);
        assert_eq!((marks.path_of(7), marks.path_of(8)), (Some(B), None));
    }
}
