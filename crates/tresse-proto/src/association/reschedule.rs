//! Sending again before anything counts as lost: a policy names the path, `transmission` moves the chunk, `paths` charges
//! the window of its old path.

use std::time::Duration;

use tresse_policy::engine::in_time::{self, Outlook, Repeat};
use tresse_policy::engine::{HeadOfLine, opportunistic, reschedule};
use tresse_policy::{Instant, PathId, PathView};
use tresse_wire::{List, Tsn};

use super::Association;
use crate::config::{ChunkRescheduling, MovedChunkCut};
use crate::coverage::Mechanism;
use crate::interface::stats::Limit;

impl Association {
    /// Moves the chunk that everything waits for, if a path wants to repeat it. It then waits there like a lost one.
    #[inline]
    pub(super) fn reschedule(&mut self, now: Instant) {
        let config = &self.config;
        let wanted = config.chunk_rescheduling != ChunkRescheduling::Off
            || config.opportunistic_retransmission
            || config.penalisation;
        if !wanted || self.paths.len() < 2 {
            return;
        }
        if config.chunk_rescheduling == ChunkRescheduling::InTime {
            self.repeat_in_time(now);
        } else {
            self.reschedule_head(now);
        }
    }

    fn repeat_in_time(&mut self, now: Instant) {
        // Asked at every chance to send: mostly nothing arrived early, or what is missing is on its way, and there is
        // nothing to do.
        if self.transmission.held_early() == 0 {
            return;
        }
        let Some(head) = self.transmission.head_of_line(now, true) else { return };
        let round_trips = || self.paths.usable_ids().filter_map(|path| self.paths.get(path).srtt());
        let own = self.paths.round_trip(head.path);
        if own.is_some_and(|own| in_time::is_left_alone(&head, own, round_trips())) {
            debug_assert_eq!(in_time::choose(&head, &self.all_usable().collect::<Vec<_>>(), 0), None);
            return;
        }
        let headroom = self.transmission.headroom();
        let outlook = self.paths.usable_ids().fold(Outlook::NONE, |outlook, path| {
            let (srtt, loss) = (self.paths.get(path).srtt(), self.paths.loss(path));
            outlook.with(srtt, loss, self.transmission.flight_on(path))
        });
        if !outlook.is_borne_by(headroom) {
            self.repeat_head(now, &head, headroom);
        }
    }

    // Never: it is rare, and takes registers.
    #[inline(never)]
    fn repeat_head(&mut self, now: Instant, head: &HeadOfLine, headroom: usize) {
        let usable = self.repeaters(head.bytes);
        let repeat = in_time::choose(head, &usable, headroom);
        self.workspace.get().candidates = usable;
        if let Some(Repeat { to, overdue }) = repeat {
            let why = if overdue { Mechanism::RescheduledOverdue } else { Mechanism::RescheduledInTime };
            self.move_chunk(now, head.index, to, why);
        }
    }

    fn reschedule_head(&mut self, now: Instant) {
        let paths = self.paths.len();
        let overtakes = self.config.opportunistic_retransmission || self.config.penalisation;
        // Here too.
        if !overtakes && !self.path_ids().any(|path| self.transmission.blocks(path, paths)) {
            return;
        }
        let Some(head) = self.transmission.head_of_line(now, false) else { return };
        let usable = self.repeaters(head.bytes);
        let to = reschedule::choose(&head, &usable, |path| self.transmission.blocks(path, paths));
        let mut step = to.map(|to| (to, Mechanism::RescheduledForShare));
        if step.is_none() && overtakes && !self.outbound.is_empty() {
            let silenced = |path| self.may_send_new(path) == Err(Limit::ReceiveBuffer);
            let fast = opportunistic::choose(&head, &usable, silenced);
            let to = fast.and_then(|fast| self.overtake(now, &head, fast));
            step = to.map(|to| (to, Mechanism::Overtaken));
        }
        self.workspace.get().candidates = usable;
        if let Some((to, why)) = step {
            self.move_chunk(now, head.index, to, why);
        }
    }

    /// The usable paths; one whose packets cannot hold a chunk of `bytes` has no room for it.
    fn repeaters(&mut self, bytes: usize) -> Vec<PathView> {
        let overhead = self.auth.overhead();
        let mut usable = self.usable_views();
        for view in usable.iter_mut().filter(|view| self.paths.get(view.id).pmdcs() < bytes + overhead) {
            view.room = 0;
        }
        usable
    }

    /// The peer's window silences the path `fast`, and `head`, on a slower path, fills it: what MPTCP does about it.
    fn overtake(&mut self, now: Instant, head: &HeadOfLine, fast: PathId) -> Option<PathId> {
        if self.config.penalisation {
            let pause = self.paths.get(fast).srtt().unwrap_or_default();
            self.paths.penalise(head.path, now, pause);
            self.counters.coverage.note(Mechanism::Penalised);
        }
        self.config.opportunistic_retransmission.then_some(fast)
    }

    /// When output should be asked again though nothing has happened: the chunk that everything waits for will be
    /// overdue. The buffers may be full by then, and nothing be under way whose acknowledgement would ask.
    pub(super) fn note_patience(&mut self, now: Instant) {
        self.patience_until = None;
        if self.config.chunk_rescheduling != ChunkRescheduling::InTime
            || self.paths.len() < 2
            || self.transmission.held_early() == 0
        {
            return;
        }
        let Some(head) = self.transmission.head_of_line(now, true) else { return };
        self.patience_until = self.next_turn_of(&head).map(|age| now + (age - head.age));
    }

    /// The age at which `head` may go again on one more path than now.
    fn next_turn_of(&mut self, head: &HeadOfLine) -> Option<Duration> {
        let overdue =
            self.paths.round_trip(head.path).map(|(srtt, rttvar)| in_time::overdue_after(srtt, rttvar));
        if overdue.is_some_and(|overdue| head.age < overdue) {
            debug_assert_eq!(overdue, in_time::next_turn(head, &self.all_usable().collect::<Vec<_>>()));
            return overdue;
        }
        let usable = self.usable_views();
        let turn = in_time::next_turn(head, &usable);
        self.workspace.get().candidates = usable;
        turn
    }

    /// Lets the chunk `index` wait to leave on `to`, and charges the path that it leaves; one that is overdue was
    /// lost, as far as congestion control is concerned.
    fn move_chunk(&mut self, now: Instant, index: u64, to: PathId, why: Mechanism) {
        let Some(moved) = self.transmission.move_chunk(index, to) else { return };
        self.counters.coverage.note(why);
        let overdue = why == Mechanism::RescheduledOverdue;
        match self.config.moved_chunk_cut {
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
