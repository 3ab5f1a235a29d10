//! What the parts of the receive buffer must agree on. Checked by tests and simulations; nothing in the core asks.

use tresse_wire::Mid;

use super::Inbound;
use crate::event::Message;

impl Inbound {
    /// The first messages of all streams that there are have this number instead of 0; none has come yet.
    pub(crate) fn begin_at(&mut self, first: Mid) {
        self.ordered.begin_at(first.0, self.stream_count());
    }

    /// Checks that the window counts exactly what is held.
    ///
    /// # Errors
    /// Both counts.
    pub(crate) fn check_invariants(&self) -> Result<(), String> {
        let messages = self.ready.iter().chain(self.ordered.messages()).map(size);
        let held = messages.chain(self.reader.held());
        let held = held.fold((0, 0), |sum, (bytes, chunks)| (sum.0 + bytes, sum.1 + chunks));
        let counted = self.window.held();
        if counted == held {
            Ok(())
        } else {
            Err(format!("{counted:?} bytes and chunks are counted, {held:?} are held"))
        }
    }
}

/// Bytes and chunks of a message.
fn size(message: &Message) -> (usize, usize) {
    (message.payload.len(), message.payload.pieces().len())
}
