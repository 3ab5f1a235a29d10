//! Engine: one endpoint of the core and its sockets, which are the bound socket and those accepted or peeled off from it.
//!
//! Owns the lock that protects them, and the effects of the core's events on them. Independent of the layer below SCTP (UDP or raw
//! IP), which is `lower.rs`.

use std::collections::{BTreeMap, HashMap};
use std::io::PipeReader;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use rustix::io::Errno;
use rustix::net::Shutdown;
use tresse_proto::{AssociationId, CloseReason, Datagram, Endpoint, Event, Instant, PathState, PathStats};

use crate::association::{Ended, Phase, SocketAssociation};
use crate::notify::{self, Change};
use crate::numbers::Private;
use crate::ports::Claim;
use crate::queue::Notification;
use crate::settings::Style;
use crate::socket::SocketState;
use crate::stack::{Outbox, Stack, lock};

/// An endpoint and its sockets.
pub(crate) struct Engine {
    state: Mutex<State>,
    /// Packets to be sent; locked during a turn.
    outbox: Mutex<Outbox>,
    /// Received packets, for the next turn.
    inbox: Mutex<Vec<Datagram>>,
    /// True if the engine is in the stack's list of engines that need a turn.
    pub(crate) busy: AtomicBool,
    /// Own addresses. Packets to other addresses are not for this engine.
    addresses: Mutex<Vec<IpAddr>>,
    deadline: AtomicU64,
    /// True if descriptors were made readable only to wake threads, and their true readiness has to be restored.
    woken: AtomicBool,
}

/// Addresses and port that an engine is bound to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    pub(crate) port: u16,
    pub(crate) addresses: Vec<IpAddr>,
    /// Addresses that were removed, but that associations still use.
    pub(crate) leaving: Vec<IpAddr>,
    /// The claim on the port for all of these addresses, among the ports of this process.
    pub(crate) claim: Claim,
    /// True if the program named no address: all addresses of the host are used.
    pub(crate) wildcard: bool,
}

impl Place {
    /// Returns the addresses at which packets are received.
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
    /// Associations by the association IDs that programs use.
    numbers: HashMap<i32, AssociationId>,
    /// Sockets whose readiness may have changed.
    touched: Vec<u64>,
    /// True if an association may have stopped using some of its own addresses.
    addresses_freed: bool,
    /// Time of the last turn, or of the first command since then, for uses that need no exact time.
    pub(crate) clock: Instant,
    /// Commands since the last turn.
    commands: u32,
    /// True once a socket has set SCTP_AUTOCLOSE: only then turns look for idle associations among all of them.
    pub(crate) closes_idle: bool,
    /// True once a program has subscribed to SCTP_SENDER_DRY_EVENT: only then turns look for associations whose data is acknowledged.
    pub(crate) tells_dry: bool,
}

impl Engine {
    pub(crate) fn new(key: u64, socket: SocketState) -> Arc<Self> {
        Engine::with(BTreeMap::from([(key, socket)]))
    }

    /// Creates an engine without sockets, for a socket that another process has.
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
            numbers: HashMap::new(),
            touched,
            addresses_freed: false,
            clock: Instant::from_nanos(0),
            commands: 0,
            closes_idle: false,
            tells_dry: false,
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

    /// Locks the whole engine: no thread works on it while the result is kept.
    pub(crate) fn hold(&self) -> impl Sized {
        (lock(&self.outbox), lock(&self.state), lock(&self.inbox), lock(&self.addresses))
    }

    /// Queues a packet for the next turn; returns whether it is the first.
    pub(crate) fn take(&self, datagram: Datagram) -> bool {
        let mut inbox = lock(&self.inbox);
        inbox.push(datagram);
        inbox.len() == 1
    }

    pub(crate) fn has(&self, address: IpAddr) -> bool {
        lock(&self.addresses).contains(&address)
    }

    /// Sets the addresses at which this engine receives packets.
    pub(crate) fn set_addresses(&self, addresses: &[IpAddr]) {
        *lock(&self.addresses) = addresses.to_vec();
    }

    /// Releases the removed addresses that no association uses any more. Until then packets to them are for this engine: another
    /// one would answer the peer with an ABORT.
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

    /// Wakes all threads that wait for one of the engine's sockets.
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

    /// Returns whether the readiness of descriptors has to be restored, and resets that flag.
    pub(crate) fn is_woken(&self) -> bool {
        self.woken.swap(false, Ordering::AcqRel)
    }

    /// Returns whether all associations have ended and their last packets have been sent.
    pub(crate) fn is_over(&self) -> bool {
        let _none_on_the_way = lock(&self.outbox);
        self.lock().associations.values().all(SocketAssociation::is_over)
    }

    /// Runs the driver loop of the core until there is nothing left to send. Packets are sent without the lock of the state, so
    /// that calls do not wait for the system. Only one turn runs at a time, which keeps packets in order.
    pub(crate) fn turn(&self, stack: &Stack) {
        let mut strays = Vec::new();
        let mut outbox = lock(&self.outbox);
        while self.turn_once(stack, &mut outbox, &mut strays) {}
        drop(outbox);
        // After the engine's locks are released: a fork locks the stack before the engines.
        stack.turn_away(strays);
    }

    /// Runs the loop once. Returns whether there is more to send. Packets that arrive without an endpoint are added to `strays`.
    fn turn_once(&self, stack: &Stack, outbox: &mut Outbox, strays: &mut Vec<Datagram>) -> bool {
        let mut state = self.lock();
        let now = stack.now();
        state.clock = now;
        stack.note_commands(std::mem::take(&mut state.commands));
        for datagram in lock(&self.inbox).drain(..) {
            match &mut state.endpoint {
                Some(endpoint) => endpoint.handle_datagram(now, datagram),
                // The socket is bound, and neither listens nor connects.
                None => strays.push(datagram),
            }
        }
        let more = state.settle(now, outbox);
        if std::mem::take(&mut state.addresses_freed) {
            self.give_back(stack, &mut state);
        }
        let deadline = state.next_deadline();
        self.deadline.store(deadline.map_or(u64::MAX, Instant::as_nanos), Ordering::Release);
        if let Some(deadline) = deadline {
            stack.wake_by(deadline);
        }
        let mut left = None;
        if !more && state.is_unused() {
            // The last packets are in the outbox already.
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

    /// Returns the time of a command that causes a turn. The clock is read for the first command after a turn. Further commands
    /// before the next turn get the same time: they take effect in that turn only.
    pub(crate) fn command_time(&mut self, stack: &Stack) -> Instant {
        if self.commands == 0 {
            self.clock = stack.now();
        }
        self.commands += 1;
        self.clock
    }

    /// Returns whether an association uses this own address. An association that is being set up may have announced any of them.
    fn is_address_used(&mut self, now: Instant, address: IpAddr) -> bool {
        let Some(endpoint) = &mut self.endpoint else { return false };
        self.associations.iter().any(|(&id, entry)| {
            let paths = endpoint.association(id).map(|association| association.path_stats(now));
            let uses = |path: &PathStats| path.local == address && path.state != PathState::Removed;
            entry.phase == Phase::Opening || paths.is_some_and(|paths| paths.iter().any(uses))
        })
    }

    /// Handles due timers, takes packets to be sent from the core, and dispatches events. Returns whether there is more to send.
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
            // Packets that result from events, for instance from the release of an association.
            more |= outbox.fill(endpoint, now);
        }
        self.refresh();
        more
    }

    fn next_deadline(&self) -> Option<Instant> {
        let core = self.endpoint.as_ref().and_then(Endpoint::poll_timeout);
        let looked_at = self.closes_idle.then_some(&self.associations).into_iter().flat_map(BTreeMap::values);
        let idle = looked_at.filter_map(|entry| {
            let pause = self.sockets.get(&entry.owner)?.autoclose?;
            (entry.phase == Phase::Open).then(|| entry.last_used + pause)
        });
        core.into_iter().chain(idle).min()
    }

    /// Shuts down associations that were idle for the time of SCTP_AUTOCLOSE (RFC 6458 §8.1.8).
    fn close_idle(&mut self, now: Instant) {
        if !self.closes_idle {
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

    /// Adds an association.
    pub(crate) fn enter(&mut self, id: AssociationId, entry: SocketAssociation) {
        self.numbers.insert(entry.number, id);
        self.associations.insert(id, entry);
    }

    /// Makes the endpoint accept INITs if a socket admits associations; with a full backlog it refuses them.
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

    fn has_unread(&self, id: AssociationId) -> bool {
        self.associations.get(&id).is_some_and(|entry| entry.next.is_some())
    }

    /// Releases an association in the core and removes its state.
    pub(crate) fn forget(&mut self, now: Instant, id: AssociationId) {
        if let Some(endpoint) = &mut self.endpoint {
            endpoint.release(now, id);
        }
        if let Some(entry) = self.associations.remove(&id) {
            self.numbers.remove(&entry.number);
            for peer in entry.peers {
                // A later association with this peer may have the name already.
                if self.names.get(&(peer, entry.remote_port)) == Some(&id) {
                    self.names.remove(&(peer, entry.remote_port));
                }
            }
        }
        self.addresses_freed = true;
    }

    /// Marks a socket whose readiness may have changed.
    pub(crate) fn touch(&mut self, key: u64) {
        if self.touched.last() != Some(&key) {
            self.touched.push(key);
        }
    }

    /// Updates the readiness that the descriptors of marked sockets show.
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

    /// Returns the end of its association that a one-to-one socket shows. After a failed set-up it shows none: the socket may
    /// connect again.
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

    /// Returns whether no more data can arrive at a one-to-one socket.
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

    /// Takes the next message of an association from the core, if the last one has been read.
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

    /// Queues a notification if the program subscribed to it, or drops it if there is no room ([`crate::queue::Queue`]). `build`
    /// gets the association ID.
    pub(crate) fn notify(&mut self, id: AssociationId, kind: u16, build: impl FnOnce(i32) -> Vec<u8>) {
        self.queue_notification(id, kind, false, build);
    }

    /// Queues a notification as [`Self::notify`] does, but to be read next: it concerns the message that was read last.
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
                // A notification that was read in part stays first.
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

    /// Notes the state of a path; returns its previous state, or `None` if there is no such association.
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

    /// Returns the association of this socket with the association ID `number`.
    pub(crate) fn by_number(&self, key: u64, number: i32) -> Option<AssociationId> {
        let id = *self.numbers.get(&number)?;
        self.associations.get(&id).is_some_and(|entry| entry.owner == key && !entry.abandoned).then_some(id)
    }

    /// Returns the state of the socket with this key.
    ///
    /// # Errors
    /// `BADF` when another thread has closed it.
    pub(crate) fn socket(&mut self, key: u64) -> Result<&mut SocketState, Errno> {
        self.sockets.get_mut(&key).ok_or(Errno::BADF)
    }

    /// Returns the read end of a pipe whose write end is closed when an association has room, or has ended: this association, or
    /// any blocked one of the socket. `None` if it is not blocked.
    ///
    /// # Errors
    /// No number for a descriptor is free.
    pub(crate) fn room(
        &mut self,
        key: u64,
        id: Option<AssociationId>,
    ) -> Result<Option<Arc<Private<PipeReader>>>, Errno> {
        let entry = match id {
            Some(id) => self.associations.get_mut(&id),
            None => self.associations.values_mut().find(|entry| entry.owner == key && entry.blocked),
        };
        entry.map_or(Ok(None), SocketAssociation::room)
    }
}
