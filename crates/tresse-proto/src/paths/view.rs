//! Views of the paths for schedulers, and their counters for reports.

use tresse_policy::engine::Window;
use tresse_policy::schedule::PathView;
use tresse_policy::sharing::PathSample;
use tresse_policy::{Instant, PathId};

use super::Paths;
use crate::interface::stats::PathStats;

impl Paths {
    /// Returns the congestion window of a path.
    pub(crate) fn window(&self, id: PathId) -> &Window {
        &self.windows[id.index()]
    }

    /// Returns the largest user data, in bytes, of a chunk that fits a packet of its own on every path. A chunk no larger can
    /// be retransmitted on any path (AMDCS, RFC 9260 §6.9).
    pub(crate) fn smallest_payload(&self) -> usize {
        self.smallest_payload.into()
    }

    /// Returns the same size with the header of the chunk.
    pub(crate) fn smallest_chunk(&self) -> usize {
        self.data_format.header_len() + self.smallest_payload()
    }

    /// Returns a path as schedulers see it, with `flight` bytes in flight; `open` is true if new data may leave on it.
    // Always: a view is large, and would otherwise be written twice.
    #[inline(always)]
    pub(crate) fn view(&self, id: PathId, flight: usize, open: bool) -> PathView {
        let (path, window) = (self.get(id), self.window(id));
        let mut view = PathView::new(id);
        view.primary = id == self.primary;
        view.state = path.state();
        view.open = open;
        view.recovering = window.repairs().is_some();
        view.cwnd = window.cwnd;
        view.ssthresh = window.ssthresh;
        view.flight = flight;
        view.room = window.room(flight);
        view.srtt = path.srtt();
        view.rttvar = path.rtt.rttvar();
        view.rtt_range = path.rtt.range();
        view.rto = path.rto();
        view.mtu = path.mtu.size();
        view.rate = path.traffic.estimate.rate();
        view.loss = path.traffic.estimate.loss();
        view.last_sent = path.traffic.last_data;
        view
    }

    /// Returns a path as the sharing of buffers sees it, with `flight` bytes in flight.
    pub(crate) fn sample(&self, id: PathId, flight: usize) -> PathSample {
        let (path, window) = (self.get(id), self.window(id));
        PathSample {
            id,
            carries_new_data: self.may_carry_new_data(id),
            without_data: false,
            recovering: window.repairs().is_some(),
            flight,
            room: window.room(flight),
            pmdcs: path.pmdcs(),
            srtt: path.srtt(),
            rttvar: path.rtt.rttvar(),
            shortest_rtt: path.shortest_rtt(),
            loss: path.traffic.estimate.loss(),
            last_data: path.traffic.last_data,
        }
    }

    /// Sets the loss rate of a path, from 0 to 1; `None` returns to the estimate.
    pub(crate) fn set_loss(&mut self, id: PathId, share: Option<f64>) {
        if id.index() < self.paths.len() {
            self.path_mut_quietly(id).traffic.estimate.set_loss(share);
        }
    }

    /// Counts a sent packet of `bytes` bytes, SCTP headers included; `data` is true if the packet has user data.
    pub(crate) fn on_packet_sent(&mut self, id: PathId, bytes: usize, data: bool) {
        let path = self.path_mut_quietly(id);
        path.counters.packets_sent += 1;
        path.counters.packet_bytes_sent += bytes as u64;
        if data && path.mtu.on_data_sent(bytes + path.headers_len()) {
            self.want_mtu_search();
        }
    }

    /// Returns the statistics of a path that this module has. Bytes in flight, queued bytes and the counters of chunks and
    /// marks are zero; other modules fill them in.
    pub(crate) fn stats(&self, id: PathId, now: Instant) -> PathStats {
        let (path, window) = (self.get(id), self.window(id));
        let counters = &path.counters;
        PathStats {
            id,
            local: path.local,
            remote: path.remote,
            state: path.state(),
            primary: id == self.primary,
            cwnd: window.cwnd,
            ssthresh: window.ssthresh,
            shares_with: self.windows.shares_with(id),
            flight: 0,
            copied: 0,
            queued: 0,
            srtt: path.srtt(),
            min_rtt: path.min_rtt(),
            seen_rtt: path.traffic.fill.seen_rtt(),
            rto: path.rto(),
            mtu: path.mtu.size(),
            packets_sent: counters.packets_sent,
            packet_bytes_sent: counters.packet_bytes_sent,
            packets_received: counters.packets_received,
            packet_bytes_received: counters.packet_bytes_received,
            chunks_sent: 0,
            bytes_sent: 0,
            chunks_resent: 0,
            bytes_acked: counters.bytes_acked,
            bytes_reneged: 0,
            fast_retransmits: 0,
            drop_reports: 0,
            copies_sent: 0,
            timeouts: counters.timeouts.into(),
            cuts_undone: counters.cuts_undone.into(),
            marks: 0,
            mark_cuts: 0,
            heartbeats_sent: counters.heartbeats_sent.into(),
            heartbeats_acked: counters.heartbeats_acked.into(),
            limited_by: path.limits.times(now),
        }
    }
}
