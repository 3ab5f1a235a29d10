//! SCTP ports: the ports in use, and free ports for sockets that name none.
//!
//! Other processes of this host see them by names in the abstract namespace of local sockets, as in the crate `tresse`: such a name
//! belongs to one network namespace, as addresses do, and disappears with its process.

use std::collections::HashMap;
use std::net::IpAddr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use rustix::io::Errno;

use crate::numbers::Private;

/// The ports of this process.
#[derive(Default)]
pub(crate) struct Ports {
    /// Sockets that hold each port.
    used: HashMap<u16, Vec<Holder>>,
    names: HashMap<(IpAddr, u16), Private<UnixDatagram>>,
    /// Blocks of ephemeral ports that only this process uses, and their names.
    blocks: HashMap<u16, Private<UnixDatagram>>,
    /// Index of the port that was taken last, among the ports of these blocks.
    latest: u16,
    /// Number of holders that there have been.
    holders: u64,
}

/// A socket that holds a port, and the addresses on which it holds the port.
struct Holder {
    claim: Claim,
    addresses: Vec<IpAddr>,
    /// True if other processes see the port by names.
    named: bool,
    /// True if other holders may have the port on the same addresses (SCTP_REUSE_PORT).
    shared: bool,
}

/// Identifier of a socket that holds a port, whatever its addresses.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Claim(u64);

impl Ports {
    /// Takes `port` on these addresses; with `shared` other sockets that share it may hold it already. With `named` other processes
    /// see it.
    pub(crate) fn take(
        &mut self,
        port: u16,
        addresses: &[IpAddr],
        named: bool,
        shared: bool,
    ) -> Result<Claim, Errno> {
        self.check(port, addresses, None, shared)?;
        self.claim_names(port, addresses, named)?;
        self.holders += 1;
        let claim = Claim(self.holders);
        self.used.entry(port).or_default().push(Holder {
            claim,
            addresses: addresses.to_vec(),
            named,
            shared,
        });
        Ok(claim)
    }

    /// Takes further addresses for a holder: all of them or none.
    pub(crate) fn add(
        &mut self,
        port: u16,
        claim: Claim,
        addresses: &[IpAddr],
        shared: bool,
    ) -> Result<(), Errno> {
        self.check(port, addresses, Some(claim), shared)?;
        let named = self.holder(port, claim).is_some_and(|holder| holder.named);
        self.claim_names(port, addresses, named)?;
        if let Some(holder) = self.holder(port, claim) {
            holder.addresses.extend(addresses);
        }
        Ok(())
    }

    /// Releases addresses of a holder.
    pub(crate) fn give_back(&mut self, port: u16, claim: Claim, addresses: &[IpAddr]) {
        if let Some(holder) = self.holder(port, claim) {
            holder.addresses.retain(|address| !addresses.contains(address));
        }
        self.drop_names(port, addresses);
    }

    fn holder(&mut self, port: u16, claim: Claim) -> Option<&mut Holder> {
        self.used.get_mut(&port)?.iter_mut().find(|holder| holder.claim == claim)
    }

    /// Checks that no other holder has the port on any of these addresses; with `shared` holders that share it may.
    fn check(&self, port: u16, addresses: &[IpAddr], own: Option<Claim>, shared: bool) -> Result<(), Errno> {
        let holders = self.used.get(&port).map(Vec::as_slice).unwrap_or_default();
        let mut others = holders.iter().filter(|holder| Some(holder.claim) != own);
        let has = |holder: &Holder| holder.addresses.iter().any(|other| addresses.contains(other));
        if others.any(|holder| has(holder) && !(shared && holder.shared)) {
            Err(Errno::ADDRINUSE)
        } else {
            Ok(())
        }
    }

    /// Claims the names of a port on these addresses: all of them or none.
    fn claim_names(&mut self, port: u16, addresses: &[IpAddr], named: bool) -> Result<(), Errno> {
        let mut held = Vec::new();
        for &address in addresses.iter().filter(|_| named) {
            if !self.names.contains_key(&(address, port)) {
                held.push(((address, port), claim(&name(address, port))?));
            }
        }
        self.names.extend(held);
        Ok(())
    }

    fn drop_names(&mut self, port: u16, addresses: &[IpAddr]) {
        let holders = self.used.get(&port).map(Vec::as_slice).unwrap_or_default();
        for &address in addresses {
            if !holders.iter().flat_map(|holder| &holder.addresses).any(|&other| other == address) {
                self.names.remove(&(address, port));
            }
        }
    }

    /// Takes a port that no other socket holds, in this process or another one; with `shared` others that share it may hold it from
    /// now on.
    pub(crate) fn take_ephemeral(
        &mut self,
        addresses: &[IpAddr],
        shared: bool,
    ) -> Result<(u16, Claim), Errno> {
        loop {
            let mut blocks: Vec<u16> = self.blocks.keys().copied().collect();
            blocks.sort_unstable();
            let ports = blocks.len() as u16 * BLOCK;
            for _ in 0..ports {
                self.latest = (self.latest + 1) % ports;
                let block = blocks[usize::from(self.latest / BLOCK)];
                let port = FIRST_EPHEMERAL + block * BLOCK + self.latest % BLOCK;
                if let Ok(claim) = self.take(port, addresses, false, false) {
                    self.holder(port, claim).into_iter().for_each(|holder| holder.shared = shared);
                    return Ok((port, claim));
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

    /// Releases a port on all addresses of its holder.
    pub(crate) fn free(&mut self, port: u16, claim: Claim) {
        let Some(holders) = self.used.get_mut(&port) else { return };
        let Some(at) = holders.iter().position(|holder| holder.claim == claim) else { return };
        let gone = holders.swap_remove(at);
        self.drop_names(port, &gone.addresses);
        if self.used.get(&port).is_some_and(Vec::is_empty) {
            self.used.remove(&port);
        }
    }

    /// Returns whether another process may hold this port.
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

fn claim(name: &str) -> Result<Private<UnixDatagram>, Errno> {
    let bound = SocketAddr::from_abstract_name(name).and_then(|name| UnixDatagram::bind_addr(&name));
    let bound = bound.map(Private::moved);
    bound.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::ADDRINUSE))
}

/// The first of the dynamic ports (RFC 6335 §6).
const FIRST_EPHEMERAL: u16 = 49_152;
/// Number of ports of a block.
const BLOCK: u16 = 64;
const BLOCKS: u16 = (u16::MAX - FIRST_EPHEMERAL) / BLOCK;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_taken_once_on_an_address_and_free_again_afterwards() {
        let mut ports = Ports::default();
        let [one, other] = [[127, 8, 0, 1], [127, 8, 0, 2]].map(IpAddr::from);
        let first = ports.take(7, &[one], true, false).expect("free");
        assert_eq!(ports.take(7, &[one, other], true, false), Err(Errno::ADDRINUSE));
        assert_eq!(Ports::default().take(7, &[one], true, false), Err(Errno::ADDRINUSE), "another process");
        ports.take(7, &[other], true, false).expect("another address");
        assert_eq!(
            ports.take(7, &[one], true, true),
            Err(Errno::ADDRINUSE),
            "the other one does not share it"
        );
        ports.free(7, first);
        ports.take(7, &[one], true, false).expect("free again");
    }

    #[test]
    fn a_port_is_shared_by_sockets_that_all_share_it() {
        let mut ports = Ports::default();
        let one = IpAddr::from([127, 8, 0, 3]);
        let first = ports.take(7, &[one], true, true).expect("free");
        let second = ports.take(7, &[one], true, true).expect("shared");
        assert_eq!(ports.take(7, &[one], true, false), Err(Errno::ADDRINUSE));
        ports.free(7, first);
        assert_eq!(ports.take(7, &[one], true, false), Err(Errno::ADDRINUSE), "one still has it");
        ports.free(7, second);
        let (port, _) = ports.take_ephemeral(&[one], true).expect("a free port");
        ports.take(port, &[one], true, true).expect("shared");
    }

    #[test]
    fn addresses_join_and_leave_a_port_and_are_all_given_back_with_it() {
        let mut ports = Ports::default();
        let [one, two, three] = [[127, 8, 0, 4], [127, 8, 0, 5], [127, 8, 0, 6]].map(IpAddr::from);
        let claim = ports.take(7, &[one], true, false).expect("free");
        let other = ports.take(7, &[three], true, false).expect("another address");
        assert_eq!(ports.add(7, claim, &[two, three], false), Err(Errno::ADDRINUSE));
        ports.free(7, other);
        let elsewhere = Ports::default().take(7, &[two, three], true, false);
        elsewhere.expect("what was refused has claimed nothing");
        ports.add(7, claim, &[two, three], false).expect("free");
        assert_eq!(ports.take(7, &[two], true, false), Err(Errno::ADDRINUSE));
        assert_eq!(Ports::default().take(7, &[two], true, false), Err(Errno::ADDRINUSE), "another process");
        ports.give_back(7, claim, &[one, two]);
        ports.take(7, &[one, two], true, false).expect("given back");
        ports.free(7, claim);
        ports.take(7, &[three], true, false).expect("free again");
    }

    #[test]
    fn ephemeral_ports_are_all_different_beyond_a_block() {
        let mut ports = Ports::default();
        let addresses = [IpAddr::from([127, 8, 0, 3])];
        let taken: std::collections::BTreeSet<u16> =
            (0..3 * BLOCK).map(|_| ports.take_ephemeral(&addresses, false).expect("free").0).collect();
        assert_eq!(taken.len(), usize::from(3 * BLOCK));
        assert!(taken.iter().all(|&port| port >= FIRST_EPHEMERAL));
        let port = *taken.first().expect("many");
        assert!(!ports.is_held_elsewhere(addresses[0], port));
        assert!(Ports::default().is_held_elsewhere(addresses[0], port), "another process");
    }
}
