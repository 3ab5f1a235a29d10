//! Stream reconfiguration (RFC 6525): requests of both sides, their results, and the answers.
//!
//! Owns the numbers of requests, the request in flight with its timer, the last answers, and DATA that may belong to the old
//! or to the new numbering. Independent of queues of streams, TSNs that have arrived and paths: the association provides
//! their state ([`View`]) and carries out the actions ([`Action`]).

mod ask;
mod grant;
mod request;
mod requests;
mod set_aside;
#[cfg(test)]
mod tests;
mod view;

use std::time::Duration;

use tresse_wire::{Param, Params};

pub(crate) use ask::Ask;
pub(crate) use grant::Response;
pub(crate) use request::{Requested, read};
pub(crate) use set_aside::Chunk as SetAsideChunk;
pub(crate) use view::{Action, Progress, ReceiveState, SendState, View};

use grant::{DeferredReset, PeerRequests};
use request::Request;
use requests::{ConcludedRequest, Origin, Requests, Timeout};
use set_aside::SetAside;

use crate::inbound::{InboundData, Skipped};
use crate::interface::event::Event;
use crate::interface::reconfiguration::{Reconfiguration, ReconfigurationOutcome, Streams};
use tresse_policy::Instant;
use tresse_policy::PathId;

/// Most streams that one request may name: with both directions reset at once, such a request still fits
/// the smallest packet, that of 576 bytes over IPv6 in UDP.
const MOST_NAMED: usize = 120;

/// Most streams that an answer to the peer's request may have to name: alone in the smallest packet.
const MOST_ANSWERED: usize = 240;

/// Both halves of stream reconfiguration in one association.
#[derive(Debug)]
pub(crate) struct Reconfig {
    /// Requests of this side.
    own: Requests,
    /// Answers to the peer's requests.
    peer: PeerRequests,
    /// Chunks that came while the peer may be numbering everything anew.
    set_aside: SetAside,
}

impl Reconfig {
    /// Nothing was asked for yet. Requests are numbered from the initial TSN of their side on (RFC 6525 §4.1).
    pub(crate) fn new(own: u32, peer: u32) -> Self {
        Reconfig { own: Requests::new(own), peer: PeerRequests::new(peer), set_aside: SetAside::default() }
    }

    /// Time at which the request in flight is to be sent again.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.own.deadline()
    }

    /// Returns whether this side has an outstanding request, or is resetting its numbers for the peer.
    pub(crate) fn is_under_way(&self) -> bool {
        self.own.is_busy() || self.peer.renumbering.is_some()
    }

    /// Returns whether TSNs ever began anew: what speaks of those before can name any number (RFC 6525 §5.2.4).
    pub(crate) fn has_renumbered(&self) -> bool {
        self.own.has_renumbered()
    }

    /// One parameter of a RE-CONFIG arrived; what it is to be answered with joins `answers`.
    pub(crate) fn on_param(
        &mut self,
        view: &View<'_>,
        param: Requested,
        answers: &mut Vec<Response>,
    ) -> Vec<Action> {
        let mut actions = Vec::new();
        match param {
            Requested::Response(response) => self.on_response(view, response, &mut actions),
            Requested::Request { sequence, request } => {
                answers.extend(self.on_request(view, sequence, request, &mut actions));
            }
        }
        actions
    }

    /// Takes every step that has become possible: after a SACK, after DATA, after an answer.
    pub(crate) fn advance(&mut self, view: &View<'_>) -> Vec<Action> {
        let mut actions = Vec::new();
        let arrived = view.receiving.cumulative;
        if let Some(DeferredReset { sequence, streams, .. }) =
            self.peer.deferred.take_if(|deferred| deferred.last <= arrived)
        {
            actions.push(Action::ResetInbound(streams));
            actions.push(self.respond_late(view.path, Response::new(sequence, result::PERFORMED)));
        }
        let progress = view.sending.progress;
        if let Some((sequence, _)) =
            self.peer.renumbering.take_if(|(_, silence)| silence.is_reached(progress))
        {
            let response = self.renumber_for_peer(view, sequence, &mut actions);
            actions.push(self.respond_late(view.path, response));
            return actions;
        }
        let may_be_sent = self.own.may_be_sent(progress);
        if may_be_sent {
            self.own.number(view.sending.last_tsn, progress.highest, self.peer.last_sequence());
        }
        if may_be_sent || self.own.should_remind(progress.cumulative) {
            actions.extend(self.send(view.now, view.path, view.rto, view.config.rto_max));
        }
        actions
    }

    /// Everything that could be sent was: perhaps the last of what was queued before a reset.
    pub(crate) fn on_silence(&mut self, progress: Progress) {
        self.own.may_be_sent(progress);
        if let Some((_, silence)) = &mut self.peer.renumbering {
            silence.is_reached(progress);
        }
    }

    /// The timer of the request in flight, if it has expired.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<Timeout> {
        self.own.pop_due(now)
    }

    /// Cancels the outstanding request: the association ends.
    pub(crate) fn abandon(&mut self) {
        self.own.abandon();
    }

    /// The own request leaves on `path`, whose timeout is `rto`, for the first time or again; `longest` is the longest
    /// timeout.
    pub(crate) fn send(
        &mut self,
        now: Instant,
        path: PathId,
        rto: Duration,
        longest: Duration,
    ) -> Option<Action> {
        self.own.on_sent(now, path, rto, longest);
        self.own.body().map(|body| Action::Send { path, body: body.to_vec() })
    }

    /// DATA, unless it comes too early: for a stream that is about to begin anew it cannot be told yet whether it belongs
    /// to the old life or to the new one. Not acknowledged, it comes again, unless it is within `room` and set aside.
    /// `arrived` is the index up to which everything has arrived; `is_next` says whether DATA continues its stream.
    pub(crate) fn admit(
        &mut self,
        index: u64,
        chunk: SetAsideChunk,
        arrived: u64,
        room: usize,
        is_next: impl FnOnce(&InboundData) -> bool,
    ) -> Option<InboundData> {
        let stream = chunk.data.stream;
        // Sent after what the reset is to wait for (RFC 6525 §5.2.2 E2).
        let deferred = self.peer.deferred.as_ref();
        let deferred =
            deferred.is_some_and(|deferred| index > deferred.last && deferred.streams.contains(stream));
        // The peer may have numbered everything anew and its answer be lost. In TSN order, what is still old
        // continues its stream; what is new does not, or its stream is new itself.
        let awaits = self.own.awaits_renumbering();
        if !deferred && !(awaits && (index != arrived + 1 || !is_next(&chunk.data))) {
            return Some(chunk.data);
        }
        if awaits && index > arrived + 1 {
            self.set_aside.keep(index, chunk, room);
        }
        None
    }

    /// The chunk that was set aside and has the index `next`, which is the next to arrive.
    pub(crate) fn take_set_aside(&mut self, next: u64) -> Option<SetAsideChunk> {
        if !self.own.awaits_renumbering() {
            self.set_aside.clear();
        }
        self.set_aside.take(next)
    }

    /// The peer gave up a message, and nothing up to the index `up_to` will come any more.
    pub(crate) fn note_skipped(&mut self, up_to: u64, skipped: Skipped) {
        self.own.note_skipped(up_to, skipped);
    }

    /// Of what the peer has given up, the messages that it had numbered anew, with index `epoch` first: until its answer
    /// came their numbers seemed to be older ones.
    pub(crate) fn take_skipped(&mut self, epoch: u64) -> Vec<Skipped> {
        self.own.take_skipped(epoch).collect()
    }

    /// Begins an own request; messages for streams that it numbers anew wait from now on.
    fn begin_request(&mut self, wanted: Vec<Reconfiguration>, origin: Origin, actions: &mut Vec<Action>) {
        let held = wanted.iter().find_map(|wanted| match wanted {
            Reconfiguration::ResetOutbound(streams) => Some(streams.clone()),
            Reconfiguration::ResetAssociation => Some(Streams::All),
            _ => None,
        });
        self.own.begin(wanted, origin);
        actions.extend(held.map(Action::Hold));
    }

    fn on_response(&mut self, view: &View<'_>, response: Response, actions: &mut Vec<Action>) {
        let Response { sequence, result: code, next_tsns } = response;
        // "Performed" without the numbers to go on with is no answer.
        let complete = next_tsns.is_some() || code != result::PERFORMED || !self.own.is_renumbering(sequence);
        match complete.then(|| self.own.on_response(view.now, view.rto, sequence, code)) {
            Some(Ok(Some(answered))) => self.on_answered(view.now, answered, response, actions),
            Some(Ok(None)) => {}
            Some(Err(_)) | None => actions.push(Action::DiscardStray),
        }
    }

    /// Does what was agreed.
    fn on_answered(
        &mut self,
        now: Instant,
        answered: ConcludedRequest,
        response: Response,
        actions: &mut Vec<Action>,
    ) {
        let ConcludedRequest { request, outcome, origin } = answered;
        let performed = outcome == ReconfigurationOutcome::Performed;
        match &request {
            Reconfiguration::ResetOutbound(streams) => {
                if performed {
                    actions.push(Action::ResetOutbound(streams.clone()));
                    actions.push(Action::Tell(Event::OutboundReset(streams.clone())));
                }
                actions.push(Action::Resume);
                if let Origin::Peer(sequence) = origin {
                    self.peer.give(Response::new(sequence, response.result));
                }
            }
            Reconfiguration::ResetAssociation => {
                if performed && let Some((theirs, ours)) = response.next_tsns {
                    self.own.on_renumbered(now);
                    actions.push(Action::Renumber { theirs, ours });
                    actions.push(Action::Tell(Event::AssociationReset { ours, theirs }));
                }
                actions.push(Action::Resume);
            }
            Reconfiguration::AddOutbound(count) if performed => actions.push(Action::AddOutbound(*count)),
            _ => {}
        }
        if origin == Origin::Application {
            actions.push(Action::Tell(Event::Reconfigured { request, outcome }));
        }
    }

    /// The answer to a request that was "in progress" so far. The peer does not have to ask again for it.
    fn respond_late(&mut self, path: PathId, response: Response) -> Action {
        self.peer.give(response);
        respond(path, &[response])
    }
}

/// Control chunk that answers the peer's requests over `path`.
pub(crate) fn respond(path: PathId, answers: &[Response]) -> Action {
    let params: Vec<_> = answers.iter().map(Response::param).collect();
    Action::Respond { path, body: encode(&params) }
}

/// Result codes (RFC 6525 §4.4).
mod result {
    pub(crate) const NOTHING_TO_DO: u32 = 0;
    pub(crate) const PERFORMED: u32 = 1;
    pub(crate) const DENIED: u32 = 2;
    pub(crate) const WRONG_STREAM: u32 = 3;
    pub(crate) const BUSY: u32 = 4;
    pub(crate) const BAD_SEQUENCE: u32 = 5;
    pub(crate) const IN_PROGRESS: u32 = 6;
}

/// Silence of streams: everything queued before was sent, and everything sent was acknowledged.
///
/// RFC 6525 §5.1.2 only asks that no SSN is given out meanwhile. With nothing outstanding either, no
/// retransmission and no FORWARD-TSN can carry an SSN from before the reset to a peer that is past it.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
struct Silence {
    /// The highest index that was given out when the last queued message had been sent.
    sent_up_to: Option<u64>,
}

impl Silence {
    /// Returns whether it is reached.
    fn is_reached(&mut self, Progress { drained, highest, cumulative }: Progress) -> bool {
        drained && cumulative >= *self.sent_up_to.get_or_insert(highest)
    }
}

/// The parameters of a RE-CONFIG chunk, encoded.
fn encode(params: &[Param<'_>]) -> Vec<u8> {
    let mut body = Vec::new();
    // One or two parameters whose lists were bounded: never too long for a chunk.
    Params::Values(params).write(&mut body).ok();
    body
}
