//! Bytes in proportion to weights: the engine of `fair_bandwidth` and `weighted_fair`.
//!
//! Worst-case fair weighted fair queueing (WF2Q+; Bennett and Zhang, "Hierarchical packet fair queueing
//! algorithms", 1997). A stream's *start* is its bytes sent over its weight; virtual time is what the
//! start of all would be, were service perfectly even. Of the streams that are not ahead of it, that
//! which would finish its next piece first is served. So nobody is ever more than about one message
//! ahead of or behind its share, however many streams there are and however their weights differ;
//! picking the smallest start alone would serve light streams in long rows.
//!
//! Starts and finishes are sorted into slots, by classes of weights within a factor of two, at 1/32 of
//! a packet: amortised constant cost. Service is charged exactly; only its order is that coarse.

use tresse_wire::StreamId;

use super::list::{Link, Linked};
use super::slots::Slots;
use super::{Backlog, Place, Queued, Removed, Taken};
use crate::stream_table::StreamTable;

/// Virtual time: bytes over weight, in units of 2^-20. A lifetime of an association never fills it.
type VirtualTime = u128;

const UNIT_BITS: u32 = 20;

/// The largest piece that an order by finish tells apart, bytes: more than common packets hold. Without
/// interleaving whole messages go, but whoever had a long one then waits until the others caught up.
const LONGEST_PIECE: usize = 2048;

/// A slot is 2^6 bytes for the lowest weight of its class: 32 slots a piece.
const SLOT_BITS: u32 = UNIT_BITS + 6;

/// Classes of weights: from 2^class to below 2^(class + 1).
const CLASSES: usize = u16::BITS as usize;

/// Streams that share by weight.
#[derive(Default)]
pub(super) struct FairQueue {
    flows: StreamTable<Flow>,
    /// Streams that have had more than their share so far, by start.
    ahead: Sorted,
    /// The others that have data, by finish of their next piece.
    eligible: Sorted,
    now: VirtualTime,
    /// Sum of the weights of all streams with data.
    weights: u64,
}

/// One stream, in 20 bytes: with thousands of them the caches decide what a decision costs.
#[derive(Copy, Clone, Debug)]
struct Flow {
    start: Packed,
    /// At least 1.
    weight: u16,
    standing: Standing,
    link: Link,
}

/// Virtual time in 96 bits, which are plenty.
#[derive(Copy, Clone, Default, Debug)]
struct Packed([u32; 3]);

/// Where a stream is sorted in, with its list there.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Standing {
    Idle,
    Ahead(u8),
    Eligible(u8),
}

/// Slots for each class of weights that is in use.
#[derive(Default)]
struct Sorted {
    classes: Vec<Slots>,
    /// A bit for each class with streams.
    occupied: u16,
}

impl FairQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.weights == 0
    }

    pub(super) fn weight(&self, stream: StreamId) -> u16 {
        self.flows.get(stream).map_or(1, |flow| flow.weight)
    }

    /// Changes a weight; counts from the next piece on. Zero counts as 1.
    pub(super) fn set_weight(&mut self, stream: StreamId, weight: u16) {
        let active = self.flows.entry(stream).standing != Standing::Idle;
        self.leave(stream);
        self.flows.entry(stream).weight = weight.max(1);
        if active {
            self.join(stream);
        }
    }

    pub(super) fn on_queued(&mut self, queued: Queued) {
        let Queued { stream, was_idle, place, .. } = queued;
        if !was_idle && place == Place::Tail {
            return;
        }
        let flow = self.flows.entry(stream);
        if flow.standing == Standing::Idle {
            // What it did not use is gone, what it had too much of is not.
            flow.start = Packed::new(flow.start.unpacked().max(self.now));
            self.join(stream);
        } else {
            self.refresh(stream);
        }
    }

    pub(super) fn next(&mut self, backlog: &dyn Backlog) -> Option<StreamId> {
        loop {
            self.promote(backlog);
            // By the ends of slots: by their beginnings, light streams in their wide slots would go before
            // heavy ones that finish earlier, and in rows.
            if let Some((_, stream)) = self.eligible.first_by(|number, class| slot_start(number + 1, class)) {
                return Some(stream);
            }
            // All are ahead of their shares: time passes to where the first is not.
            let (earliest, _) = self.ahead.first_by(slot_start)?;
            self.now = self.now.max(earliest);
        }
    }

    pub(super) fn on_taken(&mut self, taken: Taken) {
        let Taken { stream, bytes, stream_empty, .. } = taken;
        let served = (bytes as u64) << UNIT_BITS;
        let flow = self.flows.entry(stream);
        let share = VirtualTime::from(served / u64::from(flow.weight));
        flow.start = Packed::new(flow.start.unpacked() + share);
        self.now += VirtualTime::from(served / self.weights.max(1));
        if stream_empty {
            self.leave(stream);
        } else {
            self.refresh(stream);
        }
    }

    pub(super) fn on_removed(&mut self, removed: Removed) {
        if removed.stream_empty {
            self.leave(removed.stream);
        } else if removed.ahead == 0 {
            self.refresh(removed.stream);
        }
    }

    /// Streams that virtual time has caught up with become eligible.
    fn promote(&mut self, backlog: &dyn Backlog) {
        let mut classes = self.ahead.occupied;
        while classes != 0 {
            let class = classes.trailing_zeros();
            classes &= classes - 1;
            let slots = &mut self.ahead.classes[class as usize];
            let due = slot(self.now, class);
            while let Some(list) = slots.take_up_to(due) {
                let mut next = list.front();
                while let Some(stream) = next {
                    next = list.behind(&mut self.flows, stream);
                    let Flow { start, weight, .. } = *self.flows.entry(stream);
                    let start = start.unpacked();
                    let standing = if slot(start, class) > due {
                        // It stood in the last slot for want of a later one.
                        Standing::Ahead(slots.insert(&mut self.flows, slot(start, class), stream))
                    } else {
                        let piece = backlog.head_bytes(stream).min(LONGEST_PIECE) as u64;
                        let finish = start + VirtualTime::from((piece << UNIT_BITS) / u64::from(weight));
                        Standing::Eligible(self.eligible.insert(&mut self.flows, class, finish, stream))
                    };
                    self.flows.entry(stream).standing = standing;
                }
            }
            if slots.is_empty() {
                self.ahead.occupied &= !(1 << class);
            }
        }
    }

    /// Sorts an idle stream in by its start.
    fn join(&mut self, stream: StreamId) {
        let Flow { start, weight, .. } = *self.flows.entry(stream);
        self.weights += u64::from(weight);
        let position = self.ahead.insert(&mut self.flows, class(weight), start.unpacked(), stream);
        self.flows.entry(stream).standing = Standing::Ahead(position);
    }

    fn leave(&mut self, stream: StreamId) {
        let flow = self.flows.entry(stream);
        let (weight, standing) = (flow.weight, std::mem::replace(&mut flow.standing, Standing::Idle));
        match standing {
            Standing::Idle => return,
            Standing::Ahead(list) => self.ahead.remove(&mut self.flows, class(weight), list, stream),
            Standing::Eligible(list) => self.eligible.remove(&mut self.flows, class(weight), list, stream),
        }
        self.weights -= u64::from(weight);
    }

    /// The start or the next piece of an active stream changed.
    fn refresh(&mut self, stream: StreamId) {
        self.leave(stream);
        self.join(stream);
    }
}

impl Sorted {
    fn insert(&mut self, flows: &mut StreamTable<Flow>, class: u32, at: VirtualTime, stream: StreamId) -> u8 {
        let index = class as usize;
        if index >= self.classes.len() {
            self.classes.resize_with((index + 1).min(CLASSES), Slots::default);
        }
        self.occupied |= 1 << class;
        self.classes[index].insert(flows, slot(at, class), stream)
    }

    fn remove(&mut self, flows: &mut StreamTable<Flow>, class: u32, position: u8, stream: StreamId) {
        let slots = &mut self.classes[class as usize];
        slots.remove(flows, position, stream);
        if slots.is_empty() {
            self.occupied &= !(1 << class);
        }
    }

    /// The first stream of all classes, going by an instant of its slot, with that instant.
    fn first_by(&self, instant: impl Fn(u64, u32) -> VirtualTime) -> Option<(VirtualTime, StreamId)> {
        let mut first: Option<(VirtualTime, StreamId)> = None;
        let mut classes = self.occupied;
        while classes != 0 {
            let class = classes.trailing_zeros();
            classes &= classes - 1;
            let front = self.classes[class as usize].front();
            let found = front.map(|(number, stream)| (instant(number, class), stream));
            first = match (first, found) {
                (Some(first), Some(found)) if first.0 <= found.0 => Some(first),
                (first, found) => found.or(first),
            };
        }
        first
    }
}

impl Default for Flow {
    fn default() -> Self {
        Flow { start: Packed::default(), weight: 1, standing: Standing::Idle, link: Link::default() }
    }
}

impl Linked for Flow {
    fn link(&mut self) -> &mut Link {
        &mut self.link
    }
}

impl Packed {
    fn new(time: VirtualTime) -> Self {
        Packed([time as u32, (time >> 32) as u32, (time >> 64) as u32])
    }

    fn unpacked(self) -> VirtualTime {
        let [low, middle, high] = self.0.map(VirtualTime::from);
        low | middle << 32 | high << 64
    }
}

fn class(weight: u16) -> u32 {
    weight.max(1).ilog2()
}

/// Width of the slots of a class, as a power of two of virtual time.
fn width(class: u32) -> u32 {
    SLOT_BITS - class
}

/// The slot of a class that an instant of virtual time lies in.
fn slot(at: VirtualTime, class: u32) -> u64 {
    (at >> width(class)) as u64
}

/// When a slot of a class begins.
fn slot_start(number: u64, class: u32) -> VirtualTime {
    VirtualTime::from(number) << width(class)
}
