//! Abandoned messages, queued and sent (RFC 3758 §3.5). This module removes the unsent rest of a message, its chunks and its
//! part of the send buffer; `outbound` and `transmission` select the message.

use std::sync::Arc;

use bytes::Bytes;
use tresse_policy::{Instant, PathId, StreamTable};
use tresse_wire::{PacketWriter, StreamId};

use super::Sender;
use crate::interface::event::{Event, Payload, SendOptions};
use crate::interface::reliability::{Abandonments, DeliveryTerms};
use crate::outbound::WithdrawnMessage;

/// Number of messages that were given up.
#[derive(Debug, Default)]
pub(super) struct AbandonLog {
    total: Abandonments,
    streams: StreamTable<Abandonments>,
}

impl Sender {
    /// Messages that were given up, of all streams.
    pub(in crate::association) fn abandoned(&self) -> Abandonments {
        self.abandoned.as_deref().map(|log| log.total).unwrap_or_default()
    }

    /// The same of one stream.
    pub(crate) fn abandoned_on(&self, stream: StreamId) -> Abandonments {
        let log = self.abandoned.as_deref();
        log.and_then(|log| log.streams.get(stream).copied()).unwrap_or_default()
    }

    /// Returns whether there are, or have been, messages that need not arrive.
    #[inline]
    pub(in crate::association) fn has_revocable(&self) -> bool {
        self.outbound.has_revocable() || self.transmission.has_revocable()
    }

    /// Gives up what must not be sent (again) from now on; appends what the application is to be told, which is something if
    /// there was any.
    pub(in crate::association) fn give_up(&mut self, now: Instant, told: &mut Vec<Event>) {
        while let Some(withdrawn) = self.outbound.withdraw_expired(now) {
            self.abandon_withdrawn(withdrawn, told);
        }
        while let Some(terms) = self.transmission.next_condemned(now) {
            self.abandon_sent(&terms, told);
        }
    }

    /// Makes room for a message of `len` bytes at the cost of those with a lower priority, unless even all of
    /// them together would not do (RFC 7496 §3.2). What waits goes before what was sent, which may have
    /// arrived already and takes a FORWARD TSN.
    pub(in crate::association) fn make_room(
        &mut self,
        options: &SendOptions,
        len: usize,
        told: &mut Vec<Event>,
    ) {
        let Some(priority) = options.reliability.evicts_from() else { return };
        let missing = self.outbound.shortage(options.stream, len);
        let waiting = self.outbound.evictable(priority, missing);
        if missing == 0 || waiting + self.transmission.evictable(priority, missing) < missing {
            return;
        }
        while self.outbound.shortage(options.stream, len) > 0 {
            if let Some(withdrawn) = self.outbound.evict(priority) {
                self.abandon_withdrawn(withdrawn, told);
            } else if let Some(terms) = self.transmission.next_eviction(priority) {
                self.abandon_sent(&terms, told);
            } else {
                break;
            }
        }
    }

    /// A message left the queue before it was sent, or before all of it was.
    fn abandon_withdrawn(&mut self, withdrawn: WithdrawnMessage, told: &mut Vec<Event>) {
        let WithdrawnMessage { terms, rest, begun } = withdrawn;
        let mut freed = rest.len();
        let sent = self.transmission.was_sent(&terms);
        let mut pieces = Vec::new();
        if begun {
            freed += self.transmission.abandon(&terms, true, &mut pieces);
        }
        pieces.push(rest);
        self.note_abandoned(&terms, sent, freed, pieces, told);
    }

    fn abandon_sent(&mut self, terms: &Arc<DeliveryTerms>, told: &mut Vec<Event>) {
        let withdrawn = self.outbound.withdraw(terms);
        let sent = self.transmission.was_sent(terms);
        let mut pieces = Vec::new();
        let mut freed = self.transmission.abandon(terms, withdrawn.is_some(), &mut pieces);
        if let Some(WithdrawnMessage { rest, .. }) = withdrawn {
            freed += rest.len();
            pieces.push(rest);
        }
        self.note_abandoned(terms, sent, freed, pieces, told);
    }

    fn note_abandoned(
        &mut self,
        terms: &DeliveryTerms,
        sent: bool,
        freed: usize,
        pieces: Vec<Bytes>,
        told: &mut Vec<Event>,
    ) {
        let log = self.abandoned.get_or_insert_default();
        log.total.note(terms.reliability, sent);
        log.streams.entry(terms.stream).note(terms.reliability, sent);
        let DeliveryTerms { stream, ppid, context, bytes, .. } = *terms;
        let payload = Payload::Fragments(pieces);
        told.push(Event::Abandoned { stream, ppid, context, bytes, sent, payload });
        if self.outbound.buffer.release(freed) {
            told.push(Event::Writable);
        }
    }

    /// Flights have shrunk, maybe to nothing, and the peer may have to hear of it.
    pub(in crate::association) fn after_abandoning(&mut self) {
        self.transmission.advance();
        for path in self.path_ids() {
            self.settle_t3(path);
        }
    }

    /// An acknowledgement was processed; before it, a FORWARD TSN waited for one on `before`.
    pub(in crate::association) fn advance_forward(&mut self, now: Instant, before: Option<PathId>) {
        self.transmission.advance();
        match (before, self.transmission.forward_path()) {
            // The peer has moved to where it was told: it is there, and hears us.
            (Some(path), None) => {
                self.paths.on_answered(path);
                self.settle_t3(path);
            }
            (_, Some(path)) => {
                let pause = self.paths.get(path).srtt().unwrap_or_default();
                self.transmission.repeat_forward(now, pause);
                self.paths.start_t3(path, now);
            }
            (None, None) => {}
        }
    }

    /// Writes a FORWARD TSN on `path` that is due, if it fits; T3 of that path guards it from then on.
    pub(in crate::association) fn write_forward(
        &mut self,
        now: Instant,
        path: PathId,
        writer: &mut PacketWriter<'_>,
    ) {
        if !self.transmission.forward_is_due() {
            return;
        }
        let before = self.transmission.forward_path();
        if self.transmission.write_forward(now, path, writer) {
            if let Some(before) = before.filter(|&before| before != path) {
                self.settle_t3(before);
            }
            self.paths.start_t3(path, now);
        }
    }
}
