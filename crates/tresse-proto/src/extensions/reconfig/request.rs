//! RE-CONFIG chunk of the peer: requests and responses, in a combination that RFC 6525 allows.

use tresse_wire::{Param, Params, Tsn};

use super::grant::Response;
use crate::interface::reconfiguration::Streams;

/// A request of the peer; "outgoing" and "incoming" are from the peer's view.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Request {
    /// The peer resets streams that it sends on, once `last_tsn` has arrived (RFC 6525 §4.1).
    ResetOutgoing {
        /// The sequence number of the request that it answers, if it answers one.
        response: u32,
        last_tsn: Tsn,
        streams: Streams,
    },
    /// This side is to reset streams that it sends on (RFC 6525 §4.2).
    ResetIncoming { streams: Streams },
    /// The association is to be reset (RFC 6525 §4.3).
    ResetAssociation,
    /// The peer is to send on more streams (RFC 6525 §4.5).
    AddOutgoing(u16),
    /// This side is to send on more streams (RFC 6525 §4.6).
    AddIncoming(u16),
}

/// A parameter of a RE-CONFIG chunk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Requested {
    Request { sequence: u32, request: Request },
    Response(Response),
}

/// Reads a chunk; `None` if its parameters are malformed or must not be combined (RFC 6525 §3.1). Parameters behind one of
/// unknown type are skipped or read as the two highest bits of the type require (RFC 9260 §3.2.1).
pub(crate) fn read(params: &Params<'_>) -> Option<Vec<Requested>> {
    let mut read = Vec::new();
    for param in params.iter() {
        let param = param.ok()?;
        if let Param::Unrecognised(unknown) = param {
            if unknown.kind.unrecognised_action().stop {
                break;
            }
            continue;
        }
        if read.len() == 2 {
            return None;
        }
        read.push(requested(&param)?);
    }
    let legal = match &read[..] {
        [_] => true,
        [first, second] => may_be_combined(first, second) || may_be_combined(second, first),
        _ => false,
    };
    legal.then_some(read)
}

fn requested(param: &Param<'_>) -> Option<Requested> {
    let (sequence, request) = match *param {
        Param::OutgoingReset { request, response, last_tsn, streams } => {
            let streams = Streams::of_numbers(streams.iter());
            (request, Request::ResetOutgoing { response, last_tsn, streams })
        }
        Param::IncomingReset { request, streams } => {
            (request, Request::ResetIncoming { streams: Streams::of_numbers(streams.iter()) })
        }
        Param::SsnTsnReset { request } => (request, Request::ResetAssociation),
        Param::AddOutgoingStreams { request, count } => (request, Request::AddOutgoing(count)),
        Param::AddIncomingStreams { request, count } => (request, Request::AddIncoming(count)),
        Param::ReconfigResponse { response, result, next_tsns } => {
            return Some(Requested::Response(Response { sequence: response, result, next_tsns }));
        }
        _ => return None,
    };
    Some(Requested::Request { sequence, request })
}

fn may_be_combined(one: &Requested, other: &Requested) -> bool {
    use Request::{AddIncoming, AddOutgoing, ResetIncoming, ResetOutgoing};
    match (one, other) {
        (Requested::Response(_), Requested::Response(_)) => true,
        (Requested::Response(_), Requested::Request { request, .. }) => {
            matches!(request, ResetOutgoing { .. })
        }
        (Requested::Request { request: one, .. }, Requested::Request { request: other, .. }) => matches!(
            (one, other),
            (ResetOutgoing { .. }, ResetIncoming { .. }) | (AddOutgoing(_), AddIncoming(_))
        ),
        (Requested::Request { .. }, Requested::Response(_)) => false,
    }
}
