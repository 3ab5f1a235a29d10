//! Chunks that were not acknowledged when the association ended, as messages.

use std::collections::BTreeMap;

use bytes::Bytes;
use tresse_wire::{Mid, StreamId};

use super::{ChunkState, Transmission};
use crate::interface::event::Payload;
use crate::interface::undelivered::Undelivered;

/// Messages by stream, U bit and number, in the order of their first chunks, with what was not acknowledged of each; of one
/// whose rest was not cut yet that may be nothing.
#[derive(Default)]
pub(crate) struct Unacknowledged {
    places: BTreeMap<(StreamId, bool, u32), usize>,
    messages: Vec<(Undelivered, Vec<Bytes>)>,
}

impl Unacknowledged {
    /// Adds what was never cut of a message that was begun; `false` when nothing is known of that.
    pub(crate) fn add_rest(&mut self, stream: StreamId, unordered: bool, mid: Mid, rest: &Bytes) -> bool {
        let Some(&place) = self.places.get(&(stream, unordered, mid.0)) else { return false };
        self.messages[place].1.push(rest.clone());
        true
    }

    /// Those of which something was not acknowledged.
    pub(crate) fn into_messages(self) -> impl Iterator<Item = Undelivered> {
        self.messages
            .into_iter()
            .filter(|(_, pieces)| !pieces.is_empty())
            .map(|(message, pieces)| Undelivered { payload: Payload::Fragments(pieces), ..message })
    }
}

/// Data that was cut and that the peer has not acknowledged.
pub(crate) fn unacknowledged(transmission: &Transmission) -> Unacknowledged {
    let mut all = Unacknowledged::default();
    let revocable = transmission.revocable.as_deref();
    let ring = &transmission.outstanding.ring;
    for index in ring.cumulative() + 1..=ring.highest() {
        let (Some(sent), Some(content)) = (ring.get(index), ring.content(index)) else { continue };
        if sent.standing == ChunkState::Abandoned {
            continue;
        }
        let (stream, unordered) = (content.stream, content.flags.unordered());
        let place = *all.places.entry((stream, unordered, content.mid.0)).or_insert_with(|| {
            let context = revocable.map_or(0, |revocable| revocable.context_of(index));
            // Of a message whose beginning has left the ring that was acknowledged.
            let sent = !content.flags.beginning();
            let payload = Payload::Fragments(Vec::new());
            let message = Undelivered { stream, ppid: content.ppid, unordered, context, sent, payload };
            all.messages.push((message, Vec::new()));
            all.messages.len() - 1
        });
        let (message, pieces) = &mut all.messages[place];
        message.sent |= sent.sends > 0;
        if sent.standing != ChunkState::Acked {
            pieces.push(content.payload.clone());
        }
    }
    all
}
