//! Connections and flows that the other side begins: to their destinations.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpStream, UdpSocket, lookup_host};
use tokio::time::timeout;
use tracing::warn;

use super::connection::{carry, turn_away};
use super::flow::{self, Limits, Outlet};
use super::hub::{Hub, Place};
use super::message::Word;
use super::opening::{Kind, Opening, Refusal};

/// One of them, to `target` if it may go there. How the association ends is for the hub to say.
pub(super) async fn dial(
    hub: Arc<Hub>,
    place: Place,
    opening: Opening,
    target: Result<String, Refusal>,
    limits: Limits,
) {
    let target = match target {
        Ok(target) => target,
        Err(why) => {
            warn!(to = ?opening.to, "{:?} is not allowed to be reached", opening.to);
            let _ = turn_away(&hub, place, why).await;
            return;
        }
    };
    let made = match opening.kind {
        Kind::Tcp => timeout(PATIENCE, TcpStream::connect(&*target)).await.map(|tcp| tcp.map(Made::Tcp)),
        Kind::Udp => timeout(PATIENCE, connected(&target)).await.map(|udp| udp.map(Made::Udp)),
        // They have no destination, and no permission leads here.
        Kind::Packets => Ok(Err(ErrorKind::Unsupported.into())),
    };
    let (error, why) = match made {
        Ok(Ok(made)) => {
            if hub.say(place.stream, Word::Ready).await.is_ok() {
                let _ = match made {
                    Made::Tcp(tcp) => carry(&hub, place, tcp).await,
                    Made::Udp(udp) => flow::carry(&hub, place, Outlet::Own(udp), limits, false).await,
                };
            }
            return;
        }
        Ok(Err(error)) if error.kind() == ErrorKind::ConnectionRefused => {
            (error.to_string(), Refusal::Refused)
        }
        Ok(Err(error)) => (error.to_string(), Refusal::Unreachable),
        Err(_) => ("no answer".to_owned(), Refusal::Unreachable),
    };
    warn!(%target, %error, "{target}: {error}");
    let _ = turn_away(&hub, place, why).await;
}

enum Made {
    Tcp(TcpStream),
    Udp(UdpSocket),
}

/// A socket for datagrams to the first address of `target`.
async fn connected(target: &str) -> std::io::Result<UdpSocket> {
    let address = lookup_host(target).await?.next().ok_or(ErrorKind::NotFound)?;
    let any: SocketAddr = match address {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any).await?;
    socket.connect(address).await?;
    Ok(socket)
}

/// Time that a TCP server may take to accept, and a name to be looked up.
const PATIENCE: Duration = Duration::from_secs(15);
