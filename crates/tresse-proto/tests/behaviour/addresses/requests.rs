//! Requests on their way: one at a time, again and again until the peer answers (RFC 5061 §5.1).

use super::*;

use tresse_proto::CloseReason;

use crate::common::aborted_for;

#[test]
fn a_request_goes_again_on_another_path_until_it_is_answered() {
    let mut pair = pair(2);
    pair.lose(ChunkKind::ASCONF, 2);
    let (now, serial) = (pair.now, first_serial(&pair));
    pair.client().add_address(now, address(1, 2)).expect("a new address");
    pair.run_for(Duration::from_secs(10));
    let sent = with_kind(&pair, true, ChunkKind::ASCONF);
    let when: Vec<u128> = sent.iter().map(|flight| (flight.sent - now).as_millis()).collect();
    assert_eq!(when, [0, 300, 600], "after an RTO, each time of another path");
    let paths: Vec<u8> = sent.iter().map(Flight::path).collect();
    assert_ne!(paths[0], paths[1]);
    assert_ne!(paths[1], paths[2]);
    assert!(sent.iter().all(|flight| request_of(flight) == request_of(&sent[0])));
    assert_eq!(
        request_of(&sent[0]),
        (serial, vec![Param::AddAddress { correlation: 0, address: address(1, 2) }])
    );
    assert_eq!(told(&pair), [(address(1, 2), AddressChange::Add, AddressOutcome::Done)]);
}

/// RFC 5061 §5.1 B3, B5: by the RTO of the path, which doubles, not by that of a better one that it may not take (§5.3 F6).
#[test]
fn a_request_waits_twice_as_long_each_time_on_the_only_path_that_it_may_take() {
    let mut pair = pair(1);
    let new = |flight: &Flight| [flight.transmit.local, flight.transmit.remote].contains(&address(1, 1));
    pair.network =
        Box::new(move |flight| (!new(flight) || flight.carries(ChunkKind::ASCONF)).then_some(ms(10)));
    let now = pair.now;
    pair.client().add_address(now, address(1, 1)).expect("a new address");
    pair.run_for(ms(50));
    pair.network = Box::new(move |flight| (!new(flight)).then_some(ms(10)));
    let now = pair.now;
    pair.client().remove_address(now, address(1, 0)).expect("one of two");
    pair.run_for(Duration::from_secs(25));
    assert!(pair.client().is_established());
    let sent = with_kind(&pair, true, ChunkKind::ASCONF);
    let when: Vec<Duration> =
        sent.iter().filter(|flight| flight.sent >= now).map(|flight| flight.sent - now).collect();
    let gaps: Vec<Duration> = when.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.len() >= 3 && gaps.windows(2).all(|pair| pair[1] >= 2 * pair[0]), "{when:?}");
}

#[test]
fn a_lost_answer_is_given_again_and_nothing_is_done_twice() {
    let mut pair = pair(2);
    pair.lose(ChunkKind::ASCONF_ACK, 2);
    let now = pair.now;
    pair.client().remove_address(now, address(1, 1)).expect("an address of it");
    pair.run_for(Duration::from_secs(10));
    let answers = with_kind(&pair, false, ChunkKind::ASCONF_ACK);
    assert_eq!(answers.len(), 3);
    assert!(answers.iter().all(|flight| answer_of(flight) == answer_of(&answers[0])));
    assert_eq!(heard(&pair), [(address(1, 1), AddressChange::Remove)]);
    assert_eq!(told(&pair), [(address(1, 1), AddressChange::Remove, AddressOutcome::Done)]);
}

#[test]
fn requests_wait_for_the_one_in_flight() {
    let mut pair = pair(2);
    let (now, serial) = (pair.now, first_serial(&pair));
    pair.client().add_address(now, address(1, 2)).expect("a new address");
    pair.client().add_address(now, address(1, 3)).expect("a new address");
    pair.client().set_peer_primary(now, address(1, 3)).expect("an address of it");
    pair.client().remove_address(now, address(1, 0)).expect("an address of it");
    pair.run_for(ms(25));
    let sent = with_kind(&pair, true, ChunkKind::ASCONF);
    assert_eq!(sent.iter().map(|flight| request_of(flight).0).collect::<Vec<_>>(), [serial, serial + 1]);
    assert_eq!(request_of(&sent[0]).1.len(), 1);
    assert_eq!(
        request_of(&sent[1]).1,
        [
            Param::AddAddress { correlation: 1, address: address(1, 3) },
            Param::SetPrimary { correlation: 2, address: address(1, 3) },
            Param::DeleteAddress { correlation: 3, address: address(1, 0) },
        ]
    );
    assert_ne!(sent[1].transmit.local, address(1, 0), "not from what it removes (RFC 5061 §5.3 F6)");
    pair.run_for(Duration::from_secs(1));
    assert!(told(&pair).iter().all(|(_, _, outcome)| *outcome == AddressOutcome::Done));
    assert_eq!(told(&pair).len(), 4);
}

#[test]
fn both_sides_may_ask_at_once() {
    let mut pair = pair(2);
    let now = pair.now;
    pair.client().add_address(now, address(1, 2)).expect("a new address");
    pair.server().add_address(now, address(2, 2)).expect("a new address");
    pair.run_until(Duration::from_secs(60), |pair| {
        stats(pair).iter().all(|paths| {
            let third = |path: &PathStats| {
                [path.local, path.remote].iter().all(|end| [address(1, 2), address(2, 2)].contains(end))
            };
            paths.iter().any(|path| third(path) && path.state == PathState::Active)
        })
    });
    send(&mut pair, 0, 100);
    run_until_received(&mut pair, 100);
}

#[test]
fn a_request_that_is_never_answered_ends_the_association() {
    let mut config = AssociationConfig::default().with(|c| c.association_max_retrans = 3);
    config.set("heartbeat_interval", "0s").expect("a switch");
    let mut pair = Pair::established(1, &config);
    pair.network = Box::new(|_| None);
    let now = pair.now;
    pair.client().set_peer_primary(now, address(1, 0)).expect("an address of it");
    pair.run_for(Duration::from_secs(60));
    assert_eq!(with_kind(&pair, true, ChunkKind::ASCONF).len(), 4);
    assert_eq!(pair.client.events.last(), Some(&Event::Closed(CloseReason::PathsLost)));
}

/// RFC 5061 §5.1 counts each repetition as an error, but answers to data clear the counters.
#[test]
fn a_peer_that_answers_data_and_no_request_is_asked_no_more() {
    for ignored in [ChunkKind::ASCONF, ChunkKind::ASCONF_ACK] {
        let mut pair = pair(2);
        pair.network = Box::new(move |flight| (!flight.carries(ignored)).then_some(ms(10)));
        let now = pair.now;
        pair.client().add_address(now, address(1, 2)).expect("a new address");
        pair.client().set_peer_primary(now, address(1, 1)).expect("an address of it");
        for number in 0..600 {
            pair.send(0, number, 1000);
            pair.run_for(ms(100));
        }
        let outcome = AddressOutcome::NotSupported;
        let add = (address(1, 2), AddressChange::Add, outcome);
        let prefer = (address(1, 1), AddressChange::Prefer, outcome);
        assert_eq!(told(&pair), [add, prefer]);
        let most = AssociationConfig::default().association_max_retrans as usize + 1;
        let sent = with_kind(&pair, true, ChunkKind::ASCONF).len();
        assert!((most..=most + 1).contains(&sent), "{sent} of {most}");
        assert!(pair.client().is_established());
        let now = pair.now;
        assert!(pair.client().set_peer_primary(now, address(1, 1)).is_err());
        pair.run_until(Duration::from_secs(10), |pair| pair.server.received.len() == 600);
    }
}

/// An outage is not the silence of a peer that does not understand ASCONF.
#[test]
fn a_request_outlives_an_outage_that_the_association_outlives() {
    let config = AssociationConfig::default().with(|c| c.association_max_retrans = 60);
    let mut pair = Pair::established(2, &config);
    pair.network = Box::new(|_| None);
    let now = pair.now;
    pair.client().add_address(now, address(1, 2)).expect("a new address");
    pair.run_for(Duration::from_secs(120));
    pair.network = Box::new(|_| Some(ms(10)));
    pair.run_for(Duration::from_secs(120));
    assert_eq!(told(&pair), [(address(1, 2), AddressChange::Add, AddressOutcome::Done)]);
}

#[test]
fn an_answer_that_nobody_asked_for_ends_the_association() {
    let mut pair = pair(2);
    let serial = first_serial(&pair);
    let answer = |serial| Chunk::AsconfAck(AsconfAck { serial, params: Params::Values(&[]) });
    let old = pair.authenticated_packet(false, &[answer(serial.wrapping_sub(1))]);
    pair.inject(false, 0, old);
    assert!(pair.client().is_established());
    let now = pair.now;
    assert_eq!(pair.client().stats(now).expect("open").discards.stray_asconf, 1);
    let never = pair.authenticated_packet(false, &[answer(serial)]);
    pair.inject(false, 0, never);
    assert!(!pair.client().is_established(), "RFC 5061 §5.3 F0");
    pair.run_for(ms(100));
    let cause = "Association Aborted Due to Illegal ASCONF-ACK cause";
    assert_eq!(aborted_for(&pair.server.events), Some(cause));
}

#[test]
fn a_peer_that_understands_no_such_chunk_is_not_asked_again() {
    let mut pair = pair(2);
    pair.network = Box::new(|flight| (!flight.carries(ChunkKind::ASCONF)).then_some(ms(10)));
    let now = pair.now;
    pair.client().add_address(now, address(1, 2)).expect("a new address");
    pair.client().remove_address(now, address(1, 1)).expect("an address of it");
    let unknown = [tresse_wire::Cause::UnrecognisedChunk(&[0xc1, 0, 0, 4])];
    let causes = tresse_wire::Causes::Values(&unknown);
    let error = pair.packet(false, &[Chunk::Error(tresse_wire::ErrorChunk { causes })]);
    pair.inject(false, 0, error);
    pair.run_for(Duration::from_secs(5));
    assert_eq!(
        told(&pair),
        [
            (address(1, 2), AddressChange::Add, AddressOutcome::NotSupported),
            (address(1, 1), AddressChange::Remove, AddressOutcome::NotSupported)
        ]
    );
    assert_eq!(with_kind(&pair, true, ChunkKind::ASCONF).len(), 1);
    let [client, _] = stats(&mut pair);
    assert_eq!(path_states(&client), [PathState::Active, PathState::Active, PathState::Removed]);
    let now = pair.now;
    assert!(pair.client().add_address(now, address(1, 2)).is_err());
}

#[test]
fn no_more_requests_wait_than_are_reasonable() {
    let mut pair = pair(1);
    let now = pair.now;
    let mut asked = 0;
    while pair.client().set_peer_primary(now, address(1, 0)).is_ok() {
        asked += 1;
        assert!(asked < 1000);
    }
    let refusal = pair.client().set_peer_primary(now, address(1, 0)).expect_err("too many");
    assert_eq!(refusal.to_string(), "too many requests wait for the peer's answer");
    pair.run_for(Duration::from_secs(5));
    assert_eq!(told(&pair).len(), asked);
}
