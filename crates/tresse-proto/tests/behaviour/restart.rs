//! COOKIE ECHO and INIT for an association that exists: restarts, collisions, what comes late, and what
//! only pretends (RFC 9260 §5.2).

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use tresse_proto::{AssociationConfig, Connect, Datagram, Endpoint, EndpointConfig, Event, SendOptions};
use tresse_wire::{Cause, Chunk, ChunkKind, Param, Shutdown};

use crate::common::{PORT, Pair, address, content, echo, init, packet};

/// Tag of the client's next life.
const NEW_TAG: u32 = 0x0bad_cafe;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn established() -> Pair {
    Pair::established(2, &AssociationConfig::default())
}

/// What the client says in an INIT: its two addresses.
fn addresses() -> [Param<'static>; 2] {
    [Param::Address(address(1, 0)), Param::Address(address(1, 1))]
}

/// What the server sends to an INIT of the client, from its address on `path`.
fn send_init(pair: &mut Pair, tag: u32, path: u8, params: &[Param<'_>]) -> Vec<Bytes> {
    let before = pair.wire.len();
    let port = pair.client.endpoint.port();
    pair.inject(true, path, packet(port, PORT, 0, &[Chunk::Init(init(tag, params))]));
    pair.sent_since(before)
        .iter()
        .filter(|flight| !flight.to_server)
        .map(|flight| flight.bytes.clone())
        .collect()
}

/// The COOKIE ECHO of a client that has begun its next life, ready to be sent.
fn restarting(pair: &mut Pair) -> Bytes {
    pair.network = Box::new(|_| None);
    let answers = send_init(pair, NEW_TAG, 0, &addresses());
    echo(&answers[0])
}

/// The types of chunks that the server sends when this arrives.
fn answers(pair: &mut Pair, bytes: Bytes) -> Vec<ChunkKind> {
    let before = pair.wire.len();
    pair.inject(true, 0, bytes);
    let of_server = pair.sent_since(before).iter().filter(|flight| !flight.to_server);
    of_server.flat_map(|flight| flight.kinds()).collect()
}

fn restarts(pair: &Pair) -> usize {
    pair.server.events.iter().filter(|event| matches!(event, Event::Restarted { .. })).count()
}

#[test]
fn a_peer_that_restarts_takes_its_old_place() {
    let config = AssociationConfig::default();
    let small = EndpointConfig::default().with(|c| {
        c.port = PORT;
        c.listen = true;
        c.max_associations = 1;
    });
    let client = EndpointConfig::default().with(|c| c.port = 700);
    let mut pair = Pair::between(2, (&config, client), (&config, small), 1).settled();
    for number in 0..50 {
        pair.send(0, number, 1400);
    }
    pair.run_until(ms(5000), |pair| pair.server.received.len() == 50);
    let (id, tags, now) = (pair.server.id, (pair.tag(true), pair.tag(false)), pair.now);
    let grown = pair.server().path_stats(now)[0].packets_received;

    pair.restart_client();
    pair.connect();
    pair.run_for(ms(200));
    assert!(pair.client().is_established() && pair.server().is_established());
    let streams = Event::Restarted { outbound_streams: 10, inbound_streams: 10, undelivered: 0 };
    assert_eq!(pair.server.events.iter().find(|event| **event == streams), Some(&streams));
    assert!(
        !pair.server.events.iter().any(|event| matches!(event, Event::Established { .. } | Event::Closed(_)))
    );
    assert_eq!(pair.server.id, id);
    assert!(pair.tag(true) != tags.0 && pair.tag(false) != tags.1);
    let now = pair.now;
    assert!(pair.server().path_stats(now)[0].packets_received < grown, "counters begin again");

    // Streams begin at SSN 0 again, in both directions.
    pair.server.received.clear();
    pair.send(0, 7, 3000);
    pair.server().send(now, SendOptions::default(), content(0, 8, 3000)).expect("room");
    pair.run_until(ms(5000), |pair| pair.server.received.len() == 1 && pair.client.received.len() == 1);
    assert_eq!((pair.server.numbers_on(0), pair.client.numbers_on(0)), (vec![7], vec![8]));
    // All paths are proved again.
    pair.run_until(ms(30_000), |pair| {
        let now = pair.now;
        pair.server().path_stats(now).iter().all(|path| path.state == tresse_proto::PathState::Active)
    });
}

#[test]
fn what_had_arrived_can_still_be_read_and_what_was_queued_is_not_for_the_new_peer() {
    let mut pair = established();
    pair.server.reads = false;
    pair.send(0, 1, 5000);
    pair.send(3, 2, 100);
    pair.run_for(ms(300));
    pair.network = Box::new(|_| None);
    let now = pair.now;
    for number in 0..20 {
        pair.server().send(now, SendOptions::default(), content(0, 100 + number, 2000)).expect("room");
    }
    pair.run_for(ms(100));

    pair.network = Box::new(|_| Some(ms(10)));
    pair.restart_client();
    pair.connect();
    pair.run_for(ms(5000));
    let restarted = Event::Restarted { outbound_streams: 10, inbound_streams: 10, undelivered: 40_000 };
    assert!(pair.server.events.contains(&restarted), "{:?}", pair.server.events);
    let now = pair.now;
    let stats = pair.server().stats(now).expect("open");
    assert_eq!((stats.receive_buffer_used, stats.send_buffer_used, stats.flight), (5100 + 6 * 16, 0, 0));
    pair.send(0, 3, 100);
    pair.server.reads = true;
    pair.run_for(ms(500));
    assert_eq!((pair.server.numbers_on(0), pair.server.numbers_on(3)), (vec![1, 3], vec![2]));
    assert!(pair.client.received.is_empty());
    let now = pair.now;
    assert_eq!(pair.server().stats(now).map(|stats| stats.receive_buffer_used), Some(0));
}

#[test]
fn the_applications_choices_outlast_a_restart() {
    let mut pair = established();
    pair.server().set_stream_scheduler("priority", "").expect("it exists");
    pair.server().set_stream_value(tresse_proto::StreamId(4), 9).expect("it has values");
    pair.restart_client();
    pair.connect();
    pair.run_for(ms(300));
    assert_eq!(restarts(&pair), 1);
    assert_eq!(pair.server().stream_value(tresse_proto::StreamId(4)), Some(9));
}

#[test]
fn a_sender_that_waits_for_room_is_told_when_a_restart_makes_some() {
    let mut pair = established();
    pair.network = Box::new(|_| None);
    let now = pair.now;
    while pair.server().send(now, SendOptions::default(), content(0, 0, 60_000)).is_ok() {}
    pair.pump();
    pair.server.events.clear();
    let echo = restarting(&mut pair);
    assert_eq!(answers(&mut pair, echo), [ChunkKind::COOKIE_ACK]);
    assert!(pair.server.events.contains(&Event::Writable), "{:?}", pair.server.events);
}

#[test]
fn an_association_that_was_to_end_ends_with_the_restarted_peer() {
    let mut pair = established();
    pair.network = Box::new(|_| None);
    let now = pair.now;
    pair.server().send(now, SendOptions::default(), content(0, 0, 100)).expect("room");
    pair.server().shutdown(now);
    assert_eq!(pair.server().state_name(), "SHUTDOWN-PENDING");
    let echo = restarting(&mut pair);
    assert_eq!(answers(&mut pair, echo), [ChunkKind::COOKIE_ACK, ChunkKind::SHUTDOWN]);
    assert_eq!(pair.server().state_name(), "SHUTDOWN-SENT");
}

#[test]
fn a_restart_with_another_address_is_refused_and_changes_nothing() {
    let stranger: IpAddr = address(66, 0);
    let mut pair = established();
    let listed = [Param::Address(address(1, 0)), Param::Address(stranger)];
    for (path, params, told) in [
        // It lists an address of somebody else.
        (0, &listed[..], vec![stranger]),
        // It comes from elsewhere and lists the peer's own address.
        (9, &addresses()[..], vec![address(1, 9)]),
    ] {
        let refusal = send_init(&mut pair, NEW_TAG, path, params);
        assert_eq!(refusal.len(), 1);
        let parsed =
            tresse_wire::Packet::parse(&refusal[0], tresse_wire::ChecksumRule::Verify).expect("a packet");
        assert_eq!(parsed.header.verification_tag, NEW_TAG);
        let Some(Ok(Chunk::Abort(abort))) = parsed.chunks().next() else { panic!("no ABORT") };
        assert!(!abort.tag_reflected);
        let Some(Ok(Cause::RestartWithNewAddresses(new))) = abort.causes.iter().next() else {
            panic!("{abort:?}");
        };
        let new: Vec<Param<'_>> = tresse_wire::Params::Wire(new).iter().flatten().collect();
        assert_eq!(new, told.into_iter().map(Param::Address).collect::<Vec<_>>());
    }
    assert_eq!(pair.server.endpoint.discards().refused, 2);
    assert!(pair.server().is_established());
    pair.send(0, 1, 100);
    pair.run_until(ms(1000), |pair| pair.server.received.len() == 1);
}

#[test]
fn fewer_addresses_are_no_objection_and_an_address_that_cannot_be_used_neither() {
    let mut pair = established();
    pair.network = Box::new(|_| None);
    let v6: IpAddr = "fd00::9".parse().expect("an address");
    let init_ack = send_init(&mut pair, NEW_TAG, 1, &[Param::Address(v6)]);
    let echo = echo(&init_ack[0]);
    pair.inject(true, 1, echo);
    assert_eq!(restarts(&pair), 1);
    let now = pair.now;
    let remotes: Vec<IpAddr> = pair.server().path_stats(now).iter().map(|path| path.remote).collect();
    assert_eq!(remotes, [address(1, 1)]);
    // What belongs to the association no more does not lead to it.
    let tag = pair.tag(true);
    let before = pair.server.endpoint.discards().out_of_the_blue;
    let ack = packet(pair.client.endpoint.port(), PORT, tag, &[Chunk::ShutdownAck]);
    pair.inject(true, 0, ack);
    assert_eq!(pair.server.endpoint.discards().out_of_the_blue, before + 1);
}

/// An established association over UDP port 9899.
fn established_over_udp() -> Pair {
    let config = AssociationConfig::default();
    let client = EndpointConfig::default().with(|c| c.encapsulation_port = 9899);
    let server = EndpointConfig::listening(PORT);
    Pair::between(2, (&config, client), (&config, server), 1).settled()
}

/// The UDP ports in the ABORT by which the server refuses an INIT with this tag from `port`; `None` if it answers with an INIT ACK.
fn refused_ports(pair: &mut Pair, tag: u32, port: Option<u16>) -> Option<(u16, u16)> {
    let before = pair.wire.len();
    let payload = packet(pair.client.endpoint.port(), PORT, 0, &[Chunk::Init(init(tag, &addresses()))]);
    let datagram = Datagram {
        local: address(2, 0),
        remote: address(1, 0),
        encapsulation_port: port,
        payload,
        ecn: Default::default(),
    };
    pair.server.endpoint.handle_datagram(pair.now, datagram);
    pair.pump();
    let answer = &pair.sent_since(before)[0];
    assert_eq!(answer.transmit.encapsulation_port, port, "it goes where the INIT came from");
    match answer.chunks()[0] {
        Chunk::InitAck(_) => None,
        Chunk::Abort(abort) => abort.causes.iter().flatten().find_map(|cause| match cause {
            Cause::RestartWithNewEncapsulationPort { current, new } => Some((current, new)),
            _ => None,
        }),
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn a_restart_through_another_udp_port_is_refused() {
    let mut pair = established_over_udp();
    assert_eq!(refused_ports(&mut pair, NEW_TAG, Some(7000)), Some((9899, 7000)));
    assert_eq!(refused_ports(&mut pair, NEW_TAG, None), Some((9899, 0)));
    assert_eq!(refused_ports(&mut pair, NEW_TAG, Some(9899)), None);
    assert!(pair.server().is_established());
}

#[test]
fn the_first_init_that_comes_late_through_another_udp_port_ends_nothing() {
    let mut pair = established_over_udp();
    let tag = pair.tag(false);
    assert_eq!(refused_ports(&mut pair, tag, Some(7000)), None);
    pair.send(0, 1, 100);
    pair.run_until(ms(1000), |pair| pair.server.received.len() == 1);
    assert!(pair.server().is_established() && pair.client().is_established());
}

/// Two hosts behind one address: the peer takes the second for the first, come again through another UDP port.
#[test]
fn a_set_up_takes_another_port_when_the_peer_knows_this_one_from_another_host() {
    let config = AssociationConfig::default();
    let client = EndpointConfig::default().with(|c| {
        c.port = 4000;
        c.encapsulation_port = 9899;
    });
    let server = EndpointConfig::listening(PORT);
    for free in [true, false] {
        let mut pair = Pair::between(2, (&config, client.clone()), (&config, server.clone()), 1).settled();
        let mut second = Endpoint::new(client.clone(), config.clone(), [7; 32]).expect("settings that work");
        if free {
            second.let_port_change();
        }
        let connect = Connect::new(vec![address(1, 0)], vec![address(2, 0)], PORT, config.clone())
            .with(|c| c.encapsulation_port = Some(9899));
        let id = second.connect(pair.now, connect).expect("it can begin");
        let early = second.association(id).expect("it is there").send(
            pair.now,
            SendOptions::default(),
            "early".into(),
        );
        early.expect("room");
        // Both have the same address; the UDP port tells them apart.
        for _ in 0..20 {
            let mut bytes = Vec::new();
            while let Some(transmit) = second.poll_transmit(pair.now, 1, &mut bytes) {
                let payload = std::mem::take(&mut bytes).into();
                let datagram = Datagram {
                    local: transmit.remote,
                    remote: transmit.local,
                    encapsulation_port: Some(7000),
                    payload,
                    ecn: Default::default(),
                };
                pair.server.endpoint.handle_datagram(pair.now, datagram);
            }
            while let Some(transmit) = pair.server.endpoint.poll_transmit(pair.now, 1, &mut bytes) {
                let payload = std::mem::take(&mut bytes).into();
                let datagram = Datagram {
                    local: transmit.remote,
                    remote: transmit.local,
                    encapsulation_port: Some(9899),
                    payload,
                    ecn: Default::default(),
                };
                second.handle_datagram(pair.now, datagram);
            }
        }
        let closed =
            std::iter::from_fn(|| second.poll_event()).any(|(_, event)| matches!(event, Event::Closed(_)));
        let established = second.association(id).is_some_and(|association| association.is_established());
        assert_eq!((established, closed), (free, !free));
        assert_eq!(second.port() != 4000, free);
        assert!(pair.server().is_established(), "the first association is left alone");
        let met = std::iter::from_fn(|| pair.server.endpoint.poll_event())
            .find_map(|(id, event)| matches!(event, Event::Established { .. }).then_some(id));
        let now = pair.now;
        let message = met.and_then(|id| pair.server.endpoint.association(id)?.recv(now));
        assert_eq!(message.map(|message| message.payload.into_bytes()), free.then(|| "early".into()));
    }
}

/// Case C of RFC 9260 §5.2.4, and a cookie of a restart that another restart has overtaken.
#[test]
fn cookies_that_come_late_are_dropped() {
    let mut pair = Pair::new(2, &AssociationConfig::default());
    pair.network = Box::new(|_| None);
    let [first, second] = [0, 1].map(|_| send_init(&mut pair, NEW_TAG, 0, &addresses()).remove(0));
    let (first, second) = (echo(&first), echo(&second));
    assert_eq!(answers(&mut pair, second), [ChunkKind::COOKIE_ACK]);
    assert_eq!(answers(&mut pair, first), []);
    assert_eq!(pair.server.endpoint.discards().late_cookie, 1);

    let [third, fourth] =
        [NEW_TAG + 1, NEW_TAG + 2].map(|tag| send_init(&mut pair, tag, 0, &addresses()).remove(0));
    let (third, fourth) = (echo(&third), echo(&fourth));
    assert_eq!(answers(&mut pair, fourth), [ChunkKind::COOKIE_ACK]);
    assert_eq!(restarts(&pair), 1);
    assert_eq!(answers(&mut pair, third), []);
    assert_eq!((pair.server.endpoint.discards().late_cookie, restarts(&pair)), (2, 1));
    assert!(pair.server().is_established());
}

/// Case D: the cookie of the association itself is good at any age; that of a restart is not.
#[test]
fn a_cookie_is_stale_only_when_its_tags_are_not_those_of_the_association() {
    let mut pair = Pair::new(2, &AssociationConfig::default());
    pair.network = Box::new(|_| None);
    let init_ack = send_init(&mut pair, NEW_TAG, 0, &addresses()).remove(0);
    let own = echo(&init_ack);
    assert_eq!(answers(&mut pair, own.clone()), [ChunkKind::COOKIE_ACK]);
    let init_ack = send_init(&mut pair, NEW_TAG + 1, 0, &addresses()).remove(0);
    let restart = echo(&init_ack);
    pair.run_for(Duration::from_secs(61));
    assert_eq!(answers(&mut pair, own), [ChunkKind::COOKIE_ACK]);
    assert_eq!(answers(&mut pair, restart), [ChunkKind::ERROR]);
    assert_eq!((pair.server.endpoint.discards().stale_cookie, restarts(&pair)), (1, 0));
}

#[test]
fn a_restart_waits_for_the_end_of_an_association_that_is_nearly_over() {
    let mut pair = established();
    let echo = restarting(&mut pair);
    let now = pair.now;
    // The client of old had everything and wants to end.
    let cumulative_tsn = last_tsn(&mut pair);
    let shutdown = pair.packet(true, &[Chunk::Shutdown(Shutdown { cumulative_tsn })]);
    let old_tag = first_tag(&pair);
    let shutdown = retag(shutdown, old_tag);
    assert_eq!(answers(&mut pair, shutdown), [ChunkKind::SHUTDOWN_ACK]);
    assert_eq!(pair.server().state_name(), "SHUTDOWN-ACK-SENT");
    assert_eq!(answers(&mut pair, echo), [ChunkKind::ERROR, ChunkKind::SHUTDOWN_ACK]);
    let error = pair.wire.last().expect("sent").clone();
    let Chunk::Error(error) = error.chunks()[0] else { panic!("{}", error.dissect()) };
    assert_eq!(error.causes.iter().flatten().next(), Some(Cause::CookieWhileShuttingDown));
    // INIT is answered the same way, without an INIT ACK.
    let port = pair.client.endpoint.port();
    let again = packet(port, PORT, 0, &[Chunk::Init(init(NEW_TAG + 1, &addresses()))]);
    assert_eq!(answers(&mut pair, again), [ChunkKind::SHUTDOWN_ACK]);
    assert_eq!((restarts(&pair), pair.server().state_name()), (0, "SHUTDOWN-ACK-SENT"));
    assert_eq!(now, pair.now);
}

/// The TSN before the server's first: nothing was sent.
fn last_tsn(pair: &mut Pair) -> tresse_proto::Tsn {
    let init_ack = pair.wire.iter().find(|flight| flight.carries(ChunkKind::INIT_ACK)).expect("set up");
    let Chunk::InitAck(init) = init_ack.chunks()[0] else { panic!("{}", init_ack.dissect()) };
    tresse_proto::Tsn(init.initial_tsn.0.wrapping_sub(1))
}

/// The tag of the server's first life.
fn first_tag(pair: &Pair) -> u32 {
    let init_ack = pair.wire.iter().find(|flight| flight.carries(ChunkKind::INIT_ACK)).expect("set up");
    let Chunk::InitAck(init) = init_ack.chunks()[0] else { panic!("{}", init_ack.dissect()) };
    init.initiate_tag
}

fn retag(bytes: Bytes, tag: u32) -> Bytes {
    let mut bytes = bytes.to_vec();
    bytes[4..8].copy_from_slice(&tag.to_be_bytes());
    tresse_wire::seal(&mut bytes);
    bytes.into()
}

/// A server, port 5001, with an association whose peer, at port 700, has listed the client's address beside its own.
fn camped() -> Pair {
    let config = AssociationConfig::default();
    let client = EndpointConfig::listening(700);
    let server = EndpointConfig::listening(PORT);
    let mut pair = Pair::between(1, (&config, client), (&config, server), 1);
    let camping = [Param::Address(address(1, 9)), Param::Address(address(1, 0))];
    let init_ack = send_init(&mut pair, NEW_TAG, 9, &camping).remove(0);
    pair.inject(true, 9, echo(&init_ack));
    let (now, camper) = (pair.now, pair.server.id.take().expect("set up"));
    let paths = pair.server.endpoint.association(camper).expect("there").path_stats(now);
    assert_eq!(paths.iter().map(|path| path.remote).collect::<Vec<_>>(), [address(1, 9), address(1, 0)]);
    pair
}

/// An address that somebody else listed and cannot answer from keeps its owner out of nothing (RFC 5062 §2).
#[test]
fn nobody_is_kept_out_by_who_only_listed_its_address() {
    let mut pair = camped();
    pair.connect();
    pair.run_for(ms(100));
    assert!(pair.client().is_established());
    pair.send(0, 1, 100);
    pair.run_for(ms(300));
    let now = pair.now;
    assert_eq!(pair.client().stats(now).expect("open").send_buffer_used, 0, "acknowledged");
    let abort = pair.wire.iter().find(|flight| flight.carries(ChunkKind::ABORT) && !flight.to_server);
    assert!(abort.is_none(), "{}", pair.log.join("\n"));
}

#[test]
fn an_address_that_somebody_only_listed_can_be_connected_to() {
    let mut pair = camped();
    let connect = Connect::new(vec![address(2, 0)], vec![address(1, 0)], 700, AssociationConfig::default());
    let id = pair.server.endpoint.connect(pair.now, connect).expect("not connected yet");
    pair.server.id = Some(id);
    pair.run_for(ms(100));
    assert!(pair.server().is_established());
}

/// Nobody who only sees cookies learns the tags of an association.
#[test]
fn cookies_show_no_tag_of_an_association() {
    let mut pair = established();
    let tags = [pair.tag(true), pair.tag(false)];
    let init_ack = send_init(&mut pair, NEW_TAG, 0, &addresses()).remove(0);
    for tag in tags {
        assert!(!init_ack.windows(4).any(|window| window == tag.to_be_bytes()));
    }
}

#[test]
fn a_cookie_that_comes_back_after_the_end_raises_nobody_from_the_dead() {
    // Within its life, and after it: then it is not called stale either, for its sender was let in.
    for later in [0, 100] {
        come_back_after_the_end(Duration::from_secs(later));
    }
}

fn come_back_after_the_end(later: Duration) {
    let mut pair = established();
    pair.send(1, 0, 500);
    pair.run_for(ms(500));
    let now = pair.now;
    pair.client().shutdown(now);
    pair.run_for(ms(500));
    assert_eq!(pair.server().state_name(), "CLOSED");
    pair.run_for(later);
    let events = pair.server.events.len();
    let old: Vec<_> = pair.wire.iter().filter(|flight| flight.to_server).cloned().collect();
    for flight in old {
        pair.inject(true, 0, flight.bytes);
    }
    assert_eq!((pair.server.events.len(), pair.server.received.len()), (events, 1));
    assert_eq!(pair.server.endpoint.discards().late_cookie, 1);
    assert_eq!(pair.server.endpoint.discards().stale_cookie, 0);
}

/// An INIT from one address without the others, whose cookie comes back from another one: nothing is made of it.
fn cookie_from_elsewhere(pair: &mut Pair) -> u64 {
    let init_ack = send_init(pair, NEW_TAG, 0, &[]).remove(0);
    let before = pair.server.endpoint.discards().bad_cookie;
    pair.inject(true, 1, echo(&init_ack));
    pair.server.endpoint.discards().bad_cookie - before
}

#[test]
fn a_cookie_from_an_address_that_its_init_did_not_name_sets_up_nothing() {
    let config = AssociationConfig::default();
    let (client, server) = (EndpointConfig::listening(700), EndpointConfig::listening(PORT));
    let mut pair = Pair::between(2, (&config, client), (&config, server), 1);
    assert_eq!(cookie_from_elsewhere(&mut pair), 1);
    assert!(pair.server.events.is_empty(), "{:?}", pair.server.events);
}

#[test]
fn a_cookie_from_an_address_that_its_init_did_not_name_restarts_nothing() {
    let mut pair = established();
    pair.network = Box::new(|_| None);
    assert_eq!((cookie_from_elsewhere(&mut pair), restarts(&pair)), (1, 0));
    // An association without a path would have no place for its control chunks.
    let now = pair.now;
    pair.server().shutdown(now);
    pair.pump();
}

/// An address that was listed and did not answer for minutes counts as failed, and still belongs to nobody.
#[test]
fn nobody_is_kept_out_by_who_listed_its_address_long_ago() {
    let mut pair = camped();
    pair.network = Box::new(|_| None);
    pair.run_for(Duration::from_secs(400));
    pair.network = Box::new(|_| Some(ms(10)));
    pair.connect();
    pair.run_for(ms(200));
    assert!(pair.client().is_established(), "{}", pair.log.join("\n"));
}

#[test]
fn a_cookie_for_which_there_is_no_room_any_more_is_refused_at_once() {
    let config = AssociationConfig::default();
    let full = EndpointConfig::listening(PORT).with(|c| c.max_associations = 1);
    let mut pair = Pair::between(2, (&config, EndpointConfig::listening(700)), (&config, full), 1);
    let first = send_init(&mut pair, NEW_TAG, 0, &[]).remove(0);
    let second = send_init(&mut pair, NEW_TAG + 1, 1, &[]).remove(0);
    pair.inject(true, 0, echo(&first));
    let before = pair.wire.len();
    pair.inject(true, 1, echo(&second));
    let answer = pair.sent_since(before).iter().find(|flight| !flight.to_server).expect("an answer");
    assert_eq!(answer.kinds(), [ChunkKind::ABORT]);
    assert_eq!(answer.bytes[4..8], (NEW_TAG + 1).to_be_bytes());
}
