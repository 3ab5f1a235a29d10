//! The network: a link for each path and direction, and the packets that were sent last.
//!
//! Knows addresses and lengths, but not the contents of packets.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use bytes::Bytes;
use tresse_proto::{Ecn, Instant};
use tresse_sim::link::{
    self, Discipline, ImpairmentSpec, Link, LinkPacket, LinkSpec, Loss, PacketFate, QueueLimit, RedSpec,
    Reordering,
};
use tresse_sim::seed::Seed;

use crate::script::{Change, Deed, Host, PathPlan, Script};

/// An SCTP packet between two addresses.
#[derive(Clone, Debug)]
pub(super) struct Packet {
    pub(super) to: Host,
    pub(super) source: IpAddr,
    pub(super) destination: IpAddr,
    /// The sender's UDP port, if the packet is encapsulated in UDP.
    pub(super) port: Option<u16>,
    pub(super) ecn: Ecn,
    /// True if routers may fragment the packet.
    pub(super) may_fragment: bool,
    pub(super) payload: Bytes,
}

/// The links between the hosts.
pub(super) struct Wire {
    /// Links by path, then by sending host.
    links: Vec<[Link; 2]>,
    /// Time from which packets arrive unchanged.
    healed: Instant,
    /// Packets by receiving host, as they were sent, the latest last.
    seen: [VecDeque<Packet>; 2],
    /// Packets that a link dropped, damaged, duplicated or marked.
    pub(super) impairments: u64,
    pub(super) packets: u64,
}

/// Passage of a packet: its arrival time, whether it arrives twice, and the packet as it arrives.
pub(super) struct Passage {
    pub(super) at: Option<Instant>,
    pub(super) twice: bool,
    pub(super) packet: Packet,
    /// Fate of the packet, for the log.
    pub(super) fate: &'static str,
}

impl Wire {
    /// Returns the links of a script; from `healed` on they neither lose nor damage packets.
    pub(super) fn new(script: &Script, healed: Duration) -> Self {
        let link = |position: usize, from: Host| {
            let mut spec = spec_of(&script.paths[position]);
            spec.changes = changes_of(script, position, from, healed);
            Link::new(spec, Seed(script.seed), &format!("path {position} from {}", from.name()))
        };
        Wire {
            links: (0..script.paths.len())
                .map(|position| Host::BOTH.map(|from| link(position, from)))
                .collect(),
            healed: Instant::ZERO + healed,
            seen: Default::default(),
            impairments: 0,
            packets: 0,
        }
    }

    /// Sends a packet and returns its passage.
    pub(super) fn send(&mut self, now: Instant, packet: Packet) -> Passage {
        self.packets += 1;
        self.remember(&packet);
        let Some(path) = path_of(packet.destination) else {
            return Passage { at: None, twice: false, packet, fate: "no such address" };
        };
        let Some(links) = self.links.get_mut(path) else {
            return Passage { at: None, twice: false, packet, fate: "no such path" };
        };
        let link = &mut links[packet.to.peer().index()];
        let header = if packet.destination.is_ipv4() { 20 } else { 40 };
        let bytes = (packet.payload.len() + header) as u32;
        let markable = packet.ecn != Ecn::NotEct;
        let verdict = link.offer(now, LinkPacket { bytes, may_fragment: packet.may_fragment, markable });
        let passage = match verdict {
            PacketFate::Arrives(at) => Passage { at: Some(at), twice: false, packet, fate: "" },
            PacketFate::Altered { at, damaged, twice, marked } => {
                let damaged = damaged && now < self.healed;
                let mut packet = if damaged { flip(packet, link.flips()) } else { packet };
                if marked {
                    packet.ecn = Ecn::Ce;
                }
                let fate = match (damaged, marked) {
                    (true, _) => " (damaged)",
                    (false, true) => " (marked)",
                    (false, false) => "",
                };
                Passage { at: Some(at), twice, packet, fate }
            }
            PacketFate::Dropped(cause) => Passage { at: None, twice: false, packet, fate: cause.name() },
            PacketFate::Waits => Passage { at: None, twice: false, packet, fate: "waits" },
        };
        self.impairments += u64::from(!matches!(verdict, PacketFate::Arrives(_)));
        passage
    }

    /// Returns the packet to `to` after which `back` more were sent to it; `None` if it is no longer kept.
    pub(super) fn seen(&self, to: Host, back: usize) -> Option<Packet> {
        self.seen[to.index()].iter().rev().nth(back).cloned()
    }

    fn remember(&mut self, packet: &Packet) {
        let seen = &mut self.seen[packet.to.index()];
        if seen.len() == REMEMBERED {
            seen.pop_front();
        }
        seen.push_back(packet.clone());
    }
}

/// Number of packets of each direction that are kept for replays.
const REMEMBERED: usize = 64;

/// Returns the address of `host` on a path.
pub(super) fn address(host: Host, path: usize, plan: &PathPlan) -> IpAddr {
    let (path, host) = (path as u8, host.index() as u8 + 1);
    if plan.ipv6 {
        Ipv6Addr::new(0xfd00, u16::from(path), 0, 0, 0, 0, 0, u16::from(host)).into()
    } else {
        Ipv4Addr::new(10, 0, path, host).into()
    }
}

/// Returns the path of an address.
pub(super) fn path_of(address: IpAddr) -> Option<usize> {
    match address {
        IpAddr::V4(address) => Some(usize::from(address.octets()[2])),
        IpAddr::V6(address) => Some(usize::from(address.segments()[1])),
    }
}

fn spec_of(plan: &PathPlan) -> LinkSpec {
    LinkSpec {
        queue: QueueLimit::Packets(plan.queue),
        mtu: plan.mtu,
        discipline: if plan.marks > 0.0 { marking(plan) } else { Discipline::DropTail },
        loss: loss(plan.loss),
        impairments: ImpairmentSpec {
            bit_error_rate: plan.damage,
            bit_errors_spare: 0,
            duplication: plan.twice,
            reordering: plan.late.map(|(probability, extra_delay)| Reordering { probability, extra_delay }),
            ..ImpairmentSpec::default()
        },
        ..LinkSpec::new(plan.rate, plan.delay)
    }
}

/// Returns a queue discipline that marks packets in proportion to the present queue length.
fn marking(plan: &PathPlan) -> Discipline {
    Discipline::Red(RedSpec {
        weight: 1.0,
        min_threshold: 0,
        max_threshold: plan.queue.max(1),
        max_probability: plan.marks,
        ecn: true,
        ..RedSpec::default()
    })
}

fn changes_of(script: &Script, position: usize, host: Host, healed: Duration) -> Vec<link::Change> {
    let planned = script.acts.iter().filter_map(|act| match &act.deed {
        Deed::Path { path, from, change } if usize::from(*path) == position => {
            let Change { out, loss: probability, delay, rate, mtu } = *change;
            let loss = probability.map(loss);
            let concerned = from.is_none_or(|from| from == host);
            concerned.then_some(link::Change { at: act.at, rate, delay, loss, outage: out, mtu })
        }
        _ => None,
    });
    let healing =
        link::Change { at: healed, loss: Some(Loss::None), outage: Some(false), ..link::Change::default() };
    planned.filter(|change| change.at <= healed).chain([healing]).collect()
}

fn loss(probability: f64) -> Loss {
    if probability > 0.0 { Loss::Uniform(probability) } else { Loss::None }
}

fn flip(packet: Packet, bits: &[u32]) -> Packet {
    let mut bytes = packet.payload.to_vec();
    for bit in bits {
        if let Some(byte) = bytes.get_mut(*bit as usize / 8) {
            *byte ^= 0x80 >> (bit % 8);
        }
    }
    Packet { payload: bytes.into(), ..packet }
}
