//! The initiator's side of the four-way handshake (RFC 9260 §5.1): INIT is sent until INIT ACK arrives, then COOKIE ECHO until
//! COOKIE ACK arrives. T1 retransmits both, over the pairs of addresses in turn.
//!
//! The set-up ends with the `Negotiated` of an association, or with a failure. No module of the association exists before that,
//! unless the application has sent messages already (`early`).

mod early;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tresse_policy::engine::NamesInUse;
use tresse_policy::{Instant, Registry, ScheduleError};
use tresse_wire::{
    Abort, Cause, Causes, Chunk, CommonHeader, CookieEcho, ErrorChunk, Init, List, PacketWriter, Param, Seal,
    Tsn,
};

use super::answer::Answer;
use super::peer::{address_type, reach};
use super::scope::Scope;
use super::settings::{Settings, append};
use super::shutdown::shortened;
use super::{Association, Identity, InitFault, Negotiated, PathSeed, Peer};
use crate::collections::InlineVec as Few;
use crate::config::{ConfigError, StreamMap};
use crate::extensions::auth::{Auth, Handshake, SharedKeys};
use crate::interface::adjustment::Adjustment;
use crate::interface::datagram::Transmit;
use crate::interface::error::KeyError;
use crate::interface::event::CloseReason;
use crate::paths::{pairs, unreachable};

pub(crate) use early::Early;
pub(super) use early::EarlyMessage;

/// An association that this side is setting up.
pub(crate) struct Setup {
    config: Arc<Settings>,
    /// Marks the names of its schedulers as in use.
    reserved: Arc<NamesInUse>,
    local_port: u16,
    remote_port: u16,
    local_tag: u32,
    initial_tsn: Tsn,
    local: Vec<IpAddr>,
    remote: Vec<IpAddr>,
    encapsulation_port: Option<u16>,
    checksum_offload: bool,
    auth: Handshake,
    phase: Phase,
    /// The pairs of addresses that can be used, the local one first.
    pairs: Few<(IpAddr, IpAddr)>,
    /// Number of the pair in use, modulo the number of pairs.
    position: usize,
    attempts: u32,
    /// Number of cookies that the peer reported as stale.
    stale_cookies: u32,
    /// Number of local ports with which the peer had an association already.
    ports_taken: u32,
    /// Milliseconds by which the peer is asked to extend the life of its cookie.
    cookie_extension: Option<u32>,
    rto: Duration,
    /// Largest RTO of INIT and COOKIE ECHO, if it differs from that of the association.
    rto_max: Option<Duration>,
    due: bool,
    t1: Option<Instant>,
    first_sent: Option<Instant>,
    /// Initiate tags of the last INITs of the peer that came before its INIT ACK: both sides are setting up.
    peer_tags: Vec<u32>,
    /// Chunks of unknown types that are reported to the peer.
    unrecognised: Vec<Bytes>,
    /// Messages that the application sent before the end of the set-up; allocated with the first one.
    early: Option<Box<Early>>,
}

#[expect(clippy::large_enum_variant, reason = "a set-up has room for the second from its beginning")]
enum Phase {
    CookieWait,
    CookieEchoed(Answer),
}

/// Time that is added to a round trip when a cookie was stale (RFC 9260 §5.2.6: at most a second).
const COOKIE_MARGIN: Duration = Duration::from_secs(1);

/// Outcome of a set-up.
pub(crate) enum SetupStep {
    /// The set-up continues.
    Waiting,
    /// COOKIE ACK arrived; with the round-trip time of COOKIE ECHO, if that was sent only once.
    Done(Option<Duration>),
    /// The same, with the association that was created early.
    Ready(Box<Association>, Option<Duration>),
    /// The INIT ACK cannot be used, so the peer gets an ABORT.
    Refused {
        /// Fault of the INIT ACK.
        fault: InitFault,
        /// Initiate tag of the INIT ACK, perhaps 0.
        peer_tag: u32,
    },
    /// The peer reported its own cookies as stale too often.
    GivenUp,
}

/// Parts of a set-up.
pub(crate) struct SetupParts {
    pub(crate) config: Arc<Settings>,
    /// Names of the schedulers of `config`.
    pub(crate) schedulers: Arc<NamesInUse>,
    pub(crate) local_port: u16,
    pub(crate) remote_port: u16,
    pub(crate) local_tag: u32,
    pub(crate) initial_tsn: Tsn,
    pub(crate) local: Vec<IpAddr>,
    pub(crate) remote: Vec<IpAddr>,
    pub(crate) encapsulation_port: Option<u16>,
    pub(crate) rto_max: Option<Duration>,
    pub(crate) checksum_offload: bool,
    pub(crate) auth: Handshake,
}

/// Most tags of earlier INITs of the peer that are remembered in COOKIE-WAIT.
const MOST_PEER_TAGS: usize = 4;

/// Most chunks of unknown types that are kept for the report.
const MOST_UNRECOGNISED: usize = 4;

impl Setup {
    /// Creates a set-up in COOKIE-WAIT with an INIT to send.
    pub(crate) fn new(parts: SetupParts) -> Self {
        let mut local = parts.local;
        let scope = reach(&parts.config, parts.remote.iter().copied());
        leave_out_useless(&mut local, &parts.remote, scope);
        let mut setup = Setup {
            local,
            rto: parts.config.rto_initial,
            config: parts.config,
            reserved: parts.schedulers,
            local_port: parts.local_port,
            remote_port: parts.remote_port,
            local_tag: parts.local_tag,
            initial_tsn: parts.initial_tsn,
            remote: parts.remote,
            encapsulation_port: parts.encapsulation_port,
            rto_max: parts.rto_max,
            checksum_offload: parts.checksum_offload,
            auth: parts.auth,
            phase: Phase::CookieWait,
            pairs: Few::default(),
            position: 0,
            attempts: 0,
            stale_cookies: 0,
            ports_taken: 0,
            cookie_extension: None,
            due: true,
            t1: None,
            first_sent: None,
            peer_tags: Vec::new(),
            unrecognised: Vec::new(),
            early: None,
        };
        setup.enter(Phase::CookieWait);
        setup
    }

    pub(crate) fn local_tag(&self) -> u32 {
        self.local_tag
    }

    pub(crate) fn initial_tsn(&self) -> Tsn {
        self.initial_tsn
    }

    /// Remembers the initiate tag of an INIT of the peer.
    pub(crate) fn on_peer_init(&mut self, tag: u32) {
        if matches!(self.phase, Phase::CookieWait) && !self.peer_tags.contains(&tag) {
            if self.peer_tags.len() == MOST_PEER_TAGS {
                self.peer_tags.remove(0);
            }
            self.peer_tags.push(tag);
        }
    }

    /// Takes the remembered tags other than `initiate_tag`, which is that of an INIT ACK: the peer has restarted since it sent
    /// the INITs with them.
    pub(crate) fn superseded(&mut self, initiate_tag: u32) -> impl Iterator<Item = u32> + use<> {
        let tags = if matches!(self.phase, Phase::CookieWait) {
            std::mem::take(&mut self.peer_tags)
        } else {
            Vec::new()
        };
        tags.into_iter().filter(move |&tag| tag != initiate_tag)
    }

    /// Keeps a chunk of an unknown type that has to be reported (RFC 9260 §3.2). It is reported once the association is
    /// established, because only COOKIE ECHO may be sent before COOKIE ACK (§5.1).
    pub(crate) fn note_unrecognised(&mut self, chunk: &[u8]) {
        if self.unrecognised.len() < MOST_UNRECOGNISED {
            self.unrecognised.push(Bytes::copy_from_slice(chunk));
        }
    }

    /// Takes the chunks of unknown types that have to be reported.
    pub(crate) fn take_unrecognised(&mut self) -> Vec<Bytes> {
        std::mem::take(&mut self.unrecognised)
    }

    /// State of authentication during the handshake.
    pub(crate) fn auth(&mut self) -> &mut Handshake {
        &mut self.auth
    }

    pub(crate) fn settings(&self) -> &Arc<Settings> {
        &self.config
    }

    /// Sets the stream scheduler of the future association.
    ///
    /// # Errors
    /// The name is unknown, or the scheduler refuses its configuration.
    pub(crate) fn set_stream_scheduler(
        &mut self,
        registry: &Registry,
        name: &str,
        config: &str,
    ) -> Result<(), ScheduleError> {
        Arc::make_mut(&mut self.reserved).stream =
            registry.build_stream_scheduler(name, config)?.name_in_use();
        if let Some(association) = self.ahead() {
            association.change_queues(|queues| queues.set_scheduler(registry, name, config))?;
        }
        self.config = self.config.with(|settings| {
            name.clone_into(&mut settings.stream_scheduler);
            config.clone_into(&mut settings.stream_scheduler_config);
        });
        Ok(())
    }

    /// Sets the stream map of the future association.
    ///
    /// # Errors
    /// The stream scheduler cannot be built for the groups of the map.
    pub(crate) fn set_stream_map(
        &mut self,
        registry: &Registry,
        map: StreamMap,
    ) -> Result<(), ScheduleError> {
        if let Some(association) = self.ahead() {
            association.change_queues(|queues| queues.set_map(registry, map.clone()))?;
        }
        self.config = self.config.with(|settings| settings.stream_map = map);
        Ok(())
    }

    /// Changes the settings of the future association.
    ///
    /// # Errors
    /// A value is invalid, or contradicts another one.
    pub(crate) fn adjust(&mut self, change: &Adjustment) -> Result<(), ConfigError> {
        let config = self.config.with(|config| change.apply(config));
        config.check()?;
        self.ahead().map_or(Ok(()), |association| association.adjust(change))?;
        self.config = config;
        Ok(())
    }

    /// Changes the shared keys of the future association.
    ///
    /// # Errors
    /// The error of `change`.
    pub(crate) fn change_keys(
        &mut self,
        change: impl Fn(&mut SharedKeys) -> Result<(), KeyError>,
    ) -> Result<(), KeyError> {
        self.auth.change_keys(&change)?;
        self.ahead().map_or(Ok(()), |association| association.change_keys(change))
    }

    /// The set-up's state in RFC 9260.
    pub(crate) fn state_name(&self) -> &'static str {
        match self.phase {
            Phase::CookieWait => "COOKIE-WAIT",
            Phase::CookieEchoed(_) => "COOKIE-ECHOED",
        }
    }

    /// The tag that packets to the peer carry, once it is known.
    pub(crate) fn peer_tag(&self) -> Option<u32> {
        match &self.phase {
            Phase::CookieWait => None,
            Phase::CookieEchoed(answer) => Some(answer.peer.tag),
        }
    }

    /// The local addresses that the peer learns from a packet from `local`: its source, and those that its INIT lists. The
    /// association can use no others.
    pub(crate) fn shown_addresses(&self, local: IpAddr) -> Few<IpAddr> {
        let lists = self.config.list_addresses;
        let shown = |&address: &IpAddr| address == local || (lists && self.scope().covers(address));
        let shown: Few<IpAddr> = self.local.iter().copied().filter(shown).collect();
        if shown.is_empty() { Few::of(local) } else { shown }
    }

    fn scope(&self) -> Scope {
        reach(&self.config, self.remote.iter().copied())
    }

    /// Returns whether the application named this address of the peer.
    pub(crate) fn was_asked_for(&self, remote: IpAddr) -> bool {
        self.remote.contains(&remote)
    }

    /// Returns whether an INIT of the peer may have this address. Before the INIT ACK any address is allowed; after it, only
    /// those that the association will have (RFC 9260 §5.2.1).
    pub(crate) fn may_have(&self, remote: IpAddr) -> bool {
        match &self.phase {
            Phase::CookieWait => true,
            Phase::CookieEchoed(answer) => self.was_asked_for(remote) || answer.has(remote),
        }
    }

    pub(crate) fn remote_port(&self) -> u16 {
        self.remote_port
    }

    /// Addresses and port under which the endpoint finds the set-up, besides its tag.
    pub(crate) fn peer_addresses(&self) -> impl Iterator<Item = (IpAddr, u16)> {
        self.remote.iter().map(|&remote| (remote, self.remote_port))
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.t1
    }

    pub(crate) fn is_due(&self) -> bool {
        self.due
    }

    /// Appends INIT or COOKIE ECHO if one is due.
    pub(crate) fn write_packet(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<Transmit> {
        if !std::mem::replace(&mut self.due, false) {
            return None;
        }
        self.t1 = Some(now + self.rto);
        if self.first_sent.is_none() {
            self.first_sent = Some(now);
        }
        match &self.phase {
            Phase::CookieWait => self.write_init(buffer),
            Phase::CookieEchoed(_) => self.write_cookie_echo(now, buffer),
        }
    }

    fn write_cookie_echo(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<Transmit> {
        let between = self.pair()?;
        let mut writer = self.writer(buffer);
        let Phase::CookieEchoed(answer) = &self.phase else { return None };
        let echo = Chunk::CookieEcho(CookieEcho { cookie: &answer.cookie });
        let causes = [Cause::UnrecognisedParameters(&answer.unrecognised)];
        let error = Chunk::Error(ErrorChunk { causes: Causes::Values(&causes) });
        let chunks = [echo, error];
        let count = if answer.unrecognised.is_empty() { 1 } else { 2 };
        if chunks[..count].iter().any(|chunk| writer.push(chunk).is_err()) {
            writer.discard();
            return None;
        }
        let early = self.early.as_mut();
        let path = early.and_then(|early| early.write_behind_cookie(now, between, &mut writer));
        let transmit = self.finish_packet(writer, between);
        if let (Some(early), Some(path)) = (&mut self.early, path) {
            early.on_sent(now, path, transmit.size);
        }
        Some(transmit)
    }

    fn write_init(&self, buffer: &mut Vec<u8>) -> Option<Transmit> {
        let (source, _) = self.pair()?;
        let listed = Some(self.shown_addresses(source)).filter(|shown| shown.len() > 1);
        let random = self.auth.random();
        let keys = self.config.key_parameter(random);
        let mut params = self.config.params(&listed.unwrap_or_default(), Some(&random), keys.as_deref());
        // A single address shows its type by itself, and some implementations with one address (pion/sctp) refuse parameters that
        // they do not know.
        if self.local.len() > 1 {
            let mut types: Vec<_> = self.local.iter().copied().map(address_type).collect();
            types.sort_unstable();
            types.dedup();
            append(&mut params, Param::SupportedAddressTypes(List::Values(&types)));
        }
        if let Some(millis) = self.cookie_extension {
            append(&mut params, Param::CookiePreservative(millis));
        }
        let streams = self.config.outbound_streams;
        let init = self.config.init(self.local_tag, self.initial_tsn, streams, &params);
        self.write(&[Chunk::Init(init)], buffer)
    }

    /// Appends an ABORT for a peer that has answered, and so may have created the association already: this side gives up. `None`
    /// if the peer has not answered, because then it keeps no state.
    pub(crate) fn write_abort(&self, why: &[u8], buffer: &mut Vec<u8>) -> Option<Transmit> {
        self.peer_tag()?;
        let causes = [Cause::UserAbort(shortened(why))];
        self.write(&[Chunk::Abort(Abort { tag_reflected: false, causes: Causes::Values(&causes) })], buffer)
    }

    /// Appends a packet with these chunks for the pair of addresses in use.
    fn write(&self, chunks: &[Chunk<'_>], buffer: &mut Vec<u8>) -> Option<Transmit> {
        let between = self.pair()?;
        let mut writer = self.writer(buffer);
        if chunks.iter().any(|chunk| writer.push(chunk).is_err()) {
            writer.discard();
            return None;
        }
        Some(self.finish_packet(writer, between))
    }

    /// Begins a packet of any length.
    fn writer<'b>(&self, buffer: &'b mut Vec<u8>) -> PacketWriter<'b> {
        let header = CommonHeader {
            source_port: self.local_port,
            destination_port: self.remote_port,
            verification_tag: self.peer_tag().unwrap_or(0),
        };
        self.auth.guarded(PacketWriter::new(buffer, header, usize::from(u16::MAX)))
    }

    fn finish_packet(&self, mut writer: PacketWriter<'_>, between: (IpAddr, IpAddr)) -> Transmit {
        self.auth.authenticate(&mut writer);
        let len = writer.finish(if self.checksum_offload { Seal::Zero } else { Seal::Crc32c });
        // No chunk of a set-up can be split: one larger than the path's packets leaves as IP fragments.
        Transmit { may_fragment: true, ..Transmit::single(between, self.encapsulation_port, len) }
    }

    /// Handles T1, if it has expired: the chunk is sent again over the next pair of addresses. Returns the reason if the set-up
    /// gives up.
    pub(crate) fn handle_timeout(&mut self, now: Instant) -> Option<CloseReason> {
        if self.t1.is_none_or(|t1| t1 > now) {
            return None;
        }
        self.attempts += 1;
        if self.attempts > self.config.max_init_retransmits {
            return Some(CloseReason::SetupTimeout);
        }
        self.rto = (self.rto * 2).min(self.rto_max());
        let before = self.pair();
        self.position += 1;
        let next = self.pair();
        if let Some(early) = &mut self.early {
            early.on_cookie_lost(now, before, next);
        }
        self.t1 = None;
        self.due = true;
        None
    }

    /// Handles an INIT ACK that came `between` these addresses, the local one first.
    pub(crate) fn on_init_ack(&mut self, init: &Init<'_>, between: (IpAddr, IpAddr)) -> SetupStep {
        if !matches!(self.phase, Phase::CookieWait) {
            return SetupStep::Waiting;
        }
        let scope = self.scope().min(reach(&self.config, [between.1]));
        let random = self.auth.random();
        let answer = Answer::read(init, &self.config, scope, between).and_then(|mut answer| {
            if self.config.protection(random, &answer.peer)?.is_some() {
                // An association never uses both AUTH and protection (draft-ietf-tsvwg-sctp-dtls-chunk-04 §3.2).
                answer.peer.auth = None;
            }
            Ok(answer)
        });
        match answer {
            Ok(mut answer) => {
                let offer = self.config.auth_offer(self.auth.random());
                self.auth.on_answer(offer, answer.peer.auth.take());
                self.enter(Phase::CookieEchoed(answer));
                SetupStep::Waiting
            }
            Err(fault) => SetupStep::Refused { fault, peer_tag: init.initiate_tag },
        }
    }

    /// Returns whether COOKIE ECHO is to be answered: the state is COOKIE-ECHOED.
    pub(crate) fn awaits_cookie_ack(&self) -> bool {
        matches!(self.phase, Phase::CookieEchoed(_))
    }

    /// Handles a stale cookie: the set-up begins again with INIT (RFC 9260 §5.2.6), but no more often than INIT may be
    /// retransmitted. The peer is asked to extend the life of the next cookie by a round trip and `COOKIE_MARGIN`.
    ///
    /// The new attempt has a tag and TSNs of its own: otherwise a late answer to the last attempt would be accepted as its own.
    pub(crate) fn on_stale_cookie(&mut self, now: Instant, tag: u32, tsn: Tsn) -> SetupStep {
        (self.local_tag, self.initial_tsn) = (tag, tsn);
        let round_trip = self.first_sent.map(|sent| now.since(sent)).unwrap_or_default();
        let extension = round_trip + COOKIE_MARGIN;
        self.cookie_extension = Some(u32::try_from(extension.as_millis()).unwrap_or(u32::MAX));
        self.stale_cookies += 1;
        if self.stale_cookies > self.config.max_init_retransmits {
            return SetupStep::GivenUp;
        }
        self.drop_ahead();
        self.unrecognised.clear();
        self.enter(Phase::CookieWait);
        SetupStep::Waiting
    }

    /// Begins again with another port, because the peer has an association with this host's address and port already. Returns
    /// false if INIT was answered otherwise, or if this has happened as often as INIT may be retransmitted.
    pub(crate) fn on_port_taken(&mut self, port: u16, tag: u32, tsn: Tsn) -> bool {
        self.ports_taken += 1;
        if !matches!(self.phase, Phase::CookieWait) || self.ports_taken > self.config.max_init_retransmits {
            return false;
        }
        (self.local_port, self.local_tag, self.initial_tsn) = (port, tag, tsn);
        self.enter(Phase::CookieWait);
        true
    }

    /// Handles COOKIE ACK: the set-up is complete.
    pub(crate) fn on_cookie_ack(&mut self, now: Instant) -> SetupStep {
        if !self.awaits_cookie_ack() {
            return SetupStep::Waiting;
        }
        let rtt = self.first_sent.filter(|_| self.attempts == 0).map(|sent| now.since(sent));
        if let Some(association) = self.take_ahead(now) {
            return SetupStep::Ready(association, rtt);
        }
        SetupStep::Done(rtt)
    }

    /// The parameters from which the association is created, once the set-up is complete. The set-up must not be used after this.
    pub(crate) fn finish(&mut self) -> Option<Negotiated> {
        let Phase::CookieEchoed(answer) = std::mem::replace(&mut self.phase, Phase::CookieWait) else {
            return None;
        };
        let auth = self.auth.take();
        let paths = self.path_seeds(&answer);
        Some(self.beginnings(answer.peer, paths, auth))
    }

    fn beginnings(&self, peer: Peer, paths: Few<PathSeed>, auth: Option<Box<Auth>>) -> Negotiated {
        Negotiated {
            identity: Identity {
                local_port: self.local_port,
                remote_port: self.remote_port,
                local_tag: self.local_tag,
                peer_tag: peer.tag,
            },
            config: self.config.clone(),
            initial_tsn: self.initial_tsn,
            paths,
            peer,
            checksum_offload: self.checksum_offload,
            random: self.auth.random(),
            auth,
        }
    }

    /// The addresses of the paths. The peer's addresses are those it listed and the source of the INIT ACK (RFC 9260 §5.1.2). The
    /// addresses that the application named are first, in its order, and count as confirmed (§5.4).
    fn path_seeds(&self, answer: &Answer) -> Few<PathSeed> {
        let named = self.remote.iter().copied().filter(|&address| answer.has(address));
        let learned = answer.peer.addresses.iter().copied().chain([answer.source]);
        let mut remote: Few<IpAddr> = named.collect();
        for address in learned {
            if !remote.contains(&address) {
                remote.push(address);
            }
        }
        let local = self.shown_addresses(answer.local);
        let seed = |(local, remote)| PathSeed {
            local,
            remote,
            encapsulation_port: self.encapsulation_port,
            confirmed: self.remote.contains(&remote),
        };
        self.pairs_with(&local, &remote).iter().copied().map(seed).collect()
    }

    /// The pair of addresses in use, the local one first.
    fn pair(&self) -> Option<(IpAddr, IpAddr)> {
        self.pairs.get(self.position.checked_rem(self.pairs.len())?).copied()
    }

    /// Begins a phase: its chunk is due, and the counters of T1 start anew. COOKIE ECHO leaves from addresses that the peer
    /// knows.
    fn enter(&mut self, phase: Phase) {
        self.pairs = match &phase {
            Phase::CookieWait => self.pairs_with(&self.local, &self.remote),
            Phase::CookieEchoed(answer) => self.pairs_with(&self.shown_addresses(answer.local), &self.remote),
        };
        self.phase = phase;
        self.due = true;
        self.t1 = None;
        self.attempts = 0;
        self.rto = self.config.rto_initial.min(self.rto_max());
        self.first_sent = None;
    }

    fn rto_max(&self) -> Duration {
        self.rto_max.unwrap_or(self.config.rto_max)
    }

    fn pairs_with(&self, local: &[IpAddr], remote: &[IpAddr]) -> Few<(IpAddr, IpAddr)> {
        pairs(self.config.path_pairs, local, remote, usize::from(self.config.max_paths))
    }
}

/// Removes the local addresses that mean nothing to the peer, if the others reach all its addresses.
fn leave_out_useless(local: &mut Vec<IpAddr>, remote: &[IpAddr], scope: Scope) {
    if local.iter().all(|&address| scope.covers(address)) {
        return;
    }
    let covered: Vec<IpAddr> = local.iter().copied().filter(|&address| scope.covers(address)).collect();
    if unreachable(&covered, remote).is_none() {
        *local = covered;
    }
}
