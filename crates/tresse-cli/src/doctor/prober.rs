//! A socket that asks where its packets come from.

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
    /// On a free port of `local`; what leaves it towards other hosts leaves by the interface of `local`, where the system allows.
    pub(super) async fn open(local: IpAddr, remote: IpAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind((local, 0)).await?;
        let here = host::route(remote, Some(local), None).is_ok_and(|route| route.local);
        let own = host::addresses()?.into_iter().find(|one| one.address == local && !one.loopback);
        if let Some(own) = own.filter(|_| !here) {
            bind_interface(&socket, &own.interface);
        }
        Ok(Prober { socket })
    }

    /// A number that nobody guesses.
    pub(super) fn transaction() -> Transaction {
        let mut bytes = Transaction::default();
        // What cannot be had is as good as any: it tells answers apart, and no more.
        let _ = getrandom::fill(&mut bytes);
        bytes
    }

    /// Sends a request; one that the system refuses counts as lost.
    pub(super) async fn send(&self, to: SocketAddr, request: Request) {
        let _ = self.socket.send_to(&request.encode(), to).await;
    }

    /// The next answer, whatever it answers.
    pub(super) async fn next(&self) -> Answer {
        let mut buffer = [0; 2048];
        loop {
            // An error is about a request that was refused.
            let Ok((length, from)) = self.socket.recv_from(&mut buffer).await else { continue };
            if let Some(answer) = Answer::decode(&buffer[..length], from) {
                return answer;
            }
        }
    }

    /// The answer to `request`, which is sent more than once if need be.
    pub(super) async fn ask(&self, to: SocketAddr, request: Request) -> Option<Answer> {
        self.ask_through(self, to, request).await
    }

    /// The answer that comes here to a request that leaves by another socket.
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

    /// Ends with whether the host at `place` refuses what is sent there; never if it says nothing.
    pub(super) async fn refused_by(&self, place: SocketAddr) -> bool {
        if self.socket.connect(place).await.is_err() {
            return false;
        }
        // Whoever listens takes this for a packet that is none.
        let _ = self.socket.send(&[0]).await;
        self.socket
            .recv(&mut [0; 1])
            .await
            .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
    }
}

#[cfg(target_os = "linux")]
fn bind_interface(socket: &UdpSocket, interface: &str) {
    // Where the system refuses, packets leave as routing has it, which is a finding of its own.
    let _ = socket.bind_device(Some(interface.as_bytes()));
}

#[cfg(not(target_os = "linux"))]
fn bind_interface(_socket: &UdpSocket, _interface: &str) {}

const ATTEMPTS: u32 = 3;
const PATIENCE: Duration = Duration::from_millis(600);
