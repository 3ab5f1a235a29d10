//! Stream reconfiguration among the engines (RFC 6525): what happens is handed to `extensions::reconfig`, and what that
//! answers is done.

use std::ops::Range;

use tresse_wire::Reconfig as ReconfigChunk;

use super::control::Control;
use super::protected::WAITS_FOR_KEYS;
use super::{Association, Extension, State};
use crate::extensions::reconfig::{
    Action, Ask, Progress, Receiving, Reconfig, Sending, SetAsideChunk, View, read, respond,
};
use crate::inbound::{InboundData, Refusal};
use crate::interface::error::ReconfigurationError;
use crate::interface::event::{CloseReason, Event};
use crate::interface::reconfiguration::Streams;
use tresse_policy::Instant;
use tresse_policy::PathId;

impl Association {
    /// Begins what the application asks of streams.
    ///
    /// # Errors
    /// See `ReconfigurationError`; nothing was begun then.
    pub(crate) fn reconfigure(&mut self, now: Instant, ask: Ask) -> Result<(), ReconfigurationError> {
        if self.state != State::Established {
            return Err(ReconfigurationError::NotOpen { state: self.state.name() });
        }
        if !self.capabilities.has(Extension::StreamReconfiguration) {
            return Err(ReconfigurationError::NotNegotiated);
        }
        if self.protection.is_pending() {
            return Err(ReconfigurationError::NotOpen { state: WAITS_FOR_KEYS });
        }
        let actions = self.with_reconfig(now, |reconfig, view| reconfig.ask(view, ask))?;
        self.carry_out(actions);
        self.advance_reconfig(now);
        self.stir();
        Ok(())
    }

    /// RE-CONFIG arrived over `via`: answers go back there (RFC 6525 §5.2.1).
    pub(super) fn on_reconfig(&mut self, now: Instant, via: PathId, chunk: &ReconfigChunk<'_>) {
        if !self.state.takes_data() && !self.state.sends_data() {
            self.counters.discards.unexpected_chunk += 1;
            return;
        }
        let Some(params) = read(&chunk.params) else {
            self.counters.discards.malformed_chunk += 1;
            return;
        };
        let mut answers = Vec::new();
        for param in params {
            let actions =
                self.with_reconfig(now, |reconfig, view| reconfig.on_param(view, param, &mut answers));
            self.carry_out(actions);
        }
        if !answers.is_empty() {
            self.carry_out(vec![respond(via, &answers)]);
        }
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
        let actions = self.with_reconfig(now, Reconfig::advance);
        self.carry_out(actions);
    }

    /// The own request stayed unanswered: it goes again, on another path if there is one (RFC 6525 §5.1.1).
    pub(super) fn on_reconfig_timer(&mut self, now: Instant) {
        let Some(reconfig) = &mut self.reconfig else { return };
        let Some(timeout) = reconfig.pop_due(now) else { return };
        // A peer that may still send has to be understood: it may have begun anew already.
        if !self.state.sends_data() && !self.state.takes_data() {
            reconfig.abandon();
            return;
        }
        let mut path = self.sender.paths.best_for_control();
        if timeout.timeouts > 0 {
            let failure = self.sender.paths.on_request_expired(timeout.path);
            self.on_failure(now, failure);
            path = self.sender.paths.alternate(timeout.path);
        }
        // Whether the peer has begun anew is not known, so there is no going on without an answer. Heartbeats
        // that it does answer must not hide that.
        if timeout.timeouts > self.config.association_max_retrans {
            self.give_up_peer(CloseReason::PathsLost);
        }
        if self.state != State::Closed {
            let rto = self.sender.paths.get(path).rto();
            let longest = self.config.rto_max;
            let send = self.with_reconfig(now, |reconfig, _| reconfig.send(now, path, rto, longest));
            self.carry_out(send.into_iter().collect());
        }
        self.spread_path_changes(now);
    }

    /// DATA with `len` bytes of user data, unless it comes too early: not acknowledged, it comes again.
    #[inline]
    pub(super) fn admit_data(
        &mut self,
        index: u64,
        data: InboundData,
        at: Option<&Range<usize>>,
        len: usize,
    ) -> Option<InboundData> {
        let Some(reconfig) = &mut self.reconfig else { return Some(data) };
        let (arrived, room) = (self.reception.receiver.cumulative(), self.reception.inbound.window());
        let chunk = SetAsideChunk { data, at: at.cloned(), len };
        let admitted =
            reconfig.admit(index, chunk, arrived, room, |data| self.reception.inbound.is_next(data));
        self.counters.discards.before_reset += u64::from(admitted.is_none());
        admitted
    }

    /// Shows stream reconfiguration how the engines stand.
    pub(super) fn with_reconfig<T>(
        &mut self,
        now: Instant,
        hear: impl FnOnce(&mut Reconfig, &View<'_>) -> T,
    ) -> T {
        let path = self.sender.paths.best_for_control();
        let (cumulative, highest) = self.sender.transmission.indices();
        let view = View {
            now,
            config: &self.config,
            sending: Sending {
                is_open: self.state.sends_data(),
                streams: self.sender.outbound.stream_count(),
                progress: Progress { drained: self.sender.outbound.is_drained(), highest, cumulative },
                last_tsn: self.sender.transmission.last_tsn(),
            },
            receiving: Receiving {
                streams: self.reception.inbound.stream_count(),
                cumulative: self.reception.receiver.cumulative(),
                cumulative_tsn: self.reception.receiver.cumulative_tsn(),
            },
            path,
            rto: self.sender.paths.get(path).rto(),
            has_sent_all_of: &|streams| self.sender.outbound.has_sent_all_of(streams),
            is_at_start: &|stream| self.sender.outbound.is_at_start(stream),
            index_near: &|tsn| self.reception.receiver.index_near(tsn),
        };
        let serials = self.serials;
        let new = || Box::new(Reconfig::new(serials.own, serials.peer));
        hear(self.reconfig.get_or_insert_with(new), &view)
    }

    /// Does to the engines what stream reconfiguration wants done.
    fn carry_out(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Hold(streams) => self.sender.outbound.hold(streams),
                Action::Resume => self.sender.outbound.resume(),
                Action::ResetOutbound(streams) => self.sender.outbound.reset(&streams),
                Action::ResetInbound(streams) => {
                    self.reception.reset(&streams, self.reception.receiver.highest() + 1);
                    self.tell(Event::InboundReset(streams));
                }
                Action::AddOutbound(count) => {
                    self.sender.outbound.add_streams(count);
                    self.tell_streams();
                }
                Action::AddInbound(count) => {
                    self.reception.inbound.add_streams(count);
                    self.tell_streams();
                }
                Action::Renumber { theirs, ours } => {
                    let epoch = self.reception.receiver.adopt(theirs);
                    self.sender.transmission.renumber(ours);
                    self.sender.outbound.reset(&Streams::All);
                    self.reception.forget_all(epoch);
                    self.forget_echoes();
                    self.skip_anew(epoch);
                }
                Action::RenumberForPeer { theirs } => {
                    self.reception.renumber(theirs);
                    self.forget_echoes();
                    self.sender.outbound.reset(&Streams::All);
                    self.sender.outbound.resume();
                }
                Action::Send { path, body } => self.control.push(path, Control::Reconfig(body)),
                Action::Respond { path, body } => {
                    self.control.push(path, Control::Reconfig(body));
                    self.reception.receiver.demand();
                }
                Action::DiscardStray => self.counters.discards.stray_reconfiguration += 1,
                Action::Tell(event) => self.tell(event),
            }
        }
    }

    fn tell_streams(&mut self) {
        let (outbound_streams, inbound_streams) = self.streams();
        self.tell(Event::StreamsAdded { outbound_streams, inbound_streams });
    }

    /// The peer begins anew on all streams.
    fn forget_echoes(&mut self) {
        if let Some(marks) = self.marks.changed() {
            marks.forget_echoes();
        }
    }

    /// Messages that the peer gave up after it had begun anew with index `epoch`.
    fn skip_anew(&mut self, epoch: u64) {
        let skipped = self.reconfig.as_deref_mut().map(|reconfig| reconfig.take_skipped(epoch));
        let skipped = skipped.unwrap_or_default().into_iter();
        let arrived = self.reception.receiver.cumulative();
        if let Err(Refusal::Protocol(fault)) = self.reception.skip(arrived, skipped) {
            self.fault(fault);
        }
    }
}
