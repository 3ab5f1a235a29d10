//! Address translators between the client and the server, which only knows what they make of the client's addresses.

use std::cell::Cell;
use std::net::IpAddr;
use std::rc::Rc;

use tresse_proto::Connect;

use super::*;
use crate::common::PORT;

/// The client's address on a path as the server sees it; `mapping` is that of the translator on this path.
fn translated(path: u8, mapping: u8) -> IpAddr {
    IpAddr::from([10, 100 + path, 0, mapping])
}

/// Two paths with a translator each, and what these have given the client.
struct Translated {
    pair: Pair,
    mappings: [Rc<Cell<u8>>; 2],
}

impl Translated {
    fn new(config: &AssociationConfig) -> Self {
        let mut pair = Pair::unlike(2, config, &AssociationConfig::default(), 1);
        let mappings = [(); 2].map(|()| Rc::new(Cell::new(1)));
        let given = mappings.clone();
        pair.translate = Some(Box::new(move |to_server, transmit| {
            for (path, mapping) in (0..2).zip(&given) {
                let (inside, outside) = (address(1, path), translated(path, mapping.get()));
                let (end, from, to) = match to_server {
                    true => (&mut transmit.local, inside, outside),
                    false => (&mut transmit.remote, outside, inside),
                };
                if *end == from {
                    *end = to;
                }
            }
        }));
        // Nothing else reaches the client: neither by what it calls itself nor by what it had before.
        let inside = |flight: &Flight| flight.to_server || flight.transmit.remote == by_itself(flight);
        pair.network = Box::new(move |flight| inside(flight).then_some(ms(10)));
        let connect = Connect::new(
            (0..2).map(|path| address(1, path)).collect(),
            (0..2).map(|path| address(2, path)).collect(),
            PORT,
            config.clone(),
        )
        .with(|c| c.encapsulation_port = Some(9899));
        let now = pair.now;
        pair.client.id = Some(pair.client.endpoint.connect(now, connect).expect("a sound request"));
        Translated { pair, mappings }
    }

    /// Waits until the server reaches the client by what the translators have given it.
    fn settle(&mut self) {
        let [first, second] = [0, 1].map(|path: u8| translated(path, self.mappings[path as usize].get()));
        self.pair.run_until(Duration::from_secs(15), |pair| {
            if pair.server.id.is_none() || !pair.client().is_established() {
                return false;
            }
            let [client, server] = stats(pair);
            let reached = |to| working(&server).iter().any(|&(_, remote)| remote == to);
            working(&client) == straight(1, [0, 1]) && reached(first) && reached(second)
        });
    }
}

/// The address of the client on the path that a packet from the server takes.
fn by_itself(flight: &Flight) -> IpAddr {
    match flight.transmit.local {
        IpAddr::V4(v4) => address(1, v4.octets()[2]),
        IpAddr::V6(_) => flight.transmit.remote,
    }
}

#[test]
fn all_paths_behind_translators_come_to_work() {
    Translated::new(&AssociationConfig::default()).settle();
}

#[test]
fn a_translator_that_gives_another_address_is_followed_on_every_path() {
    for changed in [&[0][..], &[1], &[0, 1]] {
        let mut translated = Translated::new(&AssociationConfig::default());
        translated.settle();
        changed.iter().for_each(|&path: &usize| translated.mappings[path].set(2));
        for number in 0..40 {
            translated.pair.send(0, number, 1000);
            translated.pair.run_for(ms(20));
        }
        translated.settle();
        let pair = &mut translated.pair;
        pair.run_until(Duration::from_secs(10), |pair| pair.server.received.len() == 40);
        assert!(told(pair).is_empty(), "nobody asked for a change: {:?}", told(pair));
    }
}

#[test]
fn where_no_translator_is_a_silent_path_is_asked_about_and_nothing_changes() {
    let mut pair = Pair::new(2, &AssociationConfig::default());
    pair.network = Box::new(|flight| (flight.transmit.remote != address(2, 1)).then_some(ms(10)));
    pair.connect();
    pair.run_for(Duration::from_secs(10));
    let asked = |flight: &&Flight| flight.carries(ChunkKind::ASCONF);
    assert_eq!(pair.wire.iter().filter(asked).count(), 0, "no UDP, no translator");
    let [client, server] = stats(&mut pair);
    assert_eq!((working(&client).len(), client.len(), server.len()), (1, 2, 2));
}

/// Of paths to be confirmed one is asked in an RTO (RFC 9260 §5.4).
#[test]
fn a_path_that_never_answers_does_not_keep_others_from_being_confirmed() {
    let mut pair = Pair::new(4, &AssociationConfig::default());
    pair.network = Box::new(|flight| {
        let ends = [flight.transmit.local, flight.transmit.remote];
        ends.iter().all(|end| ![address(2, 1), address(2, 2)].contains(end)).then_some(ms(10))
    });
    pair.connect();
    pair.run_until(Duration::from_secs(15), |pair| {
        pair.client().is_established() && pair.path(3).state == PathState::Active
    });
}

/// A translator gives more addresses one after another than the server has places for paths.
#[test]
fn a_translator_is_followed_however_often_it_gives_another_address() {
    let mut translated = Translated::new(&AssociationConfig::default());
    translated.settle();
    for mapping in 2..40 {
        translated.mappings[0].set(mapping);
        let before = translated.pair.server.received.len();
        for number in 0..40 {
            translated.pair.send(0, number, 1000);
            translated.pair.run_for(ms(20));
        }
        translated.settle();
        translated.pair.run_until(Duration::from_secs(10), |pair| pair.server.received.len() == before + 40);
        translated.pair.run_for(Duration::from_secs(40));
    }
}
