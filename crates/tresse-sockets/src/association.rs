//! State of one association beside the core: its owner, what was read of it in advance, its settings.

use std::collections::{HashMap, VecDeque};
use std::io::PipeWriter;
use std::net::IpAddr;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use tresse_proto::{AssociationId, CloseReason, Endpoint, Instant, Message, Part, PathState};

use crate::engine::fresh_number;
use crate::layout::SocketName;
use crate::numbers::Private;
use crate::queue::Turns;
use crate::room::Room;
use crate::settings::Settings;

/// State of one association.
pub(crate) struct SocketAssociation {
    /// The number that programs know it by.
    pub(crate) number: i32,
    /// Key of its socket.
    pub(crate) owner: u64,
    pub(crate) phase: Phase,
    /// Held until it is known what came of the set-up: a call that waits for that has the other end.
    pub(crate) unsettled: Option<Private<PipeWriter>>,
    /// The peer's SCTP port.
    pub(crate) remote_port: u16,
    /// The message that is read next, so that it is known whether there is one.
    pub(crate) next: Option<Pending>,
    /// The message after it, where a program wants to hear of that.
    pub(crate) following: VecDeque<Message>,
    /// A message that is handed out in parts, of which the next has not come.
    open: Option<Message>,
    /// The turns of what can be read, among the items that wait at its socket.
    pub(crate) turns: Turns,
    /// The peer's addresses, the primary one first.
    pub(crate) peers: Vec<IpAddr>,
    /// A message was refused for want of room.
    pub(crate) blocked: bool,
    /// Pipe for calls that wait to send; `None` unless one waits.
    pub(crate) room: Option<Room>,
    /// The peer will send nothing more.
    pub(crate) peer_done: bool,
    /// True if no descriptor refers to it any more; it only ends.
    pub(crate) abandoned: bool,
    pub(crate) settings: Settings,
    /// Messages that are given in pieces (SCTP_EXPLICIT_EOR), by stream.
    pub(crate) pieces: HashMap<u16, Vec<u8>>,
    /// Time of the last event, for SCTP_AUTOCLOSE.
    pub(crate) last_used: Instant,
    /// Path states as they were told last.
    pub(crate) paths: Vec<PathState>,
    /// Adaptation code point of the peer.
    pub(crate) adaptation: u32,
    /// True if nothing was sent since the program was told that all is acknowledged.
    pub(crate) is_dry: bool,
    /// Bytes that were read since the core looked at its window.
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
    /// There never was an association: the socket may try again.
    BeforeSetup(Errno),
    /// With an error that the program has been told.
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

/// A message, or a part of one, of which `taken` bytes have been read.
pub(crate) struct Pending {
    pub(crate) message: Message,
    pub(crate) taken: usize,
}

impl Pending {
    pub(crate) fn left(&self) -> usize {
        self.message.payload.len() - self.taken
    }
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

    /// Takes the next message out of the core, in place of the one that is read. While a message is handed out in parts,
    /// `strict` keeps those of other streams back until its end (RFC 6458 §8.1.20), as long as there is room for them.
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
            // No message waits, and none has to wait.
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

    /// Number of messages and parts of messages that have come and were not read.
    pub(crate) fn unread(&self, endpoint: Option<&mut Endpoint>, id: AssociationId) -> usize {
        let in_core = endpoint.and_then(|core| core.association(id)).map_or(0, |one| one.unread());
        usize::from(self.next.is_some()) + self.following.len() + in_core
    }

    /// Returns whether a call waits for the result of the set-up. One that has given up has closed its end.
    pub(crate) fn is_awaited(&self) -> bool {
        let at_once = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
        self.unsettled.as_ref().is_some_and(|end| {
            let mut ends = [PollFd::new(end, PollFlags::empty())];
            poll(&mut ends, Some(&at_once)).is_ok() && ends[0].revents().is_empty()
        })
    }

    /// Stream and number of the message of which a part was read, and whose rest has not come.
    pub(crate) fn unfinished(&self) -> Option<(u16, u16)> {
        self.open.as_ref().map(|message| (message.stream.0, message.ssn.0))
    }

    /// The peer's primary name.
    pub(crate) fn peer(&self) -> Option<SocketName> {
        Some(SocketName { address: *self.peers.first()?, port: self.remote_port })
    }

    /// Returns whether it has ended.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Ended(_))
    }

    /// Looks at the message after the next one.
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
}

/// Time that a program lets an association be idle.
pub(crate) type Pause = Duration;

/// Bytes of messages that wait for another one to end; a peer that never ends it cannot make this side keep more.
const MOST_HELD: usize = 4 * 1024 * 1024;
