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
    /// See `SendError`; the message is not queued then.
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
            let mut events = Vec::new();
            self.sender.make_room(&options, data.len(), &mut events);
            gave_up |= self.after_abandoning(now, events);
        }
        let queued = self.sender.outbound.push(now, options, data);
        // The abandoned messages may have been all that was in flight, whether or not there is enough room now.
        if gave_up || queued.is_ok() {
            self.request_output();
        }
        queued
    }

    /// Takes the next message. The window that grows by this may have to be announced.
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

    /// Number of messages and parts that wait to be read.
    pub(crate) fn unread(&self) -> usize {
        self.reception.inbound.ready_count()
    }

    /// The sending side, read-only.
    pub(crate) fn sender(&self) -> &Sender {
        &self.sender
    }

    /// Changes settings of the send queues: schedulers, maps, classes, low-water marks.
    ///
    /// # Errors
    /// The error of `change`.
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

    /// Rebuilds the groups of streams, because there are more paths than groups.
    pub(crate) fn grow_groups(&mut self, registry: &Registry) {
        self.sender.outbound.begin(registry);
        self.request_output();
    }

    /// Changes settings or measurements of paths.
    pub(crate) fn change_paths(&mut self, change: impl FnOnce(&mut Paths)) {
        change(&mut self.sender.paths);
        self.sender.refresh_usable();
        self.request_output();
    }

    /// Changes settings.
    ///
    /// # Errors
    /// A value is invalid, or contradicts another one; nothing is changed then.
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

    /// Sends a HEARTBEAT on a path at once (RFC 9260 §8.3, §11.1.8).
    ///
    /// # Errors
    /// The path does not exist.
    pub(crate) fn request_heartbeat(&mut self, cx: &mut Context<'_>, path: PathId) -> Result<(), NoSuchPath> {
        self.sender.joined(path)?;
        // During shutdown none is sent (RFC 9260 §8.3). If one is outstanding, its answer serves this request, too.
        if self.state == State::Established && !self.sender.paths.get(path).awaits_heartbeat() {
            self.send_heartbeat(cx, path);
            self.request_output();
        }
        Ok(())
    }

    /// Changes the shared keys of this association.
    ///
    /// # Errors
    /// The association is closed, authentication was not negotiated, or `change` fails.
    pub(crate) fn change_keys(
        &mut self,
        change: impl FnOnce(&mut SharedKeys) -> Result<(), KeyError>,
    ) -> Result<(), KeyError> {
        if self.state == State::Closed {
            return Err(KeyError::Closed);
        }
        self.auth.change_keys(change)
    }

    /// Number of outbound and of inbound streams.
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

    /// Abandons messages that must not be transmitted or retransmitted any more; returns whether there were any. Called before
    /// anything is sent, and after losses were detected.
    #[inline]
    pub(super) fn give_up(&mut self, now: Instant) -> bool {
        if !self.sender.has_revocable() || self.state == State::Closed {
            return false;
        }
        let mut events = Vec::new();
        self.sender.give_up(now, &mut events);
        self.after_abandoning(now, events)
    }

    /// Reports abandoned messages to the application; returns whether there were any. The bytes in flight have decreased,
    /// perhaps to zero, and a FORWARD TSN may be due.
    fn after_abandoning(&mut self, now: Instant, events: Vec<Event>) -> bool {
        if events.is_empty() {
            return false;
        }
        events.into_iter().for_each(|event| self.emit(event));
        self.foreseen = None;
        self.sender.after_abandoning();
        self.advance_shutdown(now);
        true
    }
}
