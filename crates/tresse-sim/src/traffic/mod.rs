//! Applications on simulated hosts: their interface and its implementations.
//!
//! An application sees its own host's endpoint and the ledger of messages, never the network.

mod addresses;
mod bulk;
mod ledger;
mod sink;
mod sporadic;

use tresse_proto::{AssociationId, CloseReason, Endpoint, Event, Instant};

pub use addresses::AddressPlan;
pub use bulk::{Bulk, BulkSpec, Refill};
pub use ledger::{DeliveryViolation, Ledger, StreamReport};
pub use sink::{ReadOrder, Sink};

use crate::error::RunError;

/// State that an application may use when it is called.
pub struct AppContext<'a> {
    /// The present.
    pub now: Instant,
    /// The host's endpoint.
    pub endpoint: &'a mut Endpoint,
    /// Record of messages that were handed over, and of those that came out.
    pub ledger: &'a mut Ledger,
}

impl std::fmt::Debug for AppContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Turn").field("now", &self.now).finish_non_exhaustive()
    }
}

/// An application on a host.
pub trait Application {
    /// Time of its next timer.
    fn due(&self) -> Option<Instant>;

    /// Handles a timer that is due.
    ///
    /// # Errors
    /// The application cannot begin its work.
    fn on_due(&mut self, turn: &mut AppContext<'_>) -> Result<(), RunError>;

    /// Handles an event of an association of its host.
    ///
    /// # Errors
    /// The run cannot go on after this event.
    fn on_event(
        &mut self,
        turn: &mut AppContext<'_>,
        id: AssociationId,
        event: &Event,
    ) -> Result<(), RunError>;

    /// Hands over what it has to send; tells whether it handed over anything. Called after events, and again
    /// after packets have left, until there is nothing more to hand over or to send.
    ///
    /// # Errors
    /// The transport refuses its messages for good.
    fn refill(&mut self, turn: &mut AppContext<'_>) -> Result<bool, RunError>;

    /// Association, once it has one.
    fn association(&self) -> Option<AssociationId>;

    /// Time at which it opened its association, if it did.
    fn opened(&self) -> Option<Instant> {
        None
    }

    /// Reason for which its association ended, once it has.
    fn ended(&self) -> Option<String>;
}

/// The content of every message: `size` bytes of a pattern with a period that is no power of two, so that a
/// fragment in the wrong place is noticed.
pub fn pattern(size: usize) -> bytes::Bytes {
    match PATTERN.get(..size) {
        Some(bytes) => bytes::Bytes::from_static(bytes),
        None => PATTERN.iter().copied().cycle().take(size).collect(),
    }
}

const PATTERN_LEN: usize = 251 * 257;

static PATTERN: [u8; PATTERN_LEN] = {
    let mut pattern = [0; PATTERN_LEN];
    let mut at = 0;
    while at < PATTERN_LEN {
        pattern[at] = (at % 251 + at / 251) as u8;
        at += 1;
    }
    pattern
};

/// Reason of an association that was shut down, which the sender of a scenario does when its traffic ends.
pub(crate) const SHUT_DOWN: &str = "shut down";

/// Reason for which an association ended, in words.
fn describe(reason: &CloseReason) -> String {
    match reason {
        CloseReason::Graceful => SHUT_DOWN.to_owned(),
        CloseReason::Aborted => "aborted".to_owned(),
        CloseReason::AbortedByPeer { cause, .. } => format!("aborted by the peer: {cause}"),
        CloseReason::SetupTimeout => "set-up stayed unanswered".to_owned(),
        CloseReason::PathsLost => "no path brought an answer any more".to_owned(),
        CloseReason::ShutdownTimeout => "the peer did not let the shutdown come to its end".to_owned(),
        CloseReason::PeerFault(fault) => format!("the peer broke the protocol: {fault}"),
        other => format!("{other:?}"),
    }
}
