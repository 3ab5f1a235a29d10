//! What the application asks of an association: send, receive, choose, look.

use bytes::Bytes;
use tresse_policy::{Instant, PathId, Registry, ScheduleError};
use tresse_wire::StreamId;

use super::{Association, Readable, State};
use crate::config::{StreamClass, StreamMap};
use crate::extensions::auth::SharedKeys;
use crate::extensions::protection::is_key_message;
use crate::interface::error::KeyError;
use crate::interface::error::{NoSuchPath, SendError};
use crate::interface::event::{Event, Message, SendOptions};
use crate::interface::reliability::Abandonments;
use crate::interface::stats::{AssociationStats, Discards, PathStats, SendQueueInfo};
use crate::paths::Member;

impl Association {
    /// Queues a message.
    ///
    /// # Errors
    /// See `SendError`; nothing was queued then.
    pub(crate) fn send(&mut self, now: Instant, options: SendOptions, data: Bytes) -> Result<(), SendError> {
        if self.state != State::Established {
            return Err(SendError::NotOpen { state: self.state.name() });
        }
        if self.protection.is_agreed() && is_key_message(options.stream, options.ppid) {
            return Err(SendError::ReservedPpid);
        }
        let gave_up = self.make_room(now, &options, data.len());
        let queued = self.sender.outbound.push(now, options, data);
        // What was given up may have been all that was in flight, whether or not it left enough room.
        if gave_up || queued.is_ok() {
            self.stir();
        }
        queued
    }

    /// The next message. The window that this opens may have to be announced.
    #[inline]
    pub(crate) fn recv(&mut self) -> Option<Message> {
        let message = self.reception.inbound.recv();
        match &message {
            Some(message) => self.on_taken(message),
            None => self.readable = Readable::Untold,
        }
        message
    }

    #[inline]
    fn on_taken(&mut self, message: &Message) {
        let update = self.reception.on_taken(message, self.config.receive_buffer.0);
        if update && self.state.takes_data() {
            self.reception.receiver.demand();
            self.stir();
        }
    }

    pub(crate) fn send_queue(&self) -> SendQueueInfo {
        self.sender.outbound.info()
    }

    pub(crate) fn unsent_on(&self, stream: StreamId) -> usize {
        self.sender.outbound.unsent_on(stream)
    }

    /// Wants to hear when at most `bytes` of `stream` wait; of `None`, no longer.
    pub(crate) fn set_low_water(
        &mut self,
        stream: StreamId,
        bytes: Option<usize>,
    ) -> Result<(), ScheduleError> {
        self.sender.outbound.set_low_water(stream, bytes)?;
        self.tell_low_water();
        Ok(())
    }

    /// Tells the application which streams have run low.
    pub(super) fn tell_low_water(&mut self) {
        while let Some((stream, unsent)) = self.sender.outbound.pop_low() {
            self.tell(Event::LowWater { stream, unsent });
        }
    }

    /// Messages of `stream` that were given up.
    pub(crate) fn abandoned_on(&self, stream: StreamId) -> Abandonments {
        self.sender.abandoned_on(stream)
    }

    pub(crate) fn set_stream_scheduler(
        &mut self,
        registry: &Registry,
        name: &str,
        config: &str,
    ) -> Result<(), ScheduleError> {
        self.sender.outbound.set_scheduler(registry, name, config)?;
        self.stir();
        Ok(())
    }

    pub(crate) fn set_stream_value(&mut self, stream: StreamId, value: u16) -> Result<(), ScheduleError> {
        self.foreseen = None;
        self.sender.outbound.set_value(stream, value)
    }

    pub(crate) fn stream_value(&self, stream: StreamId) -> Option<u16> {
        self.sender.outbound.value(stream)
    }

    pub(crate) fn set_stream_class(
        &mut self,
        registry: &Registry,
        stream: StreamId,
        class: StreamClass,
    ) -> Result<(), ScheduleError> {
        self.sender.outbound.set_class(registry, stream, class)?;
        self.stir();
        Ok(())
    }

    pub(crate) fn stream_class(&self, stream: StreamId) -> Option<StreamClass> {
        self.sender.outbound.class(stream)
    }

    pub(crate) fn set_stream_map(
        &mut self,
        registry: &Registry,
        map: StreamMap,
    ) -> Result<(), ScheduleError> {
        self.sender.outbound.set_map(registry, map)?;
        self.stir();
        Ok(())
    }

    /// Streams bound to paths follow when there are more paths.
    pub(crate) fn grow_groups(&mut self, registry: &Registry) {
        if self.sender.outbound.has_outgrown_its_groups()
            && self.sender.outbound.grow_groups(registry).is_ok()
        {
            self.stir();
        }
    }

    pub(crate) fn set_primary(&mut self, path: PathId) -> Result<(), NoSuchPath> {
        let count = self.sender.paths.len();
        if path.index() >= count || self.sender.paths.member(path) != Member::Joined {
            return Err(NoSuchPath { path, count });
        }
        self.sender.paths.set_primary(path);
        self.sender.refresh_usable();
        self.stir();
        Ok(())
    }

    pub(crate) fn tell_loss(&mut self, path: PathId, share: Option<f64>) {
        self.foreseen = None;
        self.sender.paths.tell_loss(path, share);
    }

    /// Changes the shared keys of this association.
    ///
    /// # Errors
    /// Authentication was not agreed on, or what `change` refuses.
    pub(crate) fn change_keys(
        &mut self,
        change: impl FnOnce(&mut SharedKeys) -> Result<(), KeyError>,
    ) -> Result<(), KeyError> {
        if self.state == State::Closed {
            return Err(KeyError::Closed);
        }
        self.auth.change_keys(change)
    }

    /// Streams after negotiation: sending and receiving direction.
    pub(crate) fn streams(&self) -> (u16, u16) {
        (self.sender.outbound.stream_count(), self.reception.inbound.stream_count())
    }

    pub(crate) fn stats(&self, now: Instant) -> AssociationStats {
        let send_queue = self.sender.outbound.info();
        let (messages_received, bytes_received) = self.reception.taken();
        AssociationStats {
            state: self.state.name(),
            peer_window: self.sender.transmission.peer_window(),
            own_window: self.reception.inbound.window(),
            send_buffer_used: send_queue.used,
            unsent: send_queue.unsent,
            flight: self.sender.transmission.flight(),
            receive_buffer_used: self.reception.inbound.used(),
            messages_sent: self.sender.outbound.messages_accepted(),
            messages_received,
            bytes_received,
            duplicates: self.counters.duplicates,
            sacks_sent: self.counters.sacks_sent,
            sacks_received: self.counters.sacks_received,
            scheduler_failures: self.sender.outbound.scheduler_failures() + u64::from(self.policies_replaced),
            abandoned: self.sender.abandoned(),
            limited_by: self.counters.limits.times(now),
            discards: Discards {
                given_up: self.reception.inbound.given_up(),
                unsent_answer: self.control.unsent(),
                ..*self.counters.discards
            },
        }
    }

    pub(crate) fn path_stats(&self, now: Instant) -> Vec<PathStats> {
        (0..self.sender.paths.len())
            .map(|position| {
                let path = PathId(position as u8);
                let mut stats = self.sender.paths.stats(path, now);
                self.sender.transmission.fill_stats(path, &mut stats);
                (stats.marks, stats.mark_cuts) = self.marks.counts(path);
                stats
            })
            .collect()
    }

    /// Gives up what must not be sent (again) from now on; answers whether there was any. Called before anything is sent,
    /// and after whatever finds losses.
    #[inline]
    pub(super) fn give_up(&mut self, now: Instant) -> bool {
        if !self.sender.has_revocable() || self.state == State::Closed {
            return false;
        }
        let mut told = Vec::new();
        self.sender.give_up(now, &mut told);
        self.after_abandoning(now, told)
    }

    /// Makes room for a message of `len` bytes at the cost of those that are overdue, and of those with a lower priority.
    /// Whether anything was given up.
    pub(super) fn make_room(&mut self, now: Instant, options: &SendOptions, len: usize) -> bool {
        if !self.sender.has_revocable() || self.sender.outbound.shortage(options.stream, len) == 0 {
            return false;
        }
        let expired = self.give_up(now);
        let mut told = Vec::new();
        self.sender.make_room(options, len, &mut told);
        self.after_abandoning(now, told) || expired
    }

    /// The application is told of what was given up; whether it was anything. Flights have shrunk, maybe to nothing, and the
    /// peer may have to hear of it.
    #[inline(never)]
    fn after_abandoning(&mut self, now: Instant, told: Vec<Event>) -> bool {
        if told.is_empty() {
            return false;
        }
        told.into_iter().for_each(|event| self.tell(event));
        self.foreseen = None;
        self.sender.after_abandoning();
        self.advance_shutdown(now);
        true
    }
}
