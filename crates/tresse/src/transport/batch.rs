//! Batches of packets from the core to the sockets, grouped by destination.
//!
//! A path scheduler that alternates between paths gives one packet for each at a time. The system takes several packets
//! in one call only if they have the same destination and size. So packets for the same destination are put next to
//! each other, in their order.

use std::net::IpAddr;

use tresse_proto::{Ecn, Endpoint, Instant, Transmit};

/// Packets that one round of the driver sends.
#[derive(Default)]
pub(crate) struct Batch {
    /// The first `used` runs have packets, the others are kept for their memory.
    runs: Vec<Run>,
    used: usize,
    bytes: usize,
}

/// Packets of one destination and, except for the last, one size.
#[derive(Default)]
pub(crate) struct Run {
    destination: Option<Destination>,
    /// Length of each packet, except that the last may be shorter.
    pub(crate) segment: usize,
    /// The packets, one after the other.
    pub(crate) bytes: Vec<u8>,
}

/// Addresses of a packet, and the fields of its IP header that differ among packets.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Destination {
    pub(crate) local: IpAddr,
    pub(crate) remote: IpAddr,
    pub(crate) udp_port: Option<u16>,
    /// The ECN codepoint of its packets.
    pub(crate) ecn: Ecn,
    /// True if IP may fragment its packets.
    pub(crate) may_fragment: bool,
}

impl Batch {
    pub(crate) fn clear(&mut self) {
        self.runs.truncate(KEPT_RUNS);
        (self.used, self.bytes) = (0, 0);
    }

    /// Takes packets from `core` until it has none, or the batch is full. Returns whether the batch is full.
    pub(crate) fn fill(&mut self, core: &mut Endpoint, now: Instant) -> bool {
        // Packets are written where they most likely stay: behind the packets before them.
        let mut open = self.fresh();
        while self.bytes < BATCH_BYTES {
            let run = &mut self.runs[open];
            let room = run.room();
            if room == 0 {
                open = self.fresh();
                continue;
            }
            let Some(transmit) = core.poll_transmit(now, room, &mut run.bytes) else { return false };
            open = self.settle(open, &transmit);
        }
        true
    }

    /// Assigns the packets of `transmit`, which the run at `open` ends with, to a run. Returns the run that may grow next.
    fn settle(&mut self, open: usize, transmit: &Transmit) -> usize {
        let destination = Destination::of(transmit);
        let segment = transmit.segment_size.unwrap_or(transmit.size);
        self.bytes += transmit.size;
        let run = &mut self.runs[open];
        let start = run.bytes.len() - transmit.size;
        if start == 0 {
            // Only the latest run of a destination may grow; otherwise packets would overtake each other.
            let latest = self.latest(destination);
            if let Some(latest) = latest.filter(|&at| self.runs[at].takes(segment, transmit.size)) {
                return self.shift(open, start, latest);
            }
            let run = &mut self.runs[open];
            (run.destination, run.segment) = (Some(destination), segment);
            self.used = open + 1;
            return open;
        }
        if run.destination == Some(destination) && run.fits(start, segment, transmit.size) {
            return open;
        }
        let latest = self.latest(destination);
        if let Some(latest) = latest.filter(|&at| at != open && self.runs[at].takes(segment, transmit.size)) {
            return self.shift(open, start, latest);
        }
        let fresh = self.fresh();
        self.shift(open, start, fresh);
        let run = &mut self.runs[fresh];
        (run.destination, run.segment) = (Some(destination), segment);
        self.used = fresh + 1;
        fresh
    }

    /// Returns the latest run for this destination, if it is one of the last few.
    fn latest(&self, destination: Destination) -> Option<usize> {
        let recent = (0..self.used).rev().take(LOOK_BACK);
        recent.into_iter().find(|&at| self.runs[at].destination == Some(destination))
    }

    /// Moves the bytes from `start` on in one run to the end of another run; returns the other run.
    fn shift(&mut self, from: usize, start: usize, to: usize) -> usize {
        let mut bytes = std::mem::take(&mut self.runs[from].bytes);
        self.runs[to].bytes.extend_from_slice(&bytes[start..]);
        bytes.truncate(start);
        self.runs[from].bytes = bytes;
        to
    }

    /// Returns an empty run behind all others; it counts once it has packets.
    fn fresh(&mut self) -> usize {
        if self.used == self.runs.len() {
            self.runs.push(Run::default());
        }
        let run = &mut self.runs[self.used];
        run.bytes.clear();
        (run.destination, run.segment) = (None, 0);
        self.used
    }

    /// Adds the result of one `poll_transmit`.
    #[cfg(test)]
    pub(crate) fn push(&mut self, transmit: &Transmit, packets: &[u8]) {
        let open = self.fresh();
        self.runs[open].bytes.extend_from_slice(packets);
        self.settle(open, transmit);
    }

    /// Returns the bytes of all packets.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns every run with its destination.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Destination, &Run)> {
        self.runs[..self.used].iter().filter_map(|run| Some((run.destination?, run)))
    }
}

impl Destination {
    fn of(transmit: &Transmit) -> Self {
        Destination {
            local: transmit.local,
            remote: transmit.remote,
            udp_port: transmit.encapsulation_port,
            ecn: transmit.ecn,
            may_fragment: transmit.may_fragment,
        }
    }
}

impl Run {
    /// Returns the number of packets that may follow, if they have the size of the present ones.
    fn room(&self) -> usize {
        match self.segment {
            0 => RUN_BYTES / PACKET_BYTES,
            segment if self.bytes.len().is_multiple_of(segment) => {
                let packets = self.bytes.len() / segment;
                let room = (RUN_BYTES - self.bytes.len().min(RUN_BYTES)) / segment.max(PACKET_BYTES);
                room.min(MAX_PACKETS.saturating_sub(packets))
            }
            _ => 0,
        }
    }

    /// Returns whether packets of `segment` bytes, `len` in total, may follow.
    fn takes(&self, segment: usize, len: usize) -> bool {
        self.fits(self.bytes.len(), segment, len)
    }

    /// Returns whether such packets may follow the first `start` bytes.
    fn fits(&self, start: usize, segment: usize, len: usize) -> bool {
        let single = len <= segment;
        let sizes_fit = segment == self.segment || (single && len < self.segment);
        let only_full = start.is_multiple_of(self.segment.max(1));
        sizes_fit && only_full && start + len <= RUN_BYTES
    }
}

/// Most bytes of packets taken from the core while it is locked.
const BATCH_BYTES: usize = 256 * 1024;
/// Most packets of a run: the limit of one call on Linux (UDP_MAX_SEGMENTS before 6.9).
const MAX_PACKETS: usize = 64;
/// Assumed packet size before the first packet of a run is known, that of an Ethernet: 44 of them are a run.
const PACKET_BYTES: usize = 1472;
/// Most bytes that the system takes in one call: a UDP payload over IPv4, rounded down.
pub(crate) const RUN_BYTES: usize = 65_000;
/// Number of last runs among which the latest of a destination is searched.
const LOOK_BACK: usize = 8;
/// Number of runs whose memory is kept.
const KEPT_RUNS: usize = 32;

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn transmit(path: u8, size: usize, segment_size: Option<usize>) -> Transmit {
        let local = IpAddr::from([127, 0, 0, path]);
        Transmit { segment_size, ..Transmit::single((local, local), Some(9899), size) }
    }

    /// Returns the runs of a batch of `(path, packet length, packets)`, as `(path, segment, bytes)`.
    fn runs(pushed: &[(u8, usize, usize)]) -> Vec<(u8, usize, usize)> {
        let mut batch = Batch::default();
        for &(path, len, count) in pushed {
            let size = len * count;
            batch.push(&transmit(path, size, (count > 1).then_some(len)), &vec![path; size]);
        }
        let last_octet = |address| match address {
            IpAddr::V4(address) => Ipv4Addr::octets(&address)[3],
            IpAddr::V6(_) => 0,
        };
        batch.iter().map(|(to, run)| (last_octet(to.local), run.segment, run.bytes.len())).collect()
    }

    #[test]
    fn alternating_paths_give_one_run_each() {
        assert_eq!(
            runs(&[(1, 1400, 1), (2, 1400, 1), (1, 1400, 3), (2, 1400, 1)]),
            [(1, 1400, 5600), (2, 1400, 2800)]
        );
    }

    #[test]
    fn a_shorter_packet_ends_a_run_and_a_longer_one_begins_another() {
        assert_eq!(runs(&[(1, 1400, 2), (1, 50, 1), (1, 1400, 1)]), [(1, 1400, 2850), (1, 1400, 1400)]);
        assert_eq!(runs(&[(1, 50, 1), (1, 1400, 1)]), [(1, 50, 50), (1, 1400, 1400)]);
        assert_eq!(runs(&[(1, 1400, 1), (1, 50, 2)]), [(1, 1400, 1400), (1, 50, 100)]);
    }

    #[test]
    fn runs_stay_within_what_the_system_takes() {
        assert_eq!(runs(&[(1, 1000, 60), (1, 1000, 5), (1, 1000, 1)]), [(1, 1000, 65_000), (1, 1000, 1000)]);
    }

    #[test]
    fn a_packet_that_may_be_fragmented_is_a_run_of_its_own() {
        let mut batch = Batch::default();
        for may_fragment in [false, true, false] {
            let transmit = Transmit { may_fragment, ..transmit(1, 1400, None) };
            batch.push(&transmit, &[0; 1400]);
        }
        let runs: Vec<_> = batch.iter().map(|(to, run)| (to.may_fragment, run.bytes.len())).collect();
        assert_eq!(runs, [(false, 2800), (true, 1400)]);
    }

    #[test]
    fn memory_is_used_again() {
        let mut batch = Batch::default();
        batch.push(&transmit(1, 1400, None), &[1; 1400]);
        batch.clear();
        assert_eq!(batch.iter().count(), 0);
        batch.push(&transmit(2, 7, None), &[2; 7]);
        assert_eq!(batch.iter().map(|(_, run)| run.bytes.clone()).collect::<Vec<_>>(), [[2; 7]]);
    }
}
