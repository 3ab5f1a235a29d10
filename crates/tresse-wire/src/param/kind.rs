//! Parameter type numbers: their names, and the treatment of an unknown number by its highest bits.
//!
//! Owns the table of types.

use std::fmt;

use crate::unrecognised::UnrecognisedAction;

/// A parameter type number.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
pub struct ParamKind(pub u16);

macro_rules! kinds {
    ($($(#[$doc:meta])* $constant:ident = $number:literal, $name:literal;)*) => {
        impl ParamKind {
            $($(#[$doc])* pub const $constant: ParamKind = ParamKind($number);)*

            /// Every type that this crate reads and writes.
            pub const ALL: &'static [ParamKind] = &[$(ParamKind::$constant),*];

            /// Returns the name in its RFC; `None` for a type that this crate does not know.
            pub const fn name(self) -> Option<&'static str> {
                match self {
                    $(ParamKind::$constant => Some($name),)*
                    _ => None,
                }
            }
        }
    };
}

kinds! {
    /// RFC 9260 §3.3.5.
    HEARTBEAT_INFO = 1, "Heartbeat Info";
    /// RFC 9260 §3.3.2.1.1.
    IPV4_ADDRESS = 5, "IPv4 Address";
    /// RFC 9260 §3.3.2.1.2.
    IPV6_ADDRESS = 6, "IPv6 Address";
    /// RFC 9260 §3.3.3.1.1.
    STATE_COOKIE = 7, "State Cookie";
    /// RFC 9260 §3.3.3.1.2.
    UNRECOGNISED_PARAMETER = 8, "Unrecognised Parameter";
    /// RFC 9260 §3.3.2.1.3.
    COOKIE_PRESERVATIVE = 9, "Cookie Preservative";
    /// RFC 9260 §3.3.2.1.4; deprecated.
    HOST_NAME = 11, "Host Name Address";
    /// RFC 9260 §3.3.2.1.5.
    SUPPORTED_ADDRESS_TYPES = 12, "Supported Address Types";
    /// RFC 6525 §4.1.
    OUTGOING_RESET = 13, "Outgoing SSN Reset Request";
    /// RFC 6525 §4.2.
    INCOMING_RESET = 14, "Incoming SSN Reset Request";
    /// RFC 6525 §4.3.
    SSN_TSN_RESET = 15, "SSN/TSN Reset Request";
    /// RFC 6525 §4.4.
    RECONFIG_RESPONSE = 16, "Re-configuration Response";
    /// RFC 6525 §4.5.
    ADD_OUTGOING_STREAMS = 17, "Add Outgoing Streams Request";
    /// RFC 6525 §4.6.
    ADD_INCOMING_STREAMS = 18, "Add Incoming Streams Request";
    /// RFC 4960 appendix A.
    ECN_CAPABLE = 0x8000, "ECN Capable";
    /// RFC 9653 §4.
    ZERO_CHECKSUM_ACCEPTABLE = 0x8001, "Zero Checksum Acceptable";
    /// RFC 4895 §3.1.
    RANDOM = 0x8002, "Random";
    /// RFC 4895 §3.2.
    CHUNKS = 0x8003, "Chunk List";
    /// RFC 4895 §3.3.
    HMAC_ALGORITHMS = 0x8004, "Requested HMAC Algorithm";
    /// RFC 4820 §4.
    PADDING = 0x8005, "Padding";
    /// draft-ietf-tsvwg-sctp-dtls-chunk-04 §4.1.
    DTLS_KEY_MANAGEMENT = 0x8006, "DTLS Key Management";
    /// RFC 5061 §4.2.7.
    SUPPORTED_EXTENSIONS = 0x8008, "Supported Extensions";
    /// RFC 3758 §3.1.
    FORWARD_TSN_SUPPORTED = 0xC000, "Forward TSN Supported";
    /// RFC 5061 §4.2.1.
    ADD_ADDRESS = 0xC001, "Add IP Address";
    /// RFC 5061 §4.2.2.
    DELETE_ADDRESS = 0xC002, "Delete IP Address";
    /// RFC 5061 §4.2.3.
    ERROR_INDICATION = 0xC003, "Error Cause Indication";
    /// RFC 5061 §4.2.4.
    SET_PRIMARY = 0xC004, "Set Primary IP Address";
    /// RFC 5061 §4.2.5.
    SUCCESS_INDICATION = 0xC005, "Success Indication";
    /// RFC 5061 §4.2.6.
    ADAPTATION_INDICATION = 0xC006, "Adaptation Layer Indication";
}

impl ParamKind {
    /// Returns the action of a receiver that does not recognise this type (RFC 9260 §3.2.1).
    pub const fn unrecognised_action(self) -> UnrecognisedAction {
        UnrecognisedAction::of_top_bits((self.0 >> 14) as u8)
    }
}

impl From<u16> for ParamKind {
    fn from(number: u16) -> Self {
        Self(number)
    }
}

impl fmt::Display for ParamKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name} parameter"),
            None => write!(f, "parameter type {:#06x}", self.0),
        }
    }
}
