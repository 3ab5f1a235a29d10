//! Events and messages for the application.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use tresse_policy::{Instant, PathId, PathState, PolicyKind};
use tresse_wire::{Cause, CauseCode, Causes, Ppid, Ssn, StreamId, Tsn};

use crate::interface::addresses::{AddressChange, AddressOutcome};
use crate::interface::protection::{Agreed, Epoch};
use crate::interface::reconfiguration::{Reconfiguration, ReconfigurationOutcome, Streams};
use crate::interface::reliability::{DeliveryTerms, Reliability};

/// An event of an association.
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
    /// The peer's Adaptation Code Point (RFC 5061 §4.2.6); follows `Established` or `Restarted`.
    PeerAdaptation {
        /// The code point, whose meaning the applications define.
        code: u32,
    },
    /// The peer has restarted and set up the association anew (RFC 9260 §5.2.4 A). Streams, windows, counters and paths begin
    /// again. The identifier of the association and received data that was not read remain. Data that was accepted for the old
    /// peer is not sent to the new one.
    Restarted {
        /// Streams in the sending direction after negotiation.
        outbound_streams: u16,
        /// Streams in the receiving direction after negotiation.
        inbound_streams: u16,
        /// Bytes of accepted messages that the old peer has not acknowledged non-renegably. Messages that were sent may have
        /// reached it.
        undelivered: usize,
    },
    /// Messages wait to be received. Sent once; sent again only after `recv` has found the queue empty.
    Readable,
    /// The send buffer has room again after `send` failed for lack of it.
    Writable,
    /// The unsent data of a stream has fallen to its low-water mark or below. Sent again only after it was above the mark.
    LowWater {
        /// The stream.
        stream: StreamId,
        /// Bytes of the stream that are not sent yet.
        unsent: usize,
    },
    /// A path changed its state.
    PathChanged {
        /// The path.
        path: PathId,
        /// Its new state.
        state: PathState,
    },
    /// A policy failed, and was replaced. `first_come` replaces a stream scheduler, of the association or of one group of
    /// streams, and serves the waiting data in the order of stream numbers; no data is lost, and every stream keeps its order.
    /// `in_order` replaces a path scheduler. `rfc9260` replaces a congestion controller and keeps the present windows.
    SchedulerFailed {
        /// Kind of the policy.
        kind: PolicyKind,
        /// Its registered name.
        name: String,
        /// Reason for the replacement.
        fault: SchedulerFault,
    },
    /// A message was abandoned: by its partial reliability ([`Reliability`]), or because it was accepted during the
    /// set-up for a stream that was not negotiated. Sent once for each message. An accepted message is delivered,
    /// abandoned, or undelivered when the association ends.
    Abandoned {
        /// Its stream.
        stream: StreamId,
        /// Its payload protocol identifier.
        ppid: Ppid,
        /// The context that the application gave when it sent the message.
        context: u64,
        /// True for an unordered message.
        unordered: bool,
        /// Length of the message in bytes.
        bytes: usize,
        /// True if a part of it was sent at least once: then the message may have arrived. Otherwise it did not.
        sent: bool,
        /// Data of the message that the peer did not acknowledge: all of it, if nothing was sent.
        payload: Payload,
    },
    /// The peer reports an error that does not end the association: an ERROR chunk (RFC 9260 §3.3.10).
    PeerError {
        /// The code of the first cause; 0 if there is none.
        code: CauseCode,
        /// The causes as received, each with its header.
        causes: Bytes,
    },
    /// Streams on which this side sends were reset (RFC 6525). The first message that was queued after the request has SSN 0.
    OutboundReset(Streams),
    /// Streams on which the peer sends were reset and continue with SSN 0. Earlier messages that are unread are received first.
    InboundReset(Streams),
    /// The association was reset: all streams of both directions continue with SSN 0, and both sides with new TSNs
    /// (RFC 6525 §5.2.4).
    AssociationReset {
        /// The next TSN of this side.
        ours: Tsn,
        /// The next TSN of the peer.
        theirs: Tsn,
    },
    /// Streams were added; the numbers are the new totals.
    StreamsAdded {
        /// Streams in the sending direction.
        outbound_streams: u16,
        /// Streams in the receiving direction.
        inbound_streams: u16,
    },
    /// The peer has answered a request of this application to reset or to add streams. The change itself has an event
    /// of its own, and so has a change that the peer requested. If the association ends or restarts before the answer,
    /// there is no such event.
    Reconfigured {
        /// The request of the application.
        request: Reconfiguration,
        /// Its outcome.
        outcome: ReconfigurationOutcome,
    },
    /// The peer has added or removed one of its addresses, or prefers one (RFC 5061). Paths that are created or
    /// removed have events of their own.
    PeerAddress {
        /// The address.
        address: IpAddr,
        /// The change of the address.
        change: AddressChange,
    },
    /// The peer has answered a request of this application about an own address (RFC 5061).
    OwnAddress {
        /// The address.
        address: IpAddr,
        /// The requested change.
        change: AddressChange,
        /// Its outcome.
        outcome: AddressOutcome,
    },
    /// The peer authenticates with another shared key from now on (RFC 4895); it began with key 0.
    PeerKeyChanged {
        /// The number of the key.
        number: u16,
    },
    /// Both ends agreed on protection by DTLS chunks and on their roles; follows `Established` or `Restarted`. Without
    /// this event, packets are not protected. Messages of the application wait until protection is required
    /// ([`require_protection`](crate::AssociationHandle::require_protection)).
    ProtectionAgreed(Box<Agreed>),
    /// A message of the peer's key management has arrived.
    KeyMessage {
        /// [`KEY_MANAGEMENT`](crate::protection::KEY_MANAGEMENT) or [`KEY_CONTROL`](crate::protection::KEY_CONTROL).
        ppid: Ppid,
        /// The complete message.
        data: Bytes,
        /// True if all of the message arrived in DTLS chunks. It can be false for such a message, if its parts arrived at
        /// different times while the first keys were installed.
        protected: bool,
    },
    /// The present keys of one direction are near their limit of use: new keys are needed. Sent once for each epoch.
    KeysNearLimit {
        /// Epoch of these keys.
        epoch: Epoch,
    },
    /// The old receiving keys were deleted; new keys can be installed again.
    KeysDrained {
        /// Epoch of the old keys.
        epoch: Epoch,
    },
    /// The peer sends no more data. Messages that are queued here are still delivered.
    PeerShutdown,
    /// The association has ended. Received data can still be read until it is released.
    Closed(CloseReason),
}

/// Fault of a scheduler or a congestion controller.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SchedulerFault {
    /// The scheduler selected a stream that has nothing to send, or is not among its own.
    #[error("it named stream {}, which has nothing to send", stream.0)]
    NothingToSend {
        /// The stream that it selected.
        stream: StreamId,
    },
    /// The scheduler selected no stream although data waits and every path could carry some.
    #[error("it named no stream although data waits and every path could take it")]
    NoAnswer,
    /// The policy reported a failure, panicked, or could not be created.
    #[error("{reason}")]
    Failed {
        /// The reason, on one line.
        reason: String,
    },
}

/// Reason for which an association ended.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum CloseReason {
    /// Graceful shutdown by either side; all data was delivered.
    Graceful,
    /// This application aborted it.
    Aborted,
    /// The peer aborted it.
    AbortedByPeer {
        /// The error cause as text.
        cause: String,
        /// The code of the first cause (RFC 9260 §3.3.10); 0 if the peer gave none, or sent no ABORT.
        code: CauseCode,
        /// The causes as received, each with its header. A User-Initiated Abort has the reason of the peer's
        /// application.
        causes: Bytes,
    },
    /// INIT or COOKIE ECHO was not answered (Max.Init.Retransmits exceeded).
    SetupTimeout,
    /// The peer did not answer on any path (Association.Max.Retrans exceeded).
    PathsLost,
    /// The shutdown did not complete in time although the peer answered (T5-shutdown-guard, RFC 9260 §9.2).
    ShutdownTimeout,
    /// The keys reached their limit of encrypted records or of failed decryptions, and there are no new keys.
    KeysSpent,
    /// The peer violated the protocol, as the text says, and this side sent an ABORT.
    PeerFault(&'static str),
    /// The peer does not support the protection by DTLS chunks that this side requires, and this side sent an ABORT.
    PeerUnprotected,
    /// The driver of the endpoint has ended: nothing is sent or received any more, and the peer was not told. The core
    /// itself never gives this reason.
    DriverEnded,
}

impl CloseReason {
    /// Returns the reason for an ICMP message that the host does not support SCTP.
    pub(crate) fn no_receiver() -> Self {
        CloseReason::without_cause("ICMP: nobody takes SCTP there")
    }

    /// Returns the reason for an answer of the peer that shows that it has no such association.
    pub(crate) fn unknown_to_peer() -> Self {
        CloseReason::without_cause("the peer knows no such association")
    }

    fn without_cause(what: &str) -> Self {
        CloseReason::AbortedByPeer { cause: what.to_owned(), code: CauseCode(0), causes: Bytes::new() }
    }

    /// Returns the code of the error cause that the peer sent or received (RFC 9260 §3.3.10); 0 for an end without one.
    pub fn code(&self) -> CauseCode {
        match self {
            CloseReason::AbortedByPeer { code, .. } => *code,
            CloseReason::Aborted => CauseCode::USER_ABORT,
            CloseReason::PeerFault(_) | CloseReason::PeerUnprotected => CauseCode::PROTOCOL_VIOLATION,
            _ => CauseCode(0),
        }
    }

    /// Returns whether the set-up ended because one side requires protection by DTLS chunks, and the other one does not
    /// support it.
    pub fn lacks_protection(&self) -> bool {
        match self {
            CloseReason::PeerUnprotected => true,
            reason => reason.code() == CauseCode::MISSING_DTLS_CHUNK,
        }
    }

    /// Returns the reason for an ABORT of the peer with these causes.
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
    /// Returns the event for an ERROR of the peer with these causes.
    pub(crate) fn peer_error(causes: &Causes<'_>) -> Self {
        let (code, causes) = owned(causes);
        Event::PeerError { code, causes }
    }
}

/// Returns the code of the first cause, and all causes as on the wire.
fn owned(causes: &Causes<'_>) -> (CauseCode, Bytes) {
    let first = causes.iter().flatten().next();
    let mut bytes = Vec::new();
    // They fit: they were in a packet.
    causes.write(&mut bytes).unwrap_or_default();
    (first.map_or(CauseCode(0), |cause| cause.code()), bytes.into())
}

/// Returns a peer's text on one line, without control characters and of limited length.
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
    /// Payload protocol identifier, which the transport does not interpret.
    pub ppid: Ppid,
    /// True for an unordered message (RFC 9260 §6.6).
    pub unordered: bool,
    /// True to request a SACK without delay for the last chunk of the message (I bit, RFC 7053 §4): for the last
    /// message before a pause, if the sender waits for the acknowledgement.
    pub immediate: bool,
    /// The rule by which the message is abandoned.
    pub reliability: Reliability,
    /// Number for the application's own use. It is returned if the message is abandoned, or undelivered when the
    /// association ends.
    pub context: u64,
}

impl SendOptions {
    /// Returns options for a reliable, ordered message on `stream`.
    pub fn on(stream: StreamId) -> Self {
        SendOptions { stream, ..SendOptions::default() }
    }

    /// Returns the terms of the message `number` of `bytes` bytes; `None` for a reliable message without a context. `revocable`
    /// is true if the peer supports FORWARD TSN: without it a message can only expire before it is sent.
    pub(crate) fn terms(
        &self,
        now: Instant,
        number: u64,
        bytes: usize,
        revocable: bool,
    ) -> Option<Arc<DeliveryTerms>> {
        let reliability = match self.reliability {
            Reliability::Retransmissions(_) | Reliability::Priority(_) if !revocable => Reliability::Full,
            policy => policy,
        };
        let expires = match reliability {
            Reliability::Full if self.context == 0 => return None,
            Reliability::Lifetime(lifetime) => now + lifetime,
            Reliability::Full | Reliability::Retransmissions(_) | Reliability::Priority(_) => {
                Instant::FAR_FUTURE
            }
        };
        Some(Arc::new(DeliveryTerms {
            number,
            reliability,
            expires,
            revocable,
            stream: self.stream,
            ppid: self.ppid,
            context: self.context,
            unordered: self.unordered,
            bytes,
        }))
    }

    /// Returns these options, changed by `change`.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

/// A message that arrived, or a part of one.
///
/// A message is delivered in parts if it reaches the setting `partial_delivery_point`, or if the receive buffer cannot
/// hold all of it (RFC 9260 §6.9). The parts of a message are delivered in order. Other messages may be delivered in
/// between, with two exceptions. Between the parts of an ordered message, no other ordered message of its stream is
/// delivered. Between the parts of an unordered message, no other unordered message of its stream is delivered in
/// parts. A [`Joiner`](crate::Joiner) joins the parts to whole messages.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Message {
    /// The stream of the message.
    pub stream: StreamId,
    /// The SSN, or the low 16 bits of the MID (RFC 8260 §4.1); meaningless for an unordered message.
    pub ssn: Ssn,
    /// Payload protocol identifier that the peer's application gave.
    pub ppid: Ppid,
    /// The TSN of the first chunk of the message or part; meaningless for [`Part::Abandoned`].
    pub tsn: Tsn,
    /// True if it was sent unordered.
    pub unordered: bool,
    /// The part of the message.
    pub part: Part,
    /// The user data.
    pub payload: Payload,
}

impl Message {
    /// Returns a whole ordered message with SSN and TSN 0, for tests of code that receives messages.
    pub fn whole(stream: StreamId, ppid: Ppid, payload: Bytes) -> Self {
        let (part, payload) = (Part::Whole, Payload::Whole(payload));
        Message { stream, ssn: Ssn(0), ppid, tsn: Tsn(0), unordered: false, part, payload }
    }
}

/// Part of a message that is delivered.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Part {
    /// The whole message.
    #[default]
    Whole,
    /// The first part; more follows.
    First,
    /// A part in the middle; more follows.
    Middle,
    /// The last part.
    Last,
    /// The end of a message that was delivered in part, without payload: its sender abandoned it (RFC 3758) or
    /// restarted.
    Abandoned,
}

impl Part {
    /// Returns whether no further part of the message follows.
    pub fn is_end(self) -> bool {
        matches!(self, Part::Whole | Part::Last | Part::Abandoned)
    }
}

/// User data as it arrived, in one piece or in several consecutive pieces. Nothing is copied.
#[derive(Clone, Debug)]
pub enum Payload {
    /// The whole message.
    Whole(Bytes),
    /// Its fragments in order.
    Fragments(Vec<Bytes>),
}

impl Payload {
    /// Returns the length in bytes.
    pub fn len(&self) -> usize {
        self.pieces().iter().map(Bytes::len).sum()
    }

    /// Returns whether the data has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the pieces in order.
    pub fn pieces(&self) -> &[Bytes] {
        match self {
            Payload::Whole(bytes) => std::slice::from_ref(bytes),
            Payload::Fragments(pieces) => pieces,
        }
    }

    /// Returns the data in one piece; copies it if it arrived in several.
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
