//! Policies of CMT-SCTP: congestion control, path and stream scheduling, stream maps, sharing of buffers.
//!
//! A policy gets plain views and returns a decision. It owns no queue, no window and no packet, and has neither clock
//! nor randomness: time is an argument ([`Instant`]). The protocol core (`tresse-proto`) builds the
//! views, finds policies by name in a [`Registry`] and carries their decisions out.
//!
//! A policy implements one of three traits. It can be compiled and tested with this crate alone:
//!
//! - [`congestion::Controller`]: the congestion window of each path.
//! - [`schedule::PathScheduler`]: the path that carries the next packet of new data.
//! - [`schedule::StreamScheduler`]: the stream whose data this packet carries.
//!
//! # A policy of each kind
//!
//! A congestion controller that reduces its window by a quarter at a loss, a path scheduler that selects the path with
//! the least data in flight, and a stream scheduler that serves the stream with the lowest id first:
//!
//! ```
//! use std::collections::BTreeSet;
//! use std::sync::Arc;
//!
//! use tresse_policy::congestion::{Ack, Controller, Situation, Sizes};
//! use tresse_policy::schedule::{Backlog, Queued, StreamScheduler, Taken};
//! use tresse_policy::{Decision, Instant, Offer, PathId, PathScheduler, PathView, Registry, StreamId};
//!
//! struct Gentle;
//!
//! impl Controller for Gentle {
//!     fn on_ack(&mut self, situation: &Situation<'_>, ack: &Ack) -> Sizes {
//!         let window = situation.window();
//!         if ack.may_grow && ack.fully_used {
//!             window.grown_by(window.packet * ack.bytes / window.cwnd)
//!         } else {
//!             window.unchanged()
//!         }
//!     }
//!     fn on_loss(&mut self, situation: &Situation<'_>, _ack: &Ack) -> Sizes {
//!         let window = situation.window();
//!         window.cut_to((window.cwnd / 4 * 3).max(4 * window.packet))
//!     }
//! }
//!
//! struct LeastInFlight;
//!
//! impl PathScheduler for LeastInFlight {
//!     fn name(&self) -> &str {
//!         "least_in_flight"
//!     }
//!     fn decide(&mut self, _now: Instant, offer: &Offer<'_>) -> Decision {
//!         Decision::send(offer.open().min_by_key(|path| (path.flight, path.id)))
//!     }
//!     fn on_sent(&mut self, _path: PathId, _bytes: usize) {}
//! }
//!
//! #[derive(Default)]
//! struct LowestFirst(BTreeSet<StreamId>);
//!
//! impl StreamScheduler for LowestFirst {
//!     fn on_queued(&mut self, queued: Queued) {
//!         self.0.insert(queued.stream);
//!     }
//!     fn next(&mut self, _path: &PathView, _backlog: &dyn Backlog) -> Option<StreamId> {
//!         self.0.first().copied()
//!     }
//!     fn on_taken(&mut self, taken: Taken) {
//!         if taken.stream_empty {
//!             self.0.remove(&taken.stream);
//!         }
//!     }
//!     fn is_empty(&self) -> bool {
//!         self.0.is_empty()
//!     }
//! }
//!
//! // A policy is tested with a few views.
//! let idle = PathView::new(PathId(0)).with(|path| {
//!     path.open = true;
//!     (path.cwnd, path.room) = (15_000, 15_000);
//! });
//! let busy = idle.clone().with(|path| {
//!     path.id = PathId(1);
//!     (path.flight, path.room) = (9000, 6000);
//! });
//! let paths = [busy, idle];
//! let offer = Offer::new(&paths, 50_000, 100_000);
//! assert_eq!(LeastInFlight.decide(Instant::ZERO, &offer), Decision::Send(PathId(0)));
//!
//! // A policy is registered, and found, by its name.
//! let mut registry = Registry::default();
//! registry.register_controller("gentle", Arc::new(|_config| Ok(Box::new(Gentle))))?;
//! registry.register_path_scheduler("least_in_flight", Arc::new(|_config| Ok(Box::new(LeastInFlight))))?;
//! registry.register_stream_scheduler("lowest_first", Arc::new(|_config| Ok(Box::new(LowestFirst::default()))))?;
//! let scheduler = registry.build_path_scheduler("least_in_flight", "")?;
//! assert_eq!(scheduler.name(), "least_in_flight");
//! assert_eq!(registry.build_stream_scheduler("lowest_first", "")?.name(), "lowest_first");
//! # Ok::<(), tresse_policy::ScheduleError>(())
//! ```
//!
//! [`engine`] is the interface for the protocol core; policies do not need it.

mod choices;
pub mod congestion;
pub mod engine;
mod error;
pub mod maps;
mod names;
mod panics;
mod path;
mod registry;
pub mod schedule;
pub mod sharing;
mod stream_table;
mod time;

pub use choices::{RetransmitPath, SackPath, StreamClass};
pub use error::{PolicyKind, ScheduleError};
pub use path::{PathId, PathState};
pub use registry::Registry;
pub use schedule::{Decision, Offer, OpenPath, PathScheduler, PathView, StreamScheduler};
pub use stream_table::StreamTable;
pub use time::Instant;
pub use tresse_wire::StreamId;
