//! Settings that associations inherit from their socket, and then have as their own (RFC 6458 §7.5, §8).

use std::net::IpAddr;
use std::time::Duration;

use rustix::io::Errno;
use tresse_proto::{AssociationConfig, Reliability};

use crate::layout::Fields;

/// Style of a socket: one of the two interfaces of RFC 6458.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Style {
    /// One-to-one style, as TCP: `SOCK_STREAM`.
    OneToOne,
    /// One-to-many style, as UDP: `SOCK_SEQPACKET`.
    OneToMany,
}

/// Settings of one association, or of future ones.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Settings {
    /// Notifications that the program subscribed to: bit `kind - 0x8000`.
    pub(crate) events: u32,
    /// Defaults for messages that are sent without parameters.
    pub(crate) send: SendDefaults,
    /// Value returned with every received message (SCTP_CONTEXT).
    pub(crate) receive_context: u32,
    /// Greatest length of user data in a chunk (SCTP_MAXSEG); 0 leaves it to the path.
    pub(crate) max_segment: u32,
    /// Size of packets before SCTP_MAXSEG bounded them, and whether path MTU discovery was on.
    pub(crate) unbounded: Option<(usize, bool)>,
    /// True if the program is notified of potentially failed paths (RFC 7829 §7.3).
    pub(crate) exposes_pf: bool,
    /// Number of the shared key that authenticates data.
    pub(crate) active_key: u16,
    /// Name of the stream scheduler, if one was chosen.
    pub(crate) scheduler: Option<String>,
    /// Configuration of the scheduler as SCTP_SCHED gave it.
    pub(crate) scheduler_config: Vec<u8>,
    /// SACK frequency from before delayed SACKs were switched off.
    pub(crate) paused_sack_frequency: Option<u32>,
    /// Interval of heartbeats that are off, for when they are turned on again.
    pub(crate) paused_heartbeats: Option<Duration>,
    /// Heartbeat intervals that were set for single peer addresses, whether their heartbeats are on or off.
    pub(crate) address_heartbeats: Vec<(IpAddr, Duration)>,
}

/// SCTP_DEFAULT_SNDINFO and SCTP_DEFAULT_PRINFO.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct SendDefaults {
    pub(crate) stream: u16,
    pub(crate) flags: u16,
    /// Payload protocol identifier as the program passed it: in network byte order by convention.
    pub(crate) ppid: u32,
    pub(crate) context: u32,
    pub(crate) reliability: Reliability,
}

impl Settings {
    /// Returns whether the program subscribed to notifications of this kind.
    pub(crate) fn wants(&self, kind: u16) -> bool {
        self.events & event_bit(kind) != 0
    }

    /// Saves the SACK frequency before delayed SACKs are switched off; 1 means that they are off already.
    pub(crate) fn pause_delayed_sacks(&mut self, frequency: u32) {
        if frequency != 1 {
            self.paused_sack_frequency = Some(frequency);
        }
    }

    /// Subscribes to notifications of this kind, or ends the subscription.
    pub(crate) fn want(&mut self, kind: u16, on: bool) {
        if on { self.events |= event_bit(kind) } else { self.events &= !event_bit(kind) }
    }
}

fn event_bit(kind: u16) -> u32 {
    1_u32.checked_shl(u32::from(kind & 0x7fff)).unwrap_or(0)
}

/// Returns the reliability for a policy and its value (RFC 7496 §4), in the numbers of Linux.
///
/// # Errors
/// `INVAL` for an unknown policy.
pub(crate) fn reliability(policy: u16, value: u32) -> Result<Reliability, Errno> {
    match policy & PR_MASK {
        0 => Ok(Reliability::Full),
        PR_TTL => Ok(Reliability::Lifetime(Duration::from_millis(u64::from(value)))),
        PR_RTX => Ok(Reliability::Retransmissions(value)),
        _ => Ok(Reliability::Priority(value)),
    }
}

/// Returns the policy that flags and lifetime of `struct sctp_sndrcvinfo` select: a lifetime alone selects timed reliability, and
/// without both the message is reliable (RFC 6458 §5.3.2).
pub(crate) fn older_policy(flags: u16, lifetime: u32) -> u16 {
    let named = flags & PR_MASK;
    if named == 0 && lifetime != 0 { PR_TTL } else { named }
}

/// Returns the policy and the value for a reliability; the inverse of [`reliability`].
pub(crate) fn policy_of(reliability: Reliability) -> (u16, u32) {
    match reliability {
        Reliability::Full => (0, 0),
        Reliability::Lifetime(time) => (PR_TTL, u32::try_from(time.as_millis()).unwrap_or(u32::MAX)),
        Reliability::Retransmissions(count) => (PR_RTX, count),
        Reliability::Priority(priority) => (PR_PRIO, priority),
    }
}

/// Applies a `struct sctp_initmsg`; 0 leaves a setting unchanged. Returns the greatest RTO of INIT, in milliseconds.
pub(crate) fn init_message(config: &mut AssociationConfig, bytes: &[u8]) -> Result<u16, Errno> {
    let [outbound, inbound, attempts, timeout] = [0, 2, 4, 6].map(|at| bytes.u16_at(at));
    let (outbound, inbound, attempts, timeout) = (outbound?, inbound?, attempts?, timeout?);
    if outbound != 0 {
        config.outbound_streams = outbound;
    }
    if inbound != 0 {
        config.inbound_streams = inbound;
    }
    if attempts != 0 {
        config.max_init_retransmits = u32::from(attempts);
    }
    Ok(timeout)
}

/// Returns a time in milliseconds; `None` for 0.
pub(crate) fn some_millis(value: u32) -> Option<Duration> {
    (value != 0).then(|| Duration::from_millis(u64::from(value)))
}

pub(crate) const PR_MASK: u16 = 0x30;
pub(crate) const PR_TTL: u16 = 0x10;
pub(crate) const PR_RTX: u16 = 0x20;
pub(crate) const PR_PRIO: u16 = 0x30;

/// Headers of IPv6, UDP, SCTP and DATA.
pub(crate) const PACKET_OVERHEAD: usize = 40 + 8 + 12 + 16;
/// Greatest size in bytes for SO_SNDBUF and SO_RCVBUF.
pub(crate) const LARGEST_BUFFER: usize = 1 << 30;
