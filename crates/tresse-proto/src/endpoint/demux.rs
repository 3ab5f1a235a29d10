//! From a packet to its association: by this side's verification tag, which is unique in an endpoint, and
//! by the peer's address and port where a packet does not carry that tag.

use std::net::IpAddr;

use super::peers::PeerTable;
use super::tags::TagTable;

/// The position of an association in its endpoint.
pub(super) type Slot = u32;

/// Tables by which associations are found.
#[derive(Debug)]
pub(super) struct Demux {
    by_tag: TagTable,
    by_peer: PeerTable,
    /// The tag found last: packets of one association come in a row.
    last: Option<(u32, Slot)>,
}

impl Demux {
    /// Without associations. What peers choose is hashed with `secret`.
    pub(super) fn new(secret: [u64; 2]) -> Self {
        Demux { by_tag: TagTable::default(), by_peer: PeerTable::new(secret), last: None }
    }

    pub(super) fn by_tag(&mut self, tag: u32) -> Option<Slot> {
        if let Some((last, slot)) = self.last
            && last == tag
        {
            return Some(slot);
        }
        let slot = self.by_tag.get(tag)?;
        self.last = Some((tag, slot));
        Some(slot)
    }

    pub(super) fn by_peer(&self, address: IpAddr, port: u16) -> Option<Slot> {
        self.by_peer.get(address, port)
    }

    pub(super) fn has_tag(&self, tag: u32) -> bool {
        self.by_tag.get(tag).is_some()
    }

    pub(super) fn insert(&mut self, slot: Slot, tag: u32, peers: impl Iterator<Item = (IpAddr, u16)>) {
        self.by_tag.insert(tag, slot);
        for (address, port) in peers {
            self.by_peer.insert(address, port, slot);
        }
    }

    /// Learns an address of the peer, unless another association is found by it.
    pub(super) fn learn(&mut self, slot: Slot, address: IpAddr, port: u16) {
        if self.by_peer(address, port).is_none() {
            self.by_peer.insert(address, port, slot);
        }
    }

    /// Forgets an address of the peer.
    pub(super) fn forget(&mut self, slot: Slot, address: IpAddr, port: u16) {
        if self.by_peer(address, port) == Some(slot) {
            self.by_peer.remove(address, port);
        }
    }

    /// The association in `slot` has another tag from now on.
    pub(super) fn change_tag(&mut self, slot: Slot, from: u32, to: u32) {
        self.remove(slot, from, std::iter::empty());
        self.by_tag.insert(to, slot);
    }

    pub(super) fn remove(&mut self, slot: Slot, tag: u32, peers: impl Iterator<Item = (IpAddr, u16)>) {
        self.last = None;
        if self.by_tag.get(tag) == Some(slot) {
            self.by_tag.remove(tag);
        }
        for (address, port) in peers {
            self.forget(slot, address, port);
        }
    }
}
