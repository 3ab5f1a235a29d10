//! Protection of an association's packets by DTLS chunks (draft-ietf-tsvwg-sctp-dtls-chunk-04): the keys, the packets
//! that are encrypted, the packets that may come in the clear, and the limits of keys.
//!
//! Owns epochs, record numbers, replay windows and limits. Independent of ciphers, which the key management provides, and
//! of the contents of packets: it gets one packet and returns one, or none.

mod context;
mod number;
mod offer;
mod opened;
#[cfg(test)]
mod tests;
mod window;

use std::time::Duration;

use bytes::Bytes;
use tresse_policy::Instant;
use tresse_wire::{
    COMMON_HEADER_LEN, Chunk, ChunkKind, Chunks, DataFlags, PacketWriter, Ppid, PpidOrFsn, RECORD_OVERHEAD,
    StreamId,
};

use crate::config::AssociationConfig;
use crate::interface::event::Event;
use crate::interface::protection::{
    Agreed, Epoch, KEY_CONTROL, KEY_MANAGEMENT, ProtectionError, ProtectionStats, RecordKeys,
};

pub(crate) use context::{KeyLimits, SealFault};
pub(crate) use offer::{NegotiationFault, agree, own_parameter, peer_parameter};
pub(crate) use opened::OpenedPackets;

use context::{ReceiveContext, SendContext};

/// The stream of all key messages.
pub(crate) const KEY_STREAM: StreamId = StreamId(0);

/// The longest key message.
pub(crate) const LONGEST_KEY_MESSAGE: usize = 65_535;

/// Returns whether messages of this kind are the key management's.
#[inline]
pub(crate) fn is_key_message(stream: StreamId, ppid: Ppid) -> bool {
    stream == KEY_STREAM && (ppid == KEY_MANAGEMENT || ppid == KEY_CONTROL)
}

/// Bounds of the TSNs of user data that came in the clear and of user data that came protected, where they are known.
#[derive(Debug, Default)]
struct ClearBounds {
    /// The highest index of what came in the clear.
    highest_clear: Option<u64>,
    /// The lowest index of what came protected.
    lowest_protected: Option<u64>,
}

/// The protection of one association.
#[derive(Debug)]
pub(crate) struct Protection {
    agreed: Agreed,
    limits: KeyLimits,
    drain: Duration,
    send: Option<SendContext>,
    /// At most two, in the order of their epochs.
    receive: Vec<ReceiveContext>,
    /// Time at which the older of two is forgotten.
    drained_at: Option<Instant>,
    required: bool,
    /// The packet at hand came in a DTLS chunk.
    protected: bool,
    borders: ClearBounds,
    /// This side has said SHUTDOWN COMPLETE.
    last_word: bool,
    /// The epoch for which new keys were asked last.
    asked: Option<Epoch>,
    /// Bytes that have come of a key message that is handed out in parts.
    part: Vec<u8>,
}

/// The protection of an association, agreed on or not.
#[derive(Debug, Default)]
pub(crate) struct PacketProtection(Option<Box<Protection>>);

impl PacketProtection {
    /// As it was agreed on.
    pub(crate) fn new(agreed: Agreed, config: &AssociationConfig) -> Self {
        PacketProtection(Some(Box::new(Protection::new(agreed, config))))
    }

    /// The protection, if there is any.
    #[inline]
    pub(crate) fn get(&mut self) -> Option<&mut Protection> {
        self.0.as_deref_mut()
    }

    /// Returns whether it was agreed on.
    #[inline]
    pub(crate) fn is_agreed(&self) -> bool {
        self.0.is_some()
    }

    /// Returns whether nothing but DTLS chunks is taken.
    #[inline]
    pub(crate) fn is_required(&self) -> bool {
        self.0.as_ref().is_some_and(|protection| protection.required)
    }

    /// Returns whether nothing but DTLS chunks will be taken, once there are keys for that.
    #[inline]
    pub(crate) fn is_pending(&self) -> bool {
        self.0.as_ref().is_some_and(|protection| !protection.required)
    }

    /// Returns whether the packet at hand came in a DTLS chunk.
    pub(crate) fn came_protected(&self) -> bool {
        self.0.as_ref().is_some_and(|protection| protection.protected)
    }

    /// Bytes that each packet has for it, from the start: what is cut before there are keys leaves with them, maybe.
    #[inline]
    pub(crate) fn overhead(&self) -> usize {
        if self.0.is_some() { RECORD_OVERHEAD } else { 0 }
    }

    /// Leaves room in a packet for a record, once there are keys.
    #[inline]
    pub(crate) fn prepare(&self, writer: &mut PacketWriter<'_>) {
        if let Some(protection) = &self.0 {
            protection.prepare(writer);
        }
    }

    /// Encrypts a packet that has all its chunks, once there are keys.
    ///
    /// # Errors
    /// The packet must not leave, nor any other one.
    #[inline]
    pub(crate) fn seal(&mut self, writer: &mut PacketWriter<'_>) -> Result<(), SealFault> {
        match &mut self.0 {
            Some(protection) => protection.seal(writer),
            None => Ok(()),
        }
    }

    /// The peer, which set up at the same time, has begun anew, with this parameter: returns what is agreed on now, if that is
    /// something else than before.
    ///
    /// # Errors
    /// It offers another protection than before.
    pub(crate) fn agree_again(
        &mut self,
        peer: Option<&[u8]>,
        config: &AssociationConfig,
    ) -> Result<Option<Agreed>, &'static str> {
        let Some(protection) = &self.0 else { return Ok(None) };
        let agreed = agree(&protection.agreed.own_parameter, peer.unwrap_or_default())
            .map_err(|_| "another offer of protection than before")?;
        if agreed == protection.agreed {
            return Ok(None);
        }
        *self = PacketProtection::new(agreed.clone(), config);
        Ok(Some(agreed))
    }

    /// Keys whose drain is over are forgotten, and the key management is told of them.
    pub(crate) fn on_time(&mut self, now: Instant) -> Option<Event> {
        let epoch = self.get()?.on_time(now)?;
        Some(Event::KeysDrained { epoch })
    }

    /// Time at which something is due.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.0.as_ref().and_then(|protection| protection.drained_at)
    }
}

/// Admission of a packet.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Admission {
    /// It is processed.
    Taken,
    /// It came in the clear, and should not have.
    Unprotected,
    /// It came in a DTLS chunk that does not open.
    Unopened,
}

impl Protection {
    /// As both sides agreed, and without any keys.
    pub(crate) fn new(agreed: Agreed, config: &AssociationConfig) -> Self {
        Protection {
            agreed,
            limits: KeyLimits::new(config.rekey_megabytes),
            drain: config.key_drain,
            send: None,
            receive: Vec::new(),
            drained_at: None,
            required: false,
            protected: false,
            borders: ClearBounds::default(),
            last_word: false,
            asked: None,
            part: Vec::new(),
        }
    }

    /// Returns whether only DTLS chunks are taken.
    #[inline]
    pub(crate) fn is_required(&self) -> bool {
        self.required
    }

    /// Returns whether the packet at hand came in a DTLS chunk.
    #[inline]
    pub(crate) fn came_protected(&self) -> bool {
        self.protected
    }

    /// Leaves room in a packet for a record, once there are keys.
    #[inline]
    pub(crate) fn prepare(&self, writer: &mut PacketWriter<'_>) {
        if self.send.is_some() {
            writer.leave_record();
        }
    }

    /// Encrypts a packet that has all its chunks, once there are keys.
    ///
    /// # Errors
    /// The packet must not leave, nor any other one.
    #[inline]
    pub(crate) fn seal(&mut self, writer: &mut PacketWriter<'_>) -> Result<(), SealFault> {
        match &mut self.send {
            Some(context) => context.seal(&self.limits, writer),
            None => Ok(()),
        }
    }

    /// Looks at a packet with this association's ports and tag, which came over the path at position `path`: whether it is
    /// to be processed. One that came in a DTLS chunk is replaced by what was in there, in `memory`.
    pub(crate) fn admit(&mut self, path: usize, packet: &mut Bytes, memory: &mut OpenedPackets) -> Admission {
        let kind = packet.get(COMMON_HEADER_LEN).map(|&kind| ChunkKind(kind));
        self.protected = kind == Some(ChunkKind::DTLS);
        if self.protected {
            let Some(opened) = self.open(path, packet, memory) else { return Admission::Unopened };
            *packet = opened;
            return Admission::Taken;
        }
        let fit = match self.required {
            false => is_fit_for_the_clear(packet),
            // The peer may have given up before it had keys to send with, and could say so in no other way. Whoever can
            // forge this could have done so a round trip before.
            true => self.receive.iter().all(|context| context.stats().opened == 0) && is_abort(packet),
        };
        if fit { Admission::Taken } else { Admission::Unprotected }
    }

    fn open(&mut self, path: usize, packet: &Bytes, memory: &mut OpenedPackets) -> Option<Bytes> {
        let mut chunks = Chunks::of(packet);
        let record = match chunks.next() {
            Some(Ok(Chunk::Dtls(record))) if chunks.remaining().is_empty() && !record.restart => record,
            _ => return None,
        };
        // Its last chunk is padded like any other.
        let whole = packet.len() == COMMON_HEADER_LEN + record.wire_len().next_multiple_of(4);
        let bits = record.epoch_bits().filter(|_| whole)?;
        let fits = |context: &&mut ReceiveContext| context.epoch.0 & 3 == u64::from(bits);
        let context = self.receive.iter_mut().rev().find(fits)?;
        context.open(path, packet.first_chunk()?, &record, memory)
    }

    /// New user data has arrived, the one with this index.
    #[inline]
    pub(crate) fn on_data(&mut self, index: u64) {
        if self.required {
            return;
        }
        let ClearBounds { highest_clear, lowest_protected } = &mut self.borders;
        if self.protected {
            *lowest_protected = Some(lowest_protected.map_or(index, |lowest| lowest.min(index)));
        } else {
            *highest_clear = Some(highest_clear.map_or(index, |highest| highest.max(index)));
        }
    }

    /// Installs sending keys: everything is sealed with them from now on.
    ///
    /// # Errors
    /// An epoch whose turn it is not.
    pub(crate) fn install_send(&mut self, epoch: Epoch, keys: RecordKeys) -> Result<(), ProtectionError> {
        let expected = self.send.as_ref().map_or(Epoch::FIRST, |context| context.epoch.next());
        let reason = if epoch != expected {
            "its turn has not come, or is over"
        } else if self.receive.last().is_none_or(|context| context.epoch != epoch) {
            "the receiving keys of an epoch come first"
        } else {
            self.send = Some(SendContext::new(epoch, keys));
            return Ok(());
        };
        Err(ProtectionError::WrongEpoch { epoch, reason })
    }

    /// Returns whether the keys before those in use begin to drain now: a record of the new ones has opened, so the peer
    /// seals nothing more with the old ones. Before that it may not know that it can, for as long as what says so is lost or
    /// waits for a window, and its acknowledgements are needed for that very message.
    #[inline]
    fn begins_to_drain(&self) -> bool {
        let [_, newest] = &self.receive[..] else { return false };
        let in_use = self.send.as_ref().is_some_and(|send| send.epoch == newest.epoch);
        self.drained_at.is_none() && in_use && newest.stats().opened > 0
    }

    /// Keys of before drain from now on, if they begin to. They are kept at least for the longest of `timeouts`, after which
    /// the sender takes a packet for lost.
    #[inline]
    pub(crate) fn drain(&mut self, now: Instant, timeouts: impl Iterator<Item = Duration>) {
        if self.begins_to_drain() {
            self.drained_at = Some(now + self.drain.max(timeouts.max().unwrap_or_default()));
        }
    }

    /// Installs receiving keys.
    ///
    /// # Errors
    /// An epoch whose turn it is not, or one that comes while that before the last still drains.
    pub(crate) fn install_receive(&mut self, epoch: Epoch, keys: RecordKeys) -> Result<(), ProtectionError> {
        let expected = self.receive.last().map_or(Epoch::FIRST, |context| context.epoch.next());
        let reason = if epoch != expected {
            "its turn has not come, or is over"
        } else if self.receive.len() > 1 {
            "the keys before those in use still drain"
        } else {
            self.receive.push(ReceiveContext::new(epoch, keys));
            return Ok(());
        };
        Err(ProtectionError::WrongEpoch { epoch, reason })
    }

    /// Forgets receiving keys that drain, or that came of an exchange of keys which was not completed.
    ///
    /// # Errors
    /// There are none of this epoch, or they are in use.
    pub(crate) fn destroy_receive(&mut self, epoch: Epoch) -> Result<(), ProtectionError> {
        let place = self.receive.iter().position(|context| context.epoch == epoch);
        let place = place.ok_or(ProtectionError::NoSuchKeys { epoch })?;
        let in_use = self.send.as_ref().map(|context| context.epoch);
        let reason = if in_use == Some(epoch) {
            "they are in use"
        } else if in_use > Some(epoch) && self.drained_at.is_none() {
            "the peer may still send with them"
        } else {
            self.receive.remove(place);
            self.drained_at = None;
            return Ok(());
        };
        Err(ProtectionError::WrongEpoch { epoch, reason })
    }

    /// Takes nothing but DTLS chunks from now on. `complete` says that all user data up to the highest that has arrived was
    /// delivered. Returns whether what has come in the clear can be what the peer sent.
    ///
    /// # Errors
    /// Keys of a direction are missing.
    pub(crate) fn require(&mut self, complete: bool) -> Result<bool, ProtectionError> {
        if self.send.is_none() || self.receive.is_empty() {
            return Err(ProtectionError::KeysMissing);
        }
        self.required = true;
        // Who protects once does so with all that follows. Where nothing came protected yet, what the peer's last clear
        // message waited for is there, and nothing can be behind it.
        Ok(match self.borders {
            ClearBounds { highest_clear: Some(clear), lowest_protected: Some(protected) } => {
                clear < protected
            }
            ClearBounds { lowest_protected: None, .. } => complete,
            ClearBounds { highest_clear: None, .. } => true,
        })
    }

    /// SHUTDOWN COMPLETE leaves with the next packet.
    pub(crate) fn on_complete_sent(&mut self) {
        self.last_word = self.send.is_some();
    }

    /// Returns whether SHUTDOWN COMPLETE left protected; told once.
    pub(crate) fn take_completed(&mut self) -> bool {
        std::mem::take(&mut self.last_word)
    }

    /// A part of a key message; answers with the message once it is complete.
    ///
    /// # Errors
    /// It is longer than any may be.
    pub(crate) fn join(&mut self, part: &[u8], ends: bool) -> Result<Option<Bytes>, &'static str> {
        if self.part.len() + part.len() > LONGEST_KEY_MESSAGE {
            return Err("a key message of more than 65535 bytes");
        }
        self.part.extend_from_slice(part);
        Ok(ends.then(|| std::mem::take(&mut self.part).into()))
    }

    /// Keys whose drain is over are forgotten; answers whose.
    pub(crate) fn on_time(&mut self, now: Instant) -> Option<Epoch> {
        if self.drained_at.is_none_or(|at| at > now) {
            return None;
        }
        let epoch = self.receive.first()?.epoch;
        self.destroy_receive(epoch).ok().map(|()| epoch)
    }

    /// The limit of the epoch in use is near; reported once.
    #[inline]
    pub(crate) fn pop_limit(&mut self) -> Option<Event> {
        let epoch = self.send.as_ref()?.epoch;
        if self.asked == Some(epoch) || !self.is_near_limit() {
            return None;
        }
        self.asked = Some(epoch);
        Some(Event::KeysNearLimit { epoch })
    }

    fn is_near_limit(&self) -> bool {
        let sent = self.send.as_ref().map_or(0, SendContext::bytes);
        let received = self.receive.last().map_or(0, ReceiveContext::bytes);
        sent.max(received) >= self.limits.rekey_bytes
    }

    /// Returns whether more records have failed to open than any key may let fail: the association must end.
    #[inline]
    pub(crate) fn is_spent(&self) -> bool {
        self.receive.iter().any(|context| context.is_spent(&self.limits))
    }

    pub(crate) fn stats(&self) -> ProtectionStats {
        let mut epochs: Vec<_> =
            self.receive.iter().map(|context| (context.epoch, context.stats())).collect();
        if let Some(send) = &self.send {
            for (_, stats) in epochs.iter_mut().filter(|(epoch, _)| *epoch == send.epoch) {
                stats.sealed = send.sealed();
            }
        }
        ProtectionStats { required: self.required, epochs }
    }

    /// The same with other limits.
    #[cfg(test)]
    pub(crate) fn limited(mut self, limits: KeyLimits) -> Self {
        self.limits = limits;
        self
    }
}

/// Returns whether a packet in the clear has nothing but what set-up and key management need, and what any association
/// does meanwhile: user data of others is not taken before it can be protected, nor anything that changes streams or
/// addresses.
fn is_fit_for_the_clear(packet: &[u8]) -> bool {
    Chunks::of(packet).flatten().all(|chunk| match chunk {
        Chunk::Data(data) => !data.flags.unordered && is_key_message(data.stream, data.ppid),
        Chunk::IData(data) => match (data.flags, data.ppid_or_fsn) {
            (DataFlags { unordered: true, .. }, _) => false,
            (_, PpidOrFsn::Ppid(ppid)) => is_key_message(data.stream, ppid),
            (_, PpidOrFsn::Fsn(_)) => data.stream == KEY_STREAM,
        },
        Chunk::Dtls(_)
        | Chunk::Asconf(_)
        | Chunk::AsconfAck(_)
        | Chunk::Reconfig(_)
        | Chunk::ForwardTsn(_)
        | Chunk::IForwardTsn(_)
        | Chunk::PacketDrop(_) => false,
        _ => true,
    })
}

/// Returns whether a packet consists of an ABORT with this side's own tag.
fn is_abort(packet: &[u8]) -> bool {
    let mut chunks = Chunks::of(packet);
    let first = chunks.next();
    matches!(first, Some(Ok(Chunk::Abort(abort))) if !abort.tag_reflected) && chunks.remaining().is_empty()
}
