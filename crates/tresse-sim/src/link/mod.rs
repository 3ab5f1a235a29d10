//! One direction of a link: a drop-tail queue, a transmitter of constant rate, a propagation delay, losses.
//!
//! A link answers for each packet, at once and for good, whether and when it arrives. It has no clock and sees no
//! bytes, only lengths, so the simulator and a real-time emulator can both drive it.

mod impair;
mod queue;

use std::time::Duration;

use tresse_proto::Instant;

pub use impair::Loss;
pub use queue::QueueLimit;

use crate::seed::Generator;
use queue::DropTail;

/// What one direction of a link is like.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct LinkSpec {
    /// Bits a second on the transmitter; at least 1.
    pub rate: u64,
    /// Propagation delay, one way.
    pub delay: Duration,
    /// How much may wait for the transmitter.
    pub queue: QueueLimit,
    /// Which packets are lost.
    pub loss: Loss,
    /// Bytes that each packet occupies on the transmitter besides its own: the link layer's frame.
    pub framing: u32,
}

/// What becomes of a packet.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Its last bit is at the other end at this time.
    Arrives(Instant),
    /// It is gone.
    Dropped(Cause),
}

/// Why a packet is gone.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Cause {
    /// The queue had no room.
    QueueFull,
    /// The loss model struck.
    Loss,
}

impl Cause {
    /// The name that traces use.
    pub const fn name(self) -> &'static str {
        match self {
            Cause::QueueFull => "queue full",
            Cause::Loss => "lost",
        }
    }
}

/// What went through a link so far. Bytes are those of IP packets, framing not counted.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct LinkCounters {
    /// Packets offered.
    pub offered: u64,
    /// Packets dropped because the queue had no room.
    pub dropped_queue_full: u64,
    /// Packets that the loss model took.
    pub dropped_loss: u64,
    /// Packets that arrived.
    pub arrived: u64,
    /// Bytes of these.
    pub arrived_bytes: u64,
    /// Integral of the queue's length over time, in packet-nanoseconds.
    pub queue_packet_nanos: u128,
}

impl LinkCounters {
    /// Packets dropped, for whatever reason.
    pub fn dropped(&self) -> u64 {
        self.dropped_queue_full + self.dropped_loss
    }

    /// What was counted since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &LinkCounters) -> LinkCounters {
        LinkCounters {
            offered: self.offered - earlier.offered,
            dropped_queue_full: self.dropped_queue_full - earlier.dropped_queue_full,
            dropped_loss: self.dropped_loss - earlier.dropped_loss,
            arrived: self.arrived - earlier.arrived,
            arrived_bytes: self.arrived_bytes - earlier.arrived_bytes,
            queue_packet_nanos: self.queue_packet_nanos - earlier.queue_packet_nanos,
        }
    }
}

/// One direction of a link.
#[derive(Debug)]
pub struct Link {
    spec: LinkSpec,
    generator: Generator,
    queue: DropTail,
    /// When the transmitter has sent all it has accepted.
    free_at: Instant,
    counters: LinkCounters,
}

impl Link {
    /// A link with its own source of chance.
    pub fn new(spec: LinkSpec, generator: Generator) -> Self {
        Link {
            spec,
            generator,
            queue: DropTail::new(spec.queue),
            free_at: Instant::ZERO,
            counters: LinkCounters::default(),
        }
    }

    /// Takes an IP packet of `bytes`, and says what becomes of it. `now` never decreases.
    pub fn offer(&mut self, now: Instant, bytes: u32) -> Verdict {
        self.counters.offered += 1;
        self.queue.advance(now);
        let starts = self.free_at.max(now);
        if starts > now {
            if !self.queue.admits(bytes) {
                self.counters.dropped_queue_full += 1;
                return Verdict::Dropped(Cause::QueueFull);
            }
            self.queue.push(starts, bytes);
        }
        self.free_at = starts + self.transmission_time(bytes);
        if self.spec.loss.strikes(&mut self.generator) {
            self.counters.dropped_loss += 1;
            return Verdict::Dropped(Cause::Loss);
        }
        Verdict::Arrives(self.free_at + self.spec.delay)
    }

    /// Counts a packet of `bytes` that has come to the other end.
    pub fn arrived(&mut self, bytes: u32) {
        self.counters.arrived += 1;
        self.counters.arrived_bytes += u64::from(bytes);
    }

    /// Packets waiting at `now`.
    pub fn waiting(&mut self, now: Instant) -> usize {
        self.queue.advance(now);
        self.queue.len()
    }

    /// What went through so far.
    pub fn counters(&mut self, now: Instant) -> LinkCounters {
        self.queue.advance(now);
        LinkCounters { queue_packet_nanos: self.queue.packet_nanos(), ..self.counters }
    }

    /// The most packets that waited since the last call.
    pub fn take_longest_queue(&mut self, now: Instant) -> usize {
        self.queue.advance(now);
        self.queue.take_longest()
    }

    /// What it is like.
    pub fn spec(&self) -> &LinkSpec {
        &self.spec
    }

    /// Whole nanoseconds, rounded up, so that no packet leaves in no time.
    fn transmission_time(&self, bytes: u32) -> Duration {
        const BIT_NANOS_PER_BYTE: u64 = 8_000_000_000;
        let bytes = u64::from(bytes) + u64::from(self.spec.framing);
        Duration::from_nanos((bytes.saturating_mul(BIT_NANOS_PER_BYTE)).div_ceil(self.spec.rate.max(1)))
    }
}

#[cfg(test)]
mod tests;
