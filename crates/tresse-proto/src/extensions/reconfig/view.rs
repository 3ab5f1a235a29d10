//! The view of the association for stream reconfiguration, and the actions that it returns.

use std::time::Duration;

use tresse_wire::{StreamId, Tsn};

use crate::config::AssociationConfig;
use crate::interface::event::Event;
use crate::interface::reconfiguration::Streams;
use tresse_policy::Instant;
use tresse_policy::PathId;

/// State of the association.
pub(crate) struct View<'a> {
    pub(crate) now: Instant,
    pub(crate) config: &'a AssociationConfig,
    pub(crate) sending: SendState,
    pub(crate) receiving: ReceiveState,
    /// The path for control chunks, and its RTO.
    pub(crate) path: PathId,
    pub(crate) rto: Duration,
    /// Returns whether all data queued on these streams has been sent.
    pub(crate) has_sent_all_of: &'a dyn Fn(&Streams) -> bool,
    /// Returns whether this stream has sent no message since its last reset.
    pub(crate) is_at_start: &'a dyn Fn(StreamId) -> bool,
    /// Returns the index of a TSN of the peer; `None` if the TSN is too far from the received ones.
    pub(crate) index_near: &'a dyn Fn(Tsn) -> Option<u64>,
}

/// State of this side's user data.
#[derive(Copy, Clone, Debug)]
pub(crate) struct SendState {
    /// True if the state of the association allows user data.
    pub(crate) is_open: bool,
    pub(crate) streams: u16,
    pub(crate) progress: Progress,
    /// The TSN that was assigned last.
    pub(crate) last_tsn: Tsn,
}

/// Progress of sending.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Progress {
    /// True if all data was sent that was queued on held streams before they were held.
    pub(crate) drained: bool,
    /// The index that was assigned last.
    pub(crate) highest: u64,
    /// The index up to which all data is acknowledged.
    pub(crate) cumulative: u64,
}

/// State of the peer's user data.
#[derive(Copy, Clone, Debug)]
pub(crate) struct ReceiveState {
    pub(crate) streams: u16,
    /// The index and the TSN up to which all data has arrived.
    pub(crate) cumulative: u64,
    pub(crate) cumulative_tsn: Tsn,
}

/// Action for the association; several are carried out in order.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Action {
    /// Hold messages for these streams from now on.
    Hold(Streams),
    /// Send messages again, held ones first.
    Resume,
    /// Number the next messages on these streams from 0.
    ResetOutbound(Streams),
    /// Expect the peer's next messages on these streams to be numbered from 0.
    ResetInbound(Streams),
    /// Add so many streams to send on.
    AddOutbound(u16),
    /// Add so many streams for the peer to send on.
    AddInbound(u16),
    /// Reset the association, as the peer has done at the request of this side: `theirs` is the peer's next TSN, `ours` this
    /// side's.
    Renumber { theirs: Tsn, ours: Tsn },
    /// Reset the association at the request of the peer: this side's TSNs continue, those of the peer continue with `theirs`.
    RenumberForPeer { theirs: Tsn },
    /// Send RE-CONFIG on this path with these parameters.
    Send { path: PathId, body: Vec<u8> },
    /// Send RE-CONFIG with these responses, and a SACK (RFC 6525 §5.2.1).
    Respond { path: PathId, body: Vec<u8> },
    /// Count a response to no outstanding request.
    DiscardStray,
    /// Pass the event to the application.
    Tell(Event),
}
