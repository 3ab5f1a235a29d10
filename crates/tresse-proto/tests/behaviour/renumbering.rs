//! Everything begins anew: all streams of both directions, and the TSNs (RFC 6525 §5.1.4, §5.2.4).

use std::collections::BTreeSet;
use std::time::Duration;

use tresse_proto::{
    AssociationConfig, Event, Reconfiguration, ReconfigurationError, ReconfigurationOutcome, SendOptions,
    StreamId,
};
use tresse_wire::{Chunk, ChunkKind, List, Param, Sack, Tsn};

use crate::common::{Dice, Pair, by_reports, content};

const PERFORMED: Event = Event::Reconfigured {
    request: Reconfiguration::ResetAssociation,
    outcome: ReconfigurationOutcome::Performed,
};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn reset(pair: &mut Pair) {
    let now = pair.now;
    pair.client().reset_association(now).expect("free to ask");
    pair.pump();
}

/// Queues messages numbered from `first` on at the server, on streams 0 to 2 in turn.
fn send_back(pair: &mut Pair, first: u32, count: u32, len: usize) {
    let now = pair.now;
    for number in first..first + count {
        let stream = (number % 3) as u16;
        let options = SendOptions::on(StreamId(stream));
        pair.server().send(now, options, content(stream, number, len)).expect("room");
    }
    pair.pump();
}

/// TSNs of the DATA that was sent in one direction since `from`, in order of sending.
fn tsns(pair: &Pair, to_server: bool, from: usize) -> Vec<u32> {
    let flights = pair.sent_since(from).iter().filter(|flight| flight.to_server == to_server);
    let mut found = Vec::new();
    for flight in flights {
        found.extend(flight.chunks().iter().filter_map(|chunk| match chunk {
            Chunk::Data(data) => Some(data.tsn.0),
            _ => None,
        }));
    }
    found
}

/// The first answer that carries TSNs.
fn next_tsns(pair: &Pair) -> Option<(u32, u32)> {
    pair.wire.iter().find_map(|flight| {
        flight.chunks().iter().find_map(|chunk| match chunk {
            Chunk::Reconfig(reconfig) => reconfig.params.iter().flatten().find_map(|param| match param {
                Param::ReconfigResponse { next_tsns: Some((theirs, ours)), .. } => Some((theirs.0, ours.0)),
                _ => None,
            }),
            _ => None,
        })
    })
}

/// An old SACK names a TSN that half the circle later seems to be far ahead.
#[test]
fn a_sack_for_numbers_of_before_is_stale() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    (0..6).for_each(|number| pair.send(0, number, 2000));
    pair.run_for(ms(500));
    let first = tsns(&pair, true, 0)[0];
    reset(&mut pair);
    pair.run_for(ms(500));
    assert!(pair.client.events.contains(&PERFORMED));
    let sack = Sack {
        flags: 0,
        cumulative_tsn: Tsn(first.wrapping_add(2)),
        a_rwnd: 100_000,
        gaps: List::Values(&[]),
        duplicates: List::Values(&[]),
    };
    let packet = pair.packet(false, &[Chunk::Sack(sack)]);
    pair.inject(false, 0, packet);
    assert!(pair.client().is_established());
    let now = pair.now;
    assert_eq!(pair.client().stats(now).map(|stats| stats.discards.stale_sack), Some(1));
}

#[test]
fn everything_begins_anew_and_nothing_is_lost() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    for number in 0..6 {
        pair.send((number % 3) as u16, number, 2000);
    }
    send_back(&mut pair, 0, 6, 2000);
    reset(&mut pair);
    for number in 6..9 {
        pair.send((number % 3) as u16, number, 2000);
    }
    send_back(&mut pair, 6, 3, 2000);
    pair.run_for(Duration::from_secs(5));
    let before = pair.wire.len();
    for side in [&pair.client, &pair.server] {
        assert!(side.events.iter().any(|event| matches!(event, Event::AssociationReset { .. })));
        for stream in 0..3_u16 {
            let first = u32::from(stream);
            assert_eq!(side.numbers_on(stream), [first, first + 3, first + 6]);
            let ssns: Vec<u16> =
                side.received.iter().filter(|m| m.stream.0 == stream).map(|m| m.ssn.0).collect();
            assert_eq!(ssns[0..2], [0, 1]);
        }
    }
    send_back(&mut pair, 9, 3, 2000);
    pair.run_for(ms(500));
    for (side, why) in
        [(&pair.server, "queued after the reset was asked for"), (&pair.client, "after it was done")]
    {
        let last = side.received.iter().rfind(|message| message.stream.0 == 0);
        assert_eq!(last.map(|message| message.ssn.0), Some(0), "{why}");
    }
    assert!(pair.client.events.contains(&PERFORMED));
    // The client goes on half the circle away, the server where it was.
    let (theirs, ours) = next_tsns(&pair).expect("an answer with TSNs");
    let told = |ours, theirs| Event::AssociationReset { ours: Tsn(ours), theirs: Tsn(theirs) };
    assert!(pair.client.events.contains(&told(ours, theirs)));
    assert!(pair.server.events.contains(&told(theirs, ours)));
    assert!(tsns(&pair, true, 0).contains(&ours));
    let sent = tsns(&pair, false, 0);
    assert!(sent.contains(&theirs) && sent.contains(&theirs.wrapping_sub(1)));
    let forth = tsns(&pair, true, 0);
    let old: BTreeSet<u32> =
        forth.iter().map(|tsn| tsn.wrapping_sub(forth[0])).filter(|&n| n < 1 << 30).collect();
    assert_eq!(ours.wrapping_sub(forth[0]), old.len() as u32 + (1 << 31));
    pair.send(1, 100, 50);
    pair.run_for(ms(500));
    assert_eq!(pair.server.numbers_on(1).last(), Some(&100));
    assert!(pair.sent_since(before).iter().all(|flight| !flight.carries(ChunkKind::ABORT)));
}

#[test]
fn each_packet_of_it_may_get_lost() {
    for losses in 1..5 {
        let mut pair = Pair::established(2, &AssociationConfig::default());
        pair.send(1, 0, 500);
        pair.lose(ChunkKind::RECONFIG, losses);
        reset(&mut pair);
        pair.send(1, 1, 500);
        pair.run_for(Duration::from_secs(60));
        pair.send(1, 2, 500);
        pair.run_for(ms(500));
        assert_eq!(pair.server.numbers_on(1), [0, 1, 2]);
        let ssns: Vec<u16> = pair.server.received.iter().map(|message| message.ssn.0).collect();
        assert_eq!(ssns, [0, 0, 1], "{losses} lost");
        assert!(pair.client.events.contains(&PERFORMED));
    }
}

#[test]
fn data_that_overtakes_the_answer_finds_its_place() {
    // The server performs it, its answer is lost, and its data of the new life arrives first: on stream 1,
    // that has been used, and on stream 5, that has not. A request goes again after an RTO of a second.
    let mut pair = Pair::established(1, &by_reports());
    send_back(&mut pair, 0, 9, 300);
    pair.run_for(ms(500));
    pair.lose(ChunkKind::RECONFIG, 0);
    let mut lost = false;
    pair.network = Box::new(move |flight| {
        let hit = !lost && !flight.to_server && flight.carries(ChunkKind::RECONFIG);
        lost |= hit;
        (!hit).then_some(ms(10))
    });
    reset(&mut pair);
    pair.run_for(ms(15));
    let now = pair.now;
    for (stream, number) in [(5, 0), (5, 1), (1, 50), (5, 2), (1, 51)] {
        let options = SendOptions::on(StreamId(stream));
        pair.server().send(now, options, content(stream, number, 3000)).expect("room");
    }
    pair.pump();
    pair.run_for(ms(600));
    assert!(!pair.client.events.contains(&PERFORMED), "the answer is still to come");
    pair.run_for(Duration::from_secs(20));
    assert!(pair.client.events.contains(&PERFORMED));
    assert_eq!(pair.client.numbers_on(1), [1, 4, 7, 50, 51], "{}", pair.log.join("\n"));
    assert_eq!(pair.client.numbers_on(5), [0, 1, 2]);
    send_back(&mut pair, 100, 3, 300);
    pair.run_for(ms(500));
    assert_eq!(pair.client.numbers_on(1).last(), Some(&100));
}

#[test]
fn it_survives_a_lossy_network_in_mid_transfer() {
    for seed in 0..100 {
        let mut pair = Pair::established(2, &AssociationConfig::default());
        let mut dice = Dice::new(seed);
        pair.network = Box::new(move |_| (!dice.hits(0.08)).then(|| ms(5 + dice.below(30))));
        for round in 0..30_u32 {
            pair.send((round % 3) as u16, round, 3000);
            send_back(&mut pair, round, 1, 3000);
            if round == 10 {
                reset(&mut pair);
            }
            pair.run_for(ms(50));
        }
        pair.run_until(Duration::from_secs(200), |pair| {
            pair.server.received.len() == 30 && pair.client.received.len() == 30
        });
        for side in [&pair.client, &pair.server] {
            for stream in 0..3 {
                let expected: Vec<u32> = (0..10).map(|turn| turn * 3 + u32::from(stream)).collect();
                assert_eq!(side.numbers_on(stream), expected, "seed {seed}");
            }
            let told = side.events.iter().any(|event| matches!(event, Event::AssociationReset { .. }));
            assert!(told, "seed {seed}");
        }
    }
}

#[test]
fn at_most_every_30_seconds() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    reset(&mut pair);
    let now = pair.now;
    assert_eq!(pair.client().reset_association(now), Err(ReconfigurationError::Busy));
    pair.run_for(ms(100));
    let now = pair.now;
    let refused = pair.client().reset_association(now);
    assert!(matches!(refused, Err(ReconfigurationError::TooSoon { wait }) if wait < Duration::from_secs(30)));
    pair.run_for(Duration::from_secs(30));
    reset(&mut pair);
    pair.run_for(ms(100));
    assert_eq!(pair.client.events.iter().filter(|&event| *event == PERFORMED).count(), 2);
    pair.send(0, 0, 100);
    pair.run_for(ms(100));
    assert_eq!(pair.server.numbers_on(0), [0]);
}

#[test]
fn of_both_sides_that_ask_at_once_none_gets_it() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    let now = pair.now;
    pair.client().reset_association(now).expect("free to ask");
    pair.server().reset_association(now).expect("free to ask");
    pair.run_for(Duration::from_secs(5));
    for side in [&pair.client, &pair.server] {
        let failed = ReconfigurationOutcome::Failed("the peer has a request of its own under way");
        assert!(
            side.events.contains(&Event::Reconfigured {
                request: Reconfiguration::ResetAssociation,
                outcome: failed
            })
        );
    }
    pair.send(0, 0, 100);
    send_back(&mut pair, 0, 1, 100);
    pair.run_for(ms(100));
    assert_eq!((pair.server.numbers_on(0), pair.client.numbers_on(0)), (vec![0], vec![0]));
}

#[test]
fn a_peer_may_refuse_to_begin_anew() {
    let deny = AssociationConfig::default().with(|c| c.accept_association_resets = false);
    let mut pair = Pair::unlike(1, &AssociationConfig::default(), &deny, 1).settled();
    pair.send(0, 0, 100);
    reset(&mut pair);
    pair.send(0, 1, 100);
    pair.run_for(ms(500));
    let denied = ReconfigurationOutcome::Denied;
    assert!(
        pair.client
            .events
            .contains(&Event::Reconfigured { request: Reconfiguration::ResetAssociation, outcome: denied })
    );
    assert_eq!(pair.server.numbers_on(0), [0, 1]);
    assert_eq!(pair.server.received[1].ssn.0, 1);
}
