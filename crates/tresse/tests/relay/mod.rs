//! A datagram relay between two endpoints on loopback that can lose what it is told to lose, or a share of
//! everything, and put some of it into another order.
//!
//! It is invisible to SCTP: for every path it holds the server's address towards the client and the
//! client's address towards the server, on UDP ports of its own. Both sides therefore see the
//! addresses that they know, from ports that RFC 6951 lets them learn.

#![allow(dead_code, reason = "every test file uses a part of it")]

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

/// One relayed path for each pair of addresses by position.
pub(crate) struct Relay {
    port: u16,
    paths: Vec<Arc<Path>>,
    tasks: Vec<JoinHandle<()>>,
}

struct Path {
    /// Bytes carried in both directions.
    forwarded: AtomicU64,
    /// From how many of them on only datagrams up to `longest` pass.
    limit: AtomicU64,
    longest: AtomicUsize,
    /// The only types of chunk that the server's packets may begin with; empty when all may.
    gag: Mutex<&'static [u8]>,
    /// Whether it loses and reorders at random.
    rough: AtomicBool,
    /// Whether everything meets congestion on it.
    congested: AtomicBool,
    /// Bytes from the client, and from the server.
    carried: [AtomicU64; 2],
    /// Types of the chunks that the client sent, and those that the server sent.
    chunks: [Mutex<BTreeSet<u8>>; 2],
}

impl Default for Path {
    fn default() -> Self {
        Path {
            forwarded: AtomicU64::new(0),
            limit: AtomicU64::new(u64::MAX),
            longest: AtomicUsize::new(0),
            gag: Mutex::default(),
            rough: AtomicBool::new(false),
            congested: AtomicBool::new(false),
            carried: Default::default(),
            chunks: Default::default(),
        }
    }
}

impl Path {
    fn note(&self, sender: usize, packet: &[u8]) {
        self.carried[sender].fetch_add(packet.len() as u64, Ordering::SeqCst);
        let mut seen = self.chunks[sender].lock().unwrap_or_else(PoisonError::into_inner);
        seen.extend(chunk_types(packet));
    }
}

/// Types of the chunks of a packet (RFC 9260 §3).
fn chunk_types(packet: &[u8]) -> impl Iterator<Item = u8> {
    let mut rest = packet.get(12..).unwrap_or_default();
    std::iter::from_fn(move || {
        let &[kind, _flags, high, low, ..] = rest else { return None };
        let length = usize::from(u16::from_be_bytes([high, low])).max(4).next_multiple_of(4);
        rest = rest.get(length..).unwrap_or_default();
        Some(kind)
    })
}

/// One direction of a path.
struct Direction {
    /// Decides what is lost and held: the same for the same sequence of datagrams.
    random: u32,
    /// A datagram that one sent after it overtakes.
    held: Option<(Vec<u8>, SocketAddr)>,
    /// Who sends: 0 for the client, 1 for the server.
    sender: usize,
}

impl Direction {
    fn new(sender: usize) -> Self {
        Direction { random: sender as u32, held: None, sender }
    }

    /// True once in `times`.
    fn once_in(&mut self, times: u32) -> bool {
        self.random = self.random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.random >> 8).is_multiple_of(times)
    }

    /// Sends a datagram, unless it is lost or held back for the next one.
    async fn pass(&mut self, path: &Path, socket: &UdpSocket, datagram: &[u8], to: SocketAddr) {
        path.note(self.sender, datagram);
        let rough = path.rough.load(Ordering::SeqCst);
        if path.silences(self.sender, datagram) {
            return;
        }
        if !path.passes(datagram.len()) || (rough && self.once_in(LOST_ONE_IN)) {
            return;
        }
        if rough && self.held.is_none() && self.once_in(HELD_ONE_IN) {
            self.held = Some((datagram.to_vec(), to));
            return;
        }
        if path.congested.load(Ordering::SeqCst) {
            rustix::net::sockopt::set_ip_tos(socket, CONGESTION_EXPERIENCED).expect("a socket of IPv4");
        }
        let _ = socket.send_to(datagram, to).await;
        self.release(socket).await;
    }

    /// Sends what was held back.
    async fn release(&mut self, socket: &UdpSocket) {
        if let Some((datagram, to)) = self.held.take() {
            let _ = socket.send_to(&datagram, to).await;
        }
    }
}

impl Path {
    /// Whether the sender may not say this.
    fn silences(&self, sender: usize, datagram: &[u8]) -> bool {
        let gag = *self.gag.lock().unwrap_or_else(PoisonError::into_inner);
        let may_pass = || chunk_types(datagram).next().is_some_and(|kind| gag.contains(&kind));
        sender == SERVER && !gag.is_empty() && !may_pass()
    }

    /// Whether a datagram of `len` bytes passes; if so, it is counted.
    fn passes(&self, len: usize) -> bool {
        let limited = self.forwarded.load(Ordering::SeqCst) >= self.limit.load(Ordering::SeqCst);
        let passes = !limited || len <= self.longest.load(Ordering::SeqCst);
        if passes {
            self.forwarded.fetch_add(len as u64, Ordering::SeqCst);
        }
        passes
    }
}

impl Relay {
    /// Relays between clients on `client` and the server on `server`, which takes UDP on `server_port`.
    pub(crate) async fn start(client: &[IpAddr], server: &[IpAddr], server_port: u16) -> Self {
        let towards_client = bind_same_port(server).await;
        let towards_server = bind_same_port(client).await;
        let port = towards_client[0].local_addr().expect("bound").port();
        let mut relay = Relay { port, paths: Vec::new(), tasks: Vec::new() };
        let client_port = Arc::new(AtomicU16::new(0));
        let ends = client.iter().zip(server).map(|(&client, &server)| (client, (server, server_port).into()));
        for ((front, back), ends) in towards_client.into_iter().zip(towards_server).zip(ends) {
            let path = Arc::new(Path::default());
            relay.paths.push(Arc::clone(&path));
            relay.tasks.push(tokio::spawn(forward(front, back, ends, path, Arc::clone(&client_port))));
        }
        relay
    }

    /// The UDP port that clients take for the server's.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Loses everything on `path` once it has carried `bytes`.
    pub(crate) fn cut_after(&self, path: usize, bytes: u64) {
        self.limit(path, bytes, 0);
    }

    /// Loses all but short packets on `path` once it has carried `bytes`: no data, but the words around it.
    pub(crate) fn starve_after(&self, path: usize, bytes: u64) {
        self.limit(path, bytes, SHORT);
    }

    /// From now on loses what the server sends, but for packets that begin with a chunk of one of these types; no
    /// types let all pass again.
    pub(crate) fn gag(&self, kinds: &'static [u8]) {
        for path in &self.paths {
            *path.gag.lock().unwrap_or_else(PoisonError::into_inner) = kinds;
        }
    }

    /// Loses nothing on `path` any more.
    pub(crate) fn mend(&self, path: usize) {
        self.limit(path, u64::MAX, 0);
    }

    /// Loses one datagram of a hundred on every path, and lets one of fifty be overtaken.
    pub(crate) fn roughen(&self) {
        self.paths.iter().for_each(|path| path.rough.store(true, Ordering::SeqCst));
    }

    /// From now on marks every datagram, whether its sender asked for that or not.
    pub(crate) fn congest(&self) {
        self.paths.iter().for_each(|path| path.congested.store(true, Ordering::SeqCst));
    }

    /// Types of the chunks that clients sent, and of those that the server sent.
    pub(crate) fn chunks(&self) -> [BTreeSet<u8>; 2] {
        [0, 1].map(|sender| {
            let seen =
                |path: &Arc<Path>| path.chunks[sender].lock().unwrap_or_else(PoisonError::into_inner).clone();
            self.paths.iter().flat_map(seen).collect()
        })
    }

    /// Neither loses nor reorders at random any more.
    pub(crate) fn smoothen(&self) {
        self.paths.iter().for_each(|path| path.rough.store(false, Ordering::SeqCst));
    }

    /// Bytes that the client sent on `path`, and those that the server sent.
    pub(crate) fn carried(&self, path: usize) -> [u64; 2] {
        [0, 1].map(|sender| self.paths[path].carried[sender].load(Ordering::SeqCst))
    }

    /// Waits until `path` loses packets.
    pub(crate) async fn limited(&self, path: usize) {
        let path = &self.paths[path];
        while path.forwarded.load(Ordering::SeqCst) < path.limit.load(Ordering::SeqCst) {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    }

    fn limit(&self, path: usize, bytes: u64, longest: usize) {
        self.paths[path].longest.store(longest, Ordering::SeqCst);
        self.paths[path].limit.store(bytes, Ordering::SeqCst);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// Sockets on all `addresses` with one port that the system picks.
async fn bind_same_port(addresses: &[IpAddr]) -> Vec<UdpSocket> {
    'pick: loop {
        let mut sockets: Vec<UdpSocket> = Vec::new();
        for &address in addresses {
            let port = sockets.first().map_or(0, |first| first.local_addr().expect("bound").port());
            match UdpSocket::bind((address, port)).await {
                Ok(socket) => {
                    lengthen_queue(&socket);
                    sockets.push(socket);
                }
                Err(_) if port != 0 => continue 'pick,
                Err(error) => panic!("cannot bind {address}: {error}"),
            }
        }
        return sockets;
    }
}

/// Requests a receive queue for all that a sender may have in flight: on a busy machine it comes while no task of the
/// relay runs. The usual queue holds some 90 datagrams, and what is lost behind them may be an ABORT, which is never
/// repeated.
fn lengthen_queue(socket: &UdpSocket) {
    // The system may grant less, and needs CAP_NET_ADMIN for the second.
    let _ = rustix::net::sockopt::set_socket_recv_buffer_size(socket, QUEUE);
    #[cfg(target_os = "linux")]
    let _ = rustix::net::sockopt::set_socket_recv_buffer_size_force(socket, QUEUE);
}

/// Carries datagrams of one path in both directions, between the client's address and the server's.
///
/// The client's port is the one it sent from last, on any path. Its address is known: the system may have
/// chosen another one for a client that left the choice to it.
async fn forward(
    front: UdpSocket,
    back: UdpSocket,
    ends: (IpAddr, SocketAddr),
    path: Arc<Path>,
    client_port: Arc<AtomicU16>,
) {
    let (client, server) = ends;
    let (mut up, mut down) = (Direction::new(0), Direction::new(1));
    let (mut from_client, mut from_server) = (vec![0; 65_536], vec![0; 65_536]);
    loop {
        let flush = async {
            match up.held.is_some() || down.held.is_some() {
                true => tokio::time::sleep(LONGEST_HOLD).await,
                false => std::future::pending().await,
            }
        };
        tokio::select! {
            Ok((len, from)) = front.recv_from(&mut from_client) => {
                client_port.store(from.port(), Ordering::SeqCst);
                up.pass(&path, &back, &from_client[..len], server).await;
            }
            Ok((len, _)) = back.recv_from(&mut from_server) => {
                let port = client_port.load(Ordering::SeqCst);
                if port != 0 {
                    down.pass(&path, &front, &from_server[..len], SocketAddr::new(client, port)).await;
                }
            }
            () = flush => {
                up.release(&back).await;
                down.release(&front).await;
            }
        }
    }
}

/// Bytes of a receive queue.
const QUEUE: usize = 16 * 1024 * 1024;
/// What a server's `Direction::sender` is.
const SERVER: usize = 1;
/// The codepoint CE (RFC 3168 §5).
const CONGESTION_EXPERIENCED: u8 = 3;
/// Of the datagrams of a rough path, one in so many is lost.
const LOST_ONE_IN: u32 = 100;
/// One in so many lets the next one overtake.
const HELD_ONE_IN: u32 = 50;
/// When none comes to overtake it, a datagram is held no longer.
const LONGEST_HOLD: std::time::Duration = std::time::Duration::from_millis(10);
/// Longer than a SACK without gaps, a heartbeat, an abort; shorter than any packet with a full chunk of data.
const SHORT: usize = 300;
