//! SCTP ports: which are in use, and which is free for a socket that asks for none.
//!
//! Other processes of this host are told by names in the abstract namespace of local sockets, as in the crate `tresse`: such a
//! name belongs to one network namespace, as addresses do, and ends with its process.

use std::collections::HashMap;
use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use rustix::io::Errno;

use crate::numbers;

/// The ports of this process.
#[derive(Default)]
pub(crate) struct Ports {
    /// Address sets that have each port.
    used: HashMap<u16, Vec<Vec<IpAddr>>>,
    names: HashMap<(IpAddr, u16), UnixDatagram>,
    /// Blocks of ephemeral ports that are this process's alone, and their names.
    blocks: HashMap<u16, UnixDatagram>,
    /// The place among the ports of these blocks of the one that was given out last.
    latest: u16,
}

impl Ports {
    /// Takes `port` on these addresses; with `shared` it may be taken already by others that share it. `named` tells other
    /// processes.
    pub(crate) fn take(
        &mut self,
        port: u16,
        addresses: &[IpAddr],
        named: bool,
        shared: bool,
    ) -> Result<(), Errno> {
        let others = self.used.get(&port).map(Vec::as_slice).unwrap_or_default();
        if !shared && others.iter().flatten().any(|other| addresses.contains(other)) {
            return Err(Errno::ADDRINUSE);
        }
        let mut held = Vec::new();
        for &address in addresses.iter().filter(|_| named) {
            if !self.names.contains_key(&(address, port)) {
                held.push(((address, port), claim(&name(address, port))?));
            }
        }
        self.names.extend(held);
        self.used.entry(port).or_default().push(addresses.to_vec());
        Ok(())
    }

    /// Takes a port that no other socket has, of this process or another.
    pub(crate) fn take_ephemeral(&mut self, addresses: &[IpAddr]) -> Result<u16, Errno> {
        loop {
            let mut blocks: Vec<u16> = self.blocks.keys().copied().collect();
            blocks.sort_unstable();
            let ports = blocks.len() as u16 * BLOCK;
            for _ in 0..ports {
                self.latest = (self.latest + 1) % ports;
                let block = blocks[usize::from(self.latest / BLOCK)];
                let port = FIRST_EPHEMERAL + block * BLOCK + self.latest % BLOCK;
                if self.take(port, addresses, false, false).is_ok() {
                    return Ok(port);
                }
            }
            let start = std::process::id() as u16 % BLOCKS;
            let free = (0..BLOCKS).map(|step| (start + step) % BLOCKS).find_map(|block| {
                let name = claim(&block_name(block)).ok()?;
                Some((block, name))
            });
            let (block, name) = free.ok_or(Errno::ADDRINUSE)?;
            self.blocks.insert(block, name);
        }
    }

    /// Gives a port back.
    pub(crate) fn free(&mut self, port: u16, addresses: &[IpAddr]) {
        let Some(users) = self.used.get_mut(&port) else { return };
        if let Some(at) = users.iter().position(|user| user == addresses) {
            users.swap_remove(at);
        }
        for &address in addresses {
            if !users.iter().flatten().any(|&other| other == address) {
                self.names.remove(&(address, port));
            }
        }
        if users.is_empty() {
            self.used.remove(&port);
        }
    }

    /// Descriptors that hold names.
    pub(crate) fn descriptors(&self) -> Vec<i32> {
        self.names.values().chain(self.blocks.values()).map(AsRawFd::as_raw_fd).collect()
    }

    /// Returns whether another process may answer for this port.
    pub(crate) fn is_held_elsewhere(&self, address: IpAddr, port: u16) -> bool {
        let block = port.checked_sub(FIRST_EPHEMERAL).map(|place| place / BLOCK);
        let of_others = block
            .is_some_and(|block| !self.blocks.contains_key(&block) && claim(&block_name(block)).is_err());
        of_others || claim(&name(address, port)).is_err()
    }
}

fn block_name(block: u16) -> String {
    format!("tresse/sctp/block/{block}")
}

fn name(address: IpAddr, port: u16) -> String {
    format!("tresse/sctp/{address}/{port}")
}

fn claim(name: &str) -> Result<UnixDatagram, Errno> {
    let bound = SocketAddr::from_abstract_name(name).and_then(|name| UnixDatagram::bind_addr(&name));
    let bound = bound.map(numbers::moved);
    bound.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::ADDRINUSE))
}

/// The first of the ports that are free for any use (RFC 6335 §6).
const FIRST_EPHEMERAL: u16 = 49_152;
/// Ports of a block.
const BLOCK: u16 = 64;
const BLOCKS: u16 = (u16::MAX - FIRST_EPHEMERAL) / BLOCK;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_taken_once_on_an_address_and_free_again_afterwards() {
        let mut ports = Ports::default();
        let [one, other] = [[127, 8, 0, 1], [127, 8, 0, 2]].map(IpAddr::from);
        ports.take(7, &[one], true, false).expect("free");
        assert_eq!(ports.take(7, &[one, other], true, false), Err(Errno::ADDRINUSE));
        assert_eq!(Ports::default().take(7, &[one], true, false), Err(Errno::ADDRINUSE), "another process");
        ports.take(7, &[other], true, false).expect("another address");
        ports.take(7, &[one], true, true).expect("shared");
        ports.free(7, &[one]);
        assert_eq!(ports.take(7, &[one], true, false), Err(Errno::ADDRINUSE), "one still has it");
        ports.free(7, &[one]);
        ports.take(7, &[one], true, false).expect("free again");
    }

    #[test]
    fn ephemeral_ports_are_all_different_beyond_a_block() {
        let mut ports = Ports::default();
        let addresses = [IpAddr::from([127, 8, 0, 3])];
        let taken: std::collections::BTreeSet<u16> =
            (0..3 * BLOCK).map(|_| ports.take_ephemeral(&addresses).expect("free")).collect();
        assert_eq!(taken.len(), usize::from(3 * BLOCK));
        assert!(taken.iter().all(|&port| port >= FIRST_EPHEMERAL));
        let port = *taken.first().expect("many");
        assert!(!ports.is_held_elsewhere(addresses[0], port));
        assert!(Ports::default().is_held_elsewhere(addresses[0], port), "another process");
    }
}
