//! Requests of this side: those that wait, and the one ASCONF chunk that may be in flight (RFC 5061 §5.1, §5.1.1).

use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::Duration;

use tresse_policy::{Instant, PathId};
use tresse_wire::{Param, Params};

use crate::interface::addresses::{AddressChange, AddressOutcome};

/// Maximum number of requests in one chunk. With IPv6 addresses and AUTH they fit the smallest packet: 576 bytes over IPv6 in
/// UDP.
const MOST_TOGETHER: usize = 15;

/// Maximum number of waiting requests.
const MOST_WAITING: usize = 64;

/// A request about one address.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct AddressRequest {
    pub(crate) change: AddressChange,
    pub(crate) address: IpAddr,
}

/// Requests of this side.
#[derive(Debug)]
pub(crate) struct Requests {
    /// The serial number of the next chunk.
    next: u32,
    /// The correlation id of the next request.
    next_id: u32,
    waiting: VecDeque<AddressRequest>,
    /// A path on which the peer is to be asked to add the source address of the packet.
    unknown_source: Option<PathId>,
    flight: Option<Flight>,
    /// The peer reported that it does not support requests to add and remove addresses, or to prefer them (RFC 5061 §5.1 A9, §5.3
    /// F3a, F3b).
    change_unsupported: bool,
    preference_unsupported: bool,
}

/// A chunk that was sent and is not acknowledged. It is never changed, however often it is sent (§5.1 B4).
#[derive(Debug)]
struct Flight {
    serial: u32,
    /// An address that the peer knows.
    lookup: IpAddr,
    first_id: u32,
    requests: Vec<AddressRequest>,
    /// The requests, encoded.
    body: Vec<u8>,
    path: PathId,
    /// The expiration of T4.
    deadline: Instant,
    /// Number of expirations of T4 during which the peer answered other chunks.
    ignored: u32,
}

/// An ASCONF-ACK that does not acknowledge the chunk in flight.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum StrayAck {
    /// It acknowledges an earlier chunk.
    Old,
    /// It acknowledges a chunk that was never sent: the association must end (RFC 5061 §5.3 F0).
    Illegal,
}

impl Requests {
    pub(super) fn new(next: u32) -> Self {
        Requests {
            next,
            next_id: 0,
            waiting: VecDeque::new(),
            unknown_source: None,
            flight: None,
            change_unsupported: false,
            preference_unsupported: false,
        }
    }

    /// Returns whether the peer supports such requests, as far as known.
    pub(crate) fn understands(&self, change: AddressChange) -> bool {
        match change {
            AddressChange::Add | AddressChange::Remove => !self.change_unsupported,
            AddressChange::Prefer => !self.preference_unsupported,
        }
    }

    /// Returns whether one more request can be queued.
    pub(crate) fn has_room(&self) -> bool {
        self.waiting.len() < MOST_WAITING
    }

    /// Queues a request.
    pub(crate) fn push(&mut self, request: AddressRequest) {
        self.waiting.push_back(request);
    }

    /// Queues a request that the peer add the source address of the packet, which is sent on `path` (RFC 5061 §4.2). Such a
    /// request is sent when no other request waits, one at a time.
    pub(crate) fn push_source(&mut self, path: PathId) {
        self.unknown_source.get_or_insert(path);
    }

    /// Returns the path of such a request, if it is the next one to be sent.
    pub(crate) fn source_path(&self) -> Option<PathId> {
        self.unknown_source.filter(|_| self.flight.is_none() && self.waiting.is_empty())
    }

    /// Returns whether the chunk in flight is such a request.
    pub(crate) fn asks_for_source(&self) -> bool {
        self.in_flight().first().is_some_and(|request| request.address.is_unspecified())
    }

    /// Builds a chunk from such a request; `any` is the unspecified address of the path's family. The peer finds the association
    /// by the verification tag, so the chunk needs no address that the peer knows.
    pub(crate) fn begin_source(&mut self, any: IpAddr) -> bool {
        if self.source_path().is_none() {
            return false;
        }
        self.unknown_source = None;
        self.waiting.push_back(AddressRequest { change: AddressChange::Add, address: any });
        self.begin(any)
    }

    /// Returns all requests that are not answered.
    pub(crate) fn open(&self) -> impl Iterator<Item = AddressRequest> {
        self.flight.iter().flat_map(|flight| &flight.requests).chain(&self.waiting).copied()
    }

    /// Returns the requests of the chunk in flight.
    pub(crate) fn in_flight(&self) -> &[AddressRequest] {
        self.flight.as_ref().map_or(&[], |flight| &flight.requests)
    }

    /// Builds a chunk from the waiting requests, unless one is in flight; `lookup` is an address that the peer knows. Returns
    /// whether there is a chunk to send, which [`Self::chunk`] returns.
    pub(crate) fn begin(&mut self, lookup: IpAddr) -> bool {
        if self.flight.is_some() || self.waiting.is_empty() {
            return false;
        }
        let count = self.waiting.len().min(MOST_TOGETHER);
        let requests: Vec<AddressRequest> = self.waiting.drain(..count).collect();
        let first_id = self.next_id;
        let ids = (0..count as u32).map(|offset| first_id.wrapping_add(offset));
        let params: Vec<Param<'_>> = ids.zip(&requests).map(|(id, request)| request.param(id)).collect();
        let mut body = Vec::new();
        // It fits: the number of parameters is bounded, and they are short.
        Params::Values(&params).write(&mut body).ok();
        self.flight = Some(Flight {
            serial: self.next,
            lookup,
            first_id,
            requests,
            body,
            path: PathId::default(),
            deadline: Instant::FAR_FUTURE,
            ignored: 0,
        });
        self.next = self.next.wrapping_add(1);
        self.next_id = first_id.wrapping_add(count as u32);
        true
    }

    /// Returns the chunk in flight: its serial number, its address parameter, and its requests.
    pub(crate) fn chunk(&self) -> Option<(u32, IpAddr, &[u8])> {
        self.flight.as_ref().map(|flight| (flight.serial, flight.lookup, &flight.body[..]))
    }

    /// Returns the path on which the chunk in flight was sent last.
    pub(crate) fn path(&self) -> Option<PathId> {
        self.flight.as_ref().map(|flight| flight.path)
    }

    /// Records that the chunk in flight is sent on `path`, and starts T4 with `rto`.
    pub(crate) fn on_sent(&mut self, now: Instant, path: PathId, rto: Duration) {
        if let Some(flight) = &mut self.flight {
            flight.path = path;
            flight.deadline = now + rto;
        }
    }

    /// Returns the time at which T4 expires.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.flight.as_ref().map(|flight| flight.deadline)
    }

    /// Returns the path on which the chunk in flight was sent, if T4 has expired, and stops T4.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<PathId> {
        let flight = self.flight.as_mut().filter(|flight| flight.deadline <= now)?;
        flight.deadline = Instant::FAR_FUTURE;
        Some(flight.path)
    }

    /// Counts an expiration of T4 during which the peer answered other chunks. Returns their number for the chunk in flight.
    pub(crate) fn on_ignored(&mut self) -> u32 {
        let Some(flight) = &mut self.flight else { return 0 };
        flight.ignored = flight.ignored.saturating_add(1);
        flight.ignored
    }

    /// Processes an ASCONF-ACK: returns the result of each request of the chunk in flight (RFC 5061 §5.1 A7, A8).
    ///
    /// # Errors
    /// It acknowledges another chunk.
    pub(crate) fn on_ack(
        &mut self,
        serial: u32,
        params: &Params<'_>,
    ) -> Result<Vec<(AddressRequest, AddressOutcome)>, StrayAck> {
        let Some(flight) = self.flight.take_if(|flight| flight.serial == serial) else {
            let ahead = serial.wrapping_sub(self.next) < 1 << 31;
            return Err(if ahead { StrayAck::Illegal } else { StrayAck::Old });
        };
        let mut outcomes = vec![None; flight.requests.len()];
        for param in params.iter().flatten() {
            let (id, outcome) = match param {
                Param::SuccessIndication { correlation } => (correlation, AddressOutcome::Done),
                Param::ErrorIndication { correlation, causes } => {
                    (correlation, AddressOutcome::of_causes(&causes))
                }
                _ => continue,
            };
            if let Some(known) = outcomes.get_mut(id.wrapping_sub(flight.first_id) as usize) {
                known.get_or_insert(outcome);
            }
        }
        // A request without a response succeeded if it precedes the first failed one, and failed if it follows it.
        let mut silence = AddressOutcome::Done;
        let told = outcomes.into_iter().map(|outcome| {
            let outcome = outcome.unwrap_or(silence);
            if outcome != AddressOutcome::Done {
                silence = AddressOutcome::Refused;
            }
            outcome
        });
        let outcomes: Vec<_> = flight.requests.into_iter().zip(told).collect();
        for (request, outcome) in &outcomes {
            let unsupported = *outcome == AddressOutcome::NotSupported;
            match request.change {
                AddressChange::Add | AddressChange::Remove => self.change_unsupported |= unsupported,
                AddressChange::Prefer => self.preference_unsupported |= unsupported,
            }
        }
        Ok(outcomes)
    }

    /// Gives up all requests, and accepts no further ones: the peer does not support ASCONF. Returns the requests that were given
    /// up.
    pub(crate) fn on_unsupported(&mut self) -> Vec<AddressRequest> {
        let given_up = self.open().collect();
        (self.change_unsupported, self.preference_unsupported) = (true, true);
        self.flight = None;
        self.unknown_source = None;
        self.waiting.clear();
        given_up
    }
}

impl AddressRequest {
    fn param(self, correlation: u32) -> Param<'static> {
        let address = self.address;
        match self.change {
            AddressChange::Add => Param::AddAddress { correlation, address },
            AddressChange::Remove => Param::DeleteAddress { correlation, address },
            AddressChange::Prefer => Param::SetPrimary { correlation, address },
        }
    }
}
