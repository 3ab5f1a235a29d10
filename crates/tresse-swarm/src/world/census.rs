//! Counts of how often each mechanism acted. The sources are the packets that were sent, the events of applications,
//! the core's counters, and its coverage counters for simulations. A mechanism that never acts is not tested, no matter
//! how many seeds pass.

use std::collections::BTreeMap;

use tresse_proto::{AssociationStats, Discards, Event, Part, PathState, PathStats, PolicyKind};
use tresse_wire::{ChecksumRule, Chunk, ChunkKind, DataFlags, Mid, Packet, Ssn, Tsn};

/// Counts by name. Mechanisms that never acted are included, with 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Census(BTreeMap<String, u64>);

impl Default for Census {
    fn default() -> Self {
        let kinds = (0..=u8::MAX).filter_map(|kind| ChunkKind(kind).name()).map(chunk);
        let others = WIRE.iter().chain(TOLD).chain(COUNTED).map(|&name| name.to_owned());
        let discards = Discards::default().named().into_iter().map(|(name, _)| discard(name));
        Census(kinds.chain(others).chain(discards).map(|name| (name, 0)).collect())
    }
}

impl Census {
    /// Returns names and counts.
    pub fn counts(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(name, &count)| (name.as_str(), count))
    }

    /// Adds the counts of `other`.
    pub(super) fn merge(&mut self, other: &Census) {
        other.counts().for_each(|(name, count)| self.note(name, count));
    }

    /// Counts a packet that was sent; `fate` is its fate in the network.
    pub(super) fn packet(&mut self, bytes: &[u8], fate: &str) {
        if fate.contains("marked") {
            self.note(MARKED, 1);
        }
        let Ok(packet) = Packet::parse(bytes, ChecksumRule::Trust) else { return };
        let mut behind_cookie = false;
        for chunk in packet.chunks().flatten() {
            if let Some(name) = chunk.kind().name() {
                self.note(&self::chunk(name), 1);
            }
            match chunk {
                Chunk::CookieEcho(_) => behind_cookie = true,
                Chunk::Data(data) => {
                    self.data(data.tsn, data.flags, behind_cookie);
                    self.note(LAST_SSN, u64::from(data.ssn.0 == u16::MAX));
                }
                Chunk::IData(data) => {
                    self.data(data.tsn, data.flags, behind_cookie);
                    self.note(LAST_MID, u64::from(data.mid.0 == u32::MAX));
                }
                Chunk::ForwardTsn(forward) => {
                    let old = |ssn: Ssn| ssn.0 > u16::MAX / 2;
                    let before = forward.streams.iter().filter(|skipped| old(skipped.ssn));
                    self.note(SKIPPED_SSN, before.count() as u64);
                }
                Chunk::IForwardTsn(forward) => {
                    let old = |mid: Mid| mid.0 > u32::MAX / 2;
                    let before = forward.messages.iter().filter(|skipped| old(skipped.mid));
                    self.note(SKIPPED_MID, before.count() as u64);
                }
                _ => {}
            }
        }
    }

    fn data(&mut self, tsn: Tsn, flags: DataFlags, behind_cookie: bool) {
        self.note(HURRIED, u64::from(flags.immediate));
        self.note(FIRST_TSN, u64::from(tsn == Tsn(0)));
        self.note(BEHIND_COOKIE, u64::from(behind_cookie));
    }

    /// Counts an event of an application.
    pub(super) fn event(&mut self, event: &Event) {
        let name = match event {
            Event::Restarted { .. } => "told: the peer has restarted",
            Event::Writable => "told: room in the send buffer",
            Event::PathChanged { state: PathState::Inactive, .. } => "told: a path is inactive",
            Event::PathChanged { state: PathState::PotentiallyFailed, .. } => {
                "told: a path has potentially failed"
            }
            Event::PathChanged { state: PathState::Removed, .. } => "told: a path is removed",
            Event::SchedulerFailed { kind: PolicyKind::StreamScheduler, .. } => {
                "told: a stream scheduler has failed"
            }
            Event::SchedulerFailed { kind: PolicyKind::PathScheduler, .. } => {
                "told: a path scheduler has failed"
            }
            Event::SchedulerFailed { kind: PolicyKind::CongestionController, .. } => {
                "told: a congestion controller has failed"
            }
            Event::Abandoned { sent: true, .. } => "told: a message was given up that was sent",
            Event::Abandoned { sent: false, .. } => "told: a message was given up unsent",
            Event::OutboundReset(_) => "told: outbound streams begin anew",
            Event::InboundReset(_) => "told: inbound streams begin anew",
            Event::AssociationReset { .. } => "told: everything is numbered anew",
            Event::StreamsAdded { .. } => "told: streams were added",
            Event::PeerAddress { .. } => "told: an address of the peer has changed",
            Event::OwnAddress { .. } => "told: an own address has changed",
            Event::PeerKeyChanged { .. } => "told: the peer uses another key",
            Event::KeysDrained { .. } => "told: old keys of encryption have drained",
            _ => return,
        };
        self.note(name, 1);
    }

    /// Counts a message, or a part of one, that was delivered.
    pub(super) fn message(&mut self, part: Part) {
        self.note(IN_PARTS, u64::from(part == Part::First));
    }

    /// Counts the statistics of an association at its end.
    pub(super) fn association(
        &mut self,
        stats: &AssociationStats,
        paths: &[PathStats],
        tally: &[(&'static str, u64)],
    ) {
        let sum = |count: fn(&PathStats) -> u64| paths.iter().map(count).sum();
        self.note("chunks sent again", sum(|path| path.chunks_resent));
        self.note("copies of what is under way elsewhere", sum(|path| path.copies_sent));
        self.note("chunks lost by missing reports", sum(|path| path.fast_retransmits));
        self.note("chunks lost by reports of damage", sum(|path| path.drop_reports));
        self.note("timeouts", sum(|path| path.timeouts));
        self.note("windows cut for marks", sum(|path| path.mark_cuts));
        self.note("chunks that arrived twice", stats.duplicates);
        for (name, count) in tally {
            self.note(name, *count);
        }
        self.discards(&stats.discards);
    }

    pub(super) fn discards(&mut self, discards: &Discards) {
        for (name, count) in discards.named() {
            self.note(&discard(name), count);
        }
    }

    fn note(&mut self, name: &str, count: u64) {
        match self.0.get_mut(name) {
            Some(noted) => *noted += count,
            None => drop(self.0.insert(name.to_owned(), count)),
        }
    }
}

fn chunk(name: &str) -> String {
    format!("sent: {name}")
}

fn discard(name: &str) -> String {
    format!("discarded: {name}")
}

const MARKED: &str = "sent: packets marked on their way";
const HURRIED: &str = "sent: data with the I bit";
const FIRST_TSN: &str = "sent: data with TSN 0";
const LAST_SSN: &str = "sent: data with SSN 65535";
const LAST_MID: &str = "sent: I-DATA with MID 4294967295";
const SKIPPED_SSN: &str = "sent: FORWARD-TSN with an SSN before the wrap";
const SKIPPED_MID: &str = "sent: I-FORWARD-TSN with a MID before the wrap";
const BEHIND_COOKIE: &str = "sent: data behind COOKIE ECHO";
const IN_PARTS: &str = "messages in parts";

const WIRE: &[&str] =
    &[MARKED, HURRIED, FIRST_TSN, LAST_SSN, LAST_MID, SKIPPED_SSN, SKIPPED_MID, BEHIND_COOKIE];

const TOLD: &[&str] = &[
    "told: the peer has restarted",
    "told: room in the send buffer",
    "told: a path is inactive",
    "told: a path has potentially failed",
    "told: a path is removed",
    "told: a stream scheduler has failed",
    "told: a path scheduler has failed",
    "told: a congestion controller has failed",
    "told: a message was given up that was sent",
    "told: a message was given up unsent",
    "told: outbound streams begin anew",
    "told: inbound streams begin anew",
    "told: everything is numbered anew",
    "told: streams were added",
    "told: an address of the peer has changed",
    "told: an own address has changed",
    "told: the peer uses another key",
    "told: old keys of encryption have drained",
];

const COUNTED: &[&str] = &[
    IN_PARTS,
    "chunks sent again",
    "copies of what is under way elsewhere",
    "chunks lost by missing reports",
    "chunks lost by reports of damage",
    "timeouts",
    "windows cut for marks",
    "chunks that arrived twice",
];
