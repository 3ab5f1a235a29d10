//! Features of SCTP inside DTLS chunks, as they work outside.

use tresse_proto::{AddressChange, Direction, Reliability, SendOptions, StreamId, Streams};

use super::*;
use crate::common::{address, content};

#[test]
fn packets_are_as_large_as_in_the_clear_and_no_larger() {
    for paths in [1, 2] {
        let mut pair = protected(paths, &required());
        let before = pair.wire.len();
        transfer(&mut pair, 0, 300);
        // `Pair` holds each packet against the MTU; the search for it goes on inside.
        let longest = pair.sent_since(before).iter().map(|flight| flight.bytes.len()).max();
        assert_eq!(longest, Some(1480), "IP and nothing else around it");
    }
}

#[test]
fn data_flows_over_all_paths_and_survives_the_death_of_one() {
    let mut pair = protected(2, &required());
    transfer(&mut pair, 0, 200);
    let on = |pair: &Pair, path| {
        pair.wire.iter().filter(|flight| flight.to_server && flight.path() == path).count()
    };
    assert!(on(&pair, 0) > 100 && on(&pair, 1) > 100);
    pair.network = Box::new(|flight| (flight.path() == 0).then_some(ms(10)));
    transfer(&mut pair, 200, 200);
    assert_eq!(newest(&mut pair).map(|stats| stats.failed), [0, 0]);
}

#[test]
fn losses_reordering_and_duplicates_are_made_good() {
    let mut pair = protected(2, &required());
    let mut count = 0_u64;
    pair.network = Box::new(move |flight| {
        count += 1;
        (!count.is_multiple_of(13)).then_some(ms(10 + (flight.number * 7) % 40))
    });
    transfer(&mut pair, 0, 300);
    assert!(newest(&mut pair)[1].opened > 300);
}

#[test]
fn a_path_joins_and_leaves() {
    let mut pair = protected(1, &required());
    let now = pair.now;
    pair.client().add_address(now, address(1, 1)).expect("it can be protected now");
    pair.run_for(ms(3_000));
    let added = |event: &Event| matches!(event, Event::PeerAddress { address: new, change: AddressChange::Add } if *new == address(1, 1));
    assert!(pair.server.events.iter().any(added), "{:?}\n{}", pair.server.events, pair.log.join("\n"));
    // The first address falls silent: everything goes by the new one.
    pair.network = Box::new(|flight| {
        let old = flight.transmit.local == address(1, 0) || flight.transmit.remote == address(1, 0);
        (!old).then_some(ms(10))
    });
    transfer(&mut pair, 0, 100);
}

#[test]
fn a_host_that_moves_is_found_by_what_it_can_prove() {
    let mut pair = protected(1, &required());
    pair.network = Box::new(|flight| {
        let old = flight.transmit.local == address(1, 0) || flight.transmit.remote == address(1, 0);
        (!old).then_some(ms(10))
    });
    let now = pair.now;
    pair.client().add_address(now, address(1, 1)).expect("a new address");
    pair.client().remove_address(now, address(1, 0)).expect("the old one");
    transfer(&mut pair, 0, 50);
}

#[test]
fn interleaving_partial_reliability_and_stream_resets_work() {
    let config = required().with(|c| c.interleaving = true);
    let mut pair = protected(2, &config);
    transfer(&mut pair, 0, 20);
    let now = pair.now;
    pair.client().reset_streams(now, Streams::All, Direction::Outbound).expect("free to ask");
    pair.run_for(ms(500));
    assert!(pair.server.events.contains(&Event::InboundReset(Streams::All)), "{:?}", pair.server.events);
    // Half of what is sent is lost, and may be.
    let mut count = 0;
    pair.network = Box::new(move |_| {
        count += 1;
        (count % 2 == 0).then_some(ms(10))
    });
    for number in 0..40 {
        let now = pair.now;
        let options = SendOptions::on(StreamId(1)).with(|o| o.reliability = Reliability::Retransmissions(0));
        pair.client().send(now, options, content(1, number, 1000)).expect("room");
        pair.run_for(ms(20));
    }
    pair.network = Box::new(|_| Some(ms(10)));
    pair.run_for(ms(5_000));
    let abandoned =
        pair.client.events.iter().filter(|event| matches!(event, Event::Abandoned { .. })).count();
    assert!(abandoned > 0, "something was given up");
    for number in 20..40 {
        pair.send(0, number, 3000);
    }
    pair.run_for(ms(5_000));
    assert_eq!(pair.server.numbers_on(0), (0..40).collect::<Vec<_>>());
}
