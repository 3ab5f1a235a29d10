//! Messages that are given up: from the queue, from the ring, and to the peer (RFC 3758 §3.5).
//!
//! Carries a message's fate between the rooms: its unsent rest, its chunks, its place in the send buffer,
//! the timers, the application. Which message it meets is for the rooms to say.

use std::sync::Arc;

use bytes::Bytes;
use tresse_policy::{Instant, PathId, StreamTable};
use tresse_wire::{Chunk, PacketWriter, StreamId, Tsn};

use super::control::{Control, Reason};
use super::{Association, Extension, State};
use crate::fragment::Carrier;
use crate::inbound::{Refusal, Skipped};
use crate::interface::event::{Event, Payload, SendOptions};
use crate::interface::reliability::{Abandonments, Pledge};
use crate::outbound::Withdrawn;
use crate::receiver::PacketSummary;

/// How many messages were given up.
#[derive(Debug, Default)]
pub(super) struct AbandonLog {
    pub(super) total: Abandonments,
    streams: StreamTable<Abandonments>,
}

impl AbandonLog {
    pub(super) fn on(&self, stream: StreamId) -> Abandonments {
        self.streams.get(stream).copied().unwrap_or_default()
    }
}

impl Association {
    /// Gives up what must not be sent (again) from now on. Called before anything is sent, and after whatever
    /// finds losses.
    #[inline]
    pub(super) fn give_up(&mut self, now: Instant) {
        if self.has_revocable() {
            self.give_up_condemned(now);
        }
    }

    /// Whether there are, or have been, messages that need not arrive.
    fn has_revocable(&self) -> bool {
        self.outbound.has_revocable() || self.transmission.has_revocable()
    }

    /// Whether there was anything of that kind.
    fn give_up_condemned(&mut self, now: Instant) -> bool {
        if self.state == State::Closed {
            return false;
        }
        let mut any = false;
        while let Some(withdrawn) = self.outbound.withdraw_expired(now) {
            self.abandon_withdrawn(withdrawn);
            any = true;
        }
        while let Some(pledge) = self.transmission.next_condemned(now) {
            self.abandon_sent(&pledge);
            any = true;
        }
        if any {
            self.after_abandoning(now);
        }
        any
    }

    /// An acknowledgement was processed; before it, a FORWARD TSN waited for one on `forward`.
    pub(super) fn after_report(&mut self, now: Instant, forward: Option<PathId>) {
        if !self.transmission.has_revocable() {
            return;
        }
        self.give_up(now);
        self.transmission.advance();
        match (forward, self.transmission.forward_path()) {
            // The peer has moved to where it was told: it is there, and hears us.
            (Some(path), None) => {
                self.paths.on_answered(path);
                self.unguard(Some(path));
            }
            (_, Some(path)) => {
                let pause = self.paths.get(path).srtt().unwrap_or_default();
                self.transmission.repeat_forward(now, pause);
                self.paths.start_t3(path, now);
            }
            (None, None) => {}
        }
    }

    /// Makes room for a message of `len` bytes at the cost of those with a lower priority, unless even all of
    /// them together would not do (RFC 7496 §3.2). What waits goes before what was sent, which may have
    /// arrived already and takes a FORWARD TSN. Whether anything was given up.
    pub(super) fn make_room(&mut self, now: Instant, options: &SendOptions, len: usize) -> bool {
        if !self.has_revocable() || self.outbound.shortage(options.stream, len) == 0 {
            return false;
        }
        let expired = self.give_up_condemned(now);
        let Some(priority) = options.reliability.evicts_from() else { return expired };
        let missing = self.outbound.shortage(options.stream, len);
        let waiting = self.outbound.evictable(priority, missing);
        if missing == 0 || waiting + self.transmission.evictable(priority, missing) < missing {
            return expired;
        }
        while self.outbound.shortage(options.stream, len) > 0 {
            if let Some(withdrawn) = self.outbound.evict(priority) {
                self.abandon_withdrawn(withdrawn);
            } else if let Some(pledge) = self.transmission.next_eviction(priority) {
                self.abandon_sent(&pledge);
            } else {
                break;
            }
        }
        self.after_abandoning(now);
        true
    }

    /// Where a FORWARD TSN goes that finds no data to ride with.
    pub(super) fn forward_wants(&self) -> Option<PathId> {
        let best = self.transmission.forward_is_due().then(|| self.paths.best_for_control())?;
        let avoid = self.transmission.forward_avoids() == Some(best);
        Some(if avoid { self.paths.alternate(best) } else { best })
            .filter(|&path| self.paths.accepts_data(path))
    }

    pub(super) fn write_forward(
        &mut self,
        now: Instant,
        path: PathId,
        allowed: bool,
        writer: &mut PacketWriter<'_>,
    ) {
        if !allowed || !self.transmission.forward_is_due() {
            return;
        }
        let before = self.transmission.forward_path();
        if self.transmission.write_forward(now, path, self.capabilities.carrier(), writer) {
            self.unguard(before.filter(|&before| before != path));
            self.paths.start_t3(path, now);
        }
    }

    /// The peer gave messages up (RFC 3758 §3.6).
    pub(super) fn on_forward_tsn(&mut self, via: PathId, chunk: &Chunk<'_>, summary: &mut PacketSummary) {
        if !self.capabilities.has(Extension::PartialReliability) {
            return self.refuse_forward_tsn(via, chunk);
        }
        match (chunk, self.capabilities.carrier()) {
            // RFC 8260 §2.3.1: each goes with its own chunk of user data, and never with the other.
            (Chunk::ForwardTsn(_), Carrier::IData) => self.fault("FORWARD TSN although I-DATA was agreed on"),
            (Chunk::IForwardTsn(_), Carrier::Data) => {
                self.fault("I-FORWARD-TSN although I-DATA was not agreed on");
            }
            _ if !self.state.takes_data() => self.counters.discards.unexpected_chunk += 1,
            (Chunk::ForwardTsn(forward), Carrier::Data) => {
                let skipped = forward.streams.iter().map(|skipped| Skipped {
                    stream: skipped.stream,
                    unordered: false,
                    number: skipped.ssn.0.into(),
                });
                self.skip(forward.cumulative_tsn, skipped, summary);
            }
            (Chunk::IForwardTsn(forward), Carrier::IData) => {
                let skipped = forward.messages.iter().map(|skipped| Skipped {
                    stream: skipped.stream,
                    unordered: skipped.unordered,
                    number: skipped.mid.0,
                });
                self.skip(forward.cumulative_tsn, skipped, summary);
            }
            _ => debug_assert!(false, "called with another chunk"),
        }
    }

    fn skip(&mut self, to: Tsn, skipped: impl Iterator<Item = Skipped>, summary: &mut PacketSummary) {
        let Some(up_to) = self.reception.receiver.skip_to(to) else {
            // It came again, probably since the SACK for it was lost.
            self.reception.receiver.demand();
            return;
        };
        summary.forwarded = true;
        let (mut unknown, streams) = (0, self.reception.inbound.stream_count());
        let skipped = skipped.inspect(|skipped| match &mut self.reconfig {
            _ if skipped.stream.0 >= streams => unknown += 1,
            Some(reconfig) => reconfig.note_skipped(up_to, *skipped),
            None => {}
        });
        let outcome = self.reception.skip(up_to, skipped);
        self.counters.discards.no_such_stream += unknown;
        if let Err(Refusal::Protocol(fault)) = outcome {
            self.fault(fault);
        }
    }

    /// A FORWARD TSN that was not agreed on is answered as by one who never heard of it (RFC 3758 §3.3.1).
    fn refuse_forward_tsn(&mut self, via: PathId, chunk: &Chunk<'_>) {
        self.counters.discards.unrecognised_chunk += 1;
        let mut whole = Vec::new();
        if chunk.write(&mut whole).is_ok() {
            self.control.push(via, Control::Error(Reason::UnrecognisedChunk(whole.into())));
        }
    }

    /// A message left the queue before it was sent, or before all of it was.
    fn abandon_withdrawn(&mut self, withdrawn: Withdrawn) {
        let Withdrawn { pledge, rest, begun } = withdrawn;
        let mut freed = rest.len();
        let sent = self.transmission.was_sent(&pledge);
        let mut pieces = Vec::new();
        if begun {
            freed += self.transmission.abandon(&pledge, true, &mut pieces);
        }
        pieces.push(rest);
        self.tell_abandoned(&pledge, sent, freed, pieces);
    }

    fn abandon_sent(&mut self, pledge: &Arc<Pledge>) {
        let withdrawn = self.outbound.withdraw(pledge);
        let sent = self.transmission.was_sent(pledge);
        let mut pieces = Vec::new();
        let mut freed = self.transmission.abandon(pledge, withdrawn.is_some(), &mut pieces);
        if let Some(Withdrawn { rest, .. }) = withdrawn {
            freed += rest.len();
            pieces.push(rest);
        }
        self.tell_abandoned(pledge, sent, freed, pieces);
    }

    fn tell_abandoned(&mut self, pledge: &Pledge, sent: bool, freed: usize, pieces: Vec<Bytes>) {
        let log = self.abandoned.get_or_insert_default();
        log.total.note(pledge.reliability, sent);
        log.streams.entry(pledge.stream).note(pledge.reliability, sent);
        let Pledge { stream, ppid, context, bytes, .. } = *pledge;
        let payload = Payload::Fragments(pieces);
        self.tell(Event::Abandoned { stream, ppid, context, bytes, sent, payload });
        if self.outbound.release(freed) {
            self.tell(Event::Writable);
        }
    }

    /// No FORWARD TSN waits for T3 of the path any more.
    fn unguard(&mut self, path: Option<PathId>) {
        if let Some(path) = path {
            self.settle_t3(path);
        }
    }

    /// Flights have shrunk, maybe to nothing, and the peer may have to hear of it.
    fn after_abandoning(&mut self, now: Instant) {
        self.foreseen = None;
        self.transmission.advance();
        for path in self.path_ids() {
            self.settle_t3(path);
        }
        self.advance_shutdown(now);
    }
}
