//! ICMP messages about packets that did not get through, and when they are believed (RFC 9260 §10).

use std::time::Duration;

use tresse_proto::{AssociationConfig, IcmpError, IcmpKind, Instant};

use crate::common::{PORT, Pair, aborted_for, address};

/// Hands the client a message about its packet on path 0, quoted up to `len` bytes.
fn tell(pair: &mut Pair, kind: IcmpKind, packet: &[u8], len: usize) {
    let quoted = &packet[..len.min(packet.len())];
    let error = IcmpError { local: address(1, 0), remote: address(2, 0), kind, quoted };
    pair.client.endpoint.handle_icmp(pair.now, &error);
    pair.pump();
}

fn ended(pair: &Pair) -> bool {
    aborted_for(&pair.client.events) == Some("ICMP: nobody takes SCTP there")
}

/// A packet header of the client's association.
fn header(pair: &Pair, tag: u32) -> Vec<u8> {
    let ports = [pair.client.endpoint.port().to_be_bytes(), PORT.to_be_bytes()].concat();
    [&ports[..], &tag.to_be_bytes()].concat()
}

#[test]
fn where_nobody_takes_sctp_the_association_ends() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    let sound = header(&pair, pair.tag(true));
    for (packet, len) in [
        (header(&pair, pair.tag(true) ^ 1), 8),
        (header(&pair, pair.tag(false)), 8),
        (header(&pair, 0), 8),
        ([&[0, 7][..], &sound[2..]].concat(), 8),
        ([&sound[..2], &[0, 7], &sound[4..]].concat(), 8),
        (sound.clone(), 7),
    ] {
        tell(&mut pair, IcmpKind::NoReceiver, &packet, len);
    }
    tell(&mut pair, IcmpKind::Unreachable, &sound, 8);
    assert_eq!(pair.client.endpoint.discards().icmp, 7);
    assert!(pair.client().is_established() && pair.client.events.is_empty());
    let before = pair.wire.len();
    tell(&mut pair, IcmpKind::NoReceiver, &sound, 8);
    assert!(ended(&pair), "{:?}", pair.client.events);
    pair.run_for(Duration::from_secs(10));
    assert!(pair.sent_since(before).iter().all(|flight| !flight.to_server), "an end without a word");
}

#[test]
fn a_set_up_ends_when_its_init_or_cookie_finds_nobody() {
    for lost in [0, 1] {
        let mut pair = Pair::new(1, &AssociationConfig::default());
        pair.network =
            Box::new(move |flight| (flight.number < 2 * lost).then_some(Duration::from_millis(10)));
        pair.connect();
        pair.run_for(Duration::from_millis(100));
        let packet = pair.wire.last().expect("sent").bytes.to_vec();
        // Of an INIT the whole tag has to be quoted, and it has to be this one's.
        if lost == 0 {
            let mut forged = packet.clone();
            forged[19] ^= 1;
            tell(&mut pair, IcmpKind::NoReceiver, &forged, 20);
            tell(&mut pair, IcmpKind::NoReceiver, &packet, 19);
        }
        tell(&mut pair, IcmpKind::PacketTooBig { mtu: 600 }, &packet, 20);
        tell(&mut pair, IcmpKind::Unreachable, &packet, 20);
        assert_eq!(pair.client.endpoint.discards().icmp, if lost == 0 { 4 } else { 2 });
        assert!(pair.client.events.is_empty());
        tell(&mut pair, IcmpKind::NoReceiver, &packet, 20);
        assert!(ended(&pair), "{:?}", pair.client.events);
    }
}

#[test]
fn messages_about_strangers_change_nothing() {
    let mut pair = Pair::new(1, &AssociationConfig::default());
    for kind in [IcmpKind::NoReceiver, IcmpKind::PacketTooBig { mtu: 600 }] {
        tell(&mut pair, kind, &[7; 40], 40);
    }
    assert_eq!(pair.client.endpoint.discards().icmp, 2);
    assert_eq!((pair.now, pair.wire.len()), (Instant::ZERO, 0));
}
