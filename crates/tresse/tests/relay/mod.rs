//! A datagram relay between two endpoints on loopback that can lose what it is told to lose.
//!
//! It is invisible to SCTP: for every path it holds the server's address towards the client and the
//! client's address towards the server, on UDP ports of its own. Both sides therefore see the
//! addresses that they know, from ports that RFC 6951 lets them learn.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

/// One relayed path for each pair of addresses by position.
pub(crate) struct Relay {
    port: u16,
    paths: Vec<Arc<Path>>,
    tasks: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Path {
    cut: AtomicBool,
    forwarded: AtomicU64,
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

    /// From now on loses everything on `path`, or nothing more.
    pub(crate) fn cut(&self, path: usize, cut: bool) {
        self.paths[path].cut.store(cut, Ordering::Relaxed);
    }

    /// Bytes that `path` has carried in both directions.
    pub(crate) fn forwarded(&self, path: usize) -> u64 {
        self.paths[path].forwarded.load(Ordering::Relaxed)
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
        if let Some(to) = to.filter(|_| !path.cut.load(Ordering::Relaxed)) {
            path.forwarded.fetch_add(datagram.len() as u64, Ordering::Relaxed);
            let _ = socket.send_to(datagram, to).await;
        }
    }
}
