//! Counters of a link: packets carried, and packets lost by reason.

use super::Cause;

/// Counts of what went through a link so far. Bytes are those of IP packets, framing not counted.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct LinkCounters {
    /// Packets offered.
    pub offered: u64,
    /// Packets among these whose fate is decided: all but those that wait in a queue that decides at their turn.
    pub decided: u64,
    /// Packets dropped because the queue had no room.
    pub dropped_queue_full: u64,
    /// Packets that the loss model took.
    pub dropped_loss: u64,
    /// Packets that the queue dropped although there was room.
    pub dropped_early: u64,
    /// Packets sent while the link was out.
    pub dropped_outage: u64,
    /// Packets with bit errors in frame or IP header.
    pub dropped_damaged: u64,
    /// Packets larger than the link carries.
    pub dropped_too_large: u64,
    /// Packets that got a congestion mark where they would have been dropped early.
    pub marked: u64,
    /// Packets with bit errors, dropped or not.
    pub damaged: u64,
    /// Packets that arrive twice.
    pub duplicated: u64,
    /// Packets that are later than their turn.
    pub late: u64,
    /// Packets that arrived, copies included.
    pub arrived: u64,
    /// Bytes of these.
    pub arrived_bytes: u64,
    /// Time that its transmitter was busy, of packets that were lost on the way too, in nanoseconds.
    pub busy_nanos: u64,
    /// Integral of the queue's length over time, in packet-nanoseconds.
    pub queue_packet_nanos: u128,
}

impl LinkCounters {
    /// Packets dropped, for whatever reason.
    pub fn dropped(&self) -> u64 {
        self.dropped_queue_full
            + self.dropped_loss
            + self.dropped_early
            + self.dropped_outage
            + self.dropped_damaged
            + self.dropped_too_large
    }

    /// Packets and copies that are inside: neither dropped nor arrived.
    pub fn inside(&self) -> u64 {
        self.offered + self.duplicated - self.dropped() - self.arrived
    }

    /// Counts since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &LinkCounters) -> LinkCounters {
        LinkCounters {
            offered: self.offered - earlier.offered,
            decided: self.decided - earlier.decided,
            dropped_queue_full: self.dropped_queue_full - earlier.dropped_queue_full,
            dropped_loss: self.dropped_loss - earlier.dropped_loss,
            dropped_early: self.dropped_early - earlier.dropped_early,
            dropped_outage: self.dropped_outage - earlier.dropped_outage,
            dropped_damaged: self.dropped_damaged - earlier.dropped_damaged,
            dropped_too_large: self.dropped_too_large - earlier.dropped_too_large,
            marked: self.marked - earlier.marked,
            damaged: self.damaged - earlier.damaged,
            duplicated: self.duplicated - earlier.duplicated,
            late: self.late - earlier.late,
            arrived: self.arrived - earlier.arrived,
            arrived_bytes: self.arrived_bytes - earlier.arrived_bytes,
            busy_nanos: self.busy_nanos - earlier.busy_nanos,
            queue_packet_nanos: self.queue_packet_nanos - earlier.queue_packet_nanos,
        }
    }

    /// The counter of packets that were dropped for `cause`.
    pub(super) fn of(&mut self, cause: Cause) -> &mut u64 {
        match cause {
            Cause::QueueFull => &mut self.dropped_queue_full,
            Cause::Loss => &mut self.dropped_loss,
            Cause::Early => &mut self.dropped_early,
            Cause::Outage => &mut self.dropped_outage,
            Cause::Damage => &mut self.dropped_damaged,
            Cause::TooLarge => &mut self.dropped_too_large,
        }
    }
}
