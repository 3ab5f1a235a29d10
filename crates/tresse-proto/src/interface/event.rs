//! Events and messages that an application is given.

use std::net::IpAddr;

use bytes::Bytes;
use tresse_policy::{PathId, PathState, PolicyKind};
use tresse_wire::{Cause, CauseCode, Causes, Ppid, Ssn, StreamId, Tsn};

use crate::interface::addresses::{AddressChange, AddressOutcome};
use crate::interface::protection::{Agreed, Epoch};
use crate::interface::reconfiguration::{Reconfiguration, ReconfigurationOutcome, Streams};
use crate::interface::reliability::Reliability;

/// Something that happened to an association.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Event {
    /// Set-up is complete; messages can be sent.
    Established {
        /// Streams in the sending direction after negotiation.
        outbound_streams: u16,
        /// Streams in the receiving direction after negotiation.
        inbound_streams: u16,
    },
    /// Code point of the adaptation layer above the peer (RFC 5061 §4.2.6); follows `Established` or `Restarted`.
    PeerAdaptation {
        /// A number that both applications know the meaning of.
        code: u32,
    },
    /// The peer has restarted and set the association up anew (RFC 9260 §5.2.4 A): streams, windows, counters
    /// and paths begin again; the identifier and the data that waits to be read stay. Data that was accepted for the
    /// old peer is not sent to the new one.
    Restarted {
        /// Streams in the sending direction after negotiation.
        outbound_streams: u16,
        /// Streams in the receiving direction after negotiation.
        inbound_streams: u16,
        /// Bytes of messages that were accepted and that the old peer has not acknowledged non-renegably.
        /// Those that were sent may have reached it nevertheless.
        undelivered: usize,
    },
    /// Messages wait to be received; sent once until `recv` has found the queue empty.
    Readable,
    /// The send buffer has room again after a `send` was refused for lack of it.
    Writable,
    /// The unsent data of a stream is at or below its low-water mark. Sent once, and again after more data has
    /// waited.
    LowWater {
        /// The stream.
        stream: StreamId,
        /// Bytes of it not yet sent.
        unsent: usize,
    },
    /// A path changed its state.
    PathChanged {
        /// The path.
        path: PathId,
        /// Its new state.
        state: PathState,
    },
    /// The stream scheduler, or that of one group of streams, broke its contract; `first_come` replaces it, with
    /// waiting data in the order of stream numbers. No data is lost, and every stream keeps its order. Or the path
    /// scheduler did, and `in_order` replaces it; or the congestion controller, and `rfc9260` replaces it, with the present
    /// windows.
    SchedulerFailed {
        /// Kind of the policy.
        kind: PolicyKind,
        /// Its registered name.
        name: String,
        /// Fault that it committed.
        fault: SchedulerFault,
    },
    /// A message with partial reliability was abandoned ([`Reliability`]), or one that was accepted during the set-up is
    /// for a stream that the peer did not agree to. Sent once for each: an accepted message is delivered, or abandoned, or
    /// undelivered when the association ends.
    Abandoned {
        /// Its stream.
        stream: StreamId,
        /// Its payload protocol identifier.
        ppid: Ppid,
        /// Number that the application gave with it.
        context: u64,
        /// Its length.
        bytes: usize,
        /// True if any of it was sent: then it may have arrived all the same. Else it did not.
        sent: bool,
        /// Data of the message that the peer did not acknowledge: all of it, if nothing was sent.
        payload: Payload,
    },
    /// The peer reports an error that does not end the association: an ERROR chunk (RFC 9260 §3.3.10).
    PeerError {
        /// The first cause; 0 for none.
        code: CauseCode,
        /// The causes as they came, each with its header.
        causes: Bytes,
    },
    /// Streams that this side sends on begin anew at SSN 0: with the first message that was queued after the reset
    /// was asked for (RFC 6525).
    OutboundReset(Streams),
    /// Streams that the peer sends on have begun anew at SSN 0. Messages of before can still be received first.
    InboundReset(Streams),
    /// All streams of both directions have begun anew at SSN 0, and DATA is numbered anew (RFC 6525 §5.2.4).
    AssociationReset {
        /// The TSN that this side goes on with.
        ours: Tsn,
        /// The TSN that the peer goes on with.
        theirs: Tsn,
    },
    /// There are more streams now; both totals.
    StreamsAdded {
        /// Streams in the sending direction.
        outbound_streams: u16,
        /// Streams in the receiving direction.
        inbound_streams: u16,
    },
    /// The peer has answered a request of this application to reset or to add streams. The
    /// changes themselves have events of their own, as those by the peer have. An association that ends or restarts before
    /// has no answer.
    Reconfigured {
        /// Request that was made.
        request: Reconfiguration,
        /// Its outcome.
        outcome: ReconfigurationOutcome,
    },
    /// The peer has added or removed one of its addresses, or prefers one (RFC 5061). Paths that are created or
    /// removed have events of their own.
    PeerAddress {
        /// The address.
        address: IpAddr,
        /// Change of the address.
        change: AddressChange,
    },
    /// The peer has answered a request of this application about an own address (RFC 5061).
    OwnAddress {
        /// The address.
        address: IpAddr,
        /// Requested change.
        change: AddressChange,
        /// Its outcome.
        outcome: AddressOutcome,
    },
    /// The peer authenticates with another shared key from now on (RFC 4895); it began with key 0.
    PeerKeyChanged {
        /// Its number.
        number: u16,
    },
    /// Both ends agreed to protect packets, and in which roles; follows `Established` or `Restarted`. Without
    /// this event all packets are in the clear. Messages of the application wait until protection is required
    /// ([`require_protection`](crate::AssociationHandle::require_protection)).
    ProtectionAgreed(Box<Agreed>),
    /// A message of the peer's key management has arrived.
    KeyMessage {
        /// [`KEY_MANAGEMENT`](crate::protection::KEY_MANAGEMENT) or [`KEY_CONTROL`](crate::protection::KEY_CONTROL).
        ppid: Ppid,
        /// All of it.
        data: Bytes,
        /// True if all of it came in DTLS chunks. `false` may be said of one that did, if parts of it came at different
        /// times while keys were changing from none to the first.
        protected: bool,
    },
    /// The keys in use are near their limit, in either direction: new ones are needed. Sent once for each epoch.
    KeysNearLimit {
        /// Theirs.
        epoch: Epoch,
    },
    /// Old receiving keys are forgotten; new keys can be installed again.
    KeysDrained {
        /// The epoch of the old ones.
        epoch: Epoch,
    },
    /// The peer sends no more data; messages queued here are still delivered.
    PeerShutdown,
    /// The association has ended. Received data can still be read until it is released.
    Closed(CloseReason),
}

/// Breach of contract by a scheduler or a congestion controller.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SchedulerFault {
    /// It named a stream that has nothing to send, or is not among its own.
    #[error("it named stream {}, which has nothing to send", stream.0)]
    NothingToSend {
        /// The stream it named.
        stream: StreamId,
    },
    /// It named none although data waits and every path could take some.
    #[error("it named no stream although data waits and every path could take it")]
    NoAnswer,
    /// It could not go on, or not even begin: it panicked for instance.
    #[error("{reason}")]
    Failed {
        /// Reason that it gives itself, on one line.
        reason: String,
    },
}

/// Reason for which an association ended.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum CloseReason {
    /// Shut down by either side with everything delivered.
    Graceful,
    /// This application aborted it.
    Aborted,
    /// The peer aborted it.
    AbortedByPeer {
        /// The error cause, in words.
        cause: String,
        /// The first cause (RFC 9260 §3.3.10); 0 if the peer gave none, or sent no ABORT.
        code: CauseCode,
        /// The causes as they came, each with its header. The reason of the peer's application is in a User-Initiated Abort.
        causes: Bytes,
    },
    /// INIT or COOKIE ECHO stayed unanswered (Max.Init.Retransmits).
    SetupTimeout,
    /// No path brought an answer any more (Association.Max.Retrans).
    PathsLost,
    /// The peer answered, but did not let a shutdown come to its end in time (T5-shutdown-guard, RFC 9260 §9.2).
    ShutdownTimeout,
    /// Keys have protected, or failed to open, as much as they may, and there are no new ones.
    KeysSpent,
    /// The peer broke the protocol and was sent an ABORT.
    PeerFault(&'static str),
}

impl CloseReason {
    /// An ICMP message said so.
    pub(crate) fn no_receiver() -> Self {
        CloseReason::without_cause("ICMP: nobody takes SCTP there")
    }

    /// The peer knows nothing of the association, as far as its answer says.
    pub(crate) fn unknown_to_peer() -> Self {
        CloseReason::without_cause("the peer knows no such association")
    }

    fn without_cause(what: &str) -> Self {
        CloseReason::AbortedByPeer { cause: what.to_owned(), code: CauseCode(0), causes: Bytes::new() }
    }

    /// The error cause that the peer gave, or was given (RFC 9260 §3.3.10): 0 for an end without one.
    pub fn code(&self) -> CauseCode {
        match self {
            CloseReason::AbortedByPeer { code, .. } => *code,
            CloseReason::Aborted => CauseCode::USER_ABORT,
            CloseReason::PeerFault(_) => CauseCode::PROTOCOL_VIOLATION,
            _ => CauseCode(0),
        }
    }

    /// The peer sent an ABORT with these causes.
    pub(crate) fn aborted_by_peer(causes: &Causes<'_>) -> Self {
        let cause = match causes.iter().flatten().next() {
            Some(Cause::UserAbort(reason)) => format!("User-Initiated Abort: {}", printable(reason)),
            Some(Cause::ProtocolViolation(what)) => format!("Protocol Violation: {}", printable(what)),
            Some(cause) => cause.code().to_string(),
            None => "no cause given".to_owned(),
        };
        let (code, causes) = owned(causes);
        CloseReason::AbortedByPeer { cause, code, causes }
    }
}

impl Event {
    /// The peer sent an ERROR with these causes.
    pub(crate) fn peer_error(causes: &Causes<'_>) -> Self {
        let (code, causes) = owned(causes);
        Event::PeerError { code, causes }
    }
}

/// The first of these causes, and all of them as they are on the wire.
fn owned(causes: &Causes<'_>) -> (CauseCode, Bytes) {
    let first = causes.iter().flatten().next();
    let mut bytes = Vec::new();
    // What came in a packet is not too long for one.
    causes.write(&mut bytes).unwrap_or_default();
    (first.map_or(CauseCode(0), |cause| cause.code()), bytes.into())
}

/// A peer's text, cut to a line and freed of what could confuse a terminal.
fn printable(text: &[u8]) -> String {
    const LONGEST: usize = 200;
    let text = String::from_utf8_lossy(text);
    text.chars().take(LONGEST).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Options for sending a message.
///
/// ```
/// # use tresse_proto::SendOptions;
/// # use tresse_wire::StreamId;
/// let urgent = SendOptions::on(StreamId(3)).with(|o| o.unordered = true);
/// ```
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct SendOptions {
    /// The stream.
    pub stream: StreamId,
    /// Payload protocol identifier, opaque to the transport.
    pub ppid: Ppid,
    /// Deliver without regard to the order of the stream.
    pub unordered: bool,
    /// Ask the peer to report at once when it has the last chunk of the message (I bit, RFC 7053 §4): for the last message
    /// before a pause, whose sender waits for the acknowledgement.
    pub immediate: bool,
    /// Effort before the message is given up.
    pub reliability: Reliability,
    /// Opaque to the transport; comes back when the message is given up, or was not delivered when the association ends.
    pub context: u64,
}

impl SendOptions {
    /// Ordered, on `stream`.
    pub fn on(stream: StreamId) -> Self {
        SendOptions { stream, ..SendOptions::default() }
    }

    /// These options after `change`, which sets what shall differ.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

/// A message that arrived, or a part of one.
///
/// A message comes in parts when the switch `partial_delivery_point` asks for it, and when the receive buffer
/// cannot hold all of it (RFC 9260 §6.9). The parts of a message come in order. Other messages may come in
/// between, but no other in parts of the same stream and order, and of the same stream no other ordered one if
/// it is ordered. A [`Joiner`](crate::Joiner) makes whole messages of them.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Message {
    /// The stream it came on.
    pub stream: StreamId,
    /// Its number in the stream, of a MID the low 16 bits (RFC 8260 §4.1); meaningless when unordered.
    pub ssn: Ssn,
    /// Payload protocol identifier, as the peer gave it.
    pub ppid: Ppid,
    /// The TSN of its first chunk, or of that of this part; meaningless for [`Part::Abandoned`].
    pub tsn: Tsn,
    /// True if it was sent without regard to order.
    pub unordered: bool,
    /// Part of the message that this is.
    pub part: Part,
    /// The user data.
    pub payload: Payload,
}

impl Message {
    /// A whole ordered message, number and TSN 0: where a test of what takes messages begins.
    pub fn whole(stream: StreamId, ppid: Ppid, payload: Bytes) -> Self {
        let (part, payload) = (Part::Whole, Payload::Whole(payload));
        Message { stream, ssn: Ssn(0), ppid, tsn: Tsn(0), unordered: false, part, payload }
    }
}

/// Part of a message that is handed out.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Part {
    /// All of it.
    #[default]
    Whole,
    /// Its beginning; more follows.
    First,
    /// More of it; still more follows.
    Middle,
    /// The rest of it.
    Last,
    /// Nothing more, and no payload: after parts of it were handed out, its sender gave it up (RFC 3758), or
    /// restarted.
    Abandoned,
}

impl Part {
    /// Returns whether nothing of the message follows.
    pub fn is_end(self) -> bool {
        matches!(self, Part::Whole | Part::Last | Part::Abandoned)
    }
}

/// User data as it arrived: one piece, or several that follow each other. Nothing is copied.
#[derive(Clone, Debug)]
pub enum Payload {
    /// The whole message.
    Whole(Bytes),
    /// Its fragments in order.
    Fragments(Vec<Bytes>),
}

impl Payload {
    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.pieces().iter().map(Bytes::len).sum()
    }

    /// Returns whether there is no byte.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The pieces in order.
    pub fn pieces(&self) -> &[Bytes] {
        match self {
            Payload::Whole(bytes) => std::slice::from_ref(bytes),
            Payload::Fragments(pieces) => pieces,
        }
    }

    /// The data in one piece; copies when it arrived in several.
    pub fn into_bytes(self) -> Bytes {
        match self {
            Payload::Whole(bytes) => bytes,
            Payload::Fragments(pieces) => pieces.concat().into(),
        }
    }
}

impl PartialEq for Payload {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.pieces().iter().flatten().eq(other.pieces().iter().flatten())
    }
}

impl Eq for Payload {}
