//! Engine: one endpoint of the core and its sockets, which are the bound socket and those accepted or peeled off from it.
//!
//! Owns the lock that protects them. Independent of the layer below SCTP (UDP or raw IP), which is `lower.rs`, of descriptors, and of
//! the thread that gives it turns.

use std::collections::{BTreeMap, HashMap};
use std::io::PipeReader;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use rustix::io::Errno;
use tresse_proto::{AssociationId, Datagram, Endpoint, Instant, PathState, PathStats};

use crate::association::{Phase, SocketAssociation};
use crate::lower::Outbox;
use crate::notify::{self, Change};
use crate::numbers::Private;
use crate::ports::Claim;
use crate::queue::{Item, Notification};
use crate::shared::{Shared, lock};
use crate::socket::SocketState;

/// An endpoint and its sockets.
pub(crate) struct Engine {
    state: Mutex<State>,
    /// Packets to be sent; locked during a turn.
    outbox: Mutex<Outbox>,
    /// Received packets, for the next turn.
    pub(crate) inbox: Mutex<Vec<Datagram>>,
    /// True if the engine is in the stack's list of engines that need a turn.
    pub(crate) busy: AtomicBool,
    /// Own addresses. Packets to other addresses are not for this engine.
    addresses: Mutex<Vec<IpAddr>>,
    pub(crate) deadline: AtomicU64,
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
    pub(crate) touched: Vec<u64>,
    /// True if an association may have stopped using some of its own addresses.
    pub(crate) addresses_freed: bool,
    /// Time of the last turn, or of the first command since then, for uses that need no exact time.
    pub(crate) clock: Instant,
    /// Commands since the last turn.
    pub(crate) commands: u32,
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

    /// Locks the packets to be sent, for a turn.
    pub(crate) fn lock_outbox(&self) -> MutexGuard<'_, Outbox> {
        lock(&self.outbox)
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
    pub(crate) fn give_back(&self, shared: &Shared, state: &mut State) {
        let Some(place) = state.place.as_mut().filter(|place| !place.leaving.is_empty()) else { return };
        let leaving = std::mem::take(&mut place.leaving);
        let (leaving, gone): (Vec<IpAddr>, Vec<IpAddr>) =
            leaving.into_iter().partition(|&address| state.is_address_used(shared.now(), address));
        let Some(place) = &mut state.place else { return };
        place.leaving = leaving;
        if !gone.is_empty() {
            self.set_addresses(&place.all());
            lock(&shared.ports).give_back(place.port, place.claim, &gone);
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
}

impl State {
    /// Returns whether no socket and no association is left.
    pub(crate) fn is_unused(&self) -> bool {
        self.sockets.is_empty() && self.associations.is_empty()
    }

    /// Returns the time of a command that causes a turn. The clock is read for the first command after a turn. Further commands
    /// before the next turn get the same time: they take effect in that turn only.
    pub(crate) fn command_time(&mut self, shared: &Shared) -> Instant {
        if self.commands == 0 {
            self.clock = shared.now();
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

    pub(crate) fn has_unread(&self, id: AssociationId) -> bool {
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

    /// Returns the item that is read next. With SCTP_FRAGMENT_INTERLEAVE 0 no other item is read while a message is delivered in
    /// parts.
    pub(crate) fn turn_of(&self, key: u64) -> Option<Item> {
        let socket = self.sockets.get(&key)?;
        match socket.in_progress {
            Some(id) if socket.options.interleave == 0 => {
                let has = self.associations.get(&id).is_some_and(|entry| entry.next.is_some());
                has.then_some(Item::Data(id))
            }
            _ => socket.queue.front().cloned(),
        }
    }

    /// Queues the notification that the rest of a message, of which a part was read, will not arrive (RFC 6458 §6.1.7). Other items
    /// can be read then.
    pub(crate) fn give_up_part(&mut self, id: AssociationId) {
        let Some(entry) = self.associations.get(&id) else { return };
        let (owner, unfinished) = (entry.owner, entry.unfinished());
        let Some(socket) = self.sockets.get_mut(&owner).filter(|socket| socket.in_progress == Some(id))
        else {
            return;
        };
        socket.in_progress = None;
        let (stream, ssn) = unfinished.unwrap_or_default();
        self.notify_next(id, notify::PARTIAL_DELIVERY, |number| {
            notify::partial_delivery_aborted(number, stream, ssn)
        });
        self.touch(owner);
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

    /// Updates the peer's addresses from the paths of the core.
    pub(crate) fn note_peers(&mut self, now: Instant, id: AssociationId) {
        let Some(association) = self.endpoint.as_mut().and_then(|core| core.association(id)) else { return };
        let mut paths = association.path_stats(now);
        paths.sort_by_key(|path| !path.primary);
        let mut peers: Vec<IpAddr> = Vec::new();
        for path in paths {
            if !peers.contains(&path.remote) {
                peers.push(path.remote);
            }
        }
        if !peers.is_empty() {
            self.name_peers(id, peers);
        }
    }

    /// Sets the addresses of the peer.
    pub(crate) fn name_peers(&mut self, id: AssociationId, peers: Vec<IpAddr>) {
        let Some(entry) = self.associations.get_mut(&id) else { return };
        for &gone in entry.peers.iter().filter(|peer| !peers.contains(peer)) {
            self.names.remove(&(gone, entry.remote_port));
        }
        for &peer in &peers {
            self.names.insert((peer, entry.remote_port), id);
        }
        entry.peers = peers;
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
