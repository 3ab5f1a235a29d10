//! Path and stream schedulers: at each transmission opportunity they select the path and the stream of the next data.
//!
//! A scheduler gets plain views and returns a path or a stream; the core owns the queues, the windows and the packets.
//! Both kinds are traits that applications can implement. A [`Registry`](crate::Registry), which may change while
//! associations run, finds them by name.
//!
//! # A stream scheduler of one's own
//!
//! Strict priority by stream number, the lowest first:
//!
//! ```
//! use std::collections::BTreeSet;
//! use std::sync::Arc;
//!
//! use tresse_policy::schedule::{Backlog, PathView, Queued, StreamScheduler, Taken};
//! use tresse_policy::{Registry, StreamId};
//!
//! #[derive(Default)]
//! struct LowestFirst {
//!     waiting: BTreeSet<StreamId>,
//! }
//!
//! impl StreamScheduler for LowestFirst {
//!     fn on_queued(&mut self, queued: Queued) {
//!         self.waiting.insert(queued.stream);
//!     }
//!     fn next(&mut self, _path: &PathView, _backlog: &dyn Backlog) -> Option<StreamId> {
//!         self.waiting.first().copied()
//!     }
//!     fn on_taken(&mut self, taken: Taken) {
//!         if taken.stream_empty {
//!             self.waiting.remove(&taken.stream);
//!         }
//!     }
//!     fn is_empty(&self) -> bool {
//!         self.waiting.is_empty()
//!     }
//! }
//!
//! let mut registry = Registry::default();
//! registry.register_stream_scheduler("lowest_first", Arc::new(|_config| Ok(Box::new(LowestFirst::default()))))?;
//! assert!(registry.stream_scheduler_names().contains(&"lowest_first"));
//! # Ok::<(), tresse_policy::ScheduleError>(())
//! ```

pub(crate) mod ack_path;
mod built;
pub(crate) mod factories;
pub(crate) mod guard;
pub(crate) mod path;
pub(crate) mod resend_path;
mod stream;

pub use crate::time::Instant;
pub use built::Built;
pub use factories::{PathSchedulerFactory, StreamSchedulerFactory};
pub use path::{Decision, FillViews, Offer, OpenPath, PathScheduler, PathView};
pub use stream::{Backlog, Queued, Removed, StreamScheduler, Taken};

pub(crate) use factories::{path_schedulers, stream_schedulers};
