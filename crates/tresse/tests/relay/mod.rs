//! A datagram relay between two endpoints on loopback that can lose what it is told to lose.
//!
//! It is invisible to SCTP: for every path it holds the server's address towards the client and the
//! client's address towards the server, on UDP ports of its own. Both sides therefore see the
//! addresses that they know, from ports that RFC 6951 lets them learn.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

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
}

impl Default for Path {
    fn default() -> Self {
        Path { forwarded: AtomicU64::new(0), limit: AtomicU64::new(u64::MAX), longest: AtomicUsize::new(0) }
    }
}

impl Path {
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
        for ((front, back), &address) in towards_client.into_iter().zip(towards_server).zip(server) {
            let path = Arc::new(Path::default());
            relay.paths.push(Arc::clone(&path));
            relay.tasks.push(tokio::spawn(forward(front, back, (address, server_port).into(), path)));
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
    #[allow(dead_code, reason = "not every test file starves paths")]
    pub(crate) fn starve_after(&self, path: usize, bytes: u64) {
        self.limit(path, bytes, SHORT);
    }

    /// Loses nothing on `path` any more.
    #[allow(dead_code, reason = "not every test file mends paths")]
    pub(crate) fn mend(&self, path: usize) {
        self.limit(path, u64::MAX, 0);
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
                Ok(socket) => sockets.push(socket),
                Err(_) if port != 0 => continue 'pick,
                Err(error) => panic!("cannot bind {address}: {error}"),
            }
        }
        return sockets;
    }
}

/// Carries datagrams of one path in both directions; the client is whoever sent last.
async fn forward(front: UdpSocket, back: UdpSocket, server: SocketAddr, path: Arc<Path>) {
    let mut client = None;
    let (mut up, mut down) = (vec![0; 65_536], vec![0; 65_536]);
    loop {
        let (socket, to, datagram) = tokio::select! {
            Ok((len, from)) = front.recv_from(&mut up) => {
                client = Some(from);
                (&back, Some(server), &up[..len])
            }
            Ok((len, _)) = back.recv_from(&mut down) => (&front, client, &down[..len]),
        };
        if let Some(to) = to.filter(|_| path.passes(datagram.len())) {
            let _ = socket.send_to(datagram, to).await;
        }
    }
}

/// Longer than a SACK without gaps, a heartbeat, an abort; shorter than any packet with a full chunk of data.
const SHORT: usize = 300;
