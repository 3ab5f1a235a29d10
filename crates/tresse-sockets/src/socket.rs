//! A socket: its style, its settings, and what waits to be read. All of it changes under the lock of its engine.

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
use crate::descriptor::{self, Readiness};
use crate::engine::{Engine, State};
use crate::layout::SocketName;
use crate::options::KeyChange;
use crate::queue::Queue;
use crate::settings::{Settings, Style};
use crate::stack::{Stack, stack};
use crate::table::{self, Alias};

/// A socket, however many descriptors it has.
pub(crate) struct Socket {
    pub(crate) engine: Arc<Engine>,
    /// Key among the sockets of the engine.
    pub(crate) key: u64,
    pub(crate) style: Style,
    /// Descriptors in the table.
    pub(crate) aliases: AtomicUsize,
    /// Handle in the process that has the socket, for a forked process.
    pub(crate) handle: AtomicI32,
}

impl Socket {
    fn new(engine: Arc<Engine>, key: u64, style: Style) -> Self {
        Socket { engine, key, style, aliases: AtomicUsize::new(0), handle: AtomicI32::new(-1) }
    }

    /// Socket that another process has under this `handle`.
    pub(crate) fn elsewhere(style: Style, handle: i32) -> Self {
        Socket { handle: AtomicI32::new(handle), ..Socket::new(Engine::vacant(), fresh_key(), style) }
    }
}

/// Item that waits to be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Item {
    /// Messages of this association.
    Data(AssociationId),
    Notification(Notification),
}

/// A notification, and what was known of its association when it was made: that may have gone when it is read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Notification {
    pub(crate) of: AssociationId,
    /// The number that programs know the association by.
    pub(crate) number: i32,
    /// The peer's primary name.
    pub(crate) from: Option<SocketName>,
    pub(crate) bytes: Vec<u8>,
}

/// State of a socket under the lock of its engine.
pub(crate) struct SocketState {
    pub(crate) style: Style,
    /// AF_INET6: IPv4 is written as IPv6.
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
    /// Changes of shared keys, for the endpoint that is not there yet.
    pub(crate) keys: Vec<KeyChange>,
    pub(crate) autoclose: Option<Pause>,
    pub(crate) options: Options,
    /// The message that is being read in pieces.
    pub(crate) in_progress: Option<AssociationId>,
    /// Number of bytes read of a notification that is being read in pieces.
    pub(crate) taken: usize,
}

/// Options of a socket that its associations do not have apart.
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
    pub(crate) auto_asconf: bool,
    pub(crate) linger: Option<Duration>,
    /// SCTP_PARTIAL_DELIVERY_POINT, as it was set.
    pub(crate) partial_point: u32,
    /// Longest cookie life and other numbers of the endpoint, in milliseconds.
    pub(crate) cookie_life: u32,
    /// The peer's UDP port where none is known (SCTP_REMOTE_UDP_ENCAPS_PORT).
    pub(crate) encapsulation_port: Option<u16>,
    /// Requests of the peer that are accepted (SCTP_ENABLE_STREAM_RESET).
    pub(crate) reset_mask: u32,
    /// Longest time of an INIT's timer and how often it is sent (SCTP_INITMSG); 0 for the defaults.
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
                auto_asconf: false,
                linger: None,
                partial_point: 0,
                cookie_life: 60_000,
                encapsulation_port: None,
                reset_mask: 7,
                init_timeout: 0,
            },
            in_progress: None,
            taken: 0,
        }
    }

    /// Socket with the settings of `parent`, as `accept` and `sctp_peeloff` make.
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

    /// Lets the descriptor show this.
    pub(crate) fn show(&mut self, key: u64, readable: bool, writable: bool, hung_up: Option<Shutdown>) {
        // By a number that is gone something else would be written to.
        let known = self.alias.upgrade().filter(|alias| !alias.is_gone());
        let alias = known.or_else(|| table::any_of(key));
        let Some(alias) = alias else { return };
        self.alias = Arc::downgrade(&alias);
        self.readiness.show(&*alias, readable, writable);
        self.readiness.hang_up(hung_up);
    }

    /// Returns whether peers may set up associations: one more than the backlog has room for may wait, as in Linux.
    pub(crate) fn admits(&self) -> bool {
        self.limit.is_some_and(|limit| self.style == Style::OneToMany || self.backlog.len() <= limit)
    }

    /// Returns whether it may be bound to addresses of this family.
    pub(crate) fn takes(&self, address: &IpAddr) -> bool {
        if address.is_ipv4() { !self.options.six_only } else { self.six }
    }

    /// Reason for which associations are aborted when it is closed, if SO_LINGER says so.
    pub(crate) fn abort_at_close(&self) -> Option<&'static str> {
        let at_once = self.options.linger.is_some_and(|linger| linger.is_zero());
        at_once.then_some("closed with SO_LINGER 0")
    }

    /// Returns whether IPv4 addresses are written as IPv6 ones for the program, as sockets of that family ask for.
    pub(crate) fn writes_mapped(&self) -> bool {
        self.six && self.options.mapped
    }
}

/// A call on a socket: what it needs again and again.
pub(crate) struct Call {
    pub(crate) alias: Arc<Alias>,
    pub(crate) stack: &'static Stack,
}

/// Condition that a call may wait for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Need {
    Readable,
    Writable,
}

impl Call {
    /// Begins a call on the descriptor `fd`.
    ///
    /// # Errors
    /// `BADF` for one that is not ours.
    pub(crate) fn on(fd: i32) -> Result<Self, Errno> {
        if crate::forked::elsewhere().is_some() {
            return Err(Errno::OPNOTSUPP);
        }
        let (alias, stack) = (table::find(fd)?, stack()?);
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

    /// The engine has something to do. No lock of it may be held.
    pub(crate) fn leave(&self) {
        self.stack.leave(&self.alias.socket.engine);
    }

    pub(crate) fn is_nonblocking(&self) -> bool {
        descriptor::is_nonblocking(&*self.alias)
    }

    /// Does what `attempt` does, again and again until it is not refused with `AGAIN`; waits in between until there is something to
    /// read, unless the descriptor or `at_once` says otherwise.
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
            descriptor::wait_readable(&*self.alias)
        })
    }

    /// The same for a message `to` an association, or to all: waits until that has room.
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
                Ok(Some(told)) => descriptor::wait_told(&told, self.left_of(sockopt::Timeout::Send, since)?),
                // No descriptor is left for it: once all have room, this one has.
                Err(_) => descriptor::wait_writable(&*self.alias),
            }
        })
    }

    /// Does what `attempt` does until it is not refused with `AGAIN`, or the descriptor is closed; `wait` is called in between, with
    /// the time at which the call began to wait.
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
                // What the end of the descriptor looks like from here depends on what it showed.
                Errno::CONNRESET if self.alias.is_gone() => Errno::BADF,
                error => error,
            })?;
        }
    }

    /// Sleeps in a call of the synchronous mode which waits since `since`, and takes what has come.
    fn sleep(&self, need: Need, since: Instant) -> Result<(), Errno> {
        if self.is_nonblocking() {
            return Err(Errno::AGAIN);
        }
        let (timeout, events) = match need {
            Need::Readable => (sockopt::Timeout::Recv, PollFlags::IN),
            Need::Writable => (sockopt::Timeout::Send, PollFlags::OUT),
        };
        let left = self.left_of(timeout, since)?;
        self.stack.sleep(&*self.alias, events, left)?;
        self.stack.turn();
        Ok(())
    }

    /// Does what `attempt` does until it is not refused with `AGAIN`, and waits in between for the end of the pipe `told`, no longer
    /// than SO_SNDTIMEO.
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
                self.stack.sleep(told, PollFlags::IN, left)?;
                self.stack.turn();
            } else {
                self.stack.send_pending();
                descriptor::wait_told(told, left)?;
            }
        }
    }

    /// Rest of the time that a call may wait which waits since `since`; `None` for no limit.
    fn left_of(&self, timeout: sockopt::Timeout, since: Instant) -> Result<Option<Duration>, Errno> {
        let limit = sockopt::socket_timeout(&*self.alias, timeout)?;
        limit.map(|limit| limit.checked_sub(since.elapsed()).ok_or(Errno::AGAIN)).transpose()
    }
}

impl State {
    /// The state of the socket with this key.
    ///
    /// # Errors
    /// `BADF` when another thread has closed it.
    pub(crate) fn socket(&mut self, key: u64) -> Result<&mut SocketState, Errno> {
        self.sockets.get_mut(&key).ok_or(Errno::BADF)
    }

    /// Ends all associations as if their sockets were closed.
    pub(crate) fn end_all(&mut self, stack: &Stack) {
        let mut refused = Vec::new();
        for socket in self.sockets.values_mut() {
            // What still comes is discarded, so that peers can shut down.
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

/// Makes a socket on `engine` out of its state, and returns its descriptor.
pub(crate) fn enter_socket(
    engine: &Arc<Engine>,
    state: &mut State,
    key: u64,
    style: Style,
    theirs: OwnedFd,
) -> i32 {
    let fd = table::insert(theirs, Arc::new(Socket::new(Arc::clone(engine), key, style)));
    // So that the first look at it does not search the table.
    if let (Ok(socket), Ok(alias)) = (state.socket(key), table::find(fd)) {
        socket.alias = Arc::downgrade(&alias);
    }
    fd
}

/// A key that no other socket of this process has.
pub(crate) fn fresh_key() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
