//! RANDOM, CHUNKS and HMAC-ALGO (RFC 4895 §3): the negotiation of AUTH keys, authenticated chunks and HMACs.
//!
//! Owns their layout.

use super::{Param, ParamKind};
use crate::error::Fault;
use crate::list::{List, ListItem};
use crate::tlv::Tlv;

pub(super) fn parse(kind: ParamKind, tlv: Tlv<'_>) -> Result<Param<'_>, Fault> {
    match kind {
        ParamKind::RANDOM => Ok(Param::Random(tlv.value)),
        ParamKind::CHUNKS => Ok(Param::Chunks(tlv.value)),
        _ => tlv
            .whole_items(tlv.value, <u16 as ListItem>::LEN, "4 and 2 for each algorithm")
            .map(|ids| Param::HmacAlgorithms(List::Wire(ids))),
    }
}
