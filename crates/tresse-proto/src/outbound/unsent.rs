//! Messages that were not sent when their association ended.

use bytes::Bytes;
use tresse_wire::{Mid, StreamId};

use super::Outbound;
use super::keys::Apart;
use super::stream::WaitingMessage;
use crate::interface::event::Payload;
use crate::interface::undelivered::Undelivered;

/// Returns the messages of which something was not sent. For a message that was begun, `add_rest` gets its stream, whether it
/// is unordered, its MID and the unsent rest; if `add_rest` returns true it has taken the rest, and the message is left out.
pub(crate) fn unsent(
    outbound: &Outbound,
    mut add_rest: impl FnMut(StreamId, bool, Mid, &Bytes) -> bool,
) -> Vec<Undelivered> {
    let mut messages = Vec::new();
    let mut add = |stream: StreamId, waiting: &WaitingMessage, context: Option<u64>, sent: bool, payload| {
        messages.push(Undelivered {
            stream,
            ppid: waiting.ppid,
            unordered: waiting.unordered,
            context: context.unwrap_or_default(),
            sent,
            payload: Payload::Whole(payload),
        });
    };
    for (stream, queue) in outbound.queues.streams.iter() {
        for left in queue.left() {
            let joined = left.begun.map(|mid| add_rest(stream, left.waiting.unordered, mid, &left.rest));
            if joined != Some(true) {
                let context = left.terms.map(|terms| terms.context);
                // Everything that was cut of the message, if anything was, has been acknowledged.
                add(stream, left.waiting, context, joined.is_some(), left.rest);
            }
        }
    }
    for held in
        outbound.apart.as_deref().and_then(Apart::holding).into_iter().flat_map(|hold| hold.messages())
    {
        let context = held.terms.as_ref().map(|terms| terms.context);
        add(held.stream, &held.message, context, false, held.message.data.clone());
    }
    messages
}
