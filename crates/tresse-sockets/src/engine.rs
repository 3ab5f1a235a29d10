//! Engine: one endpoint of the core with its sockets, that is the one that was bound and those that were accepted or
//! peeled off.
//!
//! Owns the lock under which all of them change, and what events of the core mean to them. Independent of the layer below SCTP
//! (UDP or raw IP), which is `lower.rs`.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use rustix::net::Shutdown;
use tresse_proto::{AssociationId, CloseReason, Datagram, Endpoint, Event, Instant, PathState, PathStats};

use crate::association::{Ended, Phase, SocketAssociation};
use crate::notify::{self, Change};
use crate::ports::Claim;
use crate::settings::Style;
use crate::socket::{Notification, SocketState};
use crate::stack::{Outbox, Stack, lock};

/// An endpoint and its sockets.
pub(crate) struct Engine {
    state: Mutex<State>,
    /// Packets on their way out; held for a turn.
    outbox: Mutex<Outbox>,
    /// Packets that wait for the next turn.
    inbox: Mutex<Vec<Datagram>>,
    /// True if it is in the stack's list of engines with something to do.
    pub(crate) busy: AtomicBool,
    /// Own addresses; what comes to others is for somebody else.
    addresses: Mutex<Vec<IpAddr>>,
    deadline: AtomicU64,
    /// Descriptors show more than there is.
    woken: AtomicBool,
}

/// Address and port that an engine is bound to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    pub(crate) port: u16,
    pub(crate) addresses: Vec<IpAddr>,
    /// Addresses that were removed, and that associations still have.
    pub(crate) leaving: Vec<IpAddr>,
    /// The port among those of this process, with all of these addresses.
    pub(crate) claim: Claim,
    /// The program named no address: all of the host count.
    pub(crate) wildcard: bool,
}

impl Place {
    /// Addresses that packets come to.
    pub(crate) fn all(&self) -> Vec<IpAddr> {
        self.addresses.iter().chain(&self.leaving).copied().collect()
    }
}

/// State under the lock of an engine.
pub(crate) struct State {
    /// Endpoint of the core, once the engine listens, connects or sends.
    pub(crate) endpoint: Option<Endpoint>,
    pub(crate) place: Option<Place>,
    pub(crate) sockets: BTreeMap<u64, SocketState>,
    pub(crate) associations: BTreeMap<AssociationId, SocketAssociation>,
    /// Associations by the peer's addresses and port.
    pub(crate) names: HashMap<(IpAddr, u16), AssociationId>,
    /// Sockets whose readiness may have changed.
    touched: Vec<u64>,
    /// An association may have own addresses no longer that it had.
    lets_go: bool,
    /// Time of the last turn, or of the first command since then: for what needs no better one.
    pub(crate) clock: Instant,
    /// Commands since the last turn.
    commands: u32,
}

impl Engine {
    pub(crate) fn new(key: u64, socket: SocketState) -> Arc<Self> {
        Engine::with(BTreeMap::from([(key, socket)]))
    }

    /// Engine without a socket, for sockets that are in another process.
    pub(crate) fn vacant() -> Arc<Self> {
        Engine::with(BTreeMap::new())
    }

    fn with(sockets: BTreeMap<u64, SocketState>) -> Arc<Self> {
        let touched = sockets.keys().copied().collect();
        let state = State {
            endpoint: None,
            place: None,
            sockets,
            associations: BTreeMap::new(),
            names: HashMap::new(),
            touched,
            lets_go: false,
            clock: Instant::from_nanos(0),
            commands: 0,
        };
        Arc::new(Engine {
            state: Mutex::new(state),
            outbox: Mutex::default(),
            inbox: Mutex::default(),
            busy: AtomicBool::new(false),
            addresses: Mutex::default(),
            deadline: AtomicU64::new(u64::MAX),
            woken: AtomicBool::new(false),
        })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Holds all of it as it is: nobody is at work on it.
    pub(crate) fn hold(&self) -> impl Sized {
        (lock(&self.outbox), lock(&self.state), lock(&self.inbox), lock(&self.addresses))
    }

    /// Takes a packet for the next turn; returns whether it is the first.
    pub(crate) fn take(&self, datagram: Datagram) -> bool {
        let mut inbox = lock(&self.inbox);
        inbox.push(datagram);
        inbox.len() == 1
    }

    pub(crate) fn has(&self, address: IpAddr) -> bool {
        lock(&self.addresses).contains(&address)
    }

    /// Sets its addresses.
    pub(crate) fn set_addresses(&self, addresses: &[IpAddr]) {
        *lock(&self.addresses) = addresses.to_vec();
    }

    /// Gives back the addresses that were removed and that no association has any more. Until then what comes to them is for this
    /// engine: another one would answer the peer with an ABORT.
    pub(crate) fn give_back(&self, stack: &Stack, state: &mut State) {
        let Some(place) = state.place.as_mut().filter(|place| !place.leaving.is_empty()) else { return };
        let leaving = std::mem::take(&mut place.leaving);
        let (leaving, gone): (Vec<IpAddr>, Vec<IpAddr>) =
            leaving.into_iter().partition(|&address| state.is_address_used(stack.now(), address));
        let Some(place) = &mut state.place else { return };
        place.leaving = leaving;
        if !gone.is_empty() {
            self.set_addresses(&place.all());
            lock(&stack.ports).give_back(place.port, place.claim, &gone);
        }
    }

    pub(crate) fn deadline(&self) -> Instant {
        Instant::from_nanos(self.deadline.load(Ordering::Acquire))
    }

    /// Wakes whoever waits for any of its sockets.
    pub(crate) fn wake_descriptors(&self) {
        let mut state = self.lock();
        let keys: Vec<u64> = state.sockets.keys().copied().collect();
        for key in keys {
            if let Some(socket) = state.sockets.get_mut(&key) {
                socket.readiness.wake();
            }
            state.touch(key);
        }
        self.woken.store(true, Ordering::Release);
    }

    /// Returns whether the readiness of descriptors has to be updated.
    pub(crate) fn is_woken(&self) -> bool {
        self.woken.swap(false, Ordering::AcqRel)
    }

    /// Returns whether all associations have ended, and their last packets have left.
    pub(crate) fn is_over(&self) -> bool {
        let _none_on_the_way = lock(&self.outbox);
        self.lock().associations.values().all(SocketAssociation::is_over)
    }

    /// The contract loop of the core, until there is nothing left to send. Packets leave outside the lock, so that calls do not
    /// wait for the system; one turn at a time keeps their order.
    pub(crate) fn turn(&self, stack: &Stack) {
        let mut strays = Vec::new();
        let mut outbox = lock(&self.outbox);
        while self.turn_once(stack, &mut outbox, &mut strays) {}
        drop(outbox);
        // Only after the engine's locks are released: a fork takes the locks of the stack before them.
        stack.turn_away(strays);
    }

    /// Returns whether there is more to send. Packets that no endpoint takes go to `strays`.
    fn turn_once(&self, stack: &Stack, outbox: &mut Outbox, strays: &mut Vec<Datagram>) -> bool {
        let mut state = self.lock();
        let now = stack.now();
        state.clock = now;
        stack.note_commands(std::mem::take(&mut state.commands));
        for datagram in lock(&self.inbox).drain(..) {
            match &mut state.endpoint {
                Some(endpoint) => endpoint.handle_datagram(now, datagram),
                // It is bound and neither listens nor connects.
                None => strays.push(datagram),
            }
        }
        let more = state.settle(now, outbox);
        if std::mem::take(&mut state.lets_go) {
            self.give_back(stack, &mut state);
        }
        let deadline = state.next_deadline();
        self.deadline.store(deadline.map_or(u64::MAX, Instant::as_nanos), Ordering::Release);
        if let Some(deadline) = deadline {
            stack.wake_by(deadline);
        }
        let mut left = None;
        if !more && state.is_unused() {
            // Its last packets are in the outbox.
            state.endpoint = None;
            left = state.place.take();
        }
        let receive_buffer = state.endpoint.as_ref().map(|endpoint| endpoint.template().receive_buffer.0);
        drop(state);
        stack.note_turn(outbox.len(), receive_buffer.unwrap_or(usize::MAX));
        outbox.send(&stack.lower());
        if let Some(place) = left {
            stack.retire(place.port, self);
            lock(&stack.ports).free(place.port, place.claim);
        }
        more
    }
}

impl State {
    /// Returns whether no socket and no association is left.
    pub(crate) fn is_unused(&self) -> bool {
        self.sockets.is_empty() && self.associations.is_empty()
    }

    /// Time of a command that brings about a turn: the clock is read for the first one after the last turn, and those that
    /// follow before the next have the same time. What they lead to is not done before then either.
    pub(crate) fn command_time(&mut self, stack: &Stack) -> Instant {
        if self.commands == 0 {
            self.clock = stack.now();
        }
        self.commands += 1;
        self.clock
    }

    /// Returns whether an association has this own address. One that is being set up may have told its peer of any.
    fn is_address_used(&mut self, now: Instant, address: IpAddr) -> bool {
        let Some(endpoint) = &mut self.endpoint else { return false };
        self.associations.iter().any(|(&id, entry)| {
            let paths = endpoint.association(id).map(|association| association.path_stats(now));
            let uses = |path: &PathStats| path.local == address && path.state != PathState::Removed;
            entry.phase == Phase::Opening || paths.is_some_and(|paths| paths.iter().any(uses))
        })
    }

    /// Lets happen what is due, takes what is to be sent and hands out events. Returns whether there is more to send.
    fn settle(&mut self, now: Instant, outbox: &mut Outbox) -> bool {
        let mut more = false;
        if let Some(endpoint) = &mut self.endpoint {
            if endpoint.poll_timeout().is_some_and(|due| due <= now) {
                endpoint.handle_timeout(now);
            }
            more = outbox.fill(endpoint, now);
        }
        self.close_idle(now);
        self.dispatch_events(now);
        self.notify_dry();
        if let Some(endpoint) = &mut self.endpoint {
            // Consequences of events, such as an association that is released.
            more |= outbox.fill(endpoint, now);
        }
        self.refresh();
        more
    }

    fn next_deadline(&self) -> Option<Instant> {
        let core = self.endpoint.as_ref().and_then(Endpoint::poll_timeout);
        let idle = self.associations.values().filter_map(|entry| {
            let pause = self.sockets.get(&entry.owner)?.autoclose?;
            (entry.phase == Phase::Open).then(|| entry.last_used + pause)
        });
        core.into_iter().chain(idle).min()
    }

    /// Ends associations that were idle for as long as SCTP_AUTOCLOSE allows (RFC 6458 §8.1.8).
    fn close_idle(&mut self, now: Instant) {
        if self.sockets.values().all(|socket| socket.autoclose.is_none()) {
            return;
        }
        for (id, entry) in &mut self.associations {
            let pause = self.sockets.get(&entry.owner).and_then(|socket| socket.autoclose);
            let idle =
                pause.is_some_and(|pause| entry.phase == Phase::Open && entry.last_used + pause <= now);
            if let Some(mut association) =
                self.endpoint.as_mut().filter(|_| idle).and_then(|endpoint| endpoint.association(*id))
            {
                entry.phase = Phase::Closing;
                association.shutdown(now);
            }
        }
    }

    /// Hands out the events of the core.
    pub(crate) fn dispatch_events(&mut self, now: Instant) {
        while let Some((id, event)) = self.endpoint.as_mut().and_then(Endpoint::poll_event) {
            if !self.associations.contains_key(&id) && !self.welcome(now, id) {
                continue;
            }
            self.on_event(now, id, event);
        }
    }

    /// A peer has set up an association. It belongs to the socket that listens.
    fn welcome(&mut self, now: Instant, id: AssociationId) -> bool {
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
        self.associations.insert(id, entry);
        self.update_listening();
        true
    }

    /// Lets the endpoint answer INITs as long as a socket takes associations: peers of a full backlog are refused.
    pub(crate) fn update_listening(&mut self) {
        let listens = self.sockets.values().any(SocketState::admits);
        if let Some(endpoint) = &mut self.endpoint {
            endpoint.set_listening(listens);
        }
    }

    fn on_event(&mut self, now: Instant, id: AssociationId, event: Event) {
        let Some(entry) = self.associations.get_mut(&id) else { return };
        let key = entry.owner;
        entry.last_used = now;
        self.lets_go |= matches!(event, Event::Established { .. } | Event::OwnAddress { .. });
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
            // Wakes the calls that wait for this.
            entry.unsettled = None;
        }
        self.touch(key);
    }

    fn on_closed(&mut self, now: Instant, id: AssociationId, reason: &CloseReason) {
        let Some(entry) = self.associations.get_mut(&id) else { return };
        let opening = entry.phase == Phase::Opening;
        entry.phase = Phase::Ended(Ended::of(reason, opening));
        self.lets_go = true;
        entry.unblock();
        let (key, abandoned, awaited) = (entry.owner, entry.abandoned, entry.is_awaited());
        let state = match reason {
            _ if opening => notify::CANT_STR_ASSOC,
            CloseReason::Graceful => notify::SHUTDOWN_COMP,
            _ => notify::COMM_LOST,
        };
        let error = notify::cause_of(reason);
        // The rest of a message that was read in part does not come any more.
        if !self.has_unread(id) {
            self.give_up_part(id);
        }
        // First what was lost: a program that hears of the end may forget the association.
        self.notify_undelivered(id, error);
        let chunk = if state == notify::COMM_LOST { notify::abort_chunk(reason) } else { Vec::new() };
        self.notify_change(id, Change { error, ..Change::new(state, 0, 0) }, &chunk);
        // One-to-one sockets keep theirs for what can be read, and to tell why it ended; so does a call that waits for it.
        let keeps = awaited || self.sockets.get(&key).is_some_and(|socket| socket.style == Style::OneToOne);
        if abandoned || (!keeps && !self.has_unread(id)) {
            self.forget(now, id);
        }
    }

    fn has_unread(&self, id: AssociationId) -> bool {
        self.associations.get(&id).is_some_and(|entry| entry.next.is_some())
    }

    /// Lets go of an association.
    pub(crate) fn forget(&mut self, now: Instant, id: AssociationId) {
        if let Some(endpoint) = &mut self.endpoint {
            endpoint.release(now, id);
        }
        self.associations.remove(&id);
        self.names.retain(|_, of| *of != id);
        self.lets_go = true;
    }

    /// Marks a socket whose readiness may have changed.
    pub(crate) fn touch(&mut self, key: u64) {
        if self.touched.last() != Some(&key) {
            self.touched.push(key);
        }
    }

    /// Lets descriptors show what there is.
    pub(crate) fn refresh(&mut self) {
        while let Some(key) = self.touched.pop() {
            let (readable, writable, hung_up) =
                (self.is_readable(key), self.is_writable(key), self.hung_up(key));
            if let Some(socket) = self.sockets.get_mut(&key) {
                socket.show(key, readable, writable, hung_up);
            }
        }
    }

    pub(crate) fn is_readable(&self, key: u64) -> bool {
        let Some(socket) = self.sockets.get(&key) else { return true };
        if socket.limit.is_some() && socket.style == Style::OneToOne {
            return !socket.backlog.is_empty();
        }
        self.turn_of(key).is_some() || socket.read_shut || self.is_at_end(socket)
    }

    /// End of its association that a one-to-one socket shows. Of one that could not be set up it shows none: the socket may
    /// try again.
    fn hung_up(&self, key: u64) -> Option<Shutdown> {
        let socket = self.sockets.get(&key)?;
        let entry = socket.association.and_then(|id| self.associations.get(&id));
        let both = |both| Some(if both { Shutdown::Both } else { Shutdown::Write });
        match entry.map(|entry| entry.phase) {
            Some(Phase::Ended(Ended::With(_) | Ended::Told)) => Some(Shutdown::Both),
            Some(Phase::Ended(Ended::Gracefully)) => both(socket.write_shut),
            _ if socket.read_shut || entry.is_some_and(|entry| entry.peer_done) => both(socket.write_shut),
            _ => None,
        }
    }

    /// Returns whether nothing more can come on a one-to-one socket.
    pub(crate) fn is_at_end(&self, socket: &SocketState) -> bool {
        let entry = socket.association.and_then(|id| self.associations.get(&id));
        entry.is_some_and(|entry| entry.peer_done || matches!(entry.phase, Phase::Ended(_)))
            || (socket.style == Style::OneToOne && socket.was_connected && entry.is_none())
    }

    fn is_writable(&self, key: u64) -> bool {
        let Some(socket) = self.sockets.get(&key) else { return true };
        match socket.style {
            Style::OneToMany => !self.associations.values().any(|entry| entry.owner == key && entry.blocked),
            Style::OneToOne if socket.limit.is_some() => false,
            Style::OneToOne => match socket.association.and_then(|id| self.associations.get(&id)) {
                Some(entry) => match entry.phase {
                    Phase::Opening => false,
                    Phase::Open => !entry.blocked,
                    Phase::Closing | Phase::Ended(_) => true,
                },
                None => socket.was_connected,
            },
        }
    }

    /// Takes the next message of an association out of the core, if the last one is read.
    pub(crate) fn refill(&mut self, now: Instant, id: AssociationId) {
        let Some(entry) = self.associations.get_mut(&id) else { return };
        let Some(socket) = self.sockets.get_mut(&entry.owner).filter(|socket| !socket.read_shut) else {
            // No call will read the data: it is discarded, so that the peer can shut down.
            if let Some(mut association) = self.endpoint.as_mut().and_then(|core| core.association(id)) {
                while association.recv(now).is_some() {}
            }
            return;
        };
        if entry.next.is_none() {
            entry.fetch(self.endpoint.as_mut(), now, id, socket.options.interleave < 2);
            if entry.next.is_some() {
                socket.queue.push_data(id, &mut entry.turns);
            }
        }
    }

    /// Queues a notification if the program wants it, and drops it if there is no room ([`crate::queue::Queue`]). `build` is given the
    /// number of the association.
    pub(crate) fn notify(&mut self, id: AssociationId, kind: u16, build: impl FnOnce(i32) -> Vec<u8>) {
        self.queue_notification(id, kind, false, build);
    }

    /// The same for a notification that belongs to what was read last, and is read next.
    pub(crate) fn notify_next(&mut self, id: AssociationId, kind: u16, build: impl FnOnce(i32) -> Vec<u8>) {
        self.queue_notification(id, kind, true, build);
    }

    fn queue_notification(
        &mut self,
        id: AssociationId,
        kind: u16,
        next: bool,
        build: impl FnOnce(i32) -> Vec<u8>,
    ) {
        let Some(entry) = self.associations.get_mut(&id) else { return };
        if !entry.settings.wants(kind) {
            return;
        }
        if let Some(socket) = self.sockets.get_mut(&entry.owner) {
            let told =
                Notification { of: id, number: entry.number, from: entry.peer(), bytes: build(entry.number) };
            let room = socket.config.receive_buffer.0;
            if next {
                // One that was read in part stays the first.
                socket.queue.push_first(told, room, usize::from(socket.taken > 0));
            } else {
                let unread = entry.unread(self.endpoint.as_mut(), id);
                socket.queue.push_notification(told, room, &mut entry.turns, unread);
            }
        }
        let key = entry.owner;
        self.touch(key);
    }

    pub(crate) fn notify_change(&mut self, id: AssociationId, change: Change, info: &[u8]) {
        self.notify(id, notify::ASSOC_CHANGE, |number| notify::association_change(number, change, info));
    }

    /// The states of the peer's addresses as they were told last, by path.
    pub(crate) fn note_path(
        &mut self,
        id: AssociationId,
        path: usize,
        state: PathState,
    ) -> Option<PathState> {
        let paths = &mut self.associations.get_mut(&id)?.paths;
        if paths.len() <= path {
            paths.resize(path + 1, PathState::Unconfirmed);
        }
        Some(std::mem::replace(&mut paths[path], state))
    }

    /// The association that a number names.
    pub(crate) fn by_number(&self, key: u64, number: i32) -> Option<AssociationId> {
        let mut of_socket =
            self.associations.iter().filter(|(_, entry)| entry.owner == key && !entry.abandoned);
        of_socket.find(|(_, entry)| entry.number == number).map(|(&id, _)| id)
    }
}

/// The next association number of this process; real ones begin after the special ones.
pub(crate) fn fresh_number() -> i32 {
    static NEXT: AtomicI32 = AtomicI32::new(0);
    3 + (NEXT.fetch_add(1, Ordering::Relaxed) & (i32::MAX >> 1))
}
