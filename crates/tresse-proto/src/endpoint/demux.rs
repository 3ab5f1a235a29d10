//! Demultiplexing: finds the association of a packet by this side's verification tag, which is unique in an endpoint, or by the
//! peer's address and port if no association has that tag.

use std::net::IpAddr;

use super::peers::{self, PeerTable};
use super::slots::Slot;
use super::tags::TagTable;

/// Tables that map tags and peers to associations.
#[derive(Debug)]
pub(super) struct Demux {
    by_tag: TagTable,
    by_peer: PeerTable,
    /// Addresses and ports of peers that map to a newer association, with the older association that they mapped to before. They
    /// map to the older one again once the newer one is gone. There are few: for a peer that came back, or for addresses that
    /// were listed but never confirmed.
    hidden: Vec<(IpAddr, u16, Slot)>,
}

impl Demux {
    /// Creates empty tables. Addresses and ports, which peers choose, are hashed with `secret`.
    pub(super) fn new(secret: [u64; 2]) -> Self {
        Demux { by_tag: TagTable::default(), by_peer: peers::table(secret), hidden: Vec::new() }
    }

    pub(super) fn by_tag(&self, tag: u32) -> Option<Slot> {
        self.by_tag.get(&tag).copied()
    }

    pub(super) fn by_peer(&self, address: IpAddr, port: u16) -> Option<Slot> {
        self.by_peer.get(&(address, port)).copied()
    }

    pub(super) fn has_tag(&self, tag: u32) -> bool {
        self.by_tag.contains_key(&tag)
    }

    pub(super) fn insert(&mut self, slot: Slot, tag: u32, peers: impl Iterator<Item = (IpAddr, u16)>) {
        self.by_tag.insert(tag, slot);
        for (address, port) in peers {
            if let Some(older) = self.by_peer.insert((address, port), slot).filter(|&older| older != slot) {
                self.hidden.push((address, port, older));
            }
        }
    }

    /// Adds an address of the peer. While the address maps to another association, it does not map to this one.
    pub(super) fn learn(&mut self, slot: Slot, address: IpAddr, port: u16) {
        match self.by_peer(address, port) {
            None => _ = self.by_peer.insert((address, port), slot),
            Some(other) if other != slot => self.hidden.push((address, port, slot)),
            Some(_) => {}
        }
    }

    /// Removes an address of the peer. If it mapped to an older association before, it maps to that one again.
    pub(super) fn forget(&mut self, slot: Slot, address: IpAddr, port: u16) {
        self.hidden.retain(|hidden| *hidden != (address, port, slot));
        if self.by_peer(address, port) != Some(slot) {
            return;
        }
        self.by_peer.remove(&(address, port));
        let newest = self.hidden.iter().rposition(|&(hidden, at, _)| (hidden, at) == (address, port));
        if let Some(newest) = newest {
            let (_, _, older) = self.hidden.remove(newest);
            self.by_peer.insert((address, port), older);
        }
    }

    /// Replaces the tag of the association in `slot`.
    pub(super) fn change_tag(&mut self, slot: Slot, from: u32, to: u32) {
        self.forget_tag(slot, from);
        self.by_tag.insert(to, slot);
    }

    pub(super) fn remove(&mut self, slot: Slot, tag: u32, peers: impl Iterator<Item = (IpAddr, u16)>) {
        self.forget_tag(slot, tag);
        self.hidden.retain(|&(_, _, hidden)| hidden != slot);
        for (address, port) in peers {
            self.forget(slot, address, port);
        }
    }

    fn forget_tag(&mut self, slot: Slot, tag: u32) {
        if self.by_tag(tag) == Some(slot) {
            self.by_tag.remove(&tag);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_association_is_found_by_its_peer_again_once_a_newer_one_is_gone() {
        let peer = (IpAddr::from([10, 0, 1, 2]), 5000);
        let mut demux = Demux::new([1, 2]);
        for slot in 0..3 {
            demux.insert(slot, 100 + slot, [peer].into_iter());
        }
        assert_eq!(demux.by_peer(peer.0, peer.1), Some(2));
        demux.remove(1, 101, [peer].into_iter());
        assert_eq!(demux.by_peer(peer.0, peer.1), Some(2), "one that is hidden goes");
        demux.remove(2, 102, [peer].into_iter());
        assert_eq!(demux.by_peer(peer.0, peer.1), Some(0));
        demux.learn(3, peer.0, peer.1);
        assert_eq!(demux.by_peer(peer.0, peer.1), Some(0));
        demux.forget(0, peer.0, peer.1);
        assert_eq!(demux.by_peer(peer.0, peer.1), Some(3));
        demux.forget(3, peer.0, peer.1);
        assert_eq!((demux.by_peer(peer.0, peer.1), demux.hidden.len()), (None, 0));
    }
}
