//! Messages that wait to be sent: one queue for each stream, one scheduler for each group of streams, one send buffer.
//!
//! Every stream belongs to a group, and every path serves groups, so that any stream scheduler works with any stream map. This
//! module owns the queues; a scheduler owns only its order. Independent of TSNs, windows and acknowledgements.

mod adaptive;
mod asking;
mod buffer;
mod classes;
mod group;
mod hold;
mod keys;
mod low_water;
mod stream;
mod terms_queue;
#[cfg(test)]
mod tests;
mod unsent;
mod withdraw;

use std::ops::Deref;

use bytes::Bytes;
use tresse_policy::engine::FALLBACK;
use tresse_policy::schedule::{Backlog, PathView, Queued, Taken};
use tresse_policy::{Instant, PathId, Registry, ScheduleError, StreamTable};
use tresse_wire::StreamId;

use crate::collections::InlineVec;
use crate::collections::{LazyBox, LazyState};
use crate::config::{AssociationConfig, StreamMap};
use crate::fragment::{CutFragment, DataFormat};
use crate::interface::error::SendError;
use crate::interface::event::{SchedulerFault, SendOptions};

pub(crate) use asking::Failures;
pub(crate) use unsent::unsent;
pub(crate) use withdraw::WithdrawnMessage;

use adaptive::Adaptive;
use buffer::SendBuffer;
use classes::Classes;
use group::{Group, serves};
use hold::HeldMessage;
pub(crate) use hold::HoldReason;
use keys::Apart;
use low_water::LowWater;
use stream::{OutStream, WaitingMessage};
use withdraw::Revocable;

/// The smallest fragment, in bytes, that is cut off a long message to fill a packet: the chunk header would cost more than the
/// room for a smaller one is worth.
const SMALLEST_PIECE: usize = 256;

/// The sending side of all streams.
pub(crate) struct Outbound {
    queues: Queues,
    /// Negotiated number of streams; few of them may have a queue.
    stream_count: u16,
    map: LazyBox<StreamMap>,
    /// State of the adaptive map, if it is in use.
    adaptive: Option<Box<Adaptive>>,
    /// Classes of the streams for which the application set them.
    pub(crate) classes: Classes,
    /// The groups: one for all streams with [`StreamMap::Any`], one for each path position with a fixed map; `classes`
    /// determines those of an adaptive map.
    groups: Vec<Group>,
    /// The scheduler that was chosen and its configuration; `None` for first come, first served.
    scheduler: Option<Box<(String, String)>>,
    /// Usable paths, by position; they also serve the groups of the others.
    usable: InlineVec<bool>,
    data_format: DataFormat,
    /// Stream of a message that was begun: without interleaving no other message may be cut before its end (RFC 9260 §6.9).
    open: Option<StreamId>,
    /// Messages outside of the queues of their streams; allocated with the first.
    apart: Option<Box<Apart>>,
    /// Low-water marks; allocated with the first.
    low_water: Option<Box<LowWater>>,
    /// Group whose data is in the packet that is being filled: only this group selects further data for it.
    packet: Option<usize>,
    /// Values that the application gave to streams, for later schedulers, too.
    values: LazyBox<StreamValues>,
    pub(crate) failures: LazyBox<Failures>,
    pub(crate) buffer: SendBuffer,
    /// Messages with partial reliability; allocated with the first message that has delivery terms.
    revocable: Option<Box<Revocable>>,
    /// True if the peer supports FORWARD TSN: messages may be abandoned after they were sent, too.
    forwards: bool,
}

struct Queues {
    streams: StreamTable<OutStream>,
}

/// Returns the name and configuration of a scheduler as they are kept; `None` for first come, first served.
fn choice(name: &str, config: &str) -> Option<Box<(String, String)>> {
    ((name, config) != (FALLBACK, "")).then(|| Box::new((name.to_owned(), config.to_owned())))
}

fn chosen(choice: &Option<Box<(String, String)>>) -> (&str, &str) {
    choice.as_deref().map_or((FALLBACK, ""), |(name, config)| (name, config))
}

type StreamValues = StreamTable<Option<u16>>;

impl LazyState for StreamValues {
    const INITIAL: &Self = &StreamTable::new();
}

/// Checks that a message of `len` bytes can be queued on `stream` of `count`, now or once the send buffer of `limit` bytes has
/// room for it.
///
/// # Errors
/// The stream does not exist, or the message is empty or never fits.
pub(crate) fn check_message(stream: StreamId, len: usize, count: u16, limit: usize) -> Result<(), SendError> {
    if stream.0 >= count {
        return Err(SendError::NoSuchStream { stream, count });
    }
    if len == 0 {
        return Err(SendError::Empty);
    }
    if len > limit { Err(SendError::TooLong { len, limit }) } else { Ok(()) }
}

impl Outbound {
    /// Creates empty queues for the negotiated number of `streams` and for `paths` paths. A scheduler that accepted the
    /// settings when they were checked, and refuses them now, has failed: the association begins without it.
    pub(crate) fn new(
        config: &AssociationConfig,
        registry: &Registry,
        data_format: DataFormat,
        streams: u16,
        paths: usize,
    ) -> Self {
        let mut outbound = Outbound {
            queues: Queues { streams: StreamTable::default() },
            stream_count: streams,
            map: LazyBox::of(config.stream_map.clone()),
            adaptive: None,
            classes: Classes::new(&config.stream_classes, streams),
            groups: Vec::new(),
            scheduler: choice(&config.stream_scheduler, &config.stream_scheduler_config),
            usable: std::iter::repeat_n(true, paths).collect(),
            data_format,
            open: None,
            apart: None,
            low_water: None,
            packet: None,
            values: LazyBox::default(),
            failures: LazyBox::default(),
            buffer: SendBuffer::new(config.send_buffer.0),
            revocable: None,
            forwards: false,
        };
        outbound.begin(registry);
        outbound
    }

    /// Sets whether the peer supports FORWARD TSN (RFC 3758).
    pub(crate) fn set_forwards(&mut self, forwards: bool) {
        self.forwards = forwards;
    }

    /// Returns the negotiated number of streams.
    pub(crate) fn stream_count(&self) -> u16 {
        self.stream_count
    }

    /// Queues a message of at least one byte.
    ///
    /// # Errors
    /// The stream does not exist, there is no room, or the message never fits.
    pub(crate) fn push(&mut self, now: Instant, options: SendOptions, data: Bytes) -> Result<(), SendError> {
        let (stream, len) = (options.stream, data.len());
        self.admits(stream, len)?;
        let number = self.buffer.accept(len)?;
        let terms = options.terms(now, number, len, self.forwards);
        if let Some(terms) = &terms {
            self.revocable.get_or_insert_default().insert(terms);
        }
        let SendOptions { ppid, unordered, immediate, .. } = options;
        if let Some(hold) = self.holding_mut().filter(|hold| hold.holds(stream)) {
            let message = WaitingMessage { data, ppid, unordered, immediate, at: now };
            hold.keep(HeldMessage { stream, number, message, terms });
        } else {
            // The message is built in its place: each move of it would wait for the stores before.
            let queue = self.queues.streams.entry(stream);
            let was_idle = queue.is_empty();
            queue.push(WaitingMessage { data, ppid, unordered, immediate, at: now }, terms);
            let mut queued = Queued::new(stream, len, now);
            queued.was_idle = was_idle;
            self.on_queued(queued);
        }
        self.gauge(stream);
        Ok(())
    }

    /// Returns the bytes that the send buffer lacks for a message of `len` bytes; 0 for a message that it never accepts.
    pub(crate) fn shortage(&self, stream: StreamId, len: usize) -> usize {
        let missing = self.buffer.shortage(len);
        if missing > 0 && self.admits(stream, len).is_ok() { missing } else { 0 }
    }

    /// Returns whether anything waits, for any path.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.buffer.unsent() == 0
    }

    /// Returns whether a message waits that may leave on `path`.
    #[inline]
    pub(crate) fn has_data_for(&self, path: PathId) -> bool {
        if self.is_empty() {
            return false;
        }
        if self.apart.as_deref().is_some_and(|apart| apart.may_send_keys(self)) {
            return true;
        }
        match self.open {
            Some(stream) => self.serves(path, self.group_of(stream)),
            None => (0..self.groups.len())
                .any(|group| self.serves(path, group) && self.groups[group].has_data_for(path)),
        }
    }

    /// Returns whether the stream map allows data of `stream` on `path`.
    pub(crate) fn may_use(&self, stream: StreamId, path: PathId) -> bool {
        self.serves(path, self.group_of(stream))
    }

    /// Cuts the next fragment for `path`; `view` is evaluated only if a scheduler is called.
    ///
    /// `room` is the user data that the packet still takes, `full` what an empty packet would take, `allowance` what the peer
    /// can take, all in bytes. A message that fits a packet is not cut only because this packet is nearly full.
    // Always: otherwise the fragment is copied through memory for every chunk.
    #[inline(always)]
    pub(crate) fn take(
        &mut self,
        path: PathId,
        view: &impl Deref<Target = PathView>,
        room: usize,
        full: usize,
        allowance: usize,
    ) -> Option<CutFragment> {
        if self.apart.is_some()
            && let Some(cut) = self.take_keys(room, full, allowance)
        {
            return cut;
        }
        let (group, stream) = match self.open {
            Some(stream) => Some((self.group_of(stream), stream))
                .filter(|&(group, _)| self.serves(path, group) && self.packet.is_none_or(|own| own == group)),
            None if self.adaptive.is_some() => self.pick_adaptively(view),
            None => self.pick(path, view),
        }?;
        let queue = self.queues.streams.get_mut(stream)?;
        let head = queue.head_bytes();
        let len = piece(head, room, full).filter(|&len| len <= allowance)?;
        let mut cut = queue.cut(stream, len)?;
        self.buffer.on_taken(len);
        let message_done = cut.fragment.flags.ending();
        let turn_over = message_done || self.data_format == DataFormat::IData;
        self.open = (!turn_over).then_some(stream);
        let stream_empty = queue.is_empty();
        if let Some(terms) = cut.terms {
            cut.terms = self.on_cut(terms, message_done);
        }
        self.packet = Some(group);
        let mut taken = Taken::new(stream, len);
        taken.message_done = message_done;
        taken.turn_over = turn_over;
        taken.stream_empty = stream_empty;
        self.groups[group].on_taken(taken);
        if self.adaptive.is_some() {
            let urgent = self.classes.is_urgent(stream);
            // The data in flight, and the data that waits at the peer, count as chunks.
            let chunk = self.data_format.header_len() + len;
            if let Some(adaptive) = &mut self.adaptive {
                adaptive.on_taken(stream, path, chunk, urgent);
            }
        }
        self.gauge(stream);
        Some(cut)
    }

    /// Notes that a packet with new data for a path is complete.
    pub(crate) fn on_packet_end(&mut self, path: PathId) {
        self.packet = None;
        for group in 0..self.groups.len() {
            if self.serves(path, group) {
                self.groups[group].scheduler.on_packet_end();
            }
        }
    }

    /// Returns whether the stream map is adaptive: measurements decide to which path a stream belongs.
    pub(crate) fn is_adaptive(&self) -> bool {
        self.adaptive.is_some()
    }

    /// Returns whether streams are bound to paths.
    pub(crate) fn is_mapped(&self) -> bool {
        self.groups.len() > 1
    }

    /// Extends the state to `count` paths; a new path cannot be used before [`Self::set_usable`].
    pub(crate) fn cover_paths(&mut self, count: usize) {
        while self.usable.len() < count {
            self.usable.push(false);
        }
    }

    /// Returns whether there are more paths than groups of streams bound to them.
    pub(crate) fn has_outgrown_its_groups(&self) -> bool {
        !self.groups.is_empty() && self.groups.len() < self.group_count()
    }

    /// Sets whether a path is usable; the other paths carry the streams of an unusable one.
    pub(crate) fn set_usable(&mut self, path: PathId, usable: bool) {
        if let Some(known) = self.usable.get_mut(path.index()) {
            *known = usable;
        }
    }

    /// Chooses another scheduler; queued messages stay.
    ///
    /// # Errors
    /// The name is unknown, or the scheduler refuses its configuration; the old scheduler then stays.
    pub(crate) fn set_scheduler(
        &mut self,
        registry: &Registry,
        name: &str,
        config: &str,
    ) -> Result<(), ScheduleError> {
        let old = std::mem::replace(&mut self.scheduler, choice(name, config));
        self.regroup(registry).inspect_err(|_| self.scheduler = old)
    }

    /// Chooses another stream map; queued messages stay. If a scheduler for it cannot be built, the old map stays.
    pub(crate) fn set_map(&mut self, registry: &Registry, map: StreamMap) -> Result<(), ScheduleError> {
        let old = std::mem::replace(&mut self.map, LazyBox::of(map));
        self.regroup(registry).inspect_err(|_| self.map = old)
    }

    /// Takes over the choices of the application for `old`: scheduler, map, values, classes and marks, but no message.
    pub(crate) fn keep_choices(&mut self, old: Outbound, registry: &Registry) {
        self.map = old.map;
        self.scheduler = old.scheduler;
        self.values = old.values;
        self.classes = old.classes;
        self.begin(registry);
        self.keep_marks(old.low_water);
    }

    /// Sets the value of a stream, for the present scheduler and for later ones that have values.
    ///
    /// # Errors
    /// The stream was not negotiated, or the scheduler refuses the value; nothing is kept then.
    pub(crate) fn set_value(&mut self, stream: StreamId, value: u16) -> Result<(), ScheduleError> {
        if stream.0 >= self.stream_count {
            return Err(ScheduleError::NoSuchStream(stream));
        }
        let group = self.group_of(stream);
        let scheduler = &mut self.groups[group].scheduler;
        scheduler.set_value(stream, value).map_err(|reason| {
            let name = scheduler.name().to_owned();
            ScheduleError::BadValue { name, stream, value, reason }
        })?;
        *self.values.entry(stream) = Some(value);
        // An adaptive map may move the stream to any other group, even while nothing is queued on it.
        for (_, other) in self.groups.iter_mut().enumerate().filter(|(other, _)| *other != group) {
            other.scheduler.set_value(stream, value).ok();
        }
        Ok(())
    }

    /// Returns the value of a stream; `None` if the stream was not negotiated, or the scheduler has no values.
    pub(crate) fn value(&self, stream: StreamId) -> Option<u16> {
        let exists = stream.0 < self.stream_count;
        exists.then(|| self.groups[self.group_of(stream)].scheduler.value(stream))?
    }

    /// Returns the bytes of `stream` that wait, held messages included.
    pub(crate) fn unsent_on(&self, stream: StreamId) -> usize {
        let held = self.apart.as_deref().and_then(Apart::holding).map_or(0, |hold| hold.bytes_on(stream));
        self.queues.unsent_bytes(stream) + held
    }

    fn admits(&self, stream: StreamId, len: usize) -> Result<(), SendError> {
        check_message(stream, len, self.stream_count, self.buffer.limit())
    }

    /// Queues a message that was held.
    #[cold]
    fn enqueue(&mut self, held: HeldMessage) {
        let HeldMessage { stream, message, terms, .. } = held;
        let (bytes, at) = (message.data.len(), message.at);
        let queue = self.queues.streams.entry(stream);
        let was_idle = queue.is_empty();
        queue.push(message, terms);
        let mut queued = Queued::new(stream, bytes, at);
        queued.was_idle = was_idle;
        self.on_queued(queued);
    }

    #[inline(always)]
    fn on_queued(&mut self, queued: Queued) {
        if queued.was_idle && self.adaptive.is_some() {
            let class = self.classes.of(queued.stream);
            if let Some(adaptive) = &mut self.adaptive {
                adaptive.on_idle_queued(queued.at, queued.stream, class);
            }
        }
        let group = self.group_of(queued.stream);
        self.groups[group].on_queued(queued);
    }

    #[inline]
    fn serves(&self, path: PathId, group: usize) -> bool {
        self.adaptive.is_some() || serves(&self.usable, path, group, self.groups.len())
    }

    #[inline]
    fn group_of(&self, stream: StreamId) -> usize {
        if self.groups.len() <= 1 {
            return 0;
        }
        let position = match &self.adaptive {
            Some(adaptive) => {
                self.classes.layer_of(stream) * self.usable.len() + adaptive.path_of(stream).index()
            }
            None => self.map.path_of(stream).map_or(0, usize::from),
        };
        position % self.groups.len()
    }

    /// Makes the groups for all paths, at first or because paths have joined; queued messages stay. If the chosen scheduler
    /// cannot be built, first come, first served replaces it in all groups.
    pub(crate) fn begin(&mut self, registry: &Registry) {
        let Err(error) = self.regroup(registry) else { return };
        let (name, _) = chosen(&self.scheduler);
        let fault = SchedulerFault::Failed { reason: error.to_string() };
        self.failures.note(name, fault);
        self.install((0..self.group_count()).map(|_| Group::fallback()).collect());
    }

    /// Makes all groups anew, with the chosen scheduler.
    fn regroup(&mut self, registry: &Registry) -> Result<(), ScheduleError> {
        let (name, config) = chosen(&self.scheduler);
        // Most associations have one group: a collected vector would have a capacity of four.
        let mut groups = Vec::with_capacity(self.group_count());
        for _ in 0..self.group_count() {
            groups.push(Group::new(registry.build_stream_scheduler(name, config)?));
        }
        self.install(groups);
        Ok(())
    }

    fn group_count(&self) -> usize {
        match *self.map {
            StreamMap::Any => 1,
            StreamMap::Fixed(_) => self.usable.len().max(1),
            StreamMap::Adaptive => self.usable.len().max(1) * self.classes.layers(),
        }
    }

    /// Installs the groups: passes every waiting message to the scheduler of its group, and the values to all schedulers.
    fn install(&mut self, groups: Vec<Group>) {
        self.groups = groups;
        self.packet = None;
        let placed = self.usable.len() > 1 || self.classes.are_used();
        self.adaptive =
            (*self.map == StreamMap::Adaptive && placed).then(|| self.adaptive.take().unwrap_or_default());
        for (stream, value) in self.values.iter() {
            if let Some(value) = *value {
                // A scheduler that has no values, or refuses this one, uses its own.
                for group in &mut self.groups {
                    group.scheduler.set_value(stream, value).ok();
                }
            }
        }
        self.refill(None);
    }

    /// Passes the waiting messages to the new scheduler of a group, or of all groups.
    fn refill(&mut self, only: Option<usize>) {
        for (stream, queue) in self.queues.streams.iter() {
            let group = self.group_of(stream);
            if only.is_some_and(|only| only != group) {
                continue;
            }
            for (position, (bytes, at)) in queue.waiting().enumerate() {
                let mut queued = Queued::new(stream, bytes, at);
                queued.was_idle = position == 0;
                self.groups[group].on_queued(queued);
            }
        }
    }
}

/// Returns the length of the next fragment of a message with `head` bytes left, for a packet with `room`; `None` for no
/// fragment.
fn piece(head: usize, room: usize, full: usize) -> Option<usize> {
    if head <= room {
        return (head > 0).then_some(head);
    }
    let worth_cutting = room == full || (head > full && room >= SMALLEST_PIECE);
    (worth_cutting && room > 0).then_some(room)
}

impl Backlog for Queues {
    fn unsent_bytes(&self, stream: StreamId) -> usize {
        self.streams.get(stream).map_or(0, OutStream::unsent)
    }

    fn messages(&self, stream: StreamId) -> usize {
        self.streams.get(stream).map_or(0, OutStream::messages)
    }

    fn head_bytes(&self, stream: StreamId) -> usize {
        self.streams.get(stream).map_or(0, OutStream::head_bytes)
    }
}
