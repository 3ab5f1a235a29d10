//! All engines of this process, and the one thread that drives them.
//!
//! The thread runs the driver loop of the core for all endpoints: take received packets, handle due timers, poll for packets until
//! there are none, dispatch the events, sleep until the deadline. In the synchronous mode each call does this itself, and the
//! thread only sleeps and wakes descriptors.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use rustix::io::Errno;
use tresse_proto::{AssociationConfig, Datagram, DriverLoad, Endpoint, EndpointConfig, Instant, Moderation};

use crate::engine::Engine;
use crate::intake::Buffers;
use crate::lower::{Encapsulation, LowerSocket, Outbox, RECEIVE_BATCH};
use crate::shared::{ASLEEP, GATHERING, Shared, endpoint, lock};
use crate::{parent, table};

/// The engines of this process, and what they share.
pub(crate) struct Stack {
    pub(crate) shared: Shared,
    /// Engines that got commands from calls.
    busy: Mutex<Vec<Arc<Engine>>>,
    engines: RwLock<HashMap<u16, Vec<Arc<Engine>>>>,
    intake: Mutex<Intake>,
    /// Locked while descriptors are woken, and while their readiness is read.
    gate: Mutex<()>,
}

/// Received packets on their way to the engines.
struct Intake {
    buffers: Buffers,
    inbox: Vec<Datagram>,
    /// Packets that arrived since the thread last waited.
    load: DriverLoad,
    /// Endpoint that responds to out of the blue packets: no socket has their port, or the one that has it neither listens nor
    /// connects (RFC 9260 §8.4).
    stray_endpoint: Option<Endpoint>,
    touched: Vec<Arc<Engine>>,
}

static STACK: OnceLock<Stack> = OnceLock::new();
static ASKED_SYNCHRONOUS: AtomicBool = AtomicBool::new(false);

/// Returns the stack of this process; the first call creates it and its thread.
///
/// # Errors
/// Errors of the system.
pub(crate) fn stack() -> Result<&'static Stack, Errno> {
    if let Some(stack) = STACK.get() {
        return Ok(stack);
    }
    let made = Stack::new()?;
    let mut first = false;
    let stack = STACK.get_or_init(|| {
        first = true;
        made
    });
    if first && !stack.run() {
        return Err(Errno::AGAIN);
    }
    Ok(stack)
}

/// Requests the synchronous mode. Returns whether it is on: it cannot be turned on once there is a socket.
pub fn set_synchronous() -> bool {
    ASKED_SYNCHRONOUS.store(true, Ordering::Relaxed);
    STACK.get().is_none_or(|stack| stack.shared.is_synchronous())
}

/// In the synchronous mode: receives packets and handles due timers until nothing is left, and then calls `look`, which reads the
/// true readiness of descriptors. `None` if the thread does that work.
pub(crate) fn turn_in_call<T>(look: impl FnOnce() -> T) -> Option<T> {
    let stack = STACK.get().filter(|stack| stack.shared.is_synchronous() && parent::elsewhere().is_none())?;
    let _quiet = lock(&stack.gate);
    while stack.turn() {}
    Some(look())
}

impl Stack {
    fn new() -> Result<Self, Errno> {
        let named = std::env::var("TRESSE_SYNCHRONOUS").is_ok_and(|text| text != "0");
        Ok(Stack {
            shared: Shared::new(named || ASKED_SYNCHRONOUS.load(Ordering::Relaxed))?,
            busy: Mutex::default(),
            engines: RwLock::default(),
            gate: Mutex::default(),
            intake: Mutex::new(Intake {
                buffers: Buffers::new(RECEIVE_BATCH),
                inbox: Vec::new(),
                load: DriverLoad::default(),
                stray_endpoint: endpoint(EndpointConfig::default(), AssociationConfig::default()).ok(),
                touched: Vec::new(),
            }),
        })
    }

    /// Starts the thread; returns whether it started.
    pub(crate) fn run(&'static self) -> bool {
        self.shared.begin_thread();
        let run = move || if self.shared.is_synchronous() { self.watch() } else { self.drive() };
        crate::ffi::quiet_thread("tresse", run)
    }

    /// Prevents the reception of packets and the waking of descriptors while the result is kept.
    pub(crate) fn hold_intake(&self) -> impl Sized {
        (lock(&self.gate), lock(&self.intake))
    }

    /// Locks the state that all engines share. The engines are locked before.
    pub(crate) fn hold_shared(&self) -> impl Sized {
        let engines = self.engines.write().unwrap_or_else(PoisonError::into_inner);
        (engines, self.shared.hold(), lock(&self.busy))
    }

    /// Returns the stack of this process, if there is one.
    pub(crate) fn existing() -> Option<&'static Self> {
        STACK.get()
    }

    /// Returns whether there is no socket and no association.
    pub(crate) fn is_idle(&self) -> bool {
        self.engines.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    pub(crate) fn now(&self) -> Instant {
        self.shared.now()
    }

    /// Makes this engine receive packets to `port`.
    pub(crate) fn register(&self, port: u16, engine: &Arc<Engine>) {
        let mut engines = self.engines.write().unwrap_or_else(PoisonError::into_inner);
        engines.entry(port).or_default().push(Arc::clone(engine));
    }

    /// Removes an engine that has no socket and no association left.
    fn retire(&self, port: u16, engine: &Engine) {
        let mut engines = self.engines.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(of_port) = engines.get_mut(&port) {
            of_port.retain(|one| !std::ptr::eq(&raw const **one, engine));
            if of_port.is_empty() {
                engines.remove(&port);
            }
        }
    }

    /// Begins a call: in the synchronous mode packets are received and due timers handled first.
    pub(crate) fn enter(&self) {
        if self.shared.is_synchronous() {
            self.turn();
        }
    }

    /// Ends a call that gave a command to `engine`.
    pub(crate) fn leave(&self, engine: &Arc<Engine>) {
        if self.shared.is_synchronous() {
            self.turn_engine(engine);
            return;
        }
        // If the engine is busy already, nothing is written: other threads read the flag too. The command is not missed: it was
        // given under the engine's lock, and the engine stays busy until a turn begins, which takes this lock.
        if !engine.busy.load(Ordering::Acquire) && !engine.busy.swap(true, Ordering::AcqRel) {
            lock(&self.busy).push(Arc::clone(engine));
            self.shared.wake_thread();
        }
    }

    /// Receives packets, and gives a turn to each engine with packets, commands or due timers. Returns whether there was one.
    pub(crate) fn turn(&self) -> bool {
        let mut touched = self.take_in();
        for engine in lock(&self.busy).drain(..) {
            engine.busy.store(false, Ordering::Release);
            touched.push(engine);
        }
        if self.shared.is_synchronous() {
            self.each_engine(|engine| {
                if engine.is_woken() {
                    touched.push(Arc::clone(engine));
                }
            });
        }
        let now = self.now();
        if self.shared.take_due(now) {
            self.each_engine(|engine| {
                let deadline = engine.deadline();
                if deadline <= now {
                    touched.push(Arc::clone(engine));
                } else {
                    self.shared.wake_by(deadline);
                }
            });
        }
        for engine in &touched {
            self.turn_engine(engine);
        }
        !touched.is_empty()
    }

    /// Gives turns to an engine until it has nothing left to send. Packets are sent without the lock of the engine's state, so that
    /// calls do not wait for the system. Only one turn of an engine runs at a time, which keeps packets in order.
    pub(crate) fn turn_engine(&self, engine: &Engine) {
        let mut strays = Vec::new();
        let mut outbox = engine.lock_outbox();
        loop {
            let turn = engine.turn(&self.shared, &mut outbox, &mut strays);
            if let Some(place) = turn.left {
                self.retire(place.port, engine);
                lock(&self.shared.ports).free(place.port, place.claim);
            }
            if !turn.more {
                break;
            }
        }
        drop(outbox);
        // After the engine's locks are released: a fork locks the stack before the engines.
        self.turn_away(strays);
    }

    /// Receives packets and queues them at their engines; returns the engines that had none queued before.
    fn take_in(&self) -> Vec<Arc<Engine>> {
        let mut intake = lock(&self.intake);
        let Intake { buffers, inbox, load, stray_endpoint, touched } = &mut *intake;
        let lower = self.shared.lower();
        for socket in lower.iter() {
            for _ in 0..BATCHES {
                if !socket.receive(buffers, inbox) {
                    break;
                }
            }
        }
        let engines = self.engines.read().unwrap_or_else(PoisonError::into_inner);
        load.packets += inbox.len();
        for datagram in inbox.drain(..) {
            load.bytes += datagram.payload.len();
            let Some(port) = datagram.payload.get(2..4) else { continue };
            let port = u16::from_be_bytes([port[0], port[1]]);
            let of_port = engines.get(&port).map(Vec::as_slice).unwrap_or_default();
            match of_port.iter().find(|engine| engine.has(datagram.local)) {
                Some(engine) => {
                    if engine.take(datagram) {
                        touched.push(Arc::clone(engine));
                    }
                }
                None => {
                    let taken = self.shared.carrier == Encapsulation::RawIp
                        && lock(&self.shared.ports).is_held_elsewhere(datagram.local, port);
                    if let Some(stray_endpoint) = stray_endpoint.as_mut().filter(|_| !taken) {
                        self.answer_stray(stray_endpoint, datagram, &lower);
                    }
                }
            }
        }
        std::mem::take(touched)
    }

    /// Responds to packets for an engine without an endpoint, as to out of the blue packets.
    fn turn_away(&self, strays: Vec<Datagram>) {
        if strays.is_empty() {
            return;
        }
        let (mut intake, lower) = (lock(&self.intake), self.shared.lower());
        if let Some(stray_endpoint) = &mut intake.stray_endpoint {
            strays.into_iter().for_each(|stray| self.answer_stray(stray_endpoint, stray, &lower));
        }
    }

    fn answer_stray(&self, stray_endpoint: &mut Endpoint, stray: Datagram, lower: &[Arc<LowerSocket>]) {
        stray_endpoint.handle_datagram(self.now(), stray);
        let mut outbox = Outbox::default();
        outbox.fill(stray_endpoint, self.now());
        outbox.send(lower);
    }

    pub(crate) fn each_engine(&self, mut act: impl FnMut(&Arc<Engine>)) {
        let engines = self.engines.read().unwrap_or_else(PoisonError::into_inner);
        engines.values().flatten().for_each(&mut act);
    }

    /// Runs the thread. If calls come faster than their packets are sent, the thread waits for a moment, so that several calls are
    /// handled together: otherwise each message would leave in a packet of its own, and each call would wait for the lock. A call
    /// that is about to wait ends this wait.
    fn drive(&self) {
        let mut moderation = Moderation::new();
        loop {
            let worked = self.turn();
            let gathers = worked && self.shared.take_given() >= MANY_CALLS;
            if worked && !gathers {
                continue;
            }
            let poll = if gathers { None } else { self.next_poll(&mut moderation) };
            let limit =
                if gathers { Some(GATHER) } else { [self.shared.pause(), poll].into_iter().flatten().min() };
            let how = if gathers { GATHERING } else { ASLEEP };
            self.shared.rest(how, || {
                let lower = || if poll.is_some() { Arc::default() } else { self.shared.lower() };
                (gathers || lock(&self.busy).is_empty()).then(|| (lower(), limit))
            });
        }
    }

    /// Returns the time for which arriving packets do not wake the thread.
    fn next_poll(&self, moderation: &mut Moderation) -> Option<Duration> {
        let (sent, receive_buffer) = self.shared.take_sent();
        let load = DriverLoad { sent, ..std::mem::take(&mut lock(&self.intake).load) };
        moderation.on_round(load, receive_buffer);
        let now = self.now();
        moderation.next_poll(now).map(|due| due.since(now))
    }

    /// Runs the thread of the synchronous mode: when a packet has arrived or a timer is due, the program has to make a call, so all
    /// descriptors become readable.
    fn watch(&self) {
        loop {
            if !self.shared.rest(ASLEEP, || Some((self.shared.lower(), self.shared.pause()))) {
                continue;
            }
            let gate = lock(&self.gate);
            // Not under the lock of the list: a call takes it while an engine is locked.
            let mut engines = Vec::new();
            self.each_engine(|engine| engines.push(Arc::clone(engine)));
            engines.iter().for_each(|engine| engine.wake_descriptors());
            drop(gate);
            // A packet stays until a call takes it: without this pause the thread would poll all the time.
            std::thread::sleep(WATCH_PAUSE);
        }
    }
}

/// Returns the engines of all sockets, and those whose sockets are closed, but whose associations have not ended; in a fixed order.
pub(crate) fn every_engine() -> Vec<Arc<Engine>> {
    let mut engines = table::engines();
    if let Some(stack) = Stack::existing() {
        stack.each_engine(|engine| engines.push(Arc::clone(engine)));
    }
    engines.sort_by_key(|engine| Arc::as_ptr(engine).addr());
    engines.dedup_by(|one, other| Arc::ptr_eq(one, other));
    engines
}

/// Number of commands during one turn after which the thread waits for further ones.
const MANY_CALLS: u32 = 4;
/// Time for which the thread waits for further commands.
const GATHER: Duration = Duration::from_micros(50);
/// Batches that are received from one socket before the next one.
const BATCHES: usize = 4;
/// Interval at which descriptors are woken while no call takes packets that arrived.
const WATCH_PAUSE: Duration = Duration::from_millis(1);
