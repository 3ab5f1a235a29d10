//! The endpoint: it owns its associations, finds the association of each packet, and handles
//! packets that belong to none.
//!
//! After each change of an association the endpoint takes over its events, records its deadline, and
//! queues it if it may have something to send. No call looks at all associations.

mod accept;
mod admit;
mod arrival;
mod cookie;
mod deadlines;
mod demux;
mod event_queue;
mod handle;
mod icmp;
#[cfg(feature = "invariants")]
mod invariants;
mod peers;
mod pre_shared;
mod protected;
mod slots;
mod spent;
mod stray;
mod tags;

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;

use rand_chacha::ChaCha12Rng;
use rand_core::{Rng, SeedableRng};
use tresse_policy::engine::{NamesInUse, PolicyName};
use tresse_policy::{Instant, PolicyKind, Registry, ScheduleError};
#[cfg(feature = "invariants")]
use tresse_wire::Mid;
use tresse_wire::{ChecksumRule, CommonHeader, Packet, PacketError, Seal, Tsn};

use crate::association::{Identity, Settings, Setup, SetupParts, State, Workspace};
use crate::config::{AssociationConfig, ConfigError, EndpointConfig};
use crate::context::Context;
use crate::extensions::asconf::PeerChange;
use crate::extensions::auth::{Handshake, RANDOM_LEN, SharedKeys};
use crate::extensions::protection::OpenedPackets;
use crate::interface::association_id::AssociationId;
use crate::interface::connect::Connect;
use crate::interface::datagram::{Datagram, Transmit};
use crate::interface::error::{ConnectError, KeyError};
use crate::interface::event::{CloseReason, Event};
use crate::interface::stats::Discards;
use crate::paths::is_usable;
use crate::paths::unreachable;

pub use handle::AssociationHandle;
pub use pre_shared::PreSharedKeys;

use cookie::CookieKeys;
use deadlines::Deadlines;
use demux::{Demux, Slot};
use event_queue::EventQueue;
use protected::Farewells;
use slots::{Failed, Occupant, Slots};
use spent::SpentTags;

/// An SCTP endpoint: one port, any number of associations.
pub struct Endpoint {
    config: EndpointConfig,
    template: Arc<Settings>,
    /// Keeps the names of the template's schedulers in use.
    reserved: Arc<NamesInUse>,
    rng: ChaCha12Rng,
    registry: Registry,
    keys: CookieKeys,
    local_addresses: Vec<IpAddr>,
    slots: Slots,
    demux: Demux,
    spent: SpentTags,
    final_packets: Farewells,
    /// Associations that may have something to send.
    ready: VecDeque<Slot>,
    /// One for each association with a deadline, never later than it.
    deadlines: Deadlines,
    /// Associations whose deadlines have come; kept so that none is allocated for a call.
    due: Vec<Slot>,
    events: EventQueue,
    /// Packets that belong to no association.
    answers: VecDeque<Answer>,
    discards: Discards,
    /// Lent to the association at work.
    workspace: Workspace,
    /// Memory for what comes in DTLS chunks.
    opened: OpenedPackets,
    /// The shared keys of associations to come, if the application set any.
    shared_keys: Option<Box<SharedKeys>>,
    /// True while no peer knows the SCTP port, so that it may change.
    port_is_free: bool,
    /// In place of a number of chance.
    #[cfg(feature = "invariants")]
    first_tsn: Option<Tsn>,
    /// Of this side's messages and of the peers', in place of 0.
    #[cfg(feature = "invariants")]
    first_mids: [Mid; 2],
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint").field("config", &self.config).finish_non_exhaustive()
    }
}

struct Answer {
    to: Transmit,
    packet: Vec<u8>,
}

/// The most answers to packets of no association that may wait; a flood of INITs gets fewer.
const MAX_ANSWERS: usize = 256;

impl Endpoint {
    /// An endpoint that gives `template` to the associations that peers set up.
    ///
    /// `seed` feeds every random choice: tags, initial TSNs, cookie keys, jitter. It must be
    /// unpredictable on a real network.
    ///
    /// # Errors
    /// Settings that contradict each other, or that name a scheduler that does not exist.
    pub fn new(
        config: EndpointConfig,
        template: AssociationConfig,
        seed: [u8; 32],
    ) -> Result<Self, ConfigError> {
        Endpoint::with_schedulers(config, template, Registry::default(), seed)
    }

    /// As [`Endpoint::new`], with stream schedulers that the template may name already.
    ///
    /// # Errors
    /// As [`Endpoint::new`].
    pub fn with_schedulers(
        mut config: EndpointConfig,
        template: AssociationConfig,
        registry: Registry,
        seed: [u8; 32],
    ) -> Result<Self, ConfigError> {
        template.check()?;
        let mut rng = ChaCha12Rng::from_seed(seed);
        if config.port == 0 {
            if config.listen {
                let reason = "a listening endpoint needs a port".to_owned();
                return Err(ConfigError::Inconsistent { name: "port", reason });
            }
            config.port = ephemeral_port(&mut rng);
        }
        let reserved = check_names(&registry, &template)?;
        // Another stream of numbers: what is drawn from the first does not depend on how associations are found.
        let mut apart = ChaCha12Rng::from_seed(seed);
        apart.set_stream(1);
        let secret = [apart.next_u64(), apart.next_u64()];
        Ok(Endpoint {
            reserved,
            keys: CookieKeys::new(Instant::ZERO, config.cookie_key_lifetime, &mut rng),
            template: Settings::new(template),
            rng,
            registry,
            local_addresses: Vec::new(),
            slots: Slots::default(),
            demux: Demux::new(secret),
            spent: SpentTags::default(),
            final_packets: Farewells::default(),
            ready: VecDeque::new(),
            deadlines: Deadlines::default(),
            due: Vec::new(),
            events: EventQueue::default(),
            answers: VecDeque::new(),
            discards: Discards::default(),
            workspace: Workspace::default(),
            opened: OpenedPackets::default(),
            shared_keys: None,
            port_is_free: false,
            #[cfg(feature = "invariants")]
            first_tsn: None,
            #[cfg(feature = "invariants")]
            first_mids: [Mid(0); 2],
            config,
        })
    }

    /// Own addresses that associations set up by peers may use, besides the one an INIT came to.
    pub fn set_local_addresses(&mut self, addresses: Vec<IpAddr>) {
        self.local_addresses = addresses;
    }

    /// The SCTP port.
    pub fn port(&self) -> u16 {
        self.config.port
    }

    /// Lets the endpoint take another SCTP port when a peer refuses its first association because it has one with that port
    /// already, of another host behind the same address (RFC 6951 §5.3): for those that do not listen, over a lower layer
    /// that does not go by SCTP ports.
    pub fn let_port_change(&mut self) {
        self.port_is_free = true;
    }

    /// Sets a shared key for the associations to come (RFC 4895 §6.1); each has its own copy from its beginning
    /// on. Key 0 is there, and empty, from the start.
    pub fn set_shared_key(&mut self, number: u16, secret: &[u8]) {
        self.shared_keys.get_or_insert_default().set(number, secret);
    }

    /// Lets associations to come authenticate with this shared key.
    ///
    /// # Errors
    /// There is none of this number.
    pub fn use_shared_key(&mut self, number: u16) -> Result<(), KeyError> {
        self.shared_keys.get_or_insert_default().activate(number)
    }

    /// Lets associations to come do without a shared key: they believe nothing that is authenticated with it.
    ///
    /// # Errors
    /// There is none of this number, or it is the one in use.
    pub fn remove_shared_key(&mut self, number: u16) -> Result<(), KeyError> {
        self.shared_keys.get_or_insert_default().remove(number)
    }

    /// The schedulers that associations of this endpoint can use; more can be registered.
    pub fn schedulers(&mut self) -> &mut Registry {
        &mut self.registry
    }

    /// Settings of associations that peers set up.
    pub fn template(&self) -> &AssociationConfig {
        &self.template
    }

    /// Chooses the stream scheduler of the associations to come that peers set up; those there are keep theirs.
    ///
    /// # Errors
    /// An unknown name, or a configuration that the scheduler refuses; the old choice then stays.
    pub fn set_stream_scheduler(&mut self, name: &str, config: &str) -> Result<(), ScheduleError> {
        Arc::make_mut(&mut self.reserved).stream = self.registry.build(name, config)?.name_in_use();
        self.template = self.template.with(|template| {
            name.clone_into(&mut template.stream_scheduler);
            config.clone_into(&mut template.stream_scheduler_config);
        });
        Ok(())
    }

    /// Chooses the settings of the associations to come that peers set up; those there are keep theirs.
    ///
    /// # Errors
    /// As [`Endpoint::new`]; the old settings then stay.
    pub fn set_template(&mut self, template: AssociationConfig) -> Result<(), ConfigError> {
        template.check()?;
        self.reserved = check_names(&self.registry, &template)?;
        self.template = Settings::new(template);
        Ok(())
    }

    /// Starts or stops to answer INITs of new peers (the setting `listen`). Associations that there are go on, and so do
    /// set-ups of this side; a cookie that was given out before counts only while the endpoint listens.
    pub fn set_listening(&mut self, listen: bool) {
        self.config.listen = listen;
    }

    /// Returns whether INITs of new peers are answered.
    pub fn is_listening(&self) -> bool {
        self.config.listen
    }

    /// Starts to set up an association.
    ///
    /// # Errors
    /// Addresses or settings that cannot work, or too many associations.
    pub fn connect(&mut self, _now: Instant, connect: Connect) -> Result<AssociationId, ConnectError> {
        let Connect { local, remote, remote_port, encapsulation_port, config } = connect;
        // Settings that are those of the endpoint were checked, and need no copy of their own.
        let (config, schedulers) = if config == **self.template {
            (Arc::clone(&self.template), self.reserved.clone())
        } else {
            config.check()?;
            let schedulers = check_names(&self.registry, &config)?;
            (Settings::new(config), schedulers)
        };
        if local.is_empty() {
            return Err(ConnectError::NoLocalAddress);
        }
        if remote.is_empty() {
            return Err(ConnectError::NoRemoteAddress);
        }
        if remote_port == 0 {
            return Err(ConnectError::PortZero);
        }
        if let Some(&remote) = remote.iter().find(|&&remote| !is_usable(remote)) {
            return Err(ConnectError::NotOneHost { remote });
        }
        if let Some(remote) = unreachable(&local, &remote) {
            return Err(ConnectError::AddressFamily { remote });
        }
        if self.is_full() {
            return Err(ConnectError::TooManyAssociations { limit: self.config.max_associations });
        }
        for &remote in &remote {
            match self.demux.by_peer(remote, remote_port) {
                Some(slot) if self.is_over(slot) => self.forget_addresses(slot),
                Some(_) if self.owner_of(remote, remote_port, &[]).is_none() => {}
                Some(_) => return Err(ConnectError::Connected { remote, port: remote_port }),
                None => {}
            }
        }
        let setup = Setup::new(SetupParts {
            config,
            schedulers,
            local_port: self.config.port,
            remote_port,
            local_tag: self.fresh_tag(),
            initial_tsn: self.fresh_tsn(),
            local,
            remote,
            encapsulation_port: encapsulation_port
                .or(Some(self.config.encapsulation_port))
                .filter(|&port| port != 0),
            checksum_offload: self.config.checksum_offload,
            auth: Handshake::new(self.fresh_random(), self.shared_keys.clone()),
        });
        let slot = self.slots.insert(Occupant::Setup(Box::new(setup)));
        if let Some(Occupant::Setup(setup)) = self.slots.get(slot) {
            self.demux.insert(slot, setup.local_tag(), setup.peer_addresses());
        }
        self.settle(slot);
        Ok(self.slots.id(slot))
    }

    /// Takes a packet that arrived. With `checksum_offload` the lower layer vouches for its checksum.
    pub fn handle_datagram(&mut self, now: Instant, datagram: Datagram) {
        let rule = if self.config.checksum_offload { ChecksumRule::Trust } else { ChecksumRule::Verify };
        self.take(now, datagram, rule);
    }

    /// Takes a packet that arrived and that the lower layer does not vouch for. Its checksum is verified even with
    /// `checksum_offload`, as when a network card passes on a packet that it could not verify.
    pub fn handle_unverified_datagram(&mut self, now: Instant, datagram: Datagram) {
        self.take(now, datagram, ChecksumRule::Verify);
    }

    /// Lets everything happen that is due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        // What is due now, each association once: a timer that starts anew waits for the next call.
        let mut due = std::mem::take(&mut self.due);
        due.extend(std::iter::from_fn(|| self.deadlines.pop_due(now)));
        for slot in due.drain(..) {
            let mut cx = Context { now, rng: &mut self.rng };
            match self.slots.get_mut(slot) {
                Some(Occupant::Setup(setup)) => {
                    if let Some(reason) = setup.handle_timeout(now) {
                        self.fail_setup(slot, reason);
                    }
                }
                Some(Occupant::Open(association)) => {
                    if association.deadline().is_some_and(|deadline| deadline <= now) {
                        self.workspace.lend_to(&mut association.workspace);
                        association.handle_timeout(&mut cx);
                    }
                }
                Some(Occupant::Failed(_)) | None => {}
            }
            self.settle(slot);
        }
        self.due = due;
    }

    /// Time at which `handle_timeout` wants to be called next. It may be early: a timer that was put off is filed anew
    /// only when its old time has come.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.deadlines.first()
    }

    /// Returns whether `poll_transmit` may have something to give. False is certain.
    pub fn wants_to_transmit(&self) -> bool {
        !self.ready.is_empty() || !self.answers.is_empty()
    }

    /// Appends the next packets to `buffer`: up to `max_packets`, all for one destination.
    pub fn poll_transmit(
        &mut self,
        now: Instant,
        max_packets: usize,
        buffer: &mut Vec<u8>,
    ) -> Option<Transmit> {
        if let Some(answer) = self.answers.pop_front() {
            buffer.extend_from_slice(&answer.packet);
            return Some(answer.to);
        }
        while let Some(&slot) = self.ready.front() {
            let mut dry = false;
            let transmit = match self.slots.get_mut(slot) {
                Some(Occupant::Open(association)) => {
                    self.workspace.lend_to(&mut association.workspace);
                    let transmit = association.write_packets(now, max_packets, buffer);
                    dry = !association.may_have_output();
                    transmit
                }
                Some(Occupant::Setup(setup)) => {
                    dry = true;
                    setup.write_packet(now, buffer)
                }
                Some(Occupant::Failed(_)) | None => None,
            };
            if dry || transmit.is_none() {
                self.ready.pop_front();
                self.slots.set_queued(slot, false);
                self.settle(slot);
            }
            if transmit.is_some() {
                return transmit;
            }
        }
        None
    }

    /// The next event, in the order in which they happened; none of an association that was released.
    pub fn poll_event(&mut self) -> Option<(AssociationId, Event)> {
        loop {
            // Handed on as it is: most of an event's places are empty, and would be moved all the same.
            let news = self.events.pop();
            if news.as_ref().is_none_or(|(id, _)| self.slots.find(*id).is_some()) {
                return news;
            }
        }
    }

    /// Commands for an association; `None` once it was released.
    pub fn association(&mut self, id: AssociationId) -> Option<AssociationHandle<'_>> {
        let slot = self.slots.find(id)?;
        Some(AssociationHandle::new(self, slot))
    }

    /// Forgets an association that has closed; one that has not is aborted first.
    pub fn release(&mut self, now: Instant, id: AssociationId) {
        let Some(slot) = self.slots.find(id) else { return };
        let why = b"the application let go of the association";
        match self.slots.get_mut(slot) {
            Some(Occupant::Open(association)) => {
                association.abort(Some(why), CloseReason::Aborted);
                let mut packet = Vec::new();
                while let Some(to) = association.write_packets(now, 1, &mut packet) {
                    let packet = std::mem::take(&mut packet);
                    push_answer(&mut self.answers, &mut self.discards, Answer { to, packet });
                }
            }
            Some(Occupant::Setup(_)) => self.give_up_setup(slot, why),
            Some(Occupant::Failed(_)) | None => {}
        }
        self.prepare_final_packets(slot);
        self.forget_addresses(slot);
        self.deadlines.remove(slot);
        // What is queued of it is passed over when its turn comes: looking for it here would take the queues' length.
        self.slots.remove(slot);
    }

    /// Packets that were thrown away before they reached an association.
    pub fn discards(&self) -> Discards {
        self.discards
    }

    fn take(&mut self, now: Instant, mut datagram: Datagram, rule: ChecksumRule) {
        // Whether a packet may come without its checksum is known when its association is.
        let lenient = if rule == ChecksumRule::Verify { ChecksumRule::AcceptZero } else { rule };
        let parsed = Packet::parse(&datagram.payload, lenient);
        // Looked at where it is: moving it would wait for its own stores.
        let packet = match &parsed {
            Ok(packet)
                if packet.checksum == 0
                    && rule == ChecksumRule::Verify
                    && !self.may_lack_checksum(packet)
                    && Packet::parse(&datagram.payload, rule).is_err() =>
            {
                return self.on_damaged(&datagram);
            }
            Ok(packet) => packet,
            Err(PacketError::BadChecksum { .. }) => return self.on_damaged(&datagram),
            Err(_) => {
                self.discards.malformed_packet += 1;
                return;
            }
        };
        if packet.header.destination_port != self.config.port {
            self.on_stray(&datagram, packet);
            return;
        }
        match self.demux.by_tag(packet.header.verification_tag) {
            Some(slot) => self.on_own_packet(now, slot, &mut datagram),
            None => self.on_unknown_tag(now, &datagram, packet),
        }
    }

    /// Returns whether a packet is for an association that has told its peer to leave out checksums (RFC 9653 §5.3), or
    /// may be for one that this endpoint has forgotten: then its peer learns of that from the answer.
    fn may_lack_checksum(&mut self, packet: &Packet<'_>) -> bool {
        let slot = self.demux.by_tag(packet.header.verification_tag);
        match slot.and_then(|slot| self.slots.get(slot)) {
            Some(Occupant::Open(association)) => association.sender().config.zero_checksum,
            Some(Occupant::Setup(setup)) => setup.settings().zero_checksum,
            Some(Occupant::Failed(_)) | None => {
                let sets_up = packet.header.verification_tag == 0 || admit::cookie_in(packet).is_some();
                self.template.zero_checksum && !sets_up
            }
        }
    }

    fn answer(&mut self, datagram: &Datagram, packet: Vec<u8>) {
        self.answer_to((datagram.local, datagram.remote), datagram.encapsulation_port, packet);
    }

    /// Queues an answer between these addresses, the own one first.
    fn answer_to(&mut self, between: (IpAddr, IpAddr), encapsulation_port: Option<u16>, packet: Vec<u8>) {
        let to = Transmit::single(between, encapsulation_port, packet.len());
        push_answer(&mut self.answers, &mut self.discards, Answer { to, packet });
    }

    fn fail_setup(&mut self, slot: Slot, reason: CloseReason) {
        self.forget_addresses(slot);
        let mut failed = Failed::new(&self.template);
        if let Some(Occupant::Setup(setup)) = self.slots.get(slot) {
            failed.undelivered = setup.undelivered();
        }
        self.slots.replace(slot, Occupant::Failed(failed));
        self.events.push(self.slots.id(slot), Event::Closed(reason));
    }

    /// The application gives up a set-up.
    fn give_up_setup(&mut self, slot: Slot, why: &[u8]) {
        let mut packet = Vec::new();
        if let Some(Occupant::Setup(setup)) = self.slots.get(slot)
            && let Some(to) = setup.write_abort(why, &mut packet)
        {
            push_answer(&mut self.answers, &mut self.discards, Answer { to, packet });
        }
        self.fail_setup(slot, CloseReason::Aborted);
    }

    fn forget_addresses(&mut self, slot: Slot) {
        match self.slots.get(slot) {
            Some(Occupant::Setup(setup)) => {
                self.spent.note_setup(setup.local_tag());
                self.demux.remove(slot, setup.local_tag(), setup.peer_addresses());
            }
            Some(Occupant::Open(association)) => {
                let Identity { local_tag, peer_tag, remote_port, .. } = association.identity();
                self.spent.note(local_tag, peer_tag, remote_port);
                self.demux.remove(slot, local_tag, association.sender().destinations(remote_port));
            }
            Some(Occupant::Failed(_)) | None => {}
        }
    }

    /// Takes over what happened to an association: events, deadline, and whether it wants to send.
    fn settle(&mut self, slot: Slot) {
        let (deadline, wants_to_send, is_over) = match self.slots.named_mut(slot) {
            Some((id, Occupant::Open(association))) => {
                while let Some(event) = association.workspace.pop_event() {
                    self.events.push(id, event);
                }
                if association.readable.take_due() {
                    self.events.push_readable(id);
                }
                self.workspace.take_back(&mut association.workspace);
                let port = association.identity().remote_port;
                while let Some(news) = association.renegotiation.pop_peer_change() {
                    match news {
                        PeerChange::Added(address) => self.demux.learn(slot, address, port),
                        PeerChange::Removed(address) => self.demux.forget(slot, address, port),
                    }
                }
                if association.sender().outbound.has_outgrown_its_groups() {
                    association.grow_groups(&self.registry);
                }
                (association.deadline(), association.may_have_output(), association.state() == State::Closed)
            }
            Some((_, Occupant::Setup(setup))) => (setup.deadline(), setup.is_due(), false),
            Some((_, Occupant::Failed(_))) | None => (None, false, true),
        };
        if wants_to_send && self.slots.set_queued(slot, true) {
            self.ready.push_back(slot);
        }
        if let Some(deadline) = deadline
            && self.deadlines.of(slot).is_none_or(|filed| deadline < filed)
        {
            self.deadlines.file(slot, deadline);
        }
        // Until the last packets of an association have left, what still comes for it is dropped: an answer
        // to a packet of no association would overtake them.
        if !wants_to_send && is_over {
            self.prepare_final_packets(slot);
            self.forget_addresses(slot);
        }
    }

    fn is_full(&self) -> bool {
        self.slots.len() >= self.config.max_associations as usize
    }

    fn seal(&self) -> Seal {
        if self.config.checksum_offload { Seal::Zero } else { Seal::Crc32c }
    }

    /// A tag that no association of this endpoint has; never 0 (RFC 9260 §5.3.1).
    fn fresh_tag(&mut self) -> u32 {
        loop {
            let tag = self.rng.next_u32();
            if tag != 0 && !self.demux.has_tag(tag) {
                return tag;
            }
        }
    }

    fn fresh_random(&mut self) -> [u8; RANDOM_LEN] {
        let mut random = [0; RANDOM_LEN];
        self.rng.fill_bytes(&mut random);
        random
    }

    fn fresh_tsn(&mut self) -> Tsn {
        #[cfg(feature = "invariants")]
        if let Some(first) = self.first_tsn.take() {
            return first;
        }
        Tsn(self.rng.next_u32())
    }
}

/// Checks that every scheduler and controller named in the settings exists and takes its configuration; the names
/// of the schedulers stay as long as they are in use.
fn check_names(registry: &Registry, config: &AssociationConfig) -> Result<Arc<NamesInUse>, ConfigError> {
    let stream = PolicyName { name: &config.stream_scheduler, config: &config.stream_scheduler_config };
    let path = PolicyName { name: &config.path_scheduler, config: &config.path_scheduler_config };
    let controller =
        PolicyName { name: &config.congestion_control, config: &config.congestion_control_config };
    let setting = |kind| match kind {
        PolicyKind::PathScheduler => "path_scheduler",
        PolicyKind::CongestionController => "congestion_control",
        _ => "stream_scheduler",
    };
    registry.reserve(stream, path, controller).map(Arc::new).map_err(|(kind, value, error)| {
        ConfigError::Unusable {
            name: setting(kind).to_owned(),
            value: value.to_owned(),
            reason: error.to_string(),
        }
    })
}

/// The header of a direct answer to `packet`, which carries its tag back.
fn reply_header(packet: &Packet<'_>) -> CommonHeader {
    CommonHeader {
        source_port: packet.header.destination_port,
        destination_port: packet.header.source_port,
        verification_tag: packet.header.verification_tag,
    }
}

fn push_answer(answers: &mut VecDeque<Answer>, discards: &mut Discards, answer: Answer) {
    if answers.len() < MAX_ANSWERS && !answer.packet.is_empty() {
        answers.push_back(answer);
    } else {
        discards.unsent_answer += 1;
    }
}

/// A port of those that a client may take (RFC 6056 §3.2: all that need no privilege). Peers tell the hosts behind one
/// address apart by it alone: of a thousand 3 % would meet in the 16,384 of RFC 6335 §6.
fn ephemeral_port(rng: &mut ChaCha12Rng) -> u16 {
    EPHEMERAL_PORTS + (rng.next_u32() % (u32::from(u16::MAX - EPHEMERAL_PORTS) + 1)) as u16
}

const EPHEMERAL_PORTS: u16 = 1024;

#[cfg(test)]
mod tests;
