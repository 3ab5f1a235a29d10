//! Flow control of a connection: bytes that a side may still send, for which the other side has buffer.

use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

/// Bytes that may be sent, as granted by their receiver.
pub(super) struct Credit {
    bytes: Mutex<usize>,
    more: Notify,
}

impl Credit {
    /// Returns the credit of a new connection.
    pub(super) fn new(bytes: usize) -> Self {
        Credit { bytes: Mutex::new(bytes), more: Notify::new() }
    }

    /// Adds `more` bytes, which the receiver has consumed. The credit never exceeds `window`, even if the receiver grants more than it
    /// was sent.
    pub(super) fn add(&self, more: usize, window: usize) {
        let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        *bytes = bytes.saturating_add(more).min(window);
        self.more.notify_one();
    }

    /// Waits until there is credit, and returns its bytes.
    pub(super) async fn some(&self) -> usize {
        loop {
            match *self.bytes.lock().unwrap_or_else(PoisonError::into_inner) {
                0 => {}
                some => return some,
            }
            self.more.notified().await;
        }
    }

    /// Subtracts `spent` bytes, which were sent.
    pub(super) fn spend(&self, spent: usize) {
        let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        *bytes = bytes.saturating_sub(spent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn whoever_has_none_waits_for_more() {
        let credit = Credit::new(10);
        assert_eq!(credit.some().await, 10);
        credit.spend(10);
        let (some, ()) = tokio::join!(credit.some(), async { credit.add(4, 10) });
        assert_eq!(some, 4);
        credit.add(100, 10);
        assert_eq!(credit.some().await, 10);
    }
}
