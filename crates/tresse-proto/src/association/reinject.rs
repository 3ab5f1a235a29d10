//! Reinjection of the head-of-line chunk before it counts as lost: a rule of the sharing policy names the path,
//! `transmission` moves the chunk, `paths` charges the window of its old path.

use tresse_policy::sharing::PathSample;
use tresse_policy::sharing::reinject::deadline::{self, Reinjection};
use tresse_policy::sharing::reinject::{HeadOfLine, chunk_rescheduling, opportunistic};
use tresse_policy::{Instant, PathId};
use tresse_wire::{List, Tsn};

use super::Association;
use crate::config::{ChunkRescheduling, LossDetection, MovedChunkCut};
use crate::coverage::Mechanism;
use crate::interface::stats::Limit;

impl Association {
    /// Moves the head-of-line chunk, if a path is to reinject it. It then waits there like a lost one.
    pub(super) fn reinject(&mut self, now: Instant) {
        let config = &self.config;
        let wanted = config.chunk_rescheduling != ChunkRescheduling::Off
            || config.experiment.opportunistic_retransmission
            || config.experiment.penalisation;
        if !wanted || self.paths.len() < 2 {
            return;
        }
        if config.chunk_rescheduling == ChunkRescheduling::InTime {
            self.reinject_by_deadline(now);
        } else {
            self.reinject_by_rule(now);
        }
    }

    fn reinject_by_deadline(&mut self, now: Instant) {
        // Asked at every chance to send, and mostly nothing arrived early.
        if self.transmission.held_early() == 0 {
            return;
        }
        let Some(head) = self.transmission.head_of_line(now, true) else { return };
        let mut usable = self.take_usable(head.bytes);
        let mut reinjection = deadline::choose(&head, &usable, self.transmission.headroom());
        // Where nothing waits to be sent, an overdue chunk takes nobody's place, and messages wait for it. On a path that does not
        // answer it would wait for T3.
        let silent = |path| self.paths.get(path).is_silent();
        let by_time = self.config.loss_detection == LossDetection::Rack;
        let idle = by_time && reinjection.is_none() && (self.outbound.is_empty() || silent(head.path));
        if idle {
            usable.iter_mut().filter(|sample| silent(sample.id)).for_each(|sample| sample.room = 0);
            reinjection = deadline::choose(&head, &usable, 0).filter(|reinjection| reinjection.overdue);
        }
        self.workspace.get().samples = usable;
        if let Some(Reinjection { to, overdue }) = reinjection {
            let why =
                if overdue && !idle { Mechanism::RescheduledOverdue } else { Mechanism::RescheduledInTime };
            self.move_chunk(now, head.index, to, why);
        }
    }

    fn reinject_by_rule(&mut self, now: Instant) {
        let paths = self.paths.len();
        let overtakes =
            self.config.experiment.opportunistic_retransmission || self.config.experiment.penalisation;
        // Here too.
        if !overtakes && !self.path_ids().any(|path| self.transmission.fills_buffer_early(path, paths)) {
            return;
        }
        let Some(head) = self.transmission.head_of_line(now, false) else { return };
        let usable = self.take_usable(head.bytes);
        let fills = |path| self.transmission.fills_buffer_early(path, paths);
        let to = chunk_rescheduling::choose(&head, &usable, fills);
        let mut step = to.map(|to| (to, Mechanism::RescheduledForShare));
        if step.is_none() && overtakes && !self.outbound.is_empty() {
            let window_limited = |path| self.may_send_new(path) == Err(Limit::ReceiveBuffer);
            let fast = opportunistic::choose(&head, &usable, window_limited);
            let to = fast.and_then(|fast| self.overtake(now, &head, fast));
            step = to.map(|to| (to, Mechanism::Overtaken));
        }
        self.workspace.get().samples = usable;
        if let Some((to, why)) = step {
            self.move_chunk(now, head.index, to, why);
        }
    }

    /// The usable paths, to be given back to the workspace; one whose packets cannot hold a chunk of `bytes` has no room for it.
    fn take_usable(&mut self, bytes: usize) -> Vec<PathSample> {
        let overhead = self.auth.overhead() + self.protection.overhead();
        let mut samples = std::mem::take(&mut self.workspace.get().samples);
        samples.clear();
        samples.extend(self.paths.usable_ids().map(|path| {
            let sample = self.paths.sample(path, self.transmission.flight_on(path));
            let room = if sample.pmdcs < bytes + overhead { 0 } else { sample.room };
            PathSample { room, ..sample }
        }));
        samples
    }

    /// The peer's window keeps the path `fast` from new data, and `head`, on a slower path, fills it: what MPTCP does about it.
    fn overtake(&mut self, now: Instant, head: &HeadOfLine, fast: PathId) -> Option<PathId> {
        if self.config.experiment.penalisation {
            let pause = self.paths.get(fast).srtt().unwrap_or_default();
            self.paths.penalise(head.path, now, pause);
            self.counters.coverage.note(Mechanism::Penalised);
        }
        self.config.experiment.opportunistic_retransmission.then_some(fast)
    }

    /// When output should be asked again though nothing has happened: the head-of-line chunk will be overdue. The buffers may
    /// be full by then, and nothing be in flight whose acknowledgement would ask.
    pub(super) fn note_reinjection_time(&mut self, now: Instant) {
        self.reinjection_due = None;
        if self.config.chunk_rescheduling != ChunkRescheduling::InTime
            || self.paths.len() < 2
            || self.transmission.held_early() == 0
        {
            return;
        }
        let Some(head) = self.transmission.head_of_line(now, true) else { return };
        let usable = self.take_usable(head.bytes);
        self.reinjection_due = deadline::next_turn(&head, &usable).map(|age| now + (age - head.age));
        self.workspace.get().samples = usable;
    }

    /// Lets the chunk `index` wait to leave on `to`, and charges the path that it leaves; one that is overdue was
    /// lost, as far as congestion control is concerned.
    fn move_chunk(&mut self, now: Instant, index: u64, to: PathId, why: Mechanism) {
        let Some(moved) = self.transmission.move_chunk(index, to) else { return };
        self.counters.coverage.note(why);
        let overdue = why == Mechanism::RescheduledOverdue;
        match self.config.experiment.moved_chunk_cut {
            MovedChunkCut::None => {}
            MovedChunkCut::Bytes if !overdue => self.paths.shrink(moved.from, moved.bytes),
            MovedChunkCut::Bytes | MovedChunkCut::Loss => {
                let repairs = self.paths.window(moved.from).repairs();
                self.paths.on_late_loss(now, moved.from, moved.bytes, moved.flight, moved.exit_point);
                // Copies may fill the windows, and this is the beginning of a fast recovery (RFC 9260 §7.2.4).
                let recovers = self.paths.window(moved.from).repairs() != repairs;
                if overdue && recovers && self.transmission.mends_by_copies() {
                    self.transmission.grant_free_packet(to);
                }
            }
        }
        self.settle_t3(moved.from);
    }

    /// The peer received these twice: the path that such a chunk left early did not lose it.
    pub(super) fn on_duplicates(&mut self, now: Instant, duplicates: List<'_, Tsn>) {
        if duplicates.is_empty() || !self.transmission.has_departed() {
            return;
        }
        for tsn in duplicates.iter() {
            let Some(path) = self.transmission.on_duplicate(tsn) else { continue };
            if self.transmission.awaits(path) {
                self.paths.restart_t3(path, now);
            } else {
                self.paths.stop_t3(path);
            }
        }
    }

    /// T3 stops on a path that has no answer to give any more. A path that chunks left early has: else one that died
    /// would never be found, as long as they leave it in time.
    pub(super) fn settle_t3(&mut self, path: PathId) {
        if !self.transmission.awaits(path) {
            self.paths.stop_t3(path);
        }
    }
}
