//! Withdrawal of queued messages: those whose lifetime is over, and those that are evicted by messages of higher priority.
//!
//! Owns the two orders of withdrawal. Reliable messages cost nothing here.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use tresse_policy::Instant;
use tresse_policy::schedule::Removed;

use super::Outbound;
use crate::interface::reliability::DeliveryTerms;

/// Messages with partial reliability of which at least a part waits.
#[derive(Debug, Default)]
pub(super) struct Revocable {
    /// Messages by the end of their lifetime.
    by_expiry: BTreeMap<(Instant, u64), Arc<DeliveryTerms>>,
    /// Messages with a priority of which nothing was cut. The last one is evicted first: the oldest one of the lowest priority.
    by_priority: BTreeMap<(u32, Reverse<u64>), Arc<DeliveryTerms>>,
}

/// A withdrawn message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct WithdrawnMessage {
    pub(crate) terms: Arc<DeliveryTerms>,
    /// Bytes that were never sent. They stay in the send buffer until they are released.
    pub(crate) rest: Bytes,
    /// True if a part was sent.
    pub(crate) begun: bool,
}

impl Revocable {
    pub(super) fn insert(&mut self, terms: &Arc<DeliveryTerms>) {
        if terms.expires < Instant::FAR_FUTURE {
            self.by_expiry.insert((terms.expires, terms.number), Arc::clone(terms));
        }
        if let Some(priority) = terms.priority() {
            self.by_priority.insert((priority, Reverse(terms.number)), Arc::clone(terms));
        }
    }

    /// Notes that a fragment of the message was cut; with `done` it was the last.
    pub(super) fn on_cut(&mut self, terms: &DeliveryTerms, done: bool) {
        if let Some(priority) = terms.priority() {
            self.by_priority.remove(&(priority, Reverse(terms.number)));
        }
        // Without FORWARD TSN, a message that was begun has to be sent to its end.
        if done || !terms.revocable {
            self.by_expiry.remove(&(terms.expires, terms.number));
        }
    }

    fn remove(&mut self, terms: &DeliveryTerms) {
        self.on_cut(terms, true);
    }
}

impl Outbound {
    /// Notes that a fragment of a message was cut; with `done` it was the last. Returns the terms if they are kept with the
    /// fragment.
    pub(super) fn on_cut(&mut self, terms: Arc<DeliveryTerms>, done: bool) -> Option<Arc<DeliveryTerms>> {
        if let Some(revocable) = &mut self.revocable {
            revocable.on_cut(&terms, done);
        }
        terms.kept()
    }

    /// Returns whether a message with delivery terms waits or has waited.
    #[inline]
    pub(crate) fn has_revocable(&self) -> bool {
        self.revocable.is_some()
    }

    /// Returns the time at which the lifetime of a waiting message ends next.
    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        let revocable = self.revocable.as_deref()?;
        revocable.by_expiry.first_key_value().map(|(&(expires, _), _)| expires)
    }

    /// Withdraws one message whose lifetime is over. If the message was begun, `transmission` abandons its fragments.
    pub(crate) fn withdraw_expired(&mut self, now: Instant) -> Option<WithdrawnMessage> {
        let (_, terms) = self.revocable.as_deref()?.by_expiry.first_key_value()?;
        let terms = Arc::clone(terms);
        if terms.is_expired(now) { self.withdraw(&terms) } else { None }
    }

    /// Returns the bytes of waiting messages with this priority or a lower one; the count stops at `wanted`.
    pub(crate) fn evictable(&self, priority: u32, wanted: usize) -> usize {
        let Some(revocable) = self.revocable.as_deref() else { return 0 };
        let mut bytes = 0;
        for (_, terms) in revocable.by_priority.range((priority, Reverse(u64::MAX))..).rev() {
            if bytes >= wanted {
                break;
            }
            bytes += terms.bytes;
        }
        bytes
    }

    /// Evicts the oldest message of the lowest priority that waits, if that priority is `priority` or lower.
    pub(crate) fn evict(&mut self, priority: u32) -> Option<WithdrawnMessage> {
        let (&(lowest, _), terms) = self.revocable.as_deref()?.by_priority.last_key_value()?;
        let terms = Arc::clone(terms);
        if lowest >= priority { self.withdraw(&terms) } else { None }
    }

    /// Withdraws a message, or the part of it that was not cut; `None` if nothing of it waits.
    pub(crate) fn withdraw(&mut self, terms: &Arc<DeliveryTerms>) -> Option<WithdrawnMessage> {
        self.revocable.as_deref_mut()?.remove(terms);
        if let Some(rest) = self.holding_mut().and_then(|hold| hold.take_out(terms.number)) {
            self.buffer.on_taken(rest.len());
            self.gauge(terms.stream);
            return Some(WithdrawnMessage { terms: Arc::clone(terms), rest, begun: false });
        }
        let stream = terms.stream;
        let queue = self.queues.streams.entry(stream);
        let gone = queue.take_out(terms.number)?;
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
        Some(WithdrawnMessage { terms: Arc::clone(terms), rest: gone.rest, begun: gone.begun })
    }
}
