//! The endpoint: the owner of its associations. It demultiplexes each packet to its association, and handles packets out of the
//! blue (RFC 9260 §8.4).
//!
//! After each change of an association, the endpoint takes its events, files its deadline, and queues it if it may have packets
//! to send. No call iterates over all associations.

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
use demux::Demux;
use event_queue::EventQueue;
use protected::Farewells;
use slots::{Failed, Occupant, Slot, Slots};
use spent::SpentTags;

/// An SCTP endpoint: one port, any number of associations.
pub struct Endpoint {
    config: EndpointConfig,
    template: Arc<Settings>,
    /// Keeps the names of the schedulers in `template` registered as in use.
    reserved: Arc<NamesInUse>,
    rng: ChaCha12Rng,
    registry: Registry,
    keys: CookieKeys,
    local_addresses: Vec<IpAddr>,
    slots: Slots,
    demux: Demux,
    spent: SpentTags,
    final_packets: Farewells,
    /// Associations that may have packets to send.
    ready: VecDeque<Slot>,
    /// At most one deadline for each association: never later than the association's own.
    deadlines: Deadlines,
    /// Associations whose deadlines have passed; the vector is kept so that no call allocates one.
    due: Vec<Slot>,
    events: EventQueue,
    /// Packets to send outside any association, such as answers to packets out of the blue.
    answers: VecDeque<Answer>,
    discards: Discards,
    /// Lent to the association that is being processed.
    workspace: Workspace,
    /// Memory for the plaintext of DTLS chunks.
    opened: OpenedPackets,
    /// The shared keys of future associations, if the application set any.
    shared_keys: Option<Box<SharedKeys>>,
    /// The endpoint may choose another SCTP port: see [`Endpoint::let_port_change`].
    port_is_free: bool,
    /// The initial TSN of the next association; `None` for a random one.
    #[cfg(feature = "invariants")]
    first_tsn: Option<Tsn>,
    /// The first MIDs of this side's messages and of the peers' messages.
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

/// Maximum number of queued answers. Answers to a flood of INITs beyond this limit are dropped.
const MAX_ANSWERS: usize = 256;

impl Endpoint {
    /// Creates an endpoint. Associations that peers set up get the settings in `template`.
    ///
    /// `seed` feeds every random choice: tags, initial TSNs, cookie keys, jitter. It must be
    /// unpredictable on a real network.
    ///
    /// # Errors
    /// The settings contradict each other, or name a scheduler that does not exist.
    pub fn new(
        config: EndpointConfig,
        template: AssociationConfig,
        seed: [u8; 32],
    ) -> Result<Self, ConfigError> {
        Endpoint::with_schedulers(config, template, Registry::default(), seed)
    }

    /// Does the same as [`Endpoint::new`], with a registry whose schedulers the template may name.
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
        // A separate stream of the random generator: the demultiplexer's secret does not change the numbers drawn from the first
        // stream.
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

    /// Sets the own addresses that associations set up by peers may use, in addition to the destination address of the INIT.
    pub fn set_local_addresses(&mut self, addresses: Vec<IpAddr>) {
        self.local_addresses = addresses;
    }

    /// Returns the SCTP port.
    pub fn port(&self) -> u16 {
        self.config.port
    }

    /// Allows the endpoint to change its SCTP port when a peer refuses its first association because another host behind the same
    /// address has an association with that port already (RFC 6951 §5.3). For endpoints that do not listen, over a lower layer
    /// that does not demultiplex by SCTP ports.
    pub fn let_port_change(&mut self) {
        self.port_is_free = true;
    }

    /// Sets a shared key for future associations (RFC 4895 §6.1). Each association has its own copy from its creation on. Key 0
    /// always exists; it is empty at first.
    pub fn set_shared_key(&mut self, number: u16, secret: &[u8]) {
        self.shared_keys.get_or_insert_default().set(number, secret);
    }

    /// Selects the shared key with which future associations authenticate.
    ///
    /// # Errors
    /// No shared key has this number.
    pub fn use_shared_key(&mut self, number: u16) -> Result<(), KeyError> {
        self.shared_keys.get_or_insert_default().activate(number)
    }

    /// Removes a shared key: future associations discard chunks that are authenticated with it.
    ///
    /// # Errors
    /// No shared key has this number, or the key is in use.
    pub fn remove_shared_key(&mut self, number: u16) -> Result<(), KeyError> {
        self.shared_keys.get_or_insert_default().remove(number)
    }

    /// Deactivates a shared key: future associations do not authenticate with it, until it is set anew. What the peer
    /// authenticates with it is accepted.
    ///
    /// # Errors
    /// As for [`remove_shared_key`](Self::remove_shared_key).
    pub fn deactivate_shared_key(&mut self, number: u16) -> Result<(), KeyError> {
        self.shared_keys.get_or_insert_default().deactivate(number)
    }

    /// Returns the registry of schedulers for the associations of this endpoint; the application may register more.
    pub fn schedulers(&mut self) -> &mut Registry {
        &mut self.registry
    }

    /// Returns the settings of associations that peers set up.
    pub fn template(&self) -> &AssociationConfig {
        &self.template
    }

    /// Chooses the stream scheduler of future associations that peers set up. Existing associations keep theirs.
    ///
    /// # Errors
    /// The name is unknown, or the scheduler refuses its configuration. The endpoint then keeps the old choice.
    pub fn set_stream_scheduler(&mut self, name: &str, config: &str) -> Result<(), ScheduleError> {
        Arc::make_mut(&mut self.reserved).stream =
            self.registry.build_stream_scheduler(name, config)?.name_in_use();
        self.template = self.template.with(|template| {
            name.clone_into(&mut template.stream_scheduler);
            config.clone_into(&mut template.stream_scheduler_config);
        });
        Ok(())
    }

    /// Chooses the settings of future associations that peers set up. Existing associations keep theirs.
    ///
    /// # Errors
    /// As [`Endpoint::new`]. The endpoint then keeps the old settings.
    pub fn set_template(&mut self, template: AssociationConfig) -> Result<(), ConfigError> {
        template.check()?;
        self.reserved = check_names(&self.registry, &template)?;
        self.template = Settings::new(template);
        Ok(())
    }

    /// Starts or stops answering INITs of new peers (the setting `listen`). Existing associations and set-ups by this side
    /// continue. A state cookie that was sent before is accepted only while the endpoint listens.
    pub fn set_listening(&mut self, listen: bool) {
        self.config.listen = listen;
    }

    /// Returns whether the endpoint answers INITs of new peers.
    pub fn is_listening(&self) -> bool {
        self.config.listen
    }

    /// Starts to set up an association.
    ///
    /// # Errors
    /// The addresses or settings cannot work, or the endpoint has its maximum number of associations.
    pub fn connect(&mut self, _now: Instant, connect: Connect) -> Result<AssociationId, ConnectError> {
        let Connect { local, remote, remote_port, encapsulation_port, setup_rto_max, config } = connect;
        // Settings that equal the template were checked already, and are shared instead of copied.
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
            rto_max: setup_rto_max,
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

    /// Processes a packet that arrived. With `checksum_offload` the lower layer has verified its checksum.
    pub fn handle_datagram(&mut self, now: Instant, datagram: Datagram) {
        let rule = if self.config.checksum_offload { ChecksumRule::Trust } else { ChecksumRule::Verify };
        self.take(now, datagram, rule);
    }

    /// Processes a packet whose checksum the lower layer has not verified, such as one that a network card could not verify. The
    /// endpoint verifies it even with `checksum_offload`.
    pub fn handle_unverified_datagram(&mut self, now: Instant, datagram: Datagram) {
        self.take(now, datagram, ChecksumRule::Verify);
    }

    /// Processes all timers that have expired at `now`; without any, nothing happens.
    pub fn handle_timeout(&mut self, now: Instant) {
        // Each association once: a timer that restarts in this call expires in a later call.
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

    /// Returns the time at which `handle_timeout` is to be called next; `None` if no timer runs. The time may be too early: if a
    /// timer was put off, its new time is filed only when its old time comes.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.deadlines.first()
    }

    /// Returns whether `poll_transmit` may return a packet. If this is false, it returns none.
    pub fn wants_to_transmit(&self) -> bool {
        !self.ready.is_empty() || !self.answers.is_empty()
    }

    /// Appends the next packets to `buffer`: up to `max_packets`, all for one destination. `None` if there is nothing to send.
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

    /// Returns the next event, in the order in which events happened; `None` if there is none. Events of released associations are
    /// skipped.
    pub fn poll_event(&mut self) -> Option<(AssociationId, Event)> {
        loop {
            // The event is returned without unpacking: to move it costs its full size, although most events use little of it.
            let news = self.events.pop();
            if news.as_ref().is_none_or(|(id, _)| self.slots.find(*id).is_some()) {
                return news;
            }
        }
    }

    /// Returns the commands for an association; `None` once it is released.
    pub fn association(&mut self, id: AssociationId) -> Option<AssociationHandle<'_>> {
        let slot = self.slots.find(id)?;
        Some(AssociationHandle::new(self, slot))
    }

    /// Releases an association. One that has not ended is aborted first.
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
        // Its entries in the ready queue and the event queue are skipped later: to search the queues here would take linear time.
        self.slots.remove(slot);
    }

    /// Returns counters of packets that were discarded before they reached an association.
    pub fn discards(&self) -> Discards {
        self.discards
    }

    fn take(&mut self, now: Instant, mut datagram: Datagram, rule: ChecksumRule) {
        // Whether the packet may lack a checksum (RFC 9653) is known only once its association is found.
        let lenient = if rule == ChecksumRule::Verify { ChecksumRule::AcceptZero } else { rule };
        let parsed = Packet::parse(&datagram.payload, lenient);
        // The packet is used in place: to move it would stall on the stores that have just written it.
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

    /// Returns whether the packet may lack a checksum: it is for an association that declared zero checksums acceptable (RFC 9653
    /// §5.3), or may be for one that this endpoint has lost. Then the peer learns of the loss from the answer.
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

    /// Queues an answer; `between` is the own address and the peer's address.
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

    /// Gives up a set-up at the request of the application.
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

    /// Follows up a change of an association: takes its events, files its deadline, and queues it if it has packets to send.
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
        // An ended association keeps its tag until its last packets have been sent. Packets for it are discarded until then: an
        // answer to a packet out of the blue would overtake them.
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

    /// Returns a random tag that no association of this endpoint has; never 0 (RFC 9260 §5.3.1).
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

/// Checks that every scheduler and controller named in the settings exists and accepts its configuration. Returns the names of
/// the schedulers, registered as in use until the value is dropped.
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

/// Returns the header of a direct answer to `packet`, with its verification tag reflected.
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

/// Returns a random port from all that need no privilege (RFC 6056 §3.2). Peers distinguish the hosts behind one address by this
/// port alone: of a thousand hosts, 3 % would share a port if drawn from the 16,384 ports of RFC 6335 §6.
fn ephemeral_port(rng: &mut ChaCha12Rng) -> u16 {
    EPHEMERAL_PORTS + (rng.next_u32() % (u32::from(u16::MAX - EPHEMERAL_PORTS) + 1)) as u16
}

const EPHEMERAL_PORTS: u16 = 1024;

#[cfg(test)]
mod tests;
