//! Settings of experiments: mechanisms of papers and of RFC 9260 that only a figure or an ablation changes from the default.

use super::switch::switches;
use super::{CwndUpdate, PeerWindowTest, ReinjectionCut, SplitCounts};

switches! {
    /// The settings of an association that only a paper's figure or an ablation changes: `experiment.NAME` in text.
    pub struct Experiment in "experiment." {
        /// Smallest ssthresh after a loss, in full packets (4, RFC 9260 §7.2.3; 2 in RFC 2960).
        min_ssthresh: u16 = 4,
        /// Count missing reports separately for each path (SFR).
        split_fast_retransmit: bool = true,
        /// Do not count the acknowledgement of a chunk that was moved from another path as a missing report for chunks of its new path.
        smart_fast_retransmit: bool = true,
        /// Count missing reports of retransmissions, too, by chunks that were sent later on the same path (MFR); off waits for T3.
        multiple_fast_retransmit: bool = true,
        /// Condition for window growth under CMT (CUC).
        cwnd_update: CwndUpdate = CwndUpdate::V2,
        /// Leave fast recovery also when the path's pseudo-cumulative acknowledgement passes its exit point.
        pseudo_cumulative_recovery: bool = true,
        /// Take RTT samples also from SACKs that came over another path than the data, because T3 has to wait for such SACKs too.
        rtt_over_any_path: bool = true,
        /// Moments at which a sender compares what is in flight with the peer's window.
        peer_window_test: PeerWindowTest = PeerWindowTest::Packet,
        /// Bytes of a path that buffer splitting counts.
        split_counts: SplitCounts = SplitCounts::Outstanding,
        /// Let each path exceed its equal part of the receive buffer by one packet.
        split_overbooking: bool = false,
        /// Percent of a path's part of the buffer that early arrivals may hold before the head-of-line chunk is reinjected.
        rescheduling_threshold: u16 = 50,
        /// Reduction of the old path's window for a reinjected chunk.
        reinjection_cut: ReinjectionCut = ReinjectionCut::Bytes,
        /// T3 of a reinjected chunk's old path keeps running until that path answers; off stops T3 when no chunk is left on the path, which hides a failure of the path. With `chunk_rescheduling=by_deadline` it is always on.
        reinjection_t3: bool = true,
        /// Opportunistic retransmission of MPTCP: when the peer's window keeps a faster path from new data, reinject
        /// the head-of-line chunk there.
        opportunistic_retransmission: bool = false,
        /// With opportunistic retransmission, also halve the window of the path that carries the chunk, as MPTCP does; at most once in a round trip of the faster path.
        penalisation: bool = false,
    }
}
