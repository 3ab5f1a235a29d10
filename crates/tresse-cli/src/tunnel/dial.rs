//! Connections and flows that the other side opens: connects them to their destinations.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpStream, UdpSocket, lookup_host};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tracing::warn;

use super::connection::{carry, turn_away};
use super::flow::{self, FlowSocket, Limits};
use super::hub::{ConnectionHandle, Hub};
use super::log;
use super::message::StreamMessage;
use super::opening::{Destination, Kind, Opening, Refusal};
use crate::report::words::printable;

/// Connects one of them to `target`, or rejects it if the target is not permitted. The hub reports the end of the association.
pub(super) async fn dial(
    hub: Arc<Hub>,
    place: ConnectionHandle,
    opening: Opening,
    target: Result<String, Refusal>,
    limits: Limits,
) {
    let target = match target {
        Ok(target) => target,
        Err(why) => {
            warn!(to = ?opening.to, "{}", forbidden(&opening));
            let _ = turn_away(&hub, place, why).await;
            return;
        }
    };
    let made = match opening.kind {
        Kind::Tcp => {
            timeout(PATIENCE, to_any(&target, TcpStream::connect)).await.map(|tcp| tcp.map(Dialed::Tcp))
        }
        Kind::Udp => timeout(PATIENCE, to_any(&target, connected)).await.map(|udp| udp.map(Dialed::Udp)),
        // IP packets have no destination, and no permission for them leads here.
        Kind::Packets => Ok(Err(ErrorKind::Unsupported.into())),
    };
    let (error, why) = match made {
        Ok(Ok(made)) => {
            if hub.say(place.stream, StreamMessage::Ready).await.is_ok() {
                let _ = match made {
                    Dialed::Tcp(tcp) => carry(&hub, place, tcp).await,
                    Dialed::Udp(udp) => flow::carry(&hub, place, FlowSocket::Own(udp), limits, false).await,
                };
            }
            return;
        }
        Ok(Err(error)) if error.kind() == ErrorKind::ConnectionRefused => (error, Refusal::Refused),
        Ok(Err(error)) => (error, Refusal::Unreachable),
        Err(_) => (io::Error::new(ErrorKind::TimedOut, "no answer"), Refusal::Unreachable),
    };
    let line = format!("{target}: {error}");
    if !log::warn_of_shortage(&error, &line) {
        warn!(%target, %error, "{line}");
    }
    let _ = turn_away(&hub, place, why).await;
}

/// Returns what is not permitted, and the option that would permit it. The name comes from the peer.
fn forbidden(opening: &Opening) -> String {
    match (&opening.to, opening.kind) {
        (_, Kind::Packets) => "IP packets are not allowed: --tun DEVICE carries them".to_owned(),
        (Destination::Named(name), _) => {
            let name = printable(name);
            format!("{name} is not allowed to be reached: --allow {name} permits it")
        }
        (Destination::Default, Kind::Tcp) => {
            "connections without a target have none here: --tcp gives one".to_owned()
        }
        (Destination::Default, Kind::Udp) => {
            "datagrams without a target have none here: --udp gives one".to_owned()
        }
        (Destination::Listener(_) | Destination::Nowhere, _) => {
            "a connection to a name that no host can have, or to a listener that is gone, is reset".to_owned()
        }
    }
}

enum Dialed {
    Tcp(TcpStream),
    Udp(UdpSocket),
}

/// Looks up `target`, and returns the outcome of `attempt` with the first address that succeeds.
async fn to_any<T: Send + 'static, A>(target: &str, attempt: fn(SocketAddr) -> A) -> io::Result<T>
where
    A: Future<Output = io::Result<T>> + Send + 'static,
{
    to_first(in_turn(lookup_host(target).await?.collect()), attempt).await
}

/// Returns the addresses in the order of the system, but with alternating families (RFC 8305 section 4).
fn in_turn(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let first_is_ipv4 = addresses.first().is_some_and(SocketAddr::is_ipv4);
    let (first, second): (Vec<_>, Vec<_>) =
        addresses.into_iter().partition(|address| address.is_ipv4() == first_is_ipv4);
    let (mut second, mut all) = (second.into_iter(), Vec::new());
    for address in first {
        all.push(address);
        all.extend(second.next());
    }
    all.extend(second);
    all
}

/// Begins an attempt with each address in turn, `BETWEEN_ATTEMPTS` after the one before or when one has failed. Returns the first success
/// (RFC 8305 section 5): an address that does not answer does not delay the others.
async fn to_first<T: Send + 'static, A>(
    addresses: Vec<SocketAddr>,
    attempt: impl Fn(SocketAddr) -> A,
) -> io::Result<T>
where
    A: Future<Output = io::Result<T>> + Send + 'static,
{
    let (mut addresses, mut attempts) = (addresses.into_iter(), JoinSet::new());
    let mut failure = io::Error::from(ErrorKind::NotFound);
    loop {
        let begun = addresses.next().map(|address| attempts.spawn(attempt(address))).is_some();
        let pause = sleep(BETWEEN_ATTEMPTS);
        let mut pause = pin!(pause);
        loop {
            tokio::select! {
                done = attempts.join_next() => match done {
                    Some(Ok(Ok(made))) => return Ok(made),
                    Some(outcome) => {
                        failure = outcome.map_or_else(io::Error::from, |made| made.err().unwrap_or(failure));
                        if begun {
                            break;
                        }
                    }
                    None if begun => break,
                    None => return Err(failure),
                },
                () = &mut pause, if begun => break,
            }
        }
    }
}

/// Returns a UDP socket that is connected to `address`.
async fn connected(address: SocketAddr) -> io::Result<UdpSocket> {
    let any: SocketAddr = match address {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any).await?;
    socket.connect(address).await?;
    Ok(socket)
}

/// Longest time for looking up a name and connecting.
const PATIENCE: Duration = Duration::from_secs(15);
/// Delay between attempts with two addresses of a name (RFC 8305 section 8).
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(250);

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(of: [&str; 4]) -> Vec<SocketAddr> {
        of.map(|address| address.parse().expect("an address")).to_vec()
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_that_does_not_answer_holds_up_no_other() {
        let all = addresses(["[2001:db8::1]:1", "192.0.2.1:2", "192.0.2.2:3", "192.0.2.3:4"]);
        let begun = tokio::time::Instant::now();
        let outcome = to_first(all, |address| async move {
            match address.port() {
                1 => std::future::pending().await,
                2 => Err(ErrorKind::ConnectionRefused.into()),
                port => Ok(port),
            }
        });
        assert_eq!(outcome.await.expect("one accepts"), 3);
        assert!(begun.elapsed() < 3 * BETWEEN_ATTEMPTS);
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_failure_is_that_of_a_name_without_any_address_that_accepts() {
        let all = addresses(["192.0.2.1:1", "192.0.2.2:2", "192.0.2.3:3", "192.0.2.4:4"]);
        let refused = |_| async { Err::<(), _>(ErrorKind::ConnectionRefused.into()) };
        let error = to_first(all, refused).await.expect_err("none accepts");
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        assert_eq!(to_first(Vec::new(), refused).await.expect_err("none").kind(), ErrorKind::NotFound);
    }

    #[test]
    fn families_take_turns() {
        let all = addresses(["[2001:db8::1]:1", "[2001:db8::2]:1", "[2001:db8::3]:1", "192.0.2.1:1"]);
        assert_eq!(in_turn(all.clone()), [all[0], all[3], all[1], all[2]]);
    }
}
