//! State of a socket: its style, its settings, and its queue of items to be read. All of it changes under the lock of its engine.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;

use rustix::net::Shutdown;
use tresse_proto::{AssociationConfig, AssociationId};

use crate::association::Pause;
use crate::descriptor::Readiness;
use crate::ffi::Number;
use crate::key_change::KeyChange;
use crate::queue::Queue;
use crate::settings::{Settings, Style};

/// State of a socket under the lock of its engine.
pub(crate) struct SocketState {
    pub(crate) style: Style,
    /// True for AF_INET6: IPv4 addresses may be written as IPv4-mapped ones.
    pub(crate) six: bool,
    pub(crate) readiness: Readiness,
    /// A descriptor of the socket that was found before.
    theirs: Weak<Number>,
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
            theirs: Weak::new(),
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

    /// Returns the descriptor that was found before, unless it is gone: its number may belong to another descriptor, which must not
    /// be written to.
    pub(crate) fn theirs(&self) -> Option<Arc<Number>> {
        self.theirs.upgrade().filter(|theirs| !theirs.is_gone())
    }

    /// Notes a descriptor of the socket.
    pub(crate) fn note(&mut self, theirs: &Arc<Number>) {
        self.theirs = Arc::downgrade(theirs);
    }

    /// Updates the readiness that the socket shows at its descriptor `theirs`.
    pub(crate) fn show(
        &mut self,
        theirs: &Arc<Number>,
        readable: bool,
        writable: bool,
        hung_up: Option<Shutdown>,
    ) {
        self.note(theirs);
        self.readiness.show(&**theirs, readable, writable);
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
