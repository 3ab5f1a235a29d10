//! The association: a struct of modules that own their state, above all the sending and the receiving side. The code here only
//! coordinates: it passes values between the modules and does no protocol arithmetic.

mod answer;
mod capabilities;
mod changes;
mod commands;
mod control;
mod duplicate;
mod handshake;
mod input;
#[cfg(feature = "invariants")]
mod invariants;
mod output;
mod peer;
mod protected;
mod reception;
mod reinject;
mod renegotiation;
mod scheduling;
mod scope;
mod sender;
mod settings;
mod setup;
mod sharing;
mod shutdown;
mod state;
mod timeout;
mod undelivered;

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;

use rand_chacha::ChaCha12Rng;
use tresse_policy::engine::earliest;
use tresse_policy::{Instant, PathState, Registry, ScheduleError};
use tresse_wire::{Chunk, CommonHeader, Tsn};

use crate::collections::InlineVec;
use crate::collections::LazyBox;
use crate::extensions::auth::{Auth, Authentication, RANDOM_LEN};
use crate::extensions::ecn::Marks;
use crate::extensions::protection::PacketProtection;
use crate::inbound::Inbound;
use crate::interface::event::{CloseReason, Event};
use crate::interface::reconfiguration::Streams;
use crate::interface::stats::{Discards, Limit};
use crate::outbound::{HoldReason, Outbound};
use crate::paths::{LimitClock, Paths};
use crate::receiver::Receiver;
use crate::transmission::{AckReport, Transmission};

pub(crate) use capabilities::{Capabilities, Extension};
pub(crate) use input::Origin;
#[cfg(feature = "invariants")]
pub(crate) use invariants::{Inspection, numbered_from};
pub(crate) use peer::{HandshakeParams, InitFault, Peer, reach};
pub(crate) use protected::Protected;
pub(crate) use settings::{Settings, append};
pub(crate) use setup::{Setup, SetupParts, SetupStep};
pub(crate) use state::State;

use control::ControlQueue;
use output::NextTurn;
use reception::Reception;
use reinject::Reinjection;
use renegotiation::Renegotiation;
use scheduling::Scheduling;
use sender::{Sender, Views};
use sharing::SharedBuffers;
use shutdown::ShutdownTimers;

/// Ports and tags of both sides of an association.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Identity {
    pub(crate) local_port: u16,
    pub(crate) remote_port: u16,
    /// Verification tag of packets from the peer.
    pub(crate) local_tag: u32,
    /// Verification tag of packets to the peer.
    pub(crate) peer_tag: u32,
}

impl Identity {
    /// The header of every packet to the peer.
    fn header(&self) -> CommonHeader {
        CommonHeader {
            source_port: self.local_port,
            destination_port: self.remote_port,
            verification_tag: self.peer_tag,
        }
    }
}

/// The addresses from which a path is created.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct PathSeed {
    pub(crate) local: IpAddr,
    pub(crate) remote: IpAddr,
    pub(crate) encapsulation_port: Option<u16>,
    /// The remote address is confirmed (RFC 9260 §5.4).
    pub(crate) confirmed: bool,
}

/// The negotiated parameters from which an association is created.
pub(crate) struct Negotiated {
    pub(crate) identity: Identity,
    pub(crate) config: Arc<Settings>,
    pub(crate) initial_tsn: Tsn,
    pub(crate) peer: Peer,
    pub(crate) paths: InlineVec<PathSeed>,
    pub(crate) checksum_offload: bool,
    /// `None` if authentication was not negotiated (RFC 4895).
    pub(crate) auth: Option<Box<Auth>>,
    /// Random number from which this side derived parameters of its INIT or INIT ACK.
    pub(crate) random: [u8; RANDOM_LEN],
}

/// An association whose parameters both sides have negotiated.
pub(crate) struct Association {
    identity: Identity,
    state: State,
    pub(crate) capabilities: Capabilities,
    pub(crate) renegotiation: Renegotiation,
    /// The lower layer computes the checksums.
    checksum_offload: bool,

    sender: Sender,
    pub(crate) reception: Reception,
    scheduling: Scheduling,
    /// Number of path schedulers and congestion controllers that failed and were replaced: at most one of each.
    policies_replaced: u8,
    sharing: SharedBuffers,
    reinjection: Reinjection,

    pub(crate) auth: Authentication,
    protection: PacketProtection,
    /// Congestion marks of both directions (ECN); allocated at first use.
    marks: LazyBox<Marks>,
    control: ControlQueue,
    shutdown: ShutdownTimers,
    pub(crate) readable: Readable,
    counters: Counters,
    pub(crate) workspace: Workspace,
    /// True if output has found nothing to send since the last event.
    dry: bool,
    /// True if this association replaced one whose peer restarted, and has the same local tag, as after an initialization
    /// collision. Late packets for the old association then have the right tag, and may acknowledge any TSN.
    kept_tag: bool,
    /// The next turn, if it has been determined already.
    foreseen: Option<NextTurn>,
}

/// State of the event [`Event::Readable`], by which the application learns that messages wait.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Readable {
    /// Not reported: no message waited when the application last read.
    Untold,
    /// The event is due, after all earlier events.
    Due,
    Told,
}

impl Readable {
    /// Handles the arrival of a message that can be read.
    fn on_ready(&mut self) {
        if *self == Readable::Untold {
            *self = Readable::Due;
        }
    }

    /// Returns whether [`Event::Readable`] is due, and marks it as reported.
    #[inline]
    pub(crate) fn take_due(&mut self) -> bool {
        let due = *self == Readable::Due;
        if due {
            *self = Readable::Told;
        }
        due
    }
}

/// Counters that belong to no other module.
#[derive(Debug)]
struct Counters {
    duplicates: u64,
    sacks_sent: u64,
    sacks_received: u64,
    discards: LazyBox<Discards>,
    limits: LimitClock,
}

/// Vectors that are reused, so that a packet needs no allocation. Only one association runs at a time: the endpoint takes the
/// vectors from the association that ran last and lends them to the next one. An association without them allocates its own.
#[derive(Default)]
pub(crate) struct Workspace(Option<Box<Scratch>>);

#[derive(Default)]
struct Scratch {
    /// `None` while a SACK is processed: its handler has taken the report out.
    report: Option<Box<AckReport>>,
    views: Views,
    /// Events for the application. The endpoint takes them after every step.
    events: VecDeque<Event>,
}

impl Workspace {
    #[inline]
    fn get(&mut self) -> &mut Scratch {
        self.0.get_or_insert_default()
    }

    /// Takes the next event for the application.
    pub(crate) fn pop_event(&mut self) -> Option<Event> {
        self.0.as_mut()?.events.pop_front()
    }

    /// Lends the vectors to an association that has none. An association that has allocated its own since the endpoint last saw
    /// it keeps them, because they hold events for the application.
    #[inline]
    pub(crate) fn lend_to(&mut self, other: &mut Workspace) {
        if other.0.is_none() {
            other.0 = self.0.take();
        }
    }

    /// Takes the vectors back from an association. If this workspace has its own, those of the association are dropped.
    #[inline]
    pub(crate) fn take_back(&mut self, other: &mut Workspace) {
        if self.0.is_none() {
            self.0 = other.0.take();
        } else {
            other.0 = None;
        }
    }
}

impl Association {
    /// Creates an association in the state ESTABLISHED that borrows `workspace`.
    ///
    /// # Errors
    /// The path scheduler or the congestion controller does not exist, or refuses its configuration.
    pub(crate) fn new(
        now: Instant,
        from: Negotiated,
        workspace: Workspace,
        registry: &Registry,
        rng: &mut ChaCha12Rng,
    ) -> Result<Box<Self>, ScheduleError> {
        let Negotiated { identity, config, initial_tsn, peer, paths: seeds, checksum_offload, auth, random } =
            from;
        let (agreed, capabilities) = config.agreed_with(&peer, random, auth.is_some());
        let format = capabilities.data_format();
        let forwards = capabilities.has(Extension::PartialReliability);
        let delayed_ack = config.delayed_ack_with(capabilities);
        let (outbound_streams, inbound_streams) = config.streams_with(&peer);
        let auth = Authentication::new(auth);
        let rules = Arc::clone(config.path_rules());
        let mut paths = Paths::new(&config, registry, rules, format, now, seeds.len())?;
        for seed in seeds.iter() {
            paths.add(now, seed.local, seed.remote, seed.encapsulation_port, seed.confirmed);
        }
        paths.overhead = packet_overhead(&auth, &PacketProtection::default());
        paths.windows.limit_ssthresh(peer.a_rwnd as usize);
        paths.on_established(now, rng);
        let transmission = Transmission::new(initial_tsn, peer.a_rwnd, format, &config, delayed_ack);
        let path_scheduler =
            registry.build_path_scheduler(&config.path_scheduler, &config.path_scheduler_config)?;
        let mut outbound = Outbound::new(&config, registry, format, outbound_streams, paths.len());
        outbound.set_forwards(forwards);
        let mut association = Box::new(Association {
            scheduling: Scheduling::new(path_scheduler),
            policies_replaced: 0,
            reception: Reception::new(
                Receiver::new(peer.initial_tsn, &config, delayed_ack),
                Inbound::new(&config, inbound_streams, format, forwards),
            ),
            sender: Sender::new(config, paths, outbound, transmission),
            state: State::Established,
            capabilities,
            renegotiation: Renegotiation::new(initial_tsn.0, peer.initial_tsn.0),
            checksum_offload,
            identity,
            sharing: SharedBuffers::default(),
            reinjection: Reinjection::default(),
            auth,
            protection: PacketProtection::default(),
            marks: LazyBox::default(),
            control: ControlQueue::default(),
            shutdown: ShutdownTimers::default(),
            readable: Readable::Untold,
            counters: Counters::new(now),
            workspace,
            dry: false,
            kept_tag: false,
            foreseen: None,
        });
        let Association { sharing, sender, workspace, .. } = &mut *association;
        sharing.share(now, sender, &mut workspace.get().views.samples);
        association.emit(Event::Established { outbound_streams, inbound_streams });
        if let Some(code) = peer.adaptation {
            association.emit(Event::PeerAdaptation { code });
        }
        match agreed {
            Ok(Some(agreed)) => {
                // No message of the application may leave in the clear.
                association.sender.outbound.hold(Streams::All, HoldReason::Keys);
                association.emit(Event::ProtectionAgreed(Box::new(agreed.clone())));
                association.protection = PacketProtection::new(agreed, &association.sender.config);
                association.sender.paths.overhead =
                    packet_overhead(&association.auth, &association.protection);
            }
            Ok(None) => {}
            // The settings require protection, and its negotiation failed. Such a peer should have been refused before.
            Err(fault) => association.fault(fault.words()),
        }
        Ok(association)
    }

    pub(crate) fn state(&self) -> State {
        self.state
    }

    pub(crate) fn identity(&self) -> Identity {
        self.identity
    }

    /// Queues an event for the application.
    fn emit(&mut self, event: Event) {
        let events = &mut self.workspace.get().events;
        if self.readable.take_due() {
            events.push_back(Event::Readable);
        }
        events.push_back(event);
    }

    /// Time at which `handle_timeout` must be called next.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        if self.state == State::Closed {
            return None;
        }
        earliest([
            self.sender.paths.next_deadline(),
            self.reception.receiver.deadline(),
            self.shutdown.deadline(),
            self.sender.outbound.next_expiry(),
            self.renegotiation.deadline(),
            self.reinjection.deadline(),
            self.protection.deadline(),
        ])
    }

    /// Handles an event after which output may have something to send.
    fn request_output(&mut self) {
        self.foreseen = None;
        self.dry = false;
        self.reinjection.on_event();
    }

    /// Returns whether output may have something to send.
    pub(crate) fn may_have_output(&self) -> bool {
        !self.dry
    }

    /// Closes the association. Received messages can still be read.
    fn close(&mut self, reason: CloseReason) {
        if self.state != State::Closed {
            self.state = State::Closed;
            self.shutdown = ShutdownTimers::default();
            self.emit(Event::Closed(reason));
        }
    }

    /// Passes state changes of paths to all modules; does nothing in CLOSED.
    fn spread_path_changes(&mut self, now: Instant) {
        if self.state == State::Closed {
            return;
        }
        let mut changed = false;
        if self.sender.outbound.is_mapped() {
            // Error counters rank paths that are alike otherwise: another path than before may carry new data now.
            self.sender.refresh_usable();
        }
        while let Some((path, state)) = self.sender.paths.pop_state_change() {
            self.sender.refresh_usable();
            self.emit(Event::PathChanged { path, state });
            if state == PathState::Active && self.renegotiation.asconf.is_some() {
                self.with_asconf(now, |_, members| members.drop_substitutes(path));
            }
            changed = true;
        }
        if changed {
            self.sender.redirect_stranded();
            self.sharing.share(now, &mut self.sender, &mut self.workspace.get().views.samples);
        }
    }

    /// Handles an ABORT or SHUTDOWN COMPLETE with the T bit and the peer's own tag: the peer has no association (RFC 9260
    /// §8.5.1).
    pub(crate) fn on_reflected(&mut self, chunk: &Chunk<'_>) {
        if self.protection.is_required() {
            self.counters.discards.unprotected += 1;
            return;
        }
        if self.state == State::ShutdownAckSent {
            // All data was delivered and the peer has closed. Its SHUTDOWN COMPLETE was lost, or was overtaken by this answer to
            // a late packet.
            self.close(CloseReason::Graceful);
        } else if matches!(chunk, Chunk::Abort(_)) {
            self.close(CloseReason::unknown_to_peer());
        }
    }
}

/// Bytes that authentication and protection need in every packet.
fn packet_overhead(auth: &Authentication, protection: &PacketProtection) -> u16 {
    u16::try_from(auth.overhead() + protection.overhead()).unwrap_or(u16::MAX)
}

impl Counters {
    fn new(now: Instant) -> Self {
        Counters {
            duplicates: 0,
            sacks_sent: 0,
            sacks_received: 0,
            discards: LazyBox::default(),
            limits: LimitClock::new(now, Limit::Nothing),
        }
    }
}
