//! UDP socket that many programs send to. Each answer goes to the program that asked, from the address to which it had sent. A socket
//! that is bound to all addresses would otherwise send from the address of the route, and a program that is connected to another address
//! would not receive the answer.

use std::io;
use std::net::{IpAddr, SocketAddr};

use tokio::net::UdpSocket;

/// A UDP socket that many flows share.
pub(super) struct FlowListener {
    socket: UdpSocket,
    /// True if it is bound to all addresses of this host.
    everywhere: bool,
}

/// The two ends of a flow.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Ends {
    peer: SocketAddr,
    /// Address of this host to which the peer sent, if the socket is bound to all addresses and the system reports it.
    asked: Option<IpAddr>,
}

impl FlowListener {
    pub(super) async fn bind(place: SocketAddr) -> io::Result<Self> {
        let (socket, everywhere) = (UdpSocket::bind(place).await?, place.ip().is_unspecified());
        if everywhere {
            destinations::ask(&socket, place.ip())?;
        }
        Ok(FlowListener { socket, everywhere })
    }

    pub(super) fn place(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Waits for a datagram; returns its length and the ends of its flow.
    pub(super) async fn recv(&self, buffer: &mut [u8]) -> io::Result<(usize, Ends)> {
        let (length, peer, asked) = match self.everywhere {
            true => destinations::recv(&self.socket, buffer).await?,
            false => self.socket.recv_from(buffer).await.map(|(length, peer)| (length, peer, None))?,
        };
        Ok((length, Ends { peer, asked }))
    }

    pub(super) async fn send(&self, datagram: &[u8], to: Ends) -> io::Result<usize> {
        match to.asked {
            Some(asked) => destinations::send(&self.socket, datagram, to.peer, asked).await,
            None => self.socket.send_to(datagram, to.peer).await,
        }
    }
}

/// Destination addresses of datagrams that arrive, and source addresses of those that leave.
#[cfg(target_os = "linux")]
mod destinations {
    use std::io::{self, IoSlice, IoSliceMut};
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
    use std::os::fd::AsRawFd;

    use nix::libc;
    use nix::sys::socket::sockopt::{Ipv4PacketInfo, Ipv6RecvPacketInfo};
    use nix::sys::socket::{
        ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, sendmsg, setsockopt,
    };
    use tokio::io::Interest;
    use tokio::net::UdpSocket;

    pub(super) fn ask(socket: &UdpSocket, place: IpAddr) -> io::Result<()> {
        match place {
            IpAddr::V4(_) => Ok(setsockopt(socket, Ipv4PacketInfo, &true)?),
            IpAddr::V6(_) => Ok(setsockopt(socket, Ipv6RecvPacketInfo, &true)?),
        }
    }

    pub(super) async fn recv(
        socket: &UdpSocket,
        buffer: &mut [u8],
    ) -> io::Result<(usize, SocketAddr, Option<IpAddr>)> {
        let mut space = nix::cmsg_space!(libc::in6_pktinfo);
        let receive = || {
            let (fd, mut slices) = (socket.as_raw_fd(), [IoSliceMut::new(&mut buffer[..])]);
            let got = recvmsg::<SockaddrStorage>(fd, &mut slices, Some(&mut space[..]), MsgFlags::empty())?;
            let peer = got.address.as_ref().and_then(address_of).ok_or(io::ErrorKind::InvalidData)?;
            let asked = got.cmsgs()?.find_map(|info| match info {
                ControlMessageOwned::Ipv4PacketInfo(info) => {
                    Some(Ipv4Addr::from(info.ipi_spec_dst.s_addr.to_ne_bytes()).into())
                }
                ControlMessageOwned::Ipv6PacketInfo(info) => {
                    Some(Ipv6Addr::from(info.ipi6_addr.s6_addr).into())
                }
                _ => None,
            });
            // Nothing can be sent from a multicast address.
            Ok((got.bytes, peer, asked.filter(|asked: &IpAddr| !asked.is_multicast())))
        };
        socket.async_io(Interest::READABLE, receive).await
    }

    pub(super) async fn send(
        socket: &UdpSocket,
        datagram: &[u8],
        peer: SocketAddr,
        asked: IpAddr,
    ) -> io::Result<usize> {
        let leave = |info: ControlMessage<'_>| {
            let (slices, peer) = ([IoSlice::new(datagram)], SockaddrStorage::from(peer));
            Ok(sendmsg(socket.as_raw_fd(), &slices, &[info], MsgFlags::empty(), Some(&peer))?)
        };
        // Interface 0 stands for that of the route.
        let send = || match asked {
            IpAddr::V4(asked) => {
                let from = libc::in_addr { s_addr: u32::from_ne_bytes(asked.octets()) };
                let any = libc::in_addr { s_addr: 0 };
                leave(ControlMessage::Ipv4PacketInfo(&libc::in_pktinfo {
                    ipi_ifindex: 0,
                    ipi_spec_dst: from,
                    ipi_addr: any,
                }))
            }
            IpAddr::V6(asked) => {
                let from = libc::in6_addr { s6_addr: asked.octets() };
                leave(ControlMessage::Ipv6PacketInfo(&libc::in6_pktinfo { ipi6_addr: from, ipi6_ifindex: 0 }))
            }
        };
        socket.async_io(Interest::WRITABLE, send).await
    }

    fn address_of(storage: &SockaddrStorage) -> Option<SocketAddr> {
        let ipv4 = storage.as_sockaddr_in().map(|address| SocketAddr::from(*address));
        ipv4.or_else(|| storage.as_sockaddr_in6().map(|address| SocketAddr::from(*address)))
    }
}

/// On other systems, which have not been tested, answers leave from the address of the route.
#[cfg(not(target_os = "linux"))]
mod destinations {
    use std::io;
    use std::net::{IpAddr, SocketAddr};

    use tokio::net::UdpSocket;

    pub(super) fn ask(_: &UdpSocket, _: IpAddr) -> io::Result<()> {
        Ok(())
    }

    pub(super) async fn recv(
        socket: &UdpSocket,
        buffer: &mut [u8],
    ) -> io::Result<(usize, SocketAddr, Option<IpAddr>)> {
        socket.recv_from(buffer).await.map(|(length, peer)| (length, peer, None))
    }

    pub(super) async fn send(
        socket: &UdpSocket,
        datagram: &[u8],
        peer: SocketAddr,
        _: IpAddr,
    ) -> io::Result<usize> {
        socket.send_to(datagram, peer).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_answer_comes_from_the_address_that_was_asked() {
        for (place, asked) in [("0.0.0.0:0", "127.0.0.9"), ("[::]:0", "::1"), ("[::]:0", "127.0.0.9")] {
            // A host may have no IPv6.
            let Ok(flow_listener) = FlowListener::bind(place.parse().expect("an address")).await else {
                continue;
            };
            let asked = SocketAddr::new(
                asked.parse().expect("an address"),
                flow_listener.place().expect("bound").port(),
            );
            let here = if asked.is_ipv4() { "127.0.0.1:0" } else { "[::1]:0" };
            let Ok(program) = UdpSocket::bind(here).await else { continue };
            program.send_to(b"question", asked).await.expect("it is taken");
            let mut buffer = [0; 9];
            let (length, ends) = flow_listener.recv(&mut buffer).await.expect("a datagram");
            assert_eq!(&buffer[..length], b"question");
            flow_listener.send(b"answer", ends).await.expect("it is taken");
            let (_, from) = program.recv_from(&mut buffer).await.expect("an answer");
            assert!(cfg!(not(target_os = "linux")) || from == asked, "{place}: {from}");
        }
    }
}
