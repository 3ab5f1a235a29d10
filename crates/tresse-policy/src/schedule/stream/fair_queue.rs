//! Bytes in proportion to weights: the algorithm of `fair_bandwidth` and `weighted_fair`.
//!
//! Worst-case fair weighted fair queueing (WF2Q+; Bennett and Zhang, "Hierarchical packet fair queueing algorithms",
//! 1997). A stream's *start* is its bytes sent, divided by its weight. Virtual time is the start that all streams would
//! have with perfectly even service. Among the streams whose start is not later than virtual time, the stream that
//! would finish its next piece first is served. So no stream is more than about one message ahead of or behind its
//! share, with any number of streams and any weights. A rule by the smallest start alone would serve streams of low
//! weight one after the other, in long runs.
//!
//! Starts and finishes are sorted into slots of 1/32 of a packet, by classes of weights within a factor of two, at
//! amortised constant cost. Service is charged exactly; only its order is that coarse. The entries of the order have
//! all values of a decision, because a look-up of each stream would cost more the more streams there are. So other
//! changes of a stream (its data is withdrawn, its weight changes) are noted beside the order. They are applied when it
//! is the stream's turn, or after a round of all streams.

use tresse_wire::StreamId;

use super::blocks::{Arena, Queue};
use super::slots::Slots;
use super::{Backlog, Queued, Removed, Taken};
use crate::stream_table::StreamTable;

/// Virtual time since the beginning of the era: bytes divided by weight, in units of 2^-20.
type VirtualTime = u64;

const UNIT_BITS: u32 = 20;

/// Length of an era, after which virtual time is set back by as much: four terabytes for each unit of weight. It is a
/// multiple of the span of the widest slots' ring.
const ERA: VirtualTime = 1 << 62;

/// The largest piece that the order by finish distinguishes, in bytes: more than common packets hold. Without
/// interleaving whole messages are sent; a stream with a longer message then waits until the others have caught up.
const LONGEST_PIECE: usize = 2048;

/// Width of a slot: 2^6 bytes for the lowest weight of its class, so that a piece has 32 slots.
const SLOT_BITS: u32 = UNIT_BITS + 6;

/// Classes of weights: from 2^class to below 2^(class + 1).
const CLASSES: usize = u16::BITS as usize;

/// Decisions, beside one for each stream with data, after which all noted changes are applied.
const PATIENCE: usize = 64;

/// Streams that are served in proportion to their weights.
#[derive(Default)]
pub(super) struct FairQueue {
    flows: StreamTable<Flow>,
    entries: Arena<Entry>,
    /// Streams that have had more than their share so far, by start.
    ahead: Sorted,
    /// The other streams with data, by finish of their next piece.
    eligible: Sorted,
    /// The entry of the stream that was last selected, with its class: the first entry of this class in `eligible`.
    named: Option<(u32, Entry)>,
    now: VirtualTime,
    /// Sum of the weights of all streams with data.
    weights: u64,
    /// Number of streams with data.
    active: usize,
    /// Number of streams in the order with noted changes.
    noted: usize,
    /// Decisions since there are noted changes.
    waited: usize,
}

/// One stream.
#[derive(Copy, Clone, Debug)]
struct Flow {
    /// Outdated while the stream has an entry in the order.
    start: VirtualTime,
    /// Service to be added to the start of the stream's entry, when the entry is reached.
    owed: VirtualTime,
    /// At least 1.
    weight: u16,
    /// Weight in the stream's entry; 0 without an entry.
    entered: u16,
    /// True if the stream has data.
    active: bool,
}

/// Place of a stream in the order; a stream has at most one.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
struct Entry {
    start: VirtualTime,
    stream: StreamId,
    weight: u16,
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
        self.active == 0
    }

    pub(super) fn weight(&self, stream: StreamId) -> u16 {
        self.flows.get(stream).map_or(1, |flow| flow.weight)
    }

    /// Changes a weight; zero counts as 1. The bytes by which the stream is ahead of its share, or behind it, stay the same.
    pub(super) fn set_weight(&mut self, stream: StreamId, weight: u16) {
        let now = self.now;
        self.change(stream, |flow| {
            let before = std::mem::replace(&mut flow.weight, weight.max(1));
            if flow.entered == 0 {
                flow.start = reweighed(flow.start, now, before, flow.weight);
            }
        });
    }

    pub(super) fn on_queued(&mut self, queued: Queued) {
        let Queued { stream, was_idle, .. } = queued;
        if !was_idle {
            return;
        }
        let now = self.now;
        let mut enters = false;
        let flow = self.change(stream, |flow| {
            flow.active = true;
            if flow.entered == 0 {
                // An idle stream loses the service that it did not use, but stays ahead if it had more than its share.
                flow.start = flow.start.max(now);
                flow.entered = flow.weight;
                enters = true;
            }
        });
        if enters {
            self.insert_ahead(Entry { start: flow.start, stream, weight: flow.weight });
        }
    }

    pub(super) fn next(&mut self, backlog: &dyn Backlog) -> Option<StreamId> {
        if self.now >= ERA {
            self.begin_era();
        }
        if self.noted > 0 {
            self.waited += 1;
            if self.waited > self.active + PATIENCE {
                self.account_for_all();
            }
        }
        loop {
            self.promote(backlog);
            // Classes are compared by the ends of slots. By the beginnings, light streams in their wide slots would be
            // served, several in a row, before heavy ones that finish earlier.
            let first = self.eligible.first_by(&self.entries, |number, class| slot_start(number + 1, class));
            match first {
                Some((_, class, entry)) if self.is_noted(&entry) => {
                    self.eligible.pop_front(&mut self.entries, class);
                    self.account_for(entry);
                }
                Some((_, class, entry)) => {
                    self.named = Some((class, entry));
                    return Some(entry.stream);
                }
                None => {
                    // All streams are ahead of their shares: virtual time moves on to the start of the first one.
                    let (earliest, ..) = self.ahead.first_by(&self.entries, slot_start)?;
                    self.now = self.now.max(earliest);
                }
            }
        }
    }

    pub(super) fn on_taken(&mut self, taken: Taken) {
        let Taken { stream, bytes, stream_empty, .. } = taken;
        let served = (bytes as u64) << UNIT_BITS;
        let named = self.named.take().filter(|(_, entry)| entry.stream == stream);
        if named.is_none() && !self.flows.get(stream).is_some_and(|flow| flow.active) {
            return;
        }
        self.now += served / self.weights.max(1);
        if stream_empty {
            self.change(stream, |flow| flow.active = false);
        }
        let Some((class, mut entry)) = named else {
            self.change(stream, |flow| flow.owed += served / u64::from(flow.entered.max(1)));
            return;
        };
        self.eligible.pop_front(&mut self.entries, class);
        entry.start += served / u64::from(entry.weight);
        if stream_empty {
            self.account_for(entry);
        } else {
            self.ahead.insert(&mut self.entries, class, entry.start, self.now, entry);
        }
    }

    pub(super) fn on_removed(&mut self, removed: Removed) {
        if removed.stream_empty {
            self.change(removed.stream, |flow| flow.active = false);
        }
    }

    /// Makes streams eligible whose start virtual time has reached.
    fn promote(&mut self, backlog: &dyn Backlog) {
        let mut classes = self.ahead.occupied;
        while classes != 0 {
            let class = classes.trailing_zeros();
            classes &= classes - 1;
            let due = slot(self.now, class);
            while let Some(mut queue) = self.ahead.take_up_to(class, due) {
                while let Some(entry) = queue.pop_front(&mut self.entries) {
                    if self.is_noted(&entry) {
                        self.account_for(entry);
                    } else if slot(entry.start, class) > due {
                        // The entry was in the last slot only because the ring has no later one.
                        self.insert_ahead(entry);
                    } else {
                        let piece = backlog.head_bytes(entry.stream).min(LONGEST_PIECE) as u64;
                        let finish = entry.start + (piece << UNIT_BITS) / u64::from(entry.weight);
                        self.eligible.insert(&mut self.entries, class, finish, finish, entry);
                    }
                }
            }
        }
    }

    /// Inserts an entry with the ring beginning at virtual time: an entry far ahead, after a long message, leaves room for earlier ones.
    fn insert_ahead(&mut self, entry: Entry) {
        self.ahead.insert(&mut self.entries, class(entry.weight), entry.start, self.now, entry);
    }

    /// Returns whether the stream of an entry has noted changes.
    fn is_noted(&self, entry: &Entry) -> bool {
        self.noted > 0 && self.flows.get(entry.stream).is_some_and(Flow::is_noted)
    }

    /// Applies the noted changes of a stream whose entry was removed, and inserts a new entry if the stream has data.
    fn account_for(&mut self, entry: Entry) {
        let now = self.now;
        let flow = self.change(entry.stream, |flow| {
            let start = entry.start + std::mem::take(&mut flow.owed);
            flow.start = reweighed(start, now, entry.weight, flow.weight);
            flow.entered = if flow.active { flow.weight } else { 0 };
        });
        if flow.active {
            self.insert_ahead(Entry { start: flow.start, stream: entry.stream, weight: flow.weight });
        }
    }

    /// Applies the noted changes of all streams. The cost grows with their number, but arises once in as many decisions.
    fn account_for_all(&mut self) {
        self.named = None;
        for mut sorted in [std::mem::take(&mut self.ahead), std::mem::take(&mut self.eligible)] {
            for class in (0..).take(sorted.classes.len()) {
                while let Some(mut queue) = sorted.take_up_to(class, u64::MAX) {
                    while let Some(entry) = queue.pop_front(&mut self.entries) {
                        self.account_for(entry);
                    }
                }
            }
        }
    }

    /// Changes a flow, and the sums over all flows with it.
    fn change(&mut self, stream: StreamId, change: impl FnOnce(&mut Flow)) -> Flow {
        let flow = self.flows.entry(stream);
        let before = *flow;
        change(flow);
        let after = *flow;
        self.active = self.active + usize::from(after.active) - usize::from(before.active);
        self.weights = self.weights + after.share() - before.share();
        self.noted = self.noted + usize::from(after.is_noted()) - usize::from(before.is_noted());
        if self.noted == 0 {
            self.waited = 0;
        }
        after
    }

    /// Sets virtual time back. A stream that was idle for the whole era begins the next one with no service used.
    fn begin_era(&mut self) {
        self.now -= ERA;
        self.named = None;
        self.flows.iter_mut().for_each(|flow| flow.start = flow.start.saturating_sub(ERA));
        self.entries.iter_mut().for_each(|entry| entry.start = entry.start.saturating_sub(ERA));
        for sorted in [&mut self.ahead, &mut self.eligible] {
            for (slots, class) in sorted.classes.iter_mut().zip(0..) {
                slots.renumber(slot(ERA, class));
            }
        }
    }
}

impl Flow {
    /// Returns whether the stream's entry is outdated.
    fn is_noted(&self) -> bool {
        self.entered != 0 && (!self.active || self.weight != self.entered || self.owed != 0)
    }

    /// Returns the stream's part of the sum of weights.
    fn share(&self) -> u64 {
        if self.active { u64::from(self.weight) } else { 0 }
    }
}

impl Sorted {
    /// Inserts an entry into the slot of the instant `at`. The ring begins at `from` or earlier, so earlier entries still find a slot.
    fn insert(
        &mut self,
        entries: &mut Arena<Entry>,
        class: u32,
        at: VirtualTime,
        from: VirtualTime,
        entry: Entry,
    ) {
        let index = class as usize;
        if index >= self.classes.len() {
            self.classes.resize_with((index + 1).min(CLASSES), Slots::default);
        }
        self.occupied |= 1 << class;
        self.classes[index].insert(entries, slot(at, class), slot(from, class), entry);
    }

    /// Removes and returns the first entry of a class.
    fn pop_front(&mut self, entries: &mut Arena<Entry>, class: u32) -> Option<Entry> {
        let slots = self.classes.get_mut(class as usize)?;
        let entry = slots.pop_front(entries);
        if slots.is_empty() {
            self.occupied &= !(1 << class);
        }
        entry
    }

    /// Returns the first entry of all classes, ordered by an instant of its slot, with that instant and its class.
    fn first_by(
        &self,
        entries: &Arena<Entry>,
        instant: impl Fn(u64, u32) -> VirtualTime,
    ) -> Option<(VirtualTime, u32, Entry)> {
        let mut first: Option<(VirtualTime, u32, Entry)> = None;
        let mut classes = self.occupied;
        while classes != 0 {
            let class = classes.trailing_zeros();
            classes &= classes - 1;
            let front = self.classes[class as usize].front(entries);
            let found = front.map(|(number, entry)| (instant(number, class), class, entry));
            first = match (first, found) {
                (Some(first), Some(found)) if first.0 <= found.0 => Some(first),
                (first, found) => found.or(first),
            };
        }
        first
    }

    /// Empties the first slot of a class if its number is at most `last`, and returns its entries.
    fn take_up_to(&mut self, class: u32, last: u64) -> Option<Queue> {
        let slots = &mut self.classes[class as usize];
        let queue = slots.take_up_to(last);
        if slots.is_empty() {
            self.occupied &= !(1 << class);
        }
        queue
    }
}

impl Default for Flow {
    fn default() -> Self {
        Flow { start: 0, owed: 0, weight: 1, entered: 0, active: false }
    }
}

/// Returns the start with which a stream of another weight is the same number of bytes ahead of its share, or behind it.
fn reweighed(start: VirtualTime, now: VirtualTime, before: u16, after: u16) -> VirtualTime {
    if before == after {
        return start;
    }
    let scaled = start.abs_diff(now).saturating_mul(u64::from(before)) / u64::from(after);
    if start > now { now.saturating_add(scaled) } else { now.saturating_sub(scaled) }
}

fn class(weight: u16) -> u32 {
    weight.max(1).ilog2()
}

/// Returns the width of the slots of a class, as the exponent of a power of two of virtual time.
fn width(class: u32) -> u32 {
    SLOT_BITS - class
}

/// Returns the slot of a class in which an instant of virtual time lies.
fn slot(at: VirtualTime, class: u32) -> u64 {
    at >> width(class)
}

/// Returns the virtual time at which a slot of a class begins.
fn slot_start(number: u64, class: u32) -> VirtualTime {
    number << width(class)
}

#[cfg(test)]
mod tests;
