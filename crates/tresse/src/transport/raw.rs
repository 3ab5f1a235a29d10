//! SCTP directly over IP (protocol 132): one raw socket for each local address, for processes that may open such
//! sockets.
//!
//! A raw socket receives all SCTP packets of its address. Packets for other ports belong to other endpoints and are
//! ignored: this process does not know whether another one uses the port.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, UdpSocket};

use socket2::{Domain, Protocol, Type};

use super::interface;
use super::raw_port::RawPort;
use super::reservation::Reservation;
use super::socket::{LowerLayer, Socket};
use super::sockets::check;
use crate::error::BindError;

/// Opens a raw socket on each address, and another one bound to its interface, for packets to the SCTP port `port`.
pub(crate) fn bind(local: &[IpAddr], port: u16) -> Result<Vec<Socket>, BindError> {
    check(local)?;
    let open = |&local: &IpAddr| open(local).map_err(|error| BindError::raw(local, error));
    let opened = local.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    let mut sockets = Vec::with_capacity(opened.len());
    for ((socket, &local), interface) in opened.into_iter().zip(local).zip(interface::of_each(local)) {
        let reservation = reserve(local, port)?;
        let take = |socket, port, interface| {
            Socket::new(socket, LowerLayer::Raw(port), interface)
                .map_err(|error| BindError::raw(local, error))
        };
        let beside = interface.as_ref().and_then(|one| interface::beside(&socket, Type::RAW, one));
        let elsewhere = beside.as_ref().and(interface.as_ref()).map(|one| one.index);
        let port = RawPort::new(port, reservation, elsewhere);
        let second = port.beside();
        sockets.push(take(socket, port, None)?);
        if let Some(socket) = beside {
            sockets.push(take(socket, second, interface.as_ref())?);
        }
    }
    Ok(sockets)
}

fn reserve(local: IpAddr, port: u16) -> Result<Reservation, BindError> {
    Reservation::hold(local, port).map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => BindError::PortTaken { address: local, port },
        _ => BindError::raw(local, error),
    })
}

/// Opens a raw socket, with the type of datagram sockets.
fn open(local: IpAddr) -> io::Result<UdpSocket> {
    let local = SocketAddr::new(local, 0);
    let socket =
        socket2::Socket::new(Domain::for_address(local), Type::RAW, Some(Protocol::from(super::SCTP_IN_IP)))?;
    socket.bind(&local.into())?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tresse_proto::{Ecn, Transmit};

    use super::super::{Batch, Sockets, with_room};
    use super::*;

    #[tokio::test]
    async fn packets_for_the_port_arrive_with_addresses_and_mark() {
        for local in [IpAddr::from([127, 0, 0, 77]), IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1])] {
            let port = 1024 + (std::process::id() % 60_000) as u16;
            let sockets = match bind(&[local], port) {
                // tests/raw_ip.rs reports that this was skipped.
                Err(BindError::RawNotPermitted) => return,
                bound => bound.expect("a port of this process"),
            };
            let mut sockets = Sockets::new(sockets);
            let mut batch = Batch::default();
            for (port, mark) in [(port + 1, Ecn::NotEct), (port, Ecn::Ce), (port, Ecn::Ect0)] {
                let [high, low] = port.to_be_bytes();
                let packet = [0, 9, high, low, 1, 2, 3, 4];
                batch.push(&Transmit { ecn: mark, ..Transmit::single((local, local), None, 8) }, &packet);
            }
            sockets.send(&batch);
            let mut inbox = Vec::new();
            let arrival = async {
                poll_fn(|cx| sockets.poll_flush(cx)).await;
                while inbox.len() < 2 {
                    poll_fn(|cx| with_room(|room| sockets.poll_receive(cx, &mut room.buffers, &mut inbox)))
                        .await;
                }
            };
            tokio::time::timeout(std::time::Duration::from_secs(300), arrival).await.expect("they arrive");
            assert_eq!(inbox.iter().map(|packet| packet.ecn).collect::<Vec<_>>(), [Ecn::Ce, Ecn::Ect0]);
            for packet in inbox {
                assert_eq!((packet.local, packet.remote, packet.encapsulation_port), (local, local, None));
                assert_eq!(packet.payload[4..], [1, 2, 3, 4]);
            }
        }
    }
}
