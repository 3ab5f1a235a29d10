//! ICMP messages about undelivered packets, and their validation (RFC 9260 §10).
//!
//! Any host can send such a message. The endpoint processes it only if it quotes a packet that this side may have sent, by ports,
//! addresses and the peer's verification tag. A quoted INIT must have this side's initiate tag.

use tresse_policy::Instant;

use super::Endpoint;
use super::slots::Occupant;
use crate::interface::event::CloseReason;
use crate::interface::icmp::{IcmpError, IcmpKind};

/// SCTP packet as quoted by an ICMP message.
struct QuotedPacket {
    source_port: u16,
    destination_port: u16,
    tag: u32,
    /// The initiate tag, if the packet begins with INIT and enough of it is quoted.
    initiate_tag: Option<u32>,
}

impl QuotedPacket {
    fn read(bytes: &[u8]) -> Option<Self> {
        let word = |at: usize| {
            bytes.get(at..at + 4).map(|word| u32::from_be_bytes([word[0], word[1], word[2], word[3]]))
        };
        let is_init = bytes.get(CHUNK_TYPE) == Some(&INIT);
        let ports = word(0)?;
        Some(QuotedPacket {
            source_port: (ports >> 16) as u16,
            destination_port: ports as u16,
            tag: word(4)?,
            initiate_tag: word(INITIATE_TAG).filter(|_| is_init),
        })
    }
}

const CHUNK_TYPE: usize = 12;
const INIT: u8 = 1;
const INITIATE_TAG: usize = 16;

impl Endpoint {
    /// Processes an ICMP message about a packet that this endpoint may have sent.
    ///
    /// For "packet too big", the path keeps the smaller limit. If the host does not support SCTP, the association ends as by an
    /// ABORT. Other messages are ignored: timers and heartbeats take longer, but do not depend on trust in the sender.
    pub fn handle_icmp(&mut self, now: Instant, error: &IcmpError<'_>) {
        if !self.apply_icmp(now, error) {
            self.discards.icmp += 1;
        }
    }

    /// Returns whether the message was valid and was processed.
    fn apply_icmp(&mut self, now: Instant, error: &IcmpError<'_>) -> bool {
        let Some(quoted) = QuotedPacket::read(error.quoted) else { return false };
        let slot = self.demux.by_peer(error.remote, quoted.destination_port);
        let Some(slot) = slot.filter(|_| quoted.source_port == self.config.port) else { return false };
        match (self.slots.get_mut(slot), error.kind) {
            (Some(Occupant::Open(association)), kind) if association.identity().peer_tag == quoted.tag => {
                match kind {
                    IcmpKind::PacketTooBig { mtu } => {
                        if let Some(path) = association.sender().paths.find(error.local, error.remote) {
                            association.change_paths(|paths| paths.on_packet_too_big(path, now, mtu));
                        }
                    }
                    IcmpKind::NoReceiver => association.on_no_receiver(),
                    IcmpKind::Unreachable => return false,
                }
            }
            (Some(Occupant::Setup(setup)), IcmpKind::NoReceiver) => {
                let of_init = quoted.tag == 0 && quoted.initiate_tag == Some(setup.local_tag());
                let of_cookie_echo = setup.peer_tag() == Some(quoted.tag);
                if !of_init && !of_cookie_echo {
                    return false;
                }
                self.fail_setup(slot, CloseReason::no_receiver());
            }
            _ => return false,
        }
        self.settle(slot);
        true
    }
}
