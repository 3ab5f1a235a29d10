//! The key management of all associations of an endpoint. It passes events of the core to the state machine of each
//! association, and carries out the actions of these in the core. Independent of waiting tasks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tresse_proto::config::{Encryption, KeyManagement, KeyRole};
use tresse_proto::protection::ProtectionError;
use tresse_proto::{AssociationConfig, AssociationId, Endpoint, Event, Instant};

use super::manager::{Action, KeyManager};
use super::tls::PeerIdentity;
use super::{Security, SecurityFault};

pub(crate) struct Keyring {
    security: Arc<Security>,
    role: KeyRole,
    entries: BTreeMap<AssociationId, Entry>,
    /// Times at which timers of associations are due.
    due: BTreeSet<(Instant, AssociationId)>,
    /// Associations that peers have opened without having proved their identity yet, in the order of their arrival.
    newcomers: BTreeMap<u64, AssociationId>,
    /// Number of newcomers so far.
    newcomers_so_far: u64,
    /// Time of the next check of the data held for newcomers, while there are any.
    check_at: Option<Instant>,
    strangers: u64,
}

struct Entry {
    manager: KeyManager,
    due: Option<Instant>,
    /// Its number among the newcomers.
    newcomer: Option<u64>,
}

/// Meaning of an event to key management.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(crate) enum KeyEvent {
    /// The event is not one of key management.
    Foreign,
    /// The event is one of key management.
    Own,
    /// With the event the peer has proved its identity, and everything is encrypted from now on.
    Sealed,
}

impl Keyring {
    pub(crate) fn new(security: Arc<Security>, listens: bool) -> Self {
        // A side that listens may also be called while it connects, and so can have either role.
        let role = if listens { KeyRole::Any } else { KeyRole::Client };
        Keyring {
            security,
            role,
            entries: BTreeMap::new(),
            due: BTreeSet::new(),
            newcomers: BTreeMap::new(),
            newcomers_so_far: 0,
            check_at: None,
            strangers: 0,
        }
    }

    /// Permits both roles from now on, because the endpoint listens.
    pub(crate) fn let_others_call(&mut self) {
        self.role = KeyRole::Any;
    }

    /// Returns the settings of an association with encryption required.
    pub(crate) fn require(&self, config: AssociationConfig) -> AssociationConfig {
        config.with(|c| {
            c.encryption = Encryption::Require;
            c.key_management = KeyManagement::Tls13;
            c.key_role = self.role;
        })
    }

    /// Handles an event of an association; `called` is true if this side opened it.
    pub(crate) fn on_event(
        &mut self,
        core: &mut Endpoint,
        now: Instant,
        (id, called): (AssociationId, bool),
        event: &Event,
    ) -> KeyEvent {
        match event {
            Event::ProtectionAgreed(agreed) => {
                let manager = KeyManager::new(Arc::clone(&self.security), (**agreed).clone(), now);
                self.forget(id);
                let newcomer = (!called).then(|| self.receive_newcomer(core, now, id));
                self.entries.insert(id, Entry { manager, due: None, newcomer });
            }
            Event::KeyMessage { ppid, data, protected } => {
                if let Some(entry) = self.entries.get_mut(&id) {
                    entry.manager.handle_message(now, *ppid, data, *protected);
                }
            }
            Event::KeysNearLimit { .. } => self.renew(now, id),
            Event::KeysDrained { .. } => return KeyEvent::Own,
            _ => return KeyEvent::Foreign,
        }
        if self.carry_out(core, now, id) { KeyEvent::Sealed } else { KeyEvent::Own }
    }

    /// Adds a newcomer and returns its number. If there are too many, the oldest newcomer is refused.
    fn receive_newcomer(&mut self, core: &mut Endpoint, now: Instant, id: AssociationId) -> u64 {
        if self.newcomers.len() >= MOST_NEWCOMERS
            && let Some(&oldest) = self.newcomers.values().next()
        {
            self.refuse(core, now, oldest, SecurityFault::NoAnswer);
        }
        self.newcomers_so_far += 1;
        self.newcomers.insert(self.newcomers_so_far, id);
        self.check_at.get_or_insert(now + CHECK_INTERVAL);
        self.newcomers_so_far
    }

    /// Ends the association of a newcomer.
    fn refuse(&mut self, core: &mut Endpoint, now: Instant, id: AssociationId, fault: SecurityFault) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        if let Some(place) = entry.newcomer.take() {
            self.newcomers.remove(&place);
        }
        entry.manager.give_up(fault);
        self.carry_out(core, now, id);
    }

    /// Refuses newcomers for which the transport holds more data than a key agreement needs. The peer sends no other data before it.
    fn check_newcomers(&mut self, core: &mut Endpoint, now: Instant) {
        for id in self.newcomers.values().copied().collect::<Vec<_>>() {
            let stats = core.association(id).and_then(|association| association.stats(now));
            if stats.is_some_and(|stats| stats.receive_buffer_used > MOST_HELD) {
                self.refuse(core, now, id, SecurityFault::broken("much data before it"));
            }
        }
        self.check_at = (!self.newcomers.is_empty()).then_some(now + CHECK_INTERVAL);
    }

    /// Requests an agreement on new keys as soon as possible; [`Keyring::carry_out`] has to follow.
    fn renew(&mut self, now: Instant, id: AssociationId) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.manager.rekey(now, true);
        }
    }

    /// Does the same on request of the application.
    pub(crate) fn renew_now(&mut self, core: &mut Endpoint, now: Instant, id: AssociationId) {
        self.renew(now, id);
        self.carry_out(core, now, id);
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at).into_iter().chain(self.check_at).min()
    }

    /// Handles the timers that are due; returns whether there were any.
    pub(crate) fn handle_timeout(&mut self, core: &mut Endpoint, now: Instant) -> bool {
        let mut any = false;
        if self.check_at.is_some_and(|at| at <= now) {
            self.check_newcomers(core, now);
            any = true;
        }
        while let Some((at, id)) = self.due.first().copied().filter(|(at, _)| *at <= now) {
            self.due.remove(&(at, id));
            if let Some(entry) = self.entries.get_mut(&id) {
                entry.due = None;
                entry.manager.handle_timeout(now);
            }
            self.carry_out(core, now, id);
            any = true;
        }
        any
    }

    pub(crate) fn peer(&self, id: AssociationId) -> Option<&PeerIdentity> {
        self.entries.get(&id).and_then(|entry| entry.manager.peer())
    }

    pub(crate) fn fault(&self, id: AssociationId) -> Option<&SecurityFault> {
        self.entries.get(&id).and_then(|entry| entry.manager.fault())
    }

    /// Returns the number of key generations that an association has had.
    pub(crate) fn generation(&self, id: AssociationId) -> u64 {
        let epoch = self.entries.get(&id).and_then(|entry| entry.manager.epoch());
        epoch.map_or(0, |epoch| (epoch.0 + 1).saturating_sub(tresse_proto::protection::Epoch::FIRST.0))
    }

    pub(crate) fn strangers(&self) -> u64 {
        self.strangers
    }

    /// Removes an association that has ended.
    pub(crate) fn forget(&mut self, id: AssociationId) {
        let Some(entry) = self.entries.remove(&id) else { return };
        if let Some(due) = entry.due {
            self.due.remove(&(due, id));
        }
        if let Some(place) = entry.newcomer {
            self.newcomers.remove(&place);
        }
        self.strangers += u64::from(entry.manager.fault() == Some(&SecurityFault::Stranger));
    }

    /// Carries out the pending actions in the core; returns whether everything is encrypted from now on.
    fn carry_out(&mut self, core: &mut Endpoint, now: Instant, id: AssociationId) -> bool {
        let Some(Entry { manager, due, newcomer }) = self.entries.get_mut(&id) else { return false };
        let mut sealed = false;
        while let Some(action) = manager.poll_action() {
            let Some(mut association) = core.association(id) else { break };
            let done = match action {
                Action::Send { ppid, message } => association.send_key_message(now, ppid, message),
                Action::InstallReceiveKeys(epoch, keys) => association.install_receive_keys(epoch, keys),
                Action::InstallSendKeys(epoch, keys) => association.install_send_keys(now, epoch, keys),
                Action::DestroyReceiveKeys(epoch) => {
                    // The core may have removed them already.
                    let _ = association.destroy_receive_keys(epoch);
                    Ok(())
                }
                Action::RequireProtection => {
                    let done = association.require_protection();
                    sealed |= done.is_ok();
                    done
                }
                Action::Abort => {
                    association.abort(now, "the agreement on keys failed");
                    Ok(())
                }
            };
            match done {
                Ok(()) => {}
                // The association is being shut down, and ends with its present keys.
                Err(ProtectionError::NotOpen { .. }) if manager.epoch().is_some() => manager.rest(),
                Err(error) => manager.give_up(SecurityFault::Broken(error.to_string())),
            }
        }
        if manager.peer().is_some()
            && let Some(place) = newcomer.take()
        {
            self.newcomers.remove(&place);
        }
        let next = manager.poll_timeout();
        if next != *due {
            if let Some(old) = due.take() {
                self.due.remove(&(old, id));
            }
            *due = next;
            self.due.extend(next.map(|at| (at, id)));
        }
        sealed
    }
}

/// Most associations whose peers have not proved their identity yet: as many as a processor agrees on keys with in half
/// a second. The limit is for each driver.
pub(super) const MOST_NEWCOMERS: usize = 1024;
/// Bytes that the transport may hold of such a peer: the most that one agreement needs, with headers. More is held only
/// until the next check.
pub(super) const MOST_HELD: usize = 160 * 1024;
const CHECK_INTERVAL: Duration = Duration::from_millis(50);
