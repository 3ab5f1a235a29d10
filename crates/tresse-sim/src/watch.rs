//! Observers of the association's packets at sending and arrival: the trace, and the record of recoveries.
//!
//! They read packets and change nothing: a run with observers sends the same packets as one without.

use std::io::Write;

use tresse_proto::{AssociationStats, Instant, PathStats};
use tresse_wire::{ChecksumRule, Chunk, Packet as Parsed, Tsn};

use crate::link::PacketFate;
use crate::packet::{Packet, Protocol};
use crate::recovery::Recoveries;
use crate::route::LinkId;
use crate::topology::{Layout, PathLinks};
use crate::trace::{DataSeen, Trace};

/// The observers of a run.
#[derive(Default)]
pub(crate) struct Watch<'w> {
    pub(crate) trace: Option<Trace<&'w mut dyn Write>>,
    pub(crate) recoveries: Option<Recoveries>,
    paths: Vec<PathLinks>,
    /// The first TSN of the association: observers count TSNs from 1.
    first: Option<Tsn>,
}

impl<'w> Watch<'w> {
    pub(crate) fn new(
        layout: &Layout,
        trace: Option<Trace<&'w mut dyn Write>>,
        recoveries: Option<Recoveries>,
    ) -> Self {
        Watch { trace, recoveries, paths: layout.paths.clone(), first: None }
    }

    /// Returns whether a trace or a recovery record is kept.
    pub(crate) fn is_on(&self) -> bool {
        self.trace.is_some() || self.recoveries.is_some()
    }

    /// A packet was passed to `link`.
    pub(crate) fn on_sent(&mut self, now: Instant, link: LinkId, packet: &Packet, verdict: PacketFate) {
        let dropped = matches!(verdict, PacketFate::Dropped(_));
        let path = self.paths.iter().position(|links| links.departs == link);
        for data in self.data_in(path, packet) {
            if let Some(trace) = &mut self.trace {
                trace.on_sent(now, data, dropped);
            }
            if let Some(recoveries) = &mut self.recoveries {
                recoveries.on_sent(now, data.tsn);
            }
        }
    }

    /// A packet arrived at the end of `link`. A damaged packet counts as lost: its content cannot be trusted.
    pub(crate) fn on_arrived(&mut self, now: Instant, link: LinkId, packet: &Packet) {
        if packet.damaged {
            return;
        }
        let path = self.paths.iter().position(|links| links.arrives == link);
        for data in self.data_in(path, packet) {
            if let Some(trace) = &mut self.trace {
                trace.on_arrived(now, data);
            }
            if let Some(recoveries) = &mut self.recoveries {
                recoveries.on_arrived(now, data.tsn);
            }
        }
        let Some(path) = self.paths.iter().position(|links| links.returns == link) else { return };
        let (Some(trace), Some(first)) = (&mut self.trace, self.first) else { return };
        for (cumulative, window) in reports_in(&packet.payload) {
            trace.on_report(now, path, cumulative.distance_from(first.prev()), window);
        }
    }

    /// Takes the counters of the sender after an event.
    pub(crate) fn on_sender(&mut self, now: Instant, stats: Option<(AssociationStats, Vec<PathStats>)>) {
        let Some((association, paths)) = stats else { return };
        if let Some(trace) = &mut self.trace {
            trace.on_state(now, &association, &paths);
        }
        if let Some(recoveries) = &mut self.recoveries {
            recoveries.on_state(&paths);
        }
    }

    /// Returns the user data in a packet on its way to the receiver.
    fn data_in(&mut self, path: Option<usize>, packet: &Packet) -> Vec<DataSeen> {
        let Some(path) = path.filter(|_| packet.protocol == Protocol::Sctp) else { return Vec::new() };
        let mut seen = Vec::new();
        for (tsn, bytes) in user_data_in(&packet.payload) {
            let first = *self.first.get_or_insert(tsn);
            seen.push(DataSeen { path, tsn: tsn.distance_from(first.prev()), bytes });
        }
        seen
    }
}

/// Returns TSN and length of every DATA and I-DATA chunk that can be parsed in an SCTP packet.
pub fn user_data_in(packet: &[u8]) -> Vec<(Tsn, usize)> {
    let Ok(parsed) = Parsed::parse(packet, ChecksumRule::Trust) else { return Vec::new() };
    let data = parsed.chunks().flatten().filter_map(|chunk| match chunk {
        Chunk::Data(data) => Some((data.tsn, data.payload.len())),
        Chunk::IData(data) => Some((data.tsn, data.payload.len())),
        _ => None,
    });
    data.collect()
}

/// Returns cumulative TSN and window of every SACK and NR-SACK that can be parsed in an SCTP packet.
pub fn reports_in(packet: &[u8]) -> Vec<(Tsn, u32)> {
    let Ok(parsed) = Parsed::parse(packet, ChecksumRule::Trust) else { return Vec::new() };
    let reports = parsed.chunks().flatten().filter_map(|chunk| match chunk {
        Chunk::Sack(sack) => Some((sack.cumulative_tsn, sack.a_rwnd)),
        Chunk::NrSack(sack) => Some((sack.cumulative_tsn, sack.a_rwnd)),
        _ => None,
    });
    reports.collect()
}
