//! Messages of the key management. They are sent before all others, independent of schedulers and of room in the send buffer,
//! and get the next number of their stream when they are sent (draft-porfiri-tsvwg-sctp-dtls-handshake-02 §4).
//!
//! Otherwise queued messages of an application would delay a change of keys. The first keys would never come, because messages
//! of the application wait for them.

use std::collections::VecDeque;

use bytes::Bytes;
use tresse_wire::{DataFlags, Fsn, Mid, Ppid, StreamId};

use super::hold::{HoldReason, StreamHold};
use super::stream::OutStream;
use super::{Outbound, piece};
use crate::fragment::{CutFragment, Fragment};
use crate::interface::reconfiguration::Streams;

/// Messages outside of the queues of their streams.
#[derive(Debug, Default)]
pub(super) struct Apart {
    /// Hold on streams that are about to be renumbered or wait for keys, with the held messages.
    pub(super) hold: Option<StreamHold>,
    keys: Option<KeyQueue>,
}

impl Apart {
    /// Returns the hold, if there is one.
    pub(super) fn holding(&self) -> Option<&StreamHold> {
        self.hold.as_ref()
    }

    /// Returns whether a message of the key management may be sent. It waits for the end of a message that was begun: only
    /// paths of that stream may carry the rest.
    #[inline]
    pub(super) fn may_send_keys(&self, outbound: &Outbound) -> bool {
        let waiting = self.keys.as_ref().filter(|keys| !keys.messages.is_empty() && !self.keeps(keys));
        waiting.is_some_and(|keys| {
            let stream = || outbound.queues.streams.get(keys.stream);
            keys.begun > 0 || (outbound.open.is_none() && !stream().is_some_and(OutStream::has_begun_ordered))
        })
    }

    /// Returns whether no new key message may be begun, because its stream, or all streams, are about to be renumbered (RFC
    /// 6525 §5.1.2 A1).
    fn keeps(&self, keys: &KeyQueue) -> bool {
        keys.begun == 0
            && self
                .hold
                .as_ref()
                .is_some_and(|hold| hold.reason == HoldReason::Renumbering && hold.holds(keys.stream))
    }

    /// Returns the bytes of key messages that were not begun.
    pub(super) fn key_bytes(&self) -> usize {
        let Some(keys) = &self.keys else { return 0 };
        keys.messages.iter().skip(usize::from(keys.begun > 0)).map(|(_, message)| message.len()).sum()
    }

    /// Returns whether a key message on one of these streams was begun and not sent to its end.
    pub(super) fn has_begun_keys(&self, streams: &Streams) -> bool {
        self.keys.as_ref().is_some_and(|keys| keys.begun > 0 && streams.contains(keys.stream))
    }
}

/// Queue of key messages.
#[derive(Debug)]
struct KeyQueue {
    stream: StreamId,
    messages: VecDeque<(Ppid, Bytes)>,
    /// Of the first message: bytes that were cut, its MID, and the FSN of its next fragment.
    begun: usize,
    mid: Mid,
    fsn: Fsn,
}

impl Outbound {
    /// Queues a key message of at least one byte on `stream`. Its bytes count in the send buffer, but no limit refuses it.
    pub(crate) fn push_keys(&mut self, stream: StreamId, ppid: Ppid, message: Bytes) {
        self.buffer.take_in(message.len());
        let empty = || KeyQueue { stream, messages: VecDeque::new(), begun: 0, mid: Mid(0), fsn: Fsn(0) };
        let keys = &mut self.apart.get_or_insert_default().keys;
        keys.get_or_insert_with(empty).messages.push_back((ppid, message));
    }

    /// Cuts the next fragment of a key message; the arguments are those of [`take`](Self::take). Returns `None` if no key
    /// message may be sent: then other messages are. Returns `Some(None)` if the fragment does not fit.
    #[cold]
    pub(super) fn take_keys(
        &mut self,
        room: usize,
        full: usize,
        allowance: usize,
    ) -> Option<Option<CutFragment>> {
        if !self.apart.as_deref()?.may_send_keys(self) {
            return None;
        }
        let queue = self.apart.as_deref_mut()?.keys.as_mut()?;
        let (ppid, message) = queue.messages.front()?;
        let begins = queue.begun == 0;
        let rest = message.len() - queue.begun;
        let Some(len) = piece(rest, room, full).filter(|&len| len <= allowance) else { return Some(None) };
        if begins {
            let stream = self.queues.streams.entry(queue.stream);
            (queue.mid, queue.fsn) = (stream.take_number(), Fsn(0));
        }
        let ending = len == rest;
        let flags = DataFlags { beginning: begins, ending, unordered: false, immediate: false };
        let fragment = Fragment {
            stream: queue.stream,
            mid: queue.mid,
            fsn: queue.fsn,
            ppid: *ppid,
            flags: flags.into(),
            payload: message.slice(queue.begun..queue.begun + len),
        };
        queue.begun += len;
        queue.fsn = queue.fsn.next();
        if ending {
            queue.messages.pop_front();
            queue.begun = 0;
        }
        self.buffer.on_taken(len);
        Some(Some(CutFragment { fragment, terms: None }))
    }
}
