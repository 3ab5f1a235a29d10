//! Cross traffic of a run: its hosts, their work, and their counters.

use std::net::IpAddr;

use tresse_proto::Instant;

use crate::network::Network;
use crate::outcome::CrossOutcome;
use crate::route::NodeId;
use crate::scenario::Resolved;
use crate::seed::{Seed, unit_interval};
use crate::tcp::{CrossLoad, CrossTraffic, HostCounts, HostRole, Place, TcpHost};
use crate::topology::Layout;

/// Makes two hosts for each pair: first the host that opens connections, then the host that accepts them.
pub(crate) fn hosts(resolved: &Resolved, layout: &Layout, seed: Seed) -> Vec<TcpHost> {
    let mut hosts = Vec::new();
    for (pair, (cross, nodes)) in resolved.cross_traffic.iter().zip(&layout.pairs).enumerate() {
        // With `bulk` the host that opens sends the data; with `web` the host that accepts does.
        let opens_on_the_right = match cross.load {
            CrossLoad::Bulk { .. } => cross.reverse,
            CrossLoad::Web(_) => !cross.reverse,
        };
        let (left, right) = *nodes;
        let (opener, accepter) = if opens_on_the_right { (right, left) } else { (left, right) };
        let address = |node: NodeId| layout.topology.addresses[node.index()][0];
        let works = works(cross, pair, resolved, seed);
        for (node, peer, work) in [(opener, accepter, works.0), (accepter, opener, works.1)] {
            let number = hosts.len() as u16;
            let (address, peer): (IpAddr, IpAddr) = (address(node), address(peer));
            hosts.push(TcpHost::new(Place { number, node, address, peer }, cross.tcp, work));
        }
    }
    hosts
}

/// Returns the work of the opening host of a pair, and that of the accepting host.
fn works(cross: &CrossTraffic, pair: usize, resolved: &Resolved, seed: Seed) -> (HostRole, HostRole) {
    let begin = Instant::ZERO + cross.start;
    let stop = cross.stop.map(|stop| Instant::ZERO + stop);
    let mut rng = seed.generator(&format!("cross {pair} start"));
    match cross.load {
        CrossLoad::Bulk { flows } => {
            let mut jitter = |_| begin + resolved.start_jitter.mul_f64(unit_interval(&mut rng));
            let starts = (0..flows).map(&mut jitter).collect();
            (HostRole::Source { starts, stop }, HostRole::Sink)
        }
        CrossLoad::Web(web) => {
            let answers = seed.generator(&format!("cross {pair} answers"));
            (HostRole::client(web, begin, stop, rng), HostRole::Server { web, rng: answers })
        }
    }
}

/// Returns the counters of all hosts.
pub(crate) fn tallies(hosts: &[TcpHost]) -> Vec<HostCounts> {
    hosts.iter().map(TcpHost::tally).collect()
}

/// Returns the counts of each pair between two snapshots, over `seconds`.
pub(crate) fn outcomes(
    cross_traffic: &[CrossTraffic],
    before: &[HostCounts],
    after: &[HostCounts],
    seconds: f64,
) -> Vec<CrossOutcome> {
    let counted: Vec<HostCounts> =
        after.iter().zip(before).map(|(after, before)| after.since(before)).collect();
    let outcome = |(pair, cross): (usize, &CrossTraffic)| {
        let (opener, accepter) = (&counted[2 * pair], &counted[2 * pair + 1]);
        let (sender, receiver) = match cross.load {
            CrossLoad::Bulk { .. } => (opener, accepter),
            CrossLoad::Web(_) => (accepter, opener),
        };
        CrossOutcome {
            id: pair,
            kind: cross.load.name(),
            path: cross.path,
            reverse: cross.reverse,
            throughput_mbps: if seconds > 0.0 { receiver.delivered as f64 * 8e-6 / seconds } else { 0.0 },
            segments: sender.counters.sent,
            segments_resent: sender.counters.resent,
            recoveries: sender.counters.recoveries,
            timeouts: sender.counters.timeouts,
            answers: matches!(cross.load, CrossLoad::Web(_)).then_some(opener.answered),
            answer_ms: opener.mean_wait().map(|wait| wait.as_secs_f64() * 1e3),
        }
    };
    cross_traffic.iter().enumerate().map(outcome).collect()
}

/// Schedules the first wake-up of every host.
pub(crate) fn arm(hosts: &mut [TcpHost], network: &mut Network<'_>) {
    for host in hosts {
        host.arm(Instant::ZERO, network);
    }
}
