//! Paths whose packet size is found by probing (RFC 8899).

use std::time::Duration;

use tresse_proto::{AssociationConfig, Datagram, Ecn, IcmpError, IcmpKind, PathState, SendOptions, StreamId};
use tresse_wire::{Cause, Causes, Chunk, ChunkKind, ErrorChunk};

use crate::common::{Flight, Network, PORT, Pair, address, content};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Length of the IP packet.
fn ip_len(flight: &Flight) -> usize {
    flight.bytes.len() + 20
}

/// Path `path` carries IP packets of `most` bytes and whatever comes in fragments.
fn narrow(path: u8, most: usize) -> Network {
    Box::new(move |flight| {
        let passes = flight.path() != path || flight.transmit.may_fragment || ip_len(flight) <= most;
        passes.then_some(ms(10))
    })
}

fn send_many(pair: &mut Pair, numbers: std::ops::Range<u32>) {
    for number in numbers {
        pair.send(0, number, 5000);
    }
}

fn wait_for(pair: &mut Pair, count: u32, limit: Duration) {
    pair.run_until(limit, |pair| pair.server.numbers_on(0) == (0..count).collect::<Vec<_>>());
}

fn is_probe(flight: &Flight) -> bool {
    flight.kinds() == [ChunkKind::HEARTBEAT, ChunkKind::PAD]
}

fn mtus(pair: &mut Pair) -> Vec<usize> {
    let now = pair.now;
    pair.client().path_stats(now).iter().map(|path| path.mtu).collect()
}

#[test]
fn an_association_without_bulk_data_sends_no_probes() {
    let mut pair = Pair::established(2, &AssociationConfig::default());
    for number in 0..50 {
        pair.send(0, number, 100);
        pair.run_for(ms(50));
    }
    assert!(!pair.wire.iter().any(is_probe));
    assert_eq!(mtus(&mut pair), [1220, 1220], "what nearly every path carries");
}

#[test]
fn small_messages_that_no_packet_can_hold_together_start_the_search_too() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    // Four of these in a packet leave more room than counts as nearly full, and too little for a fifth.
    for number in 0..100 {
        pair.send(0, number, 250);
    }
    wait_for(&mut pair, 100, ms(3000));
    assert!(pair.wire.iter().any(is_probe));
    assert_eq!(mtus(&mut pair), [1500]);
}

#[test]
fn data_behind_a_probe_is_no_longer_than_what_is_known_to_pass() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    let before = pair.wire.len();
    // The SACK that starts the search arrives by hand, so that the probe and data are there at once.
    pair.network = Box::new(|flight| flight.to_server.then_some(ms(10)));
    pair.send(0, 0, 5000);
    pair.run_for(ms(50));
    let sack = pair.sent_since(before).iter().rfind(|flight| !flight.to_server).expect("a SACK");
    let (local, remote, payload) = (sack.transmit.remote, sack.transmit.local, sack.bytes.clone());
    let sack = Datagram { local, remote, encapsulation_port: None, ecn: Ecn::NotEct, payload };
    pair.client.endpoint.handle_datagram(pair.now, sack);
    let now = pair.now;
    pair.client().send(now, SendOptions::on(StreamId(0)), content(0, 1, 5000)).expect("room");
    pair.client.endpoint.handle_timeout(now);
    let (mut lens, mut buffer) = (Vec::new(), Vec::new());
    while let Some(transmit) = pair.client.endpoint.poll_transmit(now, 10, &mut buffer) {
        lens.extend(buffer.chunks(transmit.segment_size.unwrap_or(transmit.size)).map(<[u8]>::len));
        buffer.clear();
    }
    assert_eq!(lens[0], 1480, "a probe");
    assert!(lens.len() > 4 && lens[1..].iter().all(|&len| len <= 1200), "{lens:?}");
}

#[test]
fn the_first_full_packet_starts_one_probe_on_each_path() {
    let mut pair = Pair::established(2, &AssociationConfig::default());
    let before = pair.wire.len();
    send_many(&mut pair, 0..100);
    wait_for(&mut pair, 100, ms(3000));
    let probes: Vec<&Flight> = pair.sent_since(before).iter().filter(|flight| is_probe(flight)).collect();
    assert_eq!(probes.iter().map(|probe| ip_len(probe)).collect::<Vec<_>>(), [1500, 1500]);
    assert!(probes.iter().all(|probe| !probe.transmit.may_fragment && probe.to_server));
    assert_eq!(mtus(&mut pair), [1500, 1500]);
    let largest = pair.sent_since(before).iter().filter(|flight| flight.has_data()).map(ip_len).max();
    assert_eq!(largest, Some(1500));
}

#[test]
fn a_path_that_swallows_large_packets_loses_only_probes() {
    let mut pair = Pair::established(2, &AssociationConfig::default());
    pair.network = narrow(1, 1400);
    send_many(&mut pair, 0..200);
    wait_for(&mut pair, 200, ms(5000));
    pair.run_for(Duration::from_secs(60));
    assert_eq!(mtus(&mut pair), [1500, 1400]);
    let path = pair.path(1);
    assert_eq!((path.timeouts, path.chunks_resent), (0, 0));
    assert!(pair.client.events.is_empty(), "lost probes are no failures: {:?}", pair.client.events);
}

#[test]
fn chunks_are_no_longer_than_the_narrowest_path_takes() {
    let mut pair = Pair::established(3, &AssociationConfig::default());
    pair.network = narrow(1, 1400);
    send_many(&mut pair, 0..100);
    pair.run_for(Duration::from_secs(60));
    let before = pair.wire.len();
    send_many(&mut pair, 100..200);
    wait_for(&mut pair, 200, ms(5000));
    let chunk_lengths = pair.sent_since(before).iter().flat_map(|flight| {
        let chunks = flight.chunks();
        let length = |chunk: &Chunk<'_>| match chunk {
            Chunk::Data(data) => data.payload.len(),
            _ => 0,
        };
        chunks.iter().map(length).collect::<Vec<_>>()
    });
    assert_eq!(chunk_lengths.max(), Some(1352), "any chunk can be sent again anywhere");
    // What is left of a packet on the others is filled all the same.
    let longest = |path| {
        let sent = pair.sent_since(before).iter().filter(move |flight| flight.path() == path);
        sent.map(ip_len).max()
    };
    assert_eq!([0, 1, 2].map(longest), [Some(1500), Some(1400), Some(1500)]);
}

#[test]
fn a_black_hole_is_left_through_fragments() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    send_many(&mut pair, 0..50);
    wait_for(&mut pair, 50, ms(3000));
    assert_eq!(mtus(&mut pair), [1500]);

    pair.network = narrow(0, 1300);
    let before = pair.wire.len();
    send_many(&mut pair, 50..100);
    wait_for(&mut pair, 100, Duration::from_secs(10));
    pair.run_for(Duration::from_secs(60));
    let (fragmented, whole): (Vec<&Flight>, Vec<&Flight>) = pair
        .sent_since(before)
        .iter()
        .filter(|flight| flight.to_server && ip_len(flight) > 1300)
        .partition(|flight| flight.transmit.may_fragment);
    assert!(!fragmented.is_empty() && fragmented.iter().all(|flight| flight.has_data()));
    assert!(!whole.is_empty(), "those that vanished, and probes");
    let found = mtus(&mut pair)[0];
    assert!((1280..=1300).contains(&found), "{found}");

    // The hole is mended; the search begins again after ten minutes.
    pair.network = Box::new(|_| Some(ms(10)));
    pair.run_for(Duration::from_secs(700));
    assert_eq!(mtus(&mut pair), [1500]);
}

#[test]
fn an_outage_is_no_reason_for_the_smallest_packets() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    pair.network = Box::new(|_| None);
    send_many(&mut pair, 0..20);
    pair.run_for(Duration::from_secs(20));
    pair.network = Box::new(|_| Some(ms(10)));
    wait_for(&mut pair, 20, Duration::from_secs(60));
    pair.run_for(Duration::from_secs(5));
    assert_eq!(mtus(&mut pair), [1500]);
    let smallest = pair.wire.iter().filter(|flight| flight.has_data()).map(ip_len).max();
    assert!(smallest.is_some_and(|len| len > 1200));
}

/// What a router on the way to the server says of a packet.
fn too_big(mtu: usize, quoted: &[u8]) -> IcmpError<'_> {
    let kind = IcmpKind::PacketTooBig { mtu };
    IcmpError { local: address(1, 0), remote: address(2, 0), kind, quoted }
}

#[test]
fn a_router_is_believed_when_it_quotes_the_association() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    send_many(&mut pair, 0..50);
    wait_for(&mut pair, 50, ms(3000));
    let quoted =
        |port: u16, tag: u32| [&port.to_be_bytes()[..], &PORT.to_be_bytes(), &tag.to_be_bytes()].concat();
    let (port, tag) = (pair.client.endpoint.port(), pair.tag(true));
    pair.network = narrow(0, 1300);
    for (port, tag, believed) in [(port, tag ^ 1, false), (port ^ 1, tag, false), (port, tag, true)] {
        let now = pair.now;
        pair.client.endpoint.handle_icmp(now, &too_big(1300, &quoted(port, tag)));
        pair.run_for(Duration::from_secs(10));
        assert_eq!(mtus(&mut pair) == [1500], !believed, "{port} {tag}: {:?}", mtus(&mut pair));
    }
    let found = mtus(&mut pair)[0];
    assert!((1280..=1300).contains(&found), "{found}");
    let now = pair.now;
    pair.client.endpoint.handle_icmp(now, &too_big(1200, &quoted(port, tag)[..7]));
    assert_eq!(mtus(&mut pair), [found], "too little is quoted");
}

/// What knows no PAD and drops packets with it as a whole; everything, while `out`.
fn drops_padding(out: bool) -> Network {
    Box::new(move |flight| (!out && !flight.carries(ChunkKind::PAD)).then_some(ms(10)))
}

/// A single error would end the association, or fail a path.
fn unforgiving() -> AssociationConfig {
    AssociationConfig::default().with(|c| {
        c.association_max_retrans = 0;
        c.path_max_retrans = 0;
    })
}

#[test]
fn a_peer_that_drops_packets_with_padding_takes_all_data_and_fails_no_path() {
    let mut pair = Pair::established(2, &unforgiving());
    pair.network = drops_padding(false);
    let before = pair.wire.len();
    for number in 0..200 {
        pair.send(0, number, 5000);
        pair.run_for(ms(100));
    }
    wait_for(&mut pair, 200, ms(5000));
    pair.run_for(Duration::from_secs(900));
    let probes = pair.sent_since(before).iter().filter(|flight| flight.carries(ChunkKind::PAD));
    assert!(probes.clone().all(is_probe), "nothing else is lost with them");
    assert!(probes.count() > 80, "the search ended, and began again after ten minutes");
    assert_eq!(mtus(&mut pair), [1220, 1220]);
    for path in [0, 1] {
        let path = pair.path(path);
        assert_eq!((path.timeouts, path.chunks_resent, path.state), (0, 0, PathState::Active));
    }
    assert!(pair.client.events.is_empty(), "{:?}", pair.client.events);
}

/// With what a probe would tell out of reach, data that arrives says that the size to begin with passes.
#[test]
fn where_no_probe_is_ever_answered_an_outage_makes_packets_no_smaller() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    pair.network = drops_padding(false);
    send_many(&mut pair, 0..100);
    pair.run_for(ms(100));
    pair.network = drops_padding(true);
    pair.run_for(Duration::from_secs(8));
    assert!(pair.path(0).timeouts >= 2);
    pair.network = drops_padding(false);
    wait_for(&mut pair, 100, Duration::from_secs(60));
    pair.run_for(Duration::from_secs(60));
    assert_eq!(mtus(&mut pair), [1220]);
}

#[test]
fn a_peer_that_reports_padding_is_probed_no_more_and_black_holes_are_left_without_probes() {
    let mut pair = Pair::established(2, &AssociationConfig::default());
    send_many(&mut pair, 0..10);
    pair.run_for(ms(15));
    let pad = [&[132, 0, 0, 8][..], &[0; 4]].concat();
    let causes = [Cause::UnrecognisedChunk(&pad)];
    let report = pair.packet(false, &[Chunk::Error(ErrorChunk { causes: Causes::Values(&causes) })]);
    pair.network = drops_padding(false);
    pair.inject(false, 0, report);
    let before = pair.wire.len();
    send_many(&mut pair, 10..100);
    wait_for(&mut pair, 100, ms(5000));
    pair.run_for(Duration::from_secs(1300));
    assert!(!pair.sent_since(before).iter().any(|flight| flight.carries(ChunkKind::PAD)));
    assert_eq!(mtus(&mut pair), [1220, 1220]);

    pair.network =
        Box::new(move |flight| (flight.transmit.may_fragment || ip_len(flight) <= 1000).then_some(ms(10)));
    send_many(&mut pair, 100..150);
    wait_for(&mut pair, 150, Duration::from_secs(60));
    assert!(!pair.sent_since(before).iter().any(|flight| flight.carries(ChunkKind::PAD)));
}

/// A probe proves what it is long, be there an AUTH in front of it or not.
#[test]
fn probes_are_filled_and_signed_where_chunks_are_authenticated() {
    for (kinds, chunks) in [
        ("data", vec![ChunkKind::HEARTBEAT, ChunkKind::PAD]),
        ("data,heartbeat", vec![ChunkKind::AUTH, ChunkKind::HEARTBEAT, ChunkKind::PAD]),
        ("pad", vec![ChunkKind::HEARTBEAT, ChunkKind::AUTH, ChunkKind::PAD]),
    ] {
        let mut config = AssociationConfig::default();
        config.set("authenticated_chunks", kinds).expect("chunk types");
        let mut pair = Pair::established(1, &config);
        send_many(&mut pair, 0..50);
        wait_for(&mut pair, 50, ms(3000));
        let probes = pair.wire.iter().filter(|flight| flight.carries(ChunkKind::PAD));
        let probes: Vec<_> = probes.map(|probe| (probe.kinds(), ip_len(probe))).collect();
        assert_eq!(probes, [(chunks, 1500)], "{kinds}");
        assert_eq!(mtus(&mut pair), [1500], "{kinds}");
    }
}

#[test]
fn switched_off_the_setting_holds() {
    let config = AssociationConfig::default().with(|c| c.mtu_discovery = false);
    let mut pair = Pair::established(1, &config);
    send_many(&mut pair, 0..50);
    wait_for(&mut pair, 50, ms(3000));
    assert!(!pair.wire.iter().any(is_probe));
    let largest = pair.wire.iter().filter(|flight| flight.has_data()).map(ip_len).max();
    assert_eq!(largest, Some(1500));
}
