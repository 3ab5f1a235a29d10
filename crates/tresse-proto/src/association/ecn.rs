//! Congestion marks (ECN, RFC 4960 appendix A, RFC 3168 §6.1): a packet that came with one is echoed beside every report
//! until the peer says that it has reacted; an echo cuts the window of the path that the named chunk went on.
//!
//! New data may be marked, and nothing else: what is sent again or probes a closed window must not be (RFC 3168
//! §6.1.5, §6.1.6), and control chunks cut no window when they are lost.

use tresse_policy::{Instant, PathId};
use tresse_wire::{Chunk, Chunks, PacketWriter, Tsn};

use super::Association;
use super::capabilities::Extension;
use crate::interface::stats::PathStats;

impl Association {
    /// A packet with user data came over `via` with a congestion mark. Of its data the lowest that has arrived, now or
    /// before, is named.
    #[cold]
    pub(super) fn on_marked_packet(&mut self, via: PathId, packet: &[u8]) {
        let tsns = Chunks::of(packet).flatten().filter_map(|chunk| match chunk {
            Chunk::Data(data) => Some(data.tsn),
            Chunk::IData(data) => Some(data.tsn),
            _ => None,
        });
        let highest = self.receiver.highest();
        let arrived = tsns
            .filter_map(|tsn| Some((self.receiver.index_near(tsn)?, tsn)))
            .filter(|&(index, _)| (1..=highest).contains(&index));
        if let Some((index, tsn)) = arrived.min_by_key(|&(index, _)| index) {
            self.marks.get_or_insert_default().on_mark(via, index, tsn);
        }
    }

    /// The peer says that the packet with `tsn` came with a mark. It is answered every time, because the answer before
    /// may have been lost, and its window is cut once.
    pub(super) fn on_ecne(&mut self, now: Instant, via: PathId, tsn: Tsn) {
        if !self.state.sends_data() {
            self.counters.discards.unexpected_chunk += 1;
            return;
        }
        let Some(marked) = self.transmission.marked(tsn) else {
            self.counters.discards.stray_ecne += 1;
            return;
        };
        let marks = self.marks.get_or_insert_default();
        let path = marked.path.or_else(|| marks.path_of(marked.index));
        if let Some(path) = marked.path {
            let (flight, exit_point) =
                (self.transmission.flight_on(path), self.transmission.highest_on(path));
            if marks.is_news(path, marked.index)
                && self.paths.on_mark(now, path, marked.index, flight, exit_point)
            {
                let (_, highest) = self.transmission.indices();
                marks.on_cut(path, highest);
            }
            marks.on_named(path, marked.index);
        }
        // The peer expects it on the path that the mark came over.
        let path = path.filter(|&path| self.paths.accepts_data(path)).unwrap_or(via);
        self.control.push_cwr(path, tsn);
    }

    /// The peer has cut its window for the mark on `tsn`.
    pub(super) fn on_cwr(&mut self, via: PathId, tsn: Tsn) {
        if let Some(marks) = &mut self.marks
            && let Some(index) = self.receiver.index_near(tsn)
        {
            marks.on_reduced(via, index);
        }
    }

    /// Writes what the peer is still to be told, as far as it fits.
    #[inline]
    pub(super) fn write_echoes(&self, writer: &mut PacketWriter<'_>) {
        let Some(marks) = &self.marks else { return };
        for echo in marks.echoes() {
            if writer.push(&Chunk::Ecne(echo)).is_err() {
                break;
            }
        }
    }

    /// Whether a packet of nothing but new data on `path` may be marked.
    #[inline]
    pub(super) fn may_be_marked(&self, path: PathId) -> bool {
        self.capabilities.has(Extension::Ecn)
            && !self.transmission.is_probing_window()
            && !self.marks.as_ref().is_some_and(|marks| marks.distrusts(path))
    }

    /// T3 expired on `path`. If no data has ever got through there, the network may be one that swallows what may be
    /// marked; QUIC finds such paths in the same way (RFC 9000 §13.4.2).
    pub(super) fn doubt_marks(&mut self, path: PathId) {
        if self.capabilities.has(Extension::Ecn) && !self.paths.has_delivered(path) {
            self.marks.get_or_insert_default().distrust(path);
        }
    }

    /// A path that joins has taken the place of one that is gone.
    pub(super) fn renew_marks(&mut self, path: PathId) {
        if let Some(marks) = &mut self.marks {
            marks.renew_path(path);
        }
    }

    /// What the peer sends is numbered anew.
    pub(super) fn forget_echoes(&mut self) {
        if let Some(marks) = &mut self.marks {
            marks.forget_echoes();
        }
    }

    /// Fills in what is known of marks on a path.
    pub(super) fn fill_mark_stats(&self, path: PathId, stats: &mut PathStats) {
        if let Some(marks) = &self.marks {
            (stats.marks, stats.mark_cuts) = marks.counts(path);
        }
    }
}
