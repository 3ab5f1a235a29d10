//! Stream schedulers that break their contract after a while: it must not matter to anybody.
//!
//! None panics, which the core's own tests see to: a panic would write a line for each.

use std::collections::BTreeSet;
use std::sync::Arc;

use tresse_proto::schedule::{Backlog, PathView, Queued, StreamScheduler, Taken};
use tresse_proto::{Registry, ScheduleError, StreamId};

/// By name, what they do once they have been loyal for long enough.
const TURNCOATS: [(&str, Treason); 3] =
    [("stray", Treason::NamesAnother), ("silent", Treason::NamesNone), ("tired", Treason::GivesUp)];

#[derive(Copy, Clone, PartialEq, Eq)]
enum Treason {
    /// Names a stream that nobody uses, or one that has nothing to send.
    NamesAnother,
    NamesNone,
    GivesUp,
}

/// The built-in schedulers, and these.
///
/// # Errors
/// One of these has the name of a built-in one.
pub(super) fn registry() -> Result<Registry, ScheduleError> {
    let mut registry = Registry::default();
    for (name, treason) in TURNCOATS {
        let turncoat = move || Turncoat { waiting: BTreeSet::new(), loyal: LOYAL, treason };
        registry.register(name, Arc::new(move |_| Ok(Box::new(turncoat()))))?;
    }
    Ok(registry)
}

/// Whether it is no wonder that a scheduler of this name failed.
pub(super) fn is_turncoat(name: &str) -> bool {
    TURNCOATS.iter().any(|&(turncoat, _)| turncoat == name)
}

/// The lowest stream first, as long as it is loyal.
struct Turncoat {
    waiting: BTreeSet<StreamId>,
    /// Pieces until it no longer is.
    loyal: u32,
    treason: Treason,
}

impl StreamScheduler for Turncoat {
    fn on_queued(&mut self, queued: Queued) {
        self.waiting.insert(queued.stream);
    }

    fn next(&mut self, _path: &PathView, _backlog: &dyn Backlog) -> Option<StreamId> {
        let first = self.waiting.first().copied();
        match self.treason {
            _ if self.loyal > 0 => first,
            Treason::NamesAnother => first.map(|first| StreamId(first.0.wrapping_add(1))),
            Treason::NamesNone | Treason::GivesUp => None,
        }
    }

    fn on_taken(&mut self, taken: Taken) {
        self.loyal = self.loyal.saturating_sub(1);
        if taken.stream_empty {
            self.waiting.remove(&taken.stream);
        }
    }

    fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    fn failure(&self) -> Option<String> {
        (self.loyal == 0 && self.treason == Treason::GivesUp).then(|| "too tired".to_owned())
    }
}

/// Pieces that are taken before one turns.
const LOYAL: u32 = 5;
