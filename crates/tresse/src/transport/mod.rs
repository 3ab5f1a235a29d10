//! Transports of SCTP packets: they send batches of the driver, and return arrived packets.
//!
//! Owns sockets, batching and the operating system's data about addresses. Independent of the contents of
//! packets. UDP encapsulation and raw IP differ in how sockets are bound and in what is in front
//! of a packet; everything else is the same.

mod batch;
mod buffers;
mod interface;
mod raw;
mod readiness;
mod reservation;
mod room;
mod socket;
mod sockets;
mod steering;
mod udp;

pub use udp::{DEFAULT_UDP_PORT, source_towards};

pub(crate) use batch::Batch;
pub(crate) use raw::bind as bind_raw;
pub(crate) use room::{DriverBuffers, with_room};
pub(crate) use socket::Socket;
pub(crate) use sockets::{Sockets, stats_of_addresses};
pub(crate) use steering::{driver_of, driver_of_packet};
pub(crate) use udp::bind as bind_udp;

use std::net::IpAddr;

/// Counters of the operating system for the packets of one local address.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LocalStats {
    /// The address.
    pub local: IpAddr,
    /// The interface that its packets leave by wherever a route leads there (Linux, SO_BINDTODEVICE); `None` for loopback,
    /// and where the system does not let sockets be bound to interfaces. What arrives by others counts too.
    pub interface: Option<String>,
    /// Packets that it refused to send; the transport treats them as lost on the way.
    pub send_errors: u64,
    /// Packets dropped here because the socket stayed full.
    pub overflows: u64,
    /// Errors while receiving.
    pub receive_errors: u64,
    /// The latest of these errors, in words.
    pub last_error: Option<String>,
}

/// True where the system tells with which codepoint a packet arrived. Whoever cannot know must not ask for marks in place
/// of losses (RFC 3168 §6.1).
pub(crate) const TELLS_MARKS: bool = cfg!(any(
    target_os = "linux",
    target_os = "android",
    target_os = "freebsd",
    target_vendor = "apple",
    target_os = "windows",
));

impl LocalStats {
    fn new(local: IpAddr, interface: Option<String>) -> Self {
        LocalStats { local, interface, send_errors: 0, overflows: 0, receive_errors: 0, last_error: None }
    }

    /// Takes in what another socket of the same address met.
    fn merge(&mut self, other: &LocalStats) {
        self.send_errors += other.send_errors;
        self.overflows += other.overflows;
        self.receive_errors += other.receive_errors;
        self.interface = self.interface.take().or_else(|| other.interface.clone());
        self.last_error = self.last_error.take().or_else(|| other.last_error.clone());
    }
}
