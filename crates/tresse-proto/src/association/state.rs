//! States of an association after its handshake (RFC 9260 §4). COOKIE-WAIT and COOKIE-ECHOED are phases of a `Setup`, which owns
//! an association that was created before the end of the set-up.

/// State of an association.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum State {
    Established,
    /// The application has requested the shutdown; data is still outstanding.
    ShutdownPending,
    ShutdownSent,
    /// The peer has requested the shutdown; data is still outstanding.
    ShutdownReceived,
    ShutdownAckSent,
    Closed,
}

impl State {
    /// The state's name in RFC 9260.
    pub(crate) fn name(self) -> &'static str {
        match self {
            State::Established => "ESTABLISHED",
            State::ShutdownPending => "SHUTDOWN-PENDING",
            State::ShutdownSent => "SHUTDOWN-SENT",
            State::ShutdownReceived => "SHUTDOWN-RECEIVED",
            State::ShutdownAckSent => "SHUTDOWN-ACK-SENT",
            State::Closed => "CLOSED",
        }
    }

    /// Returns whether queued user data is still sent.
    pub(crate) fn sends_data(self) -> bool {
        matches!(self, State::Established | State::ShutdownPending | State::ShutdownReceived)
    }

    /// Returns whether ASCONF and ASCONF-ACK may be sent (RFC 5061 §5.1.1 C4).
    pub(crate) fn changes_addresses(self) -> bool {
        !matches!(self, State::ShutdownAckSent | State::Closed)
    }

    /// Returns whether DATA from the peer is still accepted.
    pub(crate) fn takes_data(self) -> bool {
        matches!(self, State::Established | State::ShutdownPending | State::ShutdownSent)
    }
}
