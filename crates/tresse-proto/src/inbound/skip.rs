//! Messages that will never be complete, because their sender abandoned them (FORWARD-TSN, RFC 3758 §3.6;
//! I-FORWARD-TSN, RFC 8260 §2.3.1).
//!
//! Independent of chunks and TSNs: the association provides the index up to which nothing more will come, and the
//! skipped messages.

use std::ops::Range;

use tresse_wire::StreamId;

use super::{Inbound, Refusal};

/// The messages of a stream, ordered or unordered, that were abandoned: those up to a number are no longer waited for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Skipped {
    pub(crate) stream: StreamId,
    pub(crate) unordered: bool,
    /// Highest number of an abandoned message, an SSN or a MID.
    pub(crate) number: u32,
}

impl Inbound {
    /// Ends the wait for everything missing up to the index `up_to`. Delivers the messages that waited behind those in
    /// `skipped`, and drops incomplete messages that lack an index up to `up_to`; complete messages are never dropped. Appends
    /// to `deliverable` as [`Self::accept`] does.
    ///
    /// Streams that do not exist, and numbers that were passed long ago, are ignored.
    ///
    /// # Errors
    /// As [`Self::check_progress`].
    pub(crate) fn skip(
        &mut self,
        up_to: u64,
        skipped: impl Iterator<Item = Skipped>,
        deliverable: &mut Vec<Range<u64>>,
    ) -> Result<(), Refusal> {
        self.check_progress(up_to)?;
        let (streams, mut passed) = (self.streams, false);
        for Skipped { stream, unordered, number } in skipped.filter(|skipped| skipped.stream.0 < streams) {
            // The end of a message in parts precedes the messages that waited behind it.
            let dropped = self.reader.skip(stream, unordered, number);
            self.give_up(dropped);
            if !unordered {
                passed = true;
                self.ordered.skip(stream, number, |indices, message| {
                    indices.append_to(deliverable);
                    self.ready.push_back(message);
                });
            }
        }
        // Only ordered messages can have been passed.
        if passed {
            let dropped = self.reader.drop_skipped(&self.ordered);
            self.give_up(dropped);
        }
        Ok(())
    }
}
