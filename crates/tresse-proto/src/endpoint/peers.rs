//! Associations by an address of their peer and its port. Other hosts choose these, so the table hashes them with a secret:
//! an attacker cannot cause collisions. Knows addresses and slots only.

use std::net::IpAddr;

use super::demux::Slot;

/// A table with open addressing: an address stands in the first free cell from its own on.
#[derive(Debug)]
pub(super) struct PeerTable {
    /// A power of two of them, or none; never full.
    cells: Vec<Option<Cell>>,
    len: usize,
    secret: [u64; 2],
}

#[derive(Copy, Clone, Debug)]
struct Cell {
    address: IpAddr,
    port: u16,
    slot: Slot,
}

/// Cells that a table begins with.
const FIRST_CELLS: usize = 8;

impl PeerTable {
    pub(super) fn new(secret: [u64; 2]) -> Self {
        PeerTable { cells: Vec::new(), len: 0, secret }
    }

    pub(super) fn get(&self, address: IpAddr, port: u16) -> Option<Slot> {
        self.cells.get(self.find(address, port)?)?.as_ref().map(|cell| cell.slot)
    }

    /// Puts `slot` there; answers what it takes the place of.
    pub(super) fn insert(&mut self, address: IpAddr, port: u16, slot: Slot) -> Option<Slot> {
        if 4 * (self.len + 1) > 3 * self.cells.len() {
            self.grow();
        }
        let at = self.find(address, port)?;
        let before = self.cells[at].replace(Cell { address, port, slot });
        self.len += usize::from(before.is_none());
        before.map(|cell| cell.slot)
    }

    pub(super) fn remove(&mut self, address: IpAddr, port: u16) {
        let Some(mut free) = self.find(address, port).filter(|&at| self.cells[at].is_some()) else { return };
        self.len -= 1;
        // What stands behind it moves up, so that no search ends too early.
        let mut at = self.after(free);
        while let Some(cell) = self.cells[at] {
            let home = self.home(cell.address, cell.port);
            let from_home = |place: usize| place.wrapping_sub(home) & self.mask();
            if from_home(free) < from_home(at) {
                self.cells[free] = Some(cell);
                free = at;
            }
            at = self.after(at);
        }
        self.cells[free] = None;
    }

    /// The cell of an address, or the free one where it would stand; `None` in a table without cells.
    fn find(&self, address: IpAddr, port: u16) -> Option<usize> {
        if self.cells.is_empty() {
            return None;
        }
        let mut at = self.home(address, port);
        while self.cells[at].is_some_and(|cell| (cell.address, cell.port) != (address, port)) {
            at = self.after(at);
        }
        Some(at)
    }

    fn grow(&mut self) {
        let larger = (2 * self.cells.len()).max(FIRST_CELLS);
        for cell in std::mem::replace(&mut self.cells, vec![None; larger]).into_iter().flatten() {
            if let Some(at) = self.find(cell.address, cell.port) {
                self.cells[at] = Some(cell);
            }
        }
    }

    fn home(&self, address: IpAddr, port: u16) -> usize {
        let hash = match address {
            IpAddr::V4(v4) => siphash(self.secret, [(u64::from(v4.to_bits()) << 16) | u64::from(port)]),
            IpAddr::V6(v6) => {
                let bits = v6.to_bits();
                siphash(self.secret, [(bits >> 64) as u64, bits as u64, u64::from(port)])
            }
        };
        hash as usize & self.mask()
    }

    fn after(&self, at: usize) -> usize {
        (at + 1) & self.mask()
    }

    fn mask(&self) -> usize {
        self.cells.len() - 1
    }
}

/// SipHash-1-3 (Aumasson and Bernstein, 2012) of some words, least significant bytes first.
fn siphash<const N: usize>([key_0, key_1]: [u64; 2], words: [u64; N]) -> u64 {
    let mut state = [
        key_0 ^ 0x736f_6d65_7073_6575,
        key_1 ^ 0x646f_7261_6e64_6f6d,
        key_0 ^ 0x6c79_6765_6e65_7261,
        key_1 ^ 0x7465_6462_7974_6573,
    ];
    // The last word says the length in its highest byte.
    for word in words.into_iter().chain([(size_of_val(&words) as u64) << 56]) {
        state[3] ^= word;
        sip_round(&mut state);
        state[0] ^= word;
    }
    state[2] ^= 0xff;
    for _ in 0..3 {
        sip_round(&mut state);
    }
    state.into_iter().fold(0, |all, word| all ^ word)
}

fn sip_round([v0, v1, v2, v3]: &mut [u64; 4]) {
    *v0 = v0.wrapping_add(*v1);
    *v1 = v1.rotate_left(13) ^ *v0;
    *v0 = v0.rotate_left(32);
    *v2 = v2.wrapping_add(*v3);
    *v3 = v3.rotate_left(16) ^ *v2;
    *v0 = v0.wrapping_add(*v3);
    *v3 = v3.rotate_left(21) ^ *v0;
    *v2 = v2.wrapping_add(*v1);
    *v1 = v1.rotate_left(17) ^ *v2;
    *v2 = v2.rotate_left(32);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::net::Ipv4Addr;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Many in few cells, so that much has to move.
        #[test]
        fn addresses_are_found_until_they_are_removed(
            secret in any::<[u64; 2]>(),
            steps in prop::collection::vec((any::<bool>(), 0u8..20, 0u16..2), 0..400),
        ) {
            let (mut table, mut expected) = (PeerTable::new(secret), BTreeMap::new());
            for (slot, (inserts, host, port)) in (0..).zip(steps) {
                let v4 = Ipv4Addr::new(10, 0, 0, host / 2);
                let address: IpAddr = if host % 2 == 0 { v4.into() } else { v4.to_ipv6_mapped().into() };
                if inserts {
                    let before = expected.insert((address, port), slot);
                    prop_assert_eq!(table.insert(address, port, slot), before);
                } else {
                    table.remove(address, port);
                    expected.remove(&(address, port));
                }
                prop_assert_eq!(table.len, expected.len());
                for host in 0..10 {
                    let v4 = Ipv4Addr::new(10, 0, 0, host);
                    for (address, port) in
                        [v4.into(), IpAddr::from(v4.to_ipv6_mapped())].into_iter().flat_map(|a| [(a, 0), (a, 1)])
                    {
                        let found = expected.get(&(address, port)).copied();
                        prop_assert_eq!(table.get(address, port), found);
                    }
                }
            }
        }
    }

    #[test]
    fn the_hash_is_siphash_1_3() {
        let words = [0, 1, 2].map(|word| 0x0706_0504_0302_0100 + word * 0x0808_0808_0808_0808);
        let key = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];
        assert_eq!(siphash(key, words), 0xf464_aeb2_6734_9c8c);
    }
}
