//! Sending: the association of a message, the meaning of its flags, and the treatment of a message without room in the send buffer.

use std::io::PipeReader;
use std::sync::Arc;

use bytes::Bytes;
use rustix::io::Errno;
use tresse_proto::{AssociationId, Ppid, SendError, SendOptions, StreamId};

use crate::association::{Phase, SocketAssociation};
use crate::call::Call;
use crate::engine::State;
use crate::layout::SocketName;
use crate::message_info::{
    ABORT, ADDR_OVER, EOF, EOR, KNOWN, SACK_IMMEDIATELY, SEND_ALL, SendFields, SendInfo, UNORDERED,
};
use crate::numbers::Private;
use crate::open::begin;
use crate::settings::{LARGEST_BUFFER, PACKET_OVERHEAD, PR_MASK, Settings, Style, reliability};
use crate::{parent, table};

/// The data of a message.
#[derive(Clone, Debug)]
pub enum Data<'a> {
    /// Few bytes in the program's memory: copied when the core takes them.
    Borrowed(&'a [u8]),
    /// Many bytes: copied before an engine is locked, so that other calls do not wait for the copy.
    Owned(Bytes),
}

impl<'a> Data<'a> {
    /// Creates the data of a message from the program's memory.
    pub fn of(bytes: &'a [u8]) -> Self {
        if bytes.len() <= SHORT { Data::Borrowed(bytes) } else { Data::Owned(Bytes::copy_from_slice(bytes)) }
    }

    fn bytes(&self) -> Bytes {
        match self {
            Data::Borrowed(bytes) => Bytes::copy_from_slice(bytes),
            Data::Owned(bytes) => bytes.clone(),
        }
    }
}

impl std::ops::Deref for Data<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Data::Borrowed(bytes) => bytes,
            Data::Owned(bytes) => bytes,
        }
    }
}

/// Checks the length of a message before its bytes are read or copied.
///
/// # Errors
/// `MSGSIZE` for a message that does not fit even into an empty send buffer.
pub(crate) fn check_length(fd: i32, length: usize) -> Result<(), Errno> {
    if length <= SHORT {
        return Ok(());
    }
    if parent::elsewhere().is_some() {
        // The process that has the socket knows its send buffer: here only the length of the copy is bounded.
        return if length > LARGEST_BUFFER { Err(Errno::MSGSIZE) } else { Ok(()) };
    }
    let alias = table::find(fd)?;
    let (mut state, key) = (alias.socket.engine.lock(), alias.socket.key);
    let fits = state.socket(key)?.config.send_buffer.0 >= length || state.has_room_for(key, length);
    if fits { Ok(()) } else { Err(Errno::MSGSIZE) }
}

/// Sends a message.
///
/// # Errors
/// Those of `sendmsg(2)` and RFC 6458 §5: `PIPE`, on a one-to-one socket after SIGPIPE unless `flags` has MSG_NOSIGNAL.
pub fn send(fd: i32, data: Data<'_>, info: &SendInfo, flags: i32) -> Result<usize, Errno> {
    if let Some(elsewhere) = parent::elsewhere() {
        return elsewhere.send(fd, &data, info, flags);
    }
    let call = Call::on(fd)?;
    let sent = receivers(&call, &data, info).and_then(|to| {
        let at_once = flags & libc::MSG_DONTWAIT != 0;
        call.until_room(to.id, at_once, |call| attempt(call, to, &data, info))
    });
    if sent == Err(Errno::PIPE) && flags & libc::MSG_NOSIGNAL == 0 && call.socket().style == Style::OneToOne {
        crate::ffi::signal_pipe();
    }
    sent
}

/// Sends a message without waiting or signals. If the caller `waits`, the descriptor to wait for is returned with `AGAIN`, unless
/// no descriptor is left.
pub(crate) fn send_at_once(
    fd: i32,
    data: &Data<'_>,
    info: &SendInfo,
    waits: bool,
) -> (Result<usize, Errno>, Option<Arc<Private<PipeReader>>>) {
    let tried = Call::on(fd).and_then(|call| {
        let to = receivers(&call, data, info)?;
        loop {
            let sent = attempt(&call, to, data, info);
            if sent != Err(Errno::AGAIN) || !waits {
                return Ok((sent, None));
            }
            match call.lock().room(call.key(), to.id) {
                // There is room again.
                Ok(None) => {}
                told => return Ok((sent, told.ok().flatten())),
            }
        }
    });
    tried.unwrap_or_else(|error| (Err(error), None))
}

/// The association of a message.
#[derive(Copy, Clone)]
struct Receivers {
    /// `None` for all of them (SCTP_SENDALL).
    id: Option<AssociationId>,
    /// True if this message sets it up.
    is_new: bool,
}

/// Returns the association of a message.
fn receivers(call: &Call, data: &Data<'_>, info: &SendInfo) -> Result<Receivers, Errno> {
    let own_flags = info.fields.map_or(0, |fields| fields.flags);
    // A message without data is valid only if it ends an association.
    let nothing = data.is_empty() && own_flags & (EOF | ABORT) == 0;
    if nothing || own_flags & !KNOWN != 0 || (own_flags & ADDR_OVER != 0 && info.name.is_empty()) {
        return Err(Errno::INVAL);
    }
    if own_flags & SEND_ALL != 0 && call.socket().style == Style::OneToMany {
        return Ok(Receivers { id: None, is_new: false });
    }
    let (id, is_new) = addressee(call, info)?;
    Ok(Receivers { id: Some(id), is_new })
}

fn attempt(call: &Call, to: Receivers, data: &Data<'_>, info: &SendInfo) -> Result<usize, Errno> {
    let mut state = call.lock();
    let sent = match to.id {
        Some(id) => state.send(call, id, data, info).map(|()| data.len()),
        None => state.send_to_all(call, data, info),
    };
    let is_refused = matches!(sent, Err(Errno::INVAL | Errno::MSGSIZE));
    if let Some(id) = to.id.filter(|&id| to.is_new && is_refused && state.is_without_messages(id)) {
        // As in Linux, a message that is refused sets nothing up.
        state.disconnect(call.key(), id);
    }
    state.refresh();
    drop(state);
    // Also after a refusal: there will be room when accepted messages have left.
    call.leave();
    sent
}

/// Returns the association of a message, and whether it is new: it is set up if the name has none (RFC 6458 §3.1.1).
fn addressee(call: &Call, info: &SendInfo) -> Result<(AssociationId, bool), Errno> {
    let key = call.key();
    let mut state = call.lock();
    let socket = state.socket(key)?;
    if socket.style == Style::OneToOne {
        if socket.limit.is_some() {
            return Err(Errno::PIPE);
        }
        let association = socket.association;
        if association.is_none() && (socket.was_connected || info.name.is_empty()) {
            return Err(Errno::PIPE);
        }
        if let Some(error) = state.take_error(key) {
            return Err(error);
        }
        if let Some(id) = association {
            return state.check_destination(id, &info.name).map(|()| (id, false));
        }
    } else if let Some(number) = info.number {
        return state.by_number(key, number).map(|id| (id, false)).ok_or(Errno::PIPE);
    }
    if info.name.is_empty() {
        // The name may be left out if there is only one association, as after `connect`.
        let mut own = state.associations.iter().filter(|(_, entry)| entry.owner == key);
        return match (own.next(), own.next()) {
            (Some((&id, _)), None) => Ok((id, false)),
            _ => Err(Errno::PIPE),
        };
    }
    let names = SocketName::read_all(&info.name)?;
    let first = *names.first().ok_or(Errno::INVAL)?;
    if let Some(id) = state.by_name(key, first) {
        return Ok((id, false));
    }
    if info.fields.is_some_and(|fields| fields.flags & (EOF | ABORT) != 0) {
        return Err(Errno::INVAL);
    }
    drop(state);
    begin(call, &names, &info.init, None).map(|id| (id, true))
}

impl State {
    /// SCTP_SENDALL: sends a message to every association of the socket that still takes messages, or to none: otherwise a repeated
    /// call would send the message twice to some of them. As in Linux, nothing is sent if there is no association.
    fn send_to_all(&mut self, call: &Call, data: &Data<'_>, info: &SendInfo) -> Result<usize, Errno> {
        let key = call.key();
        let mut fields = info.fields.unwrap_or_default();
        fields.flags &= !SEND_ALL;
        let info = &SendInfo { fields: Some(fields), ..info.clone() };
        let takes = |entry: &SocketAssociation| {
            entry.owner == key && matches!(entry.phase, Phase::Opening | Phase::Open)
        };
        let own = self.associations.iter().filter(|(_, entry)| takes(entry));
        let all: Vec<AssociationId> = own.map(|(&id, _)| id).collect();
        // An association without room, or without the stream, comes first: it refuses, and then no association gets the message.
        let first = all.iter().copied().find(|&id| !self.takes(call, id, data.len(), info));
        for id in first.into_iter().chain(all.iter().copied().filter(|&id| Some(id) != first)) {
            self.send(call, id, data, info)?;
        }
        Ok(if all.is_empty() { 0 } else { data.len() })
    }

    /// Returns whether an association of this socket has a send buffer of at least `length` bytes.
    fn has_room_for(&mut self, key: u64, length: usize) -> bool {
        let Some(endpoint) = &mut self.endpoint else { return false };
        let mut own = self.associations.iter().filter(|(_, entry)| entry.owner == key);
        own.any(|(&id, _)| endpoint.association(id).is_some_and(|one| one.send_queue().limit >= length))
    }

    /// Returns whether an association is being set up and no message waits for that, of another thread for instance.
    fn is_without_messages(&mut self, id: AssociationId) -> bool {
        let opens = self.associations.get(&id).is_some_and(|entry| entry.phase == Phase::Opening);
        let core = self.endpoint.as_mut().and_then(|core| core.association(id));
        opens && core.is_some_and(|one| one.send_queue().used == 0)
    }

    /// Checks that a message of a one-to-one socket has no destination, or only addresses of the peer.
    fn check_destination(&self, id: AssociationId, name: &[u8]) -> Result<(), Errno> {
        let Some(entry) = self.associations.get(&id).filter(|entry| !name.is_empty() && !entry.is_over())
        else {
            return Ok(());
        };
        for named in SocketName::read_all(name)? {
            if named.port != entry.remote_port || !entry.peers.contains(&named.address) {
                return Err(Errno::ADDRNOTAVAIL);
            }
        }
        Ok(())
    }

    /// Returns whether an association has the stream of a message, and room for the message together with its earlier pieces.
    fn takes(&mut self, call: &Call, id: AssociationId, length: usize, info: &SendInfo) -> bool {
        let fields = info.fields.unwrap_or_default();
        let options = self
            .sockets
            .get(&call.key())
            .map(|socket| (socket.options.explicit_eor, socket.options.whole_only));
        let (explicit, whole_only) = options.unwrap_or_default();
        if fields.flags & ABORT != 0 || (explicit && fields.flags & (EOR | EOF) == 0) {
            return true;
        }
        let pieces = self.associations.get(&id).and_then(|entry| entry.pieces.get(&fields.stream));
        let length = length + pieces.map_or(0, Vec::len);
        if whole_only && length > self.largest_whole(call, id) {
            return false;
        }
        let Some(association) = self.endpoint.as_mut().and_then(|core| core.association(id)) else {
            return false;
        };
        let queue = association.send_queue();
        let outbound = match association.streams().0 {
            0 => association.config().outbound_streams,
            agreed => agreed,
        };
        fields.stream < outbound && queue.used + length <= queue.limit
    }

    /// Sends a message to an association.
    fn send(
        &mut self,
        call: &Call,
        id: AssociationId,
        data: &Data<'_>,
        info: &SendInfo,
    ) -> Result<(), Errno> {
        let now = self.command_time(&call.stack.shared);
        let explicit = self.socket(call.key())?.options.explicit_eor;
        let Some(entry) = self.associations.get_mut(&id) else { return Err(Errno::PIPE) };
        if matches!(entry.phase, Phase::Ended(_) | Phase::Closing) {
            return Err(self.take_error(call.key()).unwrap_or(Errno::PIPE));
        }
        let (options, flags) = options_of(&entry.settings, info)?;
        if flags & ABORT != 0 {
            self.end_at(call.stack.now(), id, Some(data));
            return Ok(());
        }
        let ends = flags & EOF != 0;
        let mut joined = None;
        if explicit {
            let pieces = entry.pieces.entry(options.stream.0).or_default();
            if flags & EOR == 0 && !ends {
                let core = self.endpoint.as_mut().and_then(|core| core.association(id));
                // The last piece needs room too: it has a byte at least.
                if pieces.len() + data.len() >= core.ok_or(Errno::PIPE)?.send_queue().limit {
                    return Err(Errno::MSGSIZE);
                }
                pieces.extend_from_slice(data);
                return Ok(());
            }
            if !pieces.is_empty() {
                joined = Some(Bytes::from([pieces.as_slice(), data].concat()));
            }
        }
        let length = joined.as_ref().map_or(data.len(), Bytes::len);
        if self.socket(call.key())?.options.whole_only && length > self.largest_whole(call, id) {
            return Err(Errno::MSGSIZE);
        }
        if length > 0 {
            let core = self.endpoint.as_mut().and_then(|core| core.association(id)).ok_or(Errno::PIPE)?;
            let sent = { core }.send(now, options, joined.unwrap_or_else(|| data.bytes()));
            self.on_sent(call.key(), id, sent)?;
            if let Some(entry) = self.associations.get_mut(&id) {
                (entry.last_used, entry.is_dry) = (now, false);
                if !entry.pieces.is_empty() {
                    entry.pieces.remove(&options.stream.0);
                }
            }
        }
        if ends {
            self.end_at(call.stack.now(), id, None);
        }
        Ok(())
    }

    /// Returns the length of the longest message that fits into one chunk, by the smallest MTU of the paths.
    fn largest_whole(&mut self, call: &Call, id: AssociationId) -> usize {
        let now = call.stack.now();
        let Some(association) = self.endpoint.as_mut().and_then(|core| core.association(id)) else {
            return 0;
        };
        let smallest = association.path_stats(now).iter().map(|path| path.mtu).min();
        smallest.unwrap_or(association.config().mtu.0).saturating_sub(PACKET_OVERHEAD)
    }

    fn on_sent(&mut self, key: u64, id: AssociationId, sent: Result<(), SendError>) -> Result<(), Errno> {
        match sent {
            Ok(()) => Ok(()),
            Err(SendError::Full { .. }) => {
                if let Some(entry) = self.associations.get_mut(&id) {
                    entry.block();
                }
                self.touch(key);
                Err(Errno::AGAIN)
            }
            Err(SendError::TooLong { .. }) => Err(Errno::MSGSIZE),
            Err(SendError::NotOpen { .. }) => Err(Errno::PIPE),
            Err(_) => Err(Errno::INVAL),
        }
    }
}

/// Returns the options of a message for the core, and its flags.
fn options_of(settings: &Settings, info: &SendInfo) -> Result<(SendOptions, u16), Errno> {
    let usual = &settings.send;
    let fields = info.fields.unwrap_or(SendFields {
        stream: usual.stream,
        flags: usual.flags,
        ppid: usual.ppid,
        context: usual.context,
    });
    let reliability = match info.policy {
        Some((policy, _)) if policy & !PR_MASK != 0 => return Err(Errno::INVAL),
        Some((policy, value)) => reliability(policy, value)?,
        None => usual.reliability,
    };
    let options = SendOptions::on(StreamId(fields.stream)).with(|o| {
        o.ppid = Ppid(u32::from_be(fields.ppid));
        o.unordered = fields.flags & UNORDERED != 0;
        o.immediate = fields.flags & SACK_IMMEDIATELY != 0;
        o.reliability = reliability;
        o.context = u64::from(fields.context);
    });
    Ok((options, fields.flags))
}

/// Greatest number of bytes that are copied while an engine is locked.
const SHORT: usize = 4096;
