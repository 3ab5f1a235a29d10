//! Small buffers: rescheduling in time, and paths that rest because others would wait for them.

use std::time::Duration;

use tresse_proto::config::{LossDetection, Size, StreamMap};
use tresse_proto::{AssociationConfig, CloseReason, Event, SendOptions, StreamId};
use tresse_wire::{Chunk, ChunkKind};

use crate::common::{Dice, Flight, Pair, content};

const M: usize = 1452;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The peer can hold as many chunks.
fn buffer(chunks: usize) -> AssociationConfig {
    AssociationConfig::default().with(|c| {
        c.mtu_discovery = false;
        c.receive_buffer = Size(chunks * M);
    })
}

/// Path 1 takes so long there; all else takes 10 ms.
fn unlike(config: &AssociationConfig, millis: u64) -> Pair {
    let mut pair = Pair::new(2, config);
    pair.network =
        Box::new(move |flight| Some(ms(if flight.path() == 1 && flight.to_server { millis } else { 10 })));
    pair.settled()
}

/// Both paths have been measured, and 60 chunks are to be sent.
fn sixty(config: &AssociationConfig) -> Pair {
    let mut pair = unlike(config, 100);
    for number in 0..64 {
        pair.send(0, number, M);
        if number < 4 {
            pair.run_for(ms(200));
        }
    }
    pair.run_for(ms(2000));
    assert_eq!(pair.server.received.len(), 64);
    pair
}

#[test]
fn a_slow_path_that_is_on_time_keeps_its_chunks_as_long_as_the_buffers_bear_it() {
    let resent = |chunks| {
        let mut pair = sixty(&buffer(chunks));
        (0..2).map(|position| pair.path(position).chunks_resent).sum::<u64>()
    };
    assert_eq!(resent(400), 0);
    assert!(resent(12) > 0, "path 0 would have to wait");
}

#[test]
fn what_is_overdue_goes_again_before_any_timer_expires_and_again_when_that_is_lost_too() {
    let mut pair = Pair::established(2, &buffer(12));
    let number = pair.saturate(1, 0, M, ms(500));
    // Of each chunk in a hundred milliseconds three copies are lost.
    let (start, mut victim, mut lost) = (pair.now, None, 0);
    pair.network = Box::new(move |flight| {
        let first = flight.chunks().into_iter().find_map(|chunk| match chunk {
            Chunk::Data(data) => Some(data.tsn),
            _ => None,
        });
        if flight.to_server && first.is_some() && victim.is_none() && flight.sent > start {
            victim = first;
        }
        let hit = first.is_some() && first == victim && lost < 3;
        lost += u32::from(hit);
        (!hit).then_some(ms(10))
    });
    let before = pair.server.received.len();
    pair.saturate(1, number, M, ms(400));
    assert!(pair.server.received.len() > before + 100, "{}", pair.log.join("\n"));
    let timeouts: u64 = (0..2).map(|position| pair.path(position).timeouts).sum();
    assert_eq!(timeouts, 0);
}

#[test]
fn a_peer_that_vanishes_is_found_although_its_last_chunk_is_repeated() {
    let mut pair = Pair::established(2, &buffer(12));
    let mut dice = Dice::new(1);
    pair.network = Box::new(move |_| (!dice.hits(0.1)).then_some(ms(10)));
    pair.saturate(1, 0, M, ms(2000));
    let before = pair.wire.len();
    pair.network = Box::new(|_| None);
    let closed = Event::Closed(CloseReason::PathsLost);
    pair.run_until(Duration::from_secs(600), |pair| pair.client.events.contains(&closed));
    assert!(pair.sent_since(before).len() < 500, "{} packets", pair.sent_since(before).len());
}

#[test]
fn a_chunk_that_nothing_can_follow_asks_for_its_report() {
    let asks = |config: &AssociationConfig| {
        let immediate = |flight: &Flight| {
            flight.chunks().iter().any(|chunk| matches!(chunk, Chunk::Data(data) if data.flags.immediate))
        };
        sixty(config).wire.iter().any(immediate)
    };
    assert!(asks(&buffer(12)));
    let by_reports = buffer(400).with(|c| c.loss_detection = LossDetection::Rfc9260);
    assert!(!asks(&by_reports), "where there is room nobody has to hurry");
    assert!(!asks(&by_reports.with(|c| {
        c.immediate_sack_when_full = false;
        c.receive_buffer = Size(12 * M);
    })));
}

/// How long three messages of 64 KiB, as long as the receive buffer, take over a path of 20 ms there and back.
fn three_as_long_as_the_buffer(immediate_sack_when_full: bool) -> Duration {
    let config = buffer(400).with(|c| {
        c.immediate_sack_when_full = immediate_sack_when_full;
        c.receive_buffer = Size(65_536);
        // By time, the end of what was sent asks for a report anyway.
        c.loss_detection = LossDetection::Rfc9260;
    });
    let mut pair = Pair::established(1, &config);
    pair.network = Box::new(|_| Some(ms(10)));
    (0..3).for_each(|number| pair.send(0, number, 65_536));
    let start = pair.now;
    let mut joiner = tresse_proto::Joiner::default();
    let mut whole = 0;
    pair.run_until(Duration::from_secs(10), |pair| {
        whole += pair.server.received.drain(..).filter_map(|part| joiner.join(part)).count();
        whole == 3
    });
    pair.now.since(start)
}

#[test]
fn the_packet_that_fills_the_receive_buffer_is_reported_at_once() {
    assert!(three_as_long_as_the_buffer(false) > ms(400), "each waits for a delayed SACK");
    let took = three_as_long_as_the_buffer(true);
    assert!(took < ms(400), "{took:?}");
}

/// Path 1 loses `share` of its packets for the first 20 s; returns how many chunks each path carried first within the
/// second half of that, and within the last 10 s of a minute without a loss.
fn carried(share: f64) -> ([u64; 2], [u64; 2]) {
    // Either path has room for all that the peer's window allows.
    let mut pair = Pair::established(2, &buffer(12).with(|c| c.path_scheduler = "round_robin".to_owned()));
    let (start, mut dice) = (pair.now, Dice::new(7));
    pair.network = Box::new(move |flight| {
        let lossy = flight.path() == 1 && flight.sent < start + ms(20_000);
        (!(lossy && dice.hits(share))).then_some(ms(45))
    });
    let mut number = 0;
    let mut sent = |duration| {
        let before = [0, 1].map(|position| pair.path(position).chunks_sent);
        number = pair.saturate(1, number, M, duration);
        let after = [0, 1].map(|position| pair.path(position).chunks_sent);
        [after[0] - before[0], after[1] - before[1]]
    };
    sent(ms(10_000));
    let bad = sent(ms(10_000));
    sent(ms(50_000));
    (bad, sent(ms(10_000)))
}

#[test]
fn a_path_whose_losses_make_others_wait_rests_and_returns_when_it_loses_no_more() {
    let (bad, good) = carried(0.2);
    assert!(bad[1] * 10 < bad[0], "{bad:?}");
    assert!(bad[1] > 0, "it is tried now and then");
    assert!(good[1] * 3 > good[0], "{good:?}");
    let (alike, _) = carried(0.0);
    assert!(alike[1] * 3 > alike[0], "{alike:?}");
}

#[test]
fn a_path_that_has_not_been_heard_for_its_rto_carries_no_sack_however_fast_it_was() {
    let mut pair = unlike(&buffer(12).with(|c| c.concurrent = false), 100);
    pair.network = Box::new(|flight| (flight.path() == 1).then_some(ms(100)));
    pair.run_for(ms(1000));
    let before = pair.wire.len();
    pair.send(0, 0, M);
    pair.run_for(ms(1500));
    assert_eq!(pair.server.received.len(), 1, "by T3, over path 1");
    let sacks = pair
        .sent_since(before)
        .iter()
        .filter(|flight| !flight.to_server && flight.carries(ChunkKind::NR_SACK));
    let paths: Vec<u8> = sacks.map(Flight::path).collect();
    assert_eq!(paths, [1]);
}

#[test]
fn a_path_that_becomes_narrow_is_found_in_two_timeouts_although_its_chunks_are_repeated_elsewhere() {
    const NARROW: usize = 1300;
    let mut pair = Pair::established(2, &buffer(60).with(|c| c.mtu_discovery = true));
    pair.network = Box::new(|_| Some(ms(10)));
    let number = pair.saturate(1, 0, M, ms(2000));
    assert_eq!(pair.path(1).mtu, 1500);
    let start = pair.now;
    let too_large = |flight: &Flight| flight.path() == 1 && flight.bytes.len() + 28 > NARROW;
    pair.network = Box::new(move |flight| (!too_large(flight)).then_some(ms(10)));
    // A second until the first one. Then the path rests for ten, as it costs the others more than it brings, is tried,
    // and two seconds later the next one follows.
    pair.saturate(1, number, M, ms(15_000));
    assert!(pair.path(1).mtu <= NARROW && pair.path(1).timeouts <= 3);
    let later = pair.wire.iter().filter(|flight| flight.sent > start + ms(14_000) && too_large(flight));
    let carrying = later.filter(|flight| flight.carries(ChunkKind::DATA)).count();
    assert_eq!(carrying, 0, "nothing that is too long for it is repeated there");
}

/// Stream 0 is bound to path 0, stream 1 to path 1, which takes ten times as long; path 0 alone could fill the buffer.
fn bound() -> Pair {
    let config = buffer(12).with(|c| c.stream_map = StreamMap::Fixed(vec![0, 1]));
    unlike(&config, 100)
}

#[test]
fn a_path_that_has_streams_of_its_own_does_not_rest() {
    let mut pair = bound();
    pair.saturate(2, 0, M, ms(10_000));
    let sent = [0, 1].map(|position| pair.path(position).chunks_sent);
    assert!(sent[0] > 1000 && sent[1] > 80, "at least a packet a round trip: {sent:?}");
}

#[test]
fn a_path_whose_streams_are_silent_leaves_the_buffer_to_others() {
    let mut pair = bound();
    let number = pair.saturate(1, 0, M, ms(3000));
    pair.run_for(ms(3000));
    let before = pair.server.received.len();
    let now = pair.now;
    for number in number..number + 60 {
        let sent = pair.client().send(now, SendOptions::on(StreamId(1)), content(1, number, M));
        sent.expect("room in the send buffer");
    }
    pair.run_for(ms(1500));
    assert_eq!(pair.server.received.len() - before, 60, "more than a packet a round trip of 110 ms");
}
