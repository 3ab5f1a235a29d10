//! What the peer asks of streams, and whether it gets it (RFC 6525 §5.2).

use tresse_policy::Instant;
use tresse_wire::Tsn;

use super::super::Association;
use crate::extensions::reconfig::{
    Deferred, MOST_ANSWERED, Origin, Request, Response, Silence, Standing, result,
};
use crate::inbound::Refusal;
use crate::interface::event::Event;
use crate::interface::reconfiguration::{Reconfiguration, Streams};

/// Between the numbers of before and those of after lies half of all TSNs (RFC 6525 §5.2.4).
const HALF_OF_ALL: u32 = 1 << 31;

impl Association {
    /// A request arrived; answers it unless a request of this side will be the answer.
    pub(super) fn on_request(&mut self, now: Instant, sequence: u32, request: Request) -> Option<Response> {
        match self.reconfig().peer.standing(sequence) {
            Standing::Answered(response) => return Some(response),
            Standing::Wrong => return Some(Response::new(sequence, result::BAD_SEQUENCE)),
            Standing::Open => {}
        }
        let response = match request {
            Request::ResetOutgoing { response, last_tsn, streams } => {
                self.grant_outgoing_reset(now, sequence, response, last_tsn, streams)
            }
            Request::ResetIncoming { streams } => self.grant_incoming_reset(sequence, streams),
            Request::ResetAssociation => self.grant_renumbering(now, sequence),
            Request::AddOutgoing(count) => Response::new(sequence, self.grant_inbound(now, count)),
            Request::AddIncoming(count) => Response::new(sequence, self.grant_outbound(sequence, count)),
        };
        self.reconfig().peer.give(response);
        let follows = response.result == result::IN_PROGRESS && self.request_follows(now, sequence);
        (!follows).then_some(response)
    }

    /// Whether the request by which this side carries out `sequence` leaves now, for the first time or again.
    fn request_follows(&mut self, now: Instant, sequence: u32) -> bool {
        let Some(reconfig) = self.reconfig.as_mut().filter(|reconfig| reconfig.own.carries_out(sequence))
        else {
            return false;
        };
        if reconfig.own.body().is_some() {
            self.send_request(now, self.paths.best_for_control());
            return true;
        }
        let (cumulative, highest) = self.transmission.indices();
        reconfig.own.may_be_sent(self.outbound.is_drained(), highest, cumulative)
    }

    /// Streams that the peer sends on are to begin anew, once all that was sent before has arrived (§5.2.2).
    fn grant_outgoing_reset(
        &mut self,
        now: Instant,
        sequence: u32,
        answers: u32,
        last_tsn: Tsn,
        streams: Streams,
    ) -> Response {
        let given = |result| Response::new(sequence, result);
        let answered = self.reconfig().own.on_peer_reset(answers);
        let solicited = answered.is_some();
        if let Some(answered) = answered {
            self.on_answered(now, answered, given(result::PERFORMED));
        }
        let before = self.reconfig().peer.deferred.take_if(|deferred| deferred.sequence == sequence);
        if !solicited && before.is_none() && !self.config.accept_stream_resets {
            return given(result::DENIED);
        }
        if streams.highest_named().is_some_and(|highest| highest.0 >= self.inbound.stream_count()) {
            return given(result::WRONG_STREAM);
        }
        match self.receiver.index_near(last_tsn) {
            Some(last) if last > self.receiver.cumulative() => {
                self.reconfig().peer.deferred = Some(Deferred { sequence, last, streams });
                given(result::IN_PROGRESS)
            }
            // Further than the receive window reaches: asked again, it may be nearer.
            None if last_tsn.is_after(self.receiver.cumulative_tsn()) => given(result::IN_PROGRESS),
            _ => {
                self.reset_inbound(streams);
                given(result::PERFORMED)
            }
        }
    }

    /// This side is to let streams begin anew that it sends on: its own request is the answer (§5.2.3).
    fn grant_incoming_reset(&mut self, sequence: u32, streams: Streams) -> Response {
        let given = |result| Response::new(sequence, result);
        if self.reconfig().own.carries_out(sequence) {
            return given(result::IN_PROGRESS);
        }
        if !self.config.accept_stream_resets || !self.state.sends_data() {
            return given(result::DENIED);
        }
        if streams.highest_named().is_some_and(|highest| highest.0 >= self.outbound.stream_count()) {
            return given(result::WRONG_STREAM);
        }
        if let Streams::These(named) = &streams {
            if named.len() > MOST_ANSWERED {
                return given(result::DENIED);
            }
            if named.iter().all(|&stream| self.outbound.is_at_start(stream)) {
                return given(result::NOTHING_TO_DO);
            }
        }
        let covered = |wanted: &Reconfiguration| matches!(wanted, Reconfiguration::ResetOutbound(own) if own.contain(&streams));
        if self.reconfig().own.is_open(covered) {
            return given(result::NOTHING_TO_DO);
        }
        if let Some(result) = self.reason_to_wait() {
            return given(result);
        }
        self.undertake(vec![Reconfiguration::ResetOutbound(streams)], Origin::Peer(sequence));
        given(result::IN_PROGRESS)
    }

    /// All streams of both directions and all TSNs are to begin anew (§5.2.4). Nothing that is queued or under
    /// way is given up for that: the peer waits.
    fn grant_renumbering(&mut self, now: Instant, sequence: u32) -> Response {
        let given = |result| Response::new(sequence, result);
        if self.reconfig().peer.renumbering.is_some_and(|(of, _)| of == sequence) {
            return given(result::IN_PROGRESS);
        }
        if !self.config.accept_association_resets || !self.state.sends_data() {
            return given(result::DENIED);
        }
        if let Some(result) = self.reason_to_wait() {
            return given(result);
        }
        self.outbound.hold(Streams::All);
        let mut silence = Silence::default();
        let (cumulative, highest) = self.transmission.indices();
        if silence.is_reached(self.outbound.is_drained(), highest, cumulative) {
            return self.renumber_for_peer(now, sequence);
        }
        self.reconfig().peer.renumbering = Some((sequence, silence));
        given(result::IN_PROGRESS)
    }

    /// The peer wants to send on more streams (§5.2.5).
    fn grant_inbound(&mut self, now: Instant, count: u16) -> u32 {
        let (solicited, answered) = self.reconfig().own.on_peer_added(count);
        if let Some(answered) = answered {
            self.on_answered(now, answered, Response::new(0, result::PERFORMED));
        }
        if !solicited && !self.config.accept_added_streams {
            return result::DENIED;
        }
        if count > self.config.inbound_streams.saturating_sub(self.inbound.stream_count()) {
            return result::DENIED;
        }
        if count > 0 {
            self.inbound.add_streams(count);
            self.tell_streams();
        }
        result::PERFORMED
    }

    /// This side is to send on more streams: it agrees, and asks the peer to take them (§5.2.6).
    fn grant_outbound(&mut self, sequence: u32, count: u16) -> u32 {
        let possible = u16::MAX - self.outbound.stream_count();
        if !self.config.accept_added_streams || !self.state.sends_data() || count > possible {
            return result::DENIED;
        }
        if count == 0 {
            return result::NOTHING_TO_DO;
        }
        if let Some(result) = self.reason_to_wait() {
            return result;
        }
        self.undertake(vec![Reconfiguration::AddOutbound(count)], Origin::Peer(sequence));
        result::PERFORMED
    }

    /// Why nothing can be undertaken for the peer now. An own request that the peer answers at once is worth
    /// waiting for; two that wait for each other would do so for ever.
    fn reason_to_wait(&mut self) -> Option<u32> {
        let reconfig = self.reconfig();
        if reconfig.own.conflicts() || reconfig.peer.renumbering.is_some() {
            Some(result::BUSY)
        } else if reconfig.own.is_busy() {
            Some(result::IN_PROGRESS)
        } else {
            None
        }
    }

    /// Begins anew, as the peer wants, and says with which TSNs both sides go on.
    pub(super) fn renumber_for_peer(&mut self, now: Instant, sequence: u32) -> Response {
        let ours = self.transmission.last_tsn().next();
        let theirs = self.receiver.cumulative_tsn().next().advance(HALF_OF_ALL);
        self.receiver.renumber(theirs);
        self.outbound.reset(&Streams::All);
        self.forget_all_received(self.receiver.cumulative() + 1);
        self.outbound.resume();
        self.reconfig().own.on_renumbered(now);
        self.tell(Event::AssociationReset);
        Response { sequence, result: result::PERFORMED, next_tsns: Some((ours, theirs)) }
    }

    /// The peer has begun anew, as this side wanted: `theirs` is its next TSN and `ours` the one to go on with.
    pub(super) fn renumber(&mut self, now: Instant, theirs: Tsn, ours: Tsn) {
        let after = self.receiver.cumulative() + 1;
        // The peer counts on; what it sent since may have arrived before its answer.
        let epoch = match self.receiver.index_near(theirs).filter(|&index| index <= after) {
            Some(index) => index,
            None => {
                self.receiver.renumber(theirs);
                self.receiver.cumulative() + 1
            }
        };
        self.transmission.renumber(ours);
        self.outbound.reset(&Streams::All);
        self.forget_all_received(epoch);
        self.skip_anew(epoch);
        self.reconfig().own.on_renumbered(now);
        self.tell(Event::AssociationReset);
    }

    /// Of what the peer has given up, the messages that it had numbered anew, with index `epoch` first: until its answer
    /// came their numbers seemed to be older ones.
    fn skip_anew(&mut self, epoch: u64) {
        let skipped = self.reconfig().own.take_skipped(epoch).collect::<Vec<_>>();
        self.deliverable.clear();
        if let Err(Refusal::Protocol(fault)) =
            self.inbound.skip(self.receiver.cumulative(), skipped.into_iter(), &mut self.deliverable)
        {
            self.fault(fault);
        }
        self.mark_deliverable();
    }
}
