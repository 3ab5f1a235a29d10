//! SCTP in UDP (RFC 6951): one socket for each local address, all on the same port.

use std::io::{self, ErrorKind};
use std::net::IpAddr;

use socket2::Type;

use super::interface;
use super::socket::{LowerLayer, Socket};
use super::sockets::check;
use super::steering;
use crate::error::BindError;
use crate::host::HostAddress;

/// The UDP port registered for encapsulated SCTP (RFC 6951 §5.1).
pub const DEFAULT_UDP_PORT: u16 = 9899;

/// Binds each address, and again to its interface, for each of `drivers` drivers. With port 0 it selects a port that is free on all
/// addresses. Returns the sockets of each driver and the port. If the system cannot distribute packets, there is one driver.
pub(crate) fn bind(
    local: &[IpAddr],
    port: u16,
    drivers: usize,
) -> Result<(Vec<Vec<Socket>>, u16), BindError> {
    check(local)?;
    if drivers > MOST_DRIVERS {
        return Err(BindError::TooManyDrivers { drivers, most: MOST_DRIVERS });
    }
    let bound = if port == 0 { bind_ephemeral(local)? } else { bind_all(local, port)? };
    let port = bound.first().and_then(|socket| socket.local_addr().ok()).map_or(port, |addr| addr.port());
    let drivers = if cfg!(target_os = "linux") { drivers.max(1) } else { 1 };
    let mut sockets: Vec<Vec<Socket>> = (0..drivers).map(|_| Vec::new()).collect();
    for ((socket, &address), interface) in bound.into_iter().zip(local).zip(interface::of_each(local)) {
        let failed = |error| BindError::io(address, port, error);
        let beside = interface.as_ref().and_then(|one| interface::beside(&socket, Type::DGRAM, one));
        let mut both = vec![(socket, None)];
        both.extend(beside.map(|socket| (socket, interface.as_ref())));
        if drivers > 1 {
            both.iter().try_for_each(|(socket, _)| interface::let_share(socket)).map_err(failed)?;
        }
        for (socket, interface) in both {
            let group = share_out(socket, interface, drivers).map_err(failed)?;
            for (of_driver, socket) in sockets.iter_mut().zip(group) {
                of_driver.push(Socket::new(socket, LowerLayer::Udp, interface).map_err(failed)?);
            }
        }
    }
    Ok((sockets, port))
}

/// Returns `socket` and, for drivers beyond the first, more sockets on its address, port and interface. The system
/// delivers each packet to the socket of its driver. A driver that gets another's packet passes it on (`drivers.rs`).
fn share_out(
    socket: std::net::UdpSocket,
    interface: Option<&HostAddress>,
    drivers: usize,
) -> io::Result<Vec<std::net::UdpSocket>> {
    let mut group = vec![socket];
    while group.len() < drivers {
        group.push(interface::again(&group[0], interface)?);
    }
    if drivers > 1 {
        // Without the filter the system selects by addresses, and packets reach their driver by way of another.
        let _ = steering::attach(&group[0], drivers);
    }
    Ok(group)
}

fn bind_all(local: &[IpAddr], port: u16) -> Result<Vec<std::net::UdpSocket>, BindError> {
    let bind = |&address: &IpAddr| {
        let bound = std::net::UdpSocket::bind(interface::scoped(address, port));
        bound.map_err(|error| BindError::io(address, port, error))
    };
    local.iter().map(bind).collect()
}

/// Lets the system select a port on the first address, until one is free on the others too. A peer that knows one of
/// the ports may then assume it for every address (RFC 6951 §5.4).
fn bind_ephemeral(local: &[IpAddr]) -> Result<Vec<std::net::UdpSocket>, BindError> {
    let mut attempt = 1;
    loop {
        let mut first = bind_all(&local[..1], 0)?;
        let port = first[0].local_addr().map_err(|error| BindError::io(local[0], 0, error))?.port();
        match bind_all(&local[1..], port) {
            Ok(others) => {
                first.extend(others);
                return Ok(first);
            }
            Err(BindError::Io { source, .. })
                if source.kind() == ErrorKind::AddrInUse && attempt < EPHEMERAL_ATTEMPTS =>
            {
                attempt += 1;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Most drivers of an endpoint: each has sockets of its own, and more than one for each core is of no use.
const MOST_DRIVERS: usize = 1024;
/// Most ports that are tried; an attempt fails only if another socket uses the port.
const EPHEMERAL_ATTEMPTS: u32 = 64;

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tresse_proto::{Datagram, Ecn, Transmit};

    use super::super::{Batch, Sockets, with_room};
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    /// Returns the sockets on `addresses` and their port.
    fn bound(addresses: &[&str]) -> (Sockets, u16) {
        let local: Vec<IpAddr> = addresses.iter().map(|text| address(text)).collect();
        let (mut sockets, port) = bind(&local, 0, 1).expect("free");
        (Sockets::new(sockets.remove(0)), port)
    }

    fn batch(transmits: &[(Transmit, Vec<u8>)]) -> Batch {
        let mut batch = Batch::default();
        for (transmit, bytes) in transmits {
            batch.push(transmit, bytes);
        }
        batch
    }

    /// Sends from `near` until `count` packets have arrived at `far`.
    async fn carry(near: &mut Sockets, batch: &Batch, far: &mut Sockets, count: usize) -> Vec<Datagram> {
        let mut inbox = Vec::new();
        let arrival = async {
            near.send(batch);
            poll_fn(|cx| near.poll_flush(cx)).await;
            while inbox.len() < count {
                poll_fn(|cx| with_room(|room| far.poll_receive(cx, &mut room.buffers, &mut inbox))).await;
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(300), arrival)
            .await
            .expect("loopback carries it");
        inbox
    }

    #[tokio::test]
    async fn segments_arrive_as_packets_with_both_addresses() {
        let (mut near, near_port) = bound(&["127.0.0.1"]);
        let (mut far, far_port) = bound(&["127.0.0.5", "127.0.0.6"]);
        let pair = (address("127.0.0.1"), address("127.0.0.6"));
        let single = Transmit::single(pair, Some(far_port), 2500);
        let transmit = Transmit { ecn: Ecn::Ect0, segment_size: Some(1000), ..single };
        let bytes: Vec<u8> = (0..2500_u32).map(|at| (at % 251) as u8).collect();
        let packets = carry(&mut near, &batch(&[(transmit, bytes.clone())]), &mut far, 3).await;
        assert_eq!(packets.iter().map(|packet| packet.payload.len()).collect::<Vec<_>>(), [1000, 1000, 500]);
        assert_eq!(packets.iter().flat_map(|packet| packet.payload.clone()).collect::<Vec<u8>>(), bytes);
        for packet in packets {
            assert_eq!((packet.local, packet.remote), (address("127.0.0.6"), address("127.0.0.1")));
            assert_eq!((packet.encapsulation_port, packet.ecn), (Some(near_port), Ecn::Ect0));
        }
    }

    #[tokio::test]
    async fn packets_of_a_full_buffer_arrive_whole_and_outlast_it() {
        let (mut near, _) = bound(&["127.0.0.1"]);
        let (mut far, far_port) = bound(&["127.0.0.5"]);
        let pair = (address("127.0.0.1"), address("127.0.0.5"));
        let mut kept = Vec::new();
        for round in 0..3 {
            let single = Transmit::single(pair, Some(far_port), 60_500);
            let transmit = Transmit { segment_size: Some(1000), ..single };
            let packets = carry(&mut near, &batch(&[(transmit, vec![round; 60_500])]), &mut far, 61).await;
            assert_eq!(packets.iter().map(|packet| packet.payload.len()).sum::<usize>(), 60_500);
            kept.push(packets);
        }
        for (round, packets) in kept.iter().enumerate() {
            assert!(
                packets.iter().all(|packet| packet.payload.iter().all(|&byte| usize::from(byte) == round))
            );
        }
    }

    #[tokio::test]
    async fn an_address_that_cannot_send_leaves_the_others_alone() {
        let (mut near, _) = bound(&["127.0.0.1", "127.0.0.2"]);
        let (mut far, far_port) = bound(&["127.0.0.5"]);
        let pair = (address("127.0.0.1"), address("127.0.0.5"));
        let good = Transmit::single(pair, Some(far_port), 100);
        // No packet leaves the host from a loopback address, and broadcasts need a permission.
        let bad = Transmit { local: address("127.0.0.2"), remote: address("255.255.255.255"), ..good };
        let both = batch(&[(bad, vec![1; 100]), (good, vec![2; 100])]);
        let packets = carry(&mut near, &both, &mut far, 1).await;
        assert_eq!(packets[0].payload, vec![2; 100]);
        let stats = near.stats();
        assert_eq!((stats[0].send_errors, stats[1].send_errors), (0, 1));
        assert!(stats[1].last_error.is_some());
        assert_eq!(near.faults(), 1);
    }

    #[tokio::test]
    async fn an_ephemeral_port_is_the_same_on_all_addresses() {
        let local = [address("127.0.0.1"), address("127.0.0.2"), address("127.0.0.3")];
        let (sockets, port) = bind(&local, 0, 1).expect("free");
        assert_ne!(port, 0);
        assert_eq!(sockets[0].iter().map(Socket::local).collect::<Vec<_>>(), local);
        assert!(matches!(bind_all(&local[2..], port), Err(BindError::Io { .. })), "all three are held");
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn the_system_gives_each_packet_to_the_driver_of_its_ports() {
        const DRIVERS: usize = 3;
        let (groups, port) = bind(&[address("127.0.0.7"), address("127.0.0.8")], 0, DRIVERS).expect("free");
        let mut drivers: Vec<Sockets> = groups.into_iter().map(Sockets::new).collect();
        let peer = std::net::UdpSocket::bind("127.0.0.1:0").expect("free");
        for sctp_port in 10_000..10_100_u16 {
            for to in ["127.0.0.7", "127.0.0.8"] {
                let [high, low] = sctp_port.to_be_bytes();
                peer.send_to(&[high, low, 0, 7, 0, 0, 0, 1], (to, port)).expect("loopback takes it");
            }
            let driver = &mut drivers[steering::driver_of(sctp_port, 7, DRIVERS)];
            let mut inbox = Vec::new();
            let arrival = async {
                while inbox.len() < 2 {
                    poll_fn(|cx| with_room(|room| driver.poll_receive(cx, &mut room.buffers, &mut inbox)))
                        .await;
                }
            };
            let waiting = tokio::time::timeout(std::time::Duration::from_secs(300), arrival);
            waiting.await.expect("they come to this driver");
        }
    }
}
