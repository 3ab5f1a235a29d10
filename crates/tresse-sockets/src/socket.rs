//! A socket: its style, its settings, and its queue of items to be read. All of it changes under the lock of its engine.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicI32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, MutexGuard, Weak};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{Shutdown, sockopt};
use tresse_proto::{AssociationConfig, AssociationId};

use crate::association::Pause;
use crate::descriptor::Readiness;
use crate::engine::{Engine, State};
use crate::keys::KeyChange;
use crate::queue::Queue;
use crate::settings::{Settings, Style};
use crate::stack::Stack;
use crate::table::{self, Alias};
use crate::wait::{self, Need};
use crate::{inside, parent};

/// A socket, with any number of descriptors.
pub(crate) struct Socket {
    pub(crate) engine: Arc<Engine>,
    /// Key among the sockets of the engine.
    pub(crate) key: u64,
    pub(crate) style: Style,
    /// Number of its descriptors in the table.
    pub(crate) aliases: AtomicUsize,
    /// In a forked process: the handle of the socket in the process that has it.
    pub(crate) handle: AtomicI32,
}

impl Socket {
    fn new(engine: Arc<Engine>, key: u64, style: Style) -> Self {
        Socket { engine, key, style, aliases: AtomicUsize::new(0), handle: AtomicI32::new(-1) }
    }

    /// Creates a socket that another process has under this `handle`.
    pub(crate) fn elsewhere(style: Style, handle: i32) -> Self {
        Socket { handle: AtomicI32::new(handle), ..Socket::new(Engine::vacant(), fresh_key(), style) }
    }
}

/// State of a socket under the lock of its engine.
pub(crate) struct SocketState {
    pub(crate) style: Style,
    /// True for AF_INET6: IPv4 addresses may be written as IPv4-mapped ones.
    pub(crate) six: bool,
    pub(crate) readiness: Readiness,
    alias: Weak<Alias>,
    pub(crate) queue: Queue,
    /// Backlog of a listening socket: the number of associations that may wait for `accept`.
    pub(crate) limit: Option<usize>,
    pub(crate) backlog: VecDeque<AssociationId>,
    /// The one association of a one-to-one socket.
    pub(crate) association: Option<AssociationId>,
    pub(crate) was_connected: bool,
    pub(crate) read_shut: bool,
    pub(crate) write_shut: bool,
    pub(crate) config: AssociationConfig,
    pub(crate) settings: Settings,
    /// Changes of shared keys, for an endpoint that does not exist yet.
    pub(crate) keys: Vec<KeyChange>,
    pub(crate) autoclose: Option<Pause>,
    pub(crate) options: Options,
    /// The association whose message is being read in parts.
    pub(crate) in_progress: Option<AssociationId>,
    /// Number of bytes that were read of a notification that is read in parts.
    pub(crate) taken: usize,
}

/// Options that a socket has and its associations do not.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "options of RFC 6458, each on or off by itself")]
pub(crate) struct Options {
    pub(crate) receive_info: bool,
    pub(crate) next_info: bool,
    /// SCTP_FRAGMENT_INTERLEAVE: 0, 1 or 2.
    pub(crate) interleave: u32,
    pub(crate) nodelay: bool,
    pub(crate) explicit_eor: bool,
    pub(crate) mapped: bool,
    pub(crate) whole_only: bool,
    pub(crate) reuse_port: bool,
    /// IPV6_V6ONLY.
    pub(crate) six_only: bool,
    pub(crate) linger: Option<Duration>,
    /// SCTP_PARTIAL_DELIVERY_POINT, as it was set.
    pub(crate) partial_point: u32,
    /// Lifetime of state cookies, in milliseconds.
    pub(crate) cookie_life: u32,
    /// UDP port of a peer whose port is not known (SCTP_REMOTE_UDP_ENCAPS_PORT).
    pub(crate) encapsulation_port: Option<u16>,
    /// Greatest RTO of INIT in milliseconds (SCTP_INITMSG); 0 for that of SCTP_RTOINFO.
    pub(crate) init_timeout: u16,
}

impl SocketState {
    pub(crate) fn new(style: Style, six: bool, readiness: Readiness) -> Self {
        let config = AssociationConfig::default();
        SocketState {
            style,
            six,
            readiness,
            alias: Weak::new(),
            queue: Queue::default(),
            limit: None,
            backlog: VecDeque::new(),
            association: None,
            was_connected: false,
            read_shut: false,
            write_shut: false,
            config,
            settings: Settings::default(),
            keys: Vec::new(),
            autoclose: None,
            options: Options {
                receive_info: false,
                next_info: false,
                // RFC 6458 §8.1.20.
                interleave: u32::from(style == Style::OneToMany),
                nodelay: false,
                explicit_eor: false,
                mapped: true,
                whole_only: false,
                reuse_port: false,
                six_only: false,
                linger: None,
                partial_point: 0,
                cookie_life: 60_000,
                encapsulation_port: None,
                init_timeout: 0,
            },
            in_progress: None,
            taken: 0,
        }
    }

    /// Creates a socket with the settings of `parent`, for `accept` and `sctp_peeloff`.
    pub(crate) fn child(parent: &SocketState, readiness: Readiness, association: AssociationId) -> Self {
        SocketState {
            config: parent.config.clone(),
            settings: parent.settings.clone(),
            options: parent.options.clone(),
            association: Some(association),
            was_connected: true,
            ..SocketState::new(Style::OneToOne, parent.six, readiness)
        }
    }

    /// Updates the readiness that the descriptor shows.
    pub(crate) fn show(&mut self, key: u64, readable: bool, writable: bool, hung_up: Option<Shutdown>) {
        // A number that is gone may belong to another descriptor, which must not be written to.
        let known = self.alias.upgrade().filter(|alias| !alias.is_gone());
        let alias = known.or_else(|| table::any_of(key));
        let Some(alias) = alias else { return };
        self.alias = Arc::downgrade(&alias);
        self.readiness.show(&*alias, readable, writable);
        self.readiness.hang_up(hung_up);
    }

    /// Returns whether peers may set up associations. As in Linux, one association more than the backlog may wait.
    pub(crate) fn admits(&self) -> bool {
        self.limit.is_some_and(|limit| self.style == Style::OneToMany || self.backlog.len() <= limit)
    }

    /// Returns whether the socket may be bound to addresses of this family.
    pub(crate) fn takes(&self, address: &IpAddr) -> bool {
        if address.is_ipv4() { !self.options.six_only } else { self.six }
    }

    /// Returns the reason in the ABORT for its associations when the socket is closed with SO_LINGER 0; otherwise `None`.
    pub(crate) fn abort_at_close(&self) -> Option<&'static [u8]> {
        let at_once = self.options.linger.is_some_and(|linger| linger.is_zero());
        at_once.then_some(b"closed with SO_LINGER 0")
    }

    /// Returns whether the program gets IPv4 addresses as IPv4-mapped ones: an option of IPv6 sockets.
    pub(crate) fn writes_mapped(&self) -> bool {
        self.six && self.options.mapped
    }
}

/// A call on a socket: the descriptor, and the stack of the process.
pub(crate) struct Call {
    pub(crate) alias: Arc<Alias>,
    pub(crate) stack: &'static Stack,
}

impl Call {
    /// Begins a call on the descriptor `fd`.
    ///
    /// # Errors
    /// `BADF` for a descriptor that is not ours.
    pub(crate) fn on(fd: i32) -> Result<Self, Errno> {
        if parent::elsewhere().is_some() {
            return Err(Errno::OPNOTSUPP);
        }
        let (alias, stack) = (table::find(fd)?, Stack::existing().ok_or(Errno::BADF)?);
        stack.enter();
        Ok(Call { alias, stack })
    }

    pub(crate) fn socket(&self) -> &Socket {
        &self.alias.socket
    }

    pub(crate) fn key(&self) -> u64 {
        self.alias.socket.key
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.alias.socket.engine.lock()
    }

    /// Gives the engine a turn for the work of this call. The engine must not be locked.
    pub(crate) fn leave(&self) {
        self.stack.leave(&self.alias.socket.engine);
    }

    pub(crate) fn is_nonblocking(&self) -> bool {
        wait::is_nonblocking(&*self.alias)
    }

    /// Repeats `attempt` until it does not fail with `AGAIN`. In between it waits until the descriptor is readable, unless the
    /// descriptor is non-blocking or `at_once`.
    pub(crate) fn until<T>(
        &self,
        at_once: bool,
        attempt: impl FnMut(&Self) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        self.repeat(at_once, attempt, |since| {
            if self.stack.is_synchronous() {
                return self.sleep(Need::Readable, since);
            }
            self.stack.send_pending();
            wait::wait_readable(&*self.alias)
        })
    }

    /// Repeats `attempt` as [`Self::until`] does, but waits for room in the send buffer of the association `to`, or of all
    /// associations.
    pub(crate) fn until_room<T>(
        &self,
        to: Option<AssociationId>,
        at_once: bool,
        attempt: impl FnMut(&Self) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        self.repeat(at_once, attempt, |since| {
            if self.stack.is_synchronous() {
                return self.sleep(Need::Writable, since);
            }
            if self.is_nonblocking() {
                return Err(Errno::AGAIN);
            }
            self.stack.send_pending();
            let room = self.lock().room(self.key(), to);
            match room {
                Ok(None) => Ok(()),
                Ok(Some(told)) => wait::wait_told(&told, self.left_of(sockopt::Timeout::Send, since)?),
                // No descriptor is left for a pipe: the socket's own descriptor is writable when all associations have room.
                Err(_) => wait::wait_writable(&*self.alias),
            }
        })
    }

    /// Repeats `attempt` until it does not fail with `AGAIN`, or the descriptor is closed. In between it calls `wait` with the time
    /// at which the call began to wait.
    fn repeat<T>(
        &self,
        at_once: bool,
        mut attempt: impl FnMut(&Self) -> Result<T, Errno>,
        wait: impl Fn(Instant) -> Result<(), Errno>,
    ) -> Result<T, Errno> {
        let mut since = None;
        loop {
            match attempt(self) {
                Err(Errno::AGAIN) if !at_once => {}
                done => return done,
            }
            if self.alias.is_gone() {
                return Err(Errno::BADF);
            }
            wait(*since.get_or_insert_with(Instant::now)).map_err(|error| match error {
                // The error of a descriptor that was closed depends on what it showed before.
                Errno::CONNRESET if self.alias.is_gone() => Errno::BADF,
                error => error,
            })?;
        }
    }

    /// Waits in a call of the synchronous mode, which began to wait at `since`, and then receives packets and handles timers.
    fn sleep(&self, need: Need, since: Instant) -> Result<(), Errno> {
        if self.is_nonblocking() {
            return Err(Errno::AGAIN);
        }
        let (timeout, events) = match need {
            Need::Readable => (sockopt::Timeout::Recv, PollFlags::IN),
            Need::Writable => (sockopt::Timeout::Send, PollFlags::OUT),
        };
        let left = self.left_of(timeout, since)?;
        inside::pause(|| self.stack.sleep(&*self.alias, events, left))?;
        self.stack.turn();
        Ok(())
    }

    /// Repeats `attempt` until it does not fail with `AGAIN`. In between it waits until the write end of the pipe `told` is closed,
    /// at most for SO_SNDTIMEO.
    pub(crate) fn until_told<T>(
        &self,
        told: BorrowedFd<'_>,
        mut attempt: impl FnMut(&Self) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let since = Instant::now();
        loop {
            match attempt(self) {
                Err(Errno::AGAIN) => {}
                done => return done,
            }
            let left = self.left_of(sockopt::Timeout::Send, since)?;
            if self.stack.is_synchronous() {
                inside::pause(|| self.stack.sleep(told, PollFlags::IN, left))?;
                self.stack.turn();
            } else {
                self.stack.send_pending();
                wait::wait_told(told, left)?;
            }
        }
    }

    /// Returns the remaining time of a call that began to wait at `since`; `None` for no limit, `AGAIN` if the time is over.
    fn left_of(&self, timeout: sockopt::Timeout, since: Instant) -> Result<Option<Duration>, Errno> {
        let limit = sockopt::socket_timeout(&*self.alias, timeout)?;
        limit.map(|limit| limit.checked_sub(since.elapsed()).ok_or(Errno::AGAIN)).transpose()
    }
}

impl State {
    /// Ends all associations as if their sockets were closed.
    pub(crate) fn end_all(&mut self, stack: &Stack) {
        let mut refused = Vec::new();
        for socket in self.sockets.values_mut() {
            // Data that still arrives is discarded, so that peers can shut down.
            socket.read_shut = socket.limit.is_none() || socket.style == Style::OneToMany;
            socket.limit = None;
            refused.extend(socket.backlog.drain(..));
        }
        self.update_listening();
        for id in refused {
            self.end_at(stack, id, Some(crate::open::CLOSED));
        }
        let ids: Vec<AssociationId> = self.associations.keys().copied().collect();
        for id in ids {
            let owner = self.associations.get(&id).filter(|entry| !entry.is_over()).map(|entry| entry.owner);
            if let Some(socket) = owner.and_then(|key| self.sockets.get(&key)) {
                let abort = socket.abort_at_close();
                self.close_association(stack, id, abort);
            }
        }
        let keys: Vec<u64> = self.sockets.keys().copied().collect();
        keys.into_iter().for_each(|key| self.touch(key));
    }
}

/// Enters a socket of `engine`, which has its state under `key`, into the table; returns its descriptor.
pub(crate) fn enter_socket(
    engine: &Arc<Engine>,
    state: &mut State,
    key: u64,
    style: Style,
    theirs: OwnedFd,
) -> i32 {
    let fd = table::insert(theirs, Arc::new(Socket::new(Arc::clone(engine), key, style)));
    // So the first use of the descriptor does not have to search the table.
    if let (Ok(socket), Ok(alias)) = (state.socket(key), table::find(fd)) {
        socket.alias = Arc::downgrade(&alias);
    }
    fd
}

/// Returns a key that no other socket of this process has.
pub(crate) fn fresh_key() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
