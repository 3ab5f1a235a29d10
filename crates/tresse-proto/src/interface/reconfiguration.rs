//! Types for stream reconfiguration (RFC 6525): streams, directions, requests and their outcomes.

use std::collections::BTreeSet;

use tresse_wire::StreamId;

/// Some of the streams of one direction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Streams {
    /// All streams of the direction.
    All,
    /// These streams; at least one.
    These(BTreeSet<StreamId>),
}

impl Streams {
    /// Returns whether these streams contain `stream`.
    pub fn contains(&self, stream: StreamId) -> bool {
        match self {
            Streams::All => true,
            Streams::These(streams) => streams.contains(&stream),
        }
    }

    /// Returns whether these streams contain all of `others`.
    pub(crate) fn contain(&self, others: &Streams) -> bool {
        match (self, others) {
            (Streams::All, _) => true,
            (Streams::These(_), Streams::All) => false,
            (Streams::These(streams), Streams::These(others)) => others.is_subset(streams),
        }
    }

    /// Returns the highest stream of `These`; `None` for `All`.
    pub(crate) fn highest_named(&self) -> Option<StreamId> {
        match self {
            Streams::All => None,
            Streams::These(streams) => streams.last().copied(),
        }
    }

    /// Returns the stream numbers for a request: an empty list means all (RFC 6525 §4.1).
    pub(crate) fn numbers(&self) -> Vec<u16> {
        match self {
            Streams::All => Vec::new(),
            Streams::These(streams) => streams.iter().map(|stream| stream.0).collect(),
        }
    }

    /// Returns the streams for the stream numbers in a request.
    pub(crate) fn of_numbers(numbers: impl Iterator<Item = u16>) -> Self {
        let streams: BTreeSet<StreamId> = numbers.map(StreamId).collect();
        if streams.is_empty() { Streams::All } else { Streams::These(streams) }
    }
}

impl From<StreamId> for Streams {
    fn from(stream: StreamId) -> Self {
        Streams::These([stream].into())
    }
}

/// Direction of the streams of a reset, from the view of the requester.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Streams on which this side sends.
    Outbound,
    /// Streams on which the peer sends.
    Inbound,
    /// The streams with these numbers in both directions.
    Both,
}

/// A request to the peer (RFC 6525 §4).
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Reconfiguration {
    /// Reset of streams on which this side sends: they continue with SSN 0.
    ResetOutbound(Streams),
    /// Reset of streams on which the peer sends: they continue with SSN 0.
    ResetInbound(Streams),
    /// Reset of the association: all streams of both directions continue with SSN 0, and both sides with new TSNs.
    ResetAssociation,
    /// Addition of this many streams on which this side sends.
    AddOutbound(u16),
    /// Addition of this many streams on which the peer sends.
    AddInbound(u16),
}

/// Outcome of a request.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ReconfigurationOutcome {
    /// The peer has carried out the request, or there was nothing to do.
    Performed,
    /// The peer denied the request; nothing has changed.
    Denied,
    /// The peer could not carry out the request, for the given reason; nothing has changed.
    Failed(&'static str),
}
