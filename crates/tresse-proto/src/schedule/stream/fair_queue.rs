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
//! a packet: amortised constant cost. Service is charged exactly; only its order is that coarse. What a
//! decision needs stands in the order itself; looking streams up as well would cost more the more there are.

use tresse_wire::StreamId;

use super::blocks::Arena;
use super::slots::Slots;
use super::{Backlog, Place, Queued, Removed, Taken};
use crate::stream_table::StreamTable;

/// Virtual time since the last turn of the era: bytes over weight, in units of 2^-20.
type VirtualTime = u64;

const UNIT_BITS: u32 = 20;

/// When virtual time has come so far, it is set back by as much: after four terabytes for each unit of weight.
/// A multiple of what the ring of the widest slots spans.
const ERA: VirtualTime = 1 << 62;

/// The largest piece that an order by finish tells apart, bytes: more than common packets hold. Without
/// interleaving whole messages go, but whoever had a long one then waits until the others caught up.
const LONGEST_PIECE: usize = 2048;

/// A slot is 2^6 bytes for the lowest weight of its class: 32 slots a piece.
const SLOT_BITS: u32 = UNIT_BITS + 6;

/// Classes of weights: from 2^class to below 2^(class + 1).
const CLASSES: usize = u16::BITS as usize;

/// Entries out of date that are put up with beside as many as are in order.
const STALE: usize = 64;

/// Streams that share by weight.
#[derive(Default)]
pub(super) struct FairQueue {
    flows: StreamTable<Flow>,
    entries: Arena<Entry>,
    /// Streams that have had more than their share so far, by start.
    ahead: Sorted,
    /// The others that have data, by finish of their next piece.
    eligible: Sorted,
    /// The entry that was last named, with its class: the first of those of `eligible`.
    named: Option<(u32, Entry)>,
    now: VirtualTime,
    /// Sum of the weights of all streams with data.
    weights: u64,
    /// Streams with data. Each has one entry that is in order.
    active: usize,
    /// Entries out of date.
    stale: usize,
}

/// One stream.
#[derive(Copy, Clone, Debug)]
struct Flow {
    start: VirtualTime,
    /// That of its entry, if it has data.
    ticket: u32,
    /// At least 1.
    weight: u16,
    active: bool,
}

/// A stream's place in the order.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
struct Entry {
    start: VirtualTime,
    /// Out of date when its flow has another one.
    ticket: u32,
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

    /// Changes a weight; counts from the next piece on. Zero counts as 1.
    pub(super) fn set_weight(&mut self, stream: StreamId, weight: u16) {
        let active = self.flows.entry(stream).active;
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
        if flow.active {
            self.refresh(stream);
        } else {
            // What it did not use is gone, what it had too much of is not.
            flow.start = flow.start.max(self.now);
            self.join(stream);
        }
    }

    pub(super) fn next(&mut self, backlog: &dyn Backlog) -> Option<StreamId> {
        if self.now >= ERA {
            self.turn_era();
        }
        loop {
            self.promote(backlog);
            // By the ends of slots: by their beginnings, light streams in their wide slots would go before
            // heavy ones that finish earlier, and in rows.
            if let Some((_, class, entry)) = self.first_eligible() {
                self.named = Some((class, entry));
                return Some(entry.stream);
            }
            // All are ahead of their shares: time passes to where the first is not.
            let (earliest, ..) = self.ahead.first_by(&self.entries, slot_start)?;
            self.now = self.now.max(earliest);
        }
    }

    pub(super) fn on_taken(&mut self, taken: Taken) {
        let Taken { stream, bytes, stream_empty, .. } = taken;
        let served = (bytes as u64) << UNIT_BITS;
        let Some(mut entry) = self.take_out(stream) else { return };
        entry.start += served / u64::from(entry.weight);
        self.now += served / self.weights.max(1);
        let flow = self.flows.entry(stream);
        flow.start = entry.start;
        if stream_empty {
            flow.active = false;
            self.active -= 1;
            self.weights -= u64::from(entry.weight);
        } else {
            self.ahead.insert(&mut self.entries, class(entry.weight), entry.start, entry);
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
            while let Some(mut queue) = slots.take_up_to(due) {
                while let Some(entry) = queue.pop_front(&mut self.entries) {
                    if self.stale > 0 && !is_current(&self.flows, &entry) {
                        self.stale -= 1;
                    } else if slot(entry.start, class) > due {
                        // It stood in the last slot for want of a later one.
                        slots.insert(&mut self.entries, slot(entry.start, class), entry);
                    } else {
                        let piece = backlog.head_bytes(entry.stream).min(LONGEST_PIECE) as u64;
                        let finish = entry.start + (piece << UNIT_BITS) / u64::from(entry.weight);
                        self.eligible.insert(&mut self.entries, class, finish, entry);
                    }
                }
            }
            if slots.is_empty() {
                self.ahead.occupied &= !(1 << class);
            }
        }
    }

    /// The eligible stream that would finish first, with its class.
    fn first_eligible(&mut self) -> Option<(VirtualTime, u32, Entry)> {
        loop {
            let found =
                self.eligible.first_by(&self.entries, |number, class| slot_start(number + 1, class))?;
            let (_, class, entry) = found;
            if self.stale == 0 || is_current(&self.flows, &entry) {
                return Some(found);
            }
            self.eligible.pop_front(&mut self.entries, class);
            self.stale -= 1;
        }
    }

    /// Takes the entry of a stream with data out of the order: nearly always the one that was named.
    fn take_out(&mut self, stream: StreamId) -> Option<Entry> {
        if let Some((class, entry)) = self.named.take()
            && entry.stream == stream
            && (self.stale == 0 || is_current(&self.flows, &entry))
        {
            return self.eligible.pop_front(&mut self.entries, class);
        }
        self.invalidate(stream)
    }

    /// Sorts a stream in by its start.
    fn join(&mut self, stream: StreamId) {
        let flow = self.flows.entry(stream);
        flow.active = true;
        let Flow { start, ticket, weight, .. } = *flow;
        self.active += 1;
        self.weights += u64::from(weight);
        self.ahead.insert(&mut self.entries, class(weight), start, Entry { start, ticket, stream, weight });
    }

    fn leave(&mut self, stream: StreamId) {
        let Some(Entry { weight, .. }) = self.invalidate(stream) else { return };
        self.flows.entry(stream).active = false;
        self.active -= 1;
        self.weights -= u64::from(weight);
        if self.stale > self.active + STALE {
            self.sort_out();
        }
    }

    /// The next piece of an active stream changed.
    fn refresh(&mut self, stream: StreamId) {
        self.leave(stream);
        self.join(stream);
    }

    /// Puts the entry of a stream with data out of date; answers one to take its place.
    fn invalidate(&mut self, stream: StreamId) -> Option<Entry> {
        let flow = self.flows.entry(stream);
        if !flow.active {
            return None;
        }
        flow.ticket = flow.ticket.wrapping_add(1);
        self.stale += 1;
        let Flow { start, ticket, weight, .. } = *flow;
        Some(Entry { start, ticket, stream, weight })
    }

    /// Throws all entries out that are out of date.
    fn sort_out(&mut self) {
        let flows = &self.flows;
        for sorted in [&mut self.ahead, &mut self.eligible] {
            sorted.retain(&mut self.entries, |entry| is_current(flows, entry));
        }
        self.named = None;
        self.stale = 0;
    }

    /// Sets virtual time back. A stream that was idle for all of the era has used nothing in the next one.
    fn turn_era(&mut self) {
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

/// Whether an entry is that of a stream with data.
fn is_current(flows: &StreamTable<Flow>, entry: &Entry) -> bool {
    flows.get(entry.stream).is_some_and(|flow| flow.active && flow.ticket == entry.ticket)
}

impl Sorted {
    fn insert(&mut self, entries: &mut Arena<Entry>, class: u32, at: VirtualTime, entry: Entry) {
        let index = class as usize;
        if index >= self.classes.len() {
            self.classes.resize_with((index + 1).min(CLASSES), Slots::default);
        }
        self.occupied |= 1 << class;
        self.classes[index].insert(entries, slot(at, class), entry);
    }

    /// Takes the first entry of a class.
    fn pop_front(&mut self, entries: &mut Arena<Entry>, class: u32) -> Option<Entry> {
        let slots = self.classes.get_mut(class as usize)?;
        let entry = slots.pop_front(entries);
        if slots.is_empty() {
            self.occupied &= !(1 << class);
        }
        entry
    }

    /// The first entry of all classes, going by an instant of its slot, with that instant and its class.
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

    fn retain(&mut self, entries: &mut Arena<Entry>, keep: impl Fn(&Entry) -> bool) {
        for (slots, class) in self.classes.iter_mut().zip(0_u32..) {
            slots.retain(entries, &keep);
            if slots.is_empty() {
                self.occupied &= !(1 << class);
            }
        }
    }
}

impl Default for Flow {
    fn default() -> Self {
        Flow { start: 0, ticket: 0, weight: 1, active: false }
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
    at >> width(class)
}

/// When a slot of a class begins.
fn slot_start(number: u64, class: u32) -> VirtualTime {
    number << width(class)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Instant;

    /// Streams that always have another message of 100 bytes.
    struct Saturated;

    impl Backlog for Saturated {
        fn unsent_bytes(&self, _stream: StreamId) -> usize {
            200
        }
        fn messages(&self, _stream: StreamId) -> usize {
            2
        }
        fn head_bytes(&self, _stream: StreamId) -> usize {
            100
        }
    }

    fn queue(weights: &[u16]) -> FairQueue {
        let mut queue = FairQueue::default();
        for (&weight, stream) in weights.iter().zip((0..).map(StreamId)) {
            queue.set_weight(stream, weight);
            let at = Instant::ZERO;
            queue.on_queued(Queued { stream, bytes: 100, was_idle: true, place: Place::Tail, at });
        }
        queue
    }

    fn serve(queue: &mut FairQueue) -> Option<u16> {
        let stream = queue.next(&Saturated)?;
        queue.on_taken(Taken {
            stream,
            bytes: 100,
            message_done: true,
            turn_over: true,
            stream_empty: false,
        });
        Some(stream.0)
    }

    #[test]
    fn the_order_goes_on_when_virtual_time_is_set_back() {
        let weights = [1, 3, 40_000];
        let (mut early, mut late) = (queue(&weights), FairQueue::default());
        late.now = ERA - (5_000 << UNIT_BITS) / 40_004;
        for (&weight, stream) in weights.iter().zip((0..).map(StreamId)) {
            late.set_weight(stream, weight);
            let at = Instant::ZERO;
            late.on_queued(Queued { stream, bytes: 100, was_idle: true, place: Place::Tail, at });
        }
        let served: Vec<_> = (0..200_000).map(|_| serve(&mut late)).collect();
        assert!(late.now < ERA / 2, "an era ended");
        let count =
            |served: &[Option<u16>], stream| served.iter().filter(|&&one| one == Some(stream)).count();
        let expected: Vec<_> = (0..200_000).map(|_| serve(&mut early)).collect();
        for stream in 0..3 {
            assert!(count(&served, stream).abs_diff(count(&expected, stream)) <= 1, "stream {stream}");
        }
    }

    #[test]
    fn entries_out_of_date_do_not_pile_up() {
        let mut queue = queue(&[1, 1, 1]);
        for turn in 0..10_000 {
            queue.set_weight(StreamId(turn % 2), 1 + turn % 7);
            assert!(queue.stale <= queue.active + STALE);
            if turn % 3 == 0 {
                assert!(serve(&mut queue).is_some());
            }
        }
        queue.set_weight(StreamId(0), 1);
        queue.set_weight(StreamId(1), 1);
        let mut served = [0; 3];
        for _ in 0..3_000 {
            served[usize::from(serve(&mut queue).expect("all have data"))] += 1;
        }
        assert!(served.iter().all(|&count| (900..1_200).contains(&count)), "{served:?}");
    }
}
