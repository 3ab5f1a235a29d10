//! Keys that change while data flows, and the end of an association that takes nothing in the clear.

use tresse_proto::config::Size;
use tresse_proto::protection::Epoch;
use tresse_proto::{CloseReason, Direction, ReconfigurationOutcome, SendOptions, StreamId};

use super::*;
use crate::common::content;

/// Little is under way at a time: what flows is encrypted in software.
const SMALL: Size = Size(100_000);

pub(super) fn rekey(pair: &mut Pair, at_server: bool) {
    let now = pair.now;
    let side = if at_server { &mut pair.server } else { &mut pair.client };
    let mut association = side.endpoint.association(side.id.expect("open")).expect("open");
    side.keys.rekey(now, &mut association).expect("protected");
    pair.pump();
}

pub(super) fn epochs(pair: &Pair) -> [Option<Epoch>; 2] {
    [pair.client.keys.epoch(), pair.server.keys.epoch()]
}

#[test]
fn keys_change_under_load_and_nothing_is_lost() {
    for (role, asks_at_server) in
        [(KeyRole::Client, false), (KeyRole::Client, true), (KeyRole::Server, false), (KeyRole::Server, true)]
    {
        let other = if role == KeyRole::Client { KeyRole::Server } else { KeyRole::Client };
        let config = |role| {
            of_role(role).with(|c| {
                c.key_drain = ms(500);
                c.send_buffer = SMALL;
            })
        };
        let mut pair = Pair::unlike(2, &config(role), &config(other), 1).settled();
        // The second path is slower: what left with the old keys arrives after what left with the new ones.
        pair.network = Box::new(|flight| Some(ms(if flight.path() == 1 { 60 } else { 10 })));
        let mut number = 0;
        for change in 0..3 {
            number = pair.saturate(4, number, 2000, ms(500));
            rekey(&mut pair, asks_at_server);
            number = pair.saturate(4, number, 2000, ms(800));
            let epoch = Some(Epoch(4 + change));
            assert_eq!(epochs(&pair), [epoch; 2], "{role:?}, asked at the server: {asks_at_server}");
            assert!(newest(&mut pair).iter().all(|stats| stats.opened > 0 && stats.failed == 0));
        }
        pair.run_until(Duration::from_secs(60), |pair| pair.server.received.len() == number as usize);
        for stream in 0..4 {
            let numbers = pair.server.numbers_on(stream);
            assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 4), "each once and in order");
        }
        let now = pair.now;
        assert_eq!(pair.server().stats(now).expect("open").discards.unopened, 0, "old keys drain");
        pair.run_for(ms(1_000));
        let drained = |event: &&Event| matches!(event, Event::KeysDrained { .. });
        assert_eq!(pair.client.events.iter().filter(drained).count(), 3);
        assert_eq!(pair.server().protection_stats().expect("protected").epochs.len(), 1);
    }
}

/// RFC 6525 §5.2.4: a message of the key management that left meanwhile would have a TSN or SSN of before.
#[test]
fn a_change_of_keys_waits_until_everything_is_numbered_anew() {
    for whole in [true, false] {
        for asks_at_server in [false, true] {
            let mut pair = protected(1, &required());
            transfer(&mut pair, 0, 3);
            pair.run_for(ms(1_000));
            let now = pair.now;
            let mut association = if asks_at_server { pair.server() } else { pair.client() };
            let asked = if whole {
                association.reset_association(now)
            } else {
                association.reset_streams(now, StreamId(0).into(), Direction::Outbound)
            };
            asked.expect("free to ask");
            pair.pump();
            rekey(&mut pair, asks_at_server);
            pair.run_for(ms(10_000));
            assert_eq!(epochs(&pair), [Some(Epoch(4)); 2], "asked at the server: {asks_at_server}");
            let begun_anew = |event: &&Event| match event {
                Event::Reconfigured { outcome, .. } => *outcome == ReconfigurationOutcome::Performed,
                _ => false,
            };
            let side = if asks_at_server { &pair.server } else { &pair.client };
            assert_eq!(side.events.iter().filter(begun_anew).count(), 1);
            transfer(&mut pair, 3, 3);
        }
    }
}

/// Whoever has keys may ask for streams that begin anew; the other side, whose messages wait for its own, is to lose none.
#[test]
fn a_request_that_comes_before_the_last_keys_is_carried_out_behind_them() {
    let mut pair = Pair::unlike(1, &of_role(KeyRole::Client), &of_role(KeyRole::Server), 1);
    let mut confirmed = false;
    pair.network = Box::new(move |flight| {
        let first = !confirmed && !flight.to_server && flight.kinds() == [ChunkKind::DTLS];
        confirmed |= first;
        (!first).then_some(ms(10))
    });
    pair.connect();
    for number in 0..3 {
        pair.send(0, number, 3000);
    }
    let now_required = |pair: &mut Pair| {
        pair.server.id.is_some() && pair.server().protection_stats().is_some_and(|stats| stats.required)
    };
    pair.run_until(ms(5_000), now_required);
    assert!(!is_protected(&mut pair), "the client has not heard of it");
    let now = pair.now;
    pair.server().reset_streams(now, tresse_proto::Streams::All, Direction::Inbound).expect("it has keys");
    pair.run_until(Duration::from_secs(60), |pair| pair.server.received.len() == 3);
    pair.run_for(ms(10_000));
    let done = |event: &Event| {
        matches!(event, Event::Reconfigured { outcome: ReconfigurationOutcome::Performed, .. })
    };
    assert!(pair.server.events.iter().any(done), "{:?}", pair.server.events);
    assert_eq!(pair.server.numbers_on(0), [0, 1, 2]);
}

#[test]
fn the_loss_of_any_packet_of_a_change_is_made_good() {
    for lost in 0..8 {
        let mut pair = protected(1, &required());
        let first = pair.wire.len() as u64 + lost;
        pair.network = Box::new(move |flight| (flight.number != first).then_some(ms(10)));
        rekey(&mut pair, false);
        pair.send(0, 0, 3000);
        pair.run_for(ms(10_000));
        assert_eq!(epochs(&pair), [Some(Epoch(4)); 2], "packet {lost}");
        assert_eq!(pair.server.received.len(), 1);
    }
}

/// Whoever confirms new keys to a peer may say so behind a full window, or in packets that are lost: until the peer knows, what it
/// sends comes with the old keys, its acknowledgements too.
#[test]
fn old_keys_stay_until_the_peer_has_changed_however_late() {
    for outage in [0, 600, 3_000] {
        let config = |role| {
            of_role(role).with(|c| {
                c.key_drain = ms(10);
                c.send_buffer = SMALL;
            })
        };
        let mut pair = Pair::unlike(1, &config(KeyRole::Server), &config(KeyRole::Client), 1).settled();
        pair.network = Box::new(|_| Some(ms(68)));
        let number = pair.saturate(1, 0, 2000, ms(2_000));
        rekey(&mut pair, true);
        pair.run_for(ms(60));
        let healed = pair.now + ms(outage);
        pair.network = Box::new(move |flight| {
            let lost = flight.to_server && flight.sent < healed;
            (!lost).then_some(ms(68))
        });
        pair.run_until(Duration::from_secs(60), |pair| {
            epochs(pair) == [Some(Epoch(4)); 2] && pair.server.received.len() == number as usize
        });
        let now = pair.now;
        assert_eq!(pair.client().stats(now).expect("open").discards.unopened, 0, "{outage} ms");
    }
}

/// The client of the key management has forgotten its old keys long before its server does: three sets of keys at a time would
/// be one more than two bits of an epoch tell apart.
#[test]
fn a_change_within_the_drain_of_the_other_end_waits_for_it() {
    let config = |role, drain| of_role(role).with(|c| c.key_drain = ms(drain));
    let (client, server) = (config(KeyRole::Client, 100), config(KeyRole::Server, 20_000));
    let mut pair = Pair::unlike(2, &client, &server, 1).settled();
    pair.network = Box::new(|_| Some(ms(68)));
    rekey(&mut pair, false);
    let mut number = pair.saturate(1, 0, 2000, ms(3_000));
    assert_eq!(epochs(&pair), [Some(Epoch(4)); 2]);
    rekey(&mut pair, false);
    rekey(&mut pair, true);
    number = pair.saturate(1, number, 2000, ms(5_000));
    assert_eq!(epochs(&pair), [Some(Epoch(4)); 2], "the server has the keys of two epochs still");
    pair.run_until(Duration::from_secs(60), |pair| epochs(pair) == [Some(Epoch(5)); 2]);
    number = pair.saturate(1, number, 2000, ms(1_000));
    pair.run_until(Duration::from_secs(60), |pair| pair.server.received.len() == number as usize);
    let now = pair.now;
    assert_eq!(pair.server().stats(now).expect("open").discards.unopened, 0);
    assert_eq!(pair.client().stats(now).expect("open").discards.unopened, 0);
    pair.run_for(ms(60_000));
    assert_eq!(epochs(&pair), [Some(Epoch(5)); 2], "one change was what both asked for");
}

#[test]
fn new_keys_are_asked_for_when_the_old_ones_have_done_enough() {
    let config = required().with(|c| {
        c.rekey_megabytes = 1;
        c.key_drain = ms(200);
        c.send_buffer = SMALL;
    });
    let mut pair = protected(1, &config);
    let number = pair.saturate(1, 0, 20_000, Duration::from_secs(2));
    pair.run_until(Duration::from_secs(60), |pair| pair.server.received.len() == number as usize);
    // A change that is under way is completed.
    pair.run_for(ms(5_000));
    let [client, server] = epochs(&pair).map(|epoch| epoch.expect("keys").0);
    let megabytes = u64::from(number) * 20_000 / 1_000_000;
    assert!(client == server && client > 4, "epoch {client} after {megabytes} MB");
    assert!(client - 3 <= megabytes + 1, "one for each megabyte at most");
}

/// What the peer's application has given waits for keys: behind a SHUTDOWN it would do so for good, and the peer, with something
/// left to send, would never answer.
#[test]
fn a_shutdown_that_comes_before_the_keys_waits_for_them() {
    for role in [KeyRole::Client, KeyRole::Server] {
        for later in [0, 5, 15] {
            let other = if role == KeyRole::Client { KeyRole::Server } else { KeyRole::Client };
            let mut pair = Pair::unlike(1, &of_role(role), &of_role(other), 1);
            pair.connect();
            let now = pair.now;
            pair.client().send(now, SendOptions::on(StreamId(0)), content(0, 0, 3000)).expect("room");
            pair.run_until(ms(1_000), |pair| pair.server.id.is_some());
            pair.run_for(ms(later));
            assert!(!is_protected(&mut pair), "{role:?}, {later} ms later");
            let now = pair.now;
            pair.server().shutdown(now);
            pair.run_for(ms(10_000));
            assert_eq!(pair.server.numbers_on(0), [0], "{role:?}, {later} ms later\n{}", pair.log.join("\n"));
            for events in [&pair.client.events, &pair.server.events] {
                assert!(
                    events.contains(&Event::Closed(CloseReason::Graceful)),
                    "{role:?}, {later} ms later: {events:?}"
                );
            }
        }
    }
}

#[test]
fn a_shutdown_waits_for_keys_as_long_as_for_its_answer() {
    let config = of_role(KeyRole::Server).with(|c| {
        c.rto_max = ms(1_000);
        c.rto_initial = ms(1_000);
    });
    let mut pair = Pair::unlike(1, &of_role(KeyRole::Client), &config, 1);
    pair.connect();
    pair.run_until(ms(1_000), |pair| pair.server.id.is_some());
    // What the peer says of keys never arrives.
    pair.network = Box::new(|flight| (!flight.carries(ChunkKind::DATA)).then_some(ms(10)));
    let now = pair.now;
    pair.server().shutdown(now);
    pair.run_for(ms(4_900));
    assert_eq!(pair.server().state_name(), "SHUTDOWN-PENDING");
    pair.run_for(ms(200));
    assert!(
        pair.server.events.contains(&Event::Closed(CloseReason::ShutdownTimeout)),
        "{:?}",
        pair.server.events
    );
}

#[test]
fn it_ends_for_both_whichever_packet_of_the_end_is_lost() {
    for lost in 0..6 {
        let mut pair = protected(1, &required());
        transfer(&mut pair, 0, 3);
        pair.run_for(ms(1_000));
        let first = pair.wire.len() as u64 + lost;
        pair.network = Box::new(move |flight| (flight.number != first).then_some(ms(10)));
        let now = pair.now;
        pair.client().shutdown(now);
        pair.run_for(ms(20_000));
        for events in [&pair.client.events, &pair.server.events] {
            let ended = Event::Closed(CloseReason::Graceful);
            assert!(events.contains(&ended), "packet {lost}: {events:?}\n{}", pair.log.join("\n"));
        }
        assert!(in_records(pair.sent_since(first as usize - lost as usize)), "nothing in the clear");
    }
}

#[test]
fn an_abort_is_protected_and_believed() {
    let mut pair = protected(1, &required());
    let before = pair.wire.len();
    let now = pair.now;
    pair.client().abort(now, "enough");
    pair.run_for(ms(100));
    assert!(in_records(pair.sent_since(before)));
    let ended = |event: &Event| matches!(event, Event::Closed(CloseReason::AbortedByPeer { cause, .. }) if cause.contains("enough"));
    assert!(pair.server.events.iter().any(ended), "{:?}", pair.server.events);
}

#[test]
fn key_messages_pass_a_full_send_buffer_and_any_schedule() {
    for interleaving in [false, true] {
        let mut config = required().with(|c| c.interleaving = interleaving);
        config.set("stream_scheduler", "priority").expect("a scheduler");
        let mut pair = protected(1, &config);
        let mut number = 0;
        for stream in [0, 1] {
            while pair.client().send_queue().used + 10_000
                < config.send_buffer.0 / 2 * (usize::from(stream) + 1)
            {
                let now = pair.now;
                let message = content(stream, number, 10_000);
                pair.client().send(now, SendOptions::on(StreamId(stream)), message).expect("room");
                number += 1;
            }
        }
        rekey(&mut pair, false);
        // A few round trips: all that was queued takes many more.
        pair.run_for(ms(80));
        assert_eq!(epochs(&pair), [Some(Epoch(4)); 2]);
        assert!(pair.server.received.len() < number as usize);
        pair.run_until(Duration::from_secs(60), |pair| pair.server.received.len() == number as usize);
        assert!(pair.server.received.iter().all(|message| message.ppid.0 == 0), "none is the application's");
    }
}
