//! Reliability of a message (RFC 3758, RFC 7496), and counters of abandoned messages.
//!
//! This module has the policies of partial reliability (RFC 3758 §4.1, RFC 7496 §3) and the rules by which they abandon a
//! message. It is independent of the state of the message, which may be queued or have fragments in flight.

use std::ops::AddAssign;
use std::sync::Arc;
use std::time::Duration;

use tresse_policy::Instant;
use tresse_wire::{Ppid, StreamId};

/// Reliability of a message: the rule by which it is abandoned.
///
/// All but [`Full`](Self::Full) need a peer that supports FORWARD TSN. With any other peer, data that was sent once is
/// retransmitted until it arrives. A lifetime then still abandons a message of which nothing was sent yet, as in the
/// base protocol (RFC 3758 §4.1); the other policies have no effect.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Reliability {
    /// The message is retransmitted until it arrives.
    #[default]
    Full,
    /// The message is abandoned this long after `send`: "timed reliability" (RFC 3758 §4.1).
    Lifetime(Duration),
    /// The message is abandoned if one of its chunks would be retransmitted more often than this, however its loss was detected
    /// (RFC 7496 §3.1). With 0 each chunk is sent once.
    Retransmissions(u32),
    /// The message is abandoned if the full send buffer needs room for a message with a lower number, or for one with
    /// [`Full`](Self::Full) reliability (RFC 7496 §3.2). 0 is the highest priority.
    Priority(u32),
}

impl Reliability {
    /// Returns the lowest priority number from which on messages are evicted for a message with this reliability; `None` if the
    /// message waits for room instead.
    pub(crate) fn evicts_from(self) -> Option<u32> {
        match self {
            Reliability::Full => Some(0),
            Reliability::Priority(priority) => priority.checked_add(1),
            Reliability::Lifetime(_) | Reliability::Retransmissions(_) => None,
        }
    }
}

/// Reliability and context of a message that may be abandoned or has a context. Kept with the message while it is queued, and
/// with each fragment that was sent.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct DeliveryTerms {
    /// Number of the message in the association; later messages have higher ones.
    pub(crate) number: u64,
    pub(crate) reliability: Reliability,
    /// Time from which on no part of the message may be sent; never, for most policies.
    pub(crate) expires: Instant,
    /// True if the message may be abandoned after a part was sent: the peer supports FORWARD TSN.
    pub(crate) revocable: bool,
    pub(crate) stream: StreamId,
    pub(crate) ppid: Ppid,
    pub(crate) context: u64,
    pub(crate) unordered: bool,
    /// Length of the message in bytes.
    pub(crate) bytes: usize,
}

impl DeliveryTerms {
    /// Returns the terms that are kept with the sent chunks of the message: it may still be abandoned, or has a context.
    pub(crate) fn kept(self: Arc<Self>) -> Option<Arc<Self>> {
        if self.revocable || self.reliability == Reliability::Full {
            return Some(self);
        }
        // Without FORWARD TSN a message that was sent is reliable.
        let reliable =
            || DeliveryTerms { reliability: Reliability::Full, expires: Instant::FAR_FUTURE, ..*self };
        (self.context != 0).then(|| Arc::new(reliable()))
    }

    /// Returns whether the lifetime of the message is over.
    pub(crate) fn is_expired(&self, now: Instant) -> bool {
        self.expires <= now
    }

    /// Returns whether a lost chunk that was sent `sends` times must not be sent again (RFC 7496 §3.1).
    pub(crate) fn is_exhausted(&self, sends: u16) -> bool {
        matches!(self.reliability, Reliability::Retransmissions(limit) if u32::from(sends) > limit)
    }

    /// Returns the priority, if the policy is [`Reliability::Priority`].
    pub(crate) fn priority(&self) -> Option<u32> {
        match self.reliability {
            Reliability::Priority(priority) => Some(priority),
            _ => None,
        }
    }
}

/// Number of messages that were abandoned under one policy.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Abandoned {
    /// Messages of which nothing was sent.
    pub unsent: u64,
    /// Messages of which a part was sent; they may have arrived.
    pub sent: u64,
}

/// Number of abandoned messages by policy (RFC 7496 §4.3, §4.4).
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Abandonments {
    /// By [`Reliability::Lifetime`].
    pub lifetime: Abandoned,
    /// By [`Reliability::Retransmissions`].
    pub retransmissions: Abandoned,
    /// By [`Reliability::Priority`].
    pub priority: Abandoned,
}

impl Abandonments {
    /// Returns the sum over all policies.
    pub fn total(&self) -> Abandoned {
        let mut total = Abandoned::default();
        for part in [self.lifetime, self.retransmissions, self.priority] {
            total += part;
        }
        total
    }

    /// Counts one more abandoned message.
    pub(crate) fn note(&mut self, reliability: Reliability, sent: bool) {
        let policy = match reliability {
            Reliability::Lifetime(_) => &mut self.lifetime,
            Reliability::Retransmissions(_) => &mut self.retransmissions,
            Reliability::Priority(_) => &mut self.priority,
            Reliability::Full => return,
        };
        *policy += Abandoned { unsent: u64::from(!sent), sent: u64::from(sent) };
    }
}

impl AddAssign for Abandoned {
    fn add_assign(&mut self, other: Abandoned) {
        self.unsent += other.unsent;
        self.sent += other.sent;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::event::SendOptions;

    fn terms(reliability: Reliability, revocable: bool) -> Option<Arc<DeliveryTerms>> {
        let options = SendOptions { reliability, ..SendOptions::default() };
        options.terms(Instant::from_nanos(50), 1, 10, revocable)
    }

    #[test]
    fn a_lifetime_counts_from_the_call_and_is_over_when_it_has_passed() {
        let terms = terms(Reliability::Lifetime(Duration::from_nanos(100)), true).expect("a terms");
        assert!(!terms.is_expired(Instant::from_nanos(149)));
        assert!(terms.is_expired(Instant::from_nanos(150)));
        assert!(!terms.is_exhausted(u16::MAX));
    }

    #[test]
    fn the_limit_counts_retransmissions_not_transmissions() {
        let terms = terms(Reliability::Retransmissions(2), true).expect("a terms");
        assert_eq!([1, 2, 3, 4].map(|sends| terms.is_exhausted(sends)), [false, false, true, true]);
        assert!(!terms.is_expired(Instant::from_nanos(u64::MAX - 2)));
    }

    #[test]
    fn without_forward_tsn_only_lifetimes_mean_anything() {
        let policies = [
            Reliability::Full,
            Reliability::Retransmissions(0),
            Reliability::Priority(9),
            Reliability::Lifetime(Duration::ZERO),
        ];
        assert_eq!(policies.map(|policy| terms(policy, false).is_some()), [false, false, false, true]);
        assert_eq!(policies.map(|policy| terms(policy, true).is_some()), [false, true, true, true]);
    }

    #[test]
    fn only_what_ranks_higher_takes_the_place_of_others() {
        assert_eq!(Reliability::Full.evicts_from(), Some(0));
        assert_eq!(Reliability::Priority(0).evicts_from(), Some(1));
        assert_eq!(Reliability::Priority(u32::MAX).evicts_from(), None);
        assert_eq!(Reliability::Lifetime(Duration::from_secs(1)).evicts_from(), None);
        assert_eq!(Reliability::Retransmissions(7).evicts_from(), None);
    }
}
