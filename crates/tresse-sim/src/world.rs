//! Hosts, network and clock together: what happens next, until a given time.

use tresse_proto::Instant;

use crate::error::RunError;
use crate::host::Host;
use crate::invariant;
use crate::network::{Happening, Network};
use crate::record::Recorder;
use crate::route::NodeId;
use crate::setup::SENDER;
use crate::traffic::Ledger;

/// Everything that exists in a run.
pub(crate) struct World<'w> {
    pub(crate) network: Network<'w>,
    pub(crate) hosts: Vec<Host>,
    /// Which host lives at each node.
    pub(crate) residents: Vec<Option<u16>>,
    pub(crate) ledger: Ledger,
    pub(crate) recorder: Option<Recorder>,
    /// Messages after whose delivery the run is over, where it has such an end.
    pub(crate) goal: Option<u64>,
    /// Check the rules of `invariant` after every event.
    pub(crate) check: bool,
    pub(crate) now: Instant,
    pub(crate) events: u64,
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
                    Some(host) => {
                        self.hosts[host].on_packet(now, packet, &mut self.network, &mut self.ledger)?;
                    }
                    None => self.network.send(now, node, packet),
                }
            }
            Happening::Departure { link } => self.network.depart(now, link),
            Happening::Wake { host } => {
                self.hosts[usize::from(host)].on_wake(now, &mut self.network, &mut self.ledger)?;
            }
            Happening::Sample => {
                if let Some(recorder) = &mut self.recorder {
                    recorder.sample(now, &mut self.hosts, &mut self.network);
                }
            }
        }
        Ok(())
    }

    fn resident(&self, node: NodeId) -> Option<usize> {
        self.residents.get(node.index()).copied().flatten().map(usize::from)
    }
}
