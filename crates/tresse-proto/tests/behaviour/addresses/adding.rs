//! An address is added: which paths it makes, and what may leave on them when (RFC 5061 §4.2.1, §5.3).

use super::*;

use tresse_proto::AddressError;

#[test]
fn a_path_that_joins_carries_its_share() {
    // Over disjoint paths, and where every address reaches every other until the better path is there.
    for network in [disjoint as fn(&Flight) -> bool, |_| true] {
        let mut pair = pair(2);
        pair.network = Box::new(move |flight| network(flight).then_some(ms(10)));
        send(&mut pair, 0, 50);
        add_third_path(&mut pair);
        assert_eq!(told(&pair), [(address(1, 2), AddressChange::Add, AddressOutcome::Done)]);
        assert_eq!(heard(&pair), [(address(1, 2), AddressChange::Add)]);
        let before = pair.wire.len();
        send(&mut pair, 50, 300);
        run_until_received(&mut pair, 350);
        let third = |flight: &&Flight| flight.has_data() && flight.path() == 2;
        let count = pair.sent_since(before).iter().filter(third).count();
        assert!(count > 50, "{count} packets of about 300");
        pair.run_for(ms(300));
        let [client, server] = stats(&mut pair);
        assert_eq!(client.iter().map(|path| path.flight).sum::<usize>(), 0);
        let living = |path: &&PathStats| path.state != PathState::Removed;
        assert_eq!(client.iter().filter(living).count(), 3, "{client:?}");
        assert_eq!(server.iter().filter(living).count(), 3, "{server:?}");
        assert!(client.iter().any(|path| path.local == address(1, 2) && path.srtt == Some(ms(20))));
    }
}

/// Links 0 and 1, then 1 and 2: the path over link 2 takes the slot of link 0, and still pairs the addresses of its own link.
#[test]
fn an_association_that_moves_from_link_to_link_pairs_the_addresses_of_each() {
    let mut pair = pair(2);
    pair.network = Box::new(|_| Some(ms(10)));
    send(&mut pair, 0, 10);
    let both = |pair: &mut Pair, add: bool, link: u8| {
        let now = pair.now;
        let change = |host: &mut tresse_proto::AssociationHandle<'_>, address| {
            if add { host.add_address(now, address) } else { host.remove_address(now, address) }
                .expect("free to ask");
        };
        change(&mut pair.client(), address(1, link));
        change(&mut pair.server(), address(2, link));
        pair.run_for(ms(500));
    };
    both(&mut pair, false, 0);
    let before = pair.wire.len();
    both(&mut pair, true, 2);
    send(&mut pair, 10, 100);
    run_until_received(&mut pair, 110);
    let crossed = |flight: &&Flight| flight.has_data() && !disjoint(flight);
    assert_eq!(pair.sent_since(before).iter().filter(crossed).count(), 0);
}

#[test]
fn nothing_but_asconf_leaves_from_an_address_before_the_peer_agrees() {
    let mut pair = pair(1);
    let agreed = std::rc::Rc::new(std::cell::Cell::new(false));
    let seen = agreed.clone();
    // The old address is dead: only ASCONF from the new one can arrange anything.
    pair.network = Box::new(move |flight| {
        let passes = flight.transmit.local != address(1, 0) && flight.transmit.remote != address(1, 0);
        seen.set(seen.get() || (passes && flight.carries(ChunkKind::ASCONF_ACK)));
        let from_new = flight.transmit.local == address(1, 1);
        let only_asconf = flight.kinds() == [ChunkKind::AUTH, ChunkKind::ASCONF];
        assert!(!from_new || seen.get() || only_asconf, "{}", flight.dissect());
        passes.then_some(ms(10))
    });
    send(&mut pair, 0, 20);
    let now = pair.now;
    pair.client().add_address(now, address(1, 1)).expect("a new address");
    run_until_received(&mut pair, 20);
    assert!(agreed.get());
    assert_eq!(heard(&pair), [(address(1, 1), AddressChange::Add)]);
    let sent = with_kind(&pair, true, ChunkKind::ASCONF);
    let from: Vec<IpAddr> = sent.iter().map(|flight| flight.transmit.local).collect();
    assert_eq!(from, [address(1, 0), address(1, 1)], "the first way does not answer, the second does");
    assert_eq!(request_of(&sent[0]), request_of(&sent[1]), "the same chunk again (RFC 5061 §5.1 B4)");
}

#[test]
fn a_host_that_moves_keeps_its_association() {
    let mut pair = pair(1);
    send(&mut pair, 0, 10);
    run_until_received(&mut pair, 10);
    pair.network = Box::new(|flight| {
        let dead = flight.transmit.local == address(1, 0) || flight.transmit.remote == address(1, 0);
        (!dead).then_some(ms(10))
    });
    let now = pair.now;
    pair.client().add_address(now, address(1, 1)).expect("a new address");
    pair.client().remove_address(now, address(1, 0)).expect("an address of it");
    send(&mut pair, 10, 100);
    run_until_received(&mut pair, 110);
    let both = [(address(1, 1), AddressChange::Add), (address(1, 0), AddressChange::Remove)];
    assert_eq!(heard(&pair), both);
    assert_eq!(told(&pair), both.map(|(address, change)| (address, change, AddressOutcome::Done)));
    let [client, server] = stats(&mut pair);
    assert_eq!(path_states(&client), [PathState::Removed, PathState::Active]);
    assert_eq!(path_states(&server), [PathState::Removed, PathState::Active]);
    let now = pair.now;
    pair.client().shutdown(now);
    pair.run_for(Duration::from_secs(2));
    assert!(matches!(pair.server.events.last(), Some(Event::Closed(tresse_proto::CloseReason::Graceful))));
}

#[test]
fn a_new_path_carries_no_data_until_its_heartbeat_is_answered() {
    let mut pair = pair(1);
    // Over path 1 comes whatever asks, but not the answer to a heartbeat.
    pair.network = Box::new(|flight| {
        let answers = flight.path() == 1 && flight.carries(ChunkKind::HEARTBEAT_ACK);
        (disjoint(flight) && !answers).then_some(ms(10))
    });
    let now = pair.now;
    pair.client().add_address(now, address(1, 1)).expect("a new address");
    pair.run_for(ms(50));
    let now = pair.now;
    pair.server().add_address(now, address(2, 1)).expect("a new address");
    send(&mut pair, 0, 200);
    run_until_received(&mut pair, 200);
    assert!(!pair.wire.iter().any(|flight| flight.has_data() && flight.path() == 1));
    let [client, _] = stats(&mut pair);
    assert!(client.iter().any(|path| path.local == address(1, 1) && path.state == PathState::Unconfirmed));
    pair.network = Box::new(|flight| disjoint(flight).then_some(ms(10)));
    pair.run_for(Duration::from_secs(60));
    let [client, server] = stats(&mut pair);
    assert_eq!(working(&client), straight(1, [0, 1]));
    assert_eq!(working(&server), straight(2, [0, 1]));
}

#[test]
fn a_path_that_joins_is_probed_at_once_beside_those_that_never_answered() {
    let mut pair = pair(1);
    pair.network = Box::new(|flight| {
        let dead = [2, 3].map(|path| address(1, path));
        let passes = !dead.contains(&flight.transmit.local) && !dead.contains(&flight.transmit.remote);
        passes.then_some(ms(10))
    });
    for path in [2, 3] {
        let now = pair.now;
        pair.client().add_address(now, address(1, path)).expect("a new address");
        pair.run_for(Duration::from_secs(1000));
    }
    let [client, _] = stats(&mut pair);
    assert_eq!(path_states(&client)[1..], [PathState::Inactive; 2]);
    let now = pair.now;
    pair.client().add_address(now, address(1, 1)).expect("a new address");
    pair.run_for(ms(200));
    let new = [(address(1, 0), address(2, 0)), (address(1, 1), address(2, 0))];
    let [client, _] = stats(&mut pair);
    assert_eq!(working(&client), new);
}

#[test]
fn with_a_full_mesh_a_new_address_meets_all_of_the_peers() {
    let mut config = AssociationConfig::default();
    config.set("path_pairs", "full_mesh").expect("a switch");
    let mut pair = Pair::established(2, &config);
    let now = pair.now;
    pair.client().add_address(now, address(1, 2)).expect("a new address");
    pair.run_for(Duration::from_secs(20));
    let [client, server] = stats(&mut pair);
    let of = |paths: &[PathStats]| {
        paths.iter().filter(|path| path.local == address(1, 2) || path.remote == address(1, 2)).count()
    };
    assert_eq!((client.len(), of(&client)), (6, 2));
    assert_eq!((server.len(), of(&server)), (6, 2));
    assert!(client.iter().chain(&server).all(|path| path.state == PathState::Active));
}

#[test]
fn addresses_that_make_no_sense_are_refused_at_once() {
    let mut pair = pair(2);
    let now = pair.now;
    let mut refused = |address: &str| {
        let error = pair.client().add_address(now, address.parse().expect("an address")).expect_err(address);
        error.to_string()
    };
    assert_eq!(refused("10.0.1.1"), "10.0.1.1 is an address of the association already");
    assert_eq!(refused("224.0.0.1"), "224.0.0.1 is no address of one host");
    assert_eq!(refused("0.0.0.0"), "0.0.0.0 is no address of one host");
    assert_eq!(refused("fd00::1"), "fd00::1 reaches no address of the peer: it has no IPv6 address");
    let unknown = pair.client().remove_address(now, address(1, 7)).expect_err("not one of them");
    assert_eq!(
        unknown.to_string(),
        "10.0.7.1 is no address of the association; its own are 10.0.0.1, 10.0.1.1"
    );
    assert!(matches!(pair.client().set_peer_primary(now, address(1, 7)), Err(AddressError::Unknown { .. })));
    pair.run_for(ms(100));
    assert!(with_kind(&pair, true, ChunkKind::ASCONF).is_empty());
}

#[test]
fn as_many_paths_as_allowed_are_enough() {
    let two = AssociationConfig::default().with(|c| c.max_paths = 2);
    let mut pair = Pair::unlike(2, &AssociationConfig::default(), &two, 1).settled();
    let now = pair.now;
    pair.client().add_address(now, address(1, 2)).expect("there is room on this side");
    pair.run_for(ms(100));
    assert_eq!(told(&pair), [(address(1, 2), AddressChange::Add, AddressOutcome::NoResources)]);
    let [client, server] = stats(&mut pair);
    assert_eq!(path_states(&client), [PathState::Active, PathState::Active, PathState::Removed]);
    assert_eq!(server.len(), 2);
    let now = pair.now;
    let refusal = pair.server().add_address(now, address(2, 2)).expect_err("no room here");
    assert_eq!(refusal.to_string(), "the association already has its 2 paths (setting \"max_paths\")");
}

#[test]
fn streams_bound_to_paths_follow_when_one_joins() {
    for map in ["fixed:0,1,2", "adaptive"] {
        let mut config = AssociationConfig::default();
        config.set("stream_map", map).expect("a map");
        let mut pair = Pair::established(2, &config);
        send(&mut pair, 0, 20);
        pair.send(2, 0, 1000);
        add_third_path(&mut pair);
        let before = pair.wire.len();
        for number in 1..200 {
            pair.send(2, number, 1000);
        }
        pair.run_until(Duration::from_secs(60), |pair| pair.server.numbers_on(2).len() == 200);
        let third = |flight: &&Flight| flight.has_data() && flight.path() == 2;
        assert!(pair.sent_since(before).iter().filter(third).count() > 20, "{map}");
        let now = pair.now;
        pair.client().remove_address(now, address(1, 2)).expect("an address of it");
        for number in 200..220 {
            pair.send(2, number, 1000);
        }
        pair.run_until(Duration::from_secs(60), |pair| pair.server.numbers_on(2).len() == 220);
    }
}
