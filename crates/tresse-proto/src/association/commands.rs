//! Commands of the application on an association: send, receive, change policies and settings, read statistics.

use bytes::Bytes;
use tresse_policy::{Instant, PathId, Registry, ScheduleError};

use super::sender::Sender;
use super::{Association, Readable, State};
use crate::config::ConfigError;
use crate::context::Context;
use crate::extensions::auth::SharedKeys;
use crate::extensions::protection::is_key_message;
use crate::interface::adjustment::Adjustment;
use crate::interface::error::{KeyError, NoSuchPath, SendError};
use crate::interface::event::{Event, Message, SendOptions};
use crate::interface::stats::{AssociationStats, Discards, PathStats};
use crate::outbound::Outbound;
use crate::paths::Paths;

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
        let mut gave_up = false;
        if self.sender.has_revocable() && self.sender.outbound.shortage(options.stream, data.len()) > 0 {
            gave_up = self.give_up(now);
            let mut told = Vec::new();
            self.sender.make_room(&options, data.len(), &mut told);
            gave_up |= self.after_abandoning(now, told);
        }
        let queued = self.sender.outbound.push(now, options, data);
        // What was given up may have been all that was in flight, whether or not it left enough room.
        if gave_up || queued.is_ok() {
            self.request_output();
        }
        queued
    }

    /// The next message. The window that this opens may have to be announced.
    #[inline]
    pub(crate) fn recv(&mut self) -> Option<Message> {
        let message = self.reception.inbound.recv();
        let Some(taken) = &message else {
            self.readable = Readable::Untold;
            return None;
        };
        let update = self.reception.on_taken(taken, self.sender.config.receive_buffer.0);
        if update && self.state.takes_data() {
            self.reception.receiver.demand();
            self.request_output();
        }
        message
    }

    /// Number of messages and parts that wait to be taken.
    pub(crate) fn unread(&self) -> usize {
        self.reception.inbound.ready_count()
    }

    /// The queues and the paths, to be looked at.
    pub(crate) fn sender(&self) -> &Sender {
        &self.sender
    }

    /// Changes what the queues go by: schedulers, maps, classes, marks of low water.
    ///
    /// # Errors
    /// What `change` refuses.
    pub(crate) fn change_queues<T>(
        &mut self,
        change: impl FnOnce(&mut Outbound) -> Result<T, ScheduleError>,
    ) -> Result<T, ScheduleError> {
        let outcome = change(&mut self.sender.outbound)?;
        while let Some(event) = self.sender.pop_low() {
            self.emit(event);
        }
        self.request_output();
        Ok(outcome)
    }

    /// There are more paths than groups of streams: makes the groups anew.
    pub(crate) fn grow_groups(&mut self, registry: &Registry) {
        self.sender.outbound.begin(registry);
        self.request_output();
    }

    /// Changes what is wanted of paths, or known of them from elsewhere.
    pub(crate) fn change_paths(&mut self, change: impl FnOnce(&mut Paths)) {
        change(&mut self.sender.paths);
        self.sender.refresh_usable();
        self.request_output();
    }

    /// Changes settings.
    ///
    /// # Errors
    /// Values that are not usable, or contradict others; nothing is changed then.
    pub(crate) fn adjust(&mut self, change: &Adjustment) -> Result<(), ConfigError> {
        let config = self.sender.config.with(|config| change.apply(config));
        config.check()?;
        self.reception.adjust(&config);
        self.sender.transmission.set_send_buffer(config.send_buffer.0);
        if self.sender.outbound.buffer.resize(config.send_buffer.0) {
            self.emit(Event::Writable);
        }
        self.sender.paths.adjust(config.path_rules(), &config, &change.paths);
        self.sender.config = config;
        self.request_output();
        Ok(())
    }

    /// Sends a heartbeat on a path, due or not (RFC 9260 §8.3, §11.1.8).
    ///
    /// # Errors
    /// No such path.
    pub(crate) fn request_heartbeat(&mut self, cx: &mut Context<'_>, path: PathId) -> Result<(), NoSuchPath> {
        self.sender.joined(path)?;
        // A shutdown sends none (RFC 9260 §8.3), and the answer to one under way is that to this one.
        if self.state == State::Established && !self.sender.paths.get(path).awaits_heartbeat() {
            self.send_heartbeat(cx, path);
            self.request_output();
        }
        Ok(())
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
        let send_queue = self.sender.outbound.buffer.info();
        let (messages_received, bytes_received) = self.reception.taken();
        AssociationStats {
            state: self.state.name(),
            peer_window: self.sender.transmission.peer_window(),
            own_window: self.reception.inbound.window(),
            send_buffer_used: send_queue.used,
            unsent: send_queue.unsent,
            flight: self.sender.transmission.outstanding.flight(),
            receive_buffer_used: self.reception.inbound.used(),
            messages_sent: self.sender.outbound.buffer.messages(),
            messages_received,
            bytes_received,
            duplicates: self.counters.duplicates,
            sacks_sent: self.counters.sacks_sent,
            sacks_received: self.counters.sacks_received,
            scheduler_failures: self.sender.outbound.failures.count() + u64::from(self.policies_replaced),
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

    /// Gives up what must not be sent (again) from now on; returns whether there was any. Called before anything is sent,
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

    /// Reports abandoned messages to the application; returns whether there were any. The bytes in flight have decreased,
    /// perhaps to zero, and a FORWARD TSN may be due.
    fn after_abandoning(&mut self, now: Instant, told: Vec<Event>) -> bool {
        if told.is_empty() {
            return false;
        }
        told.into_iter().for_each(|event| self.emit(event));
        self.foreseen = None;
        self.sender.after_abandoning();
        self.advance_shutdown(now);
        true
    }
}
