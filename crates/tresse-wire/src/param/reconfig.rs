//! Parameters of RE-CONFIG (RFC 6525 §4).
//!
//! Owns the layout of the six parameters. The core decides which requests are allowed.

use super::{Param, ParamKind};
use crate::bytes::{u16_at, u32_at};
use crate::error::Fault;
use crate::list::{List, ListItem};
use crate::serial::Tsn;
use crate::tlv::Tlv;

pub(super) fn parse(kind: ParamKind, tlv: Tlv<'_>) -> Result<Param<'_>, Fault> {
    match kind {
        ParamKind::OUTGOING_RESET => {
            const EXPECTED: &str = "16 and 2 for each stream";
            let (head, streams) = tlv.at_least::<12>(EXPECTED)?;
            Ok(Param::OutgoingReset {
                request: u32_at::<0, _>(head),
                response: u32_at::<4, _>(head),
                last_tsn: Tsn(u32_at::<8, _>(head)),
                streams: List::Wire(tlv.whole_items(streams, u16::LEN, EXPECTED)?),
            })
        }
        ParamKind::INCOMING_RESET => {
            const EXPECTED: &str = "8 and 2 for each stream";
            let (head, streams) = tlv.at_least::<4>(EXPECTED)?;
            Ok(Param::IncomingReset {
                request: u32_at::<0, _>(head),
                streams: List::Wire(tlv.whole_items(streams, u16::LEN, EXPECTED)?),
            })
        }
        ParamKind::SSN_TSN_RESET => {
            Ok(Param::SsnTsnReset { request: u32_at::<0, _>(tlv.exactly::<4>("8")?) })
        }
        ParamKind::RECONFIG_RESPONSE => parse_response(tlv),
        ParamKind::ADD_OUTGOING_STREAMS => {
            let (request, count) = parse_add(tlv)?;
            Ok(Param::AddOutgoingStreams { request, count })
        }
        _ => {
            let (request, count) = parse_add(tlv)?;
            Ok(Param::AddIncomingStreams { request, count })
        }
    }
}

fn parse_response(tlv: Tlv<'_>) -> Result<Param<'_>, Fault> {
    const EXPECTED: &str = "12 or 20";
    let (head, rest) = tlv.at_least::<8>(EXPECTED)?;
    let next_tsns = if rest.is_empty() {
        None
    } else {
        let body = tlv.exactly::<16>(EXPECTED)?;
        Some((Tsn(u32_at::<8, _>(body)), Tsn(u32_at::<12, _>(body))))
    };
    Ok(Param::ReconfigResponse { response: u32_at::<0, _>(head), result: u32_at::<4, _>(head), next_tsns })
}

fn parse_add(tlv: Tlv<'_>) -> Result<(u32, u16), Fault> {
    let body = tlv.exactly::<8>("12")?;
    Ok((u32_at::<0, _>(body), u16_at::<4, _>(body)))
}

/// Appends the value of a parameter of this file; appends nothing for any other parameter.
pub(super) fn put_value(param: &Param<'_>, out: &mut Vec<u8>) {
    match param {
        Param::OutgoingReset { request, response, last_tsn, streams } => {
            out.extend_from_slice(&request.to_be_bytes());
            out.extend_from_slice(&response.to_be_bytes());
            out.extend_from_slice(&last_tsn.0.to_be_bytes());
            streams.put(out);
        }
        Param::IncomingReset { request, streams } => {
            out.extend_from_slice(&request.to_be_bytes());
            streams.put(out);
        }
        Param::SsnTsnReset { request } => out.extend_from_slice(&request.to_be_bytes()),
        Param::ReconfigResponse { response, result, next_tsns } => {
            out.extend_from_slice(&response.to_be_bytes());
            out.extend_from_slice(&result.to_be_bytes());
            if let Some((sender, receiver)) = next_tsns {
                out.extend_from_slice(&sender.0.to_be_bytes());
                out.extend_from_slice(&receiver.0.to_be_bytes());
            }
        }
        Param::AddOutgoingStreams { request, count } | Param::AddIncomingStreams { request, count } => {
            out.extend_from_slice(&request.to_be_bytes());
            out.extend_from_slice(&count.to_be_bytes());
            out.extend_from_slice(&[0, 0]);
        }
        _ => {}
    }
}
