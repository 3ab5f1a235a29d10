//! Emulation of a scenario's network between endpoints outside the simulator.
//!
//! The links, queues and cross traffic are those of a simulation, in the same code. The driver has the clock: it passes
//! packets in as they arrive, polls for packets that have crossed the network, and sleeps until the deadline.
//! Independent of sockets: the driver has them.

use std::collections::VecDeque;
use std::io::Write;
use std::net::IpAddr;

use bytes::Bytes;
use tresse_proto::{Ecn, Instant};

use crate::cross;
use crate::error::RunError;
use crate::link::LinkCounters;
use crate::network::{Network, SimEvent};
use crate::packet::{Packet, Protocol};
use crate::pcap::Capture;
use crate::route::NodeId;
use crate::scenario::Scenario;
use crate::seed::Seed;
use crate::tcp::TcpHost;
use crate::topology::{Layout, Topology};

/// One of the two hosts at the ends of the paths.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum End {
    /// The scenario's sender.
    Sender,
    /// The scenario's receiver.
    Receiver,
}

/// A packet that has arrived at one end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Delivery {
    /// The path that the packet took.
    pub path: usize,
    /// End at which the packet arrived.
    pub to: End,
    /// Time at which the packet arrived.
    pub at: Instant,
    /// The SCTP packet.
    pub payload: Bytes,
}

/// The network of a scenario, driven from outside.
///
/// ```
/// use tresse_proto::Instant;
/// use tresse_sim::{Emulation, End, Scenario};
///
/// let scenario = Scenario::from_toml("[[path]]\nrate = \"1Mbit/s\"\ndelay = \"10ms\"", "example")?;
/// let mut emulation = Emulation::new(&scenario, None)?;
/// // 105 bytes behind an IPv4 header of 20 bytes take 1 ms on the transmitter.
/// emulation.offer(Instant::ZERO, 0, End::Sender, vec![0; 105].into());
/// assert_eq!(emulation.next_deadline(), Some(Instant::from_nanos(11_000_000)));
/// assert!(emulation.poll(Instant::from_nanos(10_999_999)).is_none());
/// assert!(emulation.poll(Instant::from_nanos(11_000_000)).is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Emulation<'w> {
    layout: Layout,
    network: Network<'w>,
    tcp_hosts: Vec<TcpHost>,
    arrived: VecDeque<Delivery>,
}

impl std::fmt::Debug for Emulation<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Emulation").finish_non_exhaustive()
    }
}

impl<'w> Emulation<'w> {
    /// Builds the network of `scenario` at time zero, with its cross traffic; the scenario's own traffic and settings
    /// are not used. With `capture`, every packet is written to it as pcapng.
    ///
    /// # Errors
    /// A capture that cannot be written.
    pub fn new(scenario: &Scenario, capture: Option<&'w mut dyn Write>) -> Result<Self, RunError> {
        let resolved = scenario.resolved();
        let layout = Topology::of(resolved);
        let seed = Seed(resolved.seed);
        let capture = capture.map(|output| Capture::new(output, &layout.topology)).transpose();
        let mut network = Network::new(&layout.topology, seed, capture.map_err(RunError::Capture)?);
        let mut tcp_hosts = cross::hosts(resolved, &layout, seed);
        cross::arm(&mut tcp_hosts, &mut network);
        Ok(Emulation { layout, network, tcp_hosts, arrived: VecDeque::new() })
    }

    /// Takes a packet that one end sends on `path`. A packet on a path that does not exist is dropped. Times never decrease.
    pub fn offer(&mut self, now: Instant, path: usize, from: End, payload: Bytes) {
        self.advance(now);
        let (near, far) = match from {
            End::Sender => (self.layout.sender, self.layout.receiver),
            End::Receiver => (self.layout.receiver, self.layout.sender),
        };
        let (Some(source), Some(destination)) = (self.address(near, path), self.address(far, path)) else {
            return;
        };
        let packet = Packet {
            source,
            destination,
            ecn: Ecn::NotEct,
            may_fragment: false,
            protocol: Protocol::SealedSctp,
            payload,
            damaged: false,
        };
        self.network.send(now, near, packet);
    }

    /// Returns the next packet that has arrived until now, oldest first.
    pub fn poll(&mut self, now: Instant) -> Option<Delivery> {
        self.advance(now);
        self.arrived.pop_front()
    }

    /// Returns the time of the next poll, if no packet is offered before.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.network.events.next_time()
    }

    /// Returns the counters of each path: those of the link to the receiver, and of the link back.
    pub fn counters(&mut self, now: Instant) -> Vec<(LinkCounters, LinkCounters)> {
        self.advance(now);
        let network = &mut self.network;
        let mut counters = |link| network.link(link).counters(now);
        let paths = self.layout.paths.iter();
        paths.map(|links| (counters(links.forward), counters(links.backward))).collect()
    }

    /// Returns the reason for which the capture stopped, if it did; once.
    pub fn take_capture_failure(&mut self) -> Option<std::io::Error> {
        self.network.take_capture_failure()
    }

    /// Processes all events that are due.
    fn advance(&mut self, now: Instant) {
        while let Some((at, event)) = self.network.events.pop_until(now) {
            match event {
                SimEvent::Arrival { link, slot } => {
                    let node = self.network.end(link);
                    let packet = self.network.arrive(at, link, slot).take();
                    self.take(at, node, packet);
                }
                SimEvent::Departure { link } => self.network.depart(at, link),
                SimEvent::TcpWake { host } => {
                    self.tcp_hosts[usize::from(host)].on_wake(at, &mut self.network);
                }
                // Events of hosts of a simulation, which are not here.
                SimEvent::Wake { .. } | SimEvent::Sample => {}
            }
        }
    }

    /// Takes a packet at a node: at an end, at a host of cross traffic, or at a router.
    fn take(&mut self, at: Instant, node: NodeId, packet: Packet) {
        if let Some(host) = self.tcp_hosts.iter_mut().find(|host| host.node() == node) {
            host.on_packet(at, &packet, &mut self.network);
            return;
        }
        let to = match node {
            node if node == self.layout.sender => End::Sender,
            node if node == self.layout.receiver => End::Receiver,
            router => return self.network.send(at, router, packet),
        };
        let addresses = &self.layout.topology.addresses[node.index()];
        if let Some(path) = addresses.iter().position(|address| *address == packet.destination) {
            self.arrived.push_back(Delivery { path, to, at, payload: packet.payload });
        }
    }

    fn address(&self, node: NodeId, path: usize) -> Option<IpAddr> {
        self.layout.topology.addresses[node.index()].get(path).copied()
    }
}
