//! Early arrivals: when they fill a buffer, and whose late chunk they wait for.

use super::*;
use crate::config::{ChunkRescheduling, Size};

fn watching(chunk_rescheduling: ChunkRescheduling, buffer_split: BufferSplit) -> AssociationConfig {
    AssociationConfig { chunk_rescheduling, buffer_split, send_buffer: Size(8 * LEN), ..cmt() }
}

/// One chunk on path 1 that everything waits for, and `early` on path 0 behind it.
fn blocked(config: &AssociationConfig, early: u16, window: u32) -> Bench {
    let mut bench = Bench::new(2, config);
    bench.send(1, LEN);
    for _ in 0..early {
        bench.send(0, LEN);
    }
    bench.hear_window(0, 0, &[(2, early + 1)], &[], 1, window).expect("a sound SACK");
    bench
}

fn blocks(bench: &Bench) -> [bool; 2] {
    [0, 1].map(|path| bench.sent.fills_buffer_early(PathId(path), 2))
}

#[test]
fn more_than_half_of_the_send_buffer_or_of_a_paths_part_blocks() {
    let whole = watching(ChunkRescheduling::Sender, BufferSplit::None);
    assert_eq!(blocks(&blocked(&whole, 4, 100_000)), [false, false]);
    assert_eq!(blocks(&blocked(&whole, 5, 100_000)), [true, false]);
    let split = watching(ChunkRescheduling::Sender, BufferSplit::Receiver);
    assert_eq!(blocks(&blocked(&split, 2, 100_000)), [false, false]);
    assert_eq!(blocks(&blocked(&split, 3, 100_000)), [true, false]);
    let off = watching(ChunkRescheduling::Off, BufferSplit::None);
    assert_eq!(blocks(&blocked(&off, 8, 0)), [false, false]);
}

#[test]
fn the_receive_buffer_is_what_the_peer_announces_and_what_it_holds() {
    let config = watching(ChunkRescheduling::Receiver, BufferSplit::None);
    // Five held; one in flight; the peer can take that and as many more as make ten, or nine.
    assert_eq!(blocks(&blocked(&config, 5, 5 * LEN as u32)), [false, false]);
    assert_eq!(blocks(&blocked(&config, 5, 4 * LEN as u32)), [true, false]);
}

#[test]
fn what_is_promised_fills_the_receive_buffer_and_not_the_send_buffer() {
    for (rule, expected) in [(ChunkRescheduling::Sender, false), (ChunkRescheduling::Receiver, true)] {
        let mut bench = Bench::new(2, &watching(rule, BufferSplit::None));
        bench.send_over(&[1, 0, 0, 0, 0, 0]);
        bench.hear_window(0, 0, &[], &[(2, 6)], 1, 2 * LEN as u32).expect("a sound NR-SACK");
        assert_eq!(blocks(&bench), [expected, false], "{rule:?}");
        bench.sack(0, 6, &[]);
        assert_eq!(blocks(&bench), [false, false]);
    }
}

#[test]
fn unordered_messages_wait_for_nothing_at_the_receiver() {
    let mut bench = Bench::new(2, &watching(ChunkRescheduling::Both, BufferSplit::None));
    bench.send(1, LEN);
    for _ in 0..5 {
        bench.send_message(0, LEN, true);
    }
    bench.hear_window(0, 0, &[], &[(2, 6)], 1, 2 * LEN as u32).expect("a sound NR-SACK");
    assert_eq!(blocks(&bench), [false, false], "they were delivered as they came");
}

#[test]
fn the_threshold_is_a_setting() {
    let mut config = watching(ChunkRescheduling::Sender, BufferSplit::None);
    config.experiment.rescheduling_threshold = 100;
    assert_eq!(blocks(&blocked(&config, 8, 100_000)), [false, false]);
    config.experiment.rescheduling_threshold = 99;
    assert_eq!(blocks(&blocked(&config, 8, 100_000)), [true, false]);
}

fn blocking(bench: &Bench) -> Option<(u8, usize)> {
    bench.sent.outstanding.blocking().map(|blocking| (blocking.path.0, blocking.bytes))
}

#[test]
fn early_arrivals_wait_for_the_path_that_the_late_chunk_was_sent_on() {
    let mut bench = Bench::new(2, &AssociationConfig::default());
    bench.send_over(&[1, 0, 0]);
    assert_eq!(blocking(&bench), None, "nothing has arrived early");
    bench.nr_sack(0, 0, &[], &[(2, 3)]);
    assert_eq!(blocking(&bench), Some((1, 2 * LEN)));
    bench.sack(1, 3, &[]);
    assert_eq!(blocking(&bench), None);
    assert_eq!(bench.sent.outstanding.new_data_sent().collect::<Vec<_>>(), [2 * LEN as u64, LEN as u64]);
}

#[test]
fn a_chunk_that_is_retransmitted_elsewhere_is_still_its_first_paths() {
    let mut bench = Bench::new(2, &AssociationConfig::default());
    bench.send_over(&[1, 0]);
    bench.nr_sack(0, 0, &[], &[(2, 2)]);
    bench.sent.move_chunk(1, PathId(0)).expect("it is in flight");
    bench.sent.resend(bench.now, 1).expect("it waits");
    assert_eq!(blocking(&bench), Some((1, LEN)), "it is in flight again");
    assert_eq!(bench.sent.outstanding.new_data_sent().collect::<Vec<_>>(), [LEN as u64, LEN as u64]);
}

#[test]
fn nothing_waits_for_the_path_of_unordered_messages() {
    let mut bench = Bench::new(2, &AssociationConfig::default());
    for path in [1, 0, 0] {
        bench.send_message(path, LEN, true);
    }
    bench.nr_sack(0, 0, &[], &[(2, 3)]);
    assert_eq!(blocking(&bench), None);
}
