//! Data that a path scheduler leaves to a path before its window is open: its TSNs leave late and arrive in time, and
//! nothing that happens to a path or a message loses any.

use std::time::Duration;

use tresse_proto::config::{BufferSplit, SackPath, Size};
use tresse_proto::{AssociationConfig, Event, Reliability, SendError, SendOptions, StreamId, Tsn};
use tresse_wire::{Chunk, DATA_HEADER_LEN};

use crate::common::{Dice, Network, Pair, content, unlike_paths};

const LEN: usize = 1000;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn planning(path_scheduler: &str) -> AssociationConfig {
    AssociationConfig::default().with(|c| {
        c.path_scheduler = path_scheduler.to_owned();
        c.buffer_split = BufferSplit::None;
        // The slow path's round trips are long both ways.
        c.sack_path = SackPath::LastData;
        c.mtu_discovery = false;
        c.initial_window = Size(10 * LEN);
    })
}

fn unlike(gone: Option<u8>) -> Network {
    unlike_paths([5, 60], gone)
}

/// Both paths have been measured, and nothing is under way.
fn measured(config: &AssociationConfig) -> Pair {
    let mut pair = Pair::new(2, config);
    pair.network = unlike(None);
    let mut pair = pair.settled();
    let mut number = 0;
    while number < 40 && queue(&mut pair, SendOptions::on(StreamId(1)), number, LEN).is_ok() {
        number += 1;
    }
    pair.run_for(ms(2000));
    let srtt = [0, 1].map(|position| pair.path(position).srtt.expect("measured"));
    assert!(srtt[1] > 2 * srtt[0], "{srtt:?}");
    pair.server.received.clear();
    pair
}

fn queue(pair: &mut Pair, options: SendOptions, number: u32, len: usize) -> Result<(), SendError> {
    let now = pair.now;
    let options = options.with(|o| o.context = number.into());
    let data = content(options.stream.0, number, len);
    pair.client().send(now, options, data)
}

/// Queues messages in order on stream 0.
fn fill(pair: &mut Pair, count: u32) {
    for number in 0..count {
        queue(pair, SendOptions::on(StreamId(0)), number, LEN).expect("room in the send buffer");
    }
    pair.pump();
}

/// Bytes that wait for the window of a path.
fn waiting(pair: &mut Pair, position: usize) -> usize {
    let path = pair.path(position);
    path.queued - path.flight
}

/// The TSNs that the client sent on `path` since `from` packets were sent.
fn tsns(pair: &Pair, from: usize, path: u8) -> Vec<Tsn> {
    let flights = pair.sent_since(from).iter().filter(|flight| flight.to_server && flight.path() == path);
    let tsn = |chunk: Chunk<'_>| match chunk {
        Chunk::Data(data) => Some(data.tsn),
        _ => None,
    };
    flights.flat_map(|flight| flight.chunks().into_iter().filter_map(tsn).collect::<Vec<_>>()).collect()
}

#[test]
fn the_slow_path_carries_later_data_while_earlier_data_waits_for_the_fast_one() {
    let mut pair = measured(&planning("otias"));
    let from = pair.wire.len();
    fill(&mut pair, 60);
    assert!(waiting(&mut pair, 0) > 10 * LEN, "{}", pair.log.join("\n"));
    let (fast, slow) = (tsns(&pair, from, 0), tsns(&pair, from, 1));
    let between = slow[0].0.wrapping_sub(fast[fast.len() - 1].0) as usize - 1;
    assert_eq!(
        between * (LEN + DATA_HEADER_LEN),
        waiting(&mut pair, 0),
        "what waits was skipped on the wire"
    );
    pair.run_for(ms(1000));
    assert_eq!(pair.server.numbers_on(0), (0..60).collect::<Vec<_>>(), "each once and in order");
    for position in 0..2 {
        let stats = pair.path(position);
        assert_eq!((stats.chunks_resent, stats.timeouts, stats.queued), (0, 0, 0));
        assert!(tsns(&pair, from, position as u8).is_sorted_by(|one, next| one.is_before(*next)));
    }
}

#[test]
fn messages_of_many_fragments_are_cut_over_paths_that_wait() {
    let mut pair = measured(&planning("otias"));
    for number in 0..6 {
        queue(&mut pair, SendOptions::on(StreamId(0)), number, 20 * LEN).expect("room in the send buffer");
    }
    pair.pump();
    assert!(waiting(&mut pair, 0) > 0);
    pair.run_for(ms(2000));
    assert_eq!(pair.server.numbers_on(0), (0..6).collect::<Vec<_>>());
}

#[test]
fn what_waits_for_a_path_that_dies_leaves_on_the_other() {
    for gone in [0, 1] {
        let mut pair = measured(&planning("otias"));
        fill(&mut pair, 60);
        pair.network = unlike(Some(gone));
        pair.run_for(Duration::from_secs(30));
        assert_eq!(pair.server.numbers_on(0), (0..60).collect::<Vec<_>>(), "path {gone} dies");
        assert_eq!(pair.path(usize::from(gone)).queued, 0);
    }
}

#[test]
fn what_waits_beyond_its_lifetime_is_given_up_unsent_and_skipped() {
    let mut pair = measured(&planning("otias"));
    let lifetime = |number| if number % 2 == 0 { Reliability::Full } else { Reliability::Lifetime(ms(8)) };
    for number in 0..60 {
        let options = SendOptions::on(StreamId(0)).with(|o| o.reliability = lifetime(number));
        queue(&mut pair, options, number, LEN).expect("room in the send buffer");
    }
    // Where messages are given up in turn, a FORWARD TSN skips one at a time.
    pair.run_for(Duration::from_secs(20));
    let told: Vec<(u64, bool)> = pair
        .client
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Abandoned { context, sent, .. } => Some((*context, *sent)),
            _ => None,
        })
        .collect();
    assert!(told.len() >= 5, "{told:?}");
    assert!(told.iter().all(|&(number, sent)| number % 2 == 1 && !sent), "{told:?}");
    let gone = |number: &u32| told.iter().any(|&(given_up, _)| given_up == u64::from(*number));
    let expected: Vec<u32> = (0..60).filter(|number| !gone(number)).collect();
    assert_eq!(pair.server.numbers_on(0), expected);
    let now = pair.now;
    let stats = pair.client().stats(now).expect("established");
    assert_eq!((stats.send_buffer_used, stats.unsent, stats.flight), (0, 0, 0));
}

#[test]
fn a_shutdown_waits_for_what_was_assigned() {
    let mut pair = measured(&planning("otias"));
    fill(&mut pair, 40);
    assert!(waiting(&mut pair, 0) > 0);
    let now = pair.now;
    pair.client().shutdown(now);
    pair.run_for(ms(3000));
    assert_eq!(pair.server.numbers_on(0), (0..40).collect::<Vec<_>>());
    assert!(pair.client.events.iter().any(|event| matches!(event, Event::Closed(_))));
}

#[test]
fn a_small_window_of_the_peer_leaves_room_for_what_waits() {
    let config = planning("otias").with(|c| c.receive_buffer = Size(30_000));
    let mut pair = measured(&config);
    pair.server.reads = false;
    fill(&mut pair, 60);
    pair.run_for(ms(3000));
    let now = pair.now;
    assert!(pair.server().stats(now).expect("established").receive_buffer_used > 20_000);
    pair.server.reads = true;
    pair.run_for(Duration::from_secs(20));
    assert_eq!(pair.server.numbers_on(0), (0..60).collect::<Vec<_>>());
}

/// Losses on both paths, delays that vary, and buffers of any size.
#[test]
fn nothing_is_lost_whatever_the_network_loses() {
    for seed in 0..20 {
        let mut dice = Dice::new(seed);
        let config = planning("otias").with(|c| {
            c.send_buffer = Size(8_000 + dice.below(60_000) as usize);
            c.receive_buffer = Size(8_000 + dice.below(60_000) as usize);
            c.interleaving = seed % 3 == 0;
        });
        let mut pair = measured(&config);
        let (loss, mut network) = (dice.below(15) as f64 / 100.0, Dice::new(seed + 100));
        pair.network = Box::new(move |flight| {
            let delay = if flight.path() == 1 { 60 + network.below(30) } else { 5 + network.below(3) };
            (!network.hits(loss)).then_some(ms(delay))
        });
        let mut next = 0;
        pair.run_until(Duration::from_secs(120), |pair| {
            while next < 300 && queue(pair, SendOptions::on(StreamId(0)), next, LEN).is_ok() {
                next += 1;
            }
            pair.pump();
            pair.server.received.len() >= 300
        });
        assert_eq!(pair.server.numbers_on(0), (0..300).collect::<Vec<_>>(), "seed {seed}");
    }
}
