//! The adaptive stream map: every stream belongs to the group of a path; `placement` decides when it moves to another one.
//!
//! Owns the recent history of each stream. Decides nothing itself, and is independent of windows and acknowledgements.

use std::time::Duration;

use tresse_policy::engine::path_entry;
use tresse_policy::maps::placement::{Demand, PathForecast, Placing, StreamHistory, place};
use tresse_policy::schedule::{PathView, Queued, Removed};
use tresse_policy::{Instant, PathId, StreamTable};
use tresse_wire::StreamId;

use super::Outbound;
use super::stream::OutStream;
use crate::config::StreamClass;
use crate::coverage::{Coverage, Mechanism};

/// State of the adaptive map while it is in use.
#[derive(Debug, Default)]
pub(super) struct Adaptive {
    placer: Placer,
    /// True if the map has kept data from a path since the last event.
    kept: bool,
    /// True if the map kept data from every path without a reason: until the next event, each path takes any waiting data.
    overruled: bool,
    /// Number of streams that the map has moved since data was sent, or since the last event.
    moves: u32,
    tracks: StreamTable<StreamHistory>,
    forecasts: Vec<PathForecast>,
    /// Time at which a latency-critical stream last sent on each path, by position.
    urgent_at: Vec<Option<Instant>>,
    /// Time of the last event.
    now: Instant,
    coverage: Coverage,
}

/// The rule that decides: [`place`], except in tests.
#[derive(Debug)]
pub(super) struct Placer(
    pub(super) fn(Instant, PathId, &StreamHistory, Demand, usize, &[PathForecast]) -> Placing,
);

impl Default for Placer {
    fn default() -> Self {
        Placer(place)
    }
}

impl Adaptive {
    pub(super) fn path_of(&self, stream: StreamId) -> PathId {
        self.tracks.get(stream).map_or(PathId(0), |track| track.home)
    }

    /// Notes data on a stream that had none: the stream may move to the fastest path.
    pub(super) fn on_idle_queued(&mut self, now: Instant, stream: StreamId, class: StreamClass) {
        self.now = self.now.max(now);
        self.tracks.entry(stream).begin_anew(now, class, &self.forecasts);
    }

    pub(super) fn on_taken(&mut self, stream: StreamId, path: PathId, bytes: usize, urgent: bool) {
        // `kept` stays: the map may still keep other streams from every path. It is reset together with the declined paths.
        self.moves = 0;
        self.tracks.entry(stream).on_sent(self.now, path, bytes, &self.forecasts);
        if let Some(forecast) = self.forecasts.get_mut(path.index()) {
            forecast.flight += bytes;
        }
        if urgent {
            *path_entry(&mut self.urgent_at, path) = Some(self.now);
        }
    }

    /// Returns whether the map decides. A map that moves streams back and forth would never end, because no time passes
    /// meanwhile.
    fn is_heeded(&self) -> bool {
        !self.overruled && self.moves < MOST_MOVES_FOR_NOTHING
    }

    /// Returns whether a latency-critical stream has lately sent on `path`.
    fn is_urgent(&self, path: PathId) -> bool {
        let last = self.urgent_at.get(path.index()).copied().flatten();
        last.is_some_and(|at| self.now.since(at) < URGENT_FOR)
    }
}

impl Outbound {
    /// Sets the forecasts of the paths, by position.
    pub(crate) fn set_prospects(&mut self, now: Instant, forecasts: impl Iterator<Item = PathForecast>) {
        if let Some(adaptive) = &mut self.adaptive {
            adaptive.now = adaptive.now.max(now);
            adaptive.forecasts.clear();
            adaptive.forecasts.extend(forecasts);
        }
    }

    /// Returns whether the path is to be kept free of queues, because latency-critical streams use it.
    pub(crate) fn avoids_queue(&self, path: PathId) -> bool {
        self.adaptive.as_ref().is_some_and(|adaptive| adaptive.is_urgent(path))
    }

    /// Returns the coverage counters of an adaptive map.
    #[cfg(feature = "invariants")]
    pub(crate) fn coverage(&self) -> Option<&Coverage> {
        self.adaptive.as_ref().map(|adaptive| &adaptive.coverage)
    }

    /// Returns the group and stream whose data is sent next on the path of `view`: by class, and within a class the path's own
    /// group first.
    pub(super) fn pick_adaptively(&mut self, view: &PathView) -> Option<(usize, StreamId)> {
        if let Some(group) = self.packet {
            return self.settle_group(group, view);
        }
        let paths = self.usable.len();
        (0..self.groups.len()).step_by(paths.max(1)).find_map(|layer| {
            let own = layer + view.id.index();
            let others = (layer..layer + paths).filter(|&group| group != own);
            std::iter::once(own).chain(others).find_map(|group| self.settle_group(group, view))
        })
    }

    /// Returns a stream of `group` that the path may serve. Streams that may not stay there are moved to their new path.
    fn settle_group(&mut self, group: usize, view: &PathView) -> Option<(usize, StreamId)> {
        let mut group = group;
        for _ in 0..MOST_MOVES {
            let stream = self.ask(group, view.id, &view)?;
            // Streams do not move within a packet or within a message.
            let settled = self.packet.is_some() || self.open.is_some();
            match self.placing(stream, view) {
                Placing::Take => return Some((group, stream)),
                Placing::Adopt if settled => return Some((group, stream)),
                Placing::Adopt => {
                    self.move_to(stream, view.id);
                    group = self.group_of(stream);
                }
                Placing::Cede(home) if !settled => self.move_to(stream, home),
                Placing::Cede(_) | Placing::Leave => {
                    if self.packet.is_none() {
                        self.groups[group].decline(view.id);
                        self.adaptive.iter_mut().for_each(|adaptive| adaptive.kept = true);
                    }
                    return None;
                }
            }
        }
        None
    }

    /// Overrules the map if it kept data back, for instance by two paths that move a stream to each other: no event would end
    /// the wait. Returns whether the map decided until now.
    pub(super) fn overrule_map(&mut self) -> bool {
        self.adaptive.as_ref().is_some_and(|adaptive| adaptive.kept) && self.set_map_aside()
    }

    /// Lets the map decide nothing until the next event; returns whether the map decided until now.
    pub(super) fn set_map_aside(&mut self) -> bool {
        if self.adaptive.as_ref().is_none_or(|adaptive| adaptive.overruled) {
            return false;
        }
        self.forget_declined();
        self.adaptive.iter_mut().for_each(|adaptive| adaptive.overruled = true);
        true
    }

    pub(super) fn forget_kept(&mut self) {
        if let Some(adaptive) = &mut self.adaptive {
            (adaptive.kept, adaptive.overruled, adaptive.moves) = (false, false, 0);
        }
    }

    #[cfg(test)]
    pub(super) fn place_by(&mut self, placer: Placer) {
        self.adaptive.as_mut().expect("an adaptive map").placer = placer;
    }

    /// Returns the decision on a stream for the path.
    fn placing(&self, stream: StreamId, view: &PathView) -> Placing {
        let Some(adaptive) = self.adaptive.as_ref().filter(|adaptive| adaptive.is_heeded()) else {
            return Placing::Take;
        };
        let unsent = self.queues.streams.get(stream).map_or(0, OutStream::unsent);
        let Some(track) = adaptive.tracks.get(stream) else { return Placing::Take };
        let demand = Demand { class: self.classes.of(stream), unsent };
        (adaptive.placer.0)(adaptive.now, view.id, track, demand, view.mtu, &adaptive.forecasts)
    }

    /// Moves a stream and all its waiting data to the group of another path.
    fn move_to(&mut self, stream: StreamId, home: PathId) {
        let from = self.group_of(stream);
        if let Some(adaptive) = &mut self.adaptive {
            let forecasts = &adaptive.forecasts;
            adaptive.tracks.entry(stream).move_to(home, forecasts);
            adaptive.moves += 1;
            adaptive.coverage.note(Mechanism::StreamMoved);
        }
        self.move_stream(stream, from);
    }

    /// Moves the waiting data of a stream from the group `from` to the group to which the stream belongs now.
    pub(super) fn move_stream(&mut self, stream: StreamId, from: usize) {
        let to = self.group_of(stream);
        if from == to {
            return;
        }
        let Some(queue) = self.queues.streams.get(stream) else { return };
        let messages = queue.messages();
        for (position, (bytes, at)) in queue.waiting().enumerate() {
            let stream_empty = position + 1 == messages;
            let mut removed = Removed::new(stream, bytes);
            removed.stream_empty = stream_empty;
            self.groups[from].on_removed(removed);
            let mut queued = Queued::new(stream, bytes, at);
            queued.was_idle = position == 0;
            self.groups[to].on_queued(queued);
        }
    }
}

/// Number of streams that are moved away before a path gets no data for now.
const MOST_MOVES: usize = 4;
/// Number of moves without data sent, on all paths together, after which the map is ignored.
const MOST_MOVES_FOR_NOTHING: u32 = 64;
/// Time for which a latency-critical stream is expected to send another message.
const URGENT_FOR: Duration = Duration::from_secs(10);
