//! Applications on simulated hosts: their interface and its implementations.
//!
//! An application uses its own host's endpoint and the ledger of messages, never the network.

mod addresses;
mod bulk;
mod ledger;
mod sink;
mod sporadic;

use tresse_proto::{AssociationId, CloseReason, Endpoint, Event, Instant};

pub use addresses::AddressPlan;
pub use bulk::{Bulk, BulkSpec, Refill};
pub use ledger::{Ledger, StreamReport};
pub use sink::{ReadOrder, Sink};
pub use sporadic::Sporadic;

pub use crate::error::DeliveryViolation;

use crate::error::RunError;

/// State that an application may use when it is called.
pub struct AppContext<'a> {
    /// The present time.
    pub now: Instant,
    /// The host's endpoint.
    pub endpoint: &'a mut Endpoint,
    /// Ledger of the messages sent and delivered.
    pub ledger: &'a mut Ledger,
}

impl std::fmt::Debug for AppContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Turn").field("now", &self.now).finish_non_exhaustive()
    }
}

/// An application on a host.
pub trait Application {
    /// Returns the time of its next timer.
    fn due(&self) -> Option<Instant>;

    /// Handles a timer that is due.
    ///
    /// # Errors
    /// The application cannot begin its work.
    fn on_due(&mut self, turn: &mut AppContext<'_>) -> Result<(), RunError>;

    /// Handles an event of an association of its host.
    ///
    /// # Errors
    /// The run cannot continue after this event.
    fn on_event(
        &mut self,
        turn: &mut AppContext<'_>,
        id: AssociationId,
        event: &Event,
    ) -> Result<(), RunError>;

    /// Sends its messages; returns whether it sent any. Called after events, and again after packets have left, until
    /// there is no more to send.
    ///
    /// # Errors
    /// The transport refuses its messages permanently.
    fn refill(&mut self, turn: &mut AppContext<'_>) -> Result<bool, RunError>;

    /// Returns its association, if it has one.
    fn association(&self) -> Option<AssociationId>;

    /// Returns the time at which it opened its association, if it did.
    fn opened(&self) -> Option<Instant> {
        None
    }

    /// Returns the reason for which its association ended, if it has.
    fn ended(&self) -> Option<&CloseReason>;
}

/// Returns the content of every message: `size` bytes of a pattern whose period is not a power of two, so that a
/// fragment in the wrong place is detected.
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

/// Describes the reason for which an association ended.
pub(crate) fn describe(reason: &CloseReason) -> String {
    match reason {
        CloseReason::Graceful => "shut down".to_owned(),
        CloseReason::Aborted => "aborted".to_owned(),
        CloseReason::AbortedByPeer { cause, .. } => format!("aborted by the peer: {cause}"),
        CloseReason::SetupTimeout => "set-up stayed unanswered".to_owned(),
        CloseReason::PathsLost => "no path brought an answer any more".to_owned(),
        CloseReason::ShutdownTimeout => "the peer did not let the shutdown come to its end".to_owned(),
        CloseReason::PeerFault(fault) => format!("the peer broke the protocol: {fault}"),
        CloseReason::PeerUnprotected => {
            "the peer broke the protocol: no protection by DTLS chunks, which is required here".to_owned()
        }
        other => format!("{other:?}"),
    }
}
