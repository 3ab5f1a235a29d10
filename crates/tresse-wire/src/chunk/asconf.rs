//! ASCONF (RFC 5061 §4.1.1): requests to add, delete or prefer addresses; and ASCONF-ACK (§4.1.2) with the responses.
//!
//! Owns their layout. The requests and responses inside are parameters: `param/asconf.rs`.

use std::net::IpAddr;

use super::{ChunkKind, head, put_chunk};
use crate::bytes::u32_at;
use crate::error::Fault;
use crate::param::{Params, address};
use crate::tlv::Tlv;

/// Bytes before the address of an ASCONF and before the responses of an ASCONF-ACK.
const HEADER_LEN: usize = 8;

/// An ASCONF chunk.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Asconf<'a> {
    /// Serial number of the ASCONF.
    pub serial: u32,
    /// An address of the association, by which the receiver finds the association if the packet's source is not known yet.
    pub address: IpAddr,
    /// The requests: add, delete, set primary.
    pub params: Params<'a>,
}

impl<'a> Asconf<'a> {
    pub(crate) fn parse(chunk: &'a [u8]) -> Result<Self, Fault> {
        let (head, rest) = head::<HEADER_LEN>(chunk, "at least 16")?;
        let (tlv, taken) = Tlv::split(rest).map_err(|_| Fault::Address)?;
        Ok(Self {
            serial: u32_at::<4, _>(head),
            address: address::from_tlv(tlv)?,
            params: Params::Wire(rest.get(taken..).unwrap_or_default()),
        })
    }

    /// Returns the length field of the chunk.
    pub fn wire_len(&self) -> usize {
        HEADER_LEN + address::wire_len(self.address) + self.params.wire_len()
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        put_chunk(out, ChunkKind::ASCONF, 0, |out| {
            out.extend_from_slice(&self.serial.to_be_bytes());
            // Either address parameter has a length that is a multiple of four, so nothing is padded here.
            address::put(self.address, out);
            self.params.put(out);
        });
    }
}

/// An ASCONF-ACK chunk.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct AsconfAck<'a> {
    /// Serial number of the ASCONF that is answered.
    pub serial: u32,
    /// Error and success indications; a request without an indication has succeeded (RFC 5061 §4.1.2).
    pub params: Params<'a>,
}

impl<'a> AsconfAck<'a> {
    pub(crate) fn parse(chunk: &'a [u8]) -> Result<Self, Fault> {
        let (head, params) = head::<HEADER_LEN>(chunk, "at least 8")?;
        Ok(Self { serial: u32_at::<4, _>(head), params: Params::Wire(params) })
    }

    /// Returns the length field of the chunk.
    pub fn wire_len(&self) -> usize {
        HEADER_LEN + self.params.wire_len()
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        put_chunk(out, ChunkKind::ASCONF_ACK, 0, |out| {
            out.extend_from_slice(&self.serial.to_be_bytes());
            self.params.put(out);
        });
    }
}
