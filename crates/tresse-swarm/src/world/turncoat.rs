//! Schedulers and congestion controllers that break their contract after a while; the core must replace them.
//!
//! None of them panics, because each panic would print a line. The core's own tests cover policies that panic.

use std::collections::BTreeSet;
use std::sync::Arc;

use tresse_proto::congestion::{Ack, Controller, Situation, Sizes};
use tresse_proto::schedule::{Backlog, PathView, Queued, StreamScheduler, Taken};
use tresse_proto::{Decision, Instant, Offer, PathId, PathScheduler, Registry, ScheduleError, StreamId};

/// Faults by name, which the policies commit after a while.
const TURNCOATS: [(&str, Treason); 3] =
    [("stray", Treason::NamesAnother), ("silent", Treason::NamesNone), ("tired", Treason::GivesUp)];

#[derive(Copy, Clone, PartialEq, Eq)]
enum Treason {
    /// Names a stream that nobody uses, or one that has nothing to send.
    NamesAnother,
    NamesNone,
    GivesUp,
}

/// The same of controllers.
const USURPERS: [(&str, Abuse); 3] =
    [("bloated", Abuse::BeyondAllBuffers), ("starved", Abuse::LessThanAPacket), ("weary", Abuse::GivesUp)];

#[derive(Copy, Clone, PartialEq, Eq)]
enum Abuse {
    BeyondAllBuffers,
    LessThanAPacket,
    GivesUp,
}

/// The same of path schedulers.
const DESERTERS: [(&str, Desertion); 2] =
    [("astray", Desertion::NamesNoPath), ("deserter", Desertion::GivesUp)];

#[derive(Copy, Clone, PartialEq, Eq)]
enum Desertion {
    NamesNoPath,
    /// With data left to paths that are full.
    GivesUp,
}

/// The built-in schedulers and controllers, and these.
///
/// # Errors
/// One of these has the name of a built-in one.
pub(super) fn registry() -> Result<Registry, ScheduleError> {
    let mut registry = Registry::default();
    for (name, treason) in TURNCOATS {
        let turncoat = move || Turncoat { waiting: BTreeSet::new(), loyal: LOYAL, treason };
        registry.register(name, Arc::new(move |_| Ok(Box::new(turncoat()))))?;
    }
    for (name, desertion) in DESERTERS {
        let deserter = move || Deserter { loyal: LOYAL, desertion };
        registry.register_path_scheduler(name, Arc::new(move |_| Ok(Box::new(deserter()))))?;
    }
    for (name, abuse) in USURPERS {
        let usurper = move || Usurper { loyal: LOYAL, abuse };
        registry.register_controller(name, Arc::new(move |_| Ok(Box::new(usurper()))))?;
    }
    Ok(registry)
}

/// Returns whether a scheduler or a controller of this name is made to fail.
pub(super) fn is_turncoat(name: &str) -> bool {
    TURNCOATS.iter().any(|&(turncoat, _)| turncoat == name)
        || DESERTERS.iter().any(|&(deserter, _)| deserter == name)
        || USURPERS.iter().any(|&(usurper, _)| usurper == name)
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

/// The first path that can take data, open or not, as long as it is loyal.
struct Deserter {
    /// Packets until it no longer is.
    loyal: u32,
    desertion: Desertion,
}

impl PathScheduler for Deserter {
    fn name(&self) -> &'static str {
        "deserter"
    }

    fn decide(&mut self, _now: Instant, offer: &Offer<'_>) -> Decision {
        let nowhere = PathId(u8::MAX);
        match self.desertion {
            Desertion::NamesNoPath if self.loyal == 0 => Decision::Send(nowhere),
            Desertion::NamesNoPath => Decision::send(offer.open().next()),
            Desertion::GivesUp => Decision::send_or_assign(offer.available().next()),
        }
    }

    fn on_sent(&mut self, _path: PathId, _bytes: usize) {
        self.loyal = self.loyal.saturating_sub(1);
    }

    fn failure(&self) -> Option<String> {
        (self.loyal == 0 && self.desertion == Desertion::GivesUp).then(|| "it has had enough".to_owned())
    }
}

/// A packet more for every acknowledgement and half of it for a loss, as long as it is loyal.
struct Usurper {
    /// Answers until it no longer is.
    loyal: u32,
    abuse: Abuse,
}

impl Usurper {
    fn answer(&mut self, honest: Sizes) -> Sizes {
        if self.loyal > 0 {
            self.loyal -= 1;
            return honest;
        }
        match self.abuse {
            Abuse::BeyondAllBuffers => Sizes { cwnd: usize::MAX, ..honest },
            Abuse::LessThanAPacket => Sizes { cwnd: 0, ..honest },
            Abuse::GivesUp => honest,
        }
    }
}

impl Controller for Usurper {
    fn on_ack(&mut self, situation: &Situation<'_>, _ack: &Ack) -> Sizes {
        let window = situation.window();
        self.answer(window.grown_by(window.packet))
    }

    fn on_loss(&mut self, situation: &Situation<'_>, _ack: &Ack) -> Sizes {
        let window = situation.window();
        self.answer(window.cut_to(window.cwnd / 2))
    }

    fn failure(&self) -> Option<String> {
        (self.loyal == 0 && self.abuse == Abuse::GivesUp).then(|| "too weary".to_owned())
    }
}

/// Pieces that are taken, packets that are sent, or answers that are given, before one turns.
const LOYAL: u32 = 5;
