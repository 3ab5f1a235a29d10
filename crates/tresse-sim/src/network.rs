//! Network between nodes: links, routes, packets on their way, and their observers.
//!
//! Independent of the meaning of a payload and of the processing in hosts: hosts outside the simulator may use the same
//! network.

use std::collections::VecDeque;

use tresse_proto::{Ecn, Instant};

use crate::link::{Cause, Link, PacketFate};
use crate::packet::Packet;
use crate::pcap::Capture;
use crate::queue::EventQueue;
use crate::route::{LinkId, NodeId, Routes};
use crate::seed::Seed;
use crate::topology::Topology;
use crate::trace::Trace;
use crate::trace_hash::TraceHash;
use crate::watch::Watch;

/// Event of a simulation. It is small: the packet itself is in a slot.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum SimEvent {
    /// A packet arrives at the end of a link.
    Arrival { link: LinkId, slot: u32 },
    /// A link decides on the packets that wait in its queue.
    Departure { link: LinkId },
    /// A host's deadline has come.
    Wake { host: u16 },
    /// A TCP host's deadline has come.
    TcpWake { host: u16 },
    /// The recorder takes a sample.
    Sample,
}

/// The network between the hosts.
pub(crate) struct Network<'w> {
    pub(crate) events: EventQueue<SimEvent>,
    links: Vec<Link>,
    /// Node at the end of each link.
    ends: Vec<NodeId>,
    routes: Routes,
    under_way: Slots,
    /// Slots of the packets of each link that wait for its decision, oldest first.
    waiting: Vec<VecDeque<u32>>,
    hash: TraceHash,
    capture: Option<Capture<'w>>,
    pub(crate) watch: Watch<'w>,
    packets: u64,
    unroutable: u64,
}

impl<'w> Network<'w> {
    pub(crate) fn new(topology: &Topology, seed: Seed, capture: Option<Capture<'w>>) -> Self {
        let link = |edge: &crate::topology::Edge| Link::new(edge.spec.clone(), seed, &edge.name);
        Network {
            events: EventQueue::new(topology.edges.len() as u16),
            links: topology.edges.iter().map(link).collect(),
            ends: topology.edges.iter().map(|edge| edge.to).collect(),
            routes: topology.routes.clone(),
            under_way: Slots::default(),
            waiting: vec![VecDeque::new(); topology.edges.len()],
            hash: TraceHash::default(),
            capture,
            watch: Watch::default(),
            packets: 0,
            unroutable: 0,
        }
    }

    /// Sends a packet from `node`.
    pub(crate) fn send(&mut self, now: Instant, node: NodeId, packet: Packet) {
        let Some(link) = self.routes.next(node, packet.destination) else {
            self.unroutable += 1;
            return;
        };
        self.packets += 1;
        let verdict = self.links[link.index()].offer(now, packet.for_link());
        self.hash.add(now, link, &packet.payload, verdict);
        if let Some(capture) = &mut self.capture {
            capture.record(now, link, &packet, verdict);
        }
        if self.watch.is_on() {
            self.watch.on_sent(now, link, &packet, verdict);
        }
        self.follow(link, packet, verdict);
    }

    /// The transmitter of a link is free: waiting packets leave the queue, dropped or transmitted.
    pub(crate) fn depart(&mut self, now: Instant, link: LinkId) {
        let departure = self.links[link.index()].depart(now);
        for _ in 0..departure.dropped {
            if let Some(packet) = self.stop_waiting(link) {
                self.hash.add(now, link, &packet.payload, PacketFate::Dropped(Cause::Early));
            }
        }
        if let Some(verdict) = departure.next
            && let Some(packet) = self.stop_waiting(link)
        {
            self.hash.add(now, link, &packet.payload, verdict);
            self.follow(link, packet, verdict);
        }
        self.ask_for_departure(link);
    }

    /// Ends the way of the packet in `slot` at the end of `link` and returns the packet. The caller takes it from the slot.
    pub(crate) fn arrive(&mut self, now: Instant, link: LinkId, slot: u32) -> &mut Packet {
        // Returned by reference, because moving a packet costs a measurable part of a simulation.
        let packet = self.under_way.free(slot);
        self.links[link.index()].arrived(packet.ip_len());
        if self.watch.is_on() {
            self.watch.on_arrived(now, link, packet);
        }
        packet
    }

    /// Returns the node at the end of `link`.
    pub(crate) fn end(&self, link: LinkId) -> NodeId {
        self.ends[link.index()]
    }

    /// Returns a link.
    pub(crate) fn link(&mut self, link: LinkId) -> &mut Link {
        &mut self.links[link.index()]
    }

    /// Returns the number of packets on their way on all links.
    pub(crate) fn packets_under_way(&self) -> usize {
        self.under_way.used
    }

    /// Returns the number of packets that links have accepted and neither dropped nor delivered, by their own counters.
    pub(crate) fn packets_accepted_by_links(&mut self, now: Instant) -> u64 {
        self.links.iter_mut().map(|link| link.counters(now).inside()).sum()
    }

    /// Returns the number of packets passed to links so far.
    pub(crate) fn packets(&self) -> u64 {
        self.packets
    }

    /// Returns the number of packets for addresses without a route.
    pub(crate) fn unroutable(&self) -> u64 {
        self.unroutable
    }

    /// Returns the hash of all packets so far.
    pub(crate) fn trace_hash(&self) -> u64 {
        self.hash.value()
    }

    /// Returns the reason for which the capture stopped, if it did.
    pub(crate) fn take_capture_failure(&mut self) -> Option<std::io::Error> {
        self.capture.as_mut().and_then(Capture::take_failure)
    }

    /// Returns the reason for which the trace stopped, if it did.
    pub(crate) fn take_trace_failure(&mut self) -> Option<std::io::Error> {
        self.watch.trace.as_mut().and_then(Trace::take_failure)
    }

    /// Carries out the decision of a link on a packet.
    fn follow(&mut self, link: LinkId, mut packet: Packet, verdict: PacketFate) {
        match verdict {
            PacketFate::Arrives(at) => self.carry(link, at, packet),
            PacketFate::Altered { at, damaged, twice, marked } => {
                if marked {
                    packet.ecn = Ecn::Ce;
                }
                if damaged {
                    packet.flip(self.links[link.index()].flips());
                }
                if twice {
                    self.carry(link, at, packet.clone());
                }
                self.carry(link, at, packet);
            }
            PacketFate::Dropped(_) => {}
            PacketFate::Waits => {
                let slot = self.under_way.put(packet);
                self.waiting[link.index()].push_back(slot);
                if self.waiting[link.index()].len() == 1 {
                    self.ask_for_departure(link);
                }
            }
        }
    }

    fn carry(&mut self, link: LinkId, at: Instant, packet: Packet) {
        let slot = self.under_way.put(packet);
        self.events.push_in_lane(link.0, at, SimEvent::Arrival { link, slot });
    }

    fn stop_waiting(&mut self, link: LinkId) -> Option<Packet> {
        let slot = self.waiting[link.index()].pop_front()?;
        Some(self.under_way.free(slot).take())
    }

    /// Schedules a departure of a link if packets wait for its decision: a link has one such event at most.
    fn ask_for_departure(&mut self, link: LinkId) {
        if let Some(at) = self.links[link.index()].next_departure() {
            self.events.push(at, SimEvent::Departure { link });
        }
    }
}

/// Packets by slot number; slots are reused.
#[derive(Debug, Default)]
struct Slots {
    packets: Vec<Packet>,
    free: Vec<u32>,
    used: usize,
}

impl Slots {
    fn put(&mut self, packet: Packet) -> u32 {
        self.used += 1;
        match self.free.pop() {
            Some(slot) => {
                self.packets[slot as usize] = packet;
                slot
            }
            None => {
                self.packets.push(packet);
                (self.packets.len() - 1) as u32
            }
        }
    }

    /// Frees `slot`; its packet remains there until the slot is used again.
    fn free(&mut self, slot: u32) -> &mut Packet {
        self.free.push(slot);
        self.used -= 1;
        &mut self.packets[slot as usize]
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::time::Duration;

    use bytes::Bytes;

    use super::*;
    use crate::ip::IPV4_HEADER_LEN;
    use crate::link::LinkSpec;
    use crate::packet::Protocol;

    fn spec(delay_ms: u64) -> LinkSpec {
        LinkSpec::new(10_000_000, Duration::from_millis(delay_ms))
    }

    #[test]
    fn packets_hop_over_routers() {
        let (near, far): (IpAddr, IpAddr) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        let mut topology = Topology::default();
        let (host, router, peer) =
            (topology.add_node(vec![near]), topology.add_node(vec![]), topology.add_node(vec![far]));
        let first = topology.add_link("first", host, router, spec(5));
        let second = topology.add_link("second", router, peer, spec(7));
        topology.routes.add(host, far, first);
        topology.routes.add(router, far, second);

        let mut network = Network::new(&topology, Seed(1), None);
        let packet = Packet {
            source: near,
            destination: far,
            ecn: Ecn::NotEct,
            may_fragment: false,
            protocol: Protocol::Sctp,
            payload: Bytes::from_static(&[0; 1250 - IPV4_HEADER_LEN]),
            damaged: false,
        };
        network.send(Instant::ZERO, host, packet);
        let mut at = Vec::new();
        while let Some((now, SimEvent::Arrival { link, slot })) =
            network.events.pop_until(Instant::FAR_FUTURE)
        {
            let packet = network.arrive(now, link, slot).take();
            let node = network.end(link);
            at.push((now.as_nanos(), node));
            if node != peer {
                network.send(now, node, packet);
            }
        }
        // 1,250 bytes take 1 ms on each link.
        assert_eq!(at, [(6_000_000, router), (14_000_000, peer)]);
        assert_eq!(network.packets_under_way(), 0);
    }

    #[test]
    fn packets_without_a_route_are_counted() {
        let mut network = Network::new(&Topology::default(), Seed(1), None);
        let address: IpAddr = [10, 0, 0, 1].into();
        let packet = Packet {
            source: address,
            destination: address,
            ecn: Ecn::NotEct,
            may_fragment: false,
            protocol: Protocol::Sctp,
            payload: Bytes::new(),
            damaged: false,
        };
        network.send(Instant::ZERO, NodeId(0), packet);
        assert_eq!((network.unroutable(), network.packets()), (1, 0));
    }
}
