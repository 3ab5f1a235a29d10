//! Reservation of an SCTP port on raw IP. The system does not reserve such ports: every raw socket of an address
//! receives every SCTP packet, so two processes on one port would answer each other's packets.
//!
//! A port is held by names in the abstract namespace of local sockets (Linux), one for each address. Such a name
//! belongs to one network namespace, as addresses do, and ends with its process. On other systems there are no
//! reservations.

use std::io;
use std::net::IpAddr;

#[cfg(target_os = "linux")]
type Name = std::os::unix::net::UnixDatagram;
#[cfg(not(target_os = "linux"))]
type Name = std::convert::Infallible;

/// Reservation of one SCTP port on one address, until it is dropped.
#[derive(Debug)]
pub(super) struct Reservation {
    _name: Option<Name>,
}

impl Reservation {
    /// Reserves `port` on `address`.
    ///
    /// # Errors
    /// `AddrInUse` if the port is already reserved.
    pub(super) fn hold(address: IpAddr, port: u16) -> io::Result<Self> {
        Ok(Reservation { _name: claim(&name(address, port))? })
    }
}

fn name(address: IpAddr, port: u16) -> String {
    format!("tresse/sctp/{address}/{port}")
}

#[cfg(target_os = "linux")]
fn claim(name: &str) -> io::Result<Option<Name>> {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::SocketAddr;
    Name::bind_addr(&SocketAddr::from_abstract_name(name)?).map(Some)
}

#[cfg(not(target_os = "linux"))]
fn claim(_name: &str) -> io::Result<Option<Name>> {
    Ok(None)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_held_once_on_an_address_and_free_again_afterwards() {
        let address = IpAddr::from([127, 9, 9, 1]);
        let held = Reservation::hold(address, 7).expect("free");
        let error = Reservation::hold(address, 7).expect_err("held");
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        let _other_port = Reservation::hold(address, 8).expect("another port");
        let _other_address = Reservation::hold(IpAddr::from([127, 9, 9, 2]), 7).expect("another address");
        drop(held);
        let _again = Reservation::hold(address, 7).expect("free again");
    }
}
