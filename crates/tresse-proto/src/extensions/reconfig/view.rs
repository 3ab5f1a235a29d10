//! Views of the association for stream reconfiguration, and the actions that it returns.

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
    /// Tells whether everything queued on these streams is sent.
    pub(crate) has_sent_all_of: &'a dyn Fn(&Streams) -> bool,
    /// Tells whether no message of this stream has been begun.
    pub(crate) is_at_start: &'a dyn Fn(StreamId) -> bool,
    /// The index of a TSN of the peer, unless it is too far away to be near what has arrived.
    pub(crate) index_near: &'a dyn Fn(Tsn) -> Option<u64>,
}

/// The direction of this side's user data.
#[derive(Copy, Clone, Debug)]
pub(crate) struct SendState {
    /// True if the state of the association allows any.
    pub(crate) is_open: bool,
    pub(crate) streams: u16,
    pub(crate) progress: Progress,
    /// The TSN given out last.
    pub(crate) last_tsn: Tsn,
}

/// Progress of sending.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Progress {
    /// True if everything is sent that was queued on held streams before they were held.
    pub(crate) drained: bool,
    /// The index given out last.
    pub(crate) highest: u64,
    /// The index up to which everything is acknowledged.
    pub(crate) cumulative: u64,
}

/// The direction of the peer's user data.
#[derive(Copy, Clone, Debug)]
pub(crate) struct ReceiveState {
    pub(crate) streams: u16,
    /// The index and the TSN up to which everything has arrived.
    pub(crate) cumulative: u64,
    pub(crate) cumulative_tsn: Tsn,
}

/// Action of the association; several are carried out in order.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Action {
    /// Messages for these streams wait from now on.
    Hold(Streams),
    /// Messages go on as ever, those that waited first.
    Resume,
    /// The next messages on these streams are numbered from 0.
    ResetOutbound(Streams),
    /// The next messages of the peer on these streams are numbered from 0.
    ResetInbound(Streams),
    /// So many more streams to send on.
    AddOutbound(u16),
    /// So many more streams for the peer to send on.
    AddInbound(u16),
    /// The peer has begun anew, as this side wanted: `theirs` is its next TSN and `ours` the one to go on with.
    Renumber { theirs: Tsn, ours: Tsn },
    /// This side begins anew, as the peer wanted, and goes on with its TSNs; those of the peer go on with `theirs`.
    RenumberForPeer { theirs: Tsn },
    /// RE-CONFIG leaves on this path with these parameters.
    Send { path: PathId, body: Vec<u8> },
    /// The same, and a SACK with it (RFC 6525 §5.2.1).
    Respond { path: PathId, body: Vec<u8> },
    /// A response that answers nothing is counted.
    DiscardStray,
    /// The application is told.
    Tell(Event),
}
