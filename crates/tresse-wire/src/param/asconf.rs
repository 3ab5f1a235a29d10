//! Parameters of ASCONF and ASCONF-ACK (RFC 5061 §4.2.1 to §4.2.5).
//!
//! Owns their layout: a correlation id, then an address parameter or error causes.

use super::{Param, ParamKind, address};
use crate::cause::Causes;
use crate::error::Fault;
use crate::tlv::Tlv;

pub(super) fn parse(kind: ParamKind, tlv: Tlv<'_>) -> Result<Param<'_>, Fault> {
    if kind == ParamKind::SUCCESS_INDICATION {
        let correlation = u32::from_be_bytes(*tlv.exactly("8")?);
        return Ok(Param::SuccessIndication { correlation });
    }
    let (correlation, rest) = tlv.at_least("at least 8")?;
    let correlation = u32::from_be_bytes(*correlation);
    match kind {
        ParamKind::ADD_ADDRESS => Ok(Param::AddAddress { correlation, address: address::nested(rest)? }),
        ParamKind::DELETE_ADDRESS => {
            Ok(Param::DeleteAddress { correlation, address: address::nested(rest)? })
        }
        ParamKind::SET_PRIMARY => Ok(Param::SetPrimary { correlation, address: address::nested(rest)? }),
        _ => Ok(Param::ErrorIndication { correlation, causes: Causes::Wire(rest) }),
    }
}

/// Appends the value of a parameter of this file; appends nothing for any other parameter.
pub(super) fn put_value(param: &Param<'_>, out: &mut Vec<u8>) {
    match param {
        Param::AddAddress { correlation, address }
        | Param::DeleteAddress { correlation, address }
        | Param::SetPrimary { correlation, address } => {
            out.extend_from_slice(&correlation.to_be_bytes());
            address::put(*address, out);
        }
        Param::ErrorIndication { correlation, causes } => {
            out.extend_from_slice(&correlation.to_be_bytes());
            causes.put(out);
        }
        Param::SuccessIndication { correlation } => out.extend_from_slice(&correlation.to_be_bytes()),
        _ => {}
    }
}
