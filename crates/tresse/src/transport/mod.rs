//! What carries SCTP packets: the driver hands it batches to send and takes what arrived.
//!
//! Owns sockets, batching and what the operating system says about addresses. Refuses to know what
//! a packet contains. UDP encapsulation is the one transport now; raw IP joins beside it, behind
//! the same four verbs: bind, receive, send, flush.

mod socket;
mod udp;

pub use udp::{DEFAULT_UDP_PORT, source_towards};

pub(crate) use udp::Udp;

use std::net::IpAddr;

use tresse_proto::{Endpoint, Instant, Transmit};

/// What the operating system did with the packets of one local address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LocalStats {
    /// The address.
    pub local: IpAddr,
    /// Packets that it refused to send; the transport treats them as lost on the way.
    pub send_errors: u64,
    /// Packets dropped here because the socket stayed full.
    pub overflows: u64,
    /// Errors while receiving.
    pub receive_errors: u64,
    /// The latest of these errors, in words.
    pub last_error: Option<String>,
}

impl LocalStats {
    fn new(local: IpAddr) -> Self {
        LocalStats { local, send_errors: 0, overflows: 0, receive_errors: 0, last_error: None }
    }
}

/// Packets on their way from the core to the sockets: what several `poll_transmit` appended.
#[derive(Default)]
pub(crate) struct Batch {
    /// The packets, one after the other.
    pub(crate) bytes: Vec<u8>,
    /// What the bytes are, in their order.
    pub(crate) transmits: Vec<Transmit>,
}

impl Batch {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.transmits.clear();
    }

    /// Takes packets from `core` until it has none, or the batch is full: then the answer is true.
    pub(crate) fn fill(&mut self, core: &mut Endpoint, now: Instant) -> bool {
        while self.bytes.len() < BATCH_BYTES {
            match core.poll_transmit(now, MAX_PACKETS, &mut self.bytes) {
                Some(transmit) => self.transmits.push(transmit),
                None => return false,
            }
        }
        true
    }

    /// Every transmit with its bytes.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Transmit, &[u8])> {
        let mut rest = self.bytes.as_slice();
        self.transmits.iter().map(move |transmit| {
            let (packets, after) = rest.split_at(transmit.size.min(rest.len()));
            rest = after;
            (transmit, packets)
        })
    }
}

/// Bytes of packets taken from the core while it is locked.
const BATCH_BYTES: usize = 256 * 1024;
/// Packets of one destination in a row; the socket cuts further where the system wants it.
const MAX_PACKETS: usize = 64;
