//! State that the driver and the application's handles share: the core endpoint behind one lock, and the tasks that
//! wait for it.
//!
//! Commands take the lock, act on the core at once and wake the driver, so an error is returned by the call that causes
//! it. The lock is never held across an await or a system call.

use std::collections::VecDeque;
use std::collections::btree_map::{BTreeMap, Entry};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use tokio::sync::broadcast;
use tresse_proto::{AssociationHandle, AssociationId, CloseReason, Datagram, Event, Instant, SendError};

use crate::driver_group::Group;
#[cfg(not(feature = "encryption"))]
use crate::no_keyring::{KeyEvent, Keyring};
#[cfg(feature = "encryption")]
use crate::security::{KeyEvent, Keyring};
use crate::tap::{SharedTap, Tapped};
use crate::transport::{Batch, LocalStats, Socket, stats_of_addresses};
use crate::waiting::Signals;

pub(crate) struct Shared {
    /// The driver's number.
    pub(crate) number: usize,
    pub(crate) group: Arc<Group>,
    state: Mutex<State>,
}

impl Shared {
    pub(crate) fn new(
        (number, group): (usize, Arc<Group>),
        core: tresse_proto::Endpoint,
        locals: Vec<LocalStats>,
        keyring: Option<Keyring>,
    ) -> Self {
        let state = State {
            core,
            keyring,
            locals,
            joining: Vec::new(),
            leaving: Vec::new(),
            handed: Vec::new(),
            events: VecDeque::new(),
            tap: None,
            slots: BTreeMap::new(),
            backlog: VecDeque::new(),
            driver: None,
            clock: Instant::ZERO,
            touched: false,
            open: true,
            driven: true,
        };
        Shared { number, group, state: Mutex::new(state) }
    }

    /// Returns the time of the core: nanoseconds since the endpoint was bound.
    pub(crate) fn now(&self) -> Instant {
        self.group.now()
    }

    /// Returns the time of a command. The clock is read for the first command after a round of the driver; later
    /// commands before the next round have the same time. Their effects also wait for that round.
    pub(crate) fn command_time(&self, state: &mut State) -> Instant {
        if !state.touched {
            state.clock = self.now();
        }
        state.clock
    }

    /// Converts a time of the core into time of the runtime; at most a day ahead.
    pub(crate) fn system_time(&self, at: Instant) -> tokio::time::Instant {
        let ahead = at.since(self.now()).min(LONGEST_SLEEP);
        tokio::time::Instant::now() + ahead
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes key management its events before the core is polled for packets, so that its answers leave with the
    /// acknowledgement of the messages that it received. The other events wait for [`Shared::dispatch`].
    pub(crate) fn dispatch_keys(&self, state: &mut State, now: Instant) {
        if state.keyring.is_none() {
            return;
        }
        while let Some((id, event)) = state.core.poll_event() {
            match event {
                Event::ProtectionAgreed(_) | Event::KeyMessage { .. } => self.on_event(state, now, id, event),
                event => state.events.push_back((id, event)),
            }
        }
        // The core is polled next.
        state.note_commands();
    }

    /// Passes the core's events to the waiting tasks.
    pub(crate) fn dispatch(&self, state: &mut State, now: Instant) {
        while let Some((id, event)) = state.events.pop_front().or_else(|| state.core.poll_event()) {
            // An association that was released meanwhile has no events.
            if state.core.association(id).is_some() {
                self.on_event(state, now, id, event);
            }
        }
        if state.slots.is_empty() {
            self.group.idle.notify_waiters();
        }
    }

    fn on_event(&self, state: &mut State, now: Instant, id: AssociationId, event: Event) {
        let sealed = state.keyring.is_some();
        if let Entry::Vacant(place) = state.slots.entry(id) {
            // `max_associations` bounds the number of waiting associations together with all others.
            place.insert(Slot::new(Owner::Nobody));
            if !sealed {
                self.enqueue_accept(state, now, id);
            }
        }
        match state.on_event(now, id, &event) {
            KeyEvent::Foreign => {}
            KeyEvent::Own => return,
            KeyEvent::Sealed => return self.on_sealed(state, now, id),
        }
        if sealed && matches!(event, Event::Established { .. }) {
            // The application gets the association once the peer has proved its identity.
            return;
        }
        let Some(slot) = state.slots.get_mut(&id) else { return };
        let restarted = matches!(event, Event::Restarted { .. });
        slot.on_event(event);
        if slot.owner == Owner::Nobody {
            if restarted {
                // No application handle exists that could receive the messages of the restarted peer.
                state.with(id, |association| association.shutdown(now));
            }
            state.drain_unheld(id, now);
        }
    }

    /// Queues an association of a peer for `accept`.
    fn enqueue_accept(&self, state: &mut State, now: Instant, id: AssociationId) {
        if !state.open {
            return state.abort(id, now, "nobody accepts associations here now");
        }
        if let Some(slot) = state.slots.get_mut(&id) {
            slot.owner = Owner::Backlog;
            state.backlog.push_back(id);
            self.group.incoming.notify_one();
        }
    }

    /// The peer has proved its identity, and everything is encrypted from now on.
    fn on_sealed(&self, state: &mut State, now: Instant, id: AssociationId) {
        let Some(slot) = state.slots.get_mut(&id) else { return };
        slot.open();
        match slot.owner {
            // If this side opened the association, the application has dropped it meanwhile.
            Owner::Nobody if slot.called => {
                state.with(id, |association| association.shutdown(now)).unwrap_or_default()
            }
            Owner::Nobody => self.enqueue_accept(state, now, id),
            Owner::Application | Owner::Backlog => {}
        }
    }

    /// Ends all associations for the application, because the driver has ended.
    pub(crate) fn on_driver_gone(&self) {
        let mut state = self.lock();
        state.driven = false;
        // An association that has ended before keeps its reason.
        for slot in state.slots.values_mut().filter(|slot| slot.ended().is_none()) {
            slot.on_event(Event::Closed(CloseReason::DriverEnded));
        }
        self.group.incoming.notify_waiters();
        self.group.idle.notify_waiters();
    }
}

pub(crate) struct State {
    pub(crate) core: tresse_proto::Endpoint,
    /// Key management, if associations are encrypted.
    pub(crate) keyring: Option<Keyring>,
    /// Counters of the operating system for packets, as last read by the driver.
    pub(crate) locals: Vec<LocalStats>,
    /// Sockets that the driver has not taken yet.
    joining: Vec<Socket>,
    /// Addresses whose sockets the driver has not closed yet.
    leaving: Vec<IpAddr>,
    /// Datagrams passed on by other drivers that this driver has not taken yet.
    handed: Vec<Datagram>,
    /// Events of the core that are published after its packets have left.
    events: VecDeque<(AssociationId, Event)>,
    /// Tap of the packets, and the number of the driver.
    tap: Option<(SharedTap, usize)>,
    slots: BTreeMap<AssociationId, Slot>,
    /// Associations set up by peers and not accepted yet.
    backlog: VecDeque<AssociationId>,
    driver: Option<Waker>,
    clock: Instant,
    /// True if the core has had a command since the last round of the driver.
    touched: bool,
    /// True while the application holds the endpoint.
    open: bool,
    /// True while the driver runs.
    driven: bool,
}

impl State {
    /// Sets whether peers can set up associations.
    pub(crate) fn set_listening(&mut self, listen: bool) {
        self.core.set_listening(listen);
        if let Some(keyring) = self.keyring.as_mut().filter(|_| listen) {
            keyring.let_others_call();
            let template = keyring.require(self.core.template().clone());
            let checked = self.core.set_template(template);
            debug_assert!(checked.is_ok(), "only the role in key management differs");
        }
    }

    /// Stores the waker that a command uses to wake the driver.
    pub(crate) fn set_driver(&mut self, waker: &Waker) {
        match &mut self.driver {
            Some(known) => known.clone_from(waker),
            unset => *unset = Some(waker.clone()),
        }
    }

    /// Wakes the driver after a command to the core.
    pub(crate) fn wake_driver(&mut self) {
        self.touched = true;
        if let Some(waker) = self.driver.take() {
            waker.wake();
        }
    }

    /// Returns the time of the driver's last round, for uses that need no exact time.
    pub(crate) fn clock(&self) -> Instant {
        self.clock
    }

    /// Stores the time of a round.
    pub(crate) fn set_clock(&mut self, now: Instant) {
        self.clock = now;
    }

    /// Returns the addresses from which paths can start.
    pub(crate) fn addresses(&self) -> Vec<IpAddr> {
        self.locals.iter().map(|local| local.local).collect()
    }

    /// Adds sockets, which the driver takes in its next round.
    pub(crate) fn join(&mut self, sockets: Vec<Socket>) {
        self.locals.extend(stats_of_addresses(sockets.iter().map(Socket::stats).cloned()));
        self.core.set_local_addresses(self.addresses());
        self.joining.extend(sockets);
        self.wake_driver();
    }

    /// Removes an address; the driver closes its sockets in its next round.
    pub(crate) fn leave(&mut self, local: IpAddr) {
        self.locals.retain(|stats| stats.local != local);
        self.core.set_local_addresses(self.addresses());
        self.leaving.push(local);
        self.wake_driver();
    }

    /// Takes datagrams from another driver. Too many of them are dropped, as if the network had dropped them.
    pub(crate) fn hand(&mut self, datagrams: Vec<Datagram>) {
        let room = MOST_HANDED.saturating_sub(self.handed.len());
        self.handed.extend(datagrams.into_iter().take(room));
        self.wake_driver();
    }

    /// Appends the datagrams from other drivers to `arrived`.
    pub(crate) fn take_handed(&mut self, arrived: &mut Vec<Datagram>) {
        arrived.append(&mut self.handed);
    }

    /// Passes all packets and states of this driver, number `driver`, to `tap` from now on, in place of a former tap.
    pub(crate) fn set_tap(&mut self, tap: SharedTap, driver: usize) {
        self.tap = Some((tap, driver));
    }

    /// Passes arrived datagrams to the tap, before they are processed.
    pub(crate) fn tap_arrivals(&mut self, now: Instant, arrived: &[Datagram]) {
        let Some((tap, _)) = &self.tap else { return };
        let mut tap = tap.lock().unwrap_or_else(PoisonError::into_inner);
        for datagram in arrived {
            let Datagram { local, remote, encapsulation_port, ecn, .. } = *datagram;
            let packet = &datagram.payload;
            let tapped = Tapped { local, remote, udp_port: encapsulation_port, ecn, packet };
            tap.on_received(now.since(Instant::ZERO), &tapped);
        }
    }

    /// Passes the state of associations, and the departing packets, to the tap.
    pub(crate) fn tap_departures(&mut self, now: Instant, batch: &Batch) {
        let Some((tap, driver)) = &self.tap else { return };
        let (mut tap, driver) = (tap.lock().unwrap_or_else(PoisonError::into_inner), *driver);
        let at = now.since(Instant::ZERO);
        for &id in self.slots.keys() {
            if let Some(association) = self.core.association(id)
                && let Some(stats) = association.stats(now)
            {
                tap.on_state(at, crate::AssociationId { driver, id }, &stats, &association.path_stats(now));
            }
        }
        for (to, run) in batch.iter() {
            for packet in run.bytes.chunks(run.segment.max(1)) {
                let (local, remote, udp_port, ecn) = (to.local, to.remote, to.udp_port, to.ecn);
                tap.on_sent(at, &Tapped { local, remote, udp_port, ecn, packet });
            }
        }
    }

    /// Takes the sockets that were added since the last call.
    pub(crate) fn take_joining(&mut self) -> Vec<Socket> {
        std::mem::take(&mut self.joining)
    }

    /// Takes the addresses that were removed since the last call.
    pub(crate) fn take_leaving(&mut self) -> Vec<IpAddr> {
        std::mem::take(&mut self.leaving)
    }

    /// Returns whether the core has had a command since the last [`State::note_commands`].
    pub(crate) fn is_touched(&self) -> bool {
        self.touched
    }

    /// Notes that the driver now handles the commands given to the core.
    pub(crate) fn note_commands(&mut self) {
        self.touched = false;
    }

    /// Passes an event to key management.
    fn on_event(&mut self, now: Instant, id: AssociationId, event: &Event) -> KeyEvent {
        let Some(keyring) = &mut self.keyring else { return KeyEvent::Foreign };
        let called = self.slots.get(&id).is_some_and(|slot| slot.called);
        let heard = keyring.on_event(&mut self.core, now, (id, called), event);
        self.touched |= heard != KeyEvent::Foreign;
        heard
    }

    /// Requests new keys for an association.
    #[cfg(feature = "encryption")]
    pub(crate) fn renew_keys(&mut self, id: AssociationId, now: Instant) {
        if let Some(keyring) = &mut self.keyring {
            keyring.renew_now(&mut self.core, now, id);
            self.wake_driver();
        }
    }

    /// Returns the time at which [`State::handle_timeout`] is due.
    pub(crate) fn poll_timeout(&mut self) -> Option<Instant> {
        let keys = self.keyring.as_ref().and_then(Keyring::poll_timeout);
        [self.core.poll_timeout(), keys].into_iter().flatten().min()
    }

    /// Handles the timers that are due.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if self.core.poll_timeout().is_some_and(|due| due <= now) {
            self.core.handle_timeout(now);
        }
        if let Some(keyring) = &mut self.keyring {
            keyring.handle_timeout(&mut self.core, now);
        }
    }

    /// Returns whether the driver still runs.
    pub(crate) fn is_driven(&self) -> bool {
        self.driven
    }

    /// Refuses messages that nobody would send.
    pub(crate) fn check_driven(&self) -> Result<(), SendError> {
        if self.driven { Ok(()) } else { Err(SendError::NotOpen { state: "CLOSED" }) }
    }

    /// Returns whether this driver will get no commands any more.
    pub(crate) fn is_finished(&self) -> bool {
        !self.open && self.slots.is_empty()
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.slots.is_empty()
    }

    /// Adds an association that this side opened. Without a running driver it has ended already.
    pub(crate) fn insert(&mut self, id: AssociationId) -> Arc<Signals> {
        let mut slot = Slot::new(Owner::Application);
        slot.called = true;
        if !self.driven {
            slot.on_event(Event::Closed(CloseReason::DriverEnded));
        }
        let signals = Arc::clone(&slot.signals);
        self.slots.insert(id, slot);
        signals
    }

    /// Returns the next association that a peer has set up.
    pub(crate) fn accept(&mut self) -> Option<(AssociationId, Arc<Signals>)> {
        let id = self.backlog.pop_front()?;
        let slot = self.slots.get_mut(&id)?;
        slot.owner = Owner::Application;
        Some((id, Arc::clone(&slot.signals)))
    }

    pub(crate) fn slot(&self, id: AssociationId) -> Option<&Slot> {
        self.slots.get(&id)
    }

    /// Returns a receiver of the events of `id` from now on.
    pub(crate) fn subscribe(&mut self, id: AssociationId) -> broadcast::Receiver<Event> {
        let sender = broadcast::Sender::new(EVENT_BACKLOG);
        match self.slots.get_mut(&id) {
            Some(slot) if slot.ended().is_none() => slot.events.get_or_insert(sender).subscribe(),
            _ => sender.subscribe(),
        }
    }

    pub(crate) fn abort(&mut self, id: AssociationId, now: Instant, reason: &str) {
        if let Some(mut association) = self.core.association(id) {
            association.abort(now, reason);
        }
        self.wake_driver();
    }

    /// The application dropped an association: queued messages are still delivered, arriving messages are discarded.
    pub(crate) fn detach(&mut self, id: AssociationId, now: Instant) {
        let Some(slot) = self.slots.get_mut(&id) else { return };
        slot.owner = Owner::Nobody;
        match slot.phase {
            Phase::Opening => self.abort(id, now, "given up during set-up"),
            Phase::Open => self.with(id, |association| association.shutdown(now)).unwrap_or_default(),
            Phase::Ended(_) => {}
        }
        self.drain_unheld(id, now);
        self.wake_driver();
    }

    /// The application dropped the endpoint: associations that it never accepted are aborted.
    pub(crate) fn close(&mut self, now: Instant) {
        self.open = false;
        for id in std::mem::take(&mut self.backlog) {
            if let Some(slot) = self.slots.get_mut(&id) {
                slot.owner = Owner::Nobody;
            }
            self.abort(id, now, "the application has closed its endpoint");
            self.drain_unheld(id, now);
        }
        self.wake_driver();
    }

    /// Runs a command on an association that has not been released.
    pub(crate) fn with<T>(
        &mut self,
        id: AssociationId,
        command: impl FnOnce(&mut AssociationHandle<'_>) -> T,
    ) -> Option<T> {
        self.core.association(id).map(|mut association| command(&mut association))
    }

    /// Discards the messages of an association without a handle, so that its buffer does not fill, and releases it once it has ended.
    fn drain_unheld(&mut self, id: AssociationId, now: Instant) {
        self.touched = true;
        if let Some(mut association) = self.core.association(id) {
            while association.recv(now).is_some() {}
        }
        if self.slots.get(&id).is_some_and(|slot| slot.ended().is_some()) {
            self.core.release(now, id);
            self.slots.remove(&id);
            if let Some(keyring) = &mut self.keyring {
                keyring.forget(id);
            }
        }
    }
}

/// State of one association that this crate keeps beside the core.
pub(crate) struct Slot {
    owner: Owner,
    /// True if this side opened the association.
    called: bool,
    phase: Phase,
    peer_done: bool,
    signals: Arc<Signals>,
    events: Option<broadcast::Sender<Event>>,
}

impl Slot {
    fn new(owner: Owner) -> Self {
        Slot {
            owner,
            called: false,
            phase: Phase::Opening,
            peer_done: false,
            signals: Arc::default(),
            events: None,
        }
    }

    /// Returns whether set-up is complete, or the association has ended.
    pub(crate) fn is_settled(&self) -> bool {
        !matches!(self.phase, Phase::Opening)
    }

    /// Returns the reason for which the association ended, if it has.
    pub(crate) fn ended(&self) -> Option<&CloseReason> {
        match &self.phase {
            Phase::Ended(reason) => Some(reason),
            _ => None,
        }
    }

    /// Returns whether the peer will send no more messages.
    pub(crate) fn peer_done(&self) -> bool {
        self.peer_done
    }

    /// Makes the association available to the application.
    fn open(&mut self) {
        self.phase = Phase::Open;
        self.signals.phase.notify_waiters();
    }

    fn on_event(&mut self, event: Event) {
        match &event {
            Event::Established { .. } => return self.open(),
            Event::Readable => return self.signals.readable.notify_waiters(),
            Event::Writable => return self.signals.writable.notify_waiters(),
            Event::LowWater { .. } => self.signals.low_water.notify_waiters(),
            Event::PeerShutdown => {
                self.peer_done = true;
                self.signals.readable.notify_waiters();
            }
            Event::Restarted { .. } => self.peer_done = false,
            Event::Closed(reason) => {
                self.phase = Phase::Ended(reason.clone());
                self.signals.all();
            }
            _ => {}
        }
        if let Some(events) = &self.events {
            // An error means that there is no receiver now, which is no fault.
            let _ = events.send(event);
        }
        if self.ended().is_some() {
            self.events = None;
        }
    }
}

#[derive(Copy, Clone, PartialEq, Eq)]
enum Owner {
    /// The application holds a handle.
    Application,
    /// The association waits for `accept`.
    Backlog,
    /// The last handle was dropped, and the association is shutting down; or the peer has not proved its identity yet.
    Nobody,
}

enum Phase {
    Opening,
    Open,
    Ended(CloseReason),
}

/// Most datagrams of other drivers that wait for a driver, a few batches from all of them.
const MOST_HANDED: usize = 4096;
/// Events kept for a slow receiver; older ones are dropped.
const EVENT_BACKLOG: usize = 64;
/// Bounds the arithmetic of far deadlines.
const LONGEST_SLEEP: std::time::Duration = std::time::Duration::from_secs(86_400);
