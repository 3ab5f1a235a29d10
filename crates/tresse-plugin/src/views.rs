//! Views for foreign code: the core's views, converted field by field to the structures of the header.

use std::ffi::c_void;
use std::time::Duration;

use tresse_policy::congestion::{self, PathWindow};
use tresse_policy::schedule::{Backlog, Offer, PathView, Queued, Removed, Taken};
use tresse_policy::{Instant, PathState, StreamId};

use crate::abi;

/// Access to the backlog for foreign code, as long as this value.
pub(crate) struct Questions<'a> {
    backlog: &'a dyn Backlog,
}

impl<'a> Questions<'a> {
    pub(crate) fn new(backlog: &'a dyn Backlog) -> Self {
        Questions { backlog }
    }

    pub(crate) fn view(&self) -> abi::Backlog {
        abi::Backlog { queues: std::ptr::from_ref(self).cast::<c_void>(), unsent_bytes, messages, head_bytes }
    }
}

unsafe extern "C" fn unsent_bytes(view: *const abi::Backlog, stream: u16) -> u64 {
    // SAFETY: the caller of this function guarantees what `ask` requires.
    unsafe { ask(view, |backlog| backlog.unsent_bytes(StreamId(stream))) }
}

unsafe extern "C" fn messages(view: *const abi::Backlog, stream: u16) -> u64 {
    // SAFETY: the caller of this function guarantees what `ask` requires.
    unsafe { ask(view, |backlog| backlog.messages(StreamId(stream))) }
}

unsafe extern "C" fn head_bytes(view: *const abi::Backlog, stream: u16) -> u64 {
    // SAFETY: the caller of this function guarantees what `ask` requires.
    unsafe { ask(view, |backlog| backlog.head_bytes(StreamId(stream))) }
}

/// # Safety
/// `Questions::view` made `view`, for the call of `next` in progress.
unsafe fn ask(view: *const abi::Backlog, question: impl FnOnce(&dyn Backlog) -> usize) -> u64 {
    // SAFETY: the caller guarantees it: both live until `next` returns, and do not change.
    let questions = unsafe { &*(*view).queues.cast::<Questions<'_>>() };
    question(questions.backlog) as u64
}

pub(crate) fn queued(queued: &Queued) -> abi::Queued {
    abi::Queued {
        bytes: queued.bytes as u64,
        at_ns: queued.at.as_nanos(),
        stream: queued.stream.0,
        was_idle: queued.was_idle.into(),
    }
}

pub(crate) fn taken(taken: &Taken) -> abi::Taken {
    abi::Taken {
        bytes: taken.bytes as u64,
        stream: taken.stream.0,
        message_done: taken.message_done.into(),
        turn_over: taken.turn_over.into(),
        stream_empty: taken.stream_empty.into(),
    }
}

pub(crate) fn removed(removed: &Removed) -> abi::Removed {
    abi::Removed {
        bytes: removed.bytes as u64,
        ahead: removed.ahead as u64,
        stream: removed.stream.0,
        stream_empty: removed.stream_empty.into(),
    }
}

pub(crate) fn path(path: &PathView) -> abi::Path {
    abi::Path {
        cwnd: path.cwnd as u64,
        ssthresh: path.ssthresh as u64,
        flight: path.flight as u64,
        room: path.room as u64,
        rate: path.rate,
        srtt_ns: path.srtt.map_or(0, nanos),
        rttvar_ns: nanos(path.rttvar),
        rtt_min_ns: nanos(path.rtt_range.0),
        rtt_max_ns: nanos(path.rtt_range.1),
        rto_ns: nanos(path.rto),
        last_sent_ns: path.last_sent.as_nanos(),
        loss: path.loss,
        mtu: u32::try_from(path.mtu).unwrap_or(u32::MAX),
        id: path.id.0,
        state: match path.state {
            PathState::Unconfirmed => abi::UNCONFIRMED,
            PathState::Active => abi::ACTIVE,
            PathState::PotentiallyFailed => abi::POTENTIALLY_FAILED,
            // Hooks are not called for a removed path.
            PathState::Inactive | PathState::Removed => abi::INACTIVE,
        },
        primary: path.primary.into(),
        recovering: path.recovering.into(),
    }
}

/// `assigns` is true if the scheduler may assign data to paths whose window is full.
pub(crate) fn candidate(view: &PathView, assigns: bool) -> abi::Candidate {
    abi::Candidate {
        path: path(view),
        assigned: view.assigned as u64,
        early: if assigns { view.early as u64 } else { 0 },
        open: view.open.into(),
        assignable: (assigns && view.assignable).into(),
    }
}

/// Converts an offer; its `paths` were converted before. The result is valid as long as they are.
pub(crate) fn offer(now: Instant, offer: &Offer<'_>, paths: &[abi::Candidate]) -> abi::Offer {
    abi::Offer {
        paths: paths.as_ptr(),
        count: paths.len(),
        unsent: offer.unsent as u64,
        peer_window: offer.peer_window as u64,
        now_ns: now.as_nanos(),
        buffer_limited: offer.buffer_limited.into(),
        streams_bound: offer.streams_bound.into(),
    }
}

pub(crate) fn window(window: &PathWindow) -> abi::Window {
    abi::Window {
        cwnd: window.cwnd as u64,
        ssthresh: window.ssthresh as u64,
        packet: window.packet as u64,
        srtt_ns: window.srtt.map_or(0, nanos),
        min_rtt_ns: window.min_rtt.map_or(0, nanos),
        id: window.path.0,
        usable: window.usable.into(),
        recovering: window.recovering.into(),
    }
}

/// Converts the situation of an event on a path; `windows` are those of all paths, converted before. The result is valid as long as
/// they are.
pub(crate) fn situation(situation: &congestion::Situation<'_>, windows: &[abi::Window]) -> abi::Situation {
    abi::Situation {
        windows: windows.as_ptr(),
        count: windows.len(),
        now_ns: situation.now.as_nanos(),
        path: situation.path.0,
    }
}

pub(crate) fn ack(ack: &congestion::Ack) -> abi::Ack {
    abi::Ack {
        bytes: ack.bytes as u64,
        flight_before: ack.flight_before as u64,
        flight_after: ack.flight_after as u64,
        lost: ack.lost as u64,
        rtt_ns: ack.rtt.map_or(0, nanos),
        rate: ack.rate,
        may_grow: ack.may_grow.into(),
        fully_used: ack.fully_used.into(),
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
