//! State of one association outside the core: its owner, messages that were taken from the core in advance, its settings.

use std::collections::{HashMap, VecDeque};
use std::io::{PipeReader, PipeWriter, pipe};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use tresse_proto::{AssociationId, CloseReason, Endpoint, Instant, Message, Part, PathState};

use crate::layout::SocketName;
use crate::numbers::Private;
use crate::queue::Turns;
use crate::settings::Settings;

/// State of one association.
pub(crate) struct SocketAssociation {
    /// The association ID (`sctp_assoc_t`) that the program uses.
    pub(crate) number: i32,
    /// Key of its socket.
    pub(crate) owner: u64,
    pub(crate) phase: Phase,
    /// Write end of a pipe, held until the set-up has succeeded or failed. A call that waits for the result has the read end.
    pub(crate) unsettled: Option<Private<PipeWriter>>,
    /// The peer's SCTP port.
    pub(crate) remote_port: u16,
    /// The message that is read next. It is taken from the core in advance, so that the descriptor can show whether there is one.
    pub(crate) next: Option<Pending>,
    /// Further messages that were taken from the core: the one after `next`, for SCTP_NXTINFO, and those that `fetch` holds back.
    pub(crate) following: VecDeque<Message>,
    /// A message that is delivered in parts, and whose next part has not arrived.
    open: Option<Message>,
    /// The association's items in the queue of its socket.
    pub(crate) turns: Turns,
    /// The peer's addresses, the primary one first.
    pub(crate) peers: Vec<IpAddr>,
    /// True if the send buffer had no room for a message.
    pub(crate) blocked: bool,
    /// Pipe for calls that wait for room in the send buffer; `None` unless a call waits.
    pub(crate) room: Option<Room>,
    /// True if the peer has shut down and sends no more data.
    pub(crate) peer_done: bool,
    /// True if the association's socket is closed, and the association only has to end.
    pub(crate) abandoned: bool,
    pub(crate) settings: Settings,
    /// Messages that the program passes in pieces (SCTP_EXPLICIT_EOR), by stream.
    pub(crate) pieces: HashMap<u16, Vec<u8>>,
    /// Time of the last event, for SCTP_AUTOCLOSE.
    pub(crate) last_used: Instant,
    /// Path states as the core last reported them, by path.
    pub(crate) paths: Vec<PathState>,
    /// Adaptation code point of the peer.
    pub(crate) adaptation: u32,
    /// True if no message was sent since the program was notified that all data is acknowledged (SCTP_SENDER_DRY_EVENT).
    pub(crate) is_dry: bool,
    /// Bytes read since the core last checked whether to announce a larger receiver window.
    pub(crate) untold: usize,
}

/// Phase of an association.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    Opening,
    Open,
    /// Closing, at the request of this side.
    Closing,
    Ended(Ended),
}

/// End of an association.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Ended {
    Gracefully,
    With(Errno),
    /// The set-up failed: the socket may connect again.
    BeforeSetup(Errno),
    /// With an error that a call has already returned.
    Told,
}

impl Ended {
    pub(crate) fn of(reason: &CloseReason, opening: bool) -> Self {
        let error = match reason {
            CloseReason::Graceful => return Ended::Gracefully,
            CloseReason::AbortedByPeer { .. } if opening => Errno::CONNREFUSED,
            CloseReason::AbortedByPeer { .. } => Errno::CONNRESET,
            CloseReason::SetupTimeout | CloseReason::PathsLost | CloseReason::ShutdownTimeout => {
                Errno::TIMEDOUT
            }
            _ => Errno::CONNABORTED,
        };
        if opening { Ended::BeforeSetup(error) } else { Ended::With(error) }
    }
}

/// A message, or a part of a message, of which `taken` bytes have been read.
pub(crate) struct Pending {
    pub(crate) message: Message,
    pub(crate) taken: usize,
}

impl Pending {
    pub(crate) fn left(&self) -> usize {
        self.message.payload.len() - self.taken
    }
}

/// Pipe of a blocked association: calls that wait for room in its send buffer have the read end, also in a forked process; the
/// write end is closed when the association is no longer blocked. The readiness of the descriptor does not suffice: the descriptor
/// of a one-to-many socket is writable only if no association is blocked, so a peer that does not read would delay messages to
/// others.
pub(crate) struct Room {
    told: Arc<Private<PipeReader>>,
    /// Write end, held while there is no room.
    _tells: Private<PipeWriter>,
}

impl SocketAssociation {
    pub(crate) fn new(owner: u64, remote_port: u16, settings: Settings, now: Instant) -> Self {
        SocketAssociation {
            number: fresh_number(),
            owner,
            phase: Phase::Opening,
            unsettled: None,
            remote_port,
            next: None,
            following: VecDeque::new(),
            open: None,
            turns: Turns::default(),
            peers: Vec::new(),
            blocked: false,
            room: None,
            peer_done: false,
            abandoned: false,
            settings,
            pieces: HashMap::new(),
            last_used: now,
            paths: Vec::new(),
            adaptation: 0,
            is_dry: false,
            untold: 0,
        }
    }

    /// Replaces the message that was read by the next one. While a message is delivered in parts, `strict` holds back messages of
    /// other streams until its end (RFC 6458 §8.1.20), up to [`MOST_HELD`] bytes.
    pub(crate) fn fetch(
        &mut self,
        mut endpoint: Option<&mut Endpoint>,
        now: Instant,
        id: AssociationId,
        strict: bool,
    ) {
        if self.following.is_empty()
            && self.open.is_none()
            && self.next.as_ref().is_none_or(|one| one.message.part.is_end())
        {
            // No message is held back, and none has to be.
            let message = endpoint.as_mut().and_then(|core| core.association(id)?.recv(now));
            self.next = message.map(|message| Pending { message, taken: 0 });
            return;
        }
        let last = self.next.take().map(|pending| pending.message).or(self.open.take());
        let open = last.filter(|message| strict && !message.part.is_end());
        let continues = |message: &Message| {
            open.as_ref().is_none_or(|open| {
                (message.stream, message.unordered) == (open.stream, open.unordered)
                    && !matches!(message.part, Part::Whole | Part::First)
            })
        };
        let mut next = self.following.iter().position(continues).and_then(|at| self.following.remove(at));
        let mut held: usize = self.following.iter().map(|message| message.payload.len()).sum();
        while next.is_none() {
            match endpoint.as_mut().and_then(|core| core.association(id)?.recv(now)) {
                None => break,
                Some(message) if held > MOST_HELD || continues(&message) => next = Some(message),
                Some(message) => {
                    held += message.payload.len();
                    self.following.push_back(message);
                }
            }
        }
        self.open = open.filter(|_| next.is_none());
        self.next = next.map(|message| Pending { message, taken: 0 });
    }

    /// Returns the number of messages, and parts of messages, that have arrived and were not read.
    pub(crate) fn unread(&self, endpoint: Option<&mut Endpoint>, id: AssociationId) -> usize {
        let in_core = endpoint.and_then(|core| core.association(id)).map_or(0, |one| one.unread());
        usize::from(self.next.is_some()) + self.following.len() + in_core
    }

    /// Returns whether a call waits for the result of the set-up. A call that no longer waits has closed its end of the pipe.
    pub(crate) fn is_awaited(&self) -> bool {
        let at_once = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
        self.unsettled.as_ref().is_some_and(|end| {
            let mut ends = [PollFd::new(end, PollFlags::empty())];
            poll(&mut ends, Some(&at_once)).is_ok() && ends[0].revents().is_empty()
        })
    }

    /// Returns the stream and the SSN of the message of which a part was read and whose rest has not arrived.
    pub(crate) fn unfinished(&self) -> Option<(u16, u16)> {
        self.open.as_ref().map(|message| (message.stream.0, message.ssn.0))
    }

    /// Returns the peer's primary address, with its port.
    pub(crate) fn peer(&self) -> Option<SocketName> {
        Some(SocketName { address: *self.peers.first()?, port: self.remote_port })
    }

    /// Returns whether the association has ended.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Ended(_))
    }

    /// Returns the message after the next one. It stays to be read.
    pub(crate) fn look_ahead(
        &mut self,
        endpoint: Option<&mut Endpoint>,
        now: Instant,
        id: AssociationId,
    ) -> Option<&Message> {
        if self.following.is_empty() {
            let message = endpoint?.association(id)?.recv(now)?;
            self.following.push_back(message);
        }
        self.following.front()
    }

    /// Notes that a message was refused for lack of room.
    pub(crate) fn block(&mut self) {
        self.blocked = true;
    }

    /// Wakes the calls that wait: there is room again, or there will never be any.
    pub(crate) fn unblock(&mut self) {
        self.blocked = false;
        self.room = None;
    }

    /// Returns the read end of a pipe whose write end is closed when the association has room, or has ended; `None` if it is not
    /// blocked.
    ///
    /// # Errors
    /// No number for a descriptor is free.
    pub(crate) fn room(&mut self) -> Result<Option<Arc<Private<PipeReader>>>, Errno> {
        if !self.blocked {
            return Ok(None);
        }
        if self.room.is_none() {
            let (told, tells) =
                pipe().map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::MFILE))?;
            // These descriptors exist only while a call waits: moving them to high numbers would cost more than the rest of the
            // wait.
            self.room = Some(Room { told: Arc::new(Private::new(told)), _tells: Private::new(tells) });
        }
        Ok(self.room.as_ref().map(|room| Arc::clone(&room.told)))
    }
}

/// Returns the next association ID of this process. IDs begin after the special ones (SCTP_FUTURE_ASSOC and others).
pub(crate) fn fresh_number() -> i32 {
    static NEXT: AtomicI32 = AtomicI32::new(0);
    3 + (NEXT.fetch_add(1, Ordering::Relaxed) & (i32::MAX >> 1))
}

/// Time after which an idle association is shut down (SCTP_AUTOCLOSE).
pub(crate) type Pause = Duration;

/// Bytes of messages that are held back until another message ends. The bound holds even if the peer never ends that message.
const MOST_HELD: usize = 4 * 1024 * 1024;
