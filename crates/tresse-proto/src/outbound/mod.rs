//! Messages that wait to be sent: one queue a stream, one scheduler a group of streams, one send buffer.
//!
//! Every stream belongs to a group and every path draws from the groups it serves, so that any
//! stream scheduler works with any stream map. The queues are owned here; a scheduler owns only its
//! order. Knows nothing of TSNs, windows or acknowledgements.

mod stream;
#[cfg(test)]
mod tests;

use bytes::Bytes;
use tresse_wire::StreamId;

use crate::config::{AssociationConfig, StreamMap};
use crate::error::{ScheduleError, SendError};
use crate::event::SendOptions;
use crate::fragment::Fragment;
use crate::path_id::PathId;
use crate::schedule::{Backlog, Built, PathView, Place, Queued, Registry, Taken};
use crate::stats::SendQueueInfo;
use crate::stream_table::StreamTable;

use stream::{OutStream, Waiting};

/// The smallest piece worth cutting off a long message to fill a packet: below this the chunk header
/// costs more than the room is worth.
const SMALLEST_PIECE: usize = 256;

/// The sending side of all streams.
pub(crate) struct Outbound {
    queues: Queues,
    map: StreamMap,
    /// With any map one group for all; with a fixed one a group for each path position.
    groups: Vec<Group>,
    scheduler: (String, String),
    /// Paths that can be used; the groups of the others are served by these.
    usable: Vec<bool>,
    /// A message that was begun: without interleaving nothing else may be cut before its end
    /// (RFC 9260 §6.9).
    open: Option<StreamId>,
    limit: usize,
    /// Bytes accepted and not released.
    used: usize,
    unsent: usize,
    /// A `send` was refused for lack of room; the application is owed a word.
    refused: bool,
    messages_accepted: u64,
}

struct Queues {
    streams: StreamTable<OutStream>,
    count: u16,
}

struct Group {
    scheduler: Built,
}

impl Outbound {
    /// `streams` is the negotiated number; `paths` how many there are now.
    ///
    /// # Errors
    /// A stream scheduler that is not registered or refuses its configuration.
    pub(crate) fn new(
        config: &AssociationConfig,
        registry: &Registry,
        streams: u16,
        paths: usize,
    ) -> Result<Self, ScheduleError> {
        let mut outbound = Outbound {
            queues: Queues { streams: StreamTable::default(), count: streams },
            map: config.stream_map.clone(),
            groups: Vec::new(),
            scheduler: (config.stream_scheduler.clone(), config.stream_scheduler_config.clone()),
            usable: vec![true; paths],
            open: None,
            limit: config.send_buffer.0,
            used: 0,
            unsent: 0,
            refused: false,
            messages_accepted: 0,
        };
        outbound.regroup(registry)?;
        Ok(outbound)
    }

    /// Streams that were negotiated.
    pub(crate) fn stream_count(&self) -> u16 {
        self.queues.count
    }

    /// Queues a message of at least one byte; `longest` is what buffers can ever hold.
    ///
    /// # Errors
    /// No such stream, no room, or a message that never fits.
    pub(crate) fn push(
        &mut self,
        options: SendOptions,
        data: Bytes,
        longest: usize,
    ) -> Result<(), SendError> {
        let (stream, len) = (options.stream, data.len());
        if stream.0 >= self.queues.count {
            return Err(SendError::NoSuchStream { stream, count: self.queues.count });
        }
        if len == 0 {
            return Err(SendError::Empty);
        }
        let limit = longest.min(self.limit);
        if len > limit {
            return Err(SendError::TooLong { len, limit });
        }
        if self.used + len > self.limit {
            self.refused = true;
            return Err(SendError::Full { free: self.limit - self.used });
        }
        let queue = self.queues.streams.entry(stream);
        let was_idle = queue.is_empty();
        queue.push(Waiting { data, ppid: options.ppid, unordered: options.unordered });
        self.used += len;
        self.unsent += len;
        self.messages_accepted += 1;
        let group = self.group_of(stream);
        self.groups[group].scheduler.on_queued(Queued { stream, bytes: len, was_idle, place: Place::Tail });
        Ok(())
    }

    /// Whether anything waits, for whatever path.
    pub(crate) fn is_empty(&self) -> bool {
        self.unsent == 0
    }

    /// Whether a message waits that may leave on `path`.
    pub(crate) fn has_data_for(&self, path: PathId) -> bool {
        if self.unsent == 0 {
            return false;
        }
        match self.open {
            Some(stream) => self.serves(path, self.group_of(stream)),
            None => (0..self.groups.len())
                .any(|group| self.serves(path, group) && !self.groups[group].scheduler.is_empty()),
        }
    }

    /// Cuts the next piece for the path behind `view`.
    ///
    /// `room` is what the packet still takes, `full` what an empty one would, `allowance` what the
    /// peer can take, all in bytes of user data. A message that fits a packet is not cut only because
    /// this one is nearly full.
    pub(crate) fn take(
        &mut self,
        view: &PathView,
        room: usize,
        full: usize,
        allowance: usize,
    ) -> Option<Fragment> {
        let (group, stream) = match self.open {
            Some(stream) => {
                Some((self.group_of(stream), stream)).filter(|&(group, _)| self.serves(view.id, group))
            }
            None => self.pick(view),
        }?;
        let queue = self.queues.streams.entry(stream);
        let head = queue.head_bytes();
        let len = piece(head, room, full).filter(|&len| len <= allowance)?;
        let fragment = queue.cut(stream, len)?;
        self.unsent -= len;
        let message_done = fragment.flags.ending;
        self.open = (!message_done).then_some(stream);
        let stream_empty = queue.is_empty();
        self.groups[group].scheduler.on_taken(Taken { stream, bytes: len, message_done, stream_empty });
        Some(fragment)
    }

    /// A packet with new data for a path is complete.
    pub(crate) fn on_packet_end(&mut self, path: PathId) {
        for group in 0..self.groups.len() {
            if self.serves(path, group) {
                self.groups[group].scheduler.on_packet_end();
            }
        }
    }

    /// Frees `bytes` of the send buffer; answers whether the application is to be told so.
    pub(crate) fn release(&mut self, bytes: usize) -> bool {
        self.used = self.used.saturating_sub(bytes);
        bytes > 0 && std::mem::take(&mut self.refused)
    }

    /// Tells whether a path can be used; one that cannot has its streams carried by the others.
    pub(crate) fn set_usable(&mut self, path: PathId, usable: bool) {
        if let Some(known) = self.usable.get_mut(path.index()) {
            *known = usable;
        }
    }

    /// Chooses another scheduler; what is queued stays.
    ///
    /// # Errors
    /// An unknown name or a refused configuration; the old scheduler then stays.
    pub(crate) fn set_scheduler(
        &mut self,
        registry: &Registry,
        name: &str,
        config: &str,
    ) -> Result<(), ScheduleError> {
        let old = std::mem::replace(&mut self.scheduler, (name.to_owned(), config.to_owned()));
        self.regroup(registry).inspect_err(|_| self.scheduler = old)
    }

    /// Chooses another stream map; what is queued stays.
    pub(crate) fn set_map(&mut self, registry: &Registry, map: StreamMap) -> Result<(), ScheduleError> {
        let old = std::mem::replace(&mut self.map, map);
        self.regroup(registry).inspect_err(|_| self.map = old)
    }

    /// Bytes of `stream` that wait.
    pub(crate) fn unsent_on(&self, stream: StreamId) -> usize {
        self.queues.unsent_bytes(stream)
    }

    /// The send queue as a whole.
    pub(crate) fn info(&self) -> SendQueueInfo {
        SendQueueInfo { limit: self.limit, used: self.used, unsent: self.unsent }
    }

    /// Whether a full-sized message would be refused: the send buffer is what keeps the application out.
    pub(crate) fn is_full(&self) -> bool {
        self.refused
    }

    /// Messages accepted so far.
    pub(crate) fn messages_accepted(&self) -> u64 {
        self.messages_accepted
    }

    fn pick(&mut self, view: &PathView) -> Option<(usize, StreamId)> {
        let usable = &self.usable;
        let serves = |group: usize, groups: usize| serves(usable, view.id, group, groups);
        let count = self.groups.len();
        (0..count).filter(|&group| serves(group, count)).find_map(|group| {
            let scheduler = &mut self.groups[group].scheduler;
            let stream = scheduler.next(view, &self.queues)?;
            // A scheduler that names a stream with nothing to send is not followed.
            (self.queues.head_bytes(stream) > 0).then_some((group, stream))
        })
    }

    fn serves(&self, path: PathId, group: usize) -> bool {
        serves(&self.usable, path, group, self.groups.len())
    }

    fn group_of(&self, stream: StreamId) -> usize {
        self.map.path_of(stream).map_or(0, |position| usize::from(position) % self.groups.len().max(1))
    }

    /// Makes the groups anew and hands every waiting message to the scheduler of its group.
    fn regroup(&mut self, registry: &Registry) -> Result<(), ScheduleError> {
        let count = match self.map {
            StreamMap::Any => 1,
            StreamMap::Fixed(_) => self.usable.len().max(1),
        };
        let (name, config) = &self.scheduler;
        let groups: Result<Vec<Group>, ScheduleError> =
            (0..count).map(|_| registry.build(name, config).map(|scheduler| Group { scheduler })).collect();
        self.groups = groups?;
        for (stream, queue) in self.queues.streams.iter() {
            let group = self.map.path_of(stream).map_or(0, |position| usize::from(position) % count);
            for (position, bytes) in queue.lengths().enumerate() {
                let queued = Queued { stream, bytes, was_idle: position == 0, place: Place::Tail };
                self.groups[group].scheduler.on_queued(queued);
            }
        }
        Ok(())
    }
}

/// Whether `path` draws from `group`: its own, the only one, or one whose path cannot be used.
fn serves(usable: &[bool], path: PathId, group: usize, groups: usize) -> bool {
    groups == 1 || group == path.index() || !usable.get(group).copied().unwrap_or(false)
}

/// How much of a message with `head` bytes left goes into a packet with `room`; `None` for nothing.
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
