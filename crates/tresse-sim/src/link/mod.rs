//! One direction of a link: a queue, a transmitter, a propagation delay, and impairments.
//!
//! A link decides for each packet whether and when it arrives: at once, or, if its queue decides later, when the packet
//! departs. The link has no clock and no bytes, only lengths, so the simulator and a real-time emulator can both drive
//! it.

mod bit_errors;
mod codel;
mod counters;
mod dynamics;
mod impair;
mod mtu;
mod queue;
mod red;

use std::time::Duration;

use tresse_proto::Instant;

pub use codel::CoDelSpec;
pub use counters::LinkCounters;
pub use dynamics::Change;
pub use impair::{GilbertElliott, ImpairmentSpec, Loss, Reordering};
pub use queue::QueueLimit;
pub use red::RedSpec;

use crate::seed::Seed;
use bit_errors::Damage;
use codel::CoDel;
use dynamics::Dynamics;
use impair::{Impairments, Losses};
use mtu::Mtu;
use queue::Fifo;
use red::{Red, RedDecision};

/// Properties of one direction of a link.
#[derive(Clone, PartialEq, Debug)]
pub struct LinkSpec {
    /// Bits per second on the transmitter; at least 1.
    pub rate: u64,
    /// Propagation delay, one way.
    pub delay: Duration,
    /// Limit of the queue in front of the transmitter.
    pub queue: QueueLimit,
    /// Queueing discipline.
    pub discipline: Discipline,
    /// Loss model.
    pub loss: Loss,
    /// Impairments of packets that are not lost.
    pub impairments: ImpairmentSpec,
    /// The largest IP packet that the link carries. Larger ones are dropped without notice, unless they may be fragmented.
    pub mtu: Option<u32>,
    /// Changes over time.
    pub changes: Vec<Change>,
    /// Bytes that each packet occupies on the transmitter besides its own: the frame of the link layer.
    pub framing: u32,
}

impl LinkSpec {
    /// A link with room for 100 packets, without impairments.
    pub fn new(rate: u64, delay: Duration) -> Self {
        LinkSpec {
            rate,
            delay,
            queue: QueueLimit::Packets(100),
            discipline: Discipline::DropTail,
            loss: Loss::None,
            impairments: ImpairmentSpec::default(),
            mtu: None,
            changes: Vec::new(),
            framing: 0,
        }
    }
}

/// Rule by which a queue drops packets before it is full.
#[derive(Copy, Clone, PartialEq, Debug, Default)]
pub enum Discipline {
    /// No such rule.
    #[default]
    DropTail,
    /// Random Early Detection: drops by the average queue length, when packets arrive.
    Red(RedSpec),
    /// Controlled delay: drops by the time that packets have waited, when they depart.
    CoDel(CoDelSpec),
}

/// Properties of an IP packet that a link uses.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct LinkPacket {
    /// Length in bytes.
    pub bytes: u32,
    /// True if the packet may be fragmented where it is too long.
    pub may_fragment: bool,
    /// True if the hosts of the packet support ECN (RFC 3168 §5).
    pub markable: bool,
}

impl From<u32> for LinkPacket {
    /// A packet of this length that must not be fragmented and cannot be marked.
    fn from(bytes: u32) -> Self {
        LinkPacket { bytes, may_fragment: false, markable: false }
    }
}

/// Fate of a packet on a link.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum PacketFate {
    /// The packet arrives; its last bit is at the other end at this time.
    Arrives(Instant),
    /// The packet arrives damaged, duplicated or marked.
    Altered {
        /// Time at which its last bit is at the other end.
        at: Instant,
        /// True if bits of the packet are flipped; [`Link::flips`] returns them.
        damaged: bool,
        /// True if the packet arrives a second time, immediately after the first.
        twice: bool,
        /// True if the packet has a congestion mark in place of an early drop.
        marked: bool,
    },
    /// The packet is dropped.
    Dropped(Cause),
    /// The packet waits; [`Link::depart`] decides later.
    Waits,
}

/// Reason for which a packet was dropped.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Cause {
    /// The queue had no room.
    QueueFull,
    /// The loss model dropped the packet.
    Loss,
    /// The queue dropped the packet although there was room.
    Early,
    /// The link had an outage.
    Outage,
    /// The packet had bit errors in its frame or IP header, which fail every check.
    Damage,
    /// The packet was larger than the link carries.
    TooLarge,
}

impl Cause {
    /// Name of the cause in traces.
    pub const fn name(self) -> &'static str {
        match self {
            Cause::QueueFull => "queue full",
            Cause::Loss => "lost",
            Cause::Early => "dropped early",
            Cause::Outage => "outage",
            Cause::Damage => "damaged header",
            Cause::TooLarge => "too large",
        }
    }
}

/// Result of one transmission opportunity: fates of waiting packets, oldest first.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Dequeued {
    /// Number of packets that were dropped, for [`Cause::Early`].
    pub dropped: u32,
    /// Fate of the next packet, if there was one.
    pub next: Option<PacketFate>,
}

/// One direction of a link.
#[derive(Debug)]
pub struct Link {
    spec: LinkSpec,
    queue: Queue,
    /// Time at which the transmitter has sent all accepted packets.
    free_at: Instant,
    dynamics: Option<Box<Dynamics>>,
    mtu: Mtu,
    losses: Losses,
    impairments: Option<Box<Impairments>>,
    counters: LinkCounters,
}

#[derive(Debug)]
enum Queue {
    Fifo { fifo: Fifo, red: Option<Box<Red>> },
    CoDel(Box<CoDel>),
}

impl Link {
    /// A link with its own random generators, derived from its name.
    pub fn new(spec: LinkSpec, seed: Seed, name: &str) -> Self {
        let red = match spec.discipline {
            Discipline::Red(red) => Some(Box::new(Red::new(red, seed.generator(&format!("{name} red"))))),
            _ => None,
        };
        let queue = match spec.discipline {
            Discipline::CoDel(codel) => Queue::CoDel(Box::new(CoDel::new(codel, spec.queue))),
            _ => Queue::Fifo { fifo: Fifo::new(spec.queue), red },
        };
        let changing = !spec.changes.is_empty();
        Link {
            queue,
            free_at: Instant::ZERO,
            dynamics: changing.then(|| Box::new(Dynamics::new(&spec.changes, spec.rate, spec.delay))),
            mtu: Mtu::new(spec.mtu, &spec.changes),
            losses: Losses::new(spec.loss, seed.generator(name)),
            impairments: Impairments::new(&spec.impairments, seed, name).map(Box::new),
            counters: LinkCounters::default(),
            spec,
        }
    }

    /// Takes an IP packet, and returns its fate. `now` never decreases.
    pub fn offer(&mut self, now: Instant, packet: impl Into<LinkPacket>) -> PacketFate {
        let packet = packet.into();
        let LinkPacket { bytes, may_fragment, .. } = packet;
        let mut marked = false;
        self.counters.offered += 1;
        if self.mtu.at(now).is_some_and(|mtu| bytes > mtu) && !may_fragment {
            return self.drop(Cause::TooLarge);
        }
        let starts = self.free_at.max(now);
        match &mut self.queue {
            Queue::Fifo { fifo, red } => {
                fifo.advance(now);
                if starts > now {
                    match admit(fifo, red.as_deref_mut(), now, packet) {
                        Ok(with_mark) => marked = with_mark,
                        Err(refusal) => return self.drop(refusal),
                    }
                    fifo.push(now, starts, bytes);
                }
            }
            Queue::CoDel(codel) => {
                if starts > now || !codel.is_empty() {
                    return if codel.push(now, packet) {
                        PacketFate::Waits
                    } else {
                        self.drop(Cause::QueueFull)
                    };
                }
            }
        }
        self.transmit(starts, bytes, marked)
    }

    /// Returns the time at which [`Link::depart`] is to be called, as long as packets wait for their fate.
    pub fn next_departure(&self) -> Option<Instant> {
        match &self.queue {
            Queue::CoDel(codel) if !codel.is_empty() => Some(self.free_at),
            _ => None,
        }
    }

    /// Serves the packets whose fate was [`PacketFate::Waits`], because the transmitter is free. `now` is the time that
    /// [`Link::next_departure`] returned.
    pub fn depart(&mut self, now: Instant) -> Dequeued {
        let Queue::CoDel(codel) = &mut self.queue else { return Dequeued { dropped: 0, next: None } };
        let served = codel.serve(now);
        self.counters.dropped_early += u64::from(served.dropped);
        let next = served.next.map(|bytes| self.transmit(now, bytes, served.marked));
        Dequeued { dropped: served.dropped, next }
    }

    /// Returns the flipped bits of the last packet whose fate was decided, counted from the end of its IP header.
    pub fn flips(&self) -> &[u32] {
        self.impairments.as_ref().map_or(&[], |impairments| impairments.flips())
    }

    /// Counts a packet of `bytes` bytes that has arrived at the other end.
    pub fn arrived(&mut self, bytes: u32) {
        self.counters.arrived += 1;
        self.counters.arrived_bytes += u64::from(bytes);
    }

    /// Returns the number of packets waiting at `now`.
    pub fn waiting(&mut self, now: Instant) -> usize {
        self.occupancy(now).packets()
    }

    /// Returns the counts so far.
    pub fn counters(&mut self, now: Instant) -> LinkCounters {
        let queue_packet_nanos = self.occupancy(now).packet_nanos();
        // The accepted packets are transmitted without a pause from now on.
        let to_come = self.free_at.since(now).as_nanos() as u64;
        let busy_nanos = self.counters.busy_nanos.saturating_sub(to_come);
        let undecided = match &self.queue {
            Queue::Fifo { .. } => 0,
            Queue::CoDel(codel) => codel.occupancy.packets() as u64,
        };
        let decided = self.counters.offered - undecided;
        LinkCounters { decided, queue_packet_nanos, busy_nanos, ..self.counters }
    }

    /// Returns the most packets that waited since the last call.
    pub fn take_longest_queue(&mut self, now: Instant) -> usize {
        self.occupancy(now).take_longest()
    }

    /// Returns the properties of the link.
    pub fn spec(&self) -> &LinkSpec {
        &self.spec
    }

    /// Transmits an IP packet of `bytes` bytes from `starts` on.
    fn transmit(&mut self, starts: Instant, bytes: u32, marked: bool) -> PacketFate {
        self.counters.marked += u64::from(marked);
        let occupied = u64::from(bytes) + u64::from(self.spec.framing);
        match &mut self.dynamics {
            None => self.free_at = starts + transmission_time(occupied, self.spec.rate),
            Some(dynamics) => self.free_at = dynamics.transmit(starts, occupied),
        }
        self.counters.busy_nanos += (self.free_at - starts).as_nanos() as u64;
        if let Some(dynamics) = &mut self.dynamics {
            if let Some(loss) = dynamics.new_loss.take() {
                self.losses.set_model(loss);
            }
            if dynamics.outage {
                return self.drop(Cause::Outage);
            }
        }
        if self.losses.strike() {
            return self.drop(Cause::Loss);
        }
        let at = match &mut self.dynamics {
            None => self.free_at + self.spec.delay,
            Some(dynamics) => dynamics.arrival(self.free_at),
        };
        if self.impairments.is_none() && !marked {
            PacketFate::Arrives(at)
        } else {
            self.impair(at, bytes, marked)
        }
    }

    /// Draws the impairments of a packet that would have arrived at `at`.
    fn impair(&mut self, at: Instant, bytes: u32, marked: bool) -> PacketFate {
        let Some(impairments) = &mut self.impairments else {
            return PacketFate::Altered { at, damaged: false, twice: false, marked };
        };
        let impairment = impairments.next(bytes, self.spec.framing);
        self.counters.damaged += u64::from(impairment.damage != Damage::None);
        if impairment.damage == Damage::Header {
            return self.drop(Cause::Damage);
        }
        self.counters.late += u64::from(!impairment.extra_delay.is_zero());
        self.counters.duplicated += u64::from(impairment.twice);
        let at = impairments.delay(at) + impairment.extra_delay;
        let damaged = impairment.damage == Damage::Payload;
        if damaged || impairment.twice || marked {
            PacketFate::Altered { at, damaged, twice: impairment.twice, marked }
        } else {
            PacketFate::Arrives(at)
        }
    }

    fn drop(&mut self, cause: Cause) -> PacketFate {
        *self.counters.of(cause) += 1;
        PacketFate::Dropped(cause)
    }

    /// Returns the occupancy of the queue, counted up to `now`.
    fn occupancy(&mut self, now: Instant) -> &mut queue::Occupancy {
        let occupancy = match &mut self.queue {
            Queue::Fifo { fifo, .. } => {
                fifo.advance(now);
                &mut fifo.occupancy
            }
            Queue::CoDel(codel) => &mut codel.occupancy,
        };
        occupancy.integrate(now);
        occupancy
    }
}

/// Admits a packet to the queue; returns whether it is marked.
///
/// # Errors
/// Reason for which the packet is dropped.
fn admit(fifo: &Fifo, red: Option<&mut Red>, now: Instant, packet: LinkPacket) -> Result<bool, Cause> {
    let (waiting, idle_since) = (fifo.occupancy.packets(), fifo.idle_since());
    let decision = red.map_or(RedDecision::Admit, |red| red.judge(now, waiting, idle_since, packet.markable));
    match decision {
        RedDecision::DropEarly => Err(Cause::Early),
        RedDecision::DropFull => Err(Cause::QueueFull),
        _ if !fifo.occupancy.admits(packet.bytes) => Err(Cause::QueueFull),
        RedDecision::Admit => Ok(false),
        RedDecision::Mark => Ok(true),
    }
}

/// Returns the transmission time in whole nanoseconds, rounded up, so that it is never 0.
fn transmission_time(bytes: u64, rate: u64) -> Duration {
    Duration::from_nanos(bytes.saturating_mul(BIT_NANOS_PER_BYTE).div_ceil(rate.max(1)))
}

/// Transmission time of a byte at 1 bit/s, in nanoseconds.
const BIT_NANOS_PER_BYTE: u64 = 8_000_000_000;

#[cfg(test)]
mod tests;
