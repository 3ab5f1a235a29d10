//! Codes of error causes, and their names (RFC 9260 §3.3.10, RFC 5061 §4.3, RFC 4895 §4.2).

use std::fmt;

/// An error cause code.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
pub struct CauseCode(pub u16);

macro_rules! codes {
    ($($(#[$doc:meta])* $constant:ident = $number:literal, $name:literal;)*) => {
        impl CauseCode {
            $($(#[$doc])* pub const $constant: CauseCode = CauseCode($number);)*

            /// Every code that this crate reads and writes.
            pub const ALL: &'static [CauseCode] = &[$(CauseCode::$constant),*];

            /// Returns the name in its RFC; `None` for a code that this crate does not know.
            pub const fn name(self) -> Option<&'static str> {
                match self {
                    $(CauseCode::$constant => Some($name),)*
                    _ => None,
                }
            }
        }
    };
}

codes! {
    /// RFC 9260 §3.3.10.1.
    INVALID_STREAM = 1, "Invalid Stream Identifier";
    /// RFC 9260 §3.3.10.2.
    MISSING_PARAMETERS = 2, "Missing Mandatory Parameter";
    /// RFC 9260 §3.3.10.3.
    STALE_COOKIE = 3, "Stale Cookie";
    /// RFC 9260 §3.3.10.4.
    OUT_OF_RESOURCE = 4, "Out of Resource";
    /// RFC 9260 §3.3.10.5.
    UNRESOLVABLE_ADDRESS = 5, "Unresolvable Address";
    /// RFC 9260 §3.3.10.6.
    UNRECOGNISED_CHUNK = 6, "Unrecognised Chunk Type";
    /// RFC 9260 §3.3.10.7.
    INVALID_PARAMETER = 7, "Invalid Mandatory Parameter";
    /// RFC 9260 §3.3.10.8.
    UNRECOGNISED_PARAMETERS = 8, "Unrecognised Parameters";
    /// RFC 9260 §3.3.10.9.
    NO_USER_DATA = 9, "No User Data";
    /// RFC 9260 §3.3.10.10.
    COOKIE_WHILE_SHUTTING_DOWN = 10, "Cookie Received While Shutting Down";
    /// RFC 9260 §3.3.10.11.
    RESTART_WITH_NEW_ADDRESSES = 11, "Restart of an Association with New Addresses";
    /// RFC 9260 §3.3.10.12.
    USER_ABORT = 12, "User-Initiated Abort";
    /// RFC 9260 §3.3.10.13.
    PROTOCOL_VIOLATION = 13, "Protocol Violation";
    /// draft-ietf-tsvwg-udp-encaps-cons; not registered.
    RESTART_WITH_NEW_ENCAPSULATION_PORT = 14, "Restart with New Encapsulation Port";
    /// draft-ietf-tsvwg-sctp-dtls-chunk-04 §4.3.
    MISSING_DTLS_CHUNK = 100, "Missing DTLS Chunk Support";
    /// draft-ietf-tsvwg-sctp-dtls-chunk-04 §4.3.
    NO_COMMON_KEY_MANAGEMENT = 101, "No Common DTLS Key Management Method";
    /// draft-ietf-tsvwg-sctp-dtls-chunk-04 §4.3.
    TIE_BREAKER_COLLISION = 102, "DTLS Key Management Tie Breaker Collision";
    /// draft-ietf-tsvwg-sctp-dtls-chunk-04 §4.3.
    INCOMPATIBLE_KEY_ROLES = 103, "Incompatible DTLS Key Management Roles";
    /// RFC 5061 §4.3.1.
    DELETE_LAST_ADDRESS = 0xA0, "Request to Delete Last Remaining IP Address";
    /// RFC 5061 §4.3.2.
    RESOURCE_SHORTAGE = 0xA1, "Operation Refused Due to Resource Shortage";
    /// RFC 5061 §4.3.3.
    DELETE_SOURCE_ADDRESS = 0xA2, "Request to Delete Source IP Address";
    /// RFC 5061 §4.3.4.
    ILLEGAL_ASCONF_ACK = 0xA3, "Association Aborted Due to Illegal ASCONF-ACK";
    /// RFC 5061 §4.3.5.
    NO_AUTHORISATION = 0xA4, "Request Refused - No Authorisation";
    /// RFC 4895 §4.2.
    UNSUPPORTED_HMAC = 0x0105, "Unsupported HMAC Identifier";
}

impl From<u16> for CauseCode {
    fn from(number: u16) -> Self {
        Self(number)
    }
}

impl fmt::Display for CauseCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name} cause"),
            None => write!(f, "cause code {:#06x}", self.0),
        }
    }
}
