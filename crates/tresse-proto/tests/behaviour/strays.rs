//! Packets that belong to no association, or only seem to (RFC 9260 §8.4, §8.5).

use std::net::IpAddr;
use std::time::Duration;

use tresse_proto::{AssociationConfig, CloseReason, Datagram, Ecn, Event, Ppid, Ssn, StreamId, Tsn};
use tresse_wire::{
    Abort, Cause, Causes, Chunk, ChunkKind, Data, DataFlags, ErrorChunk, Heartbeat, List, Sack, Shutdown,
};

use crate::common::{Flight, PORT, Pair, aborted_for, address, packet};

fn abort(tag_reflected: bool) -> Chunk<'static> {
    Chunk::Abort(Abort { tag_reflected, causes: Causes::Values(&[]) })
}

fn data() -> Chunk<'static> {
    Chunk::Data(Data {
        tsn: Tsn(1),
        stream: StreamId(0),
        ssn: Ssn(0),
        ppid: Ppid(0),
        flags: DataFlags { beginning: true, ending: true, ..DataFlags::default() },
        payload: b"data",
    })
}

fn sack() -> Chunk<'static> {
    let (gaps, duplicates) = (List::Values(&[][..]), List::Values(&[][..]));
    Chunk::Sack(Sack { flags: 0, cumulative_tsn: Tsn(1), a_rwnd: 1, gaps, duplicates })
}

/// What a stranger's packet is answered with.
fn answer(chunks: &[Chunk<'_>]) -> Option<String> {
    let mut pair = Pair::new(1, &AssociationConfig::default());
    pair.inject(true, 0, packet(700, PORT, 0xabcd, chunks));
    assert_eq!(pair.server.endpoint.discards().out_of_the_blue, 1);
    assert!(pair.server.events.is_empty() && pair.server.endpoint.poll_timeout().is_none());
    pair.wire.first().map(crate::common::Flight::dissect)
}

#[test]
fn a_stranger_is_told_that_there_is_no_association() {
    let refusal = Some("5001 > 700 tag 0x0000abcd: ABORT T".to_owned());
    assert_eq!(answer(&[data()]), refusal);
    assert_eq!(answer(&[sack(), data()]), refusal);
    assert_eq!(answer(&[Chunk::Heartbeat(Heartbeat { body: b"" })]), refusal);
    assert_eq!(answer(&[Chunk::Shutdown(Shutdown { cumulative_tsn: Tsn(1) })]), refusal);
}

#[test]
fn a_shutdown_ack_of_the_past_is_completed() {
    let complete = Some("5001 > 700 tag 0x0000abcd: SHUTDOWN COMPLETE T".to_owned());
    assert_eq!(answer(&[Chunk::ShutdownAck]), complete);
}

#[test]
fn what_could_begin_a_loop_is_not_answered() {
    let stale = [Cause::StaleCookie { micros: 1 }];
    for silent in [
        vec![abort(false)],
        vec![abort(true)],
        vec![data(), abort(false)],
        vec![Chunk::ShutdownComplete { tag_reflected: true }],
        vec![Chunk::ShutdownComplete { tag_reflected: false }],
        vec![Chunk::CookieAck],
        vec![Chunk::Error(ErrorChunk { causes: Causes::Values(&stale) })],
    ] {
        assert_eq!(answer(&silent), None, "{silent:?}");
    }
}

#[test]
fn what_comes_from_many_hosts_or_goes_to_many_is_not_answered() {
    let init = crate::common::init(7, &[]);
    let (here, there) = (address(2, 0), address(1, 0));
    let [group, everybody, nobody] =
        ["224.0.0.9", "255.255.255.255", "0.0.0.0"].map(|text| text.parse::<IpAddr>().expect("an address"));
    for (tag, chunk) in [(0, Chunk::Init(init)), (9, data()), (9, Chunk::ShutdownAck)] {
        let answered = |remote, local| {
            let mut pair = Pair::new(1, &AssociationConfig::default());
            let payload = packet(700, PORT, tag, std::slice::from_ref(&chunk));
            let datagram = Datagram { local, remote, encapsulation_port: None, ecn: Ecn::NotEct, payload };
            pair.server.endpoint.handle_datagram(pair.now, datagram);
            let silent = pair.server.endpoint.poll_transmit(pair.now, 1, &mut Vec::new()).is_none();
            let counted = pair.server.endpoint.discards().out_of_the_blue;
            assert!(!silent || counted == 1, "{counted} counted");
            !silent
        };
        assert!(answered(there, here));
        for remote in [group, everybody, nobody] {
            assert!(!answered(remote, here), "{chunk:?} from {remote}");
        }
        for local in [group, everybody] {
            assert!(!answered(there, local), "{chunk:?} to {local}");
        }
    }
}

#[test]
fn damaged_packets_are_counted_and_dropped() {
    let config = AssociationConfig::default().with(|c| c.drop_reports = false);
    let mut pair = Pair::established(1, &config);
    let sound = pair.packet(true, &[data()]);
    let before = pair.wire.len();
    let mut wrong_checksum = sound.to_vec();
    wrong_checksum[20] ^= 1;
    pair.inject(true, 0, wrong_checksum.into());
    assert_eq!(pair.server.endpoint.discards().bad_checksum, 1);
    for len in [0, 1, 11] {
        pair.inject(true, 0, sound.slice(..len));
    }
    assert_eq!(pair.server.endpoint.discards().malformed_packet, 3);
    assert_eq!(pair.wire.len(), before, "silently");
    assert!(pair.server().is_established());
}

#[test]
fn a_wrong_tag_of_a_known_peer_is_dropped_silently() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    let (before, tag) = (pair.wire.len(), pair.tag(true));
    for chunk in [data(), sack(), abort(false), abort(true), Chunk::ShutdownAck] {
        pair.inject(true, 0, pair.packet_with_tag(true, tag ^ 0x10, &[chunk]));
    }
    assert_eq!((pair.wire.len(), pair.server.endpoint.discards().wrong_tag), (before, 5));
    assert!(pair.server().is_established());
}

#[test]
fn the_right_tag_from_elsewhere_is_dropped() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    let before = pair.wire.len();
    // From an address that is no path's, and from another port.
    pair.inject(true, 9, pair.packet(true, &[abort(false)]));
    let tag = pair.tag(true);
    pair.inject(true, 0, packet(700, PORT, tag, &[abort(false)]));
    assert_eq!((pair.wire.len(), pair.server.endpoint.discards().out_of_the_blue), (before, 2));
    assert!(pair.server().is_established());
}

#[test]
fn an_abort_with_the_peers_tag_says_that_it_knows_no_association() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    let peer_tag = pair.tag(false);
    // Without the T bit that tag is simply wrong.
    pair.inject(true, 0, pair.packet_with_tag(true, peer_tag, &[abort(false)]));
    assert!(pair.server().is_established());
    pair.inject(true, 0, pair.packet_with_tag(true, peer_tag, &[abort(true)]));
    assert!(matches!(pair.server.events[..], [Event::Closed(CloseReason::AbortedByPeer { .. })]));
}

#[test]
fn the_t_bit_with_the_own_tag_ends_nothing() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    pair.inject(true, 0, pair.packet(true, &[abort(true)]));
    assert!(pair.server().is_established(), "RFC 9260 §8.5.1");
}

#[test]
fn a_peer_that_forgot_the_association_ends_it_with_its_answer() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    let id = pair.server.id.take().expect("accepted");
    // The server's process dies: its ABORT never leaves.
    pair.server.endpoint.release(pair.now, id);
    pair.network = Box::new(|flight| flight.to_server.then_some(Duration::from_millis(10)));
    pair.run_for(Duration::from_millis(1));
    pair.network = Box::new(|_| Some(Duration::from_millis(10)));
    pair.send(0, 0, 100);
    pair.run_for(Duration::from_millis(50));
    assert_eq!(aborted_for(&pair.client.events), Some("the peer knows no such association"));
}

/// What arrives while an association's last packets wait is not answered as a stranger's would be, and the
/// application can connect anew at once.
#[test]
fn nothing_overtakes_the_last_packets_of_an_association() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    let (before, now) = (pair.wire.len(), pair.now);
    let late = pair.packet(false, &[data()]);
    pair.client().abort(now, "enough");
    let datagram = tresse_proto::Datagram {
        local: address(1, 0),
        remote: address(2, 0),
        encapsulation_port: None,
        ecn: tresse_proto::Ecn::NotEct,
        payload: late.clone(),
    };
    pair.client.endpoint.handle_datagram(now, datagram);
    pair.pump();
    let sent: Vec<String> = pair.sent_since(before).iter().map(crate::common::Flight::dissect).collect();
    assert!(sent.len() == 1 && sent[0].contains("User-Initiated Abort"), "{sent:?}");
    // Now that they have left, nothing is known of it.
    pair.inject(false, 0, late);
    assert_eq!(pair.client.endpoint.discards().out_of_the_blue, 2);
    assert!(pair.wire.last().expect("answered").dissect().ends_with("ABORT T"));
}

#[test]
fn the_peer_of_an_association_that_ended_can_be_connected_to_at_once() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    let now = pair.now;
    pair.client().abort(now, "enough");
    pair.connect();
    pair.run_for(Duration::from_millis(100));
    assert!(pair.client().is_established());
}

#[test]
fn unrecognised_chunks_follow_their_action_bits() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    let reports = |pair: &mut Pair, kind: u8| {
        let before = pair.wire.len();
        let bytes = [kind, 0, 0, 8, 1, 2, 3, 4];
        let unknown = Chunk::parse(&bytes).expect("any type can be read");
        let tail = Chunk::Heartbeat(Heartbeat { body: &[0, 1, 0, 8, 9, 9, 9, 9] });
        pair.inject(true, 0, pair.packet(true, &[unknown, tail]));
        let kinds: Vec<ChunkKind> =
            pair.sent_since(before).iter().flat_map(|flight| flight.kinds()).collect();
        (kinds.contains(&ChunkKind::ERROR), kinds.contains(&ChunkKind::HEARTBEAT_ACK))
    };
    // RFC 9260 §3.2: the two highest bits say whether to report, and whether to go on with the packet.
    assert_eq!(reports(&mut pair, 0x3e), (false, false));
    assert_eq!(reports(&mut pair, 0x7e), (true, false));
    assert_eq!(reports(&mut pair, 0xbe), (false, true));
    assert_eq!(reports(&mut pair, 0xfe), (true, true));
}

/// RFC 9260 §3.2, §3.3.10.6: all of it, though that is more than a packet of the path.
#[test]
fn a_long_unrecognised_chunk_is_reported_whole() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    pair.may_fragment = true;
    let whole = [&[0xfe, 0, 0x05, 0x78][..], &[7; 1396]].concat();
    let before = pair.wire.len();
    let unknown =
        Chunk::Unrecognised(tresse_wire::UnrecognisedChunk { kind: ChunkKind(0xfe), whole: &whole });
    pair.inject(true, 0, pair.packet(true, &[unknown]));
    let [answer] = pair.sent_since(before) else { panic!("no answer\n{}", pair.log.join("\n")) };
    let [Chunk::Error(error)] = answer.chunks()[..] else { panic!("{}", answer.dissect()) };
    assert_eq!(error.causes.iter().flatten().collect::<Vec<_>>(), [Cause::UnrecognisedChunk(&whole)]);
    assert!(answer.transmit.may_fragment);
}

/// An ERROR that is too long for any packet is dropped, and the chunks behind it leave.
#[test]
fn what_waits_behind_an_answer_that_fits_no_packet_leaves() {
    let mut pair = Pair::established(2, &AssociationConfig::default());
    let whole = [&[0xfe, 0, 0xff, 0xf0][..], &[7; 0xffec]].concat();
    let unknown =
        Chunk::Unrecognised(tresse_wire::UnrecognisedChunk { kind: ChunkKind(0xfe), whole: &whole });
    let (header, before, now) = (pair.packet(true, &[]), pair.wire.len(), pair.now);
    let mut bytes = header.to_vec();
    unknown.write(&mut bytes).expect("a chunk");
    tresse_wire::seal(&mut bytes);
    let datagram = tresse_proto::Datagram {
        local: crate::common::address(2, 1),
        remote: crate::common::address(1, 1),
        encapsulation_port: None,
        ecn: tresse_proto::Ecn::NotEct,
        payload: bytes.into(),
    };
    pair.server.endpoint.handle_datagram(now, datagram);
    pair.server().shutdown(now);
    pair.pump();
    let kinds: Vec<_> = pair.sent_since(before).iter().map(Flight::kinds).collect();
    assert_eq!(kinds, [[ChunkKind::SHUTDOWN]]);
}
