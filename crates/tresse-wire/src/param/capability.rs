//! Parameters by which an endpoint announces its capabilities and requests: extensions, FORWARD-TSN, ECN, zero
//! checksum, adaptation layer, cookie lifetime, padding.
//!
//! Owns their layout. Independent of the peer's offer: the core negotiates.

use super::{Param, ParamKind};
use crate::error::Fault;
use crate::tlv::Tlv;

pub(super) fn parse(kind: ParamKind, tlv: Tlv<'_>) -> Result<Param<'_>, Fault> {
    let word = || tlv.exactly("8").map(|word: &[u8; 4]| u32::from_be_bytes(*word));
    match kind {
        ParamKind::COOKIE_PRESERVATIVE => word().map(Param::CookiePreservative),
        ParamKind::ECN_CAPABLE => tlv.nothing().map(|()| Param::EcnCapable),
        ParamKind::ZERO_CHECKSUM_ACCEPTABLE => word().map(Param::ZeroChecksumAcceptable),
        ParamKind::SUPPORTED_EXTENSIONS => Ok(Param::SupportedExtensions(tlv.value)),
        ParamKind::FORWARD_TSN_SUPPORTED => tlv.nothing().map(|()| Param::ForwardTsnSupported),
        ParamKind::ADAPTATION_INDICATION => word().map(Param::AdaptationIndication),
        _ => Ok(Param::Padding(tlv.value)),
    }
}
