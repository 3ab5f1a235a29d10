//! Messages that the application sends before the end of the set-up. Those that fit are bundled with COOKIE ECHO (RFC 9260 §5.1);
//! the others leave after the set-up.
//!
//! For this the association is created early, when INIT ACK arrives: its modules number the data, count it as in flight and keep
//! lost chunks, and at the end of the set-up it replaces the set-up. Until COOKIE ACK only the data in the packet of COOKIE ECHO
//! is sent. A set-up that begins anew creates another association from the messages kept here: a peer that reports a stale cookie
//! has dropped the data behind it (§5.1.5).

use std::net::IpAddr;

use bytes::Bytes;
use tresse_policy::{Instant, PathId};
use tresse_wire::PacketWriter;

use super::{Phase, Setup};
#[cfg(feature = "invariants")]
use crate::association::Inspection;
use crate::association::control::Written;
use crate::association::output::PacketContent;
use crate::association::scheduling::PathTurn;
use crate::association::sender::Sender;
use crate::association::{Association, Negotiated};
use crate::config::AssociationConfig;
use crate::interface::error::SendError;
use crate::interface::event::{Event, Payload, SendOptions};
use crate::interface::stats::SendQueueInfo;
use crate::interface::undelivered::Undelivered;
use crate::outbound::check_message;

/// Messages that the application has given a set-up, and the association that was created for them.
#[derive(Default)]
pub(crate) struct Early {
    messages: Vec<EarlyMessage>,
    /// Bytes of user data in `messages`.
    bytes: usize,
    /// True if a message was refused for lack of room: the application then waits for `Event::Writable`.
    refused: bool,
    /// True if the application has requested a shutdown: it begins once the association is set up.
    ending: bool,
    /// The association that was created early.
    ahead: Option<Box<Association>>,
}

/// A message, and the time at which the application sent it.
#[derive(Clone)]
pub(in crate::association) struct EarlyMessage {
    pub(in crate::association) at: Instant,
    pub(in crate::association) options: SendOptions,
    pub(in crate::association) data: Bytes,
}

impl Early {
    /// Accepts a message by the rules of an association with these settings. The peer may agree to fewer streams; a message on a
    /// stream that does not exist then is reported as abandoned.
    fn push(
        &mut self,
        now: Instant,
        config: &AssociationConfig,
        options: SendOptions,
        data: Bytes,
    ) -> Result<(), SendError> {
        let (len, limit) = (data.len(), config.send_buffer.0);
        check_message(options.stream, len, config.outbound_streams, limit)?;
        if self.bytes + len > limit {
            self.refused = true;
            return Err(SendError::Full { free: limit - self.bytes });
        }
        if let Some(association) = &mut self.ahead {
            association.send(now, options, data.clone())?;
        }
        self.bytes += len;
        self.messages.push(EarlyMessage { at: now, options, data });
        Ok(())
    }

    /// Queues the messages in an association that has none of them. They were accepted before the number of streams was
    /// negotiated: a message on a stream that does not exist is abandoned.
    pub(crate) fn hand_over(&self, association: &mut Association) {
        for EarlyMessage { at, options, data } in &self.messages {
            if association.send(*at, *options, data.clone()).is_err() {
                association.sender.outbound.buffer.note_no_stream();
                association.emit(Event::Abandoned {
                    stream: options.stream,
                    ppid: options.ppid,
                    context: options.context,
                    unordered: options.unordered,
                    bytes: data.len(),
                    sent: false,
                    payload: Payload::Whole(data.clone()),
                });
            }
        }
        if self.refused {
            association.sender.outbound.buffer.note_refused();
        }
    }

    /// Handles the end of the set-up, for an association that has the messages. The peer has received the data behind its cookie,
    /// and its SACK is on the way: T3 restarts.
    pub(crate) fn on_set_up(&self, now: Instant, association: &mut Association) {
        let Sender { paths, transmission, .. } = &mut association.sender;
        for path in (0..paths.len()).map(|position| PathId(position as u8)) {
            if transmission.outstanding.flight_on(path) > 0 {
                paths.restart_t3(path, now);
            }
        }
        association.request_output();
        if self.ending {
            association.shut_down(now);
        }
    }

    /// Appends the data that fits behind the COOKIE ECHO in a packet between these addresses, the local one first. Returns its
    /// path if there was any data. Data never makes the packet need IP fragments; the cookie alone may.
    pub(super) fn write_behind_cookie(
        &mut self,
        now: Instant,
        between: (IpAddr, IpAddr),
        writer: &mut PacketWriter<'_>,
    ) -> Option<PathId> {
        let association = self.ahead.as_mut()?;
        let path = association.sender().path_for_data(between)?;
        association.give_up(now);
        writer.limit_to(association.sender.paths.get(path).packet_size());
        association.sender.begin(now);
        let load = association.load_of(now, PathTurn::of(path))?;
        (association.write_data(now, path, load, writer) != PacketContent::Nothing).then_some(path)
    }

    /// Accounts for a packet of `len` bytes with data behind its COOKIE ECHO.
    pub(super) fn on_sent(&mut self, now: Instant, path: PathId, len: usize) {
        if let Some(association) = &mut self.ahead {
            association.account(now, path, len, Written::default(), true);
        }
    }

    /// Handles the expiry of T1: the data behind COOKIE ECHO was lost between the addresses `before`, and COOKIE ECHO leaves
    /// between `next`. For the window of the old path this is a timeout; T1 counts errors and backs the RTO off.
    pub(super) fn on_cookie_lost(
        &mut self,
        now: Instant,
        before: Option<(IpAddr, IpAddr)>,
        next: Option<(IpAddr, IpAddr)>,
    ) {
        let Some(association) = &mut self.ahead else { return };
        let path_of = |pair: Option<_>| pair.and_then(|pair| association.sender().path_for_data(pair));
        let (Some(from), to) = (path_of(before), path_of(next)) else { return };
        if association.sender.transmission.outstanding.flight_on(from) > 0 {
            association.sender.transmission.on_timeout(from, to.unwrap_or(from));
            association.sender.paths.on_lost_in_setup(from, now);
            association.give_up(now);
        }
    }
}

impl Setup {
    /// Queues a message before the association is set up.
    ///
    /// # Errors
    /// Those of an association; or the settings do not allow data with COOKIE ECHO, or the application has requested a shutdown.
    pub(crate) fn send(&mut self, now: Instant, options: SendOptions, data: Bytes) -> Result<(), SendError> {
        let ending = self.early.as_ref().is_some_and(|early| early.ending);
        if !self.config.data_with_cookie || ending {
            return Err(SendError::NotOpen { state: self.state_name() });
        }
        self.early.get_or_insert_default().push(now, &self.config, options, data)
    }

    /// State of the send queue of all streams.
    pub(crate) fn send_queue(&self) -> SendQueueInfo {
        let bytes = self.early.as_ref().map_or(0, |early| early.bytes);
        SendQueueInfo { limit: self.config.send_buffer.0, used: bytes, unsent: bytes }
    }

    /// Requests a shutdown once the association is set up and the messages are delivered; returns whether there are any.
    pub(crate) fn shut_down_later(&mut self) -> bool {
        self.early.as_mut().map(|early| early.ending = true).is_some()
    }

    /// The parameters for an association that is to be created early, if messages wait for it and the peer has answered.
    pub(crate) fn beginnings_ahead(&self) -> Option<Negotiated> {
        let Phase::CookieEchoed(answer) = &self.phase else { return None };
        let waits = self.early.as_ref().is_some_and(|early| early.ahead.is_none());
        waits.then(|| self.beginnings(answer.peer.clone(), self.path_seeds(answer), self.auth.share()))
    }

    /// Stores an association that was created early, and queues the messages in it.
    pub(crate) fn prepare(&mut self, mut association: Box<Association>) {
        if let Some(early) = &mut self.early {
            early.hand_over(&mut association);
            early.ahead = Some(association);
        }
    }

    /// The association that was created early.
    pub(crate) fn ahead(&mut self) -> Option<&mut Association> {
        self.early.as_mut()?.ahead.as_deref_mut()
    }

    /// Takes the association that was created early, at the end of the set-up.
    pub(crate) fn take_ahead(&mut self, now: Instant) -> Option<Box<Association>> {
        let early = self.early.as_mut()?;
        let mut association = early.ahead.take()?;
        early.on_set_up(now, &mut association);
        Some(association)
    }

    /// Checks the invariants of the association that was created early.
    ///
    /// # Errors
    /// The violated invariant.
    #[cfg(feature = "invariants")]
    pub(crate) fn check_invariants(&self) -> Result<(), String> {
        let ahead = self.early.as_ref().and_then(|early| early.ahead.as_deref());
        ahead.map_or(Ok(()), |association| Inspection(association).check())
    }

    /// The messages that would be lost if the set-up failed now.
    pub(crate) fn undelivered(&self) -> Vec<Undelivered> {
        let Some(early) = &self.early else { return Vec::new() };
        match &early.ahead {
            Some(association) => association.sender().undelivered(),
            None => early.messages.iter().map(EarlyMessage::undelivered).collect(),
        }
    }

    /// Takes the messages that wait for an association.
    pub(crate) fn take_early(&mut self) -> Option<Box<Early>> {
        self.early.take()
    }

    /// Drops the association that was created early: other parameters of the peer replace those it was created from.
    pub(crate) fn drop_ahead(&mut self) {
        if let Some(early) = &mut self.early {
            early.ahead = None;
        }
    }
}
