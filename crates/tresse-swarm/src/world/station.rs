//! A host: its endpoint, and an application that carries out the script and reads messages.
//!
//! Records every message in the ledger; the caller delivers the packets.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use tresse_proto::config::Encryption;
use tresse_proto::config::PeerWindowTest;
use tresse_proto::protection::ProtectionError;
use tresse_proto::{
    AddressChange, AssociationConfig, AssociationHandle, AssociationId, CloseReason, Connect, Direction,
    Endpoint, EndpointConfig, Event, Instant, PathId, ReconfigurationError, Reliability, ScheduleError,
    SendError, SendOptions, StreamId, Streams,
};
use tresse_sim::records::SimulatedKeys;
use tresse_sim::seed::Seed;

use super::census::Census;
use super::ledger::{LONGEST, Ledger, Receiver};
use super::log::Log;
use super::session::{Ending, Session, Timeouts, Windows};
use super::turncoat;
use crate::script::{Host, HostPlan, Move};

/// State of one host.
pub(super) struct Station {
    pub(super) host: Host,
    pub(super) endpoint: Endpoint,
    settings: (AssociationConfig, EndpointConfig),
    wraps: Wraps,
    seed: Seed,
    addresses: Vec<IpAddr>,
    peer_addresses: Vec<IpAddr>,
    /// All associations since the last restart, in order of their ids.
    pub(super) sessions: BTreeMap<AssociationId, Session>,
    /// The association that sends messages.
    current: Option<AssociationId>,
    /// Messages for which the send buffer had no room yet.
    backlog: VecDeque<Waiting>,
    reading: bool,
    /// True if messages wait in a send buffer or in a receive buffer.
    pub(super) waits: bool,
    /// Number of restarts.
    pub(super) restarts: u32,
    /// The last two instants at which the host sent packets, the latest first.
    sent_at: [Option<Instant>; 2],
    /// Keys of encrypted associations.
    keys: SimulatedKeys,
    pub(super) tally: Tally,
}

/// Sequence numbers that wrap soon.
#[derive(Copy, Clone, Debug)]
struct Wraps {
    /// Number of TSNs before the wrap, until the host restarts; `None` for a random first TSN.
    tsns: Option<u32>,
    /// Number of messages on each stream before SSNs and MIDs wrap, of this host and of its peer; 0 if they begin at 0.
    messages: [u32; 2],
}

/// A message of the application that was not accepted yet.
#[derive(Copy, Clone, Debug)]
struct Waiting {
    len: usize,
    stream: u16,
    unordered: bool,
    reliability: Reliability,
}

/// Counts of events at a host, for the summary.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) closed: BTreeMap<&'static str, u64>,
    pub(super) bytes: u64,
    /// Counts of mechanisms that acted here, if they are requested.
    pub(super) census: Option<Census>,
}

impl Station {
    /// Returns a host without associations; `plans` are those of both hosts. Settings were checked when the script was read.
    pub(super) fn new(
        host: Host,
        plans: &[HostPlan; 2],
        seed: Seed,
        addresses: Vec<IpAddr>,
        peer_addresses: Vec<IpAddr>,
    ) -> Result<Self, String> {
        let [plan, peer] = [host, host.peer()].map(|host| &plans[host.index()]);
        let (association, mut endpoint) = plan.settings().map_err(|error| error.to_string())?;
        endpoint.port = port(host);
        endpoint.listen = true;
        let settings = (association, endpoint);
        let messages = [plan, peer].map(|plan| plan.messages_wrap_in().unwrap_or(0));
        let wraps = Wraps { tsns: plan.wrap_in(), messages };
        Ok(Station {
            endpoint: boot(&settings, wraps, seed, host, 0, &addresses)?,
            host,
            settings,
            wraps,
            seed,
            addresses,
            peer_addresses,
            sessions: BTreeMap::new(),
            current: None,
            backlog: VecDeque::new(),
            reading: true,
            waits: false,
            restarts: 0,
            sent_at: [None; 2],
            keys: keys(seed),
            tally: Tally::default(),
        })
    }

    /// Carries out a deed of the application. `numbers` is the number of sessions of both hosts.
    pub(super) fn act(
        &mut self,
        now: Instant,
        what: &Move,
        ledger: &mut Ledger,
        numbers: &mut u32,
    ) -> Result<(), String> {
        match what {
            Move::Connect { addresses } => self.connect(now, usize::from(*addresses), numbers),
            Move::Send { len, stream, unordered, reliability, times } => {
                let message = Waiting {
                    len: (*len as usize).min(LONGEST),
                    stream: *stream,
                    unordered: *unordered,
                    reliability: *reliability,
                };
                self.backlog.extend((0..*times).map(|_| message));
                self.hand_over(now, ledger)?;
            }
            Move::Pause => self.reading = false,
            Move::Resume => self.resume(now, ledger)?,
            Move::Shutdown => self.end(now, Ending::Shutdown),
            Move::Abort => self.end(now, Ending::Abort),
            Move::Restart => {
                self.count(now);
                self.restarts += 1;
                let (settings, addresses) = (&self.settings, &self.addresses);
                self.endpoint = boot(settings, self.wraps, self.seed, self.host, self.restarts, addresses)?;
                self.keys = keys(self.seed);
                self.sessions.clear();
                self.current = None;
                self.backlog.clear();
                self.reading = true;
            }
            Move::Primary { path } => {
                if let Some(mut association) = self.association() {
                    // A path that does not exist, or not yet, is refused.
                    association.set_primary(PathId(*path)).ok();
                }
            }
            Move::Reset { stream, direction } => self.reconfigure(|association| {
                let (outbound, _) = association.streams();
                let streams = stream.map_or(Streams::All, |stream| StreamId(stream % outbound.max(1)).into());
                let answers = if *direction == Direction::Both { 2 } else { 1 };
                association.reset_streams(now, streams, *direction).map(|()| answers)
            }),
            Move::ResetAssociation => {
                self.reconfigure(|association| association.reset_association(now).map(|()| 1));
            }
            Move::AddStreams { outbound, inbound } => self.reconfigure(|association| {
                let answers = u32::from(*outbound > 0) + u32::from(*inbound > 0);
                association.add_streams(now, *outbound, *inbound).map(|()| answers)
            }),
            Move::UseKey { number } => {
                if let Some(mut association) = self.association() {
                    // Refused if AUTH was not negotiated.
                    association.use_shared_key(*number).ok();
                }
            }
            Move::Rekey => {
                if let Some(id) = self.current {
                    is_carried_out(self.keys.rekey(now, &mut self.endpoint, id))?;
                }
            }
            Move::Address { change, path } => self.change_address(now, *change, usize::from(*path)),
            Move::Scheduler { name } => {
                if let Some(mut association) = self.association() {
                    match association.set_stream_scheduler(name, "") {
                        Ok(()) | Err(ScheduleError::NotOpen) => {}
                        Err(error) => return Err(error.to_string()),
                    }
                }
            }
        }
        Ok(())
    }

    /// Records that the host sends a packet.
    pub(super) fn sends(&mut self, now: Instant) {
        if self.sent_at[0] != Some(now) {
            self.sent_at = [Some(now), self.sent_at[0]];
        }
    }

    /// Processes the events of the endpoint. Returns whether there were any.
    ///
    /// # Errors
    /// An unexpected event, or a wrong message.
    pub(super) fn serve(
        &mut self,
        now: Instant,
        ledger: &mut Ledger,
        numbers: &mut u32,
        log: &mut Log,
    ) -> Result<bool, String> {
        let mut any = false;
        while let Some((id, event)) = self.endpoint.poll_event() {
            any = true;
            log.line(now, || format!("{}: {event:?}", self.host.name()));
            if let Some(census) = &mut self.tally.census {
                census.event(&event);
            }
            is_carried_out(self.keys.on_event(now, &mut self.endpoint, id, &event))?;
            match event {
                Event::Established { .. } => self.on_established(id, numbers, ledger)?,
                Event::Restarted { .. } => self.on_restarted(id, numbers)?,
                Event::Abandoned { ppid, bytes, sent, .. } => ledger.abandoned(ppid, bytes, sent)?,
                Event::Reconfigured { .. } => self.on_reconfigured(id)?,
                Event::Readable => self.read(now, id, ledger)?,
                Event::Closed(reason) => self.on_closed(now, id, reason, ledger)?,
                Event::SchedulerFailed { kind, name, fault } if !turncoat::is_turncoat(&name) => {
                    return Err(format!("{kind} {name}: {fault}"));
                }
                _ => {}
            }
        }
        if any {
            self.hand_over(now, ledger)?;
        }
        Ok(any)
    }

    /// Reads the messages that wait, and from now on all that arrive.
    pub(super) fn resume(&mut self, now: Instant, ledger: &mut Ledger) -> Result<(), String> {
        self.reading = true;
        let ids: Vec<AssociationId> = self.sessions.keys().copied().collect();
        ids.into_iter().try_for_each(|id| self.read(now, id, ledger))
    }

    /// Returns whether the association has accepted all messages, or cannot accept any more.
    pub(super) fn has_handed_over(&self) -> bool {
        self.backlog.is_empty() || self.current.is_none_or(|id| self.sessions[&id].closed.is_some())
    }

    /// Returns whether no association is open.
    pub(super) fn is_over(&self) -> bool {
        self.sessions.values().all(|session| session.closed.is_some())
    }

    /// Returns whether the application has requested the end of an association that is still open.
    pub(super) fn is_ending(&self) -> bool {
        self.sessions.values().any(|session| session.closed.is_none() && session.ending != Ending::None)
    }

    /// Returns whether an association of this host had ended before the peer's `session` ended.
    pub(super) fn was_over_before(&self, session: &Session) -> bool {
        let Some((end, _)) = &session.closed else { return false };
        self.sessions.values().any(|own| own.closed.as_ref().is_some_and(|(at, _)| at < end))
    }

    /// Shuts down all open associations.
    pub(super) fn end_all(&mut self, now: Instant) {
        let open: Vec<AssociationId> =
            self.sessions.iter().filter(|(_, session)| session.closed.is_none()).map(|(&id, _)| id).collect();
        for id in open {
            if let Some(mut association) = self.endpoint.association(id) {
                association.shutdown(now);
            }
            self.sessions.entry(id).and_modify(|session| {
                if session.ending == Ending::None {
                    session.ending = Ending::Shutdown;
                }
            });
        }
    }

    /// Sends a request about streams. Responses are expected only if the request was accepted.
    fn reconfigure(
        &mut self,
        ask: impl FnOnce(&mut AssociationHandle<'_>) -> Result<u32, ReconfigurationError>,
    ) {
        let Some(id) = self.current else { return };
        let Some(mut association) = self.endpoint.association(id) else { return };
        if let (Ok(answers), Some(session)) = (ask(&mut association), self.sessions.get_mut(&id)) {
            session.unanswered += answers;
        }
    }

    fn connect(&mut self, now: Instant, addresses: usize, numbers: &mut u32) {
        if !self.is_over() {
            return;
        }
        let known = addresses.clamp(1, self.peer_addresses.len());
        let connect = Connect::new(
            self.addresses.clone(),
            self.peer_addresses[..known].to_vec(),
            port(self.host.peer()),
            self.settings.0.clone(),
        );
        // The peer may have opened an association at the same instant.
        if let Ok(id) = self.endpoint.connect(now, connect) {
            self.enter(id, false, numbers);
        }
    }

    /// Changes an address. Requests that are not possible now, or not negotiated with the peer, are refused.
    fn change_address(&mut self, now: Instant, change: AddressChange, path: usize) {
        let Some(&address) = self.addresses.get(path) else { return };
        let Some(mut association) = self.association() else { return };
        match change {
            AddressChange::Add => association.add_address(now, address),
            AddressChange::Remove => association.remove_address(now, address),
            AddressChange::Prefer => association.set_peer_primary(now, address),
        }
        .ok();
    }

    fn enter(&mut self, id: AssociationId, established: bool, numbers: &mut u32) {
        *numbers += 1;
        // The last parts of a message may be read after the peer has restarted.
        let joiner = self.sessions.remove(&id).map(|session| session.joiner).unwrap_or_default();
        let session = Session {
            number: *numbers,
            established,
            ending: Ending::None,
            closed: None,
            last_sent: None,
            accepted: 0,
            delivered: 0,
            unanswered: 0,
            timeouts: Vec::new(),
            joiner,
        };
        self.sessions.insert(id, session);
        self.current = Some(id);
    }

    fn on_established(
        &mut self,
        id: AssociationId,
        numbers: &mut u32,
        ledger: &mut Ledger,
    ) -> Result<(), String> {
        if let Some(mut association) = self.endpoint.association(id) {
            for number in KEYS {
                // Refused if AUTH was not negotiated.
                association.set_shared_key(number, format!("the secret of key {number}").as_bytes()).ok();
            }
        }
        match self.sessions.get_mut(&id) {
            None => self.enter(id, true, numbers),
            Some(session) if session.established => {
                return Err("an association was established twice".to_owned());
            }
            Some(session) => {
                session.established = true;
                ledger.set_up(session.number);
            }
        }
        Ok(())
    }

    fn on_reconfigured(&mut self, id: AssociationId) -> Result<(), String> {
        let session = self.sessions.get_mut(&id).ok_or("an unknown association was reconfigured")?;
        let left = session.unanswered.checked_sub(1);
        session.unanswered = left.ok_or("a request was answered that nobody made".to_owned())?;
        Ok(())
    }

    /// The peer has restarted: data sent to it before may be lost, and counting begins again.
    fn on_restarted(&mut self, id: AssociationId, numbers: &mut u32) -> Result<(), String> {
        match self.sessions.get(&id) {
            Some(session) if session.established && session.closed.is_none() => {
                self.enter(id, true, numbers);
                Ok(())
            }
            session => Err(format!("a peer has restarted in {session:?}")),
        }
    }

    fn on_closed(
        &mut self,
        now: Instant,
        id: AssociationId,
        reason: CloseReason,
        ledger: &mut Ledger,
    ) -> Result<(), String> {
        if self.reading {
            self.read(now, id, ledger)?;
        }
        let Some(session) = self.sessions.get_mut(&id) else {
            return Err(format!("an unknown association has closed: {reason:?}"));
        };
        ledger.set_up(session.number);
        *self.tally.closed.entry(name_of(&reason)).or_default() += 1;
        session.last_sent = self.sent_at.into_iter().flatten().find(|&at| at < now);
        if let Some(before) = session.closed.replace((now, reason)) {
            return Err(format!("an association has closed twice, first with {before:?}"));
        }
        Ok(())
    }

    fn end(&mut self, now: Instant, ending: Ending) {
        let Some(id) = self.current else { return };
        let Some(mut association) = self.endpoint.association(id) else { return };
        match ending {
            Ending::Shutdown => association.shutdown(now),
            Ending::Abort => association.abort(now, "the script says so"),
            Ending::None => {}
        }
        if let Some(session) = self.sessions.get_mut(&id) {
            session.ending = ending;
        }
    }

    /// Passes as many messages to the association as it accepts.
    fn hand_over(&mut self, now: Instant, ledger: &mut Ledger) -> Result<(), String> {
        let Some(id) = self.current else { return Ok(()) };
        let Some(session) = self.sessions.get_mut(&id) else { return Ok(()) };
        let Some(mut association) = self.endpoint.association(id) else { return Ok(()) };
        let early = !session.established;
        let streams = if early { self.settings.0.outbound_streams } else { association.streams().0 };
        while let Some(&Waiting { len, stream, unordered, reliability }) = self.backlog.front() {
            let mut options = SendOptions::on(StreamId(stream % streams.max(1)));
            options.unordered = unordered;
            options.reliability = reliability;
            let bytes = ledger.number(&mut options, len);
            match association.send(now, options, bytes) {
                Ok(()) => {
                    ledger.accepted(session.number, &options, len, early);
                    session.accepted += 1;
                }
                Err(SendError::Full { free }) if free >= len => {
                    return Err(format!("{len} bytes were refused although {free} are free"));
                }
                Err(SendError::Full { .. }) => break,
                Err(SendError::NotOpen { .. }) if !session.established => break,
                Err(SendError::NotOpen { .. } | SendError::TooLong { .. }) => {}
                // The peer's INIT ACK has arrived meanwhile, and allows fewer streams.
                Err(SendError::NoSuchStream { .. }) if early => {}
                Err(error) => return Err(format!("a message was refused: {error}")),
            }
            self.backlog.pop_front();
        }
        Ok(())
    }

    fn read(&mut self, now: Instant, id: AssociationId, ledger: &mut Ledger) -> Result<(), String> {
        if !self.reading {
            return Ok(());
        }
        let Some(session) = self.sessions.get_mut(&id) else { return Ok(()) };
        let Some(mut association) = self.endpoint.association(id) else { return Ok(()) };
        while let Some(message) = association.recv(now) {
            self.tally.bytes += message.payload.len() as u64;
            if let Some(census) = &mut self.tally.census {
                census.message(message.part);
            }
            if let Some(message) = session.joiner.join(message) {
                session.delivered += 1;
                let to = Receiver { life: self.restarts, session: session.number };
                ledger.delivered(&message, to)?;
            }
        }
        Ok(())
    }

    /// Returns the windows of the association that sends messages.
    pub(super) fn windows(&mut self, now: Instant) -> Option<Windows> {
        let (mtu, compares_window) = (self.settings.0.mtu.0, !self.overruns());
        let association = self.association()?;
        let room = association.stats(now)?.peer_window;
        let peer = compares_window.then_some(room);
        let paths = association.path_stats(now);
        let known = &mut self.sessions.get_mut(&self.current?)?.timeouts;
        known.resize(paths.len(), Timeouts::default());
        known.iter_mut().zip(&paths).for_each(|(known, path)| known.update(path));
        let silent = known.iter().map(|known| known.silent).collect();
        Some(Windows { paths, silent, peer, mtu })
    }

    /// Returns whether the host may exceed the peer's receiver window, because it does not compare it before each packet.
    pub(super) fn overruns(&self) -> bool {
        self.settings.0.experiment.peer_window_test == PeerWindowTest::Sack
    }

    /// Describes the state of the host for error reports.
    pub(super) fn describe(&mut self, now: Instant) -> String {
        let mut text = format!("{} with {} messages to send", self.host.name(), self.backlog.len());
        for (&id, session) in &self.sessions {
            let Some(association) = self.endpoint.association(id) else { continue };
            let state = association.state_name();
            text += &format!(", session {} {state} {:?}", session.number, session.closed);
            if let Some(stats) = association.stats(now).filter(|_| session.closed.is_none()) {
                text += &format!(
                    " ({} B unsent, {} B in flight, {} B in the send buffer, peer's window {} B)",
                    stats.unsent, stats.flight, stats.send_buffer_used, stats.peer_window
                );
            }
        }
        text
    }

    /// Counts the mechanisms that acted since the last restart, if they are requested.
    pub(super) fn count(&mut self, now: Instant) {
        let Some(census) = &mut self.tally.census else { return };
        for &id in self.sessions.keys() {
            if let Some(association) = self.endpoint.association(id)
                && let Some(stats) = association.stats(now)
            {
                census.association(&stats, &association.path_stats(now), &association.coverage());
            }
        }
        census.discards(&self.endpoint.discards());
    }

    fn association(&mut self) -> Option<AssociationHandle<'_>> {
        self.endpoint.association(self.current?)
    }

    /// Returns whether the host encrypts its associations if its peer supports encryption.
    pub(super) fn encrypts(&self) -> bool {
        self.settings.0.encryption != Encryption::Off
    }

    /// Returns the shortest time after which the host may consider an answer lost.
    pub(super) fn shortest_timer(&self) -> Duration {
        let config = &self.settings.0;
        config.rto_initial.min(config.rto_min).min(config.rto_max)
    }

    /// Returns the size of the largest packet that the host sends, in bytes.
    pub(super) fn longest_packet(&self) -> usize {
        self.settings.0.mtu.0
    }

    /// Returns the longest time of a shutdown.
    pub(super) fn shutdown_guard(&self) -> Duration {
        5 * self.settings.0.rto_max
    }

    /// Returns the longest time for which the host's timers may delay its end: until all retransmissions are done, and
    /// until heartbeats have detected that a peer which sends nothing is gone.
    pub(super) fn patience(&self) -> Duration {
        let (config, _) = &self.settings;
        let heartbeats = config.heartbeat_interval * 2 + config.rto_max;
        config.rto_max * 40 + heartbeats * (config.association_max_retrans + 2)
    }
}

/// Identifiers of the shared keys that both sides have besides the null key.
pub(crate) const KEYS: std::ops::RangeInclusive<u16> = 1..=3;

/// Returns the key management of a host, which has the same keys after a restart.
fn keys(seed: Seed) -> SimulatedKeys {
    SimulatedKeys::new(seed.bytes("keys"))
}

/// Checks that a step of the key management was carried out; this is not required of an association that is ending.
fn is_carried_out(step: Result<(), ProtectionError>) -> Result<(), String> {
    match step {
        Ok(()) | Err(ProtectionError::NotOpen { .. }) => Ok(()),
        Err(error) => Err(format!("a step of the key management was refused: {error}")),
    }
}

/// Returns the SCTP port of a host.
pub(super) fn port(host: Host) -> u16 {
    match host {
        Host::Client => 4000,
        Host::Server => 5000,
    }
}

fn boot(
    (association, endpoint): &(AssociationConfig, EndpointConfig),
    wraps: Wraps,
    seed: Seed,
    host: Host,
    life: u32,
    addresses: &[IpAddr],
) -> Result<Endpoint, String> {
    let seed = seed.bytes(&format!("{} life {life}", host.name()));
    let registry = turncoat::registry().map_err(|error| error.to_string())?;
    let mut endpoint = Endpoint::with_schedulers(endpoint.clone(), association.clone(), registry, seed)
        .map_err(|error| error.to_string())?;
    endpoint.set_local_addresses(addresses.to_vec());
    if let Some(tsns) = wraps.tsns.filter(|_| life == 0) {
        endpoint.begin_before_the_wrap(tsns);
    }
    let [own, peer] = wraps.messages;
    endpoint.begin_messages_before_the_wrap(own, peer);
    Ok(endpoint)
}

/// Returns the name of a reason in the summary.
fn name_of(reason: &CloseReason) -> &'static str {
    match reason {
        CloseReason::Graceful => "graceful",
        CloseReason::Aborted => "aborted",
        CloseReason::AbortedByPeer { .. } => "aborted_by_peer",
        CloseReason::SetupTimeout => "set_up_timeout",
        CloseReason::PathsLost => "paths_lost",
        CloseReason::ShutdownTimeout => "shutdown_timeout",
        CloseReason::PeerFault(_) | CloseReason::PeerUnprotected => "peer_fault",
        _ => "other",
    }
}
