//! Processing of a received packet: each chunk is dispatched to one module, then the end of the packet is handled. Nothing is
//! sent here.

use std::ops::Range;

use bytes::Bytes;
use tresse_policy::{Instant, PathId};
use tresse_wire::{
    Abort, COMMON_HEADER_LEN, Cause, Chunk, ChunkError, ChunkKind, Chunks, DATA_HEADER_LEN, Data, ErrorChunk,
    Fault, IData, List, PacketDrop, Tsn,
};

use super::control::{Control, Reason};
use super::{Association, Extension, State, protected};
use crate::context::Context;
use crate::coverage::Mechanism;
use crate::extensions::asconf::{Asconf, Source};
use crate::extensions::auth::{self, AuthState};
use crate::extensions::drop_report::{self, DropReport, Lost};
use crate::extensions::reconfig::SetAsideChunk;
use crate::fragment::DataFormat;
use crate::inbound::{InboundData, Refusal, Skipped};
use crate::interface::datagram::{Datagram, Ecn};
use crate::interface::event::{CloseReason, Event};
use crate::paths::Member;
use crate::receiver::{Arrival, PacketSummary};
use crate::transmission::{AckReport, Dropped, SackFault, SackView};

/// Treatment of a chunk.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Disposition {
    /// The chunk is processed.
    Pass,
    /// The chunk is skipped.
    Skip,
    /// The chunk and the rest of its packet are skipped.
    Stop,
}

/// Path, encapsulation, congestion mark and length of a received packet.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Origin {
    pub(crate) path: PathId,
    /// The peer's UDP port, if the packet came encapsulated in UDP (RFC 6951).
    pub(crate) encapsulation_port: Option<u16>,
    /// The packet has a congestion mark (RFC 3168 §5).
    pub(crate) marked: bool,
    /// Length of the SCTP packet in bytes.
    pub(crate) len: usize,
}

impl Origin {
    /// The origin of `datagram`, which came over `path`.
    pub(crate) fn of(datagram: &Datagram, path: PathId) -> Self {
        Origin {
            path,
            encapsulation_port: datagram.encapsulation_port,
            marked: datagram.ecn == Ecn::Ce,
            len: datagram.payload.len(),
        }
    }
}

impl Association {
    /// Processes a packet with this association's tag and a valid header. `packet` is left empty if it was kept as user data. It
    /// is empty from the start if the endpoint has processed all its chunks.
    pub(crate) fn handle_packet(&mut self, cx: &mut Context<'_>, from: Origin, packet: &mut Bytes) {
        let Origin { path: via, len, .. } = from;
        self.sender.paths.on_packet_received(via, cx.now, len, from.encapsulation_port);
        let marked = (from.marked && self.capabilities.has(Extension::Ecn)).then(|| packet.clone());
        let mut summary = PacketSummary::default();
        let gaps_before = self.reception.receiver.has_gaps();
        // True if the packet has one DATA chunk and nothing else. Such a packet changes no path, and nothing but a SACK can be
        // sent for it.
        let mut lone = false;
        if let Some((last, at)) = self.read_chunks(cx, from, packet, &mut summary) {
            lone = at.start == COMMON_HEADER_LEN + DATA_HEADER_LEN;
            // This leaves `packet` empty.
            self.on_data(&last, at.len(), || std::mem::take(packet), Some(at.clone()), &mut summary);
        }
        if summary.any() {
            summary.out_of_order = gaps_before || self.reception.receiver.has_gaps();
            self.counters.duplicates += u64::from(summary.duplicates);
            self.reception.receiver.on_packet(cx.now, via, summary);
            self.sender.paths.on_data_received(via);
            if summary.new > 0 {
                self.reception.inbound.on_packet(len);
            }
            self.reception.on_packet_end(self.sender.config.immediate_sack_when_full);
            if self.state != State::Closed
                && let Err(Refusal::Protocol(fault)) =
                    self.reception.inbound.check_progress(self.reception.receiver.cumulative())
            {
                self.fault(fault);
            }
            // A congestion mark on user data (RFC 3168 §6.1).
            if let Some((index, tsn)) = marked.and_then(|packet| self.reception.lowest_of(&packet)) {
                self.marks.on_mark(via, index, tsn);
            }
        }
        if self.protection.is_agreed() {
            protected::take_key_messages(self);
        }
        self.on_heard_in_shutdown(cx.now, summary.any());
        if self.sender.paths.member(via) > Member::Pending {
            // If the path of the packet is no longer used, the answers leave on another one.
            self.control.move_on(via, self.sender.paths.best_for_control());
        }
        self.advance_reconfig(cx.now);
        if !lone {
            self.spread_path_changes(cx.now);
        }
        if self.reception.inbound.has_ready() {
            self.readable.on_ready();
        }
        // After a single DATA chunk, a side without data of its own can send nothing but a SACK. If output had nothing to send
        // before, it is polled again only once the SACK is due: otherwise a simulation takes 2 to 3 % more instructions.
        let stays_dry = lone
            && self.dry
            && self.sender.is_idle()
            && self.control.next_path().is_none()
            && !self.reception.receiver.is_due(cx.now);
        if !stays_dry {
            self.request_output();
        }
    }

    /// Processes the chunks of a packet, except a last DATA chunk whose user data can be kept as a slice. Returns that chunk
    /// without its user data, and the range of the user data in the packet. No other chunk needs the packet any more, so the
    /// packet itself can be kept; most packets have only such a chunk.
    // `always`: otherwise the result is copied through memory for every chunk.
    #[inline(always)]
    fn read_chunks(
        &mut self,
        cx: &mut Context<'_>,
        from: Origin,
        bytes: &Bytes,
        summary: &mut PacketSummary,
    ) -> Option<(Data<'static>, Range<usize>)> {
        let Origin { path: via, encapsulation_port, .. } = from;
        let mut gate = AuthState::default();
        let mut requests = 0;
        let mut chunks = Chunks::of(bytes);
        loop {
            let covered = chunks.remaining();
            let offset = chunks.offset();
            // By reference: a chunk is too large to be moved.
            let next = chunks.next();
            let chunk = next.as_ref()?;
            let kind = ChunkKind(covered.first().copied().unwrap_or_default());
            if self.auth.screens(kind) {
                match self.screen(&mut gate, chunk, covered, via) {
                    Disposition::Pass => {}
                    Disposition::Skip => continue,
                    Disposition::Stop => return None,
                }
            }
            match chunk {
                Ok(Chunk::Data(data)) => {
                    let Data { tsn, stream, ssn, ppid, flags, payload } = *data;
                    let crowded = self.reception.inbound.is_crowded();
                    if chunks.remaining().is_empty() && !is_wasteful(payload, bytes, crowded) {
                        let head = Data { tsn, stream, ssn, ppid, flags, payload: &[] };
                        let at = offset + DATA_HEADER_LEN;
                        return Some((head, at..at + payload.len()));
                    }
                    self.on_data(data, payload.len(), || kept(payload, bytes, crowded), None, summary);
                }
                Ok(Chunk::IData(data)) => self.on_i_data(data, bytes, summary),
                Ok(chunk @ (Chunk::ForwardTsn(_) | Chunk::IForwardTsn(_))) => {
                    self.on_forward_tsn(via, chunk, summary);
                }
                Ok(Chunk::Asconf(asconf)) => {
                    let path = self.sender.paths.get(via);
                    let source = Source { local: path.local(), remote: path.remote(), encapsulation_port };
                    self.on_asconf(cx.now, source, asconf, requests == 0);
                    requests += 1;
                }
                Ok(chunk) => {
                    self.on_chunk(cx, via, chunk, bytes);
                    if forbids_the_rest(chunk) {
                        return None;
                    }
                }
                Err(error) => self.on_broken_chunk(via, error),
            }
            if self.state == State::Closed {
                return None;
            }
        }
    }

    /// Decides whether a chunk may be processed (RFC 4895 §6.3), and counts a refused one. `covered` is the packet from this
    /// chunk to the end.
    pub(super) fn screen(
        &mut self,
        gate: &mut AuthState,
        chunk: &Result<Chunk<'_>, ChunkError>,
        covered: &[u8],
        via: PathId,
    ) -> Disposition {
        let refusal = match self.auth.screen(gate, chunk, covered) {
            Ok(None) => return Disposition::Pass,
            Ok(Some(number)) => {
                self.emit(Event::PeerKeyChanged { number });
                return Disposition::Pass;
            }
            Err(refusal) => refusal,
        };
        refusal.count(&mut self.counters.discards);
        if let auth::Refusal::UnsupportedHash(id) = refusal {
            self.control.push(via, Control::Error(Reason::UnsupportedHmac(id)));
        }
        if refusal == auth::Refusal::Unauthenticated { Disposition::Skip } else { Disposition::Stop }
    }

    /// Processes DATA with `len` bytes of user data, which `data` need not contain. `keep` returns the buffer with the user data:
    /// its range `at`, or all of it if `at` is `None`.
    #[inline]
    fn on_data(
        &mut self,
        data: &Data<'_>,
        len: usize,
        keep: impl FnOnce() -> Bytes,
        at: Option<Range<usize>>,
        summary: &mut PacketSummary,
    ) {
        summary.immediate |= data.flags.immediate;
        let content = || InboundData::of_data(data, keep());
        match self.capabilities.data_format() {
            DataFormat::Data => self.on_user_data(data.tsn, len, content, at, summary),
            // RFC 8260 §2.2.1: a peer that negotiated I-DATA must not send DATA, and vice versa.
            DataFormat::IData => self.fault("DATA although I-DATA was agreed on"),
        }
    }

    fn on_i_data(&mut self, data: &IData<'_>, bytes: &Bytes, summary: &mut PacketSummary) {
        summary.immediate |= data.flags.immediate;
        let crowded = self.reception.inbound.is_crowded();
        let content = || InboundData::of_i_data(data, kept(data.payload, bytes, crowded));
        match self.capabilities.data_format() {
            DataFormat::IData => self.on_user_data(data.tsn, data.payload.len(), content, None, summary),
            DataFormat::Data => self.fault("I-DATA although it was not agreed on"),
        }
    }

    #[inline]
    fn on_user_data(
        &mut self,
        tsn: Tsn,
        len: usize,
        content: impl FnOnce() -> InboundData,
        at: Option<Range<usize>>,
        summary: &mut PacketSummary,
    ) {
        if !self.state.takes_data() {
            self.counters.discards.unexpected_chunk += 1;
            return;
        }
        let index = match self.reception.receiver.classify(tsn) {
            Arrival::New(index) => {
                if let Some(protection) = self.protection.get() {
                    protection.on_data(index);
                }
                index
            }
            Arrival::Duplicate => {
                summary.duplicates += 1;
                return;
            }
            Arrival::Outside => {
                summary.refused = true;
                self.counters.discards.beyond_window += 1;
                return;
            }
        };
        if !self.reception.takes(index, len) {
            summary.refused = true;
            self.counters.discards.beyond_window += 1;
            return;
        }
        match self.renegotiation.reconfig {
            // Bypasses `admit`: moving each chunk through its `Option` takes half as long again.
            None => self.accept_data(index, content(), at, summary),
            Some(_) => self.accept_beside_reset(index, content(), at, len, summary),
        }
    }

    /// Accepts new DATA with `len` bytes of user data after a request to reset or add streams, then the chunks set aside that
    /// follow it.
    #[cold]
    fn accept_beside_reset(
        &mut self,
        index: u64,
        content: InboundData,
        at: Option<Range<usize>>,
        len: usize,
        summary: &mut PacketSummary,
    ) {
        let Some(reconfig) = &mut self.renegotiation.reconfig else { return };
        let Some(content) = self.reception.admit(reconfig, index, content, at.as_ref(), len) else {
            self.counters.discards.before_reset += 1;
            summary.refused = true;
            return;
        };
        self.accept_data(index, content, at, summary);
        while let Some(reconfig) = &mut self.renegotiation.reconfig {
            let index = self.reception.receiver.cumulative() + 1;
            let Some(SetAsideChunk { data, at, len }) = reconfig.take_set_aside(index) else { break };
            if !self.reception.fits(index, len) {
                continue;
            }
            match self.reception.admit(reconfig, index, data, at.as_ref(), len) {
                Some(data) => self.accept_data(index, data, at, summary),
                None => self.counters.discards.before_reset += 1,
            }
        }
    }

    /// Accepts new DATA for which there is room.
    #[inline(always)]
    fn accept_data(
        &mut self,
        index: u64,
        content: InboundData,
        at: Option<Range<usize>>,
        summary: &mut PacketSummary,
    ) {
        let stream = content.stream;
        match self.reception.accept(index, content, at) {
            Ok(()) => summary.new += 1,
            Err(Refusal::NoSuchStream) => {
                summary.new += 1;
                self.counters.discards.no_such_stream += 1;
                let path = self.sender.paths.best_for_control();
                self.control.report(path, || Reason::InvalidStream(stream));
            }
            Err(Refusal::Protocol(fault)) => self.fault(fault),
        }
    }

    fn on_chunk(&mut self, cx: &mut Context<'_>, via: PathId, chunk: &Chunk<'_>, bytes: &Bytes) {
        match chunk {
            Chunk::Sack(sack) => {
                let view = SackView {
                    cumulative_tsn: sack.cumulative_tsn,
                    a_rwnd: sack.a_rwnd,
                    renegable: sack.gaps,
                    non_renegable: List::Values(&[]),
                    duplicates: sack.duplicates,
                    dac_count: sack.dac_count(),
                };
                self.on_sack(cx.now, view, via);
            }
            Chunk::NrSack(sack) if self.capabilities.has(Extension::NrSack) => {
                let view = SackView {
                    cumulative_tsn: sack.cumulative_tsn,
                    a_rwnd: sack.a_rwnd,
                    renegable: sack.renegable,
                    non_renegable: sack.non_renegable,
                    duplicates: sack.duplicates,
                    dac_count: sack.dac_count(),
                };
                self.on_sack(cx.now, view, via);
            }
            // The peer has keys and this side has none yet. Messages that are held for the keys must not be held for a reset
            // instead, and the peer would discard a response in the clear. The peer retransmits the request.
            Chunk::Reconfig(_) if self.protection.is_pending() => {
                self.counters.discards.unexpected_chunk += 1
            }
            Chunk::Reconfig(reconfig) if self.capabilities.has(Extension::StreamReconfiguration) => {
                self.on_reconfig(cx.now, via, reconfig);
            }
            Chunk::PacketDrop(drop) if self.capabilities.has(Extension::DropReports) => {
                self.on_drop_report(cx.now, drop);
            }
            Chunk::Ecne(ecne) if self.capabilities.has(Extension::Ecn) => {
                self.on_ecne(cx.now, via, ecne.lowest_tsn);
            }
            Chunk::Cwr(cwr) if self.capabilities.has(Extension::Ecn) => {
                let index = self.reception.receiver.index_near(cwr.lowest_tsn);
                if let (Some(index), Some(marks)) = (index, self.marks.changed()) {
                    marks.on_reduced(via, index);
                }
            }
            // No longer answered in SHUTDOWN-ACK-SENT (RFC 9260 §8.3).
            Chunk::Heartbeat(_) if self.state == State::ShutdownAckSent => {}
            Chunk::Heartbeat(heartbeat) => {
                self.control.push(via, Control::HeartbeatAck(bytes.slice_ref(heartbeat.body)));
            }
            Chunk::HeartbeatAck(heartbeat) => {
                let accepted =
                    self.sender.paths.on_heartbeat_ack(cx.now, heartbeat.info().unwrap_or_default());
                if accepted.is_err() {
                    self.counters.discards.stray_heartbeat_ack += 1;
                }
            }
            // With this side's own tag the T bit must not be set (RFC 9260 §8.5.1).
            Chunk::Abort(Abort { tag_reflected: true, .. })
            | Chunk::ShutdownComplete { tag_reflected: true } => self.counters.discards.wrong_tag += 1,
            // The peer has removed the local address of this path, and answers late packets from there with ABORT (RFC 5061
            // §5.3.1).
            Chunk::Abort(_) if self.sender.paths.member(via) == Member::Leaving => {
                self.counters.discards.unexpected_chunk += 1;
            }
            Chunk::Abort(abort) => self.close(CloseReason::aborted_by_peer(&abort.causes)),
            Chunk::Shutdown(shutdown) => self.on_shutdown(cx.now, shutdown, via),
            Chunk::ShutdownAck => self.on_shutdown_ack(via),
            Chunk::ShutdownComplete { .. } if self.state == State::ShutdownAckSent => {
                self.close(CloseReason::Graceful);
            }
            Chunk::AsconfAck(ack) => self.on_asconf_ack(cx.now, via, ack),
            Chunk::Error(error) => self.on_error(cx.now, error),
            // The endpoint has processed the cookie, a COOKIE ACK may be a duplicate, and AUTH was verified before.
            Chunk::CookieEcho(_) | Chunk::CookieAck | Chunk::Pad(_) | Chunk::Auth(_) => {}
            Chunk::Unrecognised(unrecognised) => {
                self.counters.discards.unrecognised_chunk += 1;
                if unrecognised.kind.unrecognised_action().report {
                    self.control
                        .report(via, || Reason::UnrecognisedChunk(bytes.slice_ref(unrecognised.whole)));
                }
            }
            _ => self.counters.discards.unexpected_chunk += 1,
        }
    }

    fn on_broken_chunk(&mut self, via: PathId, error: &ChunkError) {
        if let Fault::NoUserData { tsn } = error.fault
            && self.state.takes_data()
        {
            // RFC 9260 §6.2: DATA without user data ends the association.
            self.control.clear();
            self.control.push(via, Control::Abort(Some(Reason::NoUserData(tsn))));
            self.close(CloseReason::PeerFault("DATA without user data"));
            return;
        }
        self.counters.discards.malformed_chunk += 1;
    }

    fn on_sack(&mut self, now: Instant, sack: SackView<'_>, via: PathId) {
        self.counters.sacks_received += 1;
        self.sender.on_duplicates(now, sack.duplicates);
        let mut report = self.workspace.get().report.take().unwrap_or_default();
        let recovering = self.sender.paths.windows.recovering();
        self.sender.update_response_times();
        match self.sender.transmission.on_sack(now, sack, via, recovering, &mut report) {
            Ok(()) => {
                if report.unsound {
                    self.counters.discards.impossible_sack += 1;
                }
                self.apply_report(now, &report);
                if self.sender.transmission.has_revocable() {
                    self.give_up(now);
                    self.sender.advance_forward(now);
                }
                self.sharing.share(now, &mut self.sender, &mut self.workspace.get().views.samples);
                // Window probes that the peer answers are no errors, even if its window stays closed (RFC 9260 §6.1 A).
                if self.sender.transmission.is_probing_window() {
                    self.sender.coverage.note(Mechanism::WindowProbed);
                    for path in self
                        .sender
                        .path_ids()
                        .filter(|&path| self.sender.transmission.outstanding.flight_on(path) > 0)
                    {
                        self.sender.paths.on_probe_answered(path);
                    }
                }
            }
            Err(SackFault::Stale) => {
                self.counters.discards.stale_sack += 1;
                if self.sender.transmission.on_late_duplicates(now, sack.duplicates, via, &mut report) {
                    self.apply_report(now, &report);
                }
            }
            Err(SackFault::Unsent) if self.kept_tag || self.renegotiation.has_renumbered() => {
                self.counters.discards.stale_sack += 1
            }
            Err(SackFault::Unsent) if self.state.sends_data() => self.fault(BEYOND_SENT),
            Err(SackFault::Unsent) => self.counters.discards.impossible_sack += 1,
        }
        self.workspace.get().report = Some(report);
        self.advance_reconfig(now);
        self.advance_shutdown(now);
    }

    /// Passes the report on an acknowledgement to the paths, the sharing policy and the send buffer.
    pub(super) fn apply_report(&mut self, now: Instant, report: &AckReport) {
        self.sender.apply_report(now, report, &mut self.workspace.get().views.candidates);
        self.sharing.on_report(now, &self.sender, report);
        for &path in &report.reneged {
            if self.sender.on_reneged(now, path) {
                self.sharing.on_reneged(path);
            }
        }
        if self.sender.outbound.buffer.release(report.released) {
            self.emit(Event::Writable);
        }
    }

    /// Handles FORWARD TSN or I-FORWARD-TSN: the peer abandoned messages (RFC 3758 §3.6).
    fn on_forward_tsn(&mut self, via: PathId, chunk: &Chunk<'_>, summary: &mut PacketSummary) {
        if !self.capabilities.has(Extension::PartialReliability) {
            // Answered as by an implementation that does not know the chunk (RFC 3758 §3.3.1).
            self.counters.discards.unrecognised_chunk += 1;
            let mut whole = Vec::new();
            if chunk.write(&mut whole).is_ok() {
                self.control.push(via, Control::Error(Reason::UnrecognisedChunk(whole.into())));
            }
            return;
        }
        let (to, skipped) = match (skipped_by(chunk), self.capabilities.data_format()) {
            // RFC 8260 §2.3.1: FORWARD TSN goes with DATA only, I-FORWARD-TSN with I-DATA only.
            (Some((DataFormat::Data, ..)), DataFormat::IData) => {
                return self.fault("FORWARD TSN although I-DATA was agreed on");
            }
            (Some((DataFormat::IData, ..)), DataFormat::Data) => {
                return self.fault("I-FORWARD-TSN although I-DATA was not agreed on");
            }
            (Some((_, to, skipped)), _) if self.state.takes_data() => (to, skipped),
            _ => {
                self.counters.discards.unexpected_chunk += 1;
                return;
            }
        };
        let Some(up_to) = self.reception.receiver.skip_to(to) else {
            // A retransmission, probably because the SACK was lost.
            self.reception.receiver.demand();
            return;
        };
        summary.forwarded = true;
        let streams = self.reception.inbound.stream_count();
        let known = |skipped: &&Skipped| skipped.stream.0 < streams;
        if let Some(reconfig) = &mut self.renegotiation.reconfig {
            skipped.iter().filter(known).for_each(|&skipped| reconfig.note_skipped(up_to, skipped));
        }
        let unknown = skipped.len() - skipped.iter().filter(known).count();
        let outcome = self.reception.skip(up_to, skipped.into_iter());
        if unknown > 0 {
            self.counters.discards.no_such_stream += unknown as u64;
        }
        if let Err(Refusal::Protocol(fault)) = outcome {
            self.fault(fault);
        }
    }

    /// Handles ERROR: ASCONF and PAD are no longer sent to a peer that does not recognise them.
    fn on_error(&mut self, now: Instant, error: &ErrorChunk<'_>) {
        self.emit(Event::peer_error(&error.causes));
        for cause in error.causes.iter().flatten() {
            let Cause::UnrecognisedChunk(whole) = cause else { continue };
            match whole.first().map(|&kind| ChunkKind(kind)) {
                Some(ChunkKind::ASCONF) if self.renegotiation.asconf.is_some() => {
                    self.with_asconf(now, Asconf::on_unsupported);
                }
                // A peer should skip an unknown PAD without a report (RFC 4820 §3); what it does with the next one is uncertain.
                Some(ChunkKind::PAD) => {
                    self.control.forget_mtu_probes();
                    self.sender.paths.end_mtu_search();
                }
                _ => {}
            }
        }
    }

    /// Reports a packet that arrived over `via` with a wrong checksum, and with the right ports and tag.
    pub(crate) fn on_damaged_packet(&mut self, via: PathId, packet: &[u8]) {
        let cares = self.state.takes_data() || self.state.sends_data();
        if !cares || !self.capabilities.has(Extension::DropReports) {
            return;
        }
        let before = self.auth.overhead_of(ChunkKind::PACKET_DROP);
        let room = self.sender.paths.get(via).packet_size().saturating_sub(before);
        let (buffer, used) = (self.sender.config.receive_buffer.0, self.reception.inbound.used());
        if let Some(report) = DropReport::of(packet, room, buffer, used) {
            self.control.push(via, Control::DropReport(Box::new(report)));
            self.request_output();
        }
    }

    /// Handles PKTDROP: the peer reports a packet as dropped.
    fn on_drop_report(&mut self, now: Instant, report: &PacketDrop<'_>) {
        let Some(lost) = drop_report::lost(report, self.identity.header()) else {
            self.counters.discards.stray_drop_report += 1;
            return;
        };
        for lost in lost {
            let Lost::UserData(tsn, shown) = lost else {
                self.reception.receiver.demand();
                continue;
            };
            let dropped = self.sender.transmission.outstanding.reported(tsn, shown);
            // A report within half a round trip of the last transmission is a second one on an earlier transmission.
            let seen = |dropped: &Dropped| {
                dropped.age(now) >= self.sender.paths.get(dropped.path).shortest_rtt() / 2
            };
            let Some(dropped) = dropped.filter(seen) else {
                self.counters.discards.stray_drop_report += 1;
                continue;
            };
            let path = dropped.path;
            let views = &mut self.workspace.get().views.candidates;
            let target = self.sender.resend_path(self.sender.config.fast_retransmit_path, path, views);
            self.sender.transmission.on_reported(dropped, target);
            self.sender.settle_t3(path);
        }
    }

    /// Handles ECNE: the packet with `tsn` arrived with a congestion mark. Every ECNE is answered, because the CWR before may
    /// have been lost; the window is reduced once.
    fn on_ecne(&mut self, now: Instant, via: PathId, tsn: Tsn) {
        if !self.state.sends_data() {
            self.counters.discards.unexpected_chunk += 1;
            return;
        }
        let Some(marked) = self.sender.transmission.outstanding.marked(tsn) else {
            self.counters.discards.stray_ecne += 1;
            return;
        };
        let path = marked.path.or_else(|| self.marks.path_of(marked.index));
        if let Some(path) = marked.path {
            let (flight, exit_point) = (
                self.sender.transmission.outstanding.flight_on(path),
                self.sender.transmission.outstanding.highest_on(path),
            );
            if self.marks.is_new_mark(path, marked.index)
                && self.sender.paths.on_mark(now, path, marked.index, flight, exit_point)
            {
                let (_, highest) = self.sender.transmission.outstanding.indices();
                self.marks.on_cut(path, highest);
            }
            self.marks.on_named(path, marked.index);
        }
        // The peer expects CWR on the path of the marked packet.
        let path = path.filter(|&path| self.sender.paths.accepts_data(path)).unwrap_or(via);
        self.control.push_cwr(path, tsn);
    }

    /// Aborts the association because the peer violated the protocol (RFC 9260 §3.3.10.13).
    pub(super) fn fault(&mut self, what: &'static str) {
        self.control.clear();
        let path = self.sender.paths.best_for_control();
        self.control.push(path, Control::Abort(Some(Reason::ProtocolViolation(what))));
        self.close(CloseReason::PeerFault(what));
    }
}

/// The user data of a chunk in the form in which it is kept: a slice, which keeps the whole packet in memory, or a copy if a
/// slice would be wasteful.
#[inline]
fn kept(payload: &[u8], packet: &Bytes, crowded: bool) -> Bytes {
    if is_wasteful(payload, packet, crowded) {
        Bytes::copy_from_slice(payload)
    } else {
        packet.slice_ref(payload)
    }
}

/// Returns whether a slice would waste memory: much data is kept already (`crowded`), and less than half of the packet is user
/// data. A hostile peer could otherwise fill the memory with the rest of its packets.
#[inline]
fn is_wasteful(payload: &[u8], packet: &Bytes, crowded: bool) -> bool {
    crowded && payload.len() < packet.len() / 2
}

/// Fault of a cumulative TSN ack above the highest TSN sent. A SACK with such a gap ack block is processed without that block, as
/// by other implementations.
pub(super) const BEYOND_SENT: &str = "everything was acknowledged up to a TSN that was never sent";

/// Contents of a FORWARD TSN or I-FORWARD-TSN, with the data format that it belongs to; `None` for another chunk.
fn skipped_by(chunk: &Chunk<'_>) -> Option<(DataFormat, Tsn, Vec<Skipped>)> {
    match chunk {
        Chunk::ForwardTsn(forward) => {
            let skipped = forward.streams.iter().map(|skipped| Skipped {
                stream: skipped.stream,
                unordered: false,
                number: skipped.ssn.0.into(),
            });
            Some((DataFormat::Data, forward.cumulative_tsn, skipped.collect()))
        }
        Chunk::IForwardTsn(forward) => {
            let skipped = forward.messages.iter().map(|skipped| Skipped {
                stream: skipped.stream,
                unordered: skipped.unordered,
                number: skipped.mid.0,
            });
            Some((DataFormat::IData, forward.cumulative_tsn, skipped.collect()))
        }
        _ => None,
    }
}

/// Returns whether the type of an unrecognised chunk forbids processing the rest of its packet (RFC 9260 §3.2).
fn forbids_the_rest(chunk: &Chunk<'_>) -> bool {
    matches!(chunk, Chunk::Unrecognised(unrecognised) if unrecognised.kind.unrecognised_action().stop)
}
