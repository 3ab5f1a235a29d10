//! Simulated world: hosts, network and clock, and the loop that handles the next event until a given time.

use std::time::Duration;

use tresse_proto::Instant;

use crate::error::RunError;
use crate::host::Host;
use crate::invariant;
use crate::network::{Network, SimEvent};
use crate::record::Recorder;
use crate::tcp::TcpHost;
use crate::traffic::Ledger;

/// State of a run.
pub(crate) struct World<'w> {
    pub(crate) network: Network<'w>,
    pub(crate) hosts: Vec<Host>,
    /// The hosts of cross traffic.
    pub(crate) tcp_hosts: Vec<TcpHost>,
    /// Host at each node; `None` at a router.
    pub(crate) residents: Vec<Option<NodeHost>>,
    pub(crate) ledger: Ledger,
    pub(crate) recorder: Option<Recorder>,
    /// Number of delivered messages at which the run ends, if it has such an end.
    pub(crate) goal: Option<u64>,
    /// Check the rules of `invariant` after every event.
    pub(crate) check: bool,
    pub(crate) now: Instant,
    pub(crate) events: u64,
    /// Events at `now`, among these.
    pub(crate) at_once: u32,
}

/// Host at a node, by its number.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum NodeHost {
    Host(u16),
    TcpHost(u16),
}

/// The host that opens the association.
pub(crate) const SENDER: usize = 0;
/// The host that accepts it.
pub(crate) const RECEIVER: usize = 1;

impl World<'_> {
    /// Processes all events up to and including `end`, or until the goal is reached, but `most` events at most.
    pub(crate) fn run_until(&mut self, end: Instant, most: u64) -> Result<(), RunError> {
        let last = self.events.saturating_add(most);
        while self.events < last {
            let Some((now, event)) = self.network.events.pop_until(end) else {
                self.now = end;
                return Ok(());
            };
            self.at_once = if now == self.now { self.at_once + 1 } else { 1 };
            self.now = now;
            self.events += 1;
            if self.at_once > EVENTS_PER_INSTANT {
                return Err(self.standstill(&event));
            }
            self.step(event)?;
            let packets = self.network.packets_under_way();
            if packets > PACKETS_UNDER_WAY {
                return Err(RunError::TooManyPackets { at: now, packets });
            }
            if self.network.watch.is_on() {
                let stats = self.hosts[SENDER].stats(now);
                self.network.watch.on_sender(now, stats);
            }
            if self.check {
                invariant::check(now, &mut self.hosts, &mut self.network, &self.ledger)
                    .map_err(|breach| RunError::Broken { at: now, breach })?;
            }
            if self.is_done() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Returns whether all messages of the goal have been delivered.
    pub(crate) fn is_done(&self) -> bool {
        self.goal.is_some_and(|goal| self.ledger.total_delivered() >= goal)
    }

    /// Returns the time that the processors of sender and receiver have worked, if packets cost time.
    pub(crate) fn worked(&self) -> Option<[Duration; 2]> {
        let [sender, receiver] = [SENDER, RECEIVER].map(|host| self.hosts[host].worked(self.now));
        Some([sender?, receiver?])
    }

    fn step(&mut self, event: SimEvent) -> Result<(), RunError> {
        let now = self.now;
        match event {
            SimEvent::Arrival { link, slot } => {
                let node = self.network.end(link);
                let packet = self.network.arrive(now, link, slot);
                match self.residents.get(node.index()).copied().flatten() {
                    Some(NodeHost::Host(host)) => {
                        let host = &mut self.hosts[usize::from(host)];
                        host.on_arrival(now, packet);
                        host.turn(now, &mut self.network, &mut self.ledger)?;
                    }
                    Some(NodeHost::TcpHost(host)) => {
                        let packet = packet.take();
                        self.tcp_hosts[usize::from(host)].on_packet(now, &packet, &mut self.network);
                    }
                    None => {
                        let packet = packet.take();
                        self.network.send(now, node, packet);
                    }
                }
            }
            SimEvent::Departure { link } => self.network.depart(now, link),
            SimEvent::Wake { host } => {
                self.hosts[usize::from(host)].on_wake(now, &mut self.network, &mut self.ledger)?;
            }
            SimEvent::TcpWake { host } => {
                self.tcp_hosts[usize::from(host)].on_wake(now, &mut self.network);
            }
            SimEvent::Sample => {
                if let Some(recorder) = &mut self.recorder {
                    recorder.sample(now, &mut self.hosts, &mut self.network);
                }
            }
        }
        Ok(())
    }

    #[cold]
    fn standstill(&self, last: &SimEvent) -> RunError {
        let last = match last {
            SimEvent::Arrival { link, .. } => format!("a packet's arrival over link {}", link.index()),
            SimEvent::Departure { link } => format!("a packet's departure on link {}", link.index()),
            SimEvent::Wake { host } => format!("a wake-up of host {host}"),
            SimEvent::TcpWake { host } => format!("a wake-up of TCP host {host}"),
            SimEvent::Sample => "a sample".to_owned(),
        };
        RunError::Standstill { at: self.now, events: self.at_once, last }
    }
}

/// Most packets in the network: with their content they take 3 GB at 1,500 bytes each.
const PACKETS_UNDER_WAY: usize = 1 << 21;

/// Most events at one instant, which no run reaches, however many hosts there are.
const EVENTS_PER_INSTANT: u32 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Packet, Protocol};
    use crate::scenario::Scenario;
    use crate::seed::Seed;
    use crate::setup::{CustomPolicies, RunChecks, build};
    use crate::topology::Topology;

    /// Returns the world of one path with these settings at time zero.
    fn world(path: &str) -> World<'static> {
        let scenario = Scenario::from_toml(&format!("[[path]]\n{path}\n"), "test").expect("a sound scenario");
        let (resolved, seed) = (scenario.resolved(), Seed(1));
        let layout = Topology::of(resolved);
        let network = Network::new(&layout.topology, seed, None);
        let care = RunChecks { reads_every: std::time::Duration::ZERO, checksums: false, check: false };
        build(resolved, &layout, network, seed, care, &CustomPolicies::default()).expect("sound settings")
    }

    #[test]
    fn a_run_stops_after_as_many_events_as_it_may_and_goes_on_from_there() {
        let mut world = world("rate = \"100Mbit/s\"\ndelay = \"1ms\"");
        let end = Instant::ZERO + std::time::Duration::from_secs(3);
        world.run_until(end, 1000).expect("nothing breaks");
        assert!(world.events == 1000 && world.now < end);
        world.run_until(end, u64::MAX).expect("nothing breaks");
        assert!(world.events > 2000 && world.now == end);
    }

    #[test]
    fn a_run_with_more_packets_under_way_than_it_may_hold_ends() {
        let mut world = world("rate = \"1000Gbit/s\"\ndelay = \"10min\"\nqueue = \"1000000 packets\"");
        let at = Instant::ZERO + std::time::Duration::from_millis(1);
        let packet = Packet {
            source: [10, 0, 0, 1].into(),
            destination: [10, 0, 0, 2].into(),
            ecn: tresse_proto::Ecn::NotEct,
            may_fragment: false,
            protocol: Protocol::Sctp,
            payload: bytes::Bytes::from_static(&[0; 100]),
            damaged: false,
        };
        let node = world.hosts[SENDER].node();
        for sent in 0..=PACKETS_UNDER_WAY {
            let apart = std::time::Duration::from_nanos(2 * sent as u64);
            world.network.send(Instant::ZERO + apart, node, packet.clone());
        }
        world.network.events.push(at, SimEvent::Wake { host: 1 });
        let error = world.run_until(at, u64::MAX).expect_err("they are too many").to_string();
        assert!(
            error.contains("packets are under way, which is more than a run may hold: take lower"),
            "{error}"
        );
    }

    #[test]
    fn a_run_in_which_time_stands_still_ends_with_the_host_and_the_instant() {
        let mut world = world("rate = \"1Mbit/s\"\ndelay = \"1ms\"");
        let at = Instant::ZERO + std::time::Duration::from_millis(1);
        for _ in 0..=EVENTS_PER_INSTANT {
            world.network.events.push(at, SimEvent::Wake { host: 1 });
        }
        let error = world.run_until(at, u64::MAX).expect_err("it stands still").to_string();
        let expected = "at 0.001000000 s 1048577 things have happened at once and time stands still; the last was a wake-up of host 1";
        assert_eq!(error, expected);
    }
}
