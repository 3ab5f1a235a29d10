//! One socket on one local address, for SCTP in UDP or directly over IP: batches in and out, and a bounded backlog for
//! times when the operating system accepts no more packets.
//!
//! An error affects this socket only: it is counted, and the packet is lost as if the network had dropped it. The core
//! handles the effect on a path.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, SocketAddrV6, UdpSocket};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use quinn_udp::{BATCH_SIZE, EcnCodepoint, RecvMeta, Transmit as Segments, UdpSocketState};
use socket2::Type;
use tresse_proto::{Datagram, Ecn};

use super::LocalStats;
use super::batch::{Destination, RUN_BYTES, Run};
use super::buffers::{Buffers, RECEIVE_BATCH};
use super::fragments;
use super::interface;
use super::raw_port::RawPort;
use super::readiness::Polled;
use crate::host::HostAddress;

pub(crate) struct Socket {
    lower: LowerLayer,
    /// UDP or raw socket: the calls for sending and receiving are the same.
    io: Polled,
    state: UdpSocketState,
    backlog: VecDeque<BlockedPackets>,
    backlog_bytes: usize,
    /// The number of the interface to which the socket is bound.
    interface: Option<u32>,
    /// The scope of an IPv6 link-local address (RFC 4007), otherwise 0.
    scope: u32,
    stats: LocalStats,
}

/// Layer between an SCTP packet and IP.
pub(crate) enum LowerLayer {
    /// A UDP header (RFC 6951).
    Udp,
    /// No header.
    Raw(RawPort),
}

/// Destination of packets, and the fields of their IP headers that differ among packets.
#[derive(Copy, Clone)]
struct Heading {
    to: SocketAddr,
    ecn: Ecn,
    may_fragment: bool,
}

/// Packets of one destination that wait until the socket accepts them.
struct BlockedPackets {
    heading: Heading,
    segment: usize,
    bytes: Bytes,
}

impl Socket {
    /// Takes a bound socket of the kind of `lower`, which is bound to `interface` if that is given.
    pub(crate) fn new(
        socket: UdpSocket,
        lower: LowerLayer,
        interface: Option<&HostAddress>,
    ) -> io::Result<Self> {
        let bound = socket.local_addr()?;
        let scope = match bound {
            SocketAddr::V6(v6) => v6.scope_id(),
            SocketAddr::V4(_) => 0,
        };
        let local = bound.ip();
        socket.set_nonblocking(true)?;
        let state = UdpSocketState::new((&socket).into())?;
        // The system may grant less.
        let _ = state.set_recv_buffer_size((&socket).into(), RECEIVE_QUEUE);
        exceed_limit(&socket);
        let _ = state.set_send_buffer_size((&socket).into(), SEND_QUEUE);
        let io = Polled::new(socket)?;
        let stats = LocalStats::new(local, interface.map(|one| one.interface.clone()));
        let interface = interface.map(|one| one.index);
        Ok(Socket { lower, io, state, backlog: VecDeque::new(), backlog_bytes: 0, interface, scope, stats })
    }

    /// Opens a second socket on the same address and port, bound to `interface`; this socket then ignores that
    /// interface's packets. Returns `None` if the system refuses.
    pub(crate) fn beside(&mut self, interface: &HostAddress) -> Option<Socket> {
        let (kind, lower) = match &self.lower {
            LowerLayer::Udp => (Type::DGRAM, LowerLayer::Udp),
            LowerLayer::Raw(port) => (Type::RAW, LowerLayer::Raw(port.beside())),
        };
        let socket = interface::beside(self.io.socket(), kind, interface)?;
        let socket = Socket::new(socket, lower, Some(interface)).ok()?;
        if let LowerLayer::Raw(port) = &mut self.lower {
            port.leave_to_other(interface.index);
        }
        Some(socket)
    }

    /// Adds the counters of the socket that this one replaces.
    pub(crate) fn succeed(&mut self, former: &Socket) {
        self.stats.merge(&former.stats);
    }

    /// Returns the number of the interface to which the socket is bound.
    pub(crate) fn interface_index(&self) -> Option<u32> {
        self.interface
    }

    pub(crate) fn local(&self) -> IpAddr {
        self.stats.local
    }

    pub(crate) fn stats(&self) -> &LocalStats {
        &self.stats
    }

    /// Stops wake-ups of the driver by arriving packets.
    pub(crate) fn deregister(&mut self) {
        self.io.deregister();
    }

    /// Makes `poll_receive` query the system again, without a wake-up.
    pub(crate) fn poll_again(&mut self) {
        self.io.poll_again();
    }

    /// Enables wake-ups by arriving packets again; returns false if the system refuses that now.
    pub(crate) fn register(&mut self) -> bool {
        self.io.register()
    }

    /// Receives one batch into `inbox`, by way of `buffers`; pending if the socket is empty.
    pub(crate) fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        buffers: &mut Buffers,
        inbox: &mut Vec<Datagram>,
    ) -> Poll<()> {
        let mut errors = 0;
        loop {
            let mut meta = [RecvMeta::default(); RECEIVE_BATCH];
            let mut slices = buffers.slices();
            let most = RECEIVE_BATCH.min(BATCH_SIZE);
            let received = self
                .io
                .poll_receive(cx, most, |socket| self.state.recv(socket.into(), &mut slices, &mut meta));
            match ready!(received) {
                Ok(count) => {
                    for (at, meta) in meta[..count].iter().enumerate() {
                        self.split(meta, buffers, at, inbox);
                    }
                    return Poll::Ready(());
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => {
                    self.stats.receive_errors += 1;
                    self.stats.last_error = Some(error.to_string());
                    errors += 1;
                    if errors == ERRORS_PER_TURN {
                        return Poll::Ready(());
                    }
                }
            }
        }
    }

    /// Divides one received buffer into datagrams: with receive offload it has several.
    fn split(&self, meta: &RecvMeta, buffers: &mut Buffers, at: usize, inbox: &mut Vec<Datagram>) {
        let datagram = |encapsulation_port, payload| Datagram {
            local: self.stats.local,
            remote: meta.addr.ip(),
            encapsulation_port,
            ecn: codepoint(meta.ecn),
            payload,
        };
        let port = Some(meta.addr.port());
        let stride = meta.stride.max(1);
        match &self.lower {
            LowerLayer::Udp => match buffers.lend(at, meta.len) {
                Some(lent) => {
                    inbox.extend(lent.chunks(stride).map(|packet| datagram(port, lent.slice_ref(packet))));
                }
                None => {
                    let packets = buffers.filled(at, meta.len).chunks(stride);
                    inbox.extend(packets.map(|packet| datagram(port, Bytes::copy_from_slice(packet))));
                }
            },
            LowerLayer::Raw(port) => {
                let packet = port.packet(meta, self.stats.local, buffers.filled(at, meta.len));
                inbox.extend(packet.map(|packet| datagram(None, Bytes::copy_from_slice(packet))));
            }
        }
    }

    /// Returns the socket address for packets to `remote`; `None` if this kind of socket cannot carry them.
    fn address(&self, remote: IpAddr, udp_port: Option<u16>) -> Option<SocketAddr> {
        let port = match (&self.lower, udp_port) {
            (LowerLayer::Udp, Some(port)) => port,
            (LowerLayer::Raw(_), None) => 0,
            _ => return None,
        };
        Some(match remote {
            IpAddr::V6(v6) if v6.is_unicast_link_local() => SocketAddrV6::new(v6, port, 0, self.scope).into(),
            remote => SocketAddr::new(remote, port),
        })
    }

    /// Returns the number of packets of `segment` bytes that one system call takes.
    fn packets_per_call(&self, segment: usize) -> usize {
        match self.lower {
            LowerLayer::Udp => self.state.max_gso_segments().min(RUN_BYTES / segment).max(1),
            LowerLayer::Raw(_) => 1,
        }
    }

    /// Sends packets of one run, or puts them into the backlog; returns false if this socket cannot carry them.
    pub(crate) fn send(&mut self, destination: Destination, run: &Run) -> bool {
        let Some(to) = self.address(destination.remote, destination.udp_port) else { return false };
        let heading = Heading { to, ecn: destination.ecn, may_fragment: destination.may_fragment };
        let segment = run.segment;
        let sent = if self.backlog.is_empty() { self.send_some(heading, segment, &run.bytes) } else { 0 };
        let rest = &run.bytes[sent..];
        if !rest.is_empty() {
            self.postpone(heading, segment, rest);
        }
        true
    }

    fn postpone(&mut self, heading: Heading, segment: usize, rest: &[u8]) {
        if self.backlog_bytes + rest.len() > MAX_BACKLOG {
            self.stats.overflows += rest.len().div_ceil(segment.max(1)) as u64;
            return;
        }
        self.backlog_bytes += rest.len();
        self.backlog.push_back(BlockedPackets { heading, segment, bytes: Bytes::copy_from_slice(rest) });
    }

    /// Returns whether packets wait until the socket accepts them.
    pub(crate) fn is_blocked(&self) -> bool {
        !self.backlog.is_empty()
    }

    /// Sends the backlog; pending while the socket accepts no packets.
    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while let Some(mut waiting) = self.backlog.pop_front() {
            if self.io.poll_room(cx).is_pending() {
                self.backlog.push_front(waiting);
                return Poll::Pending;
            }
            let sent = self.send_some(waiting.heading, waiting.segment, &waiting.bytes);
            self.backlog_bytes -= sent;
            if sent < waiting.bytes.len() {
                let _ = waiting.bytes.split_to(sent);
                self.backlog.push_front(waiting);
            }
        }
        Poll::Ready(())
    }

    /// Sends until the socket is full. Returns the bytes handled: sent, or finally refused.
    fn send_some(&mut self, heading: Heading, segment: usize, bytes: &[u8]) -> usize {
        let segment = segment.max(1);
        let mut done = 0;
        while let Some(rest) = bytes.get(done..).filter(|rest| !rest.is_empty()) {
            let per_call = self.packets_per_call(segment).saturating_mul(segment);
            let part = &rest[..rest.len().min(per_call)];
            match self.send_part(heading, segment, part) {
                Ok(()) => done += part.len(),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // The interface has no segmentation offload, so packets are sent one at a time.
                Err(_) if part.len() > segment => done += self.send_singly(heading, segment, part),
                Err(error) => {
                    self.note_send_error(&error);
                    done += part.len();
                }
            }
        }
        done
    }

    fn send_singly(&mut self, heading: Heading, segment: usize, bytes: &[u8]) -> usize {
        let mut done = 0;
        for packet in bytes.chunks(segment) {
            match self.send_part(heading, segment, packet) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => self.note_send_error(&error),
                Ok(()) => {}
            }
            done += packet.len();
        }
        done
    }

    fn send_part(&self, heading: Heading, segment: usize, contents: &[u8]) -> io::Result<()> {
        let Heading { to, ecn, may_fragment } = heading;
        let segment_size = (contents.len() > segment).then_some(segment);
        let segments = Segments { destination: to, ecn: mark(ecn), contents, segment_size, src_ip: None };
        let send = || self.io.send(|socket| self.state.try_send(socket.into(), &segments));
        match may_fragment {
            true => fragments::permitted(self.io.socket(), self.stats.local, send),
            false => send(),
        }
    }

    fn note_send_error(&mut self, error: &io::Error) {
        self.stats.send_errors += 1;
        self.stats.last_error = Some(if is_too_large(error) {
            "a packet was larger than the network takes (setting \"mtu\")".to_owned()
        } else {
            error.to_string()
        });
    }
}

/// Requests the whole receive queue, if the process may exceed the system's limit (CAP_NET_ADMIN).
fn exceed_limit(_socket: &UdpSocket) {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let _ = rustix::net::sockopt::set_socket_recv_buffer_size_force(_socket, RECEIVE_QUEUE);
}

/// Returns whether the system refused a packet that is larger than the MTU of the interface, or of the path as known.
fn is_too_large(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::MSGSIZE.raw_os_error())
}

/// Converts a codepoint into the type of the system's interface.
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

/// Most bytes that wait for a full socket; further packets are dropped, as by a full queue.
const MAX_BACKLOG: usize = 1024 * 1024;
/// Requested size of the system's send queue: a batch must fit.
const SEND_QUEUE: usize = 4 * 1024 * 1024;
/// Requested size of the receive queue. All peers share it, and each fills its own window. If a thousand are busy and
/// the queue overflows, some lose whole flights and others nothing.
const RECEIVE_QUEUE: usize = 64 * 1024 * 1024;

/// Receive errors in a row after which the driver serves the other sockets.
const ERRORS_PER_TURN: u32 = 16;

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io::Write;

    use rustix::net::sockopt::{set_socket_recv_buffer_size_force, socket_recv_buffer_size};

    use super::*;

    #[tokio::test]
    async fn who_may_exceed_the_limit_has_a_queue_for_a_thousand_peers() {
        let bind = || std::net::UdpSocket::bind("127.0.0.1:0").expect("free");
        if set_socket_recv_buffer_size_force(bind(), RECEIVE_QUEUE).is_err() {
            let _ = writeln!(std::io::stderr(), "receive queue: skipped, CAP_NET_ADMIN is missing");
            return;
        }
        let socket = Socket::new(bind(), LowerLayer::Udp, None).expect("it is bound");
        assert!(socket_recv_buffer_size(socket.io.socket()).expect("Linux tells") >= RECEIVE_QUEUE);
    }
}
