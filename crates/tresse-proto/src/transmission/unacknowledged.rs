//! Messages that were not completely acknowledged when the association ended.

use std::collections::BTreeMap;

use bytes::Bytes;
use tresse_wire::{Mid, StreamId};

use super::{ChunkState, Transmission};
use crate::interface::event::Payload;
use crate::interface::undelivered::Undelivered;

/// Messages by stream, U bit and message number, in the order of their first chunks, with the payloads that were not
/// acknowledged. A message whose rest was not cut yet may have no such payload.
#[derive(Default)]
pub(crate) struct Unacknowledged {
    places: BTreeMap<(StreamId, bool, u32), usize>,
    messages: Vec<(Undelivered, Vec<Bytes>)>,
}

impl Unacknowledged {
    /// Adds the rest of a message that was not cut; returns `false` if no chunk of the message is known.
    pub(crate) fn add_rest(&mut self, stream: StreamId, unordered: bool, mid: Mid, rest: &Bytes) -> bool {
        let Some(&place) = self.places.get(&(stream, unordered, mid.0)) else { return false };
        self.messages[place].1.push(rest.clone());
        true
    }

    /// The messages of which some data was not acknowledged.
    pub(crate) fn into_messages(self) -> impl Iterator<Item = Undelivered> {
        self.messages
            .into_iter()
            .filter(|(_, pieces)| !pieces.is_empty())
            .map(|(message, pieces)| Undelivered { payload: Payload::Fragments(pieces), ..message })
    }
}

/// Collects the data that was cut and that the peer has not acknowledged.
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
            // If the beginning of the message has left the ring, that was acknowledged, so it was sent.
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
