//! What routers say of packets that they did not forward (RFC 9260 §10). Believed only when they quote a packet
//! that this side may have sent: its ports and the peer's verification tag.

use std::net::IpAddr;

use super::Endpoint;
use super::slots::Occupant;
use crate::time::Instant;

impl Endpoint {
    /// A router towards `remote` forwards IP packets of no more than `mtu` bytes: ICMP Fragmentation Needed, or
    /// ICMPv6 Packet Too Big. `quoted` is what the message quotes of the SCTP packet, at least the first eight
    /// bytes of its common header; with less it is ignored.
    pub fn handle_packet_too_big(
        &mut self,
        now: Instant,
        (local, remote): (IpAddr, IpAddr),
        mtu: usize,
        quoted: &[u8],
    ) {
        let Some(&[own_high, own_low, high, low, tag @ ..]) = quoted.first_chunk::<8>() else { return };
        let own_port = u16::from_be_bytes([own_high, own_low]);
        let slot = self.demux.by_peer(remote, u16::from_be_bytes([high, low]));
        let Some(slot) = slot.filter(|_| own_port == self.config.port) else { return };
        if let Some(Occupant::Open(association)) = self.slots.get_mut(slot)
            && association.identity().peer_tag == u32::from_be_bytes(tag)
        {
            association.on_packet_too_big(now, (local, remote), mtu);
            self.settle(slot);
        }
    }
}
