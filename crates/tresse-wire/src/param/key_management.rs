//! DTLS Key Management (draft-ietf-tsvwg-sctp-dtls-chunk-04 §4.1): methods and roles for the agreement on keys for DTLS
//! chunks.
//!
//! Owns the layout. Independent of the methods, which are bytes here.

use super::Param;
use crate::bytes::u32_at;
use crate::error::Fault;
use crate::tlv::Tlv;

/// Bytes of the value before the methods.
const HEAD_LEN: usize = 5;

/// Flags of the parameter. Undefined bits are kept as received, because the keys are derived from the exact bytes of
/// both sides' parameters.
#[derive(Copy, Clone, Debug)]
pub struct KeyRoles;

impl KeyRoles {
    /// The sender can be the client of the key management.
    pub const CLIENT: u8 = 0x01;
    /// The sender can be the server of the key management.
    pub const SERVER: u8 = 0x02;
    /// The sender accepts protected restarts.
    pub const RESTART: u8 = 0x04;
}

pub(super) fn parse(tlv: Tlv<'_>) -> Result<Param<'_>, Fault> {
    let (head, methods) = tlv.at_least::<HEAD_LEN>("at least 10")?;
    if methods.is_empty() {
        return Err(Fault::Length { len: tlv.whole.len(), expected: "at least 10" });
    }
    Ok(Param::DtlsKeyManagement { tie_breaker: u32_at::<0, _>(head), flags: head[4], methods })
}

pub(super) fn put_value(param: &Param<'_>, out: &mut Vec<u8>) {
    if let Param::DtlsKeyManagement { tie_breaker, flags, methods } = param {
        out.extend_from_slice(&tie_breaker.to_be_bytes());
        out.push(*flags);
        out.extend_from_slice(methods);
    }
}
