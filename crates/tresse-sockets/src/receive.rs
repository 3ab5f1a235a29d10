//! Receiving: messages and notifications in the order of their arrival, whole or in parts.

use std::io::IoSliceMut;

use rustix::io::Errno;
use tresse_proto::{AssociationId, Instant, Part};

use crate::association::{Ended, Phase, SocketAssociation};
use crate::call::Call;
use crate::engine::State;
use crate::layout::SocketName;
use crate::message_info::{NextInfo, ReceiveInfo, Received, UNORDERED, scatter};
use crate::notify;
use crate::parent;
use crate::queue::Item;
use crate::settings::Style;

/// MSG_NOTIFICATION of Linux.
const NOTIFICATION: i32 = 0x8000;

/// Flag of a call that fails with the error of an ended association and leaves it for the next call to report.
pub(crate) const KEEP_ERROR: i32 = 1 << 28;

/// Receives a message or a part of one; 0 bytes without MSG_EOR are the end. The result has the peer's name if `named`.
///
/// # Errors
/// Those of `recvmsg(2)` and RFC 6458 §5.
pub fn receive(fd: i32, into: &mut [IoSliceMut<'_>], flags: i32, named: bool) -> Result<Received, Errno> {
    if let Some(elsewhere) = parent::elsewhere() {
        return elsewhere.receive(fd, into, flags);
    }
    let call = Call::on(fd)?;
    call.until(flags & libc::MSG_DONTWAIT != 0, |call| {
        let mut state = call.lock();
        let (received, may_announce) = state.receive(call, into, flags, named)?;
        state.refresh();
        drop(state);
        if may_announce {
            call.leave();
        }
        Ok(received)
    })
}

/// Returns the bytes that can be read of the next message or notification (FIONREAD).
///
/// # Errors
/// `BADF`; `NOTCONN` for a one-to-one socket that listens.
pub fn readable_bytes(fd: i32) -> Result<usize, Errno> {
    if let Some(elsewhere) = parent::elsewhere() {
        return elsewhere.readable_bytes(fd);
    }
    let call = Call::on(fd)?;
    let mut state = call.lock();
    let key = call.key();
    let socket = state.socket(key)?;
    if socket.style == Style::OneToOne && socket.limit.is_some() {
        return Err(Errno::NOTCONN);
    }
    let bytes = match state.turn_of(key) {
        Some(Item::Data(id)) => {
            state.associations.get(&id).and_then(|entry| Some(entry.next.as_ref()?.left()))
        }
        Some(Item::Notification(told)) => Some(told.bytes.len() - state.socket(key)?.taken),
        None => None,
    };
    Ok(bytes.unwrap_or(0))
}

/// Returns a message without its first `skip` bytes.
fn rest(pieces: &[bytes::Bytes], mut skip: usize) -> impl Iterator<Item = &[u8]> {
    pieces.iter().map(move |piece| {
        let over = skip.min(piece.len());
        skip -= over;
        &piece[over..]
    })
}

impl State {
    /// Returns the result of the call, and whether the core has to check if it can announce a larger receiver window.
    fn receive(
        &mut self,
        call: &Call,
        into: &mut [IoSliceMut<'_>],
        flags: i32,
        named: bool,
    ) -> Result<(Received, bool), Errno> {
        let key = call.key();
        let peek = flags & libc::MSG_PEEK != 0;
        loop {
            match self.turn_of(key) {
                Some(Item::Notification(told)) => {
                    let name = if named { self.written(key, told.from) } else { Vec::new() };
                    return Ok((
                        Received { name, ..self.read_notification(key, &told.bytes, into, peek) },
                        false,
                    ));
                }
                Some(Item::Data(id)) => {
                    // The name is needed now: an association that has ended is released with its last message.
                    let name = if named { self.name_of(key, id) } else { Vec::new() };
                    if let Some(received) = self.read_data(call, id, into, peek) {
                        let received = Received { name, ..received };
                        let may_announce = self.may_announce_window(id, received.bytes);
                        return Ok((received, may_announce));
                    }
                }
                None => {
                    return self.read_nothing(key, flags & KEEP_ERROR != 0).map(|received| (received, false));
                }
            }
        }
    }

    /// Returns whether the core has to check now if it can announce a larger receiver window: when all data, or a large part of the
    /// buffer, has been read.
    fn may_announce_window(&mut self, id: AssociationId, bytes: usize) -> bool {
        let Some(entry) = self.associations.get_mut(&id) else { return true };
        entry.untold += bytes;
        let buffer = self.sockets.get(&entry.owner).map_or(0, |socket| socket.config.receive_buffer.0);
        let may_announce = entry.next.is_none() || entry.untold >= (buffer / 8).min(MOST_UNTOLD);
        if may_announce {
            entry.untold = 0;
        }
        may_announce
    }

    fn read_nothing(&mut self, key: u64, keep_error: bool) -> Result<Received, Errno> {
        let socket = self.socket(key)?;
        if socket.limit.is_some() && socket.style == Style::OneToOne {
            return Err(Errno::NOTCONN);
        }
        if socket.read_shut {
            return Ok(Received::default());
        }
        if socket.style == Style::OneToMany {
            return Err(Errno::AGAIN);
        }
        let error = if keep_error { self.error(key) } else { self.take_error(key) };
        if let Some(error) = error {
            return Err(error);
        }
        let socket = self.socket(key)?;
        let was_connected = socket.was_connected;
        let Some(id) = socket.association else {
            return if was_connected { Ok(Received::default()) } else { Err(Errno::NOTCONN) };
        };
        let Some(entry) = self.associations.get_mut(&id) else { return Ok(Received::default()) };
        match entry.phase {
            Phase::Ended(Ended::Told) => Err(Errno::NOTCONN),
            Phase::Ended(_) => Ok(Received::default()),
            _ if entry.peer_done => Ok(Received::default()),
            _ => Err(Errno::AGAIN),
        }
    }

    fn read_notification(
        &mut self,
        key: u64,
        bytes: &[u8],
        into: &mut [IoSliceMut<'_>],
        peek: bool,
    ) -> Received {
        let Ok(socket) = self.socket(key) else { return Received::default() };
        let copied = scatter(into, std::iter::once(&bytes[socket.taken.min(bytes.len())..]));
        let done = socket.taken + copied == bytes.len();
        if !peek {
            socket.taken = if done { 0 } else { socket.taken + copied };
            if done {
                socket.queue.pop_front();
                self.touch(key);
            }
        }
        let end = if done { libc::MSG_EOR } else { 0 };
        Received { bytes: copied, flags: NOTIFICATION | end, ..Received::default() }
    }

    /// Reads the next data of an association; `None` if there was none to return.
    fn read_data(
        &mut self,
        call: &Call,
        id: AssociationId,
        into: &mut [IoSliceMut<'_>],
        peek: bool,
    ) -> Option<Received> {
        let key = call.key();
        let entry = self.associations.get_mut(&id)?;
        let Some(pending) = &mut entry.next else {
            if let Some(socket) = self.sockets.get_mut(&key) {
                socket.queue.remove_data(id, &mut entry.turns);
            }
            self.touch(key);
            return None;
        };
        if pending.message.part == Part::Abandoned {
            let (stream, ssn) = (pending.message.stream.0, pending.message.ssn.0);
            self.advance(call, self.clock, id, true);
            self.notify_next(id, notify::PARTIAL_DELIVERY, |number| {
                notify::partial_delivery_aborted(number, stream, ssn)
            });
            return None;
        }
        let copied = scatter(into, rest(pending.message.payload.pieces(), pending.taken));
        let read = pending.left() == copied;
        let ends = read && pending.message.part.is_end();
        let mut info = info_of(entry)?;
        let wants_old_info = entry.settings.wants(notify::DATA_IO);
        let socket = self.sockets.get_mut(&key)?;
        // The core does not use the time of a read.
        let now = if socket.autoclose.is_some() { call.stack.now() } else { self.clock };
        if !peek {
            if let Some(pending) = &mut entry.next {
                pending.taken += copied;
            }
            entry.last_used = now;
        }
        let (wants_info, wants_next) = (socket.options.receive_info, socket.options.next_info);
        if !peek {
            socket.in_progress = (!ends).then_some(id);
        }
        if wants_info || wants_old_info {
            let association = self.endpoint.as_mut().and_then(|core| core.association(id));
            info.cumulative_tsn = association.map_or(0, |association| association.cumulative_tsn().0);
        }
        if !peek && read {
            self.advance(call, now, id, ends);
        }
        let flags = if ends { libc::MSG_EOR } else { 0 };
        let next = if wants_next && ends { self.next_info(call, id, peek) } else { None };
        let info = Some(info);
        Some(Received { bytes: copied, flags, info, next, wants_info, wants_old_info, ..Received::default() })
    }

    /// Takes the next message of an association from the core after one was read.
    fn advance(&mut self, call: &Call, now: Instant, id: AssociationId, ends: bool) {
        let key = call.key();
        let Some(socket) = self.sockets.get_mut(&key) else { return };
        let strict = socket.options.interleave < 2;
        if ends {
            socket.in_progress = None;
        }
        let Some(entry) = self.associations.get_mut(&id) else { return };
        entry.fetch(self.endpoint.as_mut(), now, id, strict);
        let more = entry.next.is_some();
        socket.queue.on_read(id, &mut entry.turns, more);
        if !more {
            let ended = matches!(entry.phase, Phase::Ended(_));
            if ended {
                self.give_up_part(id);
            }
            self.touch(key);
            if ended && call.socket().style == Style::OneToMany {
                self.forget(call.stack.now(), id);
            }
        }
        // If there is more to read, the readiness of the descriptor is unchanged.
    }

    /// Returns information on the message after the one that was just read.
    fn next_info(&mut self, call: &Call, id: AssociationId, peek: bool) -> Option<NextInfo> {
        let message = |entry: &SocketAssociation, message: &tresse_proto::Message| NextInfo {
            stream: message.stream.0,
            flags: if message.unordered { UNORDERED } else { 0 }
                | if message.part == Part::Whole { COMPLETE } else { 0 },
            ppid: message.ppid.0.to_be(),
            length: u32::try_from(message.payload.len()).unwrap_or(u32::MAX),
            number: entry.number,
        };
        if peek {
            let entry = self.associations.get_mut(&id)?;
            let next = entry.look_ahead(self.endpoint.as_mut(), self.clock, id)?.clone();
            return Some(message(entry, &next));
        }
        match self.turn_of(call.key())? {
            Item::Data(id) => {
                let entry = self.associations.get(&id)?;
                entry.next.as_ref().map(|pending| message(entry, &pending.message))
            }
            Item::Notification(told) => Some(NextInfo {
                flags: NEXT_NOTIFICATION | COMPLETE,
                length: u32::try_from(told.bytes.len()).unwrap_or(u32::MAX),
                number: told.number,
                ..NextInfo::default()
            }),
        }
    }

    /// Returns the peer's primary name in the form that the program reads.
    fn name_of(&self, key: u64, id: AssociationId) -> Vec<u8> {
        self.written(key, self.associations.get(&id).and_then(SocketAssociation::peer))
    }

    fn written(&self, key: u64, name: Option<SocketName>) -> Vec<u8> {
        let mapped = self.sockets.get(&key).is_some_and(crate::socket::SocketState::writes_mapped);
        name.map(|name| name.write(mapped)).unwrap_or_default()
    }
}

fn info_of(entry: &SocketAssociation) -> Option<ReceiveInfo> {
    let message = &entry.next.as_ref()?.message;
    Some(ReceiveInfo {
        stream: message.stream.0,
        ssn: message.ssn.0,
        flags: if message.unordered { UNORDERED } else { 0 },
        ppid: message.ppid.0.to_be(),
        tsn: message.tsn.0,
        cumulative_tsn: 0,
        context: entry.settings.receive_context,
        number: entry.number,
    })
}

/// Bytes that are read at most before the core checks whether to announce a larger receiver window.
const MOST_UNTOLD: usize = 16 * 1024;

/// SCTP_COMPLETE: the whole message has arrived. The number is that of FreeBSD; Linux has none.
const COMPLETE: u16 = 0x20;
/// SCTP_NOTIFICATION.
const NEXT_NOTIFICATION: u16 = 0x8000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_scattered_over_buffers_and_the_rest_is_kept() {
        let pieces = [bytes::Bytes::from_static(b"abc"), bytes::Bytes::from_static(b"defg")];
        let (mut one, mut two, mut none) = ([0; 2], [0; 3], [0; 0]);
        let mut into = [&mut one[..], &mut none[..], &mut two[..]].map(IoSliceMut::new);
        assert_eq!(scatter(&mut into, rest(&pieces, 1)), 5);
        assert_eq!((&one, &two), (b"bc", b"def"));
        let mut last = [0; 9];
        assert_eq!(scatter(&mut [IoSliceMut::new(&mut last)], rest(&pieces, 6)), 1);
        assert_eq!(last[0], b'g');
    }
}
