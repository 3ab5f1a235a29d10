//! State that all SCTP sockets of this process share: the UDP or raw IP sockets below them, the ports, the clock and the one
//! thread.
//!
//! The thread runs the driver loop of the core for all endpoints: take received packets, handle due timers, poll for packets until
//! there are none, dispatch the events, sleep until the deadline. In the synchronous mode each call does this itself, and the
//! thread only sleeps and wakes descriptors.

use std::collections::HashMap;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFlags, eventfd};
use rustix::io::{Errno, read, write};
use tresse_proto::{
    AssociationConfig, Datagram, DriverLoad, Endpoint, EndpointConfig, Instant, Moderation, Transmit,
};

use crate::engine::Engine;
use crate::intake::Buffers;
use crate::lower::{self, Encapsulation, LowerSocket, RECEIVE_BATCH};
use crate::numbers::Private;
use crate::ports::Ports;

/// State that all sockets of this process share.
pub(crate) struct Stack {
    epoch: std::time::Instant,
    pub(crate) carrier: Encapsulation,
    synchronous: bool,
    /// Wakes the thread.
    wake: Private<OwnedFd>,
    /// State of the thread's wait: one of [`AWAKE`], [`ASLEEP`], [`GATHERING`].
    waiting: AtomicU8,
    /// Number of commands that engines got since the thread last checked.
    given: AtomicU32,
    /// Bytes of packets that were sent since the thread last waited.
    sent: AtomicUsize,
    /// Smallest receive buffer of the engines that had a turn since then.
    receive_buffer: AtomicUsize,
    /// Engines that got commands from calls.
    busy: Mutex<Vec<Arc<Engine>>>,
    /// No deadline of an engine is earlier than this; in nanoseconds.
    next: AtomicU64,
    lower: RwLock<Arc<Vec<Arc<LowerSocket>>>>,
    engines: RwLock<HashMap<u16, Vec<Arc<Engine>>>>,
    pub(crate) ports: Mutex<Ports>,
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
    if first {
        if !stack.run() {
            return Err(Errno::AGAIN);
        }
    }
    Ok(stack)
}

/// Requests the synchronous mode. Returns whether it is on: it cannot be turned on once there is a socket.
pub fn set_synchronous() -> bool {
    ASKED_SYNCHRONOUS.store(true, Ordering::Relaxed);
    STACK.get().is_none_or(|stack| stack.synchronous)
}

/// In the synchronous mode: receives packets and handles due timers until nothing is left, and then calls `look`, which reads the
/// true readiness of descriptors. `None` if the thread does that work.
pub(crate) fn turn_in_call<T>(look: impl FnOnce() -> T) -> Option<T> {
    let stack = STACK.get().filter(|stack| stack.synchronous && crate::parent::elsewhere().is_none())?;
    let _quiet = lock(&stack.gate);
    while stack.turn() {}
    Some(look())
}

impl Stack {
    fn new() -> Result<Self, Errno> {
        let named = std::env::var("TRESSE_SYNCHRONOUS").is_ok_and(|text| text != "0");
        Ok(Stack {
            epoch: std::time::Instant::now(),
            carrier: Encapsulation::of_environment()?,
            synchronous: named || ASKED_SYNCHRONOUS.load(Ordering::Relaxed),
            wake: Private::moved(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?),
            waiting: AtomicU8::new(AWAKE),
            given: AtomicU32::new(0),
            sent: AtomicUsize::new(0),
            receive_buffer: AtomicUsize::new(usize::MAX),
            busy: Mutex::default(),
            next: AtomicU64::new(NEVER),
            lower: RwLock::default(),
            engines: RwLock::default(),
            ports: Mutex::default(),
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
        self.waiting.store(AWAKE, Ordering::SeqCst);
        let run = move || if self.synchronous { self.watch() } else { self.drive() };
        crate::ffi::quiet_thread("tresse", run)
    }

    /// Prevents the reception of packets and the waking of descriptors while the result is kept.
    pub(crate) fn hold_intake(&self) -> impl Sized {
        (lock(&self.gate), lock(&self.intake))
    }

    /// Locks the state that all engines share. The engines are locked before.
    pub(crate) fn hold_shared(&self) -> impl Sized {
        let engines = self.engines.write().unwrap_or_else(PoisonError::into_inner);
        let lower = self.lower.write().unwrap_or_else(PoisonError::into_inner);
        (engines, lower, lock(&self.ports), lock(&self.busy))
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
        Instant::from_nanos(u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(NEVER))
    }

    pub(crate) fn is_synchronous(&self) -> bool {
        self.synchronous
    }

    /// Opens a socket on each of these addresses; returns the addresses for which this succeeded.
    ///
    /// # Errors
    /// No socket could be opened.
    pub(crate) fn open(&self, addresses: &[IpAddr]) -> Result<Vec<IpAddr>, Errno> {
        let mut opened = Vec::new();
        let mut failure = Errno::ADDRNOTAVAIL;
        let mut lower = self.lower.write().unwrap_or_else(PoisonError::into_inner);
        for &address in addresses {
            if lower.iter().all(|socket| socket.local() != address) {
                match LowerSocket::open(address, self.carrier) {
                    Ok(socket) => Arc::make_mut(&mut lower).push(socket),
                    Err(error) => {
                        failure = Errno::from_io_error(&error).unwrap_or(failure);
                        continue;
                    }
                }
            }
            opened.push(address);
        }
        drop(lower);
        // The thread has to poll this socket too.
        self.wake(ASLEEP);
        if opened.is_empty() { Err(failure) } else { Ok(opened) }
    }

    /// Returns the sockets that packets are sent from.
    pub(crate) fn lower(&self) -> Arc<Vec<Arc<LowerSocket>>> {
        Arc::clone(&self.lower.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Makes this engine receive packets to `port`.
    pub(crate) fn register(&self, port: u16, engine: &Arc<Engine>) {
        let mut engines = self.engines.write().unwrap_or_else(PoisonError::into_inner);
        engines.entry(port).or_default().push(Arc::clone(engine));
    }

    /// Removes an engine that has no socket and no association left.
    pub(crate) fn retire(&self, port: u16, engine: &Engine) {
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
        if self.synchronous {
            self.turn();
        }
    }

    /// Ends a call that gave a command to `engine`.
    pub(crate) fn leave(&self, engine: &Arc<Engine>) {
        if self.synchronous {
            engine.turn(self);
            return;
        }
        // If the engine is busy already, nothing is written: other threads read the flag too. The command is not missed: it was
        // given under the engine's lock, and the engine stays busy until a turn begins, which takes this lock.
        if !engine.busy.load(Ordering::Acquire) && !engine.busy.swap(true, Ordering::AcqRel) {
            lock(&self.busy).push(Arc::clone(engine));
            self.wake(ASLEEP);
        }
    }

    /// Counts the commands that an engine got since its last turn.
    pub(crate) fn note_commands(&self, count: u32) {
        self.given.fetch_add(count, Ordering::Relaxed);
    }

    /// Notes that an engine, whose associations have this receive buffer, sent so many bytes in a turn.
    pub(crate) fn note_turn(&self, sent: usize, receive_buffer: usize) {
        self.sent.fetch_add(sent, Ordering::Relaxed);
        self.receive_buffer.fetch_min(receive_buffer, Ordering::Relaxed);
    }

    /// Wakes the thread for a call that is about to wait: commands given so far must not wait for others.
    pub(crate) fn send_pending(&self) {
        self.wake(GATHERING);
    }

    /// Notes that an engine needs a turn at `deadline`.
    pub(crate) fn wake_by(&self, deadline: Instant) {
        let deadline = deadline.as_nanos();
        if self.next.fetch_min(deadline, Ordering::AcqRel) > deadline && self.synchronous {
            self.wake(ASLEEP);
        }
    }

    /// Wakes the thread if its wait is `how`, or if it sleeps.
    fn wake(&self, how: u8) {
        let waiting = self.waiting.load(Ordering::Acquire);
        if (waiting == how || waiting == ASLEEP)
            && self.waiting.compare_exchange(waiting, AWAKE, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        {
            let _ = write(&self.wake, &1_u64.to_ne_bytes());
        }
    }

    /// Receives packets, and gives a turn to each engine with packets, commands or due timers. Returns whether there was one.
    pub(crate) fn turn(&self) -> bool {
        let mut touched = self.take_in();
        for engine in lock(&self.busy).drain(..) {
            engine.busy.store(false, Ordering::Release);
            touched.push(engine);
        }
        if self.synchronous {
            self.each_engine(|engine| {
                if engine.is_woken() {
                    touched.push(Arc::clone(engine));
                }
            });
        }
        let now = self.now();
        if self.next.load(Ordering::Acquire) <= now.as_nanos() {
            self.next.store(NEVER, Ordering::Release);
            self.each_engine(|engine| {
                let deadline = engine.deadline();
                if deadline <= now {
                    touched.push(Arc::clone(engine));
                } else {
                    self.wake_by(deadline);
                }
            });
        }
        for engine in &touched {
            engine.turn(self);
        }
        !touched.is_empty()
    }

    /// Receives packets and queues them at their engines; returns the engines that had none queued before.
    fn take_in(&self) -> Vec<Arc<Engine>> {
        let mut intake = lock(&self.intake);
        let Intake { buffers, inbox, load, stray_endpoint, touched } = &mut *intake;
        let lower = self.lower();
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
                    let taken = self.carrier == Encapsulation::RawIp
                        && lock(&self.ports).is_held_elsewhere(datagram.local, port);
                    if let Some(stray_endpoint) = stray_endpoint.as_mut().filter(|_| !taken) {
                        self.answer_stray(stray_endpoint, datagram, &lower);
                    }
                }
            }
        }
        std::mem::take(touched)
    }

    /// Responds to packets for an engine without an endpoint, as to out of the blue packets.
    pub(crate) fn turn_away(&self, strays: Vec<Datagram>) {
        if strays.is_empty() {
            return;
        }
        let (mut intake, lower) = (lock(&self.intake), self.lower());
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

    /// Returns the time until the next timer; `None` if there is none.
    fn pause(&self) -> Option<Duration> {
        let next = self.next.load(Ordering::Acquire);
        (next != NEVER).then(|| Duration::from_nanos(next.saturating_sub(self.now().as_nanos())))
    }

    /// Runs the thread. If calls come faster than their packets are sent, the thread waits for a moment, so that several calls are
    /// handled together: otherwise each message would leave in a packet of its own, and each call would wait for the lock. A call
    /// that is about to wait ends this wait.
    fn drive(&self) {
        let mut moderation = Moderation::new();
        loop {
            let worked = self.turn();
            let gathers = worked && self.given.swap(0, Ordering::Relaxed) >= MANY_CALLS;
            if worked && !gathers {
                continue;
            }
            let poll = if gathers { None } else { self.next_poll(&mut moderation) };
            let limit = if gathers { Some(GATHER) } else { [self.pause(), poll].into_iter().flatten().min() };
            self.waiting.store(if gathers { GATHERING } else { ASLEEP }, Ordering::SeqCst);
            if gathers || lock(&self.busy).is_empty() {
                let lower = if poll.is_some() { Arc::default() } else { self.lower() };
                let _ = lower::wait(&lower, (self.wake.as_fd(), PollFlags::IN), limit);
            }
            self.waiting.store(AWAKE, Ordering::Release);
            let _ = read(&self.wake, &mut [0; 8]);
        }
    }

    /// Returns the time for which arriving packets do not wake the thread.
    fn next_poll(&self, moderation: &mut Moderation) -> Option<Duration> {
        let sent = self.sent.swap(0, Ordering::Relaxed);
        let load = DriverLoad { sent, ..std::mem::take(&mut lock(&self.intake).load) };
        moderation.on_round(load, self.receive_buffer.swap(usize::MAX, Ordering::Relaxed));
        let now = self.now();
        moderation.next_poll(now).map(|due| due.since(now))
    }

    /// Runs the thread of the synchronous mode: when a packet has arrived or a timer is due, the program has to make a call, so all
    /// descriptors become readable.
    fn watch(&self) {
        loop {
            self.waiting.store(ASLEEP, Ordering::Release);
            let came = lower::wait(&self.lower(), (self.wake.as_fd(), PollFlags::IN), self.pause());
            self.waiting.store(AWAKE, Ordering::Release);
            let told = read(&self.wake, &mut [0; 8]).is_ok();
            if told || came.is_err() {
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

    /// Waits in a call of the synchronous mode until there may be work, or the descriptor shows `events`.
    ///
    /// # Errors
    /// `INTR`.
    pub(crate) fn sleep(
        &self,
        theirs: impl AsFd,
        events: PollFlags,
        limit: Option<Duration>,
    ) -> Result<(), Errno> {
        let pause = [self.pause(), limit].into_iter().flatten().min();
        let lower = self.lower();
        lower::wait(&lower, (theirs.as_fd(), events), pause)
    }
}

/// Packets on their way from the core to the system.
#[derive(Default)]
pub(crate) struct Outbox {
    transmits: Vec<Transmit>,
    bytes: Vec<u8>,
}

impl Outbox {
    /// Takes packets from the core until it has none, or the outbox is full; returns whether it is full.
    pub(crate) fn fill(&mut self, endpoint: &mut Endpoint, now: Instant) -> bool {
        while self.bytes.len() < BATCH_BYTES {
            match endpoint.poll_transmit(now, MAX_PACKETS, &mut self.bytes) {
                Some(transmit) => self.transmits.push(transmit),
                None => return false,
            }
        }
        true
    }

    /// Returns the number of bytes of its packets.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn send(&mut self, lower: &[Arc<LowerSocket>]) {
        let mut rest = self.bytes.as_slice();
        for transmit in self.transmits.drain(..) {
            let Some((packets, behind)) = rest.split_at_checked(transmit.size) else { break };
            if let Some(socket) = lower.iter().find(|socket| socket.local() == transmit.local) {
                socket.send(&transmit, packets);
            }
            rest = behind;
        }
        self.bytes.clear();
    }
}

/// Creates an endpoint with an unpredictable seed.
pub(crate) fn endpoint(config: EndpointConfig, template: AssociationConfig) -> Result<Endpoint, Errno> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|_| Errno::AGAIN)?;
    let policies = crate::schedulers::registry().clone();
    Endpoint::with_schedulers(config, template, policies, seed).map_err(|_| Errno::INVAL)
}

/// Locks a mutex, also if a thread has panicked while it held the lock.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The thread works, and checks for more work before it waits.
const AWAKE: u8 = 0;
/// The thread sleeps: a call with work wakes it.
const ASLEEP: u8 = 1;
/// The thread waits for a moment, so that calls are handled together.
const GATHERING: u8 = 2;
/// Number of commands during one turn after which the thread waits for further ones.
const MANY_CALLS: u32 = 4;
/// Time for which the thread waits for further commands.
const GATHER: Duration = Duration::from_micros(50);
/// No deadline.
const NEVER: u64 = u64::MAX;
/// Batches that are received from one socket before the next one.
const BATCHES: usize = 4;
/// Bytes of packets that are taken from the core at a time.
const BATCH_BYTES: usize = 256 * 1024;
/// Greatest number of packets to one destination that are sent at once.
const MAX_PACKETS: usize = 44;
/// Interval at which descriptors are woken while no call takes packets that arrived.
const WATCH_PAUSE: Duration = Duration::from_millis(1);
