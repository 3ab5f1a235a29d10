//! One packet of each stream that has data, in turn; a packet holds data of one stream only
//! (SCTP_SS_RR_PKT, RFC 8260 §3.3).
//!
//! It suits streams that must not suffer from each other's losses: a lost packet delays one stream. It costs throughput
//! if messages are short and streams are many: packets leave half empty.

use tresse_wire::StreamId;

use super::set::StreamSet;
use super::{Backlog, Queued, Removed, StreamScheduler, Taken};
use crate::schedule::path::PathView;

/// The stream scheduler "round_robin_packet".
#[derive(Default)]
pub(in crate::schedule) struct RoundRobinPacket {
    waiting: StreamSet,
    /// The stream that was served last.
    last: Option<StreamId>,
    /// Stream whose data the unfinished packet holds.
    packet: Option<StreamId>,
}

impl StreamScheduler for RoundRobinPacket {
    fn on_queued(&mut self, queued: Queued) {
        if queued.was_idle {
            self.waiting.insert(queued.stream);
        }
    }

    fn next(&mut self, _path: &PathView, _backlog: &dyn Backlog) -> Option<StreamId> {
        match self.packet {
            Some(stream) => self.waiting.contains(stream).then_some(stream),
            None => self.waiting.next_after(self.last),
        }
    }

    fn on_taken(&mut self, taken: Taken) {
        self.packet = Some(taken.stream);
        if taken.stream_empty {
            self.waiting.remove(taken.stream);
        }
    }

    fn on_removed(&mut self, removed: Removed) {
        if removed.stream_empty {
            self.waiting.remove(removed.stream);
        }
    }

    fn on_packet_end(&mut self) {
        if let Some(stream) = self.packet.take() {
            self.last = Some(stream);
        }
    }

    fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}
