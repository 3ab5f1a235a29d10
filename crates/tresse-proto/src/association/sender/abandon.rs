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

/// Number of abandoned messages, in total and of each stream.
#[derive(Debug, Default)]
pub(super) struct AbandonLog {
    total: Abandonments,
    streams: StreamTable<Abandonments>,
}

impl Sender {
    /// Number of abandoned messages of all streams.
    pub(in crate::association) fn abandoned(&self) -> Abandonments {
        self.abandoned.as_deref().map(|log| log.total).unwrap_or_default()
    }

    /// Number of abandoned messages of one stream.
    pub(crate) fn abandoned_on(&self, stream: StreamId) -> Abandonments {
        let log = self.abandoned.as_deref();
        log.and_then(|log| log.streams.get(stream).copied()).unwrap_or_default()
    }

    /// Returns whether any message with partial reliability is queued or was sent, now or before.
    #[inline]
    pub(in crate::association) fn has_revocable(&self) -> bool {
        self.outbound.has_revocable() || self.transmission.has_revocable()
    }

    /// Abandons messages that must not be transmitted or retransmitted any more. Appends events for the application: at least one
    /// if there was such a message.
    pub(in crate::association) fn give_up(&mut self, now: Instant, events: &mut Vec<Event>) {
        while let Some(withdrawn) = self.outbound.withdraw_expired(now) {
            self.abandon_withdrawn(withdrawn, events);
        }
        while let Some(terms) = self.transmission.next_condemned(now) {
            self.abandon_sent(&terms, events);
        }
    }

    /// Abandons messages with a lower priority to make room for a message of `len` bytes, unless all of them together are too
    /// small (RFC 7496 §3.2). Unsent messages are abandoned first: a sent one may have arrived already, and needs a FORWARD TSN.
    pub(in crate::association) fn make_room(
        &mut self,
        options: &SendOptions,
        len: usize,
        events: &mut Vec<Event>,
    ) {
        let Some(priority) = options.reliability.evicts_from() else { return };
        let missing = self.outbound.shortage(options.stream, len);
        let waiting = self.outbound.evictable(priority, missing);
        if missing == 0 || waiting + self.transmission.evictable(priority, missing) < missing {
            return;
        }
        while self.outbound.shortage(options.stream, len) > 0 {
            if let Some(withdrawn) = self.outbound.evict(priority) {
                self.abandon_withdrawn(withdrawn, events);
            } else if let Some(terms) = self.transmission.next_eviction(priority) {
                self.abandon_sent(&terms, events);
            } else {
                break;
            }
        }
    }

    /// Abandons a message that was withdrawn from its queue before all of it was sent.
    fn abandon_withdrawn(&mut self, withdrawn: WithdrawnMessage, events: &mut Vec<Event>) {
        let WithdrawnMessage { terms, rest, begun } = withdrawn;
        let mut freed = rest.len();
        let sent = self.transmission.was_sent(&terms);
        let mut pieces = Vec::new();
        if begun {
            freed += self.transmission.abandon(&terms, true, &mut pieces);
        }
        pieces.push(rest);
        self.note_abandoned(&terms, sent, freed, pieces, events);
    }

    fn abandon_sent(&mut self, terms: &Arc<DeliveryTerms>, events: &mut Vec<Event>) {
        let withdrawn = self.outbound.withdraw(terms);
        let sent = self.transmission.was_sent(terms);
        let mut pieces = Vec::new();
        let mut freed = self.transmission.abandon(terms, withdrawn.is_some(), &mut pieces);
        if let Some(WithdrawnMessage { rest, .. }) = withdrawn {
            freed += rest.len();
            pieces.push(rest);
        }
        self.note_abandoned(terms, sent, freed, pieces, events);
    }

    fn note_abandoned(
        &mut self,
        terms: &DeliveryTerms,
        sent: bool,
        freed: usize,
        pieces: Vec<Bytes>,
        events: &mut Vec<Event>,
    ) {
        let log = self.abandoned.get_or_insert_default();
        log.total.note(terms.reliability, sent);
        log.streams.entry(terms.stream).note(terms.reliability, sent);
        let DeliveryTerms { stream, ppid, context, unordered, bytes, .. } = *terms;
        let payload = Payload::Fragments(pieces);
        events.push(Event::Abandoned { stream, ppid, context, unordered, bytes, sent, payload });
        if self.outbound.buffer.release(freed) {
            events.push(Event::Writable);
        }
    }

    /// Handles a decrease of the bytes in flight, perhaps to zero: a FORWARD TSN may be due, and T3 may stop.
    pub(in crate::association) fn after_abandoning(&mut self) {
        self.transmission.advance();
        for path in self.path_ids() {
            self.settle_t3(path);
        }
    }

    /// Updates the FORWARD TSN after an acknowledgement.
    pub(in crate::association) fn advance_forward(&mut self, now: Instant) {
        self.transmission.advance();
        let outstanding = self.transmission.forward_path();
        // The peer has acknowledged a FORWARD TSN, so its path works.
        if let Some(path) = self.transmission.take_forward_answer() {
            self.paths.on_answered(path);
            if outstanding == Some(path) {
                self.restart_t3(now, path);
            } else {
                self.settle_t3(path);
            }
        }
        if let Some(path) = outstanding {
            let pause = self.paths.get(path).srtt().unwrap_or_default();
            self.transmission.repeat_forward(now, pause);
            self.paths.start_t3(path, now);
        }
    }

    /// Writes a FORWARD TSN that is due, if it fits, and starts T3 of `path` for it.
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
