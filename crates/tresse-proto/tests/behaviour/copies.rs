//! Everything on every path (`redundant`): what one path loses or never answers the other has brought, nothing arrives
//! twice at the application, and each path is judged by what it does itself.

use std::time::Duration;

use tresse_proto::config::{BufferSplit, LossDetection, Size, StreamMap};
use tresse_proto::{AssociationConfig, Event, PathState, Reliability, SendError, SendOptions, StreamId, Tsn};
use tresse_wire::Chunk;

use crate::common::{Dice, Network, Pair, content, unlike_paths};

const LEN: usize = 1000;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn redundant() -> AssociationConfig {
    AssociationConfig::default().with(|c| {
        c.path_scheduler = "redundant".to_owned();
        c.buffer_split = BufferSplit::None;
        c.mtu_discovery = false;
    })
}

fn unlike(gone: Option<u8>) -> Network {
    unlike_paths([5, 30], gone)
}

fn established(config: &AssociationConfig) -> Pair {
    let mut pair = Pair::new(2, config);
    pair.network = unlike(None);
    let mut pair = pair.settled();
    pair.run_for(ms(1000));
    pair
}

fn queue(pair: &mut Pair, options: SendOptions, number: u32, len: usize) -> Result<(), SendError> {
    let (now, data) = (pair.now, content(options.stream.0, number, len));
    pair.client().send(now, options, data)
}

fn fill(pair: &mut Pair, count: u32) {
    for number in 0..count {
        queue(pair, SendOptions::on(StreamId(0)), number, LEN).expect("room in the send buffer");
    }
    pair.pump();
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
fn everything_leaves_on_every_path_and_arrives_once() {
    let mut pair = established(&redundant());
    let from = pair.wire.len();
    fill(&mut pair, 8);
    let (fast, slow) = (tsns(&pair, from, 0), tsns(&pair, from, 1));
    assert!(slow.len() >= 2 && fast.starts_with(&slow), "{slow:?} of {fast:?} at once");
    pair.run_for(ms(500));
    assert_eq!(pair.server.numbers_on(0), (0..8).collect::<Vec<_>>(), "each once and in order");
    let now = pair.now;
    let duplicates = pair.server().stats(now).expect("established").duplicates;
    for position in 0..2 {
        let stats = pair.path(position);
        assert_eq!((stats.chunks_resent, stats.fast_retransmits, stats.timeouts, stats.flight), (0, 0, 0, 0));
        let sent = tsns(&pair, from, position as u8);
        assert!(sent.is_sorted_by(|one, next| one.is_before(*next)), "each once on a path: {sent:?}");
    }
    let copies = pair.path(0).copies_sent + pair.path(1).copies_sent;
    assert!(copies >= 2 && copies == duplicates, "{copies} copies, {duplicates} duplicates");
}

#[test]
fn each_path_measures_its_own_round_trip_by_its_copies() {
    let mut pair = established(&redundant());
    // Path 1 becomes slower, which only what is sent there can tell.
    pair.network = Box::new(|flight| Some(ms(if flight.path() == 1 { 60 } else { 5 })));
    for number in 0..100 {
        queue(&mut pair, SendOptions::on(StreamId(0)), number, LEN).expect("room");
        pair.run_for(ms(20));
    }
    let srtt = [0, 1].map(|position| pair.path(position).srtt.expect("measured").as_millis());
    // Reports go back on either path, or wait for another packet.
    assert!(srtt[0] < 60 && srtt[1] > 60, "{srtt:?} ms");
    assert_eq!([0, 1].map(|position| pair.path(position).timeouts), [0, 0]);
}

#[test]
fn a_path_that_dies_is_found_and_delays_nothing() {
    for gone in [0, 1] {
        let mut pair = established(&redundant());
        pair.network = unlike(Some(gone));
        // Slow enough for the first window of the slow path and its delayed reports.
        for number in 0..200 {
            queue(&mut pair, SendOptions::on(StreamId(0)), number, LEN).expect("room");
            pair.run_for(ms(40));
            let came = pair.server.received.len();
            assert!(
                came as u32 + 1 >= number,
                "{came} of {number}, path {gone} dies\n{:#?}\n{}",
                pair.path(1),
                pair.log.join("\n")
            );
        }
        let found = pair.client.events.iter().any(|event| {
            matches!(event, Event::PathChanged { path, state } if path.index() == usize::from(gone)
                && *state != PathState::Active)
        });
        assert!(found, "{:?}", pair.client.events);
        let alive = pair.path(usize::from(1 - gone));
        assert_eq!((alive.state, alive.timeouts, alive.fast_retransmits), (PathState::Active, 0, 0));
    }
}

#[test]
fn a_path_that_comes_back_carries_copies_again() {
    let mut pair = established(&redundant());
    pair.network = unlike(Some(1));
    for number in 0..200 {
        queue(&mut pair, SendOptions::on(StreamId(0)), number, LEN).expect("room");
        pair.run_for(ms(20));
    }
    pair.network = unlike(None);
    pair.run_for(Duration::from_secs(60));
    assert_eq!(pair.path(1).state, PathState::Active);
    let before = pair.path(1).copies_sent;
    for number in 200..220 {
        queue(&mut pair, SendOptions::on(StreamId(0)), number, LEN).expect("room");
        // Its window is that of a path that has just timed out.
        pair.run_for(ms(100));
    }
    assert_eq!(pair.path(1).copies_sent, before + 20);
    assert_eq!(pair.server.numbers_on(0), (0..220).collect::<Vec<_>>());
}

#[test]
fn losses_of_one_path_cost_no_time_and_no_window_but_its_own() {
    for lossy in [0, 1] {
        let by_reports = redundant().with(|c| c.loss_detection = LossDetection::Rfc9260);
        let mut pair = established(&by_reports);
        let untouched = pair.path(0).ssthresh;
        let mut dice = Dice::new(7);
        pair.network = Box::new(move |flight| {
            let lost = flight.to_server && flight.has_data() && flight.path() == lossy && dice.hits(0.1);
            (!lost).then_some(ms(if flight.path() == 1 { 30 } else { 5 }))
        });
        for number in 0..400 {
            queue(&mut pair, SendOptions::on(StreamId(0)), number, LEN).expect("room");
            pair.run_for(ms(10));
            // The slow path and a delayed report: never a retransmission timeout.
            assert!(pair.server.received.len() as u32 + 5 >= number, "{number}");
        }
        let [bad, good] = [lossy, 1 - lossy].map(|position| pair.path(usize::from(position)));
        assert!(bad.ssthresh < untouched, "path {lossy} loses, and its window was never cut");
        assert_eq!(good.ssthresh, untouched, "path {lossy} loses, and the other's window was cut");
        assert_eq!((bad.timeouts, good.timeouts), (0, 0));
    }
}

#[test]
fn a_stream_bound_to_a_path_is_not_copied_to_another() {
    let config = redundant().with(|c| c.stream_map = StreamMap::Fixed(vec![0, 1]));
    let mut pair = established(&config);
    let from = pair.wire.len();
    fill(&mut pair, 4);
    pair.run_for(ms(500));
    assert_eq!((tsns(&pair, from, 0).len(), tsns(&pair, from, 1).len()), (4, 0));
}

#[test]
fn what_is_given_up_takes_its_copies_along() {
    let mut pair = established(&redundant());
    pair.network = Box::new(|flight| (!flight.has_data() || !flight.to_server).then_some(ms(5)));
    for number in 0..3 {
        let options = SendOptions::on(StreamId(0)).with(|o| o.reliability = Reliability::Lifetime(ms(300)));
        queue(&mut pair, options, number, LEN).expect("room");
    }
    pair.pump();
    assert!(pair.path(1).flight > 0);
    pair.run_for(Duration::from_secs(10));
    assert_eq!([0, 1].map(|position| pair.path(position).flight), [0, 0]);
    pair.network = unlike(None);
    pair.run_for(Duration::from_secs(60));
    queue(&mut pair, SendOptions::on(StreamId(0)), 3, LEN).expect("room");
    pair.run_for(Duration::from_secs(5));
    assert_eq!(pair.server.numbers_on(0), [3]);
}

#[test]
fn a_shutdown_does_not_wait_for_answers_to_copies() {
    let mut pair = established(&redundant());
    pair.network = unlike(Some(1));
    fill(&mut pair, 4);
    let now = pair.now;
    pair.client().shutdown(now);
    pair.run_for(ms(1000));
    assert_eq!(pair.server.numbers_on(0), (0..4).collect::<Vec<_>>());
    assert!(pair.client.events.iter().any(|event| matches!(event, Event::Closed(_))));
}

/// Losses on both paths, delays that vary, and buffers of any size.
#[test]
fn nothing_is_lost_or_doubled_whatever_the_network_loses() {
    for seed in 0..20 {
        let mut dice = Dice::new(seed);
        let config = redundant().with(|c| {
            c.send_buffer = Size(8_000 + dice.below(60_000) as usize);
            c.receive_buffer = Size(8_000 + dice.below(60_000) as usize);
            c.interleaving = seed % 3 == 0;
        });
        let mut pair = established(&config);
        let (loss, mut network) = (dice.below(15) as f64 / 100.0, Dice::new(seed + 100));
        pair.network = Box::new(move |flight| {
            let delay = if flight.path() == 1 { 30 + network.below(30) } else { 5 + network.below(30) };
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
