//! The adaptive stream map: every stream belongs to a group of a path, and moves between them as `placement` says.
//!
//! Owns what each stream has done lately. Decides nothing by itself, and knows neither windows nor acknowledgements.

use tresse_wire::StreamId;

use super::Outbound;
use super::stream::OutStream;
use crate::path_id::PathId;
use crate::schedule::placement::{Placing, Prospect, Track, place};
use crate::schedule::{PathView, Place, Queued, Removed};
use crate::stream_table::StreamTable;
use crate::time::Instant;

/// What the map keeps; there is one while it is in use.
#[derive(Debug, Default)]
pub(super) struct Adaptive {
    tracks: StreamTable<Track>,
    prospects: Vec<Prospect>,
    /// As of the last event.
    now: Instant,
}

impl Adaptive {
    pub(super) fn home(&self, stream: StreamId) -> PathId {
        self.tracks.get(stream).map_or(PathId(0), |track| track.home)
    }

    /// Something waits on a stream that had nothing: it may begin anew on the fastest path.
    pub(super) fn on_idle_queued(&mut self, now: Instant, stream: StreamId) {
        self.now = self.now.max(now);
        self.tracks.entry(stream).begin_anew(now, &self.prospects);
    }

    pub(super) fn on_taken(&mut self, stream: StreamId, path: PathId, bytes: usize) {
        self.tracks.entry(stream).on_sent(self.now, path, bytes, &self.prospects);
    }
}

impl Outbound {
    /// How the paths look, by position.
    pub(crate) fn set_prospects(&mut self, now: Instant, prospects: impl Iterator<Item = Prospect>) {
        if let Some(adaptive) = &mut self.adaptive {
            adaptive.now = adaptive.now.max(now);
            adaptive.prospects.clear();
            adaptive.prospects.extend(prospects);
        }
    }

    /// The group and stream whose data goes next on the path behind `view`: its own group first.
    pub(super) fn pick_adaptively(&mut self, view: &PathView) -> Option<(usize, StreamId)> {
        if let Some(group) = self.packet {
            return self.settle_group(group, view);
        }
        let own = view.id.index();
        let others = (0..self.groups.len()).filter(|&group| group != own);
        std::iter::once(own).chain(others).find_map(|group| self.settle_group(group, view))
    }

    /// A stream of `group` that the path may take; streams that may not stay there are sent to their new home.
    fn settle_group(&mut self, group: usize, view: &PathView) -> Option<(usize, StreamId)> {
        let mut group = group;
        for _ in 0..MOST_MOVES {
            let stream = self.ask(group, view)?;
            // Within a packet and within a message nothing moves.
            let settled = self.packet.is_some() || self.open.is_some();
            match self.placing(stream, view) {
                Placing::Take => return Some((group, stream)),
                Placing::Adopt if settled => return Some((group, stream)),
                Placing::Adopt => {
                    self.rehome(stream, view.id);
                    group = view.id.index();
                }
                Placing::Cede(home) if !settled => self.rehome(stream, home),
                Placing::Cede(_) | Placing::Leave => {
                    if self.packet.is_none() {
                        self.groups[group].decline(view.id);
                    }
                    return None;
                }
            }
        }
        None
    }

    /// What the path does with a stream.
    fn placing(&self, stream: StreamId, view: &PathView) -> Placing {
        let Some(adaptive) = &self.adaptive else { return Placing::Take };
        let unsent = self.queues.streams.get(stream).map_or(0, OutStream::unsent);
        let Some(track) = adaptive.tracks.get(stream) else { return Placing::Take };
        place(adaptive.now, view.id, track, unsent, view.mtu, &adaptive.prospects)
    }

    /// Moves a stream with all that waits on it to the group of another path.
    fn rehome(&mut self, stream: StreamId, home: PathId) {
        let from = self.group_of(stream);
        if let Some(adaptive) = &mut self.adaptive {
            adaptive.tracks.entry(stream).home = home;
        }
        let to = self.group_of(stream);
        if from == to {
            return;
        }
        let Some(queue) = self.queues.streams.get(stream) else { return };
        let messages = queue.messages();
        for (position, (bytes, at)) in queue.waiting().enumerate() {
            let stream_empty = position + 1 == messages;
            self.groups[from].on_removed(Removed { stream, bytes, ahead: 0, stream_empty });
            let queued = Queued { stream, bytes, was_idle: position == 0, place: Place::Tail, at };
            self.groups[to].on_queued(queued);
        }
        if let Some(value) = self.values.get(stream).copied().flatten() {
            self.groups[to].scheduler.set_value(stream, value).ok();
        }
    }
}

/// Streams that are sent away before a path gives up for now.
const MOST_MOVES: usize = 4;
