//! Reinjection of the head-of-line chunk before it counts as lost: a rule of the sharing policy selects the path, `transmission`
//! moves the chunk, `paths` reduces the window of its old path.

use tresse_policy::sharing::PathSample;
use tresse_policy::sharing::reinject::deadline::{self, SentBound};
use tresse_policy::sharing::reinject::{HeadOfLine, chunk_rescheduling, opportunistic};
use tresse_policy::{Instant, PathId};

use super::sender::Sender;
use crate::collections::{LazyBox, LazyState};
use crate::config::{AssociationConfig, ChunkRescheduling, LossDetection, ReinjectionCut};
use crate::coverage::Mechanism;
use crate::interface::stats::Limit;

/// Decisions on the head-of-line chunk: whether it leaves its path, and when to decide again.
#[derive(Debug, Default)]
pub(super) struct Reinjection(LazyBox<ReinjectionState>);

/// State between two decisions.
#[derive(Debug, Default)]
struct ReinjectionState {
    /// Time at which the head-of-line chunk will be overdue.
    due: Option<Instant>,
    /// The bound on the bytes sent until an acknowledgement, computed once for all packets that leave after an event; `None`
    /// before the first of them.
    bound: Option<SentBound>,
}

impl LazyState for ReinjectionState {
    const INITIAL: &Self = &ReinjectionState { due: None, bound: None };
}

impl Reinjection {
    /// Time at which output must be polled again even without an event.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.0.due
    }

    /// Clears the deadline, because output will be polled anyway.
    pub(super) fn on_asked(&mut self) {
        if let Some(kept) = self.0.changed() {
            kept.due = None;
        }
    }

    /// Drops the bound after an event: round-trip times, losses and states of paths may have changed.
    pub(super) fn on_event(&mut self) {
        if let Some(kept) = self.0.changed() {
            kept.bound = None;
        }
    }

    /// Handles the end of output: notes when the head-of-line chunk will be overdue. The buffers may be full by then, with
    /// nothing in flight whose acknowledgement would cause a poll.
    pub(super) fn on_dry(&mut self, now: Instant, sender: &Sender, usable: &mut Vec<PathSample>) {
        self.on_asked();
        if sender.config.chunk_rescheduling == ChunkRescheduling::ByDeadline
            && sender.paths.len() > 1
            && let Some(head) = self.blocking(now, sender)
        {
            sender.fill_usable(head.bytes, usable);
            self.0.due = deadline::next_turn(&head, usable).map(|age| now + (age - head.age));
        }
    }

    /// Moves the head-of-line chunk, if a path is to reinject it. The chunk then waits there like a lost one.
    pub(super) fn reinject(&mut self, now: Instant, sender: &mut Sender, usable: &mut Vec<PathSample>) {
        if sender.paths.len() < 2 {
            return;
        }
        let step = match sender.config.chunk_rescheduling {
            ChunkRescheduling::ByDeadline => self.by_deadline(now, sender, usable),
            _ if is_wanted(&sender.config) => by_rule(now, sender, usable),
            _ => None,
        };
        if let Some(Step { index, to, why }) = step {
            move_chunk(now, sender, index, to, why);
        }
    }

    fn by_deadline(&mut self, now: Instant, sender: &Sender, usable: &mut Vec<PathSample>) -> Option<Step> {
        let head = self.blocking(now, sender)?;
        sender.fill_usable(head.bytes, usable);
        let mut reinjection = deadline::choose(&head, usable, sender.transmission.headroom());
        // If no new data waits, an overdue chunk takes the place of no other, and messages at the peer wait for it. On a silent
        // path it would wait for T3.
        let idle = reinjection.is_none() && reinjects_with_room(sender, head.path);
        if idle {
            let silent = |path| sender.paths.get(path).is_silent();
            usable.iter_mut().filter(|sample| silent(sample.id)).for_each(|sample| sample.room = 0);
            reinjection = deadline::choose(&head, usable, 0).filter(|reinjection| reinjection.overdue);
        }
        let chosen = reinjection?;
        let why = if chosen.overdue && !idle {
            Mechanism::RescheduledOverdue
        } else {
            Mechanism::RescheduledInTime
        };
        Some(Step { index: head.index, to: chosen.to, why })
    }

    /// The head-of-line chunk, if later chunks have arrived and it may have to be reinjected.
    fn blocking(&mut self, now: Instant, sender: &Sender) -> Option<HeadOfLine> {
        // Called at every transmission opportunity; in most cases nothing has arrived early.
        if sender.transmission.outstanding.held_early() == 0 {
            return None;
        }
        let head = sender.transmission.outstanding.head_of_line(now, true)?;
        if !self.is_short(sender) && !reinjects_with_room(sender, head.path) {
            return None;
        }
        if_retransmittable(now, sender, head)
    }

    /// Returns whether the buffers may be full before a chunk that is reinjected now is acknowledged.
    fn is_short(&mut self, sender: &Sender) -> bool {
        let bound = self.0.bound.get_or_insert_with(|| sent_bound(sender));
        sender.transmission.headroom() < bound.bytes(sender.transmission.outstanding.flight_with_copies())
    }
}

/// The bound for the usable paths.
fn sent_bound(sender: &Sender) -> SentBound {
    SentBound::of(sender.paths.usable_ids().map(|path| {
        let path = sender.paths.get(path);
        (path.srtt(), path.loss())
    }))
}

/// A decision to move a chunk to another path.
struct Step {
    index: u64,
    to: PathId,
    why: Mechanism,
}

/// `head`, if its message allows another transmission (RFC 7496 §3.1).
fn if_retransmittable(now: Instant, sender: &Sender, head: HeadOfLine) -> Option<HeadOfLine> {
    (!sender.transmission.is_spent(head.index, now)).then_some(head)
}

fn is_wanted(config: &AssociationConfig) -> bool {
    config.chunk_rescheduling != ChunkRescheduling::Off
        || config.experiment.opportunistic_retransmission
        || config.experiment.penalisation
}

/// Returns whether an overdue chunk of `path` is reinjected even if the buffers have room.
fn reinjects_with_room(sender: &Sender, path: PathId) -> bool {
    sender.config.loss_detection == LossDetection::Rack
        && (sender.outbound.is_empty() || sender.paths.get(path).is_silent())
}

fn by_rule(now: Instant, sender: &mut Sender, usable: &mut Vec<PathSample>) -> Option<Step> {
    let paths = sender.paths.len();
    let overtakes =
        sender.config.experiment.opportunistic_retransmission || sender.config.experiment.penalisation;
    let fills = |path| sender.transmission.fills_buffer_early(path, paths);
    // Called at every transmission opportunity; in most cases no path fills its part of a buffer.
    if !overtakes && !sender.path_ids().any(fills) {
        return None;
    }
    let head = if_retransmittable(now, sender, sender.transmission.outstanding.head_of_line(now, false)?)?;
    sender.fill_usable(head.bytes, usable);
    if let Some(to) = chunk_rescheduling::choose(&head, usable, fills) {
        return Some(Step { index: head.index, to, why: Mechanism::RescheduledForShare });
    }
    if !overtakes || sender.outbound.is_empty() {
        return None;
    }
    let window_limited = |path| sender.may_send_new(path) == Err(Limit::ReceiveBuffer);
    let fast = opportunistic::choose(&head, usable, window_limited)?;
    let to = overtake(now, sender, &head, fast)?;
    Some(Step { index: head.index, to, why: Mechanism::Overtaken })
}

/// Applies MPTCP's rules where the peer's window blocks new data on the path `fast`, and `head` on a slower path holds it up:
/// penalisation of the slower path, and opportunistic retransmission. Returns the path for the latter.
fn overtake(now: Instant, sender: &mut Sender, head: &HeadOfLine, fast: PathId) -> Option<PathId> {
    if sender.config.experiment.penalisation {
        let pause = sender.paths.get(fast).srtt().unwrap_or_default();
        sender.paths.penalise(head.path, now, pause);
        sender.coverage.note(Mechanism::Penalised);
    }
    sender.config.experiment.opportunistic_retransmission.then_some(fast)
}

/// Moves the chunk `index` to the path `to`, and reduces the window of its old path. For congestion control an overdue chunk was
/// lost.
fn move_chunk(now: Instant, sender: &mut Sender, index: u64, to: PathId, why: Mechanism) {
    let Some(moved) = sender.transmission.move_chunk(index, to) else { return };
    sender.coverage.note(why);
    let overdue = why == Mechanism::RescheduledOverdue;
    match sender.config.experiment.reinjection_cut {
        ReinjectionCut::None => {}
        ReinjectionCut::Bytes if !overdue => sender.paths.windows.shrink(moved.from, moved.bytes),
        ReinjectionCut::Bytes | ReinjectionCut::Loss => {
            sender.paths.on_late_loss(now, moved.from, moved.bytes, moved.flight, moved.exit_point);
        }
    }
    sender.settle_t3(moved.from);
}
