//! Types for changes of the addresses of an association while it runs (RFC 5061): requests and their
//! outcomes.

use tresse_wire::{Cause, Causes};

/// Change of an address.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum AddressChange {
    /// The address is added to the association.
    Add,
    /// The address is removed from the association.
    Remove,
    /// The address becomes the primary one, to which the other side sends by default (Set Primary Address, RFC 5061
    /// §4.2.4).
    Prefer,
}

/// Answer of the peer to a request.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum AddressOutcome {
    /// The peer has carried out the request.
    Done,
    /// Refused: the peer would have no address left to send to.
    LastAddress,
    /// Refused: the request came from the address that it was to remove.
    SourceAddress,
    /// Refused because the peer lacks resources, such as paths.
    NoResources,
    /// Refused by the peer's policy.
    NotAuthorised,
    /// The peer does not support such requests. Or it answered other chunks but not this request, however often it was
    /// retransmitted. No further request is sent.
    NotSupported,
    /// Refused for another reason, or without a reason.
    Refused,
}

impl AddressOutcome {
    /// Returns the outcome of a request that failed with these causes (RFC 5061 §4.3).
    pub(crate) fn of_causes(causes: &Causes<'_>) -> Self {
        match causes.iter().flatten().next() {
            Some(Cause::DeleteLastAddress(_)) => AddressOutcome::LastAddress,
            Some(Cause::DeleteSourceAddress(_)) => AddressOutcome::SourceAddress,
            Some(Cause::ResourceShortage(_) | Cause::OutOfResource) => AddressOutcome::NoResources,
            Some(Cause::NoAuthorisation(_)) => AddressOutcome::NotAuthorised,
            Some(Cause::UnrecognisedParameters(_)) => AddressOutcome::NotSupported,
            _ => AddressOutcome::Refused,
        }
    }
}
