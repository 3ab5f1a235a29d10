//! TCP hosts, for traffic that competes with the association: a small model of TCP, with real headers on the wire.
//!
//! It is Reno with selective acknowledgements as the RFCs define it, and not a complete stack. The application reads at
//! once. There is no Nagle algorithm, no keep-alive and no urgent data. Ports are not reused soon enough to need
//! TIME-WAIT. docs/scenarios.md has the reasons for not using `smoltcp`.

mod connection;
mod host;
mod receiver;
mod reno;
mod rtt;
mod segment;
mod sender;
mod work;

use std::time::Duration;

pub(crate) use host::{HostCounts, Place, TcpHost};
pub(crate) use work::HostRole;

/// Cross traffic of a pair of hosts.
#[derive(Clone, PartialEq, Debug)]
pub struct CrossTraffic {
    /// The path whose links it crosses.
    pub path: usize,
    /// True if data, or answers, are sent from the receiver's side to the sender's.
    pub reverse: bool,
    /// Kind of traffic.
    pub load: CrossLoad,
    /// Time at which it begins, before jitter.
    pub start: Duration,
    /// Time at which it ends, if it does.
    pub stop: Option<Duration>,
    /// Settings of TCP at both hosts.
    pub tcp: TcpSpec,
}

/// Traffic between the two hosts of a pair.
#[derive(Clone, PartialEq, Debug)]
pub enum CrossLoad {
    /// Bulk data without end, over so many connections at once.
    Bulk {
        /// Number of connections.
        flows: u16,
    },
    /// Web requests, each over a connection of its own, as in HTTP/1.0.
    Web(WebSpec),
}

impl CrossLoad {
    /// Name of the traffic in scenarios.
    pub const fn name(&self) -> &'static str {
        match self {
            CrossLoad::Bulk { .. } => "bulk",
            CrossLoad::Web(_) => "web",
        }
    }
}

/// Requests and answers.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct WebSpec {
    /// Number of users; each waits for an answer before thinking about the next request.
    pub users: u16,
    /// Mean time from an answer to the next request; exponentially distributed.
    pub think: Duration,
    /// Bytes of a request.
    pub request: u64,
    /// Mean bytes of an answer, which are Pareto distributed and at most a thousand times as many. The mean is that without
    /// this limit.
    pub response: u64,
    /// The shape of that distribution, above 1: the smaller, the heavier its tail.
    pub response_shape: f64,
}

/// Settings of a host's TCP.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct TcpSpec {
    /// Segments of the initial window (RFC 6928).
    pub initial_window: u32,
    /// The least retransmission timeout (RFC 6298 §2.4).
    pub rto_min: Duration,
    /// Bytes that may be in flight to a host, at most 2^24 - 2^8.
    pub receive_window: u64,
}

impl Default for TcpSpec {
    fn default() -> Self {
        TcpSpec { initial_window: 10, rto_min: Duration::from_secs(1), receive_window: 4 << 20 }
    }
}
