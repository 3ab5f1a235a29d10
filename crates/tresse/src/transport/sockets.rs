//! All sockets of one endpoint, one for each local address: every packet leaves from the address that the core
//! selected.

use std::net::IpAddr;
use std::task::{Context, Poll};

use tresse_proto::Datagram;

use super::LocalStats;
use super::batch::Batch;
use super::buffers::Buffers;
use super::interface::Egress;
use super::readiness::Polled;
use super::socket::Socket;
use crate::error::BindError;

/// The sockets of one endpoint.
pub(crate) struct Sockets {
    sockets: Vec<Socket>,
    egress: Egress,
    /// The socket that is polled first next time, so that no socket starves the others.
    first: usize,
    /// True if no socket wakes the driver, which polls all of them by a timer.
    polled: bool,
    /// Packets that no socket of the endpoint can carry.
    strays: u64,
    /// Number of sockets that replaced others.
    rebound: u64,
}

impl Sockets {
    /// True if the driver can poll sockets in place of wake-ups.
    pub(crate) const CAN_BE_POLLED: bool = Polled::CAN_DEREGISTER;

    pub(crate) fn new(sockets: Vec<Socket>) -> Self {
        let mut all = Sockets {
            sockets: Vec::new(),
            egress: Egress::new(),
            first: 0,
            polled: false,
            strays: 0,
            rebound: 0,
        };
        sockets.into_iter().for_each(|socket| all.join(socket));
        all
    }

    /// Returns the local addresses.
    pub(crate) fn addresses(&self) -> Vec<IpAddr> {
        self.stats().into_iter().map(|stats| stats.local).collect()
    }

    /// Adds a socket.
    pub(crate) fn join(&mut self, socket: Socket) {
        if let Some(interface) = socket.interface_index() {
            self.egress.join(socket.local(), interface);
        }
        self.sockets.push(socket);
    }

    /// Removes the sockets of an address; the caller closes them.
    pub(crate) fn leave(&mut self, local: IpAddr) -> Vec<Socket> {
        self.egress.leave(local);
        self.sockets.extract_if(.., |socket| socket.local() == local).collect()
    }

    /// Replaces the bound sockets of addresses that have moved to another interface. Returns whether there is a new
    /// socket: it wakes the driver only after it has been polled.
    fn rebind(&mut self) -> bool {
        let before = self.rebound;
        for interface in self.egress.take_moved() {
            let of = |bound| {
                move |one: &Socket| {
                    one.local() == interface.address && one.interface_index().is_some() == bound
                }
            };
            // If the system refuses, the former socket stays until the next attempt.
            let (Some(free), Some(former)) =
                (self.sockets.iter().position(of(false)), self.sockets.iter().position(of(true)))
            else {
                continue;
            };
            if let Some(mut new) = self.sockets[free].beside(&interface) {
                new.succeed(&self.sockets[former]);
                self.sockets[former] = new;
                self.egress.join(interface.address, interface.index);
                self.rebound += 1;
            }
        }
        self.rebound > before
    }

    /// Stops wake-ups by arriving packets until `register`; after `poll_again`, `poll_receive` finds them.
    pub(crate) fn deregister(&mut self) {
        self.polled = true;
        self.sockets.iter_mut().for_each(Socket::deregister);
    }

    /// Makes `poll_receive` query the system again, for each socket that is not registered.
    pub(crate) fn poll_again(&mut self) {
        self.sockets.iter_mut().for_each(Socket::poll_again);
    }

    /// Registers all sockets again; the caller has to call `poll_receive` afterwards. Returns false if the system
    /// refuses that now.
    pub(crate) fn register(&mut self) -> bool {
        let ended = self.polled && self.sockets.iter_mut().all(Socket::register);
        self.polled &= !ended;
        ended
    }

    /// Returns whether arriving packets do not wake the driver.
    pub(crate) fn is_polled(&self) -> bool {
        self.polled
    }

    /// Receives at most one batch from each socket, by way of `buffers`; pending if all were empty.
    pub(crate) fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        buffers: &mut Buffers,
        inbox: &mut Vec<Datagram>,
    ) -> Poll<()> {
        let count = self.sockets.len();
        let mut outcome = Poll::Pending;
        for step in 0..count {
            let socket = &mut self.sockets[(self.first + step) % count];
            if socket.poll_receive(cx, buffers, inbox).is_ready() {
                outcome = Poll::Ready(());
            }
        }
        self.first = (self.first + 1) % count.max(1);
        outcome
    }

    /// Sends the packets of `batch`; packets that a socket does not accept at once wait for `poll_flush`. Returns
    /// whether there is a new socket: it wakes the driver only after `poll_receive`.
    pub(crate) fn send(&mut self, batch: &Batch) -> bool {
        let mut new = false;
        for (to, run) in batch.iter() {
            let mut by_interface = self.egress.by_interface(to.local, to.remote);
            if self.rebind() {
                new = true;
                by_interface = self.egress.by_interface(to.local, to.remote);
            }
            let fits = |socket: &&mut Socket| {
                socket.local() == to.local && socket.interface_index().is_some() == by_interface
            };
            let socket = self.sockets.iter_mut().find(fits);
            let taken = socket.is_some_and(|socket| socket.send(to, run));
            self.strays += u64::from(!taken);
        }
        new
    }

    /// Sends waiting packets; pending while a socket accepts none.
    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut outcome = Poll::Ready(());
        for socket in self.sockets.iter_mut().filter(|socket| socket.is_blocked()) {
            if socket.poll_flush(cx).is_pending() {
                outcome = Poll::Pending;
            }
        }
        outcome
    }

    /// Returns the counters of the system for the packets of every local address.
    pub(crate) fn stats(&self) -> Vec<LocalStats> {
        stats_of_addresses(self.sockets.iter().map(Socket::stats).cloned())
    }

    /// Returns a number that changes whenever `stats` does.
    pub(crate) fn faults(&self) -> u64 {
        let all = self.sockets.iter().map(Socket::stats);
        self.strays
            + self.rebound
            + all.map(|stats| stats.send_errors + stats.overflows + stats.receive_errors).sum::<u64>()
    }
}

/// Returns the counters of every address, summed over its sockets.
pub(crate) fn stats_of_addresses(sockets: impl IntoIterator<Item = LocalStats>) -> Vec<LocalStats> {
    let mut all: Vec<LocalStats> = Vec::new();
    for stats in sockets {
        match all.iter_mut().find(|known| known.local == stats.local) {
            Some(known) => known.merge(&stats),
            None => all.push(stats),
        }
    }
    all
}

/// Checks that these are addresses of this host, each listed once.
pub(super) fn check(local: &[IpAddr]) -> Result<(), BindError> {
    if local.is_empty() {
        return Err(BindError::NoAddress);
    }
    for (position, address) in local.iter().enumerate() {
        if address.is_unspecified() || address.is_multicast() {
            return Err(BindError::NotOneAddress { address: *address });
        }
        if local[..position].contains(address) {
            return Err(BindError::Twice { address: *address });
        }
    }
    Ok(())
}
