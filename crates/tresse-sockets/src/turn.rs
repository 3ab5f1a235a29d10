//! One turn of an engine: due timers, received packets, packets to be sent and events of the core, and then the readiness that the
//! descriptors of its sockets show.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use rustix::net::Shutdown;
use tresse_proto::{Datagram, Endpoint, Instant};

use crate::association::{Ended, Phase};
use crate::engine::{Engine, Place, State};
use crate::lower::Outbox;
use crate::settings::Style;
use crate::shared::{Shared, lock};
use crate::socket::SocketState;
use crate::table;

/// Outcome of a turn.
pub(crate) struct Turn {
    /// True if there is more to send.
    pub(crate) more: bool,
    /// Addresses and port that the engine had, if it has no socket and no association any more.
    pub(crate) left: Option<Place>,
}

impl Engine {
    /// Runs the driver loop of the core once. The outbox is that of this engine. Packets that arrive without an endpoint are added to
    /// `strays`.
    pub(crate) fn turn(&self, shared: &Shared, outbox: &mut Outbox, strays: &mut Vec<Datagram>) -> Turn {
        let mut state = self.lock();
        let now = shared.now();
        state.clock = now;
        shared.note_commands(std::mem::take(&mut state.commands));
        for datagram in lock(&self.inbox).drain(..) {
            match &mut state.endpoint {
                Some(endpoint) => endpoint.handle_datagram(now, datagram),
                // The socket is bound, and neither listens nor connects.
                None => strays.push(datagram),
            }
        }
        let more = state.settle(now, outbox);
        if std::mem::take(&mut state.addresses_freed) {
            self.give_back(shared, &mut state);
        }
        let deadline = state.next_deadline();
        self.deadline.store(deadline.map_or(u64::MAX, Instant::as_nanos), Ordering::Release);
        if let Some(deadline) = deadline {
            shared.wake_by(deadline);
        }
        let mut left = None;
        if !more && state.is_unused() {
            // The last packets are in the outbox already.
            state.endpoint = None;
            left = state.place.take();
        }
        let receive_buffer = state.endpoint.as_ref().map(|endpoint| endpoint.template().receive_buffer.0);
        drop(state);
        shared.note_turn(outbox.len(), receive_buffer.unwrap_or(usize::MAX));
        outbox.send(&shared.lower());
        Turn { more, left }
    }
}

impl State {
    /// Handles due timers, takes packets to be sent from the core, and dispatches events. Returns whether there is more to send.
    fn settle(&mut self, now: Instant, outbox: &mut Outbox) -> bool {
        let mut more = false;
        if let Some(endpoint) = &mut self.endpoint {
            if endpoint.poll_timeout().is_some_and(|due| due <= now) {
                endpoint.handle_timeout(now);
            }
            more = outbox.fill(endpoint, now);
        }
        self.close_idle(now);
        self.dispatch_events(now);
        self.notify_dry();
        if let Some(endpoint) = &mut self.endpoint {
            // Packets that result from events, for instance from the release of an association.
            more |= outbox.fill(endpoint, now);
        }
        self.refresh();
        more
    }

    fn next_deadline(&self) -> Option<Instant> {
        let core = self.endpoint.as_ref().and_then(Endpoint::poll_timeout);
        let looked_at = self.closes_idle.then_some(&self.associations).into_iter().flat_map(BTreeMap::values);
        let idle = looked_at.filter_map(|entry| {
            let pause = self.sockets.get(&entry.owner)?.autoclose?;
            (entry.phase == Phase::Open).then(|| entry.last_used + pause)
        });
        core.into_iter().chain(idle).min()
    }

    /// Updates the readiness that the descriptors of marked sockets show.
    pub(crate) fn refresh(&mut self) {
        while let Some(key) = self.touched.pop() {
            let (readable, writable, hung_up) =
                (self.is_readable(key), self.is_writable(key), self.hung_up(key));
            let Some(socket) = self.sockets.get_mut(&key) else { continue };
            if let Some(theirs) = socket.theirs().or_else(|| table::any_of(key)) {
                socket.show(&theirs, readable, writable, hung_up);
            }
        }
    }

    fn is_readable(&self, key: u64) -> bool {
        let Some(socket) = self.sockets.get(&key) else { return true };
        if socket.limit.is_some() && socket.style == Style::OneToOne {
            return !socket.backlog.is_empty();
        }
        self.turn_of(key).is_some() || socket.read_shut || self.is_at_end(socket)
    }

    /// Returns the end of its association that a one-to-one socket shows. After a failed set-up it shows none: the socket may
    /// connect again.
    fn hung_up(&self, key: u64) -> Option<Shutdown> {
        let socket = self.sockets.get(&key)?;
        let entry = socket.association.and_then(|id| self.associations.get(&id));
        let both = |both| Some(if both { Shutdown::Both } else { Shutdown::Write });
        match entry.map(|entry| entry.phase) {
            Some(Phase::Ended(Ended::With(_) | Ended::Told)) => Some(Shutdown::Both),
            Some(Phase::Ended(Ended::Gracefully)) => both(socket.write_shut),
            _ if socket.read_shut || entry.is_some_and(|entry| entry.peer_done) => both(socket.write_shut),
            _ => None,
        }
    }

    /// Returns whether no more data can arrive at a one-to-one socket.
    fn is_at_end(&self, socket: &SocketState) -> bool {
        let entry = socket.association.and_then(|id| self.associations.get(&id));
        entry.is_some_and(|entry| entry.peer_done || matches!(entry.phase, Phase::Ended(_)))
            || (socket.style == Style::OneToOne && socket.was_connected && entry.is_none())
    }

    fn is_writable(&self, key: u64) -> bool {
        let Some(socket) = self.sockets.get(&key) else { return true };
        match socket.style {
            Style::OneToMany => !self.associations.values().any(|entry| entry.owner == key && entry.blocked),
            Style::OneToOne if socket.limit.is_some() => false,
            Style::OneToOne => match socket.association.and_then(|id| self.associations.get(&id)) {
                Some(entry) => match entry.phase {
                    Phase::Opening => false,
                    Phase::Open => !entry.blocked,
                    Phase::Closing | Phase::Ended(_) => true,
                },
                None => socket.was_connected,
            },
        }
    }
}
