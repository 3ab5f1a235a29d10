//! Events of the core: their effects on associations and sockets, and the notifications that they cause.

use std::net::IpAddr;

use tresse_proto::{
    AddressChange, AssociationId, CloseReason, Direction, Endpoint, Event, Instant, PathState,
    Reconfiguration, ReconfigurationOutcome,
};
use tresse_wire::ChunkKind;

use crate::association::{Ended, Phase, SocketAssociation};
use crate::engine::State;
use crate::layout::SocketName;
use crate::message_info::UNORDERED;
use crate::notify::{self, Change, Failed};
use crate::settings::Style;
use crate::socket::SocketState;

impl State {
    /// Dispatches the events of the core.
    pub(crate) fn dispatch_events(&mut self, now: Instant) {
        while let Some((id, event)) = self.endpoint.as_mut().and_then(Endpoint::poll_event) {
            if !self.associations.contains_key(&id) && !self.accept(now, id) {
                continue;
            }
            self.on_event(now, id, event);
        }
    }

    /// Adds an association that a peer has set up to the socket that listens. Returns false if no socket admits it; it is released
    /// then.
    fn accept(&mut self, now: Instant, id: AssociationId) -> bool {
        let Some(endpoint) = &mut self.endpoint else { return false };
        let listener = self.sockets.iter_mut().find(|(_, socket)| socket.limit.is_some());
        let Some((&key, socket)) = listener.filter(|(_, socket)| socket.admits()) else {
            endpoint.release(now, id);
            return false;
        };
        let port = endpoint.association(id).map_or(0, |association| association.remote_port());
        let entry = SocketAssociation::new(key, port, socket.settings.clone(), now);
        if socket.style == Style::OneToOne {
            socket.backlog.push_back(id);
        }
        self.enter(id, entry);
        self.update_listening();
        true
    }

    fn on_event(&mut self, now: Instant, id: AssociationId, event: Event) {
        let Some(entry) = self.associations.get_mut(&id) else { return };
        let key = entry.owner;
        entry.last_used = now;
        self.addresses_freed |= matches!(event, Event::Established { .. } | Event::OwnAddress { .. });
        match event {
            Event::Readable => self.refill(now, id),
            Event::Writable => entry.unblock(),
            Event::PeerShutdown => {
                entry.peer_done = true;
                self.notify(id, notify::SHUTDOWN_EVENT, notify::shutdown);
            }
            Event::Closed(reason) => self.on_closed(now, id, &reason),
            Event::Established { outbound_streams, inbound_streams } => {
                entry.phase = if entry.phase == Phase::Opening { Phase::Open } else { entry.phase };
                self.note_peers(now, id);
                let change = Change::new(notify::COMM_UP, outbound_streams, inbound_streams);
                self.notify_up(id, change);
            }
            Event::Restarted { outbound_streams, inbound_streams, .. } => {
                entry.peer_done = false;
                self.note_peers(now, id);
                let change = Change::new(notify::RESTART, outbound_streams, inbound_streams);
                self.notify_up(id, change);
            }
            other => self.notify_other(now, id, other),
        }
        if let Some(entry) = self.associations.get_mut(&id).filter(|entry| entry.phase != Phase::Opening) {
            // Wakes the calls that wait for the result of the set-up.
            entry.unsettled = None;
        }
        self.touch(key);
    }

    fn on_closed(&mut self, now: Instant, id: AssociationId, reason: &CloseReason) {
        let Some(entry) = self.associations.get_mut(&id) else { return };
        let opening = entry.phase == Phase::Opening;
        entry.phase = Phase::Ended(Ended::of(reason, opening));
        self.addresses_freed = true;
        entry.unblock();
        let (key, abandoned, awaited) = (entry.owner, entry.abandoned, entry.is_awaited());
        let state = match reason {
            _ if opening => notify::CANT_STR_ASSOC,
            CloseReason::Graceful => notify::SHUTDOWN_COMP,
            _ => notify::COMM_LOST,
        };
        let error = notify::cause_of(reason);
        // The rest of a message that was read in part will not arrive.
        if !self.has_unread(id) {
            self.give_up_part(id);
        }
        // Undelivered messages are reported first: after the notification of the end, the program may drop its state of the
        // association.
        self.notify_undelivered(id, error);
        let chunk = if state == notify::COMM_LOST { notify::abort_chunk(reason) } else { Vec::new() };
        self.notify_change(id, Change { error, ..Change::new(state, 0, 0) }, &chunk);
        // A one-to-one socket keeps its association for data that can be read and for the error. A call that waits for the set-up
        // also needs it.
        let keeps = awaited || self.sockets.get(&key).is_some_and(|socket| socket.style == Style::OneToOne);
        if abandoned || (!keeps && !self.has_unread(id)) {
            self.forget(now, id);
        }
    }

    /// Queues the notifications of events that no other function handles.
    fn notify_other(&mut self, now: Instant, id: AssociationId, event: Event) {
        match event {
            Event::PeerAdaptation { code } => {
                if let Some(entry) = self.associations.get_mut(&id) {
                    entry.adaptation = code;
                }
                self.notify(id, notify::ADAPTATION, |number| notify::adaptation(number, code));
            }
            Event::LowWater { stream, unsent } => {
                self.notify(id, notify::STREAM_LOW, |number| notify::stream_low(number, stream.0, unsent));
            }
            Event::PathChanged { path, state } => self.notify_path(now, id, usize::from(path.0), state),
            Event::PeerKeyChanged { number: key } => {
                self.notify(id, notify::AUTHENTICATION, |number| {
                    notify::authentication(number, key, NEW_KEY)
                });
            }
            Event::InboundReset(streams) => {
                let flags = notify::RESET_INCOMING;
                self.notify(id, notify::STREAM_RESET, |number| notify::stream_reset(number, flags, &streams));
            }
            Event::OutboundReset(streams) => {
                let flags = notify::RESET_OUTGOING;
                self.notify(id, notify::STREAM_RESET, |number| notify::stream_reset(number, flags, &streams));
            }
            Event::AssociationReset { ours, theirs } => {
                self.notify(id, notify::ASSOC_RESET, |number| {
                    notify::association_reset(number, 0, ours.0, theirs.0)
                });
            }
            Event::StreamsAdded { outbound_streams, inbound_streams } => {
                self.notify(id, notify::STREAM_CHANGE, |number| {
                    notify::stream_change(number, 0, inbound_streams, outbound_streams)
                });
            }
            Event::Reconfigured { request, outcome } => self.notify_refusal(id, &request, outcome),
            Event::PeerAddress { address, change } => {
                let state = match change {
                    AddressChange::Add => notify::ADDR_ADDED,
                    AddressChange::Remove => notify::ADDR_REMOVED,
                    AddressChange::Prefer => notify::ADDR_MADE_PRIM,
                };
                self.notify_address(id, address, state);
            }
            Event::PeerError { code, causes } => {
                self.notify(id, notify::REMOTE_ERROR, |number| notify::remote_error(number, code.0, &causes));
            }
            Event::Abandoned { stream, ppid, context, unordered, sent, payload, .. } => {
                let failed = Failed {
                    error: 0,
                    stream,
                    ppid: ppid.0.to_be(),
                    context: context as u32,
                    flags: if unordered { UNORDERED } else { 0 },
                    sent,
                    data: payload.into_bytes().to_vec(),
                };
                self.notify_failed(id, &failed);
            }
            _ => {}
        }
    }

    /// Queues a notification for every message that was not delivered when its association ended (RFC 6458 §6.1.4, §6.1.11).
    fn notify_undelivered(&mut self, id: AssociationId, error: u16) {
        let wants = |kind| self.associations.get(&id).is_some_and(|entry| entry.settings.wants(kind));
        if !wants(notify::SEND_FAILED_EVENT) && !wants(notify::SEND_FAILED) {
            return;
        }
        let Some(association) = self.endpoint.as_mut().and_then(|core| core.association(id)) else { return };
        for message in association.undelivered() {
            let failed = Failed {
                error,
                stream: message.stream,
                ppid: message.ppid.0.to_be(),
                context: message.context as u32,
                flags: if message.unordered { UNORDERED } else { 0 },
                sent: message.sent,
                data: message.payload.into_bytes().to_vec(),
            };
            self.notify_failed(id, &failed);
        }
    }

    fn notify_failed(&mut self, id: AssociationId, failed: &Failed) {
        self.notify(id, notify::SEND_FAILED_EVENT, |number| notify::send_failed_event(number, failed));
        self.notify(id, notify::SEND_FAILED, |number| notify::send_failed(number, failed));
    }

    fn notify_path(&mut self, now: Instant, id: AssociationId, path: usize, state: PathState) {
        self.note_peers(now, id);
        let earlier = self.note_path(id, path, state);
        let stats =
            self.endpoint.as_mut().and_then(|core| core.association(id)).map(|one| one.path_stats(now));
        let Some(address) = stats.and_then(|stats| stats.get(path).map(|path| path.remote)) else { return };
        let Some(entry) = self.associations.get(&id) else { return };
        let exposes = entry.settings.exposes_pf;
        let told = match state {
            PathState::Active if earlier == Some(PathState::Unconfirmed) => notify::ADDR_CONFIRMED,
            // Without this event, the program was not notified that the path was potentially failed (RFC 7829 §7.1).
            PathState::Active if earlier == Some(PathState::PotentiallyFailed) && !exposes => return,
            PathState::Active => notify::ADDR_AVAILABLE,
            PathState::PotentiallyFailed if exposes => notify::ADDR_PF,
            PathState::Inactive => notify::ADDR_UNREACHABLE,
            _ => return,
        };
        self.notify_address(id, address, told);
    }

    fn notify_address(&mut self, id: AssociationId, address: IpAddr, state: i32) {
        let Some(entry) = self.associations.get(&id) else { return };
        let port = entry.remote_port;
        let mapped = self.sockets.get(&entry.owner).is_some_and(SocketState::writes_mapped);
        let name = SocketName { address, port }.write(mapped);
        self.notify(id, notify::PEER_ADDR_CHANGE, |number| notify::address_change(number, &name, state));
    }

    /// Queues a notification of a request that was refused. For a request that was carried out, other events report the changes.
    fn notify_refusal(
        &mut self,
        id: AssociationId,
        request: &Reconfiguration,
        outcome: ReconfigurationOutcome,
    ) {
        let flags = match outcome {
            ReconfigurationOutcome::Performed => return,
            ReconfigurationOutcome::Denied => notify::DENIED,
            _ => notify::FAILED,
        };
        match request {
            Reconfiguration::ResetOutbound(streams) => self.notify(id, notify::STREAM_RESET, |number| {
                notify::stream_reset(number, flags | notify::RESET_OUTGOING, streams)
            }),
            Reconfiguration::ResetInbound(streams) => self.notify(id, notify::STREAM_RESET, |number| {
                notify::stream_reset(number, flags | notify::RESET_INCOMING, streams)
            }),
            Reconfiguration::ResetAssociation => {
                self.notify(id, notify::ASSOC_RESET, |number| notify::association_reset(number, flags, 0, 0));
            }
            Reconfiguration::AddOutbound(_) | Reconfiguration::AddInbound(_) => {
                let streams =
                    self.endpoint.as_mut().and_then(|core| core.association(id)).map(|one| one.streams());
                let (outbound, inbound) = streams.unwrap_or_default();
                self.notify(id, notify::STREAM_CHANGE, |number| {
                    notify::stream_change(number, flags, inbound, outbound)
                });
            }
            _ => {}
        }
    }

    /// Queues SCTP_SENDER_DRY_EVENT for associations that subscribed to it once all their data is acknowledged (RFC 6458 §6.1.9).
    /// The association must be set up and not have ended.
    pub(crate) fn notify_dry(&mut self) {
        if !self.tells_dry {
            return;
        }
        let mut dry = Vec::new();
        for (&id, entry) in &mut self.associations {
            let is_up = matches!(entry.phase, Phase::Open | Phase::Closing);
            if !is_up || entry.is_dry || !entry.settings.wants(notify::SENDER_DRY) {
                continue;
            }
            let queue =
                self.endpoint.as_mut().and_then(|core| core.association(id)).map(|one| one.send_queue());
            entry.is_dry = queue.is_some_and(|queue| queue.used == 0);
            if entry.is_dry {
                dry.push(id);
            }
        }
        for id in dry {
            self.notify(id, notify::SENDER_DRY, notify::sender_dry);
        }
    }

    /// Returns the features that both sides of an association support, as COMM_UP lists them (RFC 6458 §6.1.1).
    pub(crate) fn supported(&mut self, id: AssociationId) -> Vec<u8> {
        let association = self.endpoint.as_mut().and_then(|core| core.association(id));
        let agreed = association.map(|association| association.agreed_chunks()).unwrap_or_default();
        let features = [
            (ChunkKind::FORWARD_TSN, SUPPORTS_PR),
            (ChunkKind::AUTH, SUPPORTS_AUTH),
            (ChunkKind::ASCONF, SUPPORTS_ASCONF),
            (ChunkKind::RECONFIG, SUPPORTS_RE_CONFIG),
            (ChunkKind::I_DATA, SUPPORTS_INTERLEAVING),
        ];
        let has = features.iter().filter(|(kind, _)| agreed.contains(kind)).map(|(_, feature)| *feature);
        // Multiple send and receive buffers do not depend on the peer.
        let mut supported: Vec<u8> = has.chain([SUPPORTS_MULTIBUF]).collect();
        supported.sort_unstable();
        supported
    }

    /// Queues the notification that an association is set up or restarted, with the features of both sides.
    fn notify_up(&mut self, id: AssociationId, change: Change) {
        let supported = self.supported(id);
        let authenticates = supported.contains(&SUPPORTS_AUTH);
        self.notify_change(id, change, &supported);
        if !authenticates {
            self.notify(id, notify::AUTHENTICATION, |number| notify::authentication(number, 0, NO_AUTH));
        }
    }
}

/// Returns the direction that `srs_flags` of a request select (RFC 6525 §6.3.2).
pub(crate) fn direction_of(flags: u16) -> Option<Direction> {
    match (flags & notify::RESET_INCOMING != 0, flags & notify::RESET_OUTGOING != 0) {
        (true, true) => Some(Direction::Both),
        (true, false) => Some(Direction::Inbound),
        (false, true) => Some(Direction::Outbound),
        (false, false) => None,
    }
}

const NEW_KEY: u32 = 0;
const NO_AUTH: u32 = 2;
const SUPPORTS_PR: u8 = 1;
const SUPPORTS_AUTH: u8 = 2;
const SUPPORTS_ASCONF: u8 = 3;
const SUPPORTS_MULTIBUF: u8 = 4;
const SUPPORTS_RE_CONFIG: u8 = 5;
const SUPPORTS_INTERLEAVING: u8 = 6;
