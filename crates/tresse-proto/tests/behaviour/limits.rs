//! `limited_by`: every instant is counted once, and in situations made for it the right limit is named.

use std::time::Duration;

use tresse_proto::config::{BufferAllocation, BufferSplit, ChunkRescheduling, Size, StreamMap};
use tresse_proto::{AssociationConfig, Instant, Limit, LimitTimes, SendError, SendOptions, StreamId};
use tresse_wire::DATA_HEADER_LEN;

use crate::common::{Pair, content};

/// Limits of the client's association and of its paths since `earlier`.
struct Shares {
    total: LimitTimes,
    paths: Vec<LimitTimes>,
}

impl Shares {
    fn now(pair: &mut Pair) -> Self {
        let now = pair.now;
        let total = pair.client().stats(now).expect("open").limited_by;
        Shares { total, paths: pair.client().path_stats(now).iter().map(|path| path.limited_by).collect() }
    }

    fn since(&self, earlier: &Shares) -> Shares {
        let paths = self.paths.iter().zip(&earlier.paths).map(|(now, then)| now.since(then)).collect();
        Shares { total: self.total.since(&earlier.total), paths }
    }
}

fn share(times: &LimitTimes, limit: Limit) -> f64 {
    times.shares().into_iter().find(|(of, _)| *of == limit).map_or(0.0, |(_, share)| share)
}

/// Keeps the client's send buffer filled on these streams for a time, after two seconds of the same; answers
/// the limits.
fn saturated(pair: &mut Pair, streams: &[u16], len: usize, seconds: u64) -> Shares {
    fn fill(pair: &mut Pair, streams: &[u16], len: usize, until: Instant) {
        let mut number = 0;
        while pair.now < until {
            for &stream in streams.iter().cycle() {
                let now = pair.now;
                let message = content(stream, number, len);
                match pair.client().send(now, SendOptions::on(StreamId(stream)), message) {
                    Ok(()) => number += 1,
                    Err(SendError::Full { .. }) => break,
                    Err(error) => panic!("{error}"),
                }
            }
            pair.run_for(Duration::from_millis(2));
        }
    }
    let warm = pair.now + Duration::from_secs(2);
    fill(pair, streams, len, warm);
    let before = Shares::now(pair);
    let end = pair.now + Duration::from_secs(seconds);
    fill(pair, streams, len, end);
    Shares::now(pair).since(&before)
}

#[test]
fn every_instant_is_counted_once() {
    let mut pair = Pair::established(3, &AssociationConfig::default());
    pair.network = Box::new(|flight| {
        let lost = flight.number % 17 == 0 || flight.path() == 2;
        (!lost).then_some(Duration::from_millis(10 + 10 * u64::from(flight.path())))
    });
    let start = pair.now;
    let before = Shares::now(&mut pair);
    for number in 0..300 {
        pair.send(0, number, 3000);
        pair.run_for(Duration::from_millis(u64::from(number % 50)));
    }
    pair.run_for(Duration::from_secs(100));
    let elapsed = pair.now - start;
    let shares = Shares::now(&mut pair).since(&before);
    for times in shares.paths.iter().chain([&shares.total]) {
        let sum: Duration = Limit::ALL.iter().map(|&limit| times.of(limit)).sum();
        assert_eq!(sum, elapsed);
    }
}

#[test]
fn silence_is_the_applications() {
    let mut pair = Pair::established(2, &AssociationConfig::default());
    let before = Shares::now(&mut pair);
    pair.run_for(Duration::from_secs(10));
    let idle = Shares::now(&mut pair).since(&before);
    for times in idle.paths.iter().chain([&idle.total]) {
        assert_eq!(times.of(Limit::Application), Duration::from_secs(10));
    }
    // A message now and then leaves it so.
    let before = Shares::now(&mut pair);
    for number in 0..100 {
        pair.send(0, number, 200);
        pair.run_for(Duration::from_millis(100));
    }
    let trickle = Shares::now(&mut pair).since(&before);
    assert!(share(&trickle.total, Limit::Application) > 0.95, "{:?}", trickle.total);
}

/// The application fills the window with its last message, and waits for the answer.
#[test]
fn a_full_window_is_no_limit_where_no_data_waits() {
    let config = AssociationConfig::default().with(|c| c.pacing = false);
    let mut pair = Pair::established(1, &config);
    let before = Shares::now(&mut pair);
    for number in 0..5 {
        while pair.path(0).flight < pair.path(0).cwnd {
            pair.send(0, number, 1000);
        }
        assert_eq!(pair.client().send_queue().unsent, 0);
        pair.run_for(Duration::from_millis(300));
    }
    let shares = Shares::now(&mut pair).since(&before);
    assert_eq!(shares.total.of(Limit::CongestionWindow), Duration::ZERO);
    assert_eq!(shares.paths[0].of(Limit::Application), Duration::from_millis(1500));
}

/// Two messages leave less than a full chunk of the peer's buffer. A third one waits, in flight as a window probe.
#[test]
fn a_used_up_window_is_no_limit_where_no_data_waits() {
    let len = 1000 + DATA_HEADER_LEN;
    let small = AssociationConfig::default().with(|c| c.receive_buffer = Size(len + 1452));
    let mut pair = Pair::unlike(1, &AssociationConfig::default(), &small, 1).settled();
    pair.server.reads = false;
    let before = Shares::now(&mut pair);
    for number in 0..2 {
        pair.send(0, number, 1000);
    }
    assert_eq!(pair.path(0).flight, 2 * len);
    pair.run_for(Duration::from_secs(10));
    let shares = Shares::now(&mut pair).since(&before);
    assert_eq!(shares.total.of(Limit::Application), Duration::from_secs(10));
    let before = Shares::now(&mut pair);
    pair.send(0, 2, 1000);
    assert_eq!(pair.path(0).flight, len);
    pair.run_for(Duration::from_secs(10));
    let shares = Shares::now(&mut pair).since(&before);
    assert_eq!(shares.total.of(Limit::Application), Duration::ZERO);
}

#[test]
fn what_the_driver_leaves_to_its_next_turn_waits_for_the_host() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    let (start, mut now, mut buffer) = (pair.now, pair.now, Vec::new());
    pair.client().send(now, SendOptions::on(StreamId(0)), content(0, 0, 3000)).expect("room");
    while pair.client.endpoint.poll_transmit(now, 1, &mut buffer).is_some() {
        now += Duration::from_millis(3);
    }
    let stats = pair.client().stats(now).expect("open").limited_by;
    let path = pair.client().path_stats(now)[0].limited_by;
    // Nothing more was there after the last of them.
    let waited = now - start;
    assert!(waited >= Duration::from_millis(6), "several packets: {waited:?}");
    for times in [stats, path] {
        assert_eq!(times.of(Limit::Host), waited, "{times:?}");
    }
}

#[test]
fn a_small_congestion_window_is_the_networks() {
    let mut pair = Pair::established(2, &AssociationConfig::default());
    // Every fiftieth packet is lost: windows stay small.
    pair.network = Box::new(|flight| (flight.number % 50 != 0).then_some(Duration::from_millis(25)));
    let shares = saturated(&mut pair, &[0], 1452, 20);
    for times in shares.paths.iter().chain([&shares.total]) {
        assert!(share(times, Limit::CongestionWindow) > 0.9, "{times:?}");
    }
}

#[test]
fn a_small_send_buffer_is_named() {
    let config = AssociationConfig::default().with(|c| {
        c.send_buffer = Size(8 * 1452);
        c.buffer_split = BufferSplit::None;
    });
    let mut pair = Pair::established(1, &config);
    let shares = saturated(&mut pair, &[0], 1452, 10);
    assert!(share(&shares.total, Limit::SendBuffer) > 0.8, "{:?}", shares.total);
}

#[test]
fn a_share_of_the_send_buffer_is_named_for_the_path_that_is_kept_back() {
    let config = AssociationConfig::default().with(|c| {
        c.send_buffer = Size(40 * 1452);
        c.buffer_split = BufferSplit::Sender;
        c.buffer_allocation = BufferAllocation::Equal;
        c.chunk_rescheduling = ChunkRescheduling::Off;
    });
    let mut pair = Pair::established(2, &config);
    // Path 1 takes twenty times as long: its half of the buffer is full most of the time.
    pair.network = Box::new(|flight| {
        Some(Duration::from_millis(if flight.path() == 1 && flight.to_server { 400 } else { 10 }))
    });
    let shares = saturated(&mut pair, &[0], 1452, 20);
    assert!(share(&shares.paths[1], Limit::SendBuffer) > 0.5, "{:?}", shares.paths[1]);
}

#[test]
fn a_small_receive_buffer_is_named() {
    let small = AssociationConfig::default().with(|c| c.receive_buffer = Size(8 * 1452));
    let mut pair = Pair::unlike(1, &AssociationConfig::default(), &small, 1).settled();
    let shares = saturated(&mut pair, &[0], 1452, 10);
    assert!(share(&shares.total, Limit::ReceiveBuffer) > 0.8, "{:?}", shares.total);
}

#[test]
fn a_fixed_map_that_starves_a_path_is_the_schedulers() {
    let config = AssociationConfig::default().with(|c| c.stream_map = StreamMap::Fixed(vec![0, 1]));
    let mut pair = Pair::established(2, &config);
    pair.network = Box::new(|flight| (flight.number % 50 != 0).then_some(Duration::from_millis(25)));
    // Stream 0 always has data and the send buffer always room, but stream 1 has never any data.
    let mut number = 0;
    let mut run = |pair: &mut Pair, seconds: u64| {
        let end = pair.now + Duration::from_secs(seconds);
        while pair.now < end {
            while pair.client().send_queue().used < 500_000 {
                pair.send(0, number, 1000);
                number += 1;
            }
            pair.run_for(Duration::from_millis(2));
        }
    };
    run(&mut pair, 2);
    let before = Shares::now(&mut pair);
    run(&mut pair, 10);
    let shares = Shares::now(&mut pair).since(&before);
    assert!(share(&shares.paths[1], Limit::Scheduler) > 0.9, "{:?}", shares.paths[1]);
    assert!(share(&shares.paths[0], Limit::CongestionWindow) > 0.8, "{:?}", shares.paths[0]);
    assert!(share(&shares.total, Limit::Scheduler) > 0.9, "{:?}", shares.total);
}

#[test]
fn a_path_that_is_down_is_named_and_does_not_speak_for_the_whole() {
    let mut pair = Pair::established(2, &AssociationConfig::default());
    pair.network = Box::new(|flight| (flight.path() == 0).then_some(Duration::from_millis(10)));
    pair.run_for(Duration::from_secs(400));
    let before = Shares::now(&mut pair);
    pair.run_for(Duration::from_secs(10));
    let shares = Shares::now(&mut pair).since(&before);
    assert_eq!(shares.paths[1].of(Limit::Path), Duration::from_secs(10));
    assert_eq!(shares.total.of(Limit::Application), Duration::from_secs(10));
}
