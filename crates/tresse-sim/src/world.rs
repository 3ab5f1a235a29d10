//! Hosts, network and clock together: what happens next, until a given time.

use tresse_proto::Instant;

use crate::error::RunError;
use crate::host::Host;
use crate::invariant;
use crate::network::{Happening, Network};
use crate::record::Recorder;
use crate::route::NodeId;
use crate::setup::SENDER;
use crate::tcp::TcpHost;
use crate::traffic::Ledger;

/// Everything that exists in a run.
pub(crate) struct World<'w> {
    pub(crate) network: Network<'w>,
    pub(crate) hosts: Vec<Host>,
    /// The hosts of cross traffic.
    pub(crate) tcp_hosts: Vec<TcpHost>,
    /// Who lives at each node; nobody at a router.
    pub(crate) residents: Vec<Option<Resident>>,
    pub(crate) ledger: Ledger,
    pub(crate) recorder: Option<Recorder>,
    /// Messages after whose delivery the run is over, where it has such an end.
    pub(crate) goal: Option<u64>,
    /// Check the rules of `invariant` after every event.
    pub(crate) check: bool,
    pub(crate) now: Instant,
    pub(crate) events: u64,
}

/// Who lives at a node, by number.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Resident {
    Host(u16),
    TcpHost(u16),
}

impl World<'_> {
    /// Lets everything happen up to and including `end`, or until the goal is reached.
    pub(crate) fn run_until(&mut self, end: Instant) -> Result<(), RunError> {
        while let Some((now, happening)) = self.network.events.pop_until(end) {
            self.now = now;
            self.events += 1;
            self.step(happening)?;
            if self.network.watch.is_on() {
                let stats = self.hosts[SENDER].stats(now);
                self.network.watch.on_sender(now, stats);
            }
            if self.check {
                invariant::check(self).map_err(|breach| RunError::Broken { at: now, breach })?;
            }
            if self.is_done() {
                return Ok(());
            }
        }
        self.now = end;
        Ok(())
    }

    /// Everything that was to be delivered has been.
    pub(crate) fn is_done(&self) -> bool {
        self.goal.is_some_and(|goal| self.ledger.total_delivered() >= goal)
    }

    fn step(&mut self, happening: Happening) -> Result<(), RunError> {
        let now = self.now;
        match happening {
            Happening::Arrival { link, slot } => {
                let Some((node, packet)) = self.network.arrive(now, link, slot) else { return Ok(()) };
                match self.resident(node) {
                    Some(Resident::Host(host)) => {
                        let host = &mut self.hosts[usize::from(host)];
                        host.on_packet(now, packet, &mut self.network, &mut self.ledger)?;
                    }
                    Some(Resident::TcpHost(host)) => {
                        self.tcp_hosts[usize::from(host)].on_packet(now, &packet, &mut self.network);
                    }
                    None => self.network.send(now, node, packet),
                }
            }
            Happening::Departure { link } => self.network.depart(now, link),
            Happening::Wake { host } => {
                self.hosts[usize::from(host)].on_wake(now, &mut self.network, &mut self.ledger)?;
            }
            Happening::TcpWake { host } => {
                self.tcp_hosts[usize::from(host)].on_wake(now, &mut self.network);
            }
            Happening::Sample => {
                if let Some(recorder) = &mut self.recorder {
                    recorder.sample(now, &mut self.hosts, &mut self.network);
                }
            }
        }
        Ok(())
    }

    fn resident(&self, node: NodeId) -> Option<Resident> {
        self.residents.get(node.index()).copied().flatten()
    }
}
