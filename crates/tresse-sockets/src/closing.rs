//! Ends of associations that this side causes: when a program ends them, when their sockets are closed, and when they are idle.

use tresse_proto::{AssociationId, Instant};

use crate::association::Phase;
use crate::engine::State;
use crate::settings::Style;

impl State {
    /// Shuts down associations that were idle for the time of SCTP_AUTOCLOSE (RFC 6458 §8.1.8).
    pub(crate) fn close_idle(&mut self, now: Instant) {
        if !self.closes_idle {
            return;
        }
        for (id, entry) in &mut self.associations {
            let pause = self.sockets.get(&entry.owner).and_then(|socket| socket.autoclose);
            let idle =
                pause.is_some_and(|pause| entry.phase == Phase::Open && entry.last_used + pause <= now);
            if let Some(mut association) =
                self.endpoint.as_mut().filter(|_| idle).and_then(|endpoint| endpoint.association(*id))
            {
                entry.phase = Phase::Closing;
                association.shutdown(now);
            }
        }
    }

    /// Ends an association: aborts it for the reason `abort`, or shuts it down if there is none.
    pub(crate) fn end_at(&mut self, now: Instant, id: AssociationId, abort: Option<&[u8]>) {
        if let Some(entry) = self.associations.get_mut(&id)
            && !matches!(entry.phase, Phase::Ended(_))
            && (entry.phase != Phase::Opening || abort.is_some())
        {
            entry.phase = Phase::Closing;
        }
        if let Some(mut association) = self.endpoint.as_mut().and_then(|core| core.association(id)) {
            match abort {
                Some(reason) => association.abort(now, reason),
                None => association.shutdown(now),
            }
        }
    }

    pub(crate) fn close_socket(&mut self, now: Instant, key: u64) {
        let Some(socket) = self.sockets.remove(&key) else { return };
        let abort = socket.abort_at_close();
        self.update_listening();
        for id in socket.backlog {
            self.end_at(now, id, Some(CLOSED));
            self.associations.entry(id).and_modify(|entry| entry.abandoned = true);
        }
        let own: Vec<AssociationId> = self.associations.keys().copied().collect();
        for id in own {
            let Some(entry) = self.associations.get_mut(&id).filter(|entry| entry.owner == key) else {
                continue;
            };
            entry.abandoned = true;
            // Wakes calls that wait for room: they find that the socket is closed.
            entry.room = None;
            if matches!(entry.phase, Phase::Ended(_)) {
                self.forget(now, id);
                continue;
            }
            self.close_association(now, id, abort);
        }
    }

    /// Ends an association whose socket is closed: aborts it for the reason `abort`, or shuts it down.
    pub(crate) fn close_association(&mut self, now: Instant, id: AssociationId, abort: Option<&[u8]>) {
        // As in Linux, unread data is lost, and an ABORT reports that to the peer (RFC 6458 §4.1.8).
        let unread = self.associations.get(&id).is_some_and(|entry| entry.next.is_some());
        self.end_at(now, id, abort.or(unread.then_some(b"closed with data unread")));
        self.refill(now, id);
    }

    /// Ends all associations as if their sockets were closed.
    pub(crate) fn end_all(&mut self, now: Instant) {
        let mut refused = Vec::new();
        for socket in self.sockets.values_mut() {
            // Data that still arrives is discarded, so that peers can shut down.
            socket.read_shut = socket.limit.is_none() || socket.style == Style::OneToMany;
            socket.limit = None;
            refused.extend(socket.backlog.drain(..));
        }
        self.update_listening();
        for id in refused {
            self.end_at(now, id, Some(CLOSED));
        }
        let ids: Vec<AssociationId> = self.associations.keys().copied().collect();
        for id in ids {
            let owner = self.associations.get(&id).filter(|entry| !entry.is_over()).map(|entry| entry.owner);
            if let Some(socket) = owner.and_then(|key| self.sockets.get(&key)) {
                let abort = socket.abort_at_close();
                self.close_association(now, id, abort);
            }
        }
        let keys: Vec<u64> = self.sockets.keys().copied().collect();
        keys.into_iter().for_each(|key| self.touch(key));
    }
}

/// Reason in the ABORT that ends an association which was not accepted.
const CLOSED: &[u8] = b"the application has closed its socket";
