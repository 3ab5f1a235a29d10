//! Every extension can be switched off, on either side: it is then neither offered nor spoken, and data arrives as ever.

use std::time::Duration;

use bytes::Bytes;
use tresse_proto::config::Size;
use tresse_proto::{AssociationConfig, Direction, Reliability, SendOptions, StreamId, Streams};
use tresse_wire::{Chunk, ChunkKind, Param};

use crate::common::{Flight, Pair, address, content};

/// A switch, what switches it off, and what nobody sends then.
const SWITCHES: &[(&str, &str, &[ChunkKind])] = &[
    ("nr_sack", "off", &[ChunkKind::NR_SACK]),
    ("interleaving", "false", &[ChunkKind::I_DATA, ChunkKind::I_FORWARD_TSN]),
    ("partial_reliability", "false", &[ChunkKind::FORWARD_TSN, ChunkKind::I_FORWARD_TSN]),
    ("stream_reconfiguration", "false", &[ChunkKind::RECONFIG]),
    ("authentication", "false", &[ChunkKind::AUTH, ChunkKind::ASCONF, ChunkKind::ASCONF_ACK]),
    ("dynamic_addresses", "false", &[ChunkKind::ASCONF, ChunkKind::ASCONF_ACK]),
    ("drop_reports", "false", &[ChunkKind::PACKET_DROP]),
    ("ecn", "false", &[ChunkKind::ECNE, ChunkKind::CWR]),
];

/// Offers all of them; windows so large that everything leaves at once.
fn all_of_them() -> AssociationConfig {
    AssociationConfig::default().with(|c| {
        c.interleaving = true;
        c.initial_window = Size(64 * 1024);
        c.max_burst = 0;
    })
}

fn carried(pair: &Pair, kind: ChunkKind) -> bool {
    pair.wire.iter().any(|flight| flight.carries(kind))
}

/// Whether the INIT, or the INIT ACK, lists chunks of this kind.
fn listed(pair: &Pair, by: ChunkKind, kind: ChunkKind) -> bool {
    let flight = pair.wire.iter().find(|flight| flight.carries(by)).expect("a handshake");
    flight.chunks().iter().any(|chunk| {
        let (Chunk::Init(init) | Chunk::InitAck(init)) = chunk else { return false };
        let lists = |param| matches!(param, Param::SupportedExtensions(kinds) if kinds.contains(&kind.0));
        init.params.iter().flatten().any(lists)
    })
}

fn damaged(flight: &Flight) -> Bytes {
    let mut bytes = flight.bytes.to_vec();
    *bytes.last_mut().expect("a packet") ^= 1;
    bytes.into()
}

/// Gives every extension a reason to act: marks, a loss that ends in a message given up, a packet that arrives damaged,
/// and requests about streams and addresses. Whether they can be made is for others to test.
fn give_reasons(pair: &mut Pair) {
    pair.congested = Box::new(Flight::has_data);
    let mut lost = false;
    pair.network = Box::new(move |flight| {
        let first = flight.has_data() && !std::mem::replace(&mut lost, true);
        (!first).then_some(Duration::from_millis(10))
    });
    let now = pair.now;
    let fleeting = SendOptions::on(StreamId(1)).with(|o| o.reliability = Reliability::Retransmissions(0));
    pair.client().send(now, fleeting, content(1, 0, 1000)).expect("room");
    for number in 0..20 {
        pair.send(2, number, 1000);
    }
    let packet = damaged(pair.wire.iter().rfind(|flight| flight.has_data()).expect("data"));
    pair.inject(true, 0, packet);
    pair.run_for(Duration::from_secs(3));
    let now = pair.now;
    let _ = pair.client().reset_streams(now, Streams::All, Direction::Outbound);
    let _ = pair.client().set_peer_primary(now, address(1, 1));
    pair.run_for(Duration::from_secs(3));
}

#[test]
fn with_everything_switched_on_everything_is_spoken() {
    let mut pair = Pair::established(2, &all_of_them());
    give_reasons(&mut pair);
    for (switch, _, kinds) in SWITCHES {
        // With I-DATA, FORWARD TSN is I-FORWARD-TSN.
        for &kind in kinds.iter().filter(|&&kind| kind != ChunkKind::FORWARD_TSN) {
            assert!(carried(&pair, kind), "{switch}: nobody sent {kind:?}\n{}", pair.log.join("\n"));
        }
    }
}

#[test]
fn what_one_side_switches_off_it_does_not_offer_and_nobody_speaks() {
    for (switch, off, kinds) in SWITCHES {
        let mut without = all_of_them();
        without.set(switch, off).expect("a switch");
        let all = all_of_them();
        for (client, server, by) in [(&without, &all, ChunkKind::INIT), (&all, &without, ChunkKind::INIT_ACK)]
        {
            let mut pair = Pair::unlike(2, client, server, 1).settled();
            give_reasons(&mut pair);
            for &kind in *kinds {
                assert!(!listed(&pair, by, kind), "{switch}: {by:?} lists {kind:?}");
                assert!(!carried(&pair, kind), "{switch}: {kind:?} was sent\n{}", pair.log.join("\n"));
            }
            assert_eq!(pair.server.numbers_on(2), (0..20).collect::<Vec<_>>(), "{switch}");
        }
    }
}
