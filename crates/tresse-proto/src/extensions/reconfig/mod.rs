//! Stream reconfiguration (RFC 6525): requests of both sides, their results, and the answers.
//!
//! This module owns the sequence numbers of requests, the request in flight with its timer, the last answers, and DATA that may
//! belong to the old or to the new numbering. It is independent of stream queues, received TSNs and paths: the association
//! provides their state ([`View`]) and carries out the actions ([`Action`]).

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

/// Maximum number of streams in one request: with both directions reset at once, it fits the smallest packet, which has 576 bytes
/// over IPv6 in UDP.
const MOST_NAMED: usize = 120;

/// Maximum number of streams in an answer to the peer's request, which is alone in the smallest packet.
const MOST_ANSWERED: usize = 240;

/// Stream reconfiguration of one association: requests of both sides.
#[derive(Debug)]
pub(crate) struct Reconfig {
    /// Requests of this side.
    own: Requests,
    /// Answers to the peer's requests.
    peer: PeerRequests,
    /// Chunks that arrived while the peer may be resetting the association.
    set_aside: SetAside,
}

impl Reconfig {
    /// Creates the state without requests. Each side numbers its requests from its initial TSN on (RFC 6525 §4.1).
    pub(crate) fn new(own: u32, peer: u32) -> Self {
        Reconfig { own: Requests::new(own), peer: PeerRequests::new(peer), set_aside: SetAside::default() }
    }

    /// Returns the time at which the request in flight is to be retransmitted.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.own.deadline()
    }

    /// Returns whether this side has an outstanding request, or is resetting the association for the peer.
    pub(crate) fn is_under_way(&self) -> bool {
        self.own.is_busy() || self.peer.renumbering.is_some()
    }

    /// Returns whether TSNs were ever reset: a chunk from before can then contain any TSN (RFC 6525 §5.2.4).
    pub(crate) fn has_renumbered(&self) -> bool {
        self.own.has_renumbered()
    }

    /// Processes one parameter of a RE-CONFIG chunk; its response is appended to `answers`.
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

    /// Performs all steps that have become possible after a SACK, DATA or a response.
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

    /// Records that all sendable data was sent: data queued before a reset may be among it.
    pub(crate) fn on_silence(&mut self, progress: Progress) {
        self.own.may_be_sent(progress);
        if let Some((_, silence)) = &mut self.peer.renumbering {
            silence.is_reached(progress);
        }
    }

    /// Returns the timeout of the request in flight, if its timer has expired.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<Timeout> {
        self.own.pop_due(now)
    }

    /// Cancels the outstanding request, because the association ends.
    pub(crate) fn abandon(&mut self) {
        self.own.abandon();
    }

    /// Sends the request of this side on `path`, for the first time or again; `rto` is the path's RTO, `longest` its maximum.
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

    /// Returns DATA that may be accepted now. Of DATA for a stream that may be reset, it is not known yet whether it belongs to
    /// the old or to the new numbering: it is not acknowledged. While a reset of the association is outstanding, it is set aside
    /// if it fits into `room` bytes. `arrived` is the index up to which everything has arrived; `is_next` returns whether DATA
    /// continues its stream.
    pub(crate) fn admit(
        &mut self,
        index: u64,
        chunk: SetAsideChunk,
        arrived: u64,
        room: usize,
        is_next: impl FnOnce(&InboundData) -> bool,
    ) -> Option<InboundData> {
        let stream = chunk.data.stream;
        // Sent after the data that the reset waits for (RFC 6525 §5.2.2 E2).
        let deferred = self.peer.deferred.as_ref();
        let deferred =
            deferred.is_some_and(|deferred| index > deferred.last && deferred.streams.contains(stream));
        // The peer may have reset the association, and its response be lost. In TSN order, data of the old numbering continues
        // its stream. Data of the new numbering does not, unless its stream is new as well.
        let awaits = self.own.awaits_renumbering();
        if !deferred && !(awaits && (index != arrived + 1 || !is_next(&chunk.data))) {
            return Some(chunk.data);
        }
        if awaits && index > arrived + 1 {
            self.set_aside.keep(index, chunk, room);
        }
        None
    }

    /// Returns the chunk that was set aside and has the index `next`, which is the next one to be received.
    pub(crate) fn take_set_aside(&mut self, next: u64) -> Option<SetAsideChunk> {
        if !self.own.awaits_renumbering() {
            self.set_aside.clear();
        }
        self.set_aside.take(next)
    }

    /// Records that the peer abandoned a message (PR-SCTP), so that no data up to the index `up_to` will arrive.
    pub(crate) fn note_skipped(&mut self, up_to: u64, skipped: Skipped) {
        self.own.note_skipped(up_to, skipped);
    }

    /// Returns the abandoned messages that belong to the new numbering, whose first index is `epoch`. Until the peer's response
    /// arrived, their numbers were taken for those of the old numbering.
    pub(crate) fn take_skipped(&mut self, epoch: u64) -> Vec<Skipped> {
        self.own.take_skipped(epoch).collect()
    }

    /// Begins a request of this side; messages for streams that it resets are held from now on.
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
        // "Performed" must contain the next TSNs, or it is no valid response.
        let complete = next_tsns.is_some() || code != result::PERFORMED || !self.own.is_renumbering(sequence);
        match complete.then(|| self.own.on_response(view.now, view.rto, sequence, code)) {
            Some(Ok(Some(answered))) => self.on_answered(view.now, answered, response, actions),
            Some(Ok(None)) => {}
            Some(Err(_)) | None => actions.push(Action::DiscardStray),
        }
    }

    /// Carries out the result of a request.
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

    /// Returns the final response to a request that was "in progress" so far. It is sent without another request of the peer.
    fn respond_late(&mut self, path: PathId, response: Response) -> Action {
        self.peer.give(response);
        respond(path, &[response])
    }
}

/// Returns the action that sends responses to the peer's requests on `path`.
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

/// Silence of streams: all data that was queued before was sent, and all data that was sent was acknowledged.
///
/// RFC 6525 §5.1.2 only requires that no SSN is assigned meanwhile. With no data outstanding either, no retransmission and no
/// FORWARD TSN can carry an SSN from before the reset to a peer that has reset the stream.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
struct Silence {
    /// The highest index that was assigned when the last queued message had been sent.
    sent_up_to: Option<u64>,
}

impl Silence {
    /// Returns whether silence is reached.
    fn is_reached(&mut self, Progress { drained, highest, cumulative }: Progress) -> bool {
        drained && cumulative >= *self.sent_up_to.get_or_insert(highest)
    }
}

/// Returns the encoded parameters of a RE-CONFIG chunk.
fn encode(params: &[Param<'_>]) -> Vec<u8> {
    let mut body = Vec::new();
    // They fit: one or two parameters with bounded lists.
    Params::Values(params).write(&mut body).ok();
    body
}
