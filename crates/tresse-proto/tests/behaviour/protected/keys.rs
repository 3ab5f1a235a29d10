//! Keys that change while data flows, and the end of an association that takes nothing in the clear.

use tresse_proto::config::Size;
use tresse_proto::protection::Epoch;
use tresse_proto::{CloseReason, Direction, ReconfigurationOutcome, SendOptions, StreamId};

use super::*;
use crate::common::content;

/// Little is under way at a time: what flows is encrypted in software.
const SMALL: Size = Size(100_000);

fn rekey(pair: &mut Pair, at_server: bool) {
    let now = pair.now;
    let side = if at_server { &mut pair.server } else { &mut pair.client };
    let mut association = side.endpoint.association(side.id.expect("open")).expect("open");
    side.keys.rekey(now, &mut association).expect("protected");
    pair.pump();
}

fn epochs(pair: &Pair) -> [Option<Epoch>; 2] {
    [pair.client.keys.epoch(), pair.server.keys.epoch()]
}

#[test]
fn keys_change_under_load_and_nothing_is_lost() {
    for (role, asks_at_server) in
        [(KeyRole::Client, false), (KeyRole::Client, true), (KeyRole::Server, false), (KeyRole::Server, true)]
    {
        let other = if role == KeyRole::Client { KeyRole::Server } else { KeyRole::Client };
        let config = |role| AssociationConfig { key_drain: ms(500), send_buffer: SMALL, ..of_role(role) };
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

#[test]
fn new_keys_are_asked_for_when_the_old_ones_have_done_enough() {
    let config =
        AssociationConfig { rekey_megabytes: 1, key_drain: ms(200), send_buffer: SMALL, ..required() };
    let mut pair = protected(1, &config);
    let number = pair.saturate(1, 0, 20_000, Duration::from_secs(2));
    pair.run_until(Duration::from_secs(60), |pair| pair.server.received.len() == number as usize);
    let [client, server] = epochs(&pair).map(|epoch| epoch.expect("keys").0);
    let megabytes = u64::from(number) * 20_000 / 1_000_000;
    assert!(client == server && client > 4, "epoch {client} after {megabytes} MB");
    assert!(client - 3 <= megabytes + 1, "one for each megabyte at most");
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
        let mut config = AssociationConfig { interleaving, ..required() };
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
