//! Explicit congestion notification (RFC 4960 appendix A, RFC 3168 §6.1): marks that ECNE reports until CWR
//! answers them, and the highest TSN at the last window reduction for a mark.
//!
//! Independent of windows and of the first TSN: the association finds the path of a mark, and reduces its window. Marks
//! are kept separately for each path, because on another path a lower TSN may have been sent later.

use crate::collections::LazyState;
use tresse_policy::PathId;
use tresse_policy::engine::path_entry;
use tresse_wire::{Chunk, Chunks, PacketWriter};
use tresse_wire::{Ecne, Tsn};
/// Both directions of one association, from the first mark on.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    /// At most one for each path.
    echoes: Vec<Echo>,
    /// By path.
    tallies: Vec<EcnCounts>,
}

/// A mark that the peer has not answered.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct Echo {
    path: PathId,
    index: u64,
    tsn: Tsn,
    /// Packets that came with a mark since the peer answered the last one.
    packets: u32,
}

/// Counts of one path.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
struct EcnCounts {
    /// Packets that came with a mark.
    marks: u64,
    /// Windows cut for marks that the peer reported.
    cuts: u64,
    /// The highest index that was sent on any path when the last of them was.
    cut_after: u64,
    /// The chunk that the peer named last.
    named: u64,
    /// The network may swallow what may be marked.
    distrusted: bool,
}

impl LazyState for Marks {
    const INITIAL: &Self = &Marks { echoes: Vec::new(), tallies: Vec::new() };
}

/// Of the user data in a packet that has `arrived`, which says its index, the lowest.
pub(crate) fn lowest_of(packet: &[u8], arrived: impl Fn(Tsn) -> Option<u64>) -> Option<(u64, Tsn)> {
    let tsns = Chunks::of(packet).flatten().filter_map(|chunk| match chunk {
        Chunk::Data(data) => Some(data.tsn),
        Chunk::IData(data) => Some(data.tsn),
        _ => None,
    });
    tsns.filter_map(|tsn| Some((arrived(tsn)?, tsn))).min_by_key(|&(index, _)| index)
}

impl Marks {
    /// A packet came over `path` with a mark; `index` and `tsn` name the lowest of its data. Of several marks that
    /// wait for the same CWR the latest is reported, so that the peer knows whether it has reacted since.
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

    /// Writes what the peer is still to be told, as far as it fits.
    pub(crate) fn write_echoes(&self, writer: &mut PacketWriter<'_>) {
        for echo in self.echoes() {
            if writer.push(&Chunk::Ecne(echo)).is_err() {
                break;
            }
        }
    }

    /// The chunks to send beside every report. They tell the number of packets too (draft-stewart-tsvwg-sctpecn), because
    /// usrsctp 0.9.5 throws away all that follows one without: the shorter ones of RFC 4960 end its associations.
    fn echoes(&self) -> impl Iterator<Item = Ecne> {
        self.echoes.iter().map(|echo| Ecne { lowest_tsn: echo.tsn, marked_packets: Some(echo.packets) })
    }

    /// The peer reacted to the mark on the chunk `index`; it says so on the path whose window it cut, ahead of what it
    /// sends there next.
    pub(crate) fn on_reduced(&mut self, via: PathId, index: u64) {
        let answered = |echo: &Echo| echo.index == index || (echo.path == via && echo.index < index);
        self.echoes.retain(|echo| !answered(echo));
    }

    /// Forgets what arrived: its TSNs mean something else now.
    pub(crate) fn forget_echoes(&mut self) {
        self.echoes.clear();
    }

    /// The peer names the chunk `index`, sent on `path`.
    pub(crate) fn on_named(&mut self, path: PathId, index: u64) {
        self.tally(path).named = index;
    }

    /// The path that the chunk `index` was sent on, if the peer named it before and no other since.
    pub(crate) fn path_of(&self, index: u64) -> Option<PathId> {
        self.tallies.iter().position(|tally| tally.named == index).map(|position| PathId(position as u8))
    }

    /// Returns whether a mark on the chunk `index` is news: it was sent on `path` after its window was last cut for a
    /// mark.
    pub(crate) fn is_new_mark(&self, path: PathId, index: u64) -> bool {
        self.tallies.get(path.index()).is_none_or(|tally| index > tally.cut_after)
    }

    /// The window of `path` was cut when `highest` was the highest index sent.
    pub(crate) fn on_cut(&mut self, path: PathId, highest: u64) {
        let tally = self.tally(path);
        tally.cuts += 1;
        tally.cut_after = highest;
    }

    /// Nothing on `path` may be marked any more.
    pub(crate) fn stop_marking(&mut self, path: PathId) {
        self.tally(path).distrusted = true;
    }

    /// Returns whether that was said of `path`.
    pub(crate) fn has_stopped_marking(&self, path: PathId) -> bool {
        self.tallies.get(path.index()).is_some_and(|tally| tally.distrusted)
    }

    /// Another path has taken the place of one that is gone.
    pub(crate) fn renew_path(&mut self, path: PathId) {
        if let Some(tally) = self.tallies.get_mut(path.index()) {
            *tally = EcnCounts::default();
        }
    }

    /// Packets that came over `path` with a mark, and windows of it that were cut for marks.
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
