//! Undelivered messages of an association: sent and not acknowledged, or still waiting.

use super::setup::EarlyMessage;
use super::{Association, State};
use crate::interface::event::Payload;
use crate::interface::undelivered::Undelivered;
use crate::outbound;
use crate::transmission::unacknowledged;

/// The messages that an association ended with; none while it goes on.
pub(crate) fn undelivered(association: &Association) -> Vec<Undelivered> {
    if association.state == State::Closed { remaining(association) } else { Vec::new() }
}

/// The messages that would be lost if the association ended now.
pub(super) fn remaining(association: &Association) -> Vec<Undelivered> {
    let mut begun = unacknowledged(&association.sender.transmission);
    let unsent = outbound::unsent(&association.sender.outbound, |stream, unordered, mid, rest| {
        begun.add_rest(stream, unordered, mid, rest)
    });
    begun.into_messages().chain(unsent).collect()
}

impl EarlyMessage {
    /// As one that was never sent.
    pub(in crate::association) fn undelivered(&self) -> Undelivered {
        Undelivered {
            stream: self.options.stream,
            ppid: self.options.ppid,
            unordered: self.options.unordered,
            context: self.options.context,
            sent: false,
            payload: Payload::Whole(self.data.clone()),
        }
    }
}
