//! The chunk that everything waits for goes again on another path before it counts as lost: chunk rescheduling, and what
//! MPTCP does (opportunistic retransmission, penalisation).

use std::time::Duration;

use tresse_proto::config::{BufferSplit, ChunkRescheduling, NrSack, ReinjectionCut, Size};
use tresse_proto::{AssociationConfig, Event, PathId, PathState, SendOptions, StreamId};
use tresse_wire::DATA_HEADER_LEN;

use crate::common::{Pair, by_reports, content};

const M: usize = 1452;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A send buffer of twenty chunks, of which early arrivals may hold five.
fn watching(chunk_rescheduling: ChunkRescheduling) -> AssociationConfig {
    by_reports().with(|c| {
        c.chunk_rescheduling = chunk_rescheduling;
        c.experiment.rescheduling_threshold = 25;
        c.mtu_discovery = false;
        // Data leaves on the slow path although the fast one has room.
        c.path_scheduler = "round_robin".to_owned();
        c.buffer_split = BufferSplit::None;
        c.nr_sack = NrSack::Delivered;
        c.send_buffer = Size(20 * M);
        c.initial_window = Size(20 * M);
        c.congestion_control = "rfc9260".to_owned();
    })
}

/// Path 1 takes 300 ms, path 0 takes 10. The buffer is filled with messages in order; returns the association 100 ms
/// later, when only the chunks of path 1 are missing.
fn filled(config: &AssociationConfig) -> Pair {
    let mut pair = Pair::new(2, config);
    pair.network = Box::new(|flight| Some(ms(if flight.path() == 1 { 300 } else { 10 })));
    let mut pair = pair.settled();
    // Each path has been measured.
    for number in 0..4 {
        pair.send(1, number, M);
    }
    pair.run_for(ms(700));
    pair.server.received.clear();
    let now = pair.now;
    for number in 0..20 {
        let sent = pair.client().send(now, SendOptions::on(StreamId(0)), content(0, number, M));
        sent.expect("room in the send buffer");
    }
    pair.run_for(ms(100));
    pair
}

#[test]
fn late_chunks_of_the_slow_path_are_repeated_on_the_fast_one() {
    let mut pair = filled(&watching(ChunkRescheduling::Sender));
    let resent = pair.path(0).chunks_resent;
    assert!(resent >= 1, "{}", pair.log.join("\n"));
    assert!(!pair.server.received.is_empty(), "what waited for them is there");
    pair.run_for(ms(3000));
    assert_eq!(pair.server.numbers_on(0), (0..20).collect::<Vec<_>>(), "each once and in order");
    let slow = pair.path(1);
    assert_eq!((slow.timeouts, slow.fast_retransmits, slow.flight), (0, 0, 0));

    let mut pair = filled(&watching(ChunkRescheduling::Off));
    assert_eq!(pair.path(0).chunks_resent, 0);
}

#[test]
fn the_old_path_pays_by_its_window() {
    let cwnd = |reinjection_cut| {
        let mut config = watching(ChunkRescheduling::Sender);
        config.experiment.reinjection_cut = reinjection_cut;
        let mut pair = filled(&config);
        (pair.path(1).cwnd, pair.path(0).chunks_resent as usize)
    };
    let (before, moved) = cwnd(ReinjectionCut::None);
    assert_eq!(before, 20 * M);
    assert_eq!(cwnd(ReinjectionCut::Bytes), (before - moved * (M + DATA_HEADER_LEN), moved));
    assert_eq!(cwnd(ReinjectionCut::Loss), (before / 2, moved), "cut once, however many are moved");
}

#[test]
fn a_full_receive_buffer_is_seen_although_everything_is_promised() {
    let config = watching(ChunkRescheduling::Receiver).with(|c| {
        c.nr_sack = NrSack::Everything;
        c.receive_buffer = Size(22 * M);
    });
    let mut pair = filled(&config);
    assert!(pair.path(0).chunks_resent >= 1, "{}", pair.log.join("\n"));
    pair.run_for(ms(3000));
    assert_eq!(pair.server.numbers_on(0).len(), 20);
}

/// Path 1 suddenly takes `delay`, or loses everything, while the application keeps the buffer full for 10 s: after how
/// long it is doubted.
fn doubted_after(config: &AssociationConfig, delay: Option<Duration>) -> Option<Duration> {
    let mut pair = Pair::established(2, config);
    pair.network = Box::new(move |flight| if flight.path() == 1 { delay } else { Some(ms(10)) });
    let start = pair.now;
    let doubtful = Event::PathChanged { path: PathId(1), state: PathState::PotentiallyFailed };
    let mut number = 0;
    while pair.now - start < ms(10_000) {
        let now = pair.now;
        while pair.client().send(now, SendOptions::on(StreamId(0)), content(0, number, M)).is_ok() {
            number += 1;
        }
        pair.run_for(ms(10));
        if pair.client.events.contains(&doubtful) {
            return Some(pair.now - start);
        }
    }
    None
}

#[test]
fn a_path_that_died_is_found_as_soon_as_without_although_every_chunk_leaves_it_early() {
    let off = doubted_after(&watching(ChunkRescheduling::Off), None).expect("T3 expires");
    let on = doubted_after(&watching(ChunkRescheduling::Sender), None).expect("T3 expires all the same");
    assert!(on <= off, "{on:?}, without {off:?}");
    let mut hidden = watching(ChunkRescheduling::Sender);
    hidden.experiment.reinjection_t3 = false;
    assert_eq!(doubted_after(&hidden, None), None, "nothing of it stays in flight");
}

#[test]
fn a_slow_path_is_not_doubted_when_the_peer_reports_its_chunks_as_duplicates() {
    assert_eq!(doubted_after(&watching(ChunkRescheduling::Sender), Some(ms(300))), None);
}

/// A receive buffer of twelve chunks, more to send than that, and nothing but what MPTCP does.
fn like_mptcp(opportunistic_retransmission: bool, penalisation: bool) -> (Pair, usize) {
    let config = watching(ChunkRescheduling::Off).with(|c| {
        c.nr_sack = NrSack::Everything;
        c.receive_buffer = Size(12 * M);
        c.experiment.reinjection_cut = ReinjectionCut::None;
        c.experiment.opportunistic_retransmission = opportunistic_retransmission;
        c.experiment.penalisation = penalisation;
    });
    let mut pair = filled(&config);
    let resent = pair.path(0).chunks_resent as usize;
    (pair, resent)
}

#[test]
fn a_path_silenced_by_the_peers_window_repeats_what_it_waits_for() {
    let (mut pair, resent) = like_mptcp(true, false);
    assert!(resent >= 1, "{}", pair.log.join("\n"));
    assert_eq!(pair.path(1).cwnd, 20 * M, "nobody is punished");
    assert!(!pair.server.received.is_empty());
    pair.run_for(ms(3000));
    assert_eq!(pair.server.numbers_on(0), (0..20).collect::<Vec<_>>(), "each once and in order");
    assert_eq!(like_mptcp(false, false).1, 0);
}

#[test]
fn the_path_that_fills_the_peers_window_is_penalised() {
    let (mut pair, resent) = like_mptcp(false, true);
    assert_eq!(resent, 0);
    let cwnd = pair.path(1).cwnd;
    assert!(cwnd <= 10 * M, "{cwnd}");
    pair.run_for(ms(3000));
    assert_eq!(pair.server.numbers_on(0).len(), 20);
}
