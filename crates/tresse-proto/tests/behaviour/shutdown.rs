//! Graceful ends (RFC 9260 §9.2) and abrupt ones (§9.1), from either side and both at once, over losses.

use std::time::Duration;

use tresse_proto::config::Size;
use tresse_proto::{AssociationConfig, CloseReason, Datagram, Ecn, Event, SendError, SendOptions, StreamId};
use tresse_wire::{Cause, Chunk, ChunkKind, Data, DataFlags, Heartbeat, Ppid, Shutdown, Ssn};

use crate::common::{Dice, Flight, Pair, aborted_for, address, content};

const CLOSED: Event = Event::Closed(CloseReason::Graceful);

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn ended(pair: &Pair) -> bool {
    let closed = |events: &[Event]| events.iter().any(|event| matches!(event, Event::Closed(_)));
    closed(&pair.client.events) && closed(&pair.server.events)
}

/// Queues messages of 3,000 bytes on stream 1 of each side.
fn queue(pair: &mut Pair, from_client: u32, from_server: u32) {
    let now = pair.now;
    let options = SendOptions::on(StreamId(1));
    for number in 0..from_client {
        pair.client().send(now, options, content(1, number, 3000)).expect("room");
    }
    for number in 0..from_server {
        pair.server().send(now, options, content(1, number, 3000)).expect("room");
    }
}

fn shut_down(pair: &mut Pair, of_client: bool) {
    let now = pair.now;
    if of_client { pair.client().shutdown(now) } else { pair.server().shutdown(now) }
}

fn counts(pair: &Pair) -> (usize, usize) {
    (pair.server.numbers_on(1).len(), pair.client.numbers_on(1).len())
}

#[test]
fn either_side_ends_it_with_three_packets() {
    for by_client in [true, false] {
        let mut pair = Pair::established(2, &AssociationConfig::default());
        let before = pair.wire.len();
        shut_down(&mut pair, by_client);
        pair.run_for(ms(1000));
        let kinds: Vec<_> =
            pair.sent_since(before).iter().map(|flight| (flight.to_server, flight.kinds())).collect();
        let expected = [
            (by_client, vec![ChunkKind::SHUTDOWN]),
            (!by_client, vec![ChunkKind::SHUTDOWN_ACK]),
            (by_client, vec![ChunkKind::SHUTDOWN_COMPLETE]),
        ];
        assert_eq!(kinds, expected);
        let (own, peer) = if by_client { (&pair.client, &pair.server) } else { (&pair.server, &pair.client) };
        assert_eq!(own.events, [CLOSED]);
        assert_eq!(peer.events, [Event::PeerShutdown, CLOSED]);
        assert_eq!((pair.client.endpoint.poll_timeout(), pair.server.endpoint.poll_timeout()), (None, None));
    }
}

#[test]
fn what_is_queued_on_both_sides_is_delivered_first() {
    for by_client in [true, false] {
        let mut pair = Pair::established(2, &AssociationConfig::default());
        queue(&mut pair, 40, 30);
        shut_down(&mut pair, by_client);
        let now = pair.now;
        let refused = if by_client { pair.client() } else { pair.server() }.send(
            now,
            SendOptions::default(),
            content(0, 0, 10),
        );
        assert_eq!(refused, Err(SendError::NotOpen { state: "SHUTDOWN-PENDING" }));
        pair.run_until(Duration::from_secs(60), |pair| ended(pair));
        assert_eq!(counts(&pair), (40, 30));
        assert_eq!(pair.client.events.last(), Some(&CLOSED));
        assert_eq!(pair.server.events.last(), Some(&CLOSED));
    }
}

#[test]
fn both_sides_may_end_it_at_once() {
    for (from_client, from_server) in [(0, 0), (20, 0), (20, 20)] {
        let mut pair = Pair::established(2, &AssociationConfig::default());
        queue(&mut pair, from_client, from_server);
        shut_down(&mut pair, true);
        shut_down(&mut pair, false);
        pair.run_until(Duration::from_secs(60), |pair| ended(pair));
        assert_eq!(counts(&pair), (from_client as usize, from_server as usize));
        assert!(pair.client.events.contains(&CLOSED) && pair.server.events.contains(&CLOSED));
    }
}

/// A driver may hand in many packets before it asks for the next one.
#[test]
fn what_arrives_in_one_go_is_answered_by_one_shutdown() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    shut_down(&mut pair, true);
    let first = pair.wire.iter().flat_map(Flight::chunks).find_map(|chunk| match chunk {
        Chunk::InitAck(init) => Some(init.initial_tsn),
        _ => None,
    });
    let first = first.expect("a handshake");
    for number in 0..5 {
        let (stream, ssn) = (StreamId(0), Ssn(number));
        let (tsn, ppid, flags) = (first.advance(number.into()), Ppid(0), DataFlags::WHOLE);
        let data = Chunk::Data(Data { tsn, stream, ssn, ppid, flags, payload: b"late" });
        let payload = pair.packet(false, &[data]);
        let (local, remote) = (address(1, 0), address(2, 0));
        let datagram = Datagram { local, remote, encapsulation_port: None, ecn: Ecn::NotEct, payload };
        pair.client.endpoint.handle_datagram(pair.now, datagram);
    }
    let before = pair.wire.len();
    pair.pump();
    let kinds: Vec<_> = pair.sent_since(before).iter().flat_map(Flight::kinds).collect();
    assert_eq!(kinds, [ChunkKind::SHUTDOWN, ChunkKind::NR_SACK]);
}

#[test]
fn each_packet_of_it_may_be_lost() {
    for kind in [ChunkKind::SHUTDOWN, ChunkKind::SHUTDOWN_ACK, ChunkKind::SHUTDOWN_COMPLETE] {
        for losses in 1..=3 {
            let mut pair = Pair::established(2, &AssociationConfig::default());
            queue(&mut pair, 3, 0);
            pair.lose(kind, losses);
            shut_down(&mut pair, true);
            pair.run_until(Duration::from_secs(60), |pair| ended(pair));
            assert_eq!(counts(&pair), (3, 0));
            assert_eq!(pair.client.events, [CLOSED], "{kind} lost {losses} times");
            assert_eq!(pair.server.events.last(), Some(&CLOSED), "{kind} lost {losses} times");
        }
    }
}

#[test]
fn a_lossy_network_delays_it_and_loses_nothing() {
    for seed in 0..20 {
        let mut pair = Pair::established(2, &AssociationConfig::default());
        let mut dice = Dice::new(seed);
        pair.network = Box::new(move |_| (!dice.hits(0.15)).then(|| ms(5 + dice.below(40))));
        queue(&mut pair, 30, 20);
        shut_down(&mut pair, seed % 2 == 0);
        if seed % 3 == 0 {
            shut_down(&mut pair, seed % 2 == 1);
        }
        pair.run_until(Duration::from_secs(600), |pair| ended(pair));
        assert_eq!(counts(&pair), (30, 20), "seed {seed}");
        for side in [&pair.client, &pair.server] {
            assert_eq!(side.events.last(), Some(&CLOSED), "seed {seed}\n{}", pair.log.join("\n"));
        }
    }
}

#[test]
fn a_shutdown_is_repeated_over_all_paths_and_given_up_in_the_end() {
    let mut pair = Pair::established(2, &AssociationConfig::default());
    pair.network = Box::new(|_| None);
    let before = pair.wire.len();
    let started = pair.now;
    shut_down(&mut pair, true);
    pair.run_until(Duration::from_secs(2000), |pair| !pair.client.events.is_empty());
    assert_eq!(pair.client.events, [Event::Closed(CloseReason::PathsLost)]);
    let shutdowns: Vec<_> =
        pair.sent_since(before).iter().filter(|flight| flight.carries(ChunkKind::SHUTDOWN)).collect();
    assert!(shutdowns.iter().any(|flight| flight.path() == 0));
    assert!(shutdowns.iter().any(|flight| flight.path() == 1));
    // T5, the guard of the whole, ends it after five times RTO.Max if nothing else does.
    assert!(pair.now - started <= Duration::from_secs(300), "{:?}", pair.now - started);
}

#[test]
fn a_peer_that_acknowledges_nothing_cannot_hold_it_open() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    // The peer answers heartbeats and acknowledges nothing.
    pair.network = Box::new(|flight| {
        let acknowledges = flight.carries(ChunkKind::SACK) || flight.carries(ChunkKind::NR_SACK);
        (!acknowledges).then_some(ms(10))
    });
    queue(&mut pair, 1, 0);
    shut_down(&mut pair, true);
    pair.run_until(Duration::from_secs(2000), |pair| ended(pair));
    assert_eq!(pair.client.events.last(), Some(&Event::Closed(CloseReason::PathsLost)));
}

#[test]
fn queued_data_may_take_longer_than_the_guard_as_long_as_it_flows() {
    let config = AssociationConfig::default().with(|c| c.initial_window = Size(1452));
    let mut pair = Pair::established(1, &config);
    // Every second packet is lost and the others take seconds: it goes on, but slowly.
    let mut number = 0;
    pair.network = Box::new(move |flight| {
        number += 1;
        (!flight.to_server || number % 2 == 0).then_some(Duration::from_secs(4))
    });
    queue(&mut pair, 60, 0);
    let started = pair.now;
    shut_down(&mut pair, true);
    pair.run_until(Duration::from_secs(5000), |pair| ended(pair));
    assert!(pair.now - started > Duration::from_secs(320), "{:?}", pair.now - started);
    assert_eq!(counts(&pair), (60, 0));
    assert_eq!(pair.client.events.last(), Some(&CLOSED));
}

#[test]
fn shutting_down_twice_or_after_the_end_changes_nothing() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    shut_down(&mut pair, true);
    shut_down(&mut pair, true);
    pair.run_for(ms(500));
    shut_down(&mut pair, true);
    shut_down(&mut pair, false);
    pair.run_for(ms(500));
    assert_eq!(pair.client.events, [CLOSED]);
    assert_eq!(pair.client().state_name(), "CLOSED");
    let now = pair.now;
    let refused = pair.client().send(now, SendOptions::default(), content(0, 0, 10));
    assert_eq!(refused, Err(SendError::NotOpen { state: "CLOSED" }));
}

#[test]
fn what_was_received_can_be_read_after_the_end() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    pair.server.reads = false;
    queue(&mut pair, 5, 0);
    shut_down(&mut pair, true);
    pair.run_until(Duration::from_secs(10), |pair| ended(pair));
    assert!(pair.server.received.is_empty());
    pair.server.reads = true;
    pair.run_for(ms(1));
    assert_eq!(counts(&pair), (5, 0));
}

#[test]
fn an_abort_tells_the_peer_why() {
    for by_client in [true, false] {
        let mut pair = Pair::established(2, &AssociationConfig::default());
        queue(&mut pair, 10, 10);
        pair.run_for(ms(5));
        let (now, before) = (pair.now, pair.wire.len());
        if by_client { pair.client() } else { pair.server() }.abort(now, "out of\npaper");
        pair.run_for(ms(500));
        let sent: Vec<_> =
            pair.sent_since(before).iter().filter(|flight| flight.to_server == by_client).collect();
        assert_eq!(sent[0].kinds(), [ChunkKind::ABORT]);
        let chunks = sent[0].chunks();
        let Chunk::Abort(abort) = &chunks[0] else { panic!("an ABORT") };
        assert_eq!(abort.causes.iter().flatten().next(), Some(Cause::UserAbort(b"out of\npaper")));
        let (own, peer) = if by_client { (&pair.client, &pair.server) } else { (&pair.server, &pair.client) };
        assert_eq!(own.events.last(), Some(&Event::Closed(CloseReason::Aborted)));
        assert_eq!(aborted_for(&peer.events), Some("User-Initiated Abort: out of paper"));
        // Neither side says another word of its own accord.
        let quiet = pair.wire.len();
        pair.run_for(Duration::from_secs(120));
        assert_eq!(pair.wire.len(), quiet, "{}", pair.log.join("\n"));
    }
}

#[test]
fn an_abort_fits_its_packet_however_long_its_reason() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    let now = pair.now;
    pair.client().abort(now, "why ".repeat(1000));
    pair.run_for(ms(50));
    assert!(matches!(pair.server.events[..], [Event::Closed(CloseReason::AbortedByPeer { .. })]));
}

#[test]
fn releasing_an_open_association_aborts_it() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    let id = pair.client.id.take().expect("connected");
    pair.client.endpoint.release(pair.now, id);
    assert!(pair.client.endpoint.association(id).is_none());
    pair.client.endpoint.release(pair.now, id);
    pair.run_for(ms(50));
    assert!(matches!(pair.server.events[..], [Event::Closed(CloseReason::AbortedByPeer { .. })]));
    assert_eq!(pair.client.endpoint.poll_timeout(), None);
}

#[test]
fn releasing_a_closed_association_is_silent() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    shut_down(&mut pair, true);
    pair.run_for(ms(500));
    let before = pair.wire.len();
    for side in [&mut pair.client, &mut pair.server] {
        side.endpoint.release(pair.now, side.id.take().expect("there was one"));
    }
    pair.run_for(ms(500));
    assert_eq!(pair.wire.len(), before);
    // The same two can meet again.
    pair.connect();
    pair.run_for(ms(100));
    assert!(pair.client().is_established());
}

/// RFC 9260 §9.2: T2 runs whatever else the packet asks for, and the association ends though the peer is gone.
#[test]
fn a_shutdown_behind_a_flood_of_heartbeats_is_answered_until_the_peer_is_given_up() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    let cumulative_tsn = pair.client().cumulative_tsn();
    let before = pair.wire.len();
    pair.network = Box::new(|_| None);
    let heartbeat = Chunk::Heartbeat(Heartbeat { body: &[0, 1, 0, 8, 1, 2, 3, 4] });
    let last = [Chunk::Shutdown(Shutdown { cumulative_tsn })];
    let chunks: Vec<Chunk<'_>> = std::iter::repeat_n(heartbeat, 80).chain(last).collect();
    pair.inject(true, 0, pair.packet(true, &chunks));
    assert!(pair.sent_since(before).iter().any(|flight| flight.carries(ChunkKind::SHUTDOWN_ACK)));
    pair.run_for(Duration::from_secs(3600));
    assert_eq!(pair.server().state_name(), "CLOSED");
}
