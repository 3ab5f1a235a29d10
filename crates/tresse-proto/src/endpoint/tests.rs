//! The endpoint's own rules; dialogues between endpoints are tested in `tests/`.

use std::net::{IpAddr, Ipv4Addr};

use bytes::Bytes;
use tresse_wire::{CommonHeader, Seal};

use super::*;
use crate::interface::datagram::Ecn;

fn datagram(payload: Vec<u8>) -> Datagram {
    let address = |host| IpAddr::V4(Ipv4Addr::new(10, 0, 0, host));
    Datagram {
        local: address(1),
        remote: address(2),
        encapsulation_port: None,
        ecn: Ecn::NotEct,
        payload: Bytes::from(payload),
    }
}

/// A lower layer that verifies checksums may hand over a packet that it could not verify.
#[test]
fn unverified_packets_are_verified_whatever_is_offloaded() {
    let config =
        EndpointConfig { port: 5001, listen: true, checksum_offload: true, ..EndpointConfig::default() };
    let mut endpoint = Endpoint::new(config, AssociationConfig::default(), [0; 32]).expect("good settings");
    let header = CommonHeader { source_port: 1, destination_port: 5001, verification_tag: 7 };
    let mut buffer = Vec::new();
    tresse_wire::PacketWriter::new(&mut buffer, header, 1500).finish(Seal::Zero);

    endpoint.handle_datagram(Instant::ZERO, datagram(buffer.clone()));
    assert_eq!(endpoint.discards().bad_checksum, 0, "the lower layer vouches for it");
    endpoint.handle_unverified_datagram(Instant::ZERO, datagram(buffer.clone()));
    assert_eq!(endpoint.discards().bad_checksum, 1);
    tresse_wire::seal(&mut buffer);
    endpoint.handle_unverified_datagram(Instant::ZERO, datagram(buffer));
    assert_eq!(endpoint.discards().bad_checksum, 1, "nothing is wrong with it");
}
