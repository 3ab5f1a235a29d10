//! SCTP directly over IP (protocol 132): one raw socket for each local address, for processes that may open such
//! sockets.
//!
//! A raw socket receives all SCTP packets of its address. Packets for other ports belong to other endpoints and are
//! ignored: this process does not know whether another one uses the port.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, UdpSocket};

use quinn_udp::RecvMeta;
use socket2::{Domain, Protocol, Type};

use super::interface;
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
        sockets.push(take(socket, RawPort { port, elsewhere, _reservation: Some(reservation) }, None)?);
        if let Some(socket) = beside {
            let port = RawPort { port, elsewhere: None, _reservation: None };
            sockets.push(take(socket, port, interface.as_ref())?);
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
    let socket = socket2::Socket::new(Domain::for_address(local), Type::RAW, Some(Protocol::from(SCTP)))?;
    socket.bind(&local.into())?;
    Ok(socket.into())
}

/// Protocol number of SCTP at IANA; not every system defines it.
pub(super) const SCTP: i32 = 132;

/// The SCTP port whose packets a raw socket accepts.
pub(crate) struct RawPort {
    port: u16,
    /// The interface whose packets another socket of the address receives as well.
    elsewhere: Option<u32>,
    _reservation: Option<Reservation>,
}

impl RawPort {
    /// Returns the same port, for a second socket beside this one.
    pub(super) fn beside(&self) -> Self {
        RawPort { port: self.port, elsewhere: None, _reservation: None }
    }

    /// Notes that another socket receives the packets of this interface from now on.
    pub(super) fn leave_to_other(&mut self, interface: u32) {
        self.elsewhere = Some(interface);
    }

    /// Returns the SCTP packet in the bytes that a socket on `local` received, if it is for this port.
    pub(super) fn packet<'a>(&self, meta: &RecvMeta, local: IpAddr, bytes: &'a [u8]) -> Option<&'a [u8]> {
        if self.elsewhere.is_some() && self.elsewhere == meta.interface_index {
            return None;
        }
        // IPv4 sockets return the IP header too, IPv6 sockets do not.
        let packet = if local.is_ipv4() { behind_ipv4_header(bytes)? } else { bytes };
        let destination_port = packet.get(2..4)?;
        (destination_port == self.port.to_be_bytes()).then_some(packet)
    }
}

/// Returns the bytes that follow the IP header and its options (RFC 791 §3.1).
fn behind_ipv4_header(bytes: &[u8]) -> Option<&[u8]> {
    let first = *bytes.first()?;
    let words = usize::from(first & 0x0f);
    if first >> 4 != 4 || words < 5 {
        return None;
    }
    bytes.get(words * 4..)
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

    #[test]
    fn the_ip_header_is_taken_off_with_its_options() {
        let plain: Vec<u8> = [0x45; 20].into_iter().chain([1, 2, 3]).collect();
        assert_eq!(behind_ipv4_header(&plain), Some([1, 2, 3].as_slice()));
        let options: Vec<u8> = [0x46; 24].into_iter().chain([1, 2]).collect();
        assert_eq!(behind_ipv4_header(&options), Some([1, 2].as_slice()));
    }

    #[test]
    fn what_is_no_ipv4_header_gives_nothing() {
        assert_eq!(behind_ipv4_header(&[]), None);
        assert_eq!(behind_ipv4_header(&[0x45; 19]), None, "cut");
        assert_eq!(behind_ipv4_header(&[0x44; 40]), None, "shorter than the shortest");
        assert_eq!(behind_ipv4_header(&[0x65; 40]), None, "another version");
    }
}
