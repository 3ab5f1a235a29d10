//! Faulty schedulers and congestion controllers, which violate their contract after a while; the core must replace them.
//!
//! None of them panics, because each panic would print a line. The core's own tests cover policies that panic.

use std::collections::BTreeSet;
use std::sync::Arc;

use tresse_proto::congestion::{Ack, Controller, Situation, Sizes};
use tresse_proto::schedule::{Backlog, PathView, Queued, StreamScheduler, Taken};
use tresse_proto::{Decision, Instant, Offer, PathId, PathScheduler, Registry, ScheduleError, StreamId};

/// Faulty stream schedulers: names and faults.
const STREAM_SCHEDULERS: [(&str, StreamFault); 3] = [
    ("stray", StreamFault::SelectsAnother),
    ("silent", StreamFault::SelectsNone),
    ("tired", StreamFault::ReportsFailure),
];

#[derive(Copy, Clone, PartialEq, Eq)]
enum StreamFault {
    /// Selects a stream that is not in use or has nothing to send.
    SelectsAnother,
    SelectsNone,
    ReportsFailure,
}

/// Faulty congestion controllers: names and faults.
const CONTROLLERS: [(&str, ControllerFault); 3] = [
    ("bloated", ControllerFault::BeyondAllBuffers),
    ("starved", ControllerFault::LessThanAPacket),
    ("weary", ControllerFault::ReportsFailure),
];

#[derive(Copy, Clone, PartialEq, Eq)]
enum ControllerFault {
    BeyondAllBuffers,
    LessThanAPacket,
    ReportsFailure,
}

/// Faulty path schedulers: names and faults.
const PATH_SCHEDULERS: [(&str, PathFault); 2] =
    [("astray", PathFault::SelectsUnknownPath), ("deserter", PathFault::ReportsFailure)];

#[derive(Copy, Clone, PartialEq, Eq)]
enum PathFault {
    SelectsUnknownPath,
    /// Reports a failure while it has assigned data to paths whose windows are full.
    ReportsFailure,
}

/// Returns a registry of the built-in and the faulty policies.
///
/// # Errors
/// If a faulty policy has the name of a built-in one.
pub(super) fn registry() -> Result<Registry, ScheduleError> {
    let mut registry = Registry::default();
    for (name, fault) in STREAM_SCHEDULERS {
        let create = move || FaultyStreamScheduler {
            waiting: BTreeSet::new(),
            correct_left: CORRECT_DECISIONS,
            fault,
        };
        registry.register_stream_scheduler(name, Arc::new(move |_| Ok(Box::new(create()))))?;
    }
    for (name, fault) in PATH_SCHEDULERS {
        let create = move || FaultyPathScheduler { correct_left: CORRECT_DECISIONS, fault };
        registry.register_path_scheduler(name, Arc::new(move |_| Ok(Box::new(create()))))?;
    }
    for (name, fault) in CONTROLLERS {
        let create = move || FaultyController { correct_left: CORRECT_DECISIONS, fault };
        registry.register_controller(name, Arc::new(move |_| Ok(Box::new(create()))))?;
    }
    Ok(registry)
}

/// Returns whether the policy of this name is faulty.
pub(super) fn is_turncoat(name: &str) -> bool {
    STREAM_SCHEDULERS.iter().any(|&(faulty, _)| faulty == name)
        || PATH_SCHEDULERS.iter().any(|&(faulty, _)| faulty == name)
        || CONTROLLERS.iter().any(|&(faulty, _)| faulty == name)
}

/// Stream scheduler that selects the lowest stream first, until it becomes faulty.
struct FaultyStreamScheduler {
    waiting: BTreeSet<StreamId>,
    /// Fragments to be taken before the fault.
    correct_left: u32,
    fault: StreamFault,
}

impl StreamScheduler for FaultyStreamScheduler {
    fn on_queued(&mut self, queued: Queued) {
        self.waiting.insert(queued.stream);
    }

    fn next(&mut self, _path: &PathView, _backlog: &dyn Backlog) -> Option<StreamId> {
        let first = self.waiting.first().copied();
        match self.fault {
            _ if self.correct_left > 0 => first,
            StreamFault::SelectsAnother => first.map(|first| StreamId(first.0.wrapping_add(1))),
            StreamFault::SelectsNone | StreamFault::ReportsFailure => None,
        }
    }

    fn on_taken(&mut self, taken: Taken) {
        self.correct_left = self.correct_left.saturating_sub(1);
        if taken.stream_empty {
            self.waiting.remove(&taken.stream);
        }
    }

    fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    fn failure(&self) -> Option<String> {
        (self.correct_left == 0 && self.fault == StreamFault::ReportsFailure).then(|| "too tired".to_owned())
    }
}

/// Path scheduler that selects the first path that can take data, until it becomes faulty.
struct FaultyPathScheduler {
    /// Packets to be sent before the fault.
    correct_left: u32,
    fault: PathFault,
}

impl PathScheduler for FaultyPathScheduler {
    fn name(&self) -> &'static str {
        "deserter"
    }

    fn decide(&mut self, _now: Instant, offer: &Offer<'_>) -> Decision {
        let unknown = PathId(u8::MAX);
        match self.fault {
            PathFault::SelectsUnknownPath if self.correct_left == 0 => Decision::Send(unknown),
            PathFault::SelectsUnknownPath => Decision::send(offer.open().next()),
            PathFault::ReportsFailure => Decision::send_or_assign(offer.available().next()),
        }
    }

    fn on_sent(&mut self, _path: PathId, _bytes: usize) {
        self.correct_left = self.correct_left.saturating_sub(1);
    }

    fn failure(&self) -> Option<String> {
        (self.correct_left == 0 && self.fault == PathFault::ReportsFailure)
            .then(|| "it has had enough".to_owned())
    }
}

/// Congestion controller that grows its window by a packet at each acknowledgement and halves it at a loss, until it becomes faulty.
struct FaultyController {
    /// Answers to be given before the fault.
    correct_left: u32,
    fault: ControllerFault,
}

impl FaultyController {
    fn answer(&mut self, correct: Sizes) -> Sizes {
        if self.correct_left > 0 {
            self.correct_left -= 1;
            return correct;
        }
        match self.fault {
            ControllerFault::BeyondAllBuffers => Sizes { cwnd: usize::MAX, ..correct },
            ControllerFault::LessThanAPacket => Sizes { cwnd: 0, ..correct },
            ControllerFault::ReportsFailure => correct,
        }
    }
}

impl Controller for FaultyController {
    fn on_ack(&mut self, situation: &Situation<'_>, _ack: &Ack) -> Sizes {
        let window = situation.window();
        self.answer(window.grown_by(window.packet))
    }

    fn on_loss(&mut self, situation: &Situation<'_>, _ack: &Ack) -> Sizes {
        let window = situation.window();
        self.answer(window.cut_to(window.cwnd / 2))
    }

    fn failure(&self) -> Option<String> {
        (self.correct_left == 0 && self.fault == ControllerFault::ReportsFailure)
            .then(|| "too weary".to_owned())
    }
}

/// Fragments, packets or answers before the fault.
const CORRECT_DECISIONS: u32 = 5;
