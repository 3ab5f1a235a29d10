//! Transports of SCTP packets: they send batches of the driver, and return arrived packets.
//!
//! Owns sockets, batching and the operating system's data about addresses. Independent of the contents of packets. UDP
//! encapsulation and raw IP differ in the binding of sockets and in the header in front of a packet; everything else is
//! the same.

mod batch;
mod buffers;
mod fragments;
mod interface;
mod raw;
mod raw_port;
mod readiness;
mod reservation;
mod room;
mod socket;
mod sockets;
mod steering;
mod udp;

pub use udp::DEFAULT_UDP_PORT;

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
    /// The interface by which its packets leave if it leads to the destination (Linux, SO_BINDTODEVICE); `None` for loopback, and if the
    /// system does not let sockets be bound to interfaces. Packets that arrive by other interfaces count too.
    pub interface: Option<String>,
    /// Packets that the system refused to send; the transport treats them as lost on the way.
    pub send_errors: u64,
    /// Packets dropped at this host because the socket stayed full.
    pub overflows: u64,
    /// Errors while receiving.
    pub receive_errors: u64,
    /// The latest of these errors, as text.
    pub last_error: Option<String>,
}

/// True if the system reports the ECN codepoint of arriving packets. A host without that information must not use ECN
/// (RFC 3168 §6.1).
pub(crate) const TELLS_MARKS: bool = cfg!(any(
    target_os = "linux",
    target_os = "android",
    target_os = "freebsd",
    target_vendor = "apple",
    target_os = "windows",
));

/// Protocol number of SCTP at IANA, for headers of IP; not every system defines it.
const SCTP_IN_IP: i32 = 132;

impl LocalStats {
    fn new(local: IpAddr, interface: Option<String>) -> Self {
        LocalStats { local, interface, send_errors: 0, overflows: 0, receive_errors: 0, last_error: None }
    }

    /// Adds the counters of another socket of the same address.
    fn merge(&mut self, other: &LocalStats) {
        self.send_errors += other.send_errors;
        self.overflows += other.overflows;
        self.receive_errors += other.receive_errors;
        self.interface = self.interface.take().or_else(|| other.interface.clone());
        self.last_error = self.last_error.take().or_else(|| other.last_error.clone());
    }
}
