//! Simulated host: an endpoint and an application, driven by the loop that every driver of the core runs.
//!
//! After every input the host reads the events, lets the application refill, polls for packets until there are none,
//! and schedules a wake-up at the next deadline. It uses only the public interface of the endpoint.

use std::net::IpAddr;
use std::time::Duration;

use bytes::BytesMut;
use tresse_proto::{
    AssociationId, AssociationStats, CloseReason, Datagram, Discards, Endpoint, Event, Instant, PathId,
    PathState, PathStats,
};

use crate::error::RunError;
use crate::network::{Network, SimEvent};
use crate::packet::{Packet, Protocol};
use crate::processor::{Processor, Task};
use crate::records::SimulatedKeys;
use crate::route::NodeId;
use crate::traffic::{AppContext, Application, Ledger};

/// A host.
pub(crate) struct Host {
    number: u16,
    node: NodeId,
    /// The addresses of each path of the scenario, the own one first.
    ends: Vec<(IpAddr, IpAddr)>,
    /// The counters of removed paths, because other paths may take their positions in the association.
    left: Vec<PathStats>,
    endpoint: Endpoint,
    keys: SimulatedKeys,
    application: Box<dyn Application>,
    /// The processor, if packets cost time.
    processor: Option<Processor<Packet>>,
    /// The earliest wake-up that is scheduled; later ones in the event queue are stale.
    wake_at: Option<Instant>,
    /// Stream schedulers that were replaced, with the reasons.
    scheduler_failures: Vec<String>,
    /// Number of wake-ups at one time.
    woken: (Instant, u32),
    /// Buffer to which the endpoint writes its packets.
    scratch: Vec<u8>,
    /// Blocks that hold packets on their way; many packets share one, so that a packet costs no allocation.
    arena: BytesMut,
}

impl Host {
    pub(crate) fn new(
        number: u16,
        node: NodeId,
        ends: Vec<(IpAddr, IpAddr)>,
        endpoint: Endpoint,
        keys: SimulatedKeys,
        application: Box<dyn Application>,
    ) -> Self {
        Host {
            number,
            node,
            ends,
            left: Vec::new(),
            endpoint,
            keys,
            application,
            processor: None,
            wake_at: None,
            scheduler_failures: Vec::new(),
            woken: (Instant::ZERO, 0),
            scratch: Vec::new(),
            arena: BytesMut::with_capacity(ARENA_BLOCK),
        }
    }

    /// Adds a processor that works for `packet_time` on each packet; none if that is zero.
    pub(crate) fn with_packet_time(mut self, packet_time: Duration) -> Self {
        self.processor = (!packet_time.is_zero()).then(|| Processor::new(packet_time));
        self
    }

    /// Returns the time that the processor has worked, if packets cost time.
    pub(crate) fn worked(&self, now: Instant) -> Option<Duration> {
        self.processor.as_ref().map(|processor| processor.worked(now))
    }

    /// Takes a packet that arrived. If packets cost no time, it is processed at once. The caller then calls
    /// [`turn`](Self::turn).
    pub(crate) fn on_arrival(&mut self, now: Instant, packet: &mut Packet) {
        match &mut self.processor {
            Some(processor) => processor.push(packet.take()),
            None => self.on_packet(now, packet),
        }
    }

    fn on_packet(&mut self, now: Instant, packet: &mut Packet) {
        if packet.protocol != Protocol::Sctp {
            return;
        }
        let damaged = packet.damaged;
        let datagram = Datagram {
            local: packet.destination,
            remote: packet.source,
            encapsulation_port: None,
            ecn: packet.ecn,
            payload: std::mem::take(&mut packet.payload),
        };
        if damaged {
            // As from a network card that could not verify the checksum: the endpoint verifies it.
            self.endpoint.handle_unverified_datagram(now, datagram);
        } else {
            self.endpoint.handle_datagram(now, datagram);
        }
    }

    /// Serves the timers that are due; most wake-ups have become stale when their time comes.
    pub(crate) fn on_wake(
        &mut self,
        now: Instant,
        network: &mut Network<'_>,
        ledger: &mut Ledger,
    ) -> Result<(), RunError> {
        if self.wake_at.is_none_or(|at| at > now) {
            return Ok(());
        }
        self.wake_at = None;
        if let Some(until) = self.busy_until(now) {
            self.wake_up(until, network);
            return Ok(());
        }
        self.woken = if self.woken.0 == now { (now, self.woken.1 + 1) } else { (now, 1) };
        if self.woken.1 > WAKE_UPS_PER_INSTANT {
            return Err(RunError::Sleepless { at: now, host: self.number });
        }
        if self.endpoint.poll_timeout().is_some_and(|at| at <= now) {
            self.endpoint.handle_timeout(now);
        }
        if self.application.due().is_some_and(|at| at <= now) {
            let mut turn = AppContext { now, endpoint: &mut self.endpoint, ledger };
            self.application.on_due(&mut turn)?;
        }
        self.turn(now, network, ledger)
    }

    /// Returns the counters of the host's association and its paths, once it is set up.
    pub(crate) fn stats(&mut self, now: Instant) -> Option<(AssociationStats, Vec<PathStats>)> {
        let association = self.endpoint.association(self.application.association()?)?;
        let (stats, paths) = (association.stats(now)?, association.path_stats(now));
        let mut paths = self.of_scenario(paths);
        for left in &self.left {
            if !paths.iter().any(|path| path.id == left.id) {
                paths.push(left.clone());
            }
        }
        paths.sort_by_key(|path| path.id);
        Some((stats, paths))
    }

    /// Keeps the counters of a path of the scenario that was removed. Its data in flight now counts for other paths.
    fn on_path_left(&mut self, now: Instant, id: AssociationId, path: PathId) {
        let Some(association) = self.endpoint.association(id) else { return };
        let gone = association.path_stats(now).into_iter().filter(|stats| stats.id == path).collect();
        let ours = self.of_scenario(gone).into_iter().filter(|stats| stats.id.index() < self.ends.len());
        let empty = |mut stats: PathStats| {
            (stats.flight, stats.copied, stats.queued) = (0, 0, 0);
            stats
        };
        let left: Vec<_> = ours.map(empty).collect();
        self.left.extend(left);
    }

    /// Replaces the association's path numbers by positions in the scenario. While addresses are added and removed,
    /// there are other paths for a moment, between addresses of different positions; they get higher numbers.
    fn of_scenario(&self, paths: Vec<PathStats>) -> Vec<PathStats> {
        let positioned = |mut path: PathStats| {
            let position = self.ends.iter().position(|ends| *ends == (path.local, path.remote));
            let position = position.unwrap_or(self.ends.len() + path.id.index());
            path.id = PathId(u8::try_from(position).unwrap_or(u8::MAX));
            path
        };
        paths.into_iter().map(positioned).collect()
    }

    /// Node of the host.
    #[cfg(test)]
    pub(crate) fn node(&self) -> NodeId {
        self.node
    }

    /// Returns the counts of packets and chunks that were discarded before they reached an association.
    pub(crate) fn discards(&self) -> Discards {
        self.endpoint.discards()
    }

    /// Returns the stream schedulers that were replaced, with the reasons.
    pub(crate) fn scheduler_failures(&self) -> &[String] {
        &self.scheduler_failures
    }

    /// Returns the reason for which the association ended, if it has.
    pub(crate) fn ended(&self) -> Option<&CloseReason> {
        self.application.ended()
    }

    /// Returns the time at which the host opened its association, if it did.
    pub(crate) fn opened(&self) -> Option<Instant> {
        self.application.opened()
    }

    /// Returns the time of the host's next timer.
    pub(crate) fn due(&mut self) -> Option<Instant> {
        let timeout = self.endpoint.poll_timeout();
        [timeout, self.application.due()].into_iter().flatten().min()
    }

    /// Schedules a wake-up at the next deadline, unless an earlier one is scheduled.
    pub(crate) fn arm(&mut self, now: Instant, network: &mut Network<'_>) {
        let Some(due) = self.due() else { return };
        self.wake_up(due.max(now), network);
    }

    fn wake_up(&mut self, due: Instant, network: &mut Network<'_>) {
        if self.wake_at.is_none_or(|at| due < at) {
            self.wake_at = Some(due);
            network.events.push(due, SimEvent::Wake { host: self.number });
        }
    }

    /// Returns the time until which the processor is busy with a packet, if packets cost time.
    fn busy_until(&self, now: Instant) -> Option<Instant> {
        self.processor.as_ref()?.busy_until(now)
    }

    /// Serves the application after an input, and sends the packets that are due.
    pub(crate) fn turn(
        &mut self,
        now: Instant,
        network: &mut Network<'_>,
        ledger: &mut Ledger,
    ) -> Result<(), RunError> {
        if self.processor.is_some() {
            return self.process_arrivals(now, network, ledger);
        }
        self.turn_at_once(now, network, ledger)
    }

    /// Does the same if packets cost time: after each packet, the next waits until the processor is free.
    fn process_arrivals(
        &mut self,
        now: Instant,
        network: &mut Network<'_>,
        ledger: &mut Ledger,
    ) -> Result<(), RunError> {
        while let Some(processor) = self.processor.as_mut().filter(|one| one.busy_until(now).is_none()) {
            let worked = match processor.next() {
                Task::Receive(mut packet) => {
                    self.on_packet(now, &mut packet);
                    true
                }
                Task::Send => {
                    self.serve_application(now, ledger)?;
                    self.transmit(now, network, 1) > 0
                }
            };
            let Some(processor) = self.processor.as_mut() else { break };
            if worked {
                processor.work(now);
            } else if !processor.has_waiting() {
                self.arm(now, network);
                return Ok(());
            }
        }
        if let Some(until) = self.busy_until(now) {
            self.wake_up(until, network);
        }
        Ok(())
    }

    fn turn_at_once(
        &mut self,
        now: Instant,
        network: &mut Network<'_>,
        ledger: &mut Ledger,
    ) -> Result<(), RunError> {
        let mut sent = 0;
        while self.serve_application(now, ledger)? || sent == 0 {
            let packets = self.transmit(now, network, PACKETS_PER_INSTANT);
            if packets == 0 {
                break;
            }
            sent += packets;
            if sent >= PACKETS_PER_INSTANT {
                return Err(RunError::Runaway { at: now, host: self.number, packets: sent });
            }
        }
        self.arm(now, network);
        Ok(())
    }

    /// Passes events to the application and lets it refill. Returns whether there was an event or new data.
    fn serve_application(&mut self, now: Instant, ledger: &mut Ledger) -> Result<bool, RunError> {
        let mut any = false;
        while let Some((id, event)) = self.endpoint.poll_event() {
            if let Event::SchedulerFailed { kind, name, fault } = &event {
                self.scheduler_failures.push(format!("{kind} {name}: {fault}"));
            }
            if let Event::PathChanged { state: PathState::Removed, path } = event {
                self.on_path_left(now, id, path);
            }
            // An error means that the association has ended meanwhile and needs no keys.
            self.keys.on_event(now, &mut self.endpoint, id, &event).ok();
            let mut turn = AppContext { now, endpoint: &mut self.endpoint, ledger };
            self.application.on_event(&mut turn, id, &event)?;
            any = true;
        }
        let mut turn = AppContext { now, endpoint: &mut self.endpoint, ledger };
        Ok(self.application.refill(&mut turn)? || any)
    }

    /// Sends packets of the endpoint in at most `most` polls, and returns their number.
    fn transmit(&mut self, now: Instant, network: &mut Network<'_>, most: usize) -> usize {
        let mut packets = 0;
        let each = PACKETS_PER_POLL.min(most);
        for _poll in 0..most {
            self.scratch.clear();
            let Some(transmit) = self.endpoint.poll_transmit(now, each, &mut self.scratch) else {
                return packets;
            };
            if self.arena.capacity() < self.scratch.len() {
                self.arena.reserve(self.scratch.len().max(ARENA_BLOCK));
            }
            self.arena.extend_from_slice(&self.scratch);
            let mut batch = self.arena.split().freeze();
            let segment = transmit.segment_size.unwrap_or(batch.len()).max(1);
            let packet = |payload| Packet {
                source: transmit.local,
                destination: transmit.remote,
                ecn: transmit.ecn,
                may_fragment: transmit.may_fragment,
                protocol: Protocol::Sctp,
                payload,
                damaged: false,
            };
            while batch.len() > segment {
                let payload = batch.split_to(segment);
                network.send(now, self.node, packet(payload));
                packets += 1;
            }
            network.send(now, self.node, packet(batch));
            packets += 1;
        }
        packets
    }
}

/// Packets that the endpoint may write at one poll.
const PACKETS_PER_POLL: usize = 16;
/// Bytes in a block that packets share.
const ARENA_BLOCK: usize = 64 * 1024;
/// Most wake-ups at one instant. A deadline that remains after so many is an error.
const WAKE_UPS_PER_INSTANT: u32 = 1000;
/// Most packets of a host at one instant. A host that sends more would never stop.
const PACKETS_PER_INSTANT: usize = 1 << 18;
