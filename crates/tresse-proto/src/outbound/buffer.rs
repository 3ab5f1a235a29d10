//! The send buffer: bytes of user data that were accepted and not released, and how many of them wait to be sent.
//!
//! Independent of streams, and of the messages that it counts.

use crate::interface::error::SendError;
use crate::interface::stats::SendQueueInfo;

/// The send buffer of an association.
#[derive(Debug)]
pub(crate) struct SendBuffer {
    limit: usize,
    /// Bytes accepted and not released.
    used: usize,
    /// Bytes of these that wait to be sent.
    unsent: usize,
    /// True if a message was refused for lack of room, and the application has not been notified of room since.
    refused: bool,
    /// True if a message was refused for lack of room, and the buffer has been at least half full since.
    limiting: bool,
    messages: u64,
}

impl SendBuffer {
    pub(super) fn new(limit: usize) -> Self {
        SendBuffer { limit, used: 0, unsent: 0, refused: false, limiting: false, messages: 0 }
    }

    /// Sets the size; returns whether the application is to be notified of room.
    pub(crate) fn resize(&mut self, limit: usize) -> bool {
        let grows = limit > self.limit;
        self.limit = limit;
        self.limiting &= self.is_half_full();
        grows && self.used < limit && std::mem::take(&mut self.refused)
    }

    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// Accepts a message of `len` bytes; returns its number.
    ///
    /// # Errors
    /// There is no room.
    #[inline]
    pub(super) fn accept(&mut self, len: usize) -> Result<u64, SendError> {
        if self.used + len > self.limit {
            self.note_refused();
            return Err(SendError::Full { free: self.limit.saturating_sub(self.used) });
        }
        self.take_in(len);
        self.messages += 1;
        Ok(self.messages)
    }

    /// Adds `len` bytes, whether or not there is room.
    #[inline]
    pub(super) fn take_in(&mut self, len: usize) {
        self.used += len;
        self.unsent += len;
    }

    /// Notes that `len` bytes no longer wait, because they were sent or withdrawn.
    #[inline]
    pub(super) fn on_taken(&mut self, len: usize) {
        self.unsent -= len;
    }

    /// Releases `bytes`; returns whether the application is to be notified of room.
    pub(crate) fn release(&mut self, bytes: usize) -> bool {
        self.used = self.used.saturating_sub(bytes);
        self.limiting &= self.is_half_full();
        bytes > 0 && std::mem::take(&mut self.refused)
    }

    /// Returns the bytes that the buffer lacks for a message of `len` bytes.
    pub(super) fn shortage(&self, len: usize) -> usize {
        (self.used + len).saturating_sub(self.limit)
    }

    /// Counts a message that was accepted before it was known that its stream would not exist.
    pub(crate) fn note_no_stream(&mut self) {
        self.messages += 1;
    }

    /// Notes that a message was refused for lack of room, here or before this buffer existed.
    pub(crate) fn note_refused(&mut self) {
        self.refused = true;
        self.limiting = true;
    }

    /// Returns whether the buffer limits the application: more data follows what waits. An application that fills the buffer
    /// again some time after it is notified of room counts as limited throughout.
    pub(crate) fn limits_application(&self) -> bool {
        self.limiting
    }

    /// Returns whether the application waits for room: a message was refused, and it has not been notified of room since.
    pub(crate) fn is_full(&self) -> bool {
        self.refused
    }

    fn is_half_full(&self) -> bool {
        self.used >= self.limit / 2
    }

    /// Returns the bytes that wait to be sent, on all streams.
    #[inline]
    pub(crate) fn unsent(&self) -> usize {
        self.unsent
    }

    /// Returns the number of messages accepted so far.
    pub(crate) fn messages(&self) -> u64 {
        self.messages
    }

    pub(crate) fn info(&self) -> SendQueueInfo {
        SendQueueInfo { limit: self.limit, used: self.used, unsent: self.unsent }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_that_refused_a_message_limits_the_application_until_half_of_it_is_free() {
        let mut buffer = SendBuffer::new(1000);
        buffer.accept(900).expect("room");
        assert!(!buffer.limits_application(), "nothing was refused");
        buffer.accept(200).expect_err("no room");
        assert!(buffer.limits_application());
        // The application is notified of room, and may fill the buffer again later.
        assert!(buffer.release(400) && !buffer.is_full() && buffer.limits_application());
        buffer.release(1);
        assert!(!buffer.limits_application(), "the application had time to fill it");
    }

    #[test]
    fn a_buffer_that_becomes_larger_no_longer_limits_the_application() {
        let mut buffer = SendBuffer::new(1000);
        buffer.accept(1001).expect_err("no room");
        buffer.accept(900).expect("room");
        assert!(buffer.resize(2000) && !buffer.limits_application());
    }
}
