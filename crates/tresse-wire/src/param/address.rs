//! IPv4 and IPv6 address parameters, and Supported Address Types (RFC 9260 §3.3.2.1).
//!
//! Owns the layout of an address, also where it is nested in another parameter. Accepts every address: the core decides
//! which ones an association may use.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Param, ParamKind};
use crate::error::Fault;
use crate::list::{List, ListItem};
use crate::tlv::{TLV_HEADER_LEN, Tlv, put_tlv};

/// Returns the address in a parameter whose type has been checked.
pub(super) fn parse(tlv: Tlv<'_>) -> Result<IpAddr, Fault> {
    match ParamKind(tlv.kind) {
        ParamKind::IPV4_ADDRESS => {
            tlv.exactly("8").map(|octets: &[u8; 4]| IpAddr::V4(Ipv4Addr::from(*octets)))
        }
        ParamKind::IPV6_ADDRESS => {
            tlv.exactly("20").map(|octets: &[u8; 16]| IpAddr::V6(Ipv6Addr::from(*octets)))
        }
        _ => Err(Fault::Address),
    }
}

/// Returns the address in `tlv`, which must be an address parameter.
pub(crate) fn from_tlv(tlv: Tlv<'_>) -> Result<IpAddr, Fault> {
    parse(tlv).map_err(|_| Fault::Address)
}

/// Returns the address in `bytes`, which must be exactly one address parameter.
pub(super) fn nested(bytes: &[u8]) -> Result<IpAddr, Fault> {
    match Tlv::split(bytes) {
        Ok((tlv, taken)) if taken == bytes.len() => from_tlv(tlv),
        _ => Err(Fault::Address),
    }
}

pub(super) fn parse_types(tlv: Tlv<'_>) -> Result<Param<'_>, Fault> {
    tlv.whole_items(tlv.value, <u16 as ListItem>::LEN, "4 and 2 for each type")
        .map(|types| Param::SupportedAddressTypes(List::Wire(types)))
}

pub(crate) fn kind(address: IpAddr) -> ParamKind {
    if address.is_ipv4() { ParamKind::IPV4_ADDRESS } else { ParamKind::IPV6_ADDRESS }
}

pub(crate) fn value_len(address: IpAddr) -> usize {
    if address.is_ipv4() { 4 } else { 16 }
}

/// Returns the length of the whole parameter, a multiple of four for both families.
pub(crate) fn wire_len(address: IpAddr) -> usize {
    TLV_HEADER_LEN + value_len(address)
}

/// Appends the whole parameter, header included.
pub(crate) fn put(address: IpAddr, out: &mut Vec<u8>) {
    put_tlv(out, kind(address).0, |out| put_value(address, out));
}

pub(crate) fn put_value(address: IpAddr, out: &mut Vec<u8>) {
    match address {
        IpAddr::V4(address) => out.extend_from_slice(&address.octets()),
        IpAddr::V6(address) => out.extend_from_slice(&address.octets()),
    }
}
