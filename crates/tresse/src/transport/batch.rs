//! Packets on their way from the core to the sockets, gathered by destination.
//!
//! A path scheduler that alternates between paths gives one packet for each at a time, and the system
//! takes many packets in one call only if they have one destination and one size. So packets for the
//! same destination are put next to each other; among themselves they keep their order.

use std::net::IpAddr;

use tresse_proto::{Ecn, Endpoint, Instant, Transmit};

/// What one round of the driver sends.
#[derive(Default)]
pub(crate) struct Batch {
    /// The first `used` are filled, the others are kept for their memory.
    runs: Vec<Run>,
    used: usize,
    bytes: usize,
    scratch: Vec<u8>,
}

/// Packets of one destination and, except for the last, one size.
#[derive(Default)]
pub(crate) struct Run {
    destination: Option<Destination>,
    /// Length of each packet but the last.
    pub(crate) segment: usize,
    /// The packets, one after the other.
    pub(crate) bytes: Vec<u8>,
}

/// Between which addresses a packet travels, and how it is marked.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Destination {
    pub(crate) local: IpAddr,
    pub(crate) remote: IpAddr,
    pub(crate) udp_port: Option<u16>,
    /// The codepoint that its packets carry.
    pub(crate) ecn: Ecn,
}

impl Batch {
    pub(crate) fn clear(&mut self) {
        self.runs.truncate(KEPT_RUNS);
        (self.used, self.bytes) = (0, 0);
    }

    /// Takes packets from `core` until it has none, or the batch is full: then the answer is true.
    pub(crate) fn fill(&mut self, core: &mut Endpoint, now: Instant) -> bool {
        let mut scratch = std::mem::take(&mut self.scratch);
        let mut full = true;
        while self.bytes < BATCH_BYTES {
            scratch.clear();
            let Some(transmit) = core.poll_transmit(now, MAX_PACKETS, &mut scratch) else {
                full = false;
                break;
            };
            self.push(&transmit, &scratch);
        }
        self.scratch = scratch;
        full
    }

    /// Adds what one `poll_transmit` gave.
    pub(crate) fn push(&mut self, transmit: &Transmit, packets: &[u8]) {
        let destination = Destination {
            local: transmit.local,
            remote: transmit.remote,
            udp_port: transmit.encapsulation_port,
            ecn: transmit.ecn,
        };
        let segment = transmit.segment_size.unwrap_or(packets.len());
        self.bytes += packets.len();
        // Only the latest run of a destination may grow, or packets would overtake each other.
        let recent = self.runs[..self.used].iter_mut().rev().take(LOOK_BACK);
        let latest = recent.into_iter().find(|run| run.destination == Some(destination));
        if let Some(run) = latest.filter(|run| run.takes(segment, packets.len())) {
            run.bytes.extend_from_slice(packets);
            return;
        }
        if self.used == self.runs.len() {
            self.runs.push(Run::default());
        }
        let run = &mut self.runs[self.used];
        self.used += 1;
        run.destination = Some(destination);
        run.segment = segment;
        run.bytes.clear();
        run.bytes.extend_from_slice(packets);
    }

    /// Every run with its destination.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Destination, &Run)> {
        self.runs[..self.used].iter().filter_map(|run| Some((run.destination?, run)))
    }
}

impl Run {
    /// Whether packets of `segment` bytes, `len` in all, may follow.
    fn takes(&self, segment: usize, len: usize) -> bool {
        let single = len <= segment;
        let sizes_fit = segment == self.segment || (single && len < self.segment);
        let only_full = self.bytes.len().is_multiple_of(self.segment.max(1));
        sizes_fit && only_full && self.bytes.len() + len <= RUN_BYTES
    }
}

/// Bytes of packets taken from the core while it is locked.
const BATCH_BYTES: usize = 256 * 1024;
/// Packets of one destination in a row; the socket cuts further where the system wants it.
const MAX_PACKETS: usize = 64;
/// What the system takes in one call: a UDP payload over IPv4, rounded down.
pub(crate) const RUN_BYTES: usize = 65_000;
/// Runs among which the latest of a destination is looked for.
const LOOK_BACK: usize = 8;
/// Runs whose memory is kept.
const KEPT_RUNS: usize = 32;

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn transmit(path: u8, size: usize, segment_size: Option<usize>) -> Transmit {
        let local = IpAddr::from([127, 0, 0, path]);
        Transmit { segment_size, ..Transmit::single((local, local), Some(9899), size) }
    }

    /// The runs of a batch of `(path, packet length, packets)`, as `(path, segment, bytes)`.
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
    fn memory_is_used_again() {
        let mut batch = Batch::default();
        batch.push(&transmit(1, 1400, None), &[1; 1400]);
        batch.clear();
        assert_eq!(batch.iter().count(), 0);
        batch.push(&transmit(2, 7, None), &[2; 7]);
        assert_eq!(batch.iter().map(|(_, run)| run.bytes.clone()).collect::<Vec<_>>(), [[2; 7]]);
    }
}
