//! Consistency of the parts of the receive buffer, which only tests and simulations check.

use tresse_wire::Mid;

use super::Inbound;

impl Inbound {
    /// Starts the message numbers of all streams at `first` instead of 0; no message may have arrived.
    pub(crate) fn begin_at(&mut self, first: Mid) {
        self.ordered.begin_at(first.0, self.stream_count());
    }

    /// Checks that the window counts exactly the held data.
    ///
    /// # Errors
    /// The counts differ; the text has both.
    pub(crate) fn check_invariants(&self) -> Result<(), String> {
        let mut held = self.reader.held();
        for message in self.ready.iter().chain(self.ordered.messages()) {
            held.0 += message.payload.len();
            held.1 += message.payload.pieces().len();
        }
        held.0 += held.1 * self.header_len();
        let counted = self.window.held();
        if counted == held {
            Ok(())
        } else {
            Err(format!("{counted:?} bytes and chunks are counted, {held:?} are held"))
        }
    }
}
