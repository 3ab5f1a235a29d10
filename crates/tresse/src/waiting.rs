//! Waiting of tasks: notifications of an association, and futures that are kept.
//!
//! Independent of the events of the core that notify the tasks.

use std::future::Future;
use std::pin::{Pin, pin};

use tokio::sync::Notify;

/// A future of any type.
pub(crate) type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send + Sync>>;

/// Notifications of waiting tasks.
#[derive(Default)]
pub(crate) struct Signals {
    pub(crate) readable: Notify,
    pub(crate) writable: Notify,
    pub(crate) low_water: Notify,
    /// Set-up is complete, or the association has ended.
    pub(crate) phase: Notify,
}

impl Signals {
    pub(crate) fn all(&self) {
        self.readable.notify_waiters();
        self.writable.notify_waiters();
        self.low_water.notify_waiters();
        self.phase.notify_waiters();
    }
}

/// Waits until `ready` returns a value; it is called at once and after every notification.
pub(crate) async fn until<T>(notify: &Notify, mut ready: impl FnMut() -> Option<T>) -> T {
    loop {
        if let Some(value) = ready() {
            return value;
        }
        let mut notified = pin!(notify.notified());
        // From here on no notification is missed, so `ready` is called once more before the wait.
        notified.as_mut().enable();
        if let Some(value) = ready() {
            return value;
        }
        notified.await;
    }
}
