//! State that all engines of this process share: the clock, the UDP or raw IP sockets below them, the ports, the policies, and how
//! the one thread waits. Independent of the engines, and of what the thread does.

use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFlags, eventfd};
use rustix::io::{Errno, read, write};
use tresse_proto::{AssociationConfig, Endpoint, EndpointConfig, Instant, Registry};

use crate::lower::{self, Encapsulation, LowerSocket};
use crate::numbers::Private;
use crate::ports::Ports;

/// State that all engines of this process share.
pub(crate) struct Shared {
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
    /// No deadline of an engine is earlier than this; in nanoseconds.
    next: AtomicU64,
    lower: RwLock<Arc<Vec<Arc<LowerSocket>>>>,
    pub(crate) ports: Mutex<Ports>,
}

impl Shared {
    pub(crate) fn new(synchronous: bool) -> Result<Self, Errno> {
        Ok(Shared {
            epoch: std::time::Instant::now(),
            carrier: Encapsulation::of_environment()?,
            synchronous,
            wake: Private::moved(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?),
            waiting: AtomicU8::new(AWAKE),
            given: AtomicU32::new(0),
            sent: AtomicUsize::new(0),
            receive_buffer: AtomicUsize::new(usize::MAX),
            next: AtomicU64::new(NEVER),
            lower: RwLock::default(),
            ports: Mutex::default(),
        })
    }

    /// Locks all of it.
    pub(crate) fn hold(&self) -> impl Sized {
        (self.lower.write().unwrap_or_else(PoisonError::into_inner), lock(&self.ports))
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
        self.wake_thread();
        if opened.is_empty() { Err(failure) } else { Ok(opened) }
    }

    /// Returns the sockets that packets are sent from.
    pub(crate) fn lower(&self) -> Arc<Vec<Arc<LowerSocket>>> {
        Arc::clone(&self.lower.read().unwrap_or_else(PoisonError::into_inner))
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
            self.wake_thread();
        }
    }

    /// Wakes the thread if it sleeps.
    pub(crate) fn wake_thread(&self) {
        self.wake(ASLEEP);
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

    /// Returns whether a deadline is over at `now`. If so, all engines have to note their deadlines again.
    pub(crate) fn take_due(&self, now: Instant) -> bool {
        let is_due = self.next.load(Ordering::Acquire) <= now.as_nanos();
        if is_due {
            self.next.store(NEVER, Ordering::Release);
        }
        is_due
    }

    /// Returns the number of commands that engines got since the last call of this function.
    pub(crate) fn take_given(&self) -> u32 {
        self.given.swap(0, Ordering::Relaxed)
    }

    /// Returns the bytes that engines sent since the last call of this function, and the smallest receive buffer of these engines.
    pub(crate) fn take_sent(&self) -> (usize, usize) {
        (self.sent.swap(0, Ordering::Relaxed), self.receive_buffer.swap(usize::MAX, Ordering::Relaxed))
    }

    /// Returns the time until the next timer; `None` if there is none.
    pub(crate) fn pause(&self) -> Option<Duration> {
        let next = self.next.load(Ordering::Acquire);
        (next != NEVER).then(|| Duration::from_nanos(next.saturating_sub(self.now().as_nanos())))
    }

    /// Notes that the thread starts.
    pub(crate) fn begin_thread(&self) {
        self.waiting.store(AWAKE, Ordering::SeqCst);
    }

    /// Makes the thread wait, in the state `how`, until a packet arrives, a call wakes it, or the limit is over. `plan` returns the
    /// sockets at which packets wake it, and the limit, or `None` if it is not to wait. It is called when calls already see that the
    /// thread waits: a socket or a deadline that it does not know yet wakes the thread. Returns whether the wait ended without a call
    /// that woke the thread, and without an error.
    pub(crate) fn rest(
        &self,
        how: u8,
        plan: impl FnOnce() -> Option<(Arc<Vec<Arc<LowerSocket>>>, Option<Duration>)>,
    ) -> bool {
        self.waiting.store(how, Ordering::SeqCst);
        let waited = plan()
            .map_or(Ok(()), |(lower, limit)| lower::wait(&lower, (self.wake.as_fd(), PollFlags::IN), limit));
        self.waiting.store(AWAKE, Ordering::Release);
        let woken = read(&self.wake, &mut [0; 8]).is_ok();
        waited.is_ok() && !woken
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

/// Returns the registry of the process; endpoints get copies of it.
pub(crate) fn registry() -> MutexGuard<'static, Registry> {
    static REGISTRY: OnceLock<Mutex<Registry>> = OnceLock::new();
    REGISTRY.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

/// Creates an endpoint with an unpredictable seed.
pub(crate) fn endpoint(config: EndpointConfig, template: AssociationConfig) -> Result<Endpoint, Errno> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|_| Errno::AGAIN)?;
    let policies = registry().clone();
    Endpoint::with_schedulers(config, template, policies, seed).map_err(|_| Errno::INVAL)
}

/// Locks a mutex, also if a thread has panicked while it held the lock.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The thread works, and checks for more work before it waits.
const AWAKE: u8 = 0;
/// The thread sleeps: a call with work wakes it.
pub(crate) const ASLEEP: u8 = 1;
/// The thread waits for a moment, so that calls are handled together.
pub(crate) const GATHERING: u8 = 2;
/// No deadline.
const NEVER: u64 = u64::MAX;
