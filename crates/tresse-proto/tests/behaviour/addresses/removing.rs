//! An address is removed, or another one preferred: what becomes of its paths and of what was on them (RFC 5061
//! §4.2.2, §4.2.4, §5.3).

use super::*;

use tresse_proto::AddressError;

#[test]
fn what_was_on_a_removed_path_goes_again_on_another() {
    let mut pair = pair(2);
    send(&mut pair, 0, 150);
    pair.run_for(ms(15));
    let now = pair.now;
    let [client, _] = stats(&mut pair);
    assert!(client[1].flight > 0, "it is in use");
    let before = pair.wire.len();
    pair.client().remove_address(now, address(1, 1)).expect("an address of it");
    run_until_received(&mut pair, 150);
    assert!(
        !pair.sent_since(before).iter().any(|flight| flight.transmit.local == address(1, 1)),
        "nothing leaves from there any more (RFC 5061 §5.3)"
    );
    assert!(pair.now - now < ms(500), "long before a timeout: {:?}", pair.now - now);
    assert_eq!(told(&pair), [(address(1, 1), AddressChange::Remove, AddressOutcome::Done)]);
    assert_eq!(heard(&pair), [(address(1, 1), AddressChange::Remove)]);
    assert!(pair.client.events.contains(&changed(1, PathState::Removed)));
    assert!(pair.server.events.contains(&changed(1, PathState::Removed)));
    // The other address of the server needs another path: seen from both sides, the same.
    let [client, server] = stats(&mut pair);
    assert!(client.iter().all(|path| path.local == address(1, 0)), "{client:?}");
    assert!(server.iter().all(|path| path.remote == address(1, 0)), "{server:?}");
    assert_eq!(server.iter().map(|path| path.local).collect::<Vec<_>>(), [0, 1].map(|path| address(2, path)));
}

#[test]
fn the_peers_data_leaves_a_removed_path_too() {
    let mut pair = pair(2);
    let now = pair.now;
    for number in 0..100 {
        let message = crate::common::content(3, number, 1000);
        let on = tresse_proto::SendOptions::on(tresse_proto::StreamId(3));
        pair.server().send(now, on, message).expect("room");
    }
    pair.run_for(ms(15));
    let now = pair.now;
    pair.client().remove_address(now, address(1, 1)).expect("an address of it");
    pair.run_until(Duration::from_secs(2), |pair| pair.client.received.len() == 100);
    assert_eq!(pair.client.numbers_on(3), (0..100).collect::<Vec<_>>());
    pair.run_for(ms(100));
    let before = pair.wire.len();
    pair.run_for(Duration::from_secs(100));
    assert!(!pair.sent_since(before).is_empty(), "there are heartbeats");
    let to_gone = |flight: &Flight| flight.transmit.remote == address(1, 1);
    assert!(!pair.sent_since(before).iter().any(to_gone), "but none for what is gone");
}

#[test]
fn the_last_address_cannot_be_removed() {
    let mut pair = pair(2);
    let now = pair.now;
    pair.client().remove_address(now, address(1, 0)).expect("one of two");
    assert_eq!(
        pair.client().remove_address(now, address(1, 1)),
        Err(AddressError::Last { address: address(1, 1) })
    );
    assert!(matches!(pair.client().remove_address(now, address(1, 0)), Err(AddressError::Unknown { .. })));
    pair.run_for(ms(100));
    assert_eq!(told(&pair), [(address(1, 0), AddressChange::Remove, AddressOutcome::Done)]);
    send(&mut pair, 0, 20);
    run_until_received(&mut pair, 20);
}

#[test]
fn an_address_that_was_removed_may_come_back() {
    for network in [disjoint as fn(&Flight) -> bool, |_| true] {
        let mut pair = pair(2);
        pair.network = Box::new(move |flight| network(flight).then_some(ms(10)));
        send(&mut pair, 0, 100);
        run_until_received(&mut pair, 100);
        let now = pair.now;
        pair.client().remove_address(now, address(1, 1)).expect("an address of it");
        pair.run_for(Duration::from_secs(5));
        let now = pair.now;
        pair.client().add_address(now, address(1, 1)).expect("free again");
        pair.run_for(Duration::from_secs(5));
        let [client, server] = stats(&mut pair);
        assert_eq!(working(&client), straight(1, [0, 1]));
        assert_eq!(working(&server), straight(2, [0, 1]));
        let mut back = client.iter().filter(|path| path.local == address(1, 1));
        assert!(back.all(|path| (path.bytes_sent, path.bytes_acked) == (0, 0)), "a new one");
        send(&mut pair, 100, 200);
        run_until_received(&mut pair, 300);
        let [client, _] = stats(&mut pair);
        let back = client.iter().find(|path| path.local == address(1, 1)).expect("a path");
        assert!(back.bytes_sent > 10_000, "{back:?}");
    }
}

#[test]
fn a_path_that_joins_mid_transfer_and_leaves_again_costs_no_message() {
    for seed in 1..6 {
        let mut pair = Pair::with_seed(2, &AssociationConfig::default(), seed).settled();
        let mut dice = crate::common::Dice::new(u64::from(seed));
        pair.network = Box::new(move |_| (!dice.hits(0.02)).then(|| ms(5 + dice.below(20))));
        let (mut number, mut present) = (0, false);
        for step in 1.. {
            assert!(step < 200, "{:?}", heard(&pair));
            send(&mut pair, number, 20);
            number += 20;
            pair.run_for(ms(60));
            if heard(&pair).len() >= 4 {
                break;
            }
            if step % 6 == 0 {
                let now = pair.now;
                let changes = |association: &mut tresse_proto::AssociationHandle<'_>, address| {
                    // The peer may not have answered yet: then another time.
                    if present {
                        association.remove_address(now, address).ok();
                    } else {
                        association.add_address(now, address).ok();
                    }
                };
                changes(&mut pair.client(), address(1, 2));
                changes(&mut pair.server(), address(2, 2));
                present = !present;
            }
        }
        run_until_received(&mut pair, number as usize);
    }
}

#[test]
fn a_peer_follows_a_preference() {
    let mut config = AssociationConfig::default();
    config.set("concurrent", "false").expect("a switch");
    let mut pair = Pair::established(2, &config);
    let now = pair.now;
    pair.server().set_peer_primary(now, address(2, 1)).expect("an address of it");
    pair.run_for(ms(100));
    let preferred = Event::PeerAddress { address: address(2, 1), change: AddressChange::Prefer };
    assert!(pair.client.events.contains(&preferred));
    let done = Event::OwnAddress {
        address: address(2, 1),
        change: AddressChange::Prefer,
        outcome: AddressOutcome::Done,
    };
    assert!(pair.server.events.contains(&done));
    let before = pair.wire.len();
    send(&mut pair, 0, 20);
    run_until_received(&mut pair, 20);
    assert!(
        pair.sent_since(before).iter().filter(|flight| flight.has_data()).all(|flight| flight.path() == 1)
    );
    assert!(stats(&mut pair)[0][1].primary);
}

#[test]
fn an_abort_on_a_path_that_is_being_removed_is_not_heeded() {
    let mut pair = pair(2);
    pair.lose(ChunkKind::ASCONF_ACK, 1);
    let now = pair.now;
    pair.client().remove_address(now, address(1, 1)).expect("an address of it");
    pair.run_for(ms(100));
    let causes = tresse_wire::Causes::Values(&[]);
    let abort = pair.packet(false, &[Chunk::Abort(tresse_wire::Abort { tag_reflected: false, causes })]);
    pair.inject(false, 1, abort.clone());
    assert!(pair.client().is_established(), "the peer knows that address no more (RFC 5061 §5.3.1)");
    pair.inject(false, 0, abort);
    assert!(!pair.client().is_established());
}

#[test]
fn a_heartbeat_to_an_address_that_is_being_removed_is_not_answered_from_there() {
    let mut pair = pair(2);
    pair.lose(ChunkKind::ASCONF_ACK, 1);
    let now = pair.now;
    pair.client().remove_address(now, address(1, 1)).expect("an address of it");
    pair.run_for(ms(100));
    let before = pair.wire.len();
    let heartbeat = Chunk::Heartbeat(tresse_wire::Heartbeat { body: &[0, 1, 0, 8, 1, 2, 3, 4] });
    let packet = pair.packet(false, &[heartbeat]);
    pair.inject(false, 1, packet);
    assert!(pair.sent_since(before).iter().all(|flight| flight.path() == 0));
}
