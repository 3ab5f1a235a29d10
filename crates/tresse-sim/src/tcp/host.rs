//! A TCP host: its connections, their work, and the loop that drives both.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use tresse_proto::{Ecn, Instant};

use super::TcpSpec;
use super::connection::Connection;
use super::segment::Segment;
use super::sender::Counters;
use super::work::HostRole;
use crate::network::{Network, SimEvent};
use crate::packet::{Packet, Protocol};
use crate::route::NodeId;

/// Place of a host in the network, and its peer.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Place {
    /// Number among the TCP hosts.
    pub(crate) number: u16,
    pub(crate) node: NodeId,
    pub(crate) address: IpAddr,
    pub(crate) peer: IpAddr,
}

/// A host with TCP connections to one other host.
#[derive(Debug)]
pub(crate) struct TcpHost {
    place: Place,
    spec: TcpSpec,
    work: HostRole,
    /// Connections by the port of the end that opened them.
    connections: BTreeMap<u16, Connection>,
    /// The earliest wake-up that is scheduled; later ones in the event queue are stale.
    wake_at: Option<Instant>,
    /// Counters of connections that have ended.
    past: Counters,
    tally: HostCounts,
}

/// Counters of a host.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct HostCounts {
    /// Bytes that the application received.
    pub(crate) delivered: u64,
    pub(crate) counters: Counters,
    /// Requests that were answered.
    pub(crate) answered: u64,
    /// Time for which users waited for answers, in total, in nanoseconds.
    pub(crate) waited: u128,
    /// Packets that were damaged, or not TCP segments.
    pub(crate) discarded: u64,
}

impl TcpHost {
    pub(crate) fn new(place: Place, spec: TcpSpec, work: HostRole) -> Self {
        let connections = BTreeMap::new();
        let (past, tally) = (Counters::default(), HostCounts::default());
        TcpHost { place, spec, work, connections, wake_at: None, past, tally }
    }

    /// Takes a packet that arrived.
    pub(crate) fn on_packet(&mut self, now: Instant, packet: &Packet, network: &mut Network<'_>) {
        // Segments have no checksum here; the link marks damaged packets.
        let intact = !packet.damaged && packet.protocol == Protocol::Tcp;
        let Some(segment) = intact.then(|| Segment::decode(&packet.payload)).flatten() else {
            self.tally.discarded += 1;
            return;
        };
        let accepts = self.work.accepts();
        let port = if accepts { segment.source_port } else { segment.destination_port };
        if accepts && segment.syn && !self.connections.contains_key(&port) {
            let connection = Connection::new(&self.spec, SERVICE_PORT, port);
            self.connections.insert(port, connection);
        }
        let Some(connection) = self.connections.get_mut(&port) else {
            if !segment.reset {
                self.send(now, &refusal(&segment), network);
            }
            return;
        };
        let before = connection.receiver.delivered();
        connection.on_segment(now, &segment);
        self.tally.delivered += connection.receiver.delivered() - before;
        self.work.on_arrival(connection);
        self.flush(now, port, network);
        self.arm(now, network);
    }

    /// Serves the timers that are due.
    pub(crate) fn on_wake(&mut self, now: Instant, network: &mut Network<'_>) {
        if self.wake_at.is_none_or(|at| at > now) {
            return;
        }
        self.wake_at = None;
        if self.work.stops(now) {
            self.connections.values_mut().for_each(Connection::finish);
        }
        while let Some((port, bytes)) = self.work.open(now) {
            let mut connection = Connection::new(&self.spec, port, SERVICE_PORT);
            connection.hand_over(bytes);
            self.connections.insert(port, connection);
            self.flush(now, port, network);
        }
        let due = |connection: &Connection| connection.due().is_some_and(|at| at <= now);
        let ports: Vec<u16> =
            self.connections.iter().filter(|(_, one)| due(one)).map(|(port, _)| *port).collect();
        for port in ports {
            if let Some(connection) = self.connections.get_mut(&port) {
                connection.on_time(now);
            }
            self.flush(now, port, network);
        }
        self.arm(now, network);
    }

    /// Schedules a wake-up at the next deadline, unless an earlier one is scheduled.
    pub(crate) fn arm(&mut self, now: Instant, network: &mut Network<'_>) {
        let connections = self.connections.values().filter_map(Connection::due);
        let Some(due) = connections.chain(self.work.due()).min() else { return };
        let due = due.max(now);
        if self.wake_at.is_none_or(|at| due < at) {
            self.wake_at = Some(due);
            network.events.push(due, SimEvent::TcpWake { host: self.place.number });
        }
    }

    /// Returns the counters so far.
    pub(crate) fn tally(&self) -> HostCounts {
        let living = self.connections.values().map(|connection| connection.sender.counters);
        HostCounts { counters: living.fold(self.past, Counters::plus), ..self.tally.clone() }
    }

    /// Returns the node of the host.
    pub(crate) fn node(&self) -> NodeId {
        self.place.node
    }

    /// Sends the segments of a connection that are due, and removes the connection when it has ended.
    fn flush(&mut self, now: Instant, port: u16, network: &mut Network<'_>) {
        while let Some(segment) =
            self.connections.get_mut(&port).and_then(|connection| connection.transmit(now))
        {
            self.send(now, &segment, network);
        }
        let over = |connection: &Connection| {
            connection.is_reset() || connection.sender.is_done() || connection.receiver.is_complete()
        };
        if self.connections.get(&port).is_some_and(over)
            && let Some(connection) = self.connections.remove(&port)
        {
            self.past = self.past.plus(connection.sender.counters);
            let answered = connection.receiver.is_complete();
            if let Some(waited) = self.work.on_over(now, port, answered) {
                self.tally.answered += 1;
                self.tally.waited += waited.as_nanos();
            }
        }
    }

    fn send(&self, now: Instant, segment: &Segment, network: &mut Network<'_>) {
        let packet = Packet {
            source: self.place.address,
            destination: self.place.peer,
            ecn: Ecn::NotEct,
            may_fragment: false,
            protocol: Protocol::Tcp,
            payload: segment.encode(),
            damaged: false,
        };
        network.send(now, self.place.node, packet);
    }
}

impl HostCounts {
    /// Returns the counts since `earlier`.
    #[must_use]
    pub(crate) fn since(&self, earlier: &HostCounts) -> HostCounts {
        HostCounts {
            delivered: self.delivered - earlier.delivered,
            counters: self.counters.since(earlier.counters),
            answered: self.answered - earlier.answered,
            waited: self.waited - earlier.waited,
            discarded: self.discarded - earlier.discarded,
        }
    }

    /// Returns the mean time for which users waited, if any got an answer.
    pub(crate) fn mean_wait(&self) -> Option<Duration> {
        let mean = self.waited.checked_div(u128::from(self.answered))?;
        Some(Duration::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX)))
    }
}

/// Returns the answer of a host to a segment of a connection that it does not know (RFC 9293 §3.10.7.1).
fn refusal(segment: &Segment) -> Segment {
    Segment {
        source_port: segment.destination_port,
        destination_port: segment.source_port,
        sequence: segment.acknowledged.unwrap_or(0),
        acknowledged: None,
        reset: true,
        ..Segment::default()
    }
}

/// Port at which connections are accepted.
const SERVICE_PORT: u16 = 80;
