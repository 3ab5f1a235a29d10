//! One packet of each stream that has data, in turn; a packet holds data of one stream only
//! (SCTP_SS_RR_PKT, RFC 8260 §3.3).
//!
//! It suits streams that must not suffer from each other's losses: a lost packet delays one stream. It costs throughput
//! if messages are short and streams are many: packets leave half empty. Without interleaving a message is sent in
//! consecutive packets. The last of them takes no further message while another stream waits: that message could be cut
//! as well, and so on, and the stream would keep its turn for many messages.

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
    /// True if a message has begun that no other stream may interrupt.
    unfinished: bool,
    /// True if the unfinished packet began with such a message.
    continued: bool,
}

impl StreamScheduler for RoundRobinPacket {
    fn on_queued(&mut self, queued: Queued) {
        if queued.was_idle {
            self.waiting.insert(queued.stream);
        }
    }

    fn next(&mut self, _path: &PathView, _backlog: &dyn Backlog) -> Option<StreamId> {
        match self.packet {
            Some(stream) if self.continued && self.waiting.next_after(Some(stream)) != Some(stream) => None,
            Some(stream) => self.waiting.contains(stream).then_some(stream),
            None => self.waiting.next_after(self.last),
        }
    }

    fn on_taken(&mut self, taken: Taken) {
        if self.packet.is_none() {
            self.continued = self.unfinished;
        }
        self.packet = Some(taken.stream);
        self.unfinished = !taken.turn_over;
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
