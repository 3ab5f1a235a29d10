//! SCTP in UDP (RFC 6951): ports are learned and followed, and packets leave room for the UDP header.

use std::time::Duration;

use tresse_proto::{AssociationConfig, Datagram, Ecn, EndpointConfig};
use tresse_wire::{Chunk, Heartbeat};

use crate::common::{PORT, Pair, address};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Lets the client hear its peer from this UDP port.
fn hear_from(pair: &mut Pair, port: Option<u16>) {
    let heartbeat = Chunk::Heartbeat(Heartbeat { body: &[0, 1, 0, 8, 1, 2, 3, 4] });
    let payload = pair.packet(false, &[heartbeat]);
    let datagram = Datagram {
        local: address(1, 0),
        remote: address(2, 0),
        encapsulation_port: port,
        ecn: Ecn::NotEct,
        payload,
    };
    pair.client.endpoint.handle_datagram(pair.now, datagram);
    pair.pump();
}

#[test]
fn both_sides_speak_udp_when_one_begins_so() {
    let config = AssociationConfig::default();
    let client = EndpointConfig::default().with(|c| c.encapsulation_port = 9899);
    let server = EndpointConfig::listening(PORT);
    let mut pair = Pair::between(2, (&config, client), (&config, server), 1).settled();
    for number in 0..50 {
        pair.send(0, number, 5000);
    }
    pair.run_until(Duration::from_secs(10), |pair| pair.server.received.len() == 50);
    assert!(pair.wire.iter().all(|flight| flight.transmit.encapsulation_port == Some(9899)));
    // 1,500 bytes less 20 of IP and 8 of UDP.
    assert_eq!(pair.wire.iter().map(|flight| flight.bytes.len()).max(), Some(1472));
}

#[test]
fn a_peer_whose_port_changes_is_followed() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    let ports = |pair: &mut Pair| {
        let before = pair.wire.len();
        pair.send(0, 0, 100);
        pair.run_for(ms(500));
        pair.sent_since(before)
            .iter()
            .find(|flight| flight.to_server)
            .map(|flight| flight.transmit.encapsulation_port)
    };
    assert_eq!(ports(&mut pair), Some(None));
    hear_from(&mut pair, Some(7000));
    assert_eq!(ports(&mut pair), Some(Some(7000)));
    hear_from(&mut pair, Some(7001));
    assert_eq!(ports(&mut pair), Some(Some(7001)));
    hear_from(&mut pair, None);
    assert_eq!(ports(&mut pair), Some(None));
}

#[test]
fn chunks_that_were_cut_for_larger_packets_are_still_sent_again() {
    let config = AssociationConfig::default().with(|c| c.mtu_discovery = false);
    let mut pair = Pair::established(1, &config);
    pair.network = Box::new(|flight| (!flight.has_data()).then_some(ms(10)));
    // Full chunks without UDP: with its header they no longer fit.
    pair.send(0, 1, 3 * 1452);
    pair.run_for(ms(100));
    hear_from(&mut pair, Some(7000));
    pair.network = Box::new(|_| Some(ms(10)));
    pair.may_fragment = true;
    let before = pair.wire.len();
    pair.run_until(Duration::from_secs(30), |pair| pair.server.received.len() == 1);
    assert_eq!(pair.server.numbers_on(0), [1]);
    // Nothing shares the packet with such a chunk, and what is cut from now on fits.
    assert!(pair.sent_since(before).iter().all(|flight| !flight.has_data() || flight.bytes.len() == 1480));
    pair.may_fragment = false;
    pair.send(0, 2, 20_000);
    pair.run_until(Duration::from_secs(30), |pair| pair.server.received.len() == 2);
}
