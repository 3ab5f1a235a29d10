//! Requests of the peer to add, remove and prefer its addresses (RFC 5061 §5.2, §5.3): their order, and the answers, which are
//! kept for retransmitted requests.

use std::collections::VecDeque;
use std::net::IpAddr;

use tresse_wire::{Asconf as AsconfChunk, Cause, Causes, Param, Params};

use super::Asconf;
use super::members::{Change, Members};
use crate::interface::addresses::AddressChange;
use crate::interface::event::Event;
use crate::paths::{Path, can_meet, is_usable};

/// Maximum number of kept answers: those to the requests of one packet.
const MOST_KEPT: usize = 8;

/// Length of an Error Cause Indication with a cause that quotes a request with an IPv6 address.
const LONGEST_RESPONSE: usize = 8 + 4 + 28;

/// The peer's requests.
#[derive(Debug)]
pub(crate) struct PeerRequests {
    /// The serial number of the peer's next request.
    expected: u32,
    given: VecDeque<(u32, Vec<u8>)>,
}

/// Status of a request by its serial number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum SerialStatus {
    /// The next request.
    New,
    /// A retransmitted request, with its answer; `None` if the answer is no longer kept.
    Repeated(Option<Vec<u8>>),
    /// Neither of these.
    Stray,
}

impl PeerRequests {
    pub(super) fn new(expected: u32) -> Self {
        PeerRequests { expected, given: VecDeque::new() }
    }

    /// Returns the status of a request; `first` is true for the first ASCONF of a packet.
    pub(crate) fn status(&mut self, serial: u32, first: bool) -> SerialStatus {
        if serial == self.expected {
            if first {
                // RFC 5061 §5.2 E1: the peer has received the answers before it.
                self.given.clear();
            }
            return SerialStatus::New;
        }
        let before = self.expected.wrapping_sub(serial) < 1 << 31;
        if !before {
            return SerialStatus::Stray;
        }
        let kept = self.given.iter().find(|(given, _)| *given == serial);
        SerialStatus::Repeated(kept.map(|(_, body)| body.clone()))
    }

    /// Records the answer to the next request.
    pub(crate) fn give(&mut self, body: Vec<u8>) {
        if self.given.len() >= MOST_KEPT {
            self.given.pop_front();
        }
        self.given.push_back((self.expected, body));
        self.expected = self.expected.wrapping_add(1);
    }
}

/// Response to one request.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(crate) enum Response<'a> {
    Done,
    Failed(Cause<'a>),
}

/// The responses of an ASCONF-ACK that is being built.
#[derive(Debug)]
pub(crate) struct Responses {
    body: Vec<u8>,
    /// Maximum length in bytes.
    most: usize,
    /// A request has failed: from then on success is reported, too (RFC 5061 §5.1 A7).
    failed: bool,
    /// Resources ran out: no further address is added or removed (RFC 5061 §5.3 F11).
    exhausted: bool,
}

impl Responses {
    /// Creates responses of at most `most` bytes, without any response yet.
    pub(crate) fn new(most: usize) -> Self {
        Responses { body: Vec::new(), most, failed: false, exhausted: false }
    }

    /// Returns whether requests to add and remove addresses are to fail for lack of resources.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.exhausted
    }

    /// Returns whether the longest response still fits. If it does not, no further request may be carried out: the peer takes a
    /// request without a response behind a failure as failed.
    pub(crate) fn has_room(&self) -> bool {
        self.body.len().next_multiple_of(4) + LONGEST_RESPONSE <= self.most
    }

    /// Adds the response to the request with this correlation id.
    pub(crate) fn push(&mut self, correlation: u32, response: Response<'_>) {
        match response {
            Response::Done if !self.failed => {}
            Response::Done => self.write(&Param::SuccessIndication { correlation }),
            Response::Failed(cause) => {
                self.failed = true;
                self.exhausted |= matches!(cause, Cause::ResourceShortage(_));
                self.write(&Param::ErrorIndication { correlation, causes: Causes::Values(&[cause]) });
            }
        }
    }

    /// Returns the responses, encoded.
    pub(crate) fn into_body(self) -> Vec<u8> {
        self.body
    }

    fn write(&mut self, param: &Param<'_>) {
        // Padding is inserted before the next parameter: the length of the chunk excludes that of the last one (RFC 9260 §3.2).
        self.body.resize(self.body.len().next_multiple_of(4), 0);
        // It quotes at most one request of the peer, which fitted a chunk.
        param.write(&mut self.body).ok();
    }
}

/// Addresses of the packet of a request.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Source {
    pub(crate) local: IpAddr,
    pub(crate) remote: IpAddr,
    pub(crate) encapsulation_port: Option<u16>,
}

/// An address of the peer that was added or removed.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum PeerChange {
    Added(IpAddr),
    Removed(IpAddr),
}

/// The answer to an ASCONF chunk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Granted {
    /// The responses, encoded.
    pub(crate) body: Vec<u8>,
    /// True if the request was not answered before.
    pub(crate) is_new: bool,
}

/// Result of a request.
enum RequestResult {
    Done,
    /// No slot for another path is free, or this was so for an earlier request of the chunk (RFC 5061 §5.3 F9, F11).
    NoResources,
    LastAddress,
    SourceAddress,
    /// The address cannot be used.
    Unresolvable,
}

impl RequestResult {
    /// Returns the response for this result; `request` is the parameter of the request.
    fn response<'a>(&self, request: &'a [u8]) -> Response<'a> {
        match self {
            RequestResult::Done => Response::Done,
            RequestResult::NoResources => Response::Failed(Cause::ResourceShortage(request)),
            RequestResult::LastAddress => Response::Failed(Cause::DeleteLastAddress(request)),
            RequestResult::SourceAddress => Response::Failed(Cause::DeleteSourceAddress(request)),
            // The address parameter follows the header and the correlation id.
            RequestResult::Unresolvable => {
                Response::Failed(Cause::UnresolvableAddress(request.get(8..).unwrap_or_default()))
            }
        }
    }
}

impl Asconf {
    /// Processes an ASCONF; `first` is true for the first one of its packet. Returns the answer; `None` if the request is an old
    /// one whose answer is no longer kept, or has a wrong serial number.
    pub(crate) fn on_request(
        &mut self,
        members: &mut Members<'_>,
        source: Source,
        chunk: &AsconfChunk<'_>,
        first: bool,
    ) -> Option<Granted> {
        match self.peer.status(chunk.serial, first) {
            SerialStatus::New => {
                let body = self.grant(members, source, &chunk.params);
                self.peer.give(body.clone());
                Some(Granted { body, is_new: true })
            }
            SerialStatus::Repeated(body) => body.map(|body| Granted { body, is_new: false }),
            SerialStatus::Stray => None,
        }
    }

    /// Returns the next address of the peer that was added or removed.
    pub(crate) fn pop_peer_change(&mut self) -> Option<PeerChange> {
        self.peer_changes.pop_front()
    }

    /// Carries out the requests of a chunk in order; returns the responses.
    fn grant(&mut self, members: &mut Members<'_>, source: Source, params: &Params<'_>) -> Vec<u8> {
        // The responses must fit a packet of their own on any path (RFC 5061 §5.1.1 C5).
        let mut responses = Responses::new(members.paths.smallest_payload().saturating_sub(OVERHEAD));
        let mut request = Vec::new();
        for param in params.iter() {
            let Ok(param) = param else {
                members.note(Change::DiscardMalformed);
                break;
            };
            if !responses.has_room() {
                break;
            }
            let shut = responses.is_exhausted();
            let (correlation, verdict) = match param {
                Param::AddAddress { correlation, .. } | Param::DeleteAddress { correlation, .. } if shut => {
                    (correlation, RequestResult::NoResources)
                }
                Param::AddAddress { correlation, address } => {
                    (correlation, self.grant_added(members, source, address))
                }
                Param::DeleteAddress { correlation, address } => {
                    (correlation, self.grant_removed(members, source, address))
                }
                Param::SetPrimary { correlation, address } => {
                    (correlation, grant_primary(members, source, address))
                }
                Param::Unrecognised(unknown) => {
                    let action = unknown.kind.unrecognised_action();
                    if action.report {
                        // As in all requests, the correlation id follows the header.
                        let id = unknown.whole.get(4..8).and_then(|id| id.try_into().ok());
                        let cause = Cause::UnrecognisedParameters(shortened(unknown.whole));
                        responses.push(id.map_or(0, u32::from_be_bytes), Response::Failed(cause));
                    }
                    if action.stop {
                        break;
                    }
                    continue;
                }
                // RFC 5061 §4.2: parameters that have no place in ASCONF are ignored.
                _ => continue,
            };
            request.clear();
            // It was in a chunk, so it is not too long for its length field.
            param.write(&mut request).ok();
            responses.push(correlation, verdict.response(&request));
        }
        responses.into_body()
    }

    fn grant_added(&mut self, members: &mut Members<'_>, source: Source, wanted: IpAddr) -> RequestResult {
        let address = named(wanted, source.remote);
        if !is_usable(address) {
            return RequestResult::Unresolvable;
        }
        if members.paths.find_remote(address).is_some() {
            return RequestResult::Done;
        }
        if !can_meet(members.paths.local_addresses(), std::iter::once(address)) {
            return RequestResult::Unresolvable;
        }
        let came_to = (address == source.remote).then_some((source.local, source.encapsulation_port));
        let mut joined = members.join_remote(address, came_to);
        // A NAT has given the peer another address, and the peer cannot remove the one before, which it does not know.
        if !joined
            && wanted.is_unspecified()
            && let Some(unused) = members.most_failed_remote()
        {
            self.remove_remote(members, unused);
            joined = members.join_remote(address, came_to);
        }
        if !joined {
            return RequestResult::NoResources;
        }
        self.peer_changes.push_back(PeerChange::Added(address));
        members.note(Change::Tell(Event::PeerAddress { address, change: AddressChange::Add }));
        RequestResult::Done
    }

    fn grant_removed(&mut self, members: &mut Members<'_>, source: Source, address: IpAddr) -> RequestResult {
        let goes = |&other: &IpAddr| {
            if address.is_unspecified() { other != source.remote } else { other == address }
        };
        let paths = &*members.paths;
        let removed: Vec<IpAddr> = paths.remote_addresses().filter(goes).collect();
        let rest = || paths.remote_addresses().filter(|other| !goes(other));
        // At least one address of the peer must remain that this side can reach from an own address. Own addresses that the peer
        // has been asked to add or to remove, and has not answered for, do not count.
        let stays = |&own: &IpAddr| !self.asks_to_remove(own);
        let agreed = || paths.joined().map(Path::local).filter(stays);
        if !removed.is_empty() && !can_meet(agreed(), rest()) {
            return RequestResult::LastAddress;
        }
        if address == source.remote {
            return RequestResult::SourceAddress;
        }
        for address in removed {
            self.remove_remote(members, address);
        }
        RequestResult::Done
    }

    fn remove_remote(&mut self, members: &mut Members<'_>, address: IpAddr) {
        members.drop_remote(address);
        self.peer_changes.push_back(PeerChange::Removed(address));
        members.note(Change::Tell(Event::PeerAddress { address, change: AddressChange::Remove }));
    }
}

/// Advice only: the path becomes the primary one as if the application had chosen it (RFC 5061 §5.4).
fn grant_primary(members: &mut Members<'_>, source: Source, address: IpAddr) -> RequestResult {
    let address = named(address, source.remote);
    let Some(path) = members.paths.find_remote(address) else { return RequestResult::Unresolvable };
    members.paths.set_primary(path);
    members.note(Change::Tell(Event::PeerAddress { address, change: AddressChange::Prefer }));
    RequestResult::Done
}

/// Bytes of AUTH with SHA-256 in a packet. The headers of DATA and of ASCONF-ACK are about as long as each other.
const OVERHEAD: usize = 40;

/// Maximum number of bytes of an unrecognised request that are reported.
const MOST_REPORTED: usize = 28;

fn shortened(whole: &[u8]) -> &[u8] {
    whole.get(..MOST_REPORTED).unwrap_or(whole)
}

/// An unspecified address stands for the source of the packet (RFC 5061 §4.2).
fn named(address: IpAddr, source: IpAddr) -> IpAddr {
    if address.is_unspecified() { source } else { address }
}
