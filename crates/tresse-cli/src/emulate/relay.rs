//! The sockets of an emulation and the clock that drives it.
//!
//! Each socket has a task that reads. One task runs the emulation, sends and waits. Independent of the behaviour of links, which the
//! emulation models.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant as RealTime;
use tresse::Bytes;
use tresse_sim::{Delivery, Emulation, End, Instant};

use super::alarm::Alarm;
use super::lateness::{Lateness, LatenessReport};
use super::turn;
use crate::failure::Failure;

/// The relay's sockets: for each path one at the server's address, towards the client, and one at the client's address, towards the
/// server.
pub(super) struct Relay {
    /// By path, towards the client.
    front: Vec<Arc<UdpSocket>>,
    /// By path, towards the server.
    back: Vec<Arc<UdpSocket>>,
    client: Vec<IpAddr>,
    server: Vec<SocketAddr>,
    /// The port that the client sent from last, on any path.
    client_port: Option<u16>,
    /// Datagrams from neither client nor server.
    strangers: u64,
    /// Datagrams that the system refused to send.
    unsent: u64,
    lateness: Lateness,
    /// True if the relay's thread has a real-time priority.
    in_real_time: bool,
    started: RealTime,
}

/// A datagram that a socket has read.
struct Arrival {
    path: usize,
    from: End,
    source: SocketAddr,
    payload: Bytes,
}

impl Relay {
    /// Binds all sockets: those towards the client to `port`, or if it is 0, to one port that is free on all addresses.
    pub(super) async fn bind(
        client: Vec<IpAddr>,
        server: Vec<IpAddr>,
        server_port: u16,
        port: u16,
    ) -> Result<Self, Failure> {
        let front = bind_all(&server, port).await?;
        let back = bind_all(&client, 0).await?;
        Ok(Relay {
            front,
            back,
            client,
            server: server.into_iter().map(|address| (address, server_port).into()).collect(),
            client_port: None,
            strangers: 0,
            unsent: 0,
            lateness: Lateness::new().map_err(Failure::running)?,
            in_real_time: false,
            started: RealTime::now(),
        })
    }

    /// Returns the port to which clients send instead of the server's.
    pub(super) fn port(&self) -> Result<u16, Failure> {
        self.front[0].local_addr().map(|address| address.port()).map_err(Failure::running)
    }

    /// Returns the numbers of datagrams from neither client nor server, and of those that the system refused.
    pub(super) fn discarded(&self) -> (u64, u64) {
        (self.strangers, self.unsent)
    }

    /// Returns the lateness of the packets so far; `None` before the first.
    pub(super) fn lateness(&self) -> Option<LatenessReport> {
        self.lateness.report()
    }

    /// Returns whether the relay's thread has a real-time priority.
    pub(super) fn in_real_time(&self) -> bool {
        self.in_real_time
    }

    /// Returns the time since the emulation began.
    pub(super) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Returns the present time of the emulation.
    pub(super) fn now(&self) -> Instant {
        Instant::ZERO + self.elapsed()
    }

    /// Carries packets until the future is dropped.
    pub(super) async fn run(&mut self, emulation: &mut Emulation<'_>) -> Result<(), Failure> {
        let (sender, mut arrivals) = mpsc::channel(WAITING_DATAGRAMS);
        let mut readers = JoinSet::new();
        for (end, sockets) in [(End::Sender, &self.front), (End::Receiver, &self.back)] {
            for (path, socket) in sockets.iter().enumerate() {
                readers.spawn(read(Arc::clone(socket), path, end, sender.clone()));
            }
        }
        self.in_real_time = turn::come_first();
        let mut alarm = Alarm::new().map_err(Failure::running)?;
        self.started = RealTime::now();
        loop {
            let deadline = emulation.next_deadline();
            let due = deadline.map(|at| self.started + at.since(Instant::ZERO));
            tokio::select! {
                Some(arrival) = arrivals.recv() => self.take(emulation, arrival),
                outcome = alarm.wait(due) => outcome.map_err(Failure::running)?,
            }
            while let Ok(arrival) = arrivals.try_recv() {
                self.take(emulation, arrival);
            }
            while let Some(delivery) = emulation.poll(self.now()) {
                self.deliver(&delivery);
            }
            if let Some(error) = emulation.take_capture_failure() {
                return Err(Failure::running(format!("the capture could not be written: {error}")));
            }
        }
    }

    /// Passes a datagram to its link. Datagrams from neither client nor server are counted and discarded.
    fn take(&mut self, emulation: &mut Emulation<'_>, arrival: Arrival) {
        let Arrival { path, from, source, payload } = arrival;
        let known = match from {
            End::Sender => source.ip() == self.client[path],
            End::Receiver => source == self.server[path],
        };
        if !known {
            self.strangers += 1;
            return;
        }
        if from == End::Sender {
            self.client_port = Some(source.port());
        }
        let now = self.now();
        emulation.offer(now, path, from, payload);
    }

    /// Sends a packet that came out of a link. If the system refuses the packet, it is lost, as on a full network card.
    fn deliver(&mut self, delivery: &Delivery) {
        let path = delivery.path;
        let (socket, to) = match (delivery.to, self.client_port) {
            (End::Receiver, _) => (&self.back[path], self.server[path]),
            (End::Sender, Some(port)) => (&self.front[path], (self.client[path], port).into()),
            (End::Sender, None) => return,
        };
        if socket.try_send_to(&delivery.payload, to).is_err() {
            self.unsent += 1;
        }
        self.lateness.add(self.now().since(delivery.at));
    }
}

/// Reads datagrams until the receiving end of `arrivals` is dropped.
async fn read(socket: Arc<UdpSocket>, path: usize, from: End, arrivals: mpsc::Sender<Arrival>) {
    let mut buffer = vec![0; LONGEST_DATAGRAM];
    loop {
        // The error belongs to an earlier datagram that was refused (ICMP): nothing listens there.
        let Ok((length, source)) = socket.recv_from(&mut buffer).await else { continue };
        let payload = Bytes::copy_from_slice(&buffer[..length]);
        if arrivals.send(Arrival { path, from, source, payload }).await.is_err() {
            return;
        }
    }
}

/// Binds one socket on each address, all with the same port.
async fn bind_all(addresses: &[IpAddr], port: u16) -> Result<Vec<Arc<UdpSocket>>, Failure> {
    let mut attempt = 1;
    'attempt: loop {
        let mut sockets: Vec<Arc<UdpSocket>> = Vec::new();
        let mut common = port;
        for &address in addresses {
            match UdpSocket::bind((address, common)).await {
                Ok(socket) => {
                    common = socket.local_addr().map_err(Failure::running)?.port();
                    sockets.push(Arc::new(socket));
                }
                Err(error) if port == 0 && common != 0 && attempt < PORT_ATTEMPTS => {
                    // The port was free on the first address, and is in use on this one.
                    let _ = error;
                    attempt += 1;
                    continue 'attempt;
                }
                Err(error) => return Err(refused(address, common, &error)),
            }
        }
        return Ok(sockets);
    }
}

fn refused(address: IpAddr, port: u16, error: &io::Error) -> Failure {
    let what = format!("cannot take UDP port {port} on {address}: {error}");
    match error.kind() {
        io::ErrorKind::AddrNotAvailable => {
            Failure::usage(format!("{what} (both ends have to be this host, or routed through it)"))
        }
        io::ErrorKind::AddrInUse => Failure::running(format!("{what} (--port 0 takes any)")),
        _ => Failure::running(what),
    }
}

/// Most datagrams that wait for the emulation. Further ones wait in the buffers of the system, and are dropped if these are full.
const WAITING_DATAGRAMS: usize = 1024;
const LONGEST_DATAGRAM: usize = 65_536;
const PORT_ATTEMPTS: u32 = 64;
