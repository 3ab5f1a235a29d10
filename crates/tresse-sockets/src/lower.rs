//! The sockets of this process that carry SCTP packets, over UDP (RFC 6951) or raw IP: one for each local address, shared by all
//! SCTP sockets. Owns how packets are received and sent. Independent of the contents of SCTP packets.

use std::ffi::OsStr;
use std::io::{self, ErrorKind, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use quinn_udp::{EcnCodepoint, RecvMeta, Transmit as Segments, UdpSocketState};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use socket2::{Domain, Protocol, Type};
use tresse_proto::{Datagram, Ecn, Endpoint, Instant, Transmit};

use crate::fragments;
use crate::intake::Buffers;
use crate::numbers::Private;

/// Layer between SCTP and IP.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Encapsulation {
    /// UDP (RFC 6951), with the port at which this process receives.
    Udp {
        /// The port.
        port: u16,
    },
    /// Raw IP: SCTP is protocol 132.
    RawIp,
}

impl Encapsulation {
    /// Returns the layer by the environment: UDP if `TRESSE_UDP_PORT` is set, otherwise raw IP if this process may open raw sockets,
    /// otherwise UDP with the default port.
    ///
    /// # Errors
    /// `INVAL` if the variable is set, but not a port: packets over raw IP would not reach a peer that expects UDP.
    pub(crate) fn of_environment() -> Result<Self, Errno> {
        let named = port_in(std::env::var_os("TRESSE_UDP_PORT").as_deref())?;
        Ok(match named {
            Some(port) => Encapsulation::Udp { port },
            None if open_raw(IpAddr::from([127, 0, 0, 1])).is_ok() => Encapsulation::RawIp,
            None => Encapsulation::Udp { port: DEFAULT_UDP_PORT },
        })
    }

    /// Returns the UDP port to use for a peer whose port is not known; 0 for raw IP.
    pub(crate) fn peer_port(self) -> u16 {
        match self {
            Encapsulation::Udp { port: 0 } => DEFAULT_UDP_PORT,
            Encapsulation::Udp { port } => port,
            Encapsulation::RawIp => 0,
        }
    }
}

/// Returns the port in a variable; `None` if it is not set or empty.
fn port_in(variable: Option<&OsStr>) -> Result<Option<u16>, Errno> {
    let Some(text) = variable.filter(|text| !text.is_empty()) else { return Ok(None) };
    text.to_str().and_then(|text| text.parse().ok()).map(Some).ok_or(Errno::INVAL)
}

/// The UDP port registered for encapsulated SCTP (RFC 6951 §5.1).
const DEFAULT_UDP_PORT: u16 = 9899;

/// The socket of one local address.
pub(crate) struct LowerSocket {
    local: IpAddr,
    raw: bool,
    io: Private<UdpSocket>,
    state: UdpSocketState,
}

impl LowerSocket {
    /// Opens a socket on `local`. If another process has the UDP port, the socket gets another port, and only peers that this
    /// process has sent to can reach it.
    pub(crate) fn open(local: IpAddr, carrier: Encapsulation) -> io::Result<Arc<Self>> {
        let io = match carrier {
            Encapsulation::RawIp => open_raw(local)?,
            Encapsulation::Udp { port } => match UdpSocket::bind((local, port)) {
                Err(error) if error.kind() == ErrorKind::AddrInUse => UdpSocket::bind((local, 0))?,
                bound => bound?,
            },
        };
        let io = Private::moved(io);
        io.set_nonblocking(true)?;
        let state = UdpSocketState::new((&io).into())?;
        // The system may grant less. A batch must fit while the driver is busy elsewhere.
        let _ = state.set_recv_buffer_size((&io).into(), SOCKET_BUFFER);
        let _ = state.set_send_buffer_size((&io).into(), SOCKET_BUFFER);
        Ok(Arc::new(LowerSocket { local, raw: carrier == Encapsulation::RawIp, io, state }))
    }

    pub(crate) fn local(&self) -> IpAddr {
        self.local
    }

    /// Receives one batch into `buffers`; returns whether more may be left.
    pub(crate) fn receive(&self, buffers: &mut Buffers, inbox: &mut Vec<Datagram>) -> bool {
        let mut meta = [RecvMeta::default(); RECEIVE_BATCH];
        let mut slices: Vec<IoSliceMut<'_>> =
            buffers.ready.iter_mut().map(|buffer| IoSliceMut::new(buffer)).collect();
        let received = self.state.recv((&self.io).into(), &mut slices, &mut meta);
        // An error concerns a packet that was sent before, and not this read.
        let Ok(count) = received else {
            return received.is_err_and(|error| error.kind() != ErrorKind::WouldBlock);
        };
        for (at, meta) in meta.iter().take(count).enumerate() {
            let filled = buffers.take(at, meta.len);
            let datagram = |encapsulation_port, packet| Datagram {
                local: self.local,
                remote: meta.addr.ip(),
                encapsulation_port,
                ecn: codepoint(meta.ecn),
                payload: filled.keep(packet),
            };
            if !self.raw {
                let packets = filled.bytes().chunks(meta.stride.max(1));
                inbox.extend(packets.map(|packet| datagram(Some(meta.addr.port()), packet)));
            } else if let Some(packet) = self.behind_ip(filled.bytes()) {
                inbox.push(datagram(None, packet));
            }
        }
        count == RECEIVE_BATCH
    }

    /// Returns the payload after the IP header. Raw IPv4 sockets return the header too (RFC 791 §3.1), raw IPv6 sockets do not.
    fn behind_ip<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        if self.local.is_ipv6() {
            return Some(bytes);
        }
        let first = *bytes.first()?;
        let words = usize::from(first & 0x0f);
        if first >> 4 != 4 || words < 5 {
            return None;
        }
        bytes.get(words * 4..)
    }

    /// Sends the packets of one `poll_transmit`. A packet that the system refuses is lost as if the network had dropped it.
    pub(crate) fn send(&self, transmit: &Transmit, packets: &[u8]) {
        let to = match (self.raw, transmit.encapsulation_port) {
            (false, Some(port)) => SocketAddr::new(transmit.remote, port),
            (true, None) => SocketAddr::new(transmit.remote, 0),
            _ => return,
        };
        let segment = transmit.segment_size.unwrap_or(packets.len()).max(1);
        let in_one = if self.raw { 1 } else { self.state.max_gso_segments().min(RUN_BYTES / segment).max(1) };
        for part in packets.chunks(segment.saturating_mul(in_one)) {
            let send = |part| self.send_part(to, transmit.ecn, segment, part);
            if transmit.may_fragment {
                let _ = fragments::permitted(&self.io, self.local, || send(part));
            } else if send(part).is_err() && part.len() > segment {
                // The interface has no segmentation offload: one packet at a time still works.
                for packet in part.chunks(segment) {
                    let _ = send(packet);
                }
            }
        }
    }

    fn send_part(&self, to: SocketAddr, ecn: Ecn, segment: usize, contents: &[u8]) -> io::Result<()> {
        let segment_size = (contents.len() > segment).then_some(segment);
        let segments = Segments { destination: to, ecn: mark(ecn), contents, segment_size, src_ip: None };
        for _ in 0..SEND_ATTEMPTS {
            match self.state.try_send((&self.io).into(), &segments) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.wait_for_room(),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                sent => return sent,
            }
        }
        Ok(())
    }

    /// Waits at most a millisecond until the interface takes more packets, as a blocking call would.
    fn wait_for_room(&self) {
        let limit = rustix::time::Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
        let _ = poll(&mut [PollFd::new(&self.io, PollFlags::OUT)], Some(&limit));
    }
}

impl AsFd for LowerSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.io.as_fd()
    }
}

/// Packets on their way from the core to the system.
#[derive(Default)]
pub(crate) struct Outbox {
    transmits: Vec<Transmit>,
    bytes: Vec<u8>,
}

impl Outbox {
    /// Takes packets from the core until it has none, or the outbox is full; returns whether it is full.
    pub(crate) fn fill(&mut self, endpoint: &mut Endpoint, now: Instant) -> bool {
        while self.bytes.len() < BATCH_BYTES {
            match endpoint.poll_transmit(now, MAX_PACKETS, &mut self.bytes) {
                Some(transmit) => self.transmits.push(transmit),
                None => return false,
            }
        }
        true
    }

    /// Returns the number of bytes of its packets.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn send(&mut self, lower: &[Arc<LowerSocket>]) {
        let mut rest = self.bytes.as_slice();
        for transmit in self.transmits.drain(..) {
            let Some((packets, behind)) = rest.split_at_checked(transmit.size) else { break };
            if let Some(socket) = lower.iter().find(|socket| socket.local() == transmit.local) {
                socket.send(&transmit, packets);
            }
            rest = behind;
        }
        self.bytes.clear();
    }
}

/// Opens a raw socket, in the type for datagram sockets.
fn open_raw(local: IpAddr) -> io::Result<UdpSocket> {
    let local = SocketAddr::new(local, 0);
    let socket = socket2::Socket::new(Domain::for_address(local), Type::RAW, Some(Protocol::from(132)))?;
    socket.bind(&local.into())?;
    Ok(socket.into())
}

/// Returns the addresses of this host's interfaces. Other addresses that a program can use, such as 127.0.0.2, are not among them.
pub(crate) fn host_addresses() -> Result<Vec<IpAddr>, Errno> {
    let interfaces = if_addrs::get_if_addrs().map_err(|_| Errno::NODEV)?;
    let mut addresses: Vec<IpAddr> = Vec::new();
    for address in interfaces.iter().map(if_addrs::Interface::ip) {
        // A socket on a link-local address would need the scope of its link.
        let of_link = matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
        if !of_link && !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    Ok(addresses)
}

/// Returns the source address of this host towards `remote`.
pub(crate) fn source_towards(remote: IpAddr) -> Result<IpAddr, Errno> {
    let any: SocketAddr = if remote.is_ipv4() { ([0; 4], 0).into() } else { ([0; 16], 0).into() };
    let unreachable = |error: io::Error| Errno::from_io_error(&error).unwrap_or(Errno::NETUNREACH);
    // Connecting a UDP socket sends nothing: it looks up the route.
    let probe = UdpSocket::bind(any).map_err(unreachable)?;
    probe.connect((remote, DEFAULT_UDP_PORT)).map_err(unreachable)?;
    Ok(probe.local_addr().map_err(unreachable)?.ip())
}

/// Waits until a packet arrives at one of `sockets`, `other` shows one of `events`, or `limit` is over.
pub(crate) fn wait(
    sockets: &[Arc<LowerSocket>],
    (other, events): (BorrowedFd<'_>, PollFlags),
    limit: Option<Duration>,
) -> Result<(), Errno> {
    let mut fds: Vec<PollFd<'_>> = Vec::with_capacity(sockets.len() + 1);
    fds.push(PollFd::from_borrowed_fd(other, events));
    fds.extend(sockets.iter().map(|socket| PollFd::new(&**socket, PollFlags::IN)));
    let limit = limit.and_then(|limit| rustix::time::Timespec::try_from(limit).ok());
    poll(&mut fds, limit.as_ref()).map(|_| ())
}

fn mark(ecn: Ecn) -> Option<EcnCodepoint> {
    match ecn {
        Ecn::NotEct => None,
        Ecn::Ect1 => Some(EcnCodepoint::Ect1),
        Ecn::Ect0 => Some(EcnCodepoint::Ect0),
        Ecn::Ce => Some(EcnCodepoint::Ce),
    }
}

fn codepoint(mark: Option<EcnCodepoint>) -> Ecn {
    match mark {
        None => Ecn::NotEct,
        Some(EcnCodepoint::Ect1) => Ecn::Ect1,
        Some(EcnCodepoint::Ect0) => Ecn::Ect0,
        Some(EcnCodepoint::Ce) => Ecn::Ce,
    }
}

/// Buffers handed to the system in one receive call.
pub(crate) const RECEIVE_BATCH: usize = 8;
/// Size in bytes that is requested for socket buffers.
const SOCKET_BUFFER: usize = 4 * 1024 * 1024;
/// Bytes that the system takes in one call: a UDP payload over IPv4, rounded down.
const RUN_BYTES: usize = 65_000;
/// Attempts to send on a full interface, a millisecond apart, before the packet counts as lost.
const SEND_ATTEMPTS: u32 = 10;
/// Bytes of packets that are taken from the core at a time.
const BATCH_BYTES: usize = 256 * 1024;
/// Greatest number of packets to one destination that are sent at once.
const MAX_PACKETS: usize = 44;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_that_names_no_port_is_refused_and_an_empty_one_is_none() {
        let read = |text: &str| port_in(Some(OsStr::new(text)));
        assert_eq!((port_in(None), read("")), (Ok(None), Ok(None)));
        assert_eq!((read("9899"), read("0")), (Ok(Some(9899)), Ok(Some(0))));
        for wrong in ["9899 ", "udp:9899", "65536", "-1", "x"] {
            assert_eq!(read(wrong), Err(Errno::INVAL), "{wrong:?}");
        }
    }
}
