//! A STUN client: a socket that requests the address from which its packets arrive at the peer.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::time::timeout;
use tresse::host;

use crate::stun::{Answer, Request, Transaction};

pub(super) struct Prober {
    socket: UdpSocket,
}

impl Prober {
    /// Opens a socket on a free port of `local`. Its packets to other hosts leave by the interface of `local`, if the system permits
    /// that.
    pub(super) async fn open(local: IpAddr, remote: IpAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind((local, 0)).await?;
        let here = host::route(remote, Some(local), None).is_ok_and(|route| route.local);
        let own = host::addresses()?.into_iter().find(|one| one.address == local && !one.loopback);
        if let Some(own) = own.filter(|_| !here) {
            bind_interface(&socket, &own.interface);
        }
        Ok(Prober { socket })
    }

    /// Returns a random transaction identifier.
    pub(super) fn transaction() -> Transaction {
        let mut bytes = Transaction::default();
        // Without random numbers any value suffices: the identifier only distinguishes answers.
        let _ = getrandom::fill(&mut bytes);
        bytes
    }

    /// Sends a request. If the system refuses the request, it counts as lost.
    pub(super) async fn send(&self, to: SocketAddr, request: Request) {
        let _ = self.socket.send_to(&request.encode(), to).await;
    }

    /// Waits for the next answer, of any transaction.
    pub(super) async fn next(&self) -> Answer {
        let mut buffer = [0; 2048];
        loop {
            // The error belongs to an earlier request that was refused (ICMP).
            let Ok((length, from)) = self.socket.recv_from(&mut buffer).await else { continue };
            if let Some(answer) = Answer::decode(&buffer[..length], from) {
                return answer;
            }
        }
    }

    /// Sends `request`, several times if needed, and returns the answer; `None` without any.
    pub(super) async fn ask(&self, to: SocketAddr, request: Request) -> Option<Answer> {
        self.ask_through(self, to, request).await
    }

    /// Like [`Prober::ask`], but `asking` sends the request, and this socket waits for the answer.
    pub(super) async fn ask_through(
        &self,
        asking: &Prober,
        to: SocketAddr,
        request: Request,
    ) -> Option<Answer> {
        let request = Request { transaction: Prober::transaction(), ..request };
        for _ in 0..ATTEMPTS {
            asking.send(to, request).await;
            let answer = async {
                loop {
                    let answer = self.next().await;
                    if answer.transaction == request.transaction {
                        return answer;
                    }
                }
            };
            if let Ok(answer) = timeout(PATIENCE, answer).await {
                return Some(answer);
            }
        }
        None
    }

    /// Returns whether the host at `place` refuses a packet (ICMP). Never returns if the host does not answer.
    pub(super) async fn refused_by(&self, place: SocketAddr) -> bool {
        if self.socket.connect(place).await.is_err() {
            return false;
        }
        // A listening endpoint discards this packet as too short.
        let _ = self.socket.send(&[0]).await;
        self.socket
            .recv(&mut [0; 1])
            .await
            .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
    }
}

#[cfg(target_os = "linux")]
fn bind_interface(socket: &UdpSocket, interface: &str) {
    // If the system refuses, routing selects the interface; another check reports that.
    let _ = socket.bind_device(Some(interface.as_bytes()));
}

#[cfg(not(target_os = "linux"))]
fn bind_interface(_socket: &UdpSocket, _interface: &str) {}

const ATTEMPTS: u32 = 3;
const PATIENCE: Duration = Duration::from_millis(600);
