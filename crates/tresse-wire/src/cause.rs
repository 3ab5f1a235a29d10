//! Error causes, which ABORT, ERROR and ASCONF-ACK carry (RFC 9260 §3.3.10, RFC 5061 §4.3, RFC 4895 §4.2).
//!
//! Owns their layout. The core decides when to send one.

use crate::bytes::{u16_at, u32_at};
use crate::cause_code::CauseCode;
use crate::error::{Fault, TooLong};
use crate::list::List;
use crate::serial::{StreamId, Tsn};
use crate::tlv::{TLV_HEADER_LEN, Tlv, TlvItem, Tlvs, put_tlv};

/// A list of error causes: bytes of a received packet, or values to be written.
pub type Causes<'a> = Tlvs<'a, Cause<'a>>;

/// An error cause.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum Cause<'a> {
    /// DATA chunk on a stream that does not exist.
    InvalidStream(StreamId),
    /// Types of the mandatory parameters that were missing.
    MissingParameters(List<'a, u16>),
    /// The cookie arrived after the end of its lifetime.
    StaleCookie {
        /// Microseconds since the end of the cookie's lifetime; 0 if the sender of the cause does not report it.
        micros: u32,
    },
    /// No resources for the association.
    OutOfResource,
    /// An address parameter of a type that its receiver cannot use, header included.
    UnresolvableAddress(&'a [u8]),
    /// A chunk of unknown type, header included.
    UnrecognisedChunk(&'a [u8]),
    /// A mandatory parameter with a value out of range.
    InvalidParameter,
    /// Parameters of unknown type, headers included.
    UnrecognisedParameters(&'a [u8]),
    /// TSN of a DATA chunk without payload.
    NoUserData(Tsn),
    /// COOKIE ECHO arrived while the association was shutting down.
    CookieWhileShuttingDown,
    /// INIT for an existing association with addresses that the association does not have: these address parameters.
    RestartWithNewAddresses(&'a [u8]),
    /// The application aborted the association; its reason.
    UserAbort(&'a [u8]),
    /// The peer violated the protocol; details, if any.
    ProtocolViolation(&'a [u8]),
    /// INIT for an existing association from another UDP port.
    RestartWithNewEncapsulationPort {
        /// Port in use.
        current: u16,
        /// Port of the INIT.
        new: u16,
    },
    /// The peer requires DTLS chunks, and the INIT did not offer them.
    MissingDtlsChunk,
    /// The two sides have no method of key management in common.
    NoCommonKeyManagement,
    /// Both sides drew the same tie breaker.
    TieBreakerCollision,
    /// Both sides can only be the client of the key management, or both only the server.
    IncompatibleKeyRoles,
    /// ASCONF would delete the last address; the request.
    DeleteLastAddress(&'a [u8]),
    /// The receiver refused an ASCONF request for lack of resources; the request.
    ResourceShortage(&'a [u8]),
    /// ASCONF would delete the source address of its own packet; the request.
    DeleteSourceAddress(&'a [u8]),
    /// ASCONF-ACK with a serial number that was not sent in an ASCONF.
    IllegalAsconfAck,
    /// The receiver's policy refused an ASCONF request; the request.
    NoAuthorisation(&'a [u8]),
    /// AUTH with an HMAC that its receiver did not offer; the HMAC identifier.
    UnsupportedHmac(u16),
    /// A code that this crate does not know.
    Unrecognised {
        /// The code.
        code: u16,
        /// The cause as received, header included, padding not.
        whole: &'a [u8],
    },
}

impl<'a> Cause<'a> {
    /// Returns the code of the cause.
    pub fn code(&self) -> CauseCode {
        match self {
            Cause::InvalidStream(_) => CauseCode::INVALID_STREAM,
            Cause::MissingParameters(_) => CauseCode::MISSING_PARAMETERS,
            Cause::StaleCookie { .. } => CauseCode::STALE_COOKIE,
            Cause::OutOfResource => CauseCode::OUT_OF_RESOURCE,
            Cause::UnresolvableAddress(_) => CauseCode::UNRESOLVABLE_ADDRESS,
            Cause::UnrecognisedChunk(_) => CauseCode::UNRECOGNISED_CHUNK,
            Cause::InvalidParameter => CauseCode::INVALID_PARAMETER,
            Cause::UnrecognisedParameters(_) => CauseCode::UNRECOGNISED_PARAMETERS,
            Cause::NoUserData(_) => CauseCode::NO_USER_DATA,
            Cause::CookieWhileShuttingDown => CauseCode::COOKIE_WHILE_SHUTTING_DOWN,
            Cause::RestartWithNewAddresses(_) => CauseCode::RESTART_WITH_NEW_ADDRESSES,
            Cause::UserAbort(_) => CauseCode::USER_ABORT,
            Cause::ProtocolViolation(_) => CauseCode::PROTOCOL_VIOLATION,
            Cause::RestartWithNewEncapsulationPort { .. } => CauseCode::RESTART_WITH_NEW_ENCAPSULATION_PORT,
            Cause::MissingDtlsChunk => CauseCode::MISSING_DTLS_CHUNK,
            Cause::NoCommonKeyManagement => CauseCode::NO_COMMON_KEY_MANAGEMENT,
            Cause::TieBreakerCollision => CauseCode::TIE_BREAKER_COLLISION,
            Cause::IncompatibleKeyRoles => CauseCode::INCOMPATIBLE_KEY_ROLES,
            Cause::DeleteLastAddress(_) => CauseCode::DELETE_LAST_ADDRESS,
            Cause::ResourceShortage(_) => CauseCode::RESOURCE_SHORTAGE,
            Cause::DeleteSourceAddress(_) => CauseCode::DELETE_SOURCE_ADDRESS,
            Cause::IllegalAsconfAck => CauseCode::ILLEGAL_ASCONF_ACK,
            Cause::NoAuthorisation(_) => CauseCode::NO_AUTHORISATION,
            Cause::UnsupportedHmac(_) => CauseCode::UNSUPPORTED_HMAC,
            Cause::Unrecognised { code, .. } => CauseCode(*code),
        }
    }

    /// Returns the length field of the cause: header and value, without padding.
    pub fn wire_len(&self) -> usize {
        TLV_HEADER_LEN
            + match self {
                Cause::OutOfResource
                | Cause::InvalidParameter
                | Cause::CookieWhileShuttingDown
                | Cause::MissingDtlsChunk
                | Cause::NoCommonKeyManagement
                | Cause::TieBreakerCollision
                | Cause::IncompatibleKeyRoles
                | Cause::IllegalAsconfAck => 0,
                Cause::UnsupportedHmac(_) => 2,
                Cause::InvalidStream(_)
                | Cause::StaleCookie { .. }
                | Cause::NoUserData(_)
                | Cause::RestartWithNewEncapsulationPort { .. } => 4,
                Cause::MissingParameters(types) => 4 + types.wire_len(),
                Cause::UnresolvableAddress(bytes)
                | Cause::UnrecognisedChunk(bytes)
                | Cause::UnrecognisedParameters(bytes)
                | Cause::RestartWithNewAddresses(bytes)
                | Cause::UserAbort(bytes)
                | Cause::ProtocolViolation(bytes)
                | Cause::DeleteLastAddress(bytes)
                | Cause::ResourceShortage(bytes)
                | Cause::DeleteSourceAddress(bytes)
                | Cause::NoAuthorisation(bytes) => bytes.len(),
                Cause::Unrecognised { whole, .. } => after_header(whole).len(),
            }
    }

    /// Appends header and value, without padding.
    ///
    /// # Errors
    /// If the length of the cause exceeds 65535 bytes; then nothing is written.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), TooLong> {
        TooLong::check(self.wire_len())?;
        self.put(out);
        Ok(())
    }

    /// Appends the value.
    fn put_value(&self, out: &mut Vec<u8>) {
        match self {
            Cause::OutOfResource
            | Cause::InvalidParameter
            | Cause::CookieWhileShuttingDown
            | Cause::MissingDtlsChunk
            | Cause::NoCommonKeyManagement
            | Cause::TieBreakerCollision
            | Cause::IncompatibleKeyRoles
            | Cause::IllegalAsconfAck => {}
            Cause::InvalidStream(stream) => {
                out.extend_from_slice(&stream.0.to_be_bytes());
                out.extend_from_slice(&[0, 0]);
            }
            Cause::MissingParameters(types) => {
                out.extend_from_slice(&(types.len() as u32).to_be_bytes());
                types.put(out);
            }
            Cause::StaleCookie { micros: word } | Cause::NoUserData(Tsn(word)) => {
                out.extend_from_slice(&word.to_be_bytes());
            }
            Cause::RestartWithNewEncapsulationPort { current, new } => {
                out.extend_from_slice(&current.to_be_bytes());
                out.extend_from_slice(&new.to_be_bytes());
            }
            Cause::UnsupportedHmac(id) => out.extend_from_slice(&id.to_be_bytes()),
            Cause::UnresolvableAddress(bytes)
            | Cause::UnrecognisedChunk(bytes)
            | Cause::UnrecognisedParameters(bytes)
            | Cause::RestartWithNewAddresses(bytes)
            | Cause::UserAbort(bytes)
            | Cause::ProtocolViolation(bytes)
            | Cause::DeleteLastAddress(bytes)
            | Cause::ResourceShortage(bytes)
            | Cause::DeleteSourceAddress(bytes)
            | Cause::NoAuthorisation(bytes) => out.extend_from_slice(bytes),
            Cause::Unrecognised { whole, .. } => out.extend_from_slice(after_header(whole)),
        }
    }
}

impl<'a> TlvItem<'a> for Cause<'a> {
    type Kind = CauseCode;

    fn from_tlv(tlv: Tlv<'a>) -> Result<Self, Fault> {
        let value = tlv.value;
        let word = || tlv.exactly::<4>("8");
        match CauseCode(tlv.kind) {
            CauseCode::INVALID_STREAM => Ok(Cause::InvalidStream(StreamId(u16_at::<0, _>(word()?)))),
            CauseCode::MISSING_PARAMETERS => parse_missing(tlv),
            CauseCode::STALE_COOKIE => Ok(Cause::StaleCookie { micros: u32_at::<0, _>(word()?) }),
            CauseCode::OUT_OF_RESOURCE => tlv.nothing().map(|()| Cause::OutOfResource),
            CauseCode::UNRESOLVABLE_ADDRESS => Ok(Cause::UnresolvableAddress(value)),
            CauseCode::UNRECOGNISED_CHUNK => Ok(Cause::UnrecognisedChunk(value)),
            CauseCode::INVALID_PARAMETER => tlv.nothing().map(|()| Cause::InvalidParameter),
            CauseCode::UNRECOGNISED_PARAMETERS => Ok(Cause::UnrecognisedParameters(value)),
            CauseCode::NO_USER_DATA => Ok(Cause::NoUserData(Tsn(u32_at::<0, _>(word()?)))),
            CauseCode::COOKIE_WHILE_SHUTTING_DOWN => tlv.nothing().map(|()| Cause::CookieWhileShuttingDown),
            CauseCode::RESTART_WITH_NEW_ADDRESSES => Ok(Cause::RestartWithNewAddresses(value)),
            CauseCode::USER_ABORT => Ok(Cause::UserAbort(value)),
            CauseCode::PROTOCOL_VIOLATION => Ok(Cause::ProtocolViolation(value)),
            CauseCode::RESTART_WITH_NEW_ENCAPSULATION_PORT => {
                let ports = word()?;
                Ok(Cause::RestartWithNewEncapsulationPort {
                    current: u16_at::<0, _>(ports),
                    new: u16_at::<2, _>(ports),
                })
            }
            CauseCode::MISSING_DTLS_CHUNK => tlv.nothing().map(|()| Cause::MissingDtlsChunk),
            CauseCode::NO_COMMON_KEY_MANAGEMENT => tlv.nothing().map(|()| Cause::NoCommonKeyManagement),
            CauseCode::TIE_BREAKER_COLLISION => tlv.nothing().map(|()| Cause::TieBreakerCollision),
            CauseCode::INCOMPATIBLE_KEY_ROLES => tlv.nothing().map(|()| Cause::IncompatibleKeyRoles),
            CauseCode::DELETE_LAST_ADDRESS => Ok(Cause::DeleteLastAddress(value)),
            CauseCode::RESOURCE_SHORTAGE => Ok(Cause::ResourceShortage(value)),
            CauseCode::DELETE_SOURCE_ADDRESS => Ok(Cause::DeleteSourceAddress(value)),
            CauseCode::ILLEGAL_ASCONF_ACK => tlv.nothing().map(|()| Cause::IllegalAsconfAck),
            CauseCode::NO_AUTHORISATION => Ok(Cause::NoAuthorisation(value)),
            CauseCode::UNSUPPORTED_HMAC => Ok(Cause::UnsupportedHmac(u16_at::<0, _>(tlv.exactly::<2>("6")?))),
            CauseCode(code) => Ok(Cause::Unrecognised { code, whole: tlv.whole }),
        }
    }

    fn wire_len(&self) -> usize {
        Cause::wire_len(self)
    }

    fn put(&self, out: &mut Vec<u8>) {
        put_tlv(out, self.code().0, |out| self.put_value(out));
    }
}

/// Reads Missing Mandatory Parameter: the number of types, then the types.
fn parse_missing(tlv: Tlv<'_>) -> Result<Cause<'_>, Fault> {
    let (count, types) = tlv.at_least::<4>("8 and 2 for each type")?;
    let counted = u64::from(u32_at::<0, _>(count)) * 2;
    if counted != types.len() as u64 {
        return Err(Fault::Count { len: tlv.whole.len(), counted: counted + 8 });
    }
    Ok(Cause::MissingParameters(List::Wire(types)))
}

fn after_header(whole: &[u8]) -> &[u8] {
    whole.get(TLV_HEADER_LEN..).unwrap_or_default()
}
