//! The key management of one association (draft-porfiri-tsvwg-sctp-dtls-handshake-02, method 192): the order of key
//! messages and of the installation of keys. A state machine without I/O and without a clock: the caller passes it
//! events, and carries out its actions in order.
//!
//! ```text
//! client                                           server
//!   TLS flights            (4242)  ⇄                 TLS flights
//!   receive keys, RKI      (4243)  →                 TLS complete and RKI: receive keys, send keys,
//!   send keys, only sealed         ←  (4243)         only sealed, RKI
//! ```
//!
//! A later agreement has the same steps, encrypted with the former keys. Only the client begins it; the server requests it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tresse_proto::{Instant, Ppid};

use super::key_log::{KeyLog, LoggedKey};
use super::layer::record_keys;
use super::records::{Content, first_content, messages};
use super::tls::{Failed, PeerIdentity, Session};
use super::{Security, SecurityFault};
use tresse_proto::protection::{
    Agreed, EXPORTER_LABEL, Epoch, KEY_CONTROL, KEY_MANAGEMENT, KeyDirection, KeyPart, RecordKeys, Role,
};

/// Next action that the caller has to take.
pub enum Action {
    /// Send a key message, in order on stream 0.
    Send {
        /// 4242 or 4243.
        ppid: Ppid,
        /// The whole message.
        message: Bytes,
    },
    /// Use these keys to open records of this epoch from now on.
    InstallReceiveKeys(Epoch, RecordKeys),
    /// Seal all packets with these keys from now on.
    InstallSendKeys(Epoch, RecordKeys),
    /// Destroy the receive keys of an epoch.
    DestroyReceiveKeys(Epoch),
    /// Discard unprotected packets from now on. [`KeyManager::peer`] returns the identity of the peer.
    RequireProtection,
    /// Abort the association; [`KeyManager::fault`] returns the reason.
    Abort,
}

impl std::fmt::Debug for Action {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Action::Send { ppid, message } => write!(f, "Send({}, {} bytes)", ppid.0, message.len()),
            Action::InstallReceiveKeys(epoch, _) => write!(f, "InstallReceiveKeys({})", epoch.0),
            Action::InstallSendKeys(epoch, _) => write!(f, "InstallSendKeys({})", epoch.0),
            Action::DestroyReceiveKeys(epoch) => write!(f, "DestroyReceiveKeys({})", epoch.0),
            Action::RequireProtection => f.write_str("RequireProtection"),
            Action::Abort => f.write_str("Abort"),
        }
    }
}

/// The key management of one association.
pub struct KeyManager {
    security: Arc<Security>,
    agreed: Agreed,
    phase: Phase,
    /// The present TLS connection, or the last one until its end is agreed.
    session: Option<Session>,
    /// The epoch of the keys in use, and the beginning of their use.
    current: Option<(Epoch, Instant)>,
    peer: Option<PeerIdentity>,
    /// Latest time of the next agreement on keys.
    wanted: Option<Instant>,
    deadline: Option<Instant>,
    fault: Option<SecurityFault>,
    actions: VecDeque<Action>,
}

impl std::fmt::Debug for KeyManager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyManager").field("current", &self.current).finish_non_exhaustive()
    }
}

enum Phase {
    /// No agreement is in progress.
    Idle,
    /// The TLS handshake is in progress. At the server: whether the peer has installed its receive keys.
    Handshake { peer_reads: bool },
    /// The client has reported its receive keys, and waits for the report of the server.
    Confirming { keys: Box<RecordKeys> },
    /// The agreement failed: the peer gets an alert, and then the association ends.
    Failed,
}

impl KeyManager {
    /// Begins the key management when the association is set up and the negotiation is known at both ends.
    pub fn new(security: Arc<Security>, agreed: Agreed, now: Instant) -> Self {
        let mut manager = KeyManager {
            deadline: Some(now + security.rekeying.patience),
            security,
            agreed,
            phase: Phase::Idle,
            session: None,
            current: None,
            peer: None,
            wanted: None,
            fault: None,
            actions: VecDeque::new(),
        };
        if manager.agreed.role == Role::Client {
            manager.begin(now);
        }
        manager
    }

    /// Returns the next action for the caller.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Returns the time at which [`KeyManager::handle_timeout`] is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let wanted = self.wanted.filter(|_| matches!(self.phase, Phase::Idle));
        [self.deadline, wanted].into_iter().flatten().min()
    }

    /// Returns the identity that the peer has proved; `None` before the first agreement.
    pub fn peer(&self) -> Option<&PeerIdentity> {
        self.peer.as_ref()
    }

    /// Returns the reason for which the association is to end, if it is.
    pub fn fault(&self) -> Option<&SecurityFault> {
        self.fault.as_ref()
    }

    /// Returns the epoch of the keys in use.
    pub fn epoch(&self) -> Option<Epoch> {
        self.current.map(|(epoch, _)| epoch)
    }

    /// Takes a key message of the peer; `protected` is true if all of it arrived encrypted.
    pub fn handle_message(&mut self, now: Instant, ppid: Ppid, message: &[u8], protected: bool) {
        if matches!(self.phase, Phase::Failed) {
            return;
        }
        let only_sealed = match &self.phase {
            _ if self.current.is_some() => true,
            // The client's report of its receive keys is its last unprotected message.
            Phase::Handshake { peer_reads } => *peer_reads,
            // The server sends its report encrypted; only an alert may be unprotected.
            Phase::Confirming { .. } => ppid == KEY_CONTROL,
            Phase::Idle | Phase::Failed => false,
        };
        if only_sealed && !protected {
            return self.fail(now, SecurityFault::broken("a key message in the clear among sealed ones"));
        }
        let outcome = match ppid {
            KEY_MANAGEMENT => self.on_records(now, message),
            KEY_CONTROL => self.on_control(now, message),
            _ => Err(SecurityFault::broken("a key message of unknown kind")),
        };
        if let Err(fault) = outcome {
            self.fail(now, fault);
        }
    }

    /// Handles the timers that are due.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.deadline.is_some_and(|due| due <= now) {
            self.deadline = None;
            match self.phase {
                Phase::Failed => self.actions.push_back(Action::Abort),
                _ => self.end(SecurityFault::NoAnswer),
            }
        }
        if self.wanted.is_some_and(|due| due <= now) && matches!(self.phase, Phase::Idle) {
            self.renew(now);
        }
    }

    /// Begins an agreement on new keys, as soon as two sets of keys suffice: packets in flight may still need the
    /// former keys. `urgent` (a limit of the keys is near) shortens the wait.
    pub fn rekey(&mut self, now: Instant, urgent: bool) {
        let (Some((_, since)), Phase::Idle) = (self.current, &self.phase) else { return };
        let rekeying = &self.security.rekeying;
        let due = since + if urgent { rekeying.shortest_drain } else { rekeying.drain };
        self.wanted = Some(self.wanted.map_or(due, |wanted| wanted.min(due)));
        if due <= now {
            self.renew(now);
        }
    }

    /// Begins an agreement at the client; requests one at the server.
    fn renew(&mut self, now: Instant) {
        match self.agreed.role {
            Role::Client => self.begin(now),
            Role::Server => {
                self.wanted = None;
                self.deadline = Some(now + self.security.rekeying.patience_rekeying);
                self.send_control(REKEY_REQUEST);
            }
        }
    }

    /// Begins an agreement, with a TLS connection of its own.
    fn begin(&mut self, now: Instant) {
        self.wanted = None;
        if self.current.is_some() {
            self.deadline = Some(now + self.security.rekeying.patience_rekeying);
        }
        self.phase = Phase::Handshake { peer_reads: false };
        match Session::begin(&self.security.tls, self.agreed.role, self.security.raw) {
            Ok(session) => self.session = Some(session),
            Err(failed) => return self.fail(now, self.judge(failed)),
        }
        self.flush();
    }

    fn on_records(&mut self, now: Instant, message: &[u8]) -> Result<(), SecurityFault> {
        let Some(content) = first_content(message) else {
            return Err(SecurityFault::broken("a key message that is not made of whole TLS records"));
        };
        match (&self.phase, self.agreed.role) {
            // After its handshake a connection has only encrypted records, so a handshake record begins a new one.
            (Phase::Idle, Role::Server) if content == Content::Handshake => self.begin(now),
            // A record of the end of the former connection.
            (Phase::Handshake { .. }, Role::Client)
                if content == Content::ApplicationData && self.is_fresh() =>
            {
                return Ok(());
            }
            _ => {}
        }
        let Some(session) = &mut self.session else {
            return match content {
                // A record of a connection that has ended.
                Content::Alert | Content::ApplicationData => Ok(()),
                _ => Err(SecurityFault::broken("a TLS record out of turn")),
            };
        };
        let fed = session.feed(message);
        let over = session.is_over();
        self.flush();
        if let Err(failed) = fed {
            return Err(self.judge(failed));
        }
        if let Phase::Handshake { peer_reads } = self.phase {
            if over {
                return Err(SecurityFault::broken("TLS ended before it was complete"));
            }
            return self.advance(now, peer_reads);
        }
        if over {
            self.close_session();
        }
        Ok(())
    }

    /// Returns whether the present connection has received nothing yet.
    fn is_fresh(&self) -> bool {
        self.session.as_ref().is_some_and(Session::is_fresh)
    }

    /// Continues when the TLS handshake is complete; the server also waits for the client's report of its receive keys.
    fn advance(&mut self, now: Instant, peer_reads: bool) -> Result<(), SecurityFault> {
        let Some(session) = self.session.as_ref().filter(|session| session.is_complete()) else {
            return Ok(());
        };
        let peer = session.peer().map_err(|failed| self.judge(failed))?;
        if self.peer.as_ref().is_some_and(|known| known.fingerprint != peer.fingerprint) {
            return Err(SecurityFault::IdentityChanged);
        }
        match self.agreed.role {
            Role::Client => {
                let (epoch, receive, send) = self.make_keys(session)?;
                self.install_receive_keys(epoch, receive);
                self.send_control(READ_KEY_INSTALLED);
                self.phase = Phase::Confirming { keys: Box::new(send) };
            }
            Role::Server if peer_reads => {
                let (epoch, receive, send) = self.make_keys(session)?;
                self.install_receive_keys(epoch, receive);
                self.complete(now, epoch, send, Some(peer.clone()));
                self.send_control(READ_KEY_INSTALLED);
            }
            Role::Server => {}
        }
        if self.peer.is_none() && self.agreed.role == Role::Client {
            self.peer = Some(peer);
        }
        Ok(())
    }

    fn on_control(&mut self, now: Instant, message: &[u8]) -> Result<(), SecurityFault> {
        let &[byte] = message else {
            return Err(SecurityFault::broken("a control message that is not one byte"));
        };
        let turn = (byte, self.agreed.role, std::mem::replace(&mut self.phase, Phase::Idle));
        match turn {
            (READ_KEY_INSTALLED, Role::Client, Phase::Confirming { keys }) => {
                let epoch = self.coming_epoch();
                self.complete(now, epoch, *keys, None);
                if let Some(session) = &mut self.session {
                    session.close();
                }
                self.flush();
                Ok(())
            }
            (READ_KEY_INSTALLED, Role::Server, Phase::Handshake { peer_reads: false }) => {
                self.phase = Phase::Handshake { peer_reads: true };
                self.advance(now, true)
            }
            (REKEY_REQUEST, Role::Client, Phase::Idle) if self.current.is_some() => {
                self.rekey(now, true);
                Ok(())
            }
            // An agreement is in progress.
            (REKEY_REQUEST, Role::Client, phase) if self.current.is_some() => {
                self.phase = phase;
                Ok(())
            }
            (READ_KEY_INSTALLED | REKEY_REQUEST, ..) => {
                Err(SecurityFault::broken("a control message out of turn"))
            }
            _ => Err(SecurityFault::broken("a control message of unknown kind")),
        }
    }

    fn coming_epoch(&self) -> Epoch {
        self.current.map_or(Epoch::FIRST, |(epoch, _)| epoch.next())
    }

    /// Returns the next epoch and its keys, of the receiving and of the sending direction.
    fn make_keys(&self, session: &Session) -> Result<(Epoch, RecordKeys, RecordKeys), SecurityFault> {
        let keys = |direction: KeyDirection| -> Result<RecordKeys, Failed> {
            let suite = session.suite()?;
            let export = |length, part| {
                session.export(length, EXPORTER_LABEL, &self.agreed.exporter_context(direction, part))
            };
            let key = export(suite.key_len(), KeyPart::Key)?;
            let sn_key = export(suite.key_len(), KeyPart::NumberKey)?;
            let iv = export(IV, KeyPart::Iv)?;
            if let Some(KeyLog(log)) = &self.security.key_log {
                log(&LoggedKey::new(suite, self.coming_epoch(), [&key, &sn_key, &iv]));
            }
            let keys = record_keys(suite, &key, &sn_key, &iv);
            keys.ok_or_else(|| Failed::Broken("keys of another length than the suite's".to_owned()))
        };
        let receive = keys(self.agreed.receives()).map_err(|failed| self.judge(failed))?;
        let send = keys(self.agreed.sends()).map_err(|failed| self.judge(failed))?;
        Ok((self.coming_epoch(), receive, send))
    }

    /// Installs receive keys, at most those of two epochs: records distinguish epochs by two bits, and the peer keeps two.
    fn install_receive_keys(&mut self, epoch: Epoch, keys: RecordKeys) {
        if let Some(old) = epoch.0.checked_sub(2).map(Epoch).filter(|old| *old >= Epoch::FIRST) {
            self.actions.push_back(Action::DestroyReceiveKeys(old));
        }
        self.actions.push_back(Action::InstallReceiveKeys(epoch, keys));
    }

    fn complete(&mut self, now: Instant, epoch: Epoch, keys: RecordKeys, peer: Option<PeerIdentity>) {
        self.actions.push_back(Action::InstallSendKeys(epoch, keys));
        if self.current.is_none() {
            self.actions.push_back(Action::RequireProtection);
        }
        self.peer = peer.or(self.peer.take());
        self.current = Some((epoch, now));
        self.phase = Phase::Idle;
        self.deadline = None;
        let rekeying = &self.security.rekeying;
        let margin = match self.agreed.role {
            Role::Client => Duration::ZERO,
            // The server requests an agreement only if the client has not begun one.
            Role::Server => rekeying.drain,
        };
        self.wanted = Some(now + rekeying.interval + margin);
    }

    /// Ends both directions of a TLS connection.
    fn close_session(&mut self) {
        if let Some(mut session) = self.session.take()
            && self.agreed.role == Role::Server
        {
            session.close();
            self.send_records(&session.take_output());
        }
    }

    fn flush(&mut self) {
        if let Some(session) = &mut self.session {
            let records = session.take_output();
            self.send_records(&records);
        }
    }

    fn send_records(&mut self, records: &[u8]) {
        for message in messages(records, LONGEST_MESSAGE) {
            let message = Bytes::copy_from_slice(message);
            self.actions.push_back(Action::Send { ppid: KEY_MANAGEMENT, message });
        }
    }

    fn send_control(&mut self, byte: u8) {
        self.actions.push_back(Action::Send { ppid: KEY_CONTROL, message: Bytes::copy_from_slice(&[byte]) });
    }

    fn judge(&self, failed: Failed) -> SecurityFault {
        match failed {
            // A peer that is not trusted at a later agreement has changed.
            Failed::Stranger if self.current.is_some() => SecurityFault::IdentityChanged,
            Failed::Stranger => SecurityFault::Stranger,
            Failed::Refused => SecurityFault::Refused,
            Failed::Broken(why) => SecurityFault::Broken(why),
        }
    }

    /// Ends the key management after a fault. During set-up, the peer gets time to read an alert before the association
    /// ends, unless it has sent one itself. Later the association is aborted at once.
    fn fail(&mut self, now: Instant, fault: SecurityFault) {
        if fault == SecurityFault::Refused || self.current.is_some() {
            return self.end(fault);
        }
        self.fault.get_or_insert(fault);
        self.session = None;
        self.wanted = None;
        self.phase = Phase::Failed;
        self.deadline = Some(now + ALERT_TIME);
    }

    /// Stops the key management, because the association is being shut down. Pending actions are dropped: the core has
    /// just refused one of them.
    pub(super) fn rest(&mut self) {
        self.actions.clear();
        (self.deadline, self.wanted) = (None, None);
    }

    /// Ends the association, because the core has refused an action.
    pub(super) fn give_up(&mut self, fault: SecurityFault) {
        self.end(fault);
    }

    fn end(&mut self, fault: SecurityFault) {
        self.fault.get_or_insert(fault);
        (self.session, self.wanted, self.deadline) = (None, None, None);
        self.phase = Phase::Failed;
        self.actions.push_back(Action::Abort);
    }
}

/// Receive keys are installed (RKI).
const READ_KEY_INSTALLED: u8 = 0x01;
/// Request of the server for new keys.
const REKEY_REQUEST: u8 = 0x02;
const IV: usize = 12;
/// Approximate limit of the messages into which records are divided.
const LONGEST_MESSAGE: usize = 16_384;
/// Time between an alert and the end, for the arrival of the alert.
const ALERT_TIME: Duration = Duration::from_secs(2);
