//! State that all drivers of an endpoint share: their clock and runtime, and the tasks that wait for any of them.
//!
//! Independent of the drivers: their number, and the state of each.

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tresse_proto::Instant;

/// State that the drivers of an endpoint share.
pub(crate) struct Group {
    /// The clock is that of the runtime, which tests may pause.
    origin: tokio::time::Instant,
    /// The runtime of the drivers.
    pub(crate) runtime: Option<Handle>,
    /// Notified when `accept` may return an association.
    pub(crate) incoming: Notify,
    /// Notified when the last association of a driver has ended.
    pub(crate) idle: Notify,
}

impl Group {
    /// Makes the state of drivers that run in the present runtime.
    pub(crate) fn new() -> Self {
        Group {
            origin: tokio::time::Instant::now(),
            runtime: Handle::try_current().ok(),
            incoming: Notify::new(),
            idle: Notify::new(),
        }
    }

    /// Returns the time of all cores: nanoseconds since the endpoint was bound.
    pub(crate) fn now(&self) -> Instant {
        Instant::from_nanos(u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}
