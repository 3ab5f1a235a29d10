//! Counters of a link: packets carried, and packets lost by reason.

use super::Cause;

/// Counts of packets on a link so far. Bytes are those of IP packets, without framing.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct LinkCounters {
    /// Packets offered.
    pub offered: u64,
    /// Packets among these whose fate is decided: all except those waiting in a queue that decides when their turn comes.
    pub decided: u64,
    /// Packets dropped because the queue had no room.
    pub dropped_queue_full: u64,
    /// Packets that the loss model dropped.
    pub dropped_loss: u64,
    /// Packets that the queue dropped although there was room.
    pub dropped_early: u64,
    /// Packets sent during an outage of the link.
    pub dropped_outage: u64,
    /// Packets with bit errors in frame or IP header.
    pub dropped_damaged: u64,
    /// Packets larger than the link carries.
    pub dropped_too_large: u64,
    /// Packets that got a congestion mark in place of an early drop.
    pub marked: u64,
    /// Packets with bit errors, dropped or not.
    pub damaged: u64,
    /// Packets that arrive twice.
    pub duplicated: u64,
    /// Packets that arrived later than in order.
    pub late: u64,
    /// Packets that arrived, copies included.
    pub arrived: u64,
    /// Bytes of these packets.
    pub arrived_bytes: u64,
    /// Time that the transmitter was busy, also with packets that were lost afterwards, in nanoseconds.
    pub busy_nanos: u64,
    /// Integral of the queue's length over time, in packet-nanoseconds.
    pub queue_packet_nanos: u128,
}

impl LinkCounters {
    /// Returns the number of packets dropped for any reason.
    pub fn dropped(&self) -> u64 {
        self.dropped_queue_full
            + self.dropped_loss
            + self.dropped_early
            + self.dropped_outage
            + self.dropped_damaged
            + self.dropped_too_large
    }

    /// Returns the number of packets and copies on the link: neither dropped nor arrived.
    pub fn inside(&self) -> u64 {
        self.offered + self.duplicated - self.dropped() - self.arrived
    }

    /// Returns the counts since `earlier`.
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

    /// Returns the counter of packets that were dropped for `cause`.
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
