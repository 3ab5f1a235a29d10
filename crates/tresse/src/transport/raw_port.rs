//! The packets of a raw socket that are for one SCTP port, without their IP headers.

use std::net::IpAddr;

use quinn_udp::RecvMeta;

use super::reservation::Reservation;

/// The SCTP port whose packets a raw socket accepts.
pub(crate) struct RawPort {
    port: u16,
    /// The interface whose packets another socket of the address receives as well.
    elsewhere: Option<u32>,
    _reservation: Option<Reservation>,
}

impl RawPort {
    /// The port that `reservation` holds. Another socket receives the packets of the interface `elsewhere`.
    pub(super) fn new(port: u16, reservation: Reservation, elsewhere: Option<u32>) -> Self {
        RawPort { port, elsewhere, _reservation: Some(reservation) }
    }

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
    use super::*;

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
