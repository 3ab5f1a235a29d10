//! Requests of the peer: the next sequence number, the result of a request (RFC 6525 §5.2), the last answers, and pending
//! requests.

use tresse_wire::{Param, Tsn};

use super::{Action, MOST_ANSWERED, Origin, Progress, Reconfig, Request, Silence, View, result};
use crate::interface::event::Event;
use crate::interface::reconfiguration::{Reconfiguration, Streams};

/// Distance between the TSNs before and after a reset: half of all TSNs (RFC 6525 §5.2.4).
const HALF_OF_ALL: u32 = 1 << 31;

/// A response to a request (RFC 6525 §4.4).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Response {
    /// The sequence number of the request.
    pub(crate) sequence: u32,
    /// One of the constants in [`result`].
    pub(crate) result: u32,
    /// The next TSNs of the responder and of the requester, after a reset of the association.
    pub(crate) next_tsns: Option<(Tsn, Tsn)>,
}

impl Response {
    pub(crate) fn new(sequence: u32, result: u32) -> Self {
        Response { sequence, result, next_tsns: None }
    }

    pub(crate) fn param(&self) -> Param<'static> {
        Param::ReconfigResponse { response: self.sequence, result: self.result, next_tsns: self.next_tsns }
    }
}

/// Status of a peer's request by its sequence number.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum SequenceStatus {
    /// The request is new, or its last response was "in progress".
    Open,
    /// The request was answered before, with this response.
    Answered(Response),
    /// The sequence number is neither the next one nor one of the last ones.
    Wrong,
}

/// A reset of streams that the peer sends on. It is performed when all data sent before has arrived (RFC 6525 §5.2.2 E2).
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct DeferredReset {
    pub(crate) sequence: u32,
    /// The index up to which all data must have arrived.
    pub(crate) last: u64,
    pub(crate) streams: Streams,
}

/// The peer's requests.
#[derive(Debug)]
pub(crate) struct PeerRequests {
    /// The sequence number of the peer's next request.
    expected: u32,
    /// The last responses: a chunk has at most two requests, and the next one is sent only after both were answered.
    given: [Option<Response>; 2],
    pub(crate) deferred: Option<DeferredReset>,
    /// A request to reset the association that waits for silence.
    pub(crate) renumbering: Option<(u32, Silence)>,
}

impl PeerRequests {
    pub(super) fn new(expected: u32) -> Self {
        PeerRequests { expected, given: [None; 2], deferred: None, renumbering: None }
    }

    /// Returns the sequence number of the peer's last request that has arrived.
    pub(crate) fn last_sequence(&self) -> u32 {
        self.expected.wrapping_sub(1)
    }

    /// Returns the status of the request `sequence`.
    pub(crate) fn status(&self, sequence: u32) -> SequenceStatus {
        let given = self.given.iter().flatten().find(|given| given.sequence == sequence);
        match given {
            Some(given) if given.result == result::IN_PROGRESS => SequenceStatus::Open,
            Some(given) => SequenceStatus::Answered(*given),
            None if sequence == self.expected => SequenceStatus::Open,
            None => SequenceStatus::Wrong,
        }
    }

    /// Records a response, which may replace an earlier "in progress".
    pub(crate) fn give(&mut self, response: Response) {
        let known = self.given.iter_mut().flatten().find(|given| given.sequence == response.sequence);
        if let Some(known) = known {
            *known = response;
        } else if response.sequence == self.expected {
            self.expected = self.expected.wrapping_add(1);
            self.given = [Some(response), self.given[0]];
        }
    }
}

impl Reconfig {
    /// Processes a request. Returns the response; `None` if a request of this side takes its place.
    pub(super) fn on_request(
        &mut self,
        view: &View<'_>,
        sequence: u32,
        request: Request,
        actions: &mut Vec<Action>,
    ) -> Option<Response> {
        match self.peer.status(sequence) {
            SequenceStatus::Answered(response) => return Some(response),
            SequenceStatus::Wrong => return Some(Response::new(sequence, result::BAD_SEQUENCE)),
            SequenceStatus::Open => {}
        }
        let response = match request {
            Request::ResetOutgoing { response, last_tsn, streams } => {
                let answers = (sequence, response);
                Response::new(sequence, self.grant_outgoing_reset(view, answers, last_tsn, streams, actions))
            }
            Request::ResetIncoming { streams } => {
                Response::new(sequence, self.grant_incoming_reset(view, sequence, streams, actions))
            }
            Request::ResetAssociation => self.grant_renumbering(view, sequence, actions),
            Request::AddOutgoing(count) => Response::new(sequence, self.grant_inbound(view, count, actions)),
            Request::AddIncoming(count) => {
                Response::new(sequence, self.grant_outbound(view, sequence, count, actions))
            }
        };
        self.peer.give(response);
        let follows = response.result == result::IN_PROGRESS && self.request_follows(view, sequence, actions);
        (!follows).then_some(response)
    }

    /// Returns whether the request by which this side carries out `sequence` is sent now, for the first time or again.
    fn request_follows(&mut self, view: &View<'_>, sequence: u32, actions: &mut Vec<Action>) -> bool {
        if !self.own.carries_out(sequence) {
            return false;
        }
        if self.own.body().is_some() {
            actions.extend(self.send(view.now, view.path, view.rto, view.config.rto_max));
            return true;
        }
        let drained = match actions.last() {
            Some(Action::Hold(streams)) => (view.has_sent_all_of)(streams),
            _ => view.sending.progress.drained,
        };
        self.own.may_be_sent(Progress { drained, ..view.sending.progress })
    }

    /// Decides on a reset of streams that the peer sends on, once all data sent before has arrived (§5.2.2). `answers` has the
    /// sequence numbers of the request, and of the request of this side that it answers.
    fn grant_outgoing_reset(
        &mut self,
        view: &View<'_>,
        (sequence, answers): (u32, u32),
        last_tsn: Tsn,
        streams: Streams,
        actions: &mut Vec<Action>,
    ) -> u32 {
        let answered = self.own.on_peer_reset(answers);
        let solicited = answered.is_some();
        if let Some(answered) = answered {
            self.on_answered(view.now, answered, Response::new(sequence, result::PERFORMED), actions);
        }
        let before = self.peer.deferred.take_if(|deferred| deferred.sequence == sequence);
        if !solicited && before.is_none() && !view.config.accept_stream_resets {
            return result::DENIED;
        }
        if streams.highest_named().is_some_and(|highest| highest.0 >= view.receiving.streams) {
            return result::WRONG_STREAM;
        }
        match (view.index_near)(last_tsn) {
            Some(last) if last > view.receiving.cumulative => {
                self.peer.deferred = Some(DeferredReset { sequence, last, streams });
                result::IN_PROGRESS
            }
            // Beyond the receive window: the repeated request may find it within.
            None if last_tsn.is_after(view.receiving.cumulative_tsn) => result::IN_PROGRESS,
            _ => {
                actions.push(Action::ResetInbound(streams));
                result::PERFORMED
            }
        }
    }

    /// Decides on a reset of streams that this side sends on. A request of this side carries it out and is the answer (§5.2.3).
    fn grant_incoming_reset(
        &mut self,
        view: &View<'_>,
        sequence: u32,
        streams: Streams,
        actions: &mut Vec<Action>,
    ) -> u32 {
        if self.own.carries_out(sequence) {
            return result::IN_PROGRESS;
        }
        if !view.config.accept_stream_resets || !view.sending.is_open {
            return result::DENIED;
        }
        if streams.highest_named().is_some_and(|highest| highest.0 >= view.sending.streams) {
            return result::WRONG_STREAM;
        }
        if let Streams::These(named) = &streams {
            if named.len() > MOST_ANSWERED {
                return result::DENIED;
            }
            if named.iter().all(|&stream| (view.is_at_start)(stream)) {
                return result::NOTHING_TO_DO;
            }
        }
        let covered = |wanted: &Reconfiguration| matches!(wanted, Reconfiguration::ResetOutbound(own) if own.contain(&streams));
        if self.own.is_open(covered) {
            return result::NOTHING_TO_DO;
        }
        if let Some(result) = self.reason_to_wait() {
            return result;
        }
        self.begin_request(vec![Reconfiguration::ResetOutbound(streams)], Origin::Peer(sequence), actions);
        result::IN_PROGRESS
    }

    /// Decides on a reset of the association: all streams of both directions, and all TSNs (§5.2.4). The peer waits until queued
    /// and outstanding data has been delivered.
    fn grant_renumbering(&mut self, view: &View<'_>, sequence: u32, actions: &mut Vec<Action>) -> Response {
        let given = |result| Response::new(sequence, result);
        if self.peer.renumbering.is_some_and(|(of, _)| of == sequence) {
            return given(result::IN_PROGRESS);
        }
        if !view.config.accept_association_resets || !view.sending.is_open {
            return given(result::DENIED);
        }
        if let Some(result) = self.reason_to_wait() {
            return given(result);
        }
        actions.push(Action::Hold(Streams::All));
        let mut silence = Silence::default();
        let drained = (view.has_sent_all_of)(&Streams::All);
        if silence.is_reached(Progress { drained, ..view.sending.progress }) {
            return self.renumber_for_peer(view, sequence, actions);
        }
        self.peer.renumbering = Some((sequence, silence));
        given(result::IN_PROGRESS)
    }

    /// Decides on more streams for the peer to send on (§5.2.5).
    fn grant_inbound(&mut self, view: &View<'_>, count: u16, actions: &mut Vec<Action>) -> u32 {
        let (solicited, answered) = self.own.on_peer_added(count);
        if let Some(answered) = answered {
            self.on_answered(view.now, answered, Response::new(0, result::PERFORMED), actions);
        }
        if !solicited && !view.config.accept_added_streams {
            return result::DENIED;
        }
        if count > view.config.inbound_streams.saturating_sub(view.receiving.streams) {
            return result::DENIED;
        }
        if count > 0 {
            actions.push(Action::AddInbound(count));
        }
        result::PERFORMED
    }

    /// Decides on more streams for this side to send on. This side agrees, and requests them from the peer (§5.2.6).
    fn grant_outbound(
        &mut self,
        view: &View<'_>,
        sequence: u32,
        count: u16,
        actions: &mut Vec<Action>,
    ) -> u32 {
        let possible = u16::MAX - view.sending.streams;
        if !view.config.accept_added_streams || !view.sending.is_open || count > possible {
            return result::DENIED;
        }
        if count == 0 {
            return result::NOTHING_TO_DO;
        }
        if let Some(result) = self.reason_to_wait() {
            return result;
        }
        self.begin_request(vec![Reconfiguration::AddOutbound(count)], Origin::Peer(sequence), actions);
        result::PERFORMED
    }

    /// Returns the result if nothing can be begun for the peer now. The peer may wait for a request of this side that it can
    /// answer at once ("in progress"). Two requests that wait for each other would do so forever, so the peer's is refused then
    /// ("busy").
    fn reason_to_wait(&self) -> Option<u32> {
        if self.own.conflicts() || self.peer.renumbering.is_some() {
            Some(result::BUSY)
        } else if self.own.is_busy() {
            Some(result::IN_PROGRESS)
        } else {
            None
        }
    }

    /// Resets the association for the peer. Returns the response, with the next TSNs of both sides.
    pub(super) fn renumber_for_peer(
        &mut self,
        view: &View<'_>,
        sequence: u32,
        actions: &mut Vec<Action>,
    ) -> Response {
        let ours = view.sending.last_tsn.next();
        let theirs = view.receiving.cumulative_tsn.next().advance(HALF_OF_ALL);
        self.own.on_renumbered(view.now);
        actions.push(Action::RenumberForPeer { theirs });
        actions.push(Action::Tell(Event::AssociationReset { ours, theirs }));
        Response { sequence, result: result::PERFORMED, next_tsns: Some((ours, theirs)) }
    }
}
