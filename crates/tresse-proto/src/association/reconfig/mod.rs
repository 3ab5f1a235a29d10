//! Stream reconfiguration in the corridor (RFC 6525): RE-CONFIG comes in and goes out, and what was agreed is
//! done to the rooms. `command` has what the application asks, `grant` what the peer asks.

mod command;
mod grant;

use std::ops::Range;

use tresse_policy::{Instant, PathId};
use tresse_wire::Reconfig as ReconfigChunk;

use super::control::Control;
use super::{Association, State};
use crate::extensions::reconfig::{
    Answered, Deferred, Origin, Reconfig, Requested, Response, SetAsideChunk, encode, read, result,
};
use crate::inbound::InboundData;
use crate::interface::event::{CloseReason, Event};
use crate::interface::reconfiguration::{Reconfiguration, ReconfigurationOutcome, Streams};

impl Association {
    /// RE-CONFIG arrived over `via`: answers go back there, with a SACK (RFC 6525 §5.2.1).
    pub(super) fn on_reconfig(&mut self, now: Instant, via: PathId, chunk: &ReconfigChunk<'_>) {
        if !self.state.takes_data() && !self.state.sends_data() {
            self.counters.discards.unexpected_chunk += 1;
            return;
        }
        let Some(items) = read(&chunk.params) else {
            self.counters.discards.malformed_chunk += 1;
            return;
        };
        let mut answers = Vec::new();
        for item in items {
            match item {
                Requested::Response(response) => self.on_response(now, response),
                Requested::Request { sequence, request } => {
                    answers.extend(self.on_request(now, sequence, request));
                }
            }
        }
        self.respond(via, &answers);
    }

    /// Takes every step that has become possible: after a SACK, after DATA, after an answer.
    #[inline]
    pub(super) fn advance_reconfig(&mut self, now: Instant) {
        if self.reconfig.is_some() {
            self.take_reconfig_step(now);
        }
    }

    #[inline(never)]
    fn take_reconfig_step(&mut self, now: Instant) {
        let Some(reconfig) = &mut self.reconfig else { return };
        let arrived = self.receiver.cumulative();
        if let Some(Deferred { sequence, streams, .. }) =
            reconfig.peer.deferred.take_if(|deferred| deferred.last <= arrived)
        {
            self.reset_inbound(streams);
            self.respond_late(Response::new(sequence, result::PERFORMED));
        }
        let Some(reconfig) = &mut self.reconfig else { return };
        let (cumulative, highest) = self.transmission.indices();
        let drained = self.outbound.is_drained();
        if let Some((sequence, _)) =
            reconfig.peer.renumbering.take_if(|(_, silence)| silence.is_reached(drained, highest, cumulative))
        {
            let response = self.renumber_for_peer(now, sequence);
            self.respond_late(response);
            return;
        }
        if reconfig.own.may_be_sent(drained, highest, cumulative) {
            reconfig.own.number(self.transmission.last_tsn(), highest, reconfig.peer.last_sequence());
            self.send_request(now, self.paths.best_for_control());
        } else if reconfig.own.should_remind(cumulative) {
            self.send_request(now, self.paths.best_for_control());
        }
    }

    /// Everything that could be sent was: perhaps the last of what was queued before a reset.
    pub(super) fn note_silence(&mut self) {
        let Some(reconfig) = &mut self.reconfig else { return };
        let (cumulative, highest) = self.transmission.indices();
        let drained = self.outbound.is_drained();
        reconfig.own.may_be_sent(drained, highest, cumulative);
        if let Some((_, silence)) = &mut reconfig.peer.renumbering {
            silence.is_reached(drained, highest, cumulative);
        }
    }

    /// The own request stayed unanswered: it goes again, on another path if there is one (RFC 6525 §5.1.1).
    pub(super) fn on_reconfig_timer(&mut self, now: Instant) {
        let Some(timeout) = self.reconfig.as_mut().and_then(|reconfig| reconfig.own.pop_due(now)) else {
            return;
        };
        // A peer that may still send has to be understood: it may have begun anew already.
        if !self.state.sends_data() && !self.state.takes_data() {
            self.reconfig().own.abandon();
            return;
        }
        let mut path = self.paths.best_for_control();
        if timeout.timeouts > 0 {
            let failure = self.paths.on_request_expired(timeout.path);
            self.on_failure(now, failure);
            path = self.paths.alternate(timeout.path);
        }
        // Whether the peer has begun anew is not known, so there is no going on without an answer. Heartbeats
        // that it does answer must not hide that.
        if timeout.timeouts > self.config.association_max_retrans {
            self.give_up_peer(CloseReason::PathsLost);
        }
        if self.state != State::Closed {
            self.send_request(now, path);
        }
        self.spread_path_changes(now);
    }

    /// DATA, unless it comes too early: for a stream that is about to begin anew it cannot be told yet whether it belongs to
    /// the old life or to the new one. Not acknowledged, it comes again.
    #[inline]
    pub(super) fn admit_data(
        &mut self,
        index: u64,
        data: InboundData,
        at: Option<&Range<usize>>,
        len: usize,
    ) -> Option<InboundData> {
        if self.reconfig.is_none() || !self.is_before_reset(index, &data) {
            return Some(data);
        }
        self.counters.discards.before_reset += 1;
        let room = self.inbound.window();
        if let Some(reconfig) = &mut self.reconfig
            && reconfig.own.awaits_renumbering()
            && index > self.receiver.cumulative() + 1
        {
            let chunk = SetAsideChunk { data, at: at.cloned(), len };
            reconfig.set_aside.keep(index, chunk, room);
        }
        None
    }

    /// The chunk that was set aside and is the next one now, with its index.
    pub(super) fn take_set_aside(&mut self) -> Option<(u64, SetAsideChunk)> {
        let next = self.receiver.cumulative() + 1;
        let reconfig = self.reconfig.as_mut()?;
        if !reconfig.own.awaits_renumbering() {
            reconfig.set_aside.clear();
        }
        reconfig.set_aside.take(next).map(|chunk| (next, chunk))
    }

    fn is_before_reset(&self, index: u64, data: &InboundData) -> bool {
        let Some(reconfig) = &self.reconfig else { return false };
        // Sent after what the reset is to wait for (RFC 6525 §5.2.2 E2).
        let deferred = reconfig.peer.deferred.as_ref();
        if deferred.is_some_and(|deferred| index > deferred.last && deferred.streams.contains(data.stream)) {
            return true;
        }
        // The peer may have numbered everything anew and its answer be lost. In TSN order, what is still old
        // continues its stream; what is new does not, or its stream is new itself.
        reconfig.own.awaits_renumbering()
            && (index != self.receiver.cumulative() + 1 || !self.inbound.is_next(data))
    }

    fn reconfig(&mut self) -> &mut Reconfig {
        let serials = self.serials;
        self.reconfig.get_or_insert_with(|| Box::new(Reconfig::new(serials.own, serials.peer)))
    }

    /// Whether TSNs ever began anew: what speaks of those before can name any number (RFC 6525 §5.2.4).
    pub(super) fn has_renumbered(&self) -> bool {
        self.reconfig.as_deref().is_some_and(|reconfig| reconfig.own.has_renumbered())
    }

    /// Begins an undertaking; messages for streams that it numbers anew wait from now on.
    fn undertake(&mut self, wanted: Vec<Reconfiguration>, origin: Origin) {
        let held = wanted.iter().find_map(|wanted| match wanted {
            Reconfiguration::ResetOutbound(streams) => Some(streams.clone()),
            Reconfiguration::ResetAssociation => Some(Streams::All),
            _ => None,
        });
        if let Some(streams) = held {
            self.outbound.hold(streams);
        }
        self.reconfig().own.begin(wanted, origin);
    }

    /// Sends the own request, or sends it again.
    fn send_request(&mut self, now: Instant, path: PathId) {
        let rto = self.paths.get(path).rto();
        let Some(reconfig) = &mut self.reconfig else { return };
        reconfig.own.on_sent(now, path, rto, self.config.rto_max);
        if let Some(body) = reconfig.own.body() {
            self.control.push(path, Control::Reconfig(body.to_vec()));
        }
    }

    fn on_response(&mut self, now: Instant, response: Response) {
        let Response { sequence, result: code, next_tsns } = response;
        let rto = self.paths.get(self.paths.best_for_control()).rto();
        let own = &mut self.reconfig().own;
        // "Performed" without the numbers to go on with is no answer.
        let complete = next_tsns.is_some() || code != result::PERFORMED || !own.is_renumbering(sequence);
        match complete.then(|| own.on_response(now, rto, sequence, code)) {
            Some(Ok(Some(answered))) => self.on_answered(now, answered, response),
            Some(Ok(None)) => {}
            Some(Err(_)) | None => self.counters.discards.stray_reconfiguration += 1,
        }
    }

    /// Does what was agreed.
    fn on_answered(&mut self, now: Instant, answered: Answered, response: Response) {
        let performed = answered.outcome == ReconfigurationOutcome::Performed;
        match &answered.request {
            Reconfiguration::ResetOutbound(streams) => {
                if performed {
                    self.outbound.reset(streams);
                    self.tell(Event::OutboundReset(streams.clone()));
                }
                self.outbound.resume();
                if let Origin::Peer(sequence) = answered.origin {
                    self.reconfig().peer.give(Response::new(sequence, response.result));
                }
            }
            Reconfiguration::ResetAssociation => {
                if performed && let Some((theirs, ours)) = response.next_tsns {
                    self.renumber(now, theirs, ours);
                }
                self.outbound.resume();
            }
            Reconfiguration::AddOutbound(count) if performed => {
                self.outbound.add_streams(*count);
                self.tell_streams();
            }
            _ => {}
        }
        if answered.origin == Origin::Application {
            let Answered { request, outcome, .. } = answered;
            self.tell(Event::Reconfigured { request, outcome });
        }
    }

    fn tell_streams(&mut self) {
        let (outbound_streams, inbound_streams) = self.streams();
        self.tell(Event::StreamsAdded { outbound_streams, inbound_streams });
    }

    /// Lets streams of the peer begin anew.
    fn reset_inbound(&mut self, streams: Streams) {
        self.forget_inbound_order(&streams, self.receiver.highest() + 1);
        self.tell(Event::InboundReset(streams));
    }

    fn forget_inbound_order(&mut self, streams: &Streams, epoch: u64) {
        self.deliverable.clear();
        self.inbound.reset(streams, epoch, &mut self.deliverable);
        for range in self.deliverable.drain(..) {
            self.receiver.mark_deliverable(range);
        }
    }

    /// The peer begins anew with index `epoch` on all streams.
    fn forget_all_received(&mut self, epoch: u64) {
        self.inbound.forget_unfinished(epoch);
        self.forget_inbound_order(&Streams::All, epoch);
        self.forget_echoes();
    }

    /// Queues answers, and a SACK to go with them.
    fn respond(&mut self, path: PathId, answers: &[Response]) {
        if !answers.is_empty() {
            let params: Vec<_> = answers.iter().map(Response::param).collect();
            self.control.push(path, Control::Reconfig(encode(&params)));
            self.receiver.demand();
        }
    }

    /// The answer to a request that was "in progress" so far. The peer does not have to ask again for it.
    fn respond_late(&mut self, response: Response) {
        self.reconfig().peer.give(response);
        self.respond(self.paths.best_for_control(), &[response]);
    }
}
