//! The named choices of concurrent multipath transfer and of scheduling.

use tresse_wire::StreamId;

use super::switch::{SwitchValue, choices};
use crate::collections::LazyState;

choices! {
    /// Rule for the growth of a path's window under CMT: the CUC algorithm (CMT paper of Iyengar et al.).
    pub enum CwndUpdate {
        /// Every newly acknowledged byte of the path counts (RFC 9260 has no such condition).
        Off = "off",
        /// Only when the path's pseudo-cumulative acknowledgement moved, whatever was retransmitted.
        V1 = "v1",
        /// As v1, with first transmissions and retransmissions tracked separately.
        V2 = "v2",
    }
}

choices! {
    /// Way in which a sender detects losses.
    pub enum LossDetection {
        /// By time: a chunk is lost if one that was sent well after it has arrived; tail loss probes (RFC 8985).
        Rack = "rack",
        /// By three missing reports, otherwise by T3 (RFC 9260 §7.2.4).
        Rfc9260 = "rfc9260",
    }
}

choices! {
    /// Data that a receiver reports as non-renegable (draft-tuexen-tsvwg-sctp-multipath §4.4.1).
    pub enum NrSack {
        /// Plain SACK chunks; NR-SACK is not negotiated.
        Off = "off",
        /// Unordered data and data in sequence within its stream: what can be delivered.
        Delivered = "delivered",
        /// Everything that was received: this receiver never reneges.
        Everything = "everything",
    }
}

choices! {
    /// Buffers that are split between the paths (GLOBECOM 2010 paper).
    pub enum BufferSplit {
        /// Any path may fill either buffer.
        None = "none",
        /// Each path may hold an equal share of the send buffer.
        Sender = "sender",
        /// Each path may hold an equal share of the peer's receive buffer.
        Receiver = "receiver",
        /// Both buffers.
        Both = "both",
    }
}

choices! {
    /// Part of a split buffer that each path may own.
    pub enum BufferAllocation {
        /// Equal parts for all paths (GLOBECOM 2010 paper).
        Equal = "equal",
        /// At all times by measured BDP, the paths with the shortest round trips first (docs/sharing.md).
        Paths = "paths",
        /// By BDP while the buffer is shorter than the BDPs of all paths and the data that waits at the peer
        /// meanwhile; otherwise equal parts, and only the congestion controller limits queues.
        WhenShort = "when_short",
    }
}

choices! {
    /// Bytes of a path that buffer splitting counts.
    pub enum SplitCounts {
        /// Sent and not yet released from the send buffer; renegably acknowledged bytes included.
        Queued = "queued",
        /// In flight.
        Outstanding = "outstanding",
    }
}

choices! {
    /// Moments at which a sender compares what is in flight with the peer's window (RFC 9260 §6.1 A).
    pub enum PeerWindowTest {
        /// Before each packet: it leaves if the window has room for a full one.
        Packet = "packet",
        /// At the arrival of a SACK: if the window has less than 3,000 bytes of room, new data waits for the next SACK,
        /// except one packet on each path with nothing in flight; otherwise it leaves without a further check (the
        /// simulation model of the papers of 2010).
        Sack = "sack",
    }
}

choices! {
    /// Rule for the reinjection of the head-of-line chunk.
    pub enum ChunkRescheduling {
        /// No chunk is reinjected.
        Off = "off",
        /// Chunk rescheduling of the GLOBECOM 2010 paper (§IV-C), by the send buffer.
        Sender = "sender",
        /// The same rule, by the peer's receive buffer.
        Receiver = "receiver",
        /// The same rule, by both buffers.
        Both = "both",
        /// By deadline: when the chunk is overdue, or when a buffer would run out before it arrives on its own path
        /// and it would arrive earlier on another.
        ByDeadline = "by_deadline",
    }
}

choices! {
    /// Reduction of the old path's window for a reinjected chunk.
    pub enum ReinjectionCut {
        /// No reduction.
        None = "none",
        /// The chunk's length (GLOBECOM 2010 paper); as for a loss if the chunk is overdue.
        Bytes = "bytes",
        /// As much as for a loss (the simulation model of the paper's authors, from 2011 on).
        Loss = "loss",
    }
}

choices! {
    /// Pairs of local and remote addresses that become paths.
    pub enum PathPairs {
        /// The first local address with the first remote one, and so on; the shorter list starts over.
        ByPosition = "by_position",
        /// Every local address with every remote one.
        FullMesh = "full_mesh",
    }
}

/// Paths that a stream's data may use. Text form: "any", "adaptive" or "fixed:0,1,…".
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum StreamMap {
    /// Every path.
    #[default]
    Any,
    /// By measurements of the paths; changed as paths and backlogs change (docs/adaptive.md).
    Adaptive,
    /// Stream `i` uses only the path at position `table[i % table.len()]`; never empty.
    Fixed(Vec<u16>),
}

impl LazyState for StreamMap {
    const INITIAL: &Self = &StreamMap::Any;
}

impl StreamMap {
    /// Returns the path position to which a fixed map binds `stream`; `None` for other maps.
    pub fn path_of(&self, stream: StreamId) -> Option<u16> {
        match self {
            StreamMap::Any | StreamMap::Adaptive => None,
            StreamMap::Fixed(table) => table.get(usize::from(stream.0) % table.len().max(1)).copied(),
        }
    }
}

impl SwitchValue for StreamMap {
    fn parse(text: &str) -> Option<Self> {
        if text == "any" {
            return Some(StreamMap::Any);
        }
        if text == "adaptive" {
            return Some(StreamMap::Adaptive);
        }
        let table: Result<Vec<u16>, _> =
            text.strip_prefix("fixed:")?.split(',').map(|item| item.trim().parse()).collect();
        table.ok().map(StreamMap::Fixed)
    }

    fn print(&self) -> String {
        match self {
            StreamMap::Any => "any".to_owned(),
            StreamMap::Adaptive => "adaptive".to_owned(),
            StreamMap::Fixed(table) => {
                let items: Vec<String> = table.iter().map(u16::to_string).collect();
                format!("fixed:{}", items.join(","))
            }
        }
    }

    fn accepted() -> String {
        "\"any\", \"adaptive\", or \"fixed:\" with the path position of each stream, such as \"fixed:0,1\""
            .to_owned()
    }
}
