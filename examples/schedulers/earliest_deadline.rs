//! Earliest deadline first: each stream has a patience in milliseconds, and the message goes next whose patience ends
//! first.
//!
//! For messages that are worth something only in time: it meets all deadlines whenever any order does (Liu and Layland,
//! "Scheduling Algorithms for Multiprogramming in a Hard-Real-Time Environment", 1973, §7), as far as messages are cut
//! finely; with interleaving that holds for long ones too. Loses under overload: late messages make the next ones late.
//! Give them lifetimes as well (`Reliability::Lifetime`), and what is too late goes out of the way.
//!
//! Configuration, and values of streams: milliseconds, such as "0=20,5=1000". Streams without one wait until nothing
//! else does, and then go in the order in which their messages came.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tresse_policy::schedule::{
    Backlog, PathView, Queued, Removed, StreamScheduler, StreamSchedulerFactory, Taken,
};
use tresse_policy::{Instant, StreamId};

/// Orders streams by the deadline of their first message.
#[derive(Default)]
struct EarliestDeadline {
    streams: BTreeMap<StreamId, Stream>,
    /// Streams with data.
    order: BTreeSet<Turn>,
}

/// Those with a deadline before those without, then by deadline, then by age.
type Turn = (bool, Instant, Instant, StreamId);

#[derive(Default)]
struct Stream {
    patience: Option<Duration>,
    /// When each message was given that waits.
    given: VecDeque<Instant>,
}

impl EarliestDeadline {
    /// With the patience of the streams in `config`.
    fn new(config: &str) -> Result<Self, String> {
        let mut scheduler = EarliestDeadline::default();
        for pair in config.split(',').filter(|_| !config.is_empty()) {
            let read = pair.split_once('=').and_then(|(stream, patience)| {
                Some((StreamId(stream.trim().parse().ok()?), patience.trim().parse().ok()?))
            });
            let (stream, patience) =
                read.ok_or_else(|| format!("\"{pair}\" is not a stream and its milliseconds, such as 0=20"))?;
            scheduler.set_value(stream, patience)?;
        }
        Ok(scheduler)
    }

    /// Changes a stream, with its turn.
    fn change<T>(&mut self, stream: StreamId, change: impl FnOnce(&mut Stream) -> T) -> T {
        let state = self.streams.entry(stream).or_default();
        if let Some(turn) = state.turn(stream) {
            self.order.remove(&turn);
        }
        let outcome = change(state);
        self.order.extend(state.turn(stream));
        outcome
    }
}

impl Stream {
    fn turn(&self, stream: StreamId) -> Option<Turn> {
        let &given = self.given.front()?;
        let deadline = self.patience.map_or(Instant::FAR_FUTURE, |patience| given + patience);
        Some((self.patience.is_none(), deadline, given, stream))
    }
}

impl StreamScheduler for EarliestDeadline {
    fn on_queued(&mut self, queued: Queued) {
        self.change(queued.stream, |stream| stream.given.push_back(queued.at));
    }

    fn next(&mut self, _path: &PathView, _backlog: &dyn Backlog) -> Option<StreamId> {
        self.order.first().map(|&(_, _, _, stream)| stream)
    }

    fn on_taken(&mut self, taken: Taken) {
        if taken.message_done {
            self.change(taken.stream, |stream| stream.given.pop_front());
        }
    }

    fn on_removed(&mut self, removed: Removed) {
        self.change(removed.stream, |stream| stream.given.remove(removed.ahead));
    }

    fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    fn set_value(&mut self, stream: StreamId, value: u16) -> Result<(), String> {
        self.change(stream, |stream| stream.patience = Some(Duration::from_millis(value.into())));
        Ok(())
    }

    fn value(&self, stream: StreamId) -> Option<u16> {
        let patience = self.streams.get(&stream)?.patience?;
        u16::try_from(patience.as_millis()).ok()
    }
}

/// What makes one of these schedulers for each association.
pub fn factory() -> StreamSchedulerFactory {
    Arc::new(|config| Ok(Box::new(EarliestDeadline::new(config)?)))
}
