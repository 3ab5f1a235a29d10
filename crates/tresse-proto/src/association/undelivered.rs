//! Undelivered messages of an association: sent and not acknowledged, or still waiting.

use super::sender::Sender;
use super::setup::EarlyMessage;
use crate::interface::event::Payload;
use crate::interface::undelivered::Undelivered;
use crate::outbound;
use crate::transmission::unacknowledged;

impl Sender {
    /// The messages that were undelivered when the association ended, or that would be lost if it ended now.
    pub(crate) fn undelivered(&self) -> Vec<Undelivered> {
        let mut begun = unacknowledged(&self.transmission);
        let unsent = outbound::unsent(&self.outbound, |stream, unordered, mid, rest| {
            begun.add_rest(stream, unordered, mid, rest)
        });
        begun.into_messages().chain(unsent).collect()
    }
}

impl EarlyMessage {
    /// This message as undelivered and never sent.
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
