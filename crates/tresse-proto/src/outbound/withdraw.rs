//! Withdrawal of queued messages: those whose lifetime is over, and those that give room to more important ones.
//!
//! Owns the two orders of withdrawal. A queue of reliable messages costs nothing here.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use tresse_policy::Instant;
use tresse_policy::schedule::Removed;

use super::Outbound;
use crate::interface::reliability::Pledge;

/// The messages that need not arrive and wait, or of which a part waits.
#[derive(Debug, Default)]
pub(super) struct Revocable {
    /// By the end of their lifetime.
    by_expiry: BTreeMap<(Instant, u64), Arc<Pledge>>,
    /// Of those with a priority the ones of which nothing was cut; the last is the first to go: the oldest
    /// of the lowest priority.
    by_priority: BTreeMap<(u32, Reverse<u64>), Arc<Pledge>>,
}

/// A message that was taken back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Withdrawn {
    pub(crate) pledge: Arc<Pledge>,
    /// Bytes of it that were never sent. They are in the send buffer until they are released.
    pub(crate) rest: Bytes,
    /// True if some of it was sent.
    pub(crate) begun: bool,
}

impl Revocable {
    pub(super) fn insert(&mut self, pledge: &Arc<Pledge>) {
        if pledge.expires < Instant::FAR_FUTURE {
            self.by_expiry.insert((pledge.expires, pledge.number), Arc::clone(pledge));
        }
        if let Some(priority) = pledge.priority() {
            self.by_priority.insert((priority, Reverse(pledge.number)), Arc::clone(pledge));
        }
    }

    /// A piece of the message was cut, maybe the last.
    pub(super) fn on_cut(&mut self, pledge: &Pledge, done: bool) {
        if let Some(priority) = pledge.priority() {
            self.by_priority.remove(&(priority, Reverse(pledge.number)));
        }
        // What was begun without FORWARD TSN has to be finished.
        if done || !pledge.revocable {
            self.by_expiry.remove(&(pledge.expires, pledge.number));
        }
    }

    fn remove(&mut self, pledge: &Pledge) {
        self.on_cut(pledge, true);
    }
}

impl Outbound {
    /// A piece of a message that need not arrive was cut, maybe the last; answers what stays with the piece.
    pub(super) fn on_cut(&mut self, pledge: Arc<Pledge>, done: bool) -> Option<Arc<Pledge>> {
        if let Some(revocable) = &mut self.revocable {
            revocable.on_cut(&pledge, done);
        }
        pledge.stays().then_some(pledge)
    }

    /// Returns whether a message waits, or has waited, that need not arrive.
    #[inline]
    pub(crate) fn has_revocable(&self) -> bool {
        self.revocable.is_some()
    }

    /// Time at which the lifetime of a waiting message ends next.
    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        let revocable = self.revocable.as_deref()?;
        revocable.by_expiry.first_key_value().map(|(&(expires, _), _)| expires)
    }

    /// Withdraws a message whose lifetime is over, one for each call. The fragments of one that was begun are
    /// abandoned by `transmission`.
    pub(crate) fn withdraw_expired(&mut self, now: Instant) -> Option<Withdrawn> {
        let (_, pledge) = self.revocable.as_deref()?.by_expiry.first_key_value()?;
        let pledge = Arc::clone(pledge);
        if pledge.is_expired(now) { self.withdraw(&pledge) } else { None }
    }

    /// Bytes of waiting messages with this priority or a lower one; counts no further than `wanted`.
    pub(crate) fn evictable(&self, priority: u32, wanted: usize) -> usize {
        let Some(revocable) = self.revocable.as_deref() else { return 0 };
        let mut bytes = 0;
        for (_, pledge) in revocable.by_priority.range((priority, Reverse(u64::MAX))..).rev() {
            if bytes >= wanted {
                break;
            }
            bytes += pledge.bytes;
        }
        bytes
    }

    /// Takes back the oldest message of the lowest priority that waits, if that is `priority` or lower.
    pub(crate) fn evict(&mut self, priority: u32) -> Option<Withdrawn> {
        let (&(lowest, _), pledge) = self.revocable.as_deref()?.by_priority.last_key_value()?;
        let pledge = Arc::clone(pledge);
        if lowest >= priority { self.withdraw(&pledge) } else { None }
    }

    /// Takes back a message, or what was not cut of it; `None` when nothing of it waits.
    pub(crate) fn withdraw(&mut self, pledge: &Arc<Pledge>) -> Option<Withdrawn> {
        self.revocable.as_deref_mut()?.remove(pledge);
        if let Some(rest) = self.holding_mut().and_then(|hold| hold.take_out(pledge.number)) {
            self.buffer.on_taken(rest.len());
            self.gauge(pledge.stream);
            return Some(Withdrawn { pledge: Arc::clone(pledge), rest, begun: false });
        }
        let stream = pledge.stream;
        let queue = self.queues.streams.entry(stream);
        let gone = queue.take_out(pledge.number)?;
        let stream_empty = queue.is_empty();
        let bytes = gone.rest.len();
        self.buffer.on_taken(bytes);
        if gone.begun && self.open == Some(stream) {
            self.open = None;
        }
        let group = self.group_of(stream);
        let mut removed = Removed::new(stream, bytes);
        removed.ahead = gone.ahead;
        removed.stream_empty = stream_empty;
        self.groups[group].on_removed(removed);
        self.gauge(stream);
        Some(Withdrawn { pledge: Arc::clone(pledge), rest: gone.rest, begun: gone.begun })
    }
}
