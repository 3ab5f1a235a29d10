//! Queries of the routing tables of Linux (rtnetlink(7)): one request, one response.

use std::io::{self, ErrorKind};
use std::net::IpAddr;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};

use super::Route;

/// As [`super::route`].
pub(super) fn route(
    destination: IpAddr,
    source: Option<IpAddr>,
    interface: Option<u32>,
) -> io::Result<Route> {
    let found = ask(destination, source, interface)?;
    let other = interface.is_some_and(|wanted| wanted != found.interface);
    match (destination, other) {
        // With a source address, the kernel treats the interface as a preference for IPv6, and without one as a condition.
        (IpAddr::V6(_), true) if source.is_some() => route(destination, None, interface),
        (_, true) => Err(ErrorKind::HostUnreachable.into()),
        _ => Ok(found),
    }
}

fn ask(destination: IpAddr, source: Option<IpAddr>, interface: Option<u32>) -> io::Result<Route> {
    let socket =
        rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    let kernel = netlink::SocketAddrNetlink::new(0, 0);
    rustix::net::sendto(&socket, &request(destination, source, interface), SendFlags::empty(), &kernel)?;
    let mut answer = [0; 4096];
    let (len, _) = rustix::net::recv(&socket, &mut answer, RecvFlags::empty())?;
    read(&answer[..len])
}

/// Returns RTM_GETROUTE for the matching entry of the tables; no entry is an error. Without RTM_F_FIB_MATCH the kernel
/// considers a destination to be on the link if an interface is given and has no route.
fn request(destination: IpAddr, source: Option<IpAddr>, interface: Option<u32>) -> Vec<u8> {
    let (family, bits) = match destination {
        IpAddr::V4(_) => (AddressFamily::INET, 32),
        IpAddr::V6(_) => (AddressFamily::INET6, 128),
    };
    let source_bits = source.map_or(0, |_| bits);
    let mut message = vec![0; 4];
    message.extend(RTM_GETROUTE.to_ne_bytes());
    message.extend(NLM_F_REQUEST.to_ne_bytes());
    message.extend([0; 8]); // Sequence number and port: the socket serves one question.
    message.extend([family.as_raw() as u8, bits, source_bits, 0, 0, 0, 0, 0]);
    message.extend(RTM_F_FIB_MATCH.to_ne_bytes());
    attribute(&mut message, RTA_DST, &octets(destination));
    if let Some(source) = source {
        attribute(&mut message, RTA_SRC, &octets(source));
    }
    if let Some(interface) = interface {
        attribute(&mut message, RTA_OIF, &interface.to_ne_bytes());
    }
    let len = message.len() as u32;
    message[..4].copy_from_slice(&len.to_ne_bytes());
    message
}

/// Appends an attribute whose value has a multiple of four bytes.
fn attribute(message: &mut Vec<u8>, kind: u16, value: &[u8]) {
    message.extend((4 + value.len() as u16).to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(value);
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

fn read(message: &[u8]) -> io::Result<Route> {
    let malformed = || io::Error::from(ErrorKind::InvalidData);
    match u16_at(message, 4) {
        Some(RTM_NEWROUTE) => {}
        Some(NLMSG_ERROR) => {
            let code = u32_at(message, HEADER).ok_or_else(malformed)?;
            return Err(io::Error::from_raw_os_error((code as i32).wrapping_neg()));
        }
        _ => return Err(malformed()),
    }
    let kind = *message.get(HEADER + 7).ok_or_else(malformed)?;
    let mut route = Route { interface: 0, gateway: None, local: kind == RTN_LOCAL };
    let mut rest = message.get(HEADER + ROUTE_HEADER..).ok_or_else(malformed)?;
    while let (Some(len), Some(kind)) = (u16_at(rest, 0), u16_at(rest, 2)) {
        let value = rest.get(4..usize::from(len)).ok_or_else(malformed)?;
        match kind {
            RTA_OIF => route.interface = u32_at(value, 0).ok_or_else(malformed)?,
            RTA_GATEWAY => route.gateway = address(value),
            _ => {}
        }
        rest = rest.get(usize::from(len).next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(route)
}

fn address(value: &[u8]) -> Option<IpAddr> {
    if let Ok(four) = <[u8; 4]>::try_from(value) {
        return Some(four.into());
    }
    <[u8; 16]>::try_from(value).ok().map(IpAddr::from)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.try_into().ok().map(u16::from_ne_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes)
}

/// Lengths of `struct nlmsghdr` and of `struct rtmsg`.
const HEADER: usize = 16;
const ROUTE_HEADER: usize = 12;
const NLMSG_ERROR: u16 = 2;
const NLM_F_REQUEST: u16 = 1;
const RTM_NEWROUTE: u16 = 24;
const RTM_GETROUTE: u16 = 26;
const RTM_F_FIB_MATCH: u32 = 0x2000;
const RTN_LOCAL: u8 = 2;
const RTA_DST: u16 = 1;
const RTA_SRC: u16 = 2;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_the_length_that_it_says() {
        let to = IpAddr::from([192, 0, 2, 1]);
        let message = request(to, Some(to), Some(3));
        assert_eq!(message.len(), HEADER + ROUTE_HEADER + 3 * 8);
        assert_eq!(u32_at(&message, 0), Some(message.len() as u32));
    }

    #[test]
    fn an_answer_names_interface_and_router() {
        let mut answer = vec![0; HEADER + ROUTE_HEADER];
        answer[4..6].copy_from_slice(&RTM_NEWROUTE.to_ne_bytes());
        answer[HEADER + 7] = 1;
        attribute(&mut answer, RTA_OIF, &7_u32.to_ne_bytes());
        attribute(&mut answer, RTA_GATEWAY, &[192, 0, 2, 254]);
        let route = read(&answer).expect("well formed");
        assert_eq!((route.interface, route.gateway), (7, Some(IpAddr::from([192, 0, 2, 254]))));
        assert!(!route.local);
    }

    #[test]
    fn what_is_cut_or_an_error_is_no_route() {
        let mut error = vec![0; HEADER];
        error[4..6].copy_from_slice(&NLMSG_ERROR.to_ne_bytes());
        error.extend((-113_i32).to_ne_bytes());
        assert_eq!(read(&error).expect_err("an error").kind(), ErrorKind::HostUnreachable);
        let mut cut = vec![0; HEADER + ROUTE_HEADER];
        cut[4..6].copy_from_slice(&RTM_NEWROUTE.to_ne_bytes());
        cut.extend([200, 0, 4, 0]);
        for len in (0..HEADER + ROUTE_HEADER).chain([cut.len()]) {
            assert!(read(&cut[..len]).is_err(), "{len} bytes");
        }
        // A length below that of the attribute's own header would cause an endless loop.
        let mut short = cut[..HEADER + ROUTE_HEADER].to_vec();
        short.extend([0, 0, 4, 0]);
        assert!(read(&short).is_err());
    }
}
