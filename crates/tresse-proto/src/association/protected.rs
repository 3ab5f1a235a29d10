//! Protection of an association: this module passes DTLS chunks, messages of the key management and commands of the key
//! manager to `extensions::protection`, and carries out the actions that it returns.

use bytes::Bytes;
use tresse_policy::{Instant, PathId};
use tresse_wire::{COMMON_HEADER_LEN, Chunk, CommonHeader, PacketWriter, Ppid, RECORD_OVERHEAD};

use super::{Association, State};
use crate::extensions::protection::{
    Admission, KEY_STREAM, LONGEST_KEY_MESSAGE, OpenedPackets, Protection, is_key_message,
};
use crate::interface::event::{CloseReason, Event, Message};
use crate::interface::protection::{
    Epoch, KEY_CONTROL, KEY_MANAGEMENT, ProtectionError, ProtectionStats, RecordKeys,
};
use crate::paths::Path;

/// Name of the state of an association in errors, while it only exchanges key messages.
pub(super) const WAITS_FOR_KEYS: &str = "waiting for keys";

/// Position of the path of packets from unknown addresses; no path has it.
const UNKNOWN_PATH: usize = 255;

/// Number of answers to SHUTDOWN ACKs that arrive after the end: the peer retransmits SHUTDOWN ACK as often
/// (Association.Max.Retrans).
const FINAL_PACKETS: usize = 10;

/// Takes the messages of the key management out of those that wait for the application.
#[cold]
pub(super) fn take_key_messages(association: &mut Association) {
    while let Some(message) = association
        .reception
        .inbound
        .take_matching(|message: &Message| is_key_message(message.stream, message.ppid))
    {
        let Some(protection) = association.protection.get() else { return };
        let protected =
            protection.is_required() || (protection.came_protected() && message.part == Default::default());
        let (ppid, ends) = (message.ppid, message.part.is_end());
        match protection.join(&message.payload.into_bytes(), ends) {
            Ok(Some(data)) => association.emit(Event::KeyMessage { ppid, data, protected }),
            Ok(None) => {}
            Err(what) => return association.fault(what),
        }
        // If no message is ready any more, only partial delivery can free a full receive buffer.
        association.reception.deliver_partially();
    }
    if let Some(event) = association.protection.get().and_then(|protection| protection.pop_limit()) {
        association.emit(event);
    }
}

/// An association whose packets are, or will be, protected.
pub(crate) struct Protected<'a>(&'a mut Association);

impl<'a> Protected<'a> {
    /// Wraps the association, if both sides negotiated protection.
    pub(crate) fn of(association: &'a mut Association) -> Option<Self> {
        association.protection.get().is_some().then_some(Protected(association))
    }

    fn protection(&mut self) -> Result<&mut Protection, ProtectionError> {
        let state = self.0.state;
        match self.0.protection.get() {
            Some(_) if state == State::Closed => Err(ProtectionError::NotOpen { state: state.name() }),
            Some(protection) => Ok(protection),
            None => Err(ProtectionError::NotAgreed),
        }
    }

    /// Decides whether a packet with this association's tag and ports is to be processed, and decrypts it. `path` is its path, if
    /// the addresses are known. Returns false if the packet must be discarded.
    pub(crate) fn admit(
        self,
        now: Instant,
        path: Option<PathId>,
        packet: &mut Bytes,
        memory: &mut OpenedPackets,
    ) -> bool {
        let Protected(association) = self;
        let Some(protection) = association.protection.get() else { return true };
        let discards = &mut association.counters.discards;
        match protection.admit(path.map_or(UNKNOWN_PATH, PathId::index), packet, memory) {
            Admission::Taken => {
                protection.drain(now, association.sender.paths.iter().map(Path::rto));
                return true;
            }
            Admission::Unprotected => discards.unprotected += 1,
            Admission::Unopened => discards.unopened += 1,
        }
        if protection.is_spent() && association.state != State::Closed {
            association.abort(None, CloseReason::KeysSpent);
            association.request_output();
        }
        false
    }

    /// Queues a message of the key management, before all messages of the application.
    pub(crate) fn send(mut self, ppid: Ppid, message: Bytes) -> Result<(), ProtectionError> {
        self.protection()?;
        self.check_may_send()?;
        let known = ppid == KEY_MANAGEMENT || ppid == KEY_CONTROL;
        if !known || message.is_empty() || message.len() > LONGEST_KEY_MESSAGE {
            return Err(ProtectionError::BadMessage);
        }
        self.0.sender.outbound.push_keys(KEY_STREAM, ppid, message);
        self.0.request_output();
        Ok(())
    }

    /// Checks that messages of the key management can still leave: not after SHUTDOWN or SHUTDOWN ACK.
    fn check_may_send(&self) -> Result<(), ProtectionError> {
        let state = self.0.state;
        if state.sends_data() { Ok(()) } else { Err(ProtectionError::NotOpen { state: state.name() }) }
    }

    pub(crate) fn install_send(
        mut self,
        now: Instant,
        epoch: Epoch,
        keys: RecordKeys,
    ) -> Result<(), ProtectionError> {
        self.protection()?.install_send(epoch, keys)?;
        let Protected(association) = self;
        if let Some(protection) = association.protection.get() {
            protection.drain(now, association.sender.paths.iter().map(Path::rto));
        }
        association.request_output();
        Ok(())
    }

    /// Installs keys for received packets, unless the peer can no longer learn of them: it would stay with the old keys, or in
    /// the clear, and this side would soon accept nothing but the new ones.
    pub(crate) fn install_receive(mut self, epoch: Epoch, keys: RecordKeys) -> Result<(), ProtectionError> {
        self.protection()?;
        self.check_may_send()?;
        self.protection()?.install_receive(epoch, keys)
    }

    pub(crate) fn destroy_receive(mut self, epoch: Epoch) -> Result<(), ProtectionError> {
        self.protection()?.destroy_receive(epoch)
    }

    /// Accepts only DTLS chunks from now on, and an ABORT of a peer that may have no keys yet; releases the messages of the
    /// application.
    pub(crate) fn require(mut self) -> Result<(), ProtectionError> {
        let complete = self.0.reception.inbound.is_complete() && !self.0.reception.receiver.has_gaps();
        let protection = self.protection()?;
        if protection.is_required() {
            return Ok(());
        }
        let sound = protection.require(complete)?;
        let Protected(association) = self;
        if sound {
            association.sender.outbound.resume();
            // The peer may have answered a HEARTBEAT in the clear, or discarded one.
            association.sender.paths.ask_again();
            if association.state == State::ShutdownPending {
                // SHUTDOWN leaves at the next poll at the earliest, after the key messages of this side.
                association.shutdown.on_keys();
            }
        } else {
            association.fault("user data in the clear that the peer cannot have sent");
        }
        association.request_output();
        Ok(())
    }

    /// Returns whether only DTLS chunks are accepted.
    pub(crate) fn is_required(&self) -> bool {
        self.0.protection.is_required()
    }

    pub(crate) fn stats(self) -> ProtectionStats {
        self.0.protection.get().map(|protection| protection.stats()).unwrap_or_default()
    }

    /// Answers to SHUTDOWN ACKs that may arrive after this side's SHUTDOWN COMPLETE. Each is a record of its own, so that no key
    /// has to be kept for them; the peer accepts only encrypted ones.
    pub(crate) fn final_packets(self, checksum: bool) -> Vec<Vec<u8>> {
        let Protected(association) = self;
        let header: CommonHeader = association.identity.header();
        let Some(protection) = association.protection.get() else { return Vec::new() };
        if !protection.take_completed() {
            return Vec::new();
        }
        let final_packet = |_| {
            let mut packet = Vec::new();
            let limit = COMMON_HEADER_LEN + RECORD_OVERHEAD + 4;
            let mut writer = PacketWriter::new(&mut packet, header, limit);
            protection.prepare(&mut writer);
            writer.push(&Chunk::ShutdownComplete { tag_reflected: false }).ok()?;
            protection.seal(&mut writer).ok()?;
            writer.finish(if checksum { tresse_wire::Seal::Crc32c } else { tresse_wire::Seal::Zero });
            Some(packet)
        };
        (0..FINAL_PACKETS).map_while(final_packet).collect()
    }
}
