//! Protection of an association's packets by DTLS chunks (draft-ietf-tsvwg-sctp-dtls-chunk-04): the keys, the encrypted packets,
//! the packets that are accepted in the clear, and the limits of keys.
//!
//! This module owns epochs, record numbers, replay windows and limits. It is independent of ciphers, which the key management
//! provides, and of the contents of packets.

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

/// Maximum length of a key message, in bytes.
pub(crate) const LONGEST_KEY_MESSAGE: usize = 65_535;

/// Returns whether such messages belong to the key management.
#[inline]
pub(crate) fn is_key_message(stream: StreamId, ppid: Ppid) -> bool {
    stream == KEY_STREAM && (ppid == KEY_MANAGEMENT || ppid == KEY_CONTROL)
}

/// Bounds of the indices of user data that arrived in the clear, and of user data that arrived protected.
#[derive(Debug, Default)]
struct ClearBounds {
    /// The highest index that arrived in the clear.
    highest_clear: Option<u64>,
    /// The lowest index that arrived protected.
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
    /// Time at which the older receiving keys are removed.
    drained_at: Option<Instant>,
    required: bool,
    /// The packet that is being processed arrived in a DTLS chunk.
    protected: bool,
    clear_bounds: ClearBounds,
    /// This side has sent SHUTDOWN COMPLETE, protected.
    complete_sent: bool,
    /// The last epoch for which new keys were requested.
    asked: Option<Epoch>,
    /// Received parts of an incomplete key message.
    part: Vec<u8>,
}

/// The protection of an association, whether it was negotiated or not.
#[derive(Debug, Default)]
pub(crate) struct PacketProtection(Option<Box<Protection>>);

impl PacketProtection {
    /// Creates the protection as negotiated, without keys.
    pub(crate) fn new(agreed: Agreed, config: &AssociationConfig) -> Self {
        PacketProtection(Some(Box::new(Protection::new(agreed, config))))
    }

    /// Returns the protection; `None` if it was not negotiated.
    #[inline]
    pub(crate) fn get(&mut self) -> Option<&mut Protection> {
        self.0.as_deref_mut()
    }

    /// Returns whether protection was negotiated.
    #[inline]
    pub(crate) fn is_agreed(&self) -> bool {
        self.0.is_some()
    }

    /// Returns whether only DTLS chunks are accepted.
    #[inline]
    pub(crate) fn is_required(&self) -> bool {
        self.0.as_ref().is_some_and(|protection| protection.required)
    }

    /// Returns whether protection was negotiated but is not required yet, because keys are missing.
    #[inline]
    pub(crate) fn is_pending(&self) -> bool {
        self.0.as_ref().is_some_and(|protection| !protection.required)
    }

    /// Returns whether the packet that is being processed arrived in a DTLS chunk.
    pub(crate) fn came_protected(&self) -> bool {
        self.0.as_ref().is_some_and(|protection| protection.protected)
    }

    /// Returns the bytes of a record in each packet. They are reserved before there are keys, because fragments that are cut
    /// before may be sent protected.
    #[inline]
    pub(crate) fn overhead(&self) -> usize {
        if self.0.is_some() { RECORD_OVERHEAD } else { 0 }
    }

    /// Reserves space for a record in a packet, once there are sending keys.
    #[inline]
    pub(crate) fn prepare(&self, writer: &mut PacketWriter<'_>) {
        if let Some(protection) = &self.0 {
            protection.prepare(writer);
        }
    }

    /// Encrypts a packet whose chunks are complete, once there are sending keys.
    ///
    /// # Errors
    /// Neither this packet nor any other one may be sent any more.
    #[inline]
    pub(crate) fn seal(&mut self, writer: &mut PacketWriter<'_>) -> Result<(), SealFault> {
        match &mut self.0 {
            Some(protection) => protection.seal(writer),
            None => Ok(()),
        }
    }

    /// Negotiates again with a peer that set up at the same time and began anew; `peer` is its new parameter. Returns the new
    /// result if it differs from the old one.
    ///
    /// # Errors
    /// The two parameters allow no protection.
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

    /// Removes keys whose drain time is over; returns the event for the key management.
    pub(crate) fn on_time(&mut self, now: Instant) -> Option<Event> {
        let epoch = self.get()?.on_time(now)?;
        Some(Event::KeysDrained { epoch })
    }

    /// Returns the time at which the older receiving keys are removed.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.0.as_ref().and_then(|protection| protection.drained_at)
    }
}

/// Result of the admission of a packet.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Admission {
    /// The packet is to be processed.
    Taken,
    /// The packet arrived in the clear, which is not allowed.
    Unprotected,
    /// The packet arrived in a DTLS chunk that could not be decrypted.
    Unopened,
}

impl Protection {
    /// Creates the protection as negotiated, without keys.
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
            clear_bounds: ClearBounds::default(),
            complete_sent: false,
            asked: None,
            part: Vec::new(),
        }
    }

    /// Returns whether only DTLS chunks are accepted.
    #[inline]
    pub(crate) fn is_required(&self) -> bool {
        self.required
    }

    /// Returns whether the packet that is being processed arrived in a DTLS chunk.
    #[inline]
    pub(crate) fn came_protected(&self) -> bool {
        self.protected
    }

    /// Reserves space for a record in a packet, once there are sending keys.
    #[inline]
    pub(crate) fn prepare(&self, writer: &mut PacketWriter<'_>) {
        if self.send.is_some() {
            writer.leave_record();
        }
    }

    /// Encrypts a packet whose chunks are complete, once there are sending keys.
    ///
    /// # Errors
    /// Neither this packet nor any other one may be sent any more.
    #[inline]
    pub(crate) fn seal(&mut self, writer: &mut PacketWriter<'_>) -> Result<(), SealFault> {
        match &mut self.send {
            Some(context) => context.seal(&self.limits, writer),
            None => Ok(()),
        }
    }

    /// Decides whether a packet with this association's ports and tag, received on the path with index `path`, is to be
    /// processed. The content of a DTLS chunk replaces the packet; it is stored in `memory`.
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
            // The peer may have aborted before it had sending keys, which it can report only in the clear. A host that can forge
            // this ABORT could have forged one a round trip earlier, too.
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
        // The last chunk of a packet is padded like any other.
        let whole = packet.len() == COMMON_HEADER_LEN + record.wire_len().next_multiple_of(4);
        let bits = record.epoch_bits().filter(|_| whole)?;
        let fits = |context: &&mut ReceiveContext| context.epoch.0 & 3 == u64::from(bits);
        let context = self.receive.iter_mut().rev().find(fits)?;
        context.open(path, packet.first_chunk()?, &record, memory)
    }

    /// Records that new user data with this index has arrived.
    #[inline]
    pub(crate) fn on_data(&mut self, index: u64) {
        if self.required {
            return;
        }
        let ClearBounds { highest_clear, lowest_protected } = &mut self.clear_bounds;
        if self.protected {
            *lowest_protected = Some(lowest_protected.map_or(index, |lowest| lowest.min(index)));
        } else {
            *highest_clear = Some(highest_clear.map_or(index, |highest| highest.max(index)));
        }
    }

    /// Installs sending keys, which encrypt all packets from now on.
    ///
    /// # Errors
    /// The epoch is not the next one, or has no receiving keys.
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

    /// Returns whether the old receiving keys begin to drain now. A record with the new keys has been decrypted, so the peer does
    /// not send with the old keys any more. Before that, the peer may not know that it can use the new keys, as long as the
    /// message that reports this is lost or waits for a window. Then the peer's SACKs, which are needed for this very message,
    /// still use the old keys.
    #[inline]
    fn begins_to_drain(&self) -> bool {
        let [_, newest] = &self.receive[..] else { return false };
        let in_use = self.send.as_ref().is_some_and(|send| send.epoch == newest.epoch);
        self.drained_at.is_none() && in_use && newest.stats().opened > 0
    }

    /// Starts the drain time of the old receiving keys, if they begin to drain. It is at least the longest of `timeouts` (RTOs),
    /// after which the sender takes a packet for lost.
    #[inline]
    pub(crate) fn drain(&mut self, now: Instant, timeouts: impl Iterator<Item = Duration>) {
        if self.begins_to_drain() {
            self.drained_at = Some(now + self.drain.max(timeouts.max().unwrap_or_default()));
        }
    }

    /// Installs receiving keys.
    ///
    /// # Errors
    /// The epoch is not the next one, or older receiving keys still drain.
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

    /// Removes receiving keys that drain, or those of a key exchange that was not completed.
    ///
    /// # Errors
    /// The epoch has no receiving keys, or they are in use.
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

    /// Accepts only DTLS chunks from now on. `complete` is true if all user data up to the highest index that has arrived was
    /// delivered. Returns whether the peer can have sent the user data that arrived in the clear.
    ///
    /// # Errors
    /// Sending or receiving keys are missing.
    pub(crate) fn require(&mut self, complete: bool) -> Result<bool, ProtectionError> {
        if self.send.is_none() || self.receive.is_empty() {
            return Err(ProtectionError::KeysMissing);
        }
        self.required = true;
        // A peer that has begun to protect its packets continues to do so. So all clear data precedes the protected data; and if
        // none arrived protected, no data may be missing before the peer's last clear message.
        Ok(match self.clear_bounds {
            ClearBounds { highest_clear: Some(clear), lowest_protected: Some(protected) } => {
                clear < protected
            }
            ClearBounds { lowest_protected: None, .. } => complete,
            ClearBounds { highest_clear: None, .. } => true,
        })
    }

    /// Records that SHUTDOWN COMPLETE is sent in the next packet.
    pub(crate) fn on_complete_sent(&mut self) {
        self.complete_sent = self.send.is_some();
    }

    /// Returns whether SHUTDOWN COMPLETE was sent protected; true once.
    pub(crate) fn take_completed(&mut self) -> bool {
        std::mem::take(&mut self.complete_sent)
    }

    /// Adds a part of a key message; returns the message when it is complete.
    ///
    /// # Errors
    /// The message is longer than the maximum.
    pub(crate) fn join(&mut self, part: &[u8], ends: bool) -> Result<Option<Bytes>, &'static str> {
        if self.part.len() + part.len() > LONGEST_KEY_MESSAGE {
            return Err("a key message of more than 65535 bytes");
        }
        self.part.extend_from_slice(part);
        Ok(ends.then(|| std::mem::take(&mut self.part).into()))
    }

    /// Removes keys whose drain time is over; returns their epoch.
    pub(crate) fn on_time(&mut self, now: Instant) -> Option<Epoch> {
        if self.drained_at.is_none_or(|at| at > now) {
            return None;
        }
        let epoch = self.receive.first()?.epoch;
        self.destroy_receive(epoch).ok().map(|()| epoch)
    }

    /// Returns the event that the keys in use are near their limit; once for each epoch.
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

    /// Returns whether more records have failed to decrypt than is allowed for a key: the association must end.
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

    /// Replaces the limits.
    #[cfg(test)]
    pub(crate) fn limited(mut self, limits: KeyLimits) -> Self {
        self.limits = limits;
        self
    }
}

/// Returns whether a packet in the clear has only chunks that are needed before there are keys: for set-up, key management, and
/// the operation of the association meanwhile. Other user data, and changes of streams or addresses, are accepted only protected.
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

/// Returns whether a packet consists of one ABORT with this side's own tag.
fn is_abort(packet: &[u8]) -> bool {
    let mut chunks = Chunks::of(packet);
    let first = chunks.next();
    matches!(first, Some(Ok(Chunk::Abort(abort))) if !abort.tag_reflected) && chunks.remaining().is_empty()
}
