//! Effects of a SACK or NR-SACK on data in flight, released and reneged.

use super::*;

#[test]
fn the_cumulative_tsn_takes_out_everything_up_to_it() {
    let mut bench = Bench::new(2, &cmt());
    bench.send_over(&[0, 1, 0, 1, 0]);
    assert_eq!((bench.flight(0), bench.flight(1), bench.sent.outstanding.flight()), (3000, 2000, 5000));
    bench.sack(0, 3, &[]);
    assert!(bench.report.advanced);
    assert_eq!(bench.report.released, 3 * DATA);
    assert_eq!((bench.flight(0), bench.flight(1)), (1000, 1000));
    assert_eq!((bench.queued(0), bench.queued(1)), (1000, 1000));
    let ack = bench.ack(0).expect("path 0 was acknowledged");
    assert_eq!((ack.acked, ack.flight_before, ack.flight_after), (2000, 3000, 1000));
    let ack = bench.ack(1).expect("path 1 was acknowledged");
    assert_eq!((ack.acked, ack.flight_before, ack.flight_after), (1000, 2000, 1000));
    assert_eq!(bench.sent.outstanding.cumulative_tsn(), Tsn(3));
    bench.sack(0, 5, &[]);
    assert!(bench.sent.outstanding.is_empty());
    assert_eq!((bench.sent.outstanding.flight(), bench.queued(0), bench.queued(1)), (0, 0, 0));
}

#[test]
fn gap_blocks_end_flight_but_do_not_release() {
    let mut bench = Bench::new(1, &plain());
    bench.send_over(&[0; 6]);
    bench.sack(0, 1, &[(2, 3), (5, 5)]);
    assert_eq!((bench.report.released, bench.report.advanced), (DATA, true));
    assert_eq!(bench.flight(0), 2000, "2 and 5");
    assert_eq!(bench.queued(0), 5000, "all but 1");
    assert_eq!(bench.ack(0).map(|ack| ack.acked), Some(4000));
    // The same again acknowledges nothing new.
    bench.sack(0, 1, &[(2, 3), (5, 5)]);
    assert!(bench.ack(0).is_none() && !bench.report.advanced);
    assert_eq!((bench.report.released, bench.flight(0)), (0, 2000));
    // What a gap block acknowledged is released by the cumulative TSN, and not acknowledged twice.
    bench.sack(0, 6, &[]);
    assert_eq!(bench.report.released, 5 * DATA);
    assert_eq!(bench.ack(0).map(|ack| ack.acked), Some(2000));
}

#[test]
fn non_renegable_blocks_release_at_once_and_only_once() {
    let mut bench = Bench::new(2, &cmt());
    bench.send_over(&[0, 1, 0, 1]);
    bench.nr_sack(0, 0, &[(2, 2)], &[(3, 4)]);
    assert_eq!(bench.report.released, 2 * DATA);
    assert_eq!((bench.queued(0), bench.queued(1)), (1000, 1000), "1, and 2 which may be taken back");
    assert_eq!((bench.flight(0), bench.flight(1)), (1000, 0));
    bench.nr_sack(0, 0, &[], &[(2, 4)]);
    assert_eq!(bench.report.released, DATA, "2 is promised now");
    bench.nr_sack(0, 4, &[], &[]);
    assert_eq!(bench.report.released, DATA, "1 alone");
    assert_eq!((bench.queued(0), bench.queued(1)), (0, 0));
}

#[test]
fn what_the_peer_reneges_on_is_counted() {
    let mut bench = Bench::new(1, &plain());
    bench.send_over(&[0; 3]);
    let acked = |bench: &Bench| bench.progress(0).map_or(0, |progress| progress.user_data);
    let reneged = |bench: &Bench| bench.sent.outstanding.loads[0].repairs.bytes_reneged;
    bench.sack(0, 0, &[(2, 3)]);
    assert_eq!((acked(&bench), reneged(&bench)), (2 * DATA, 0));
    bench.sack(0, 0, &[(3, 3)]);
    assert_eq!((acked(&bench), reneged(&bench)), (0, DATA as u64));
    bench.sack(0, 3, &[]);
    assert_eq!((acked(&bench), reneged(&bench)), (2 * DATA, DATA as u64), "1, and 2 again");
}

#[test]
fn a_chunk_in_both_kinds_of_blocks_counts_once() {
    let mut bench = Bench::new(1, &cmt());
    bench.send_over(&[0; 5]);
    bench.nr_sack(0, 0, &[(2, 4)], &[(3, 5)]);
    assert_eq!(bench.ack(0).map(|ack| ack.acked), Some(4000));
    assert_eq!((bench.report.released, bench.flight(0), bench.queued(0)), (3 * DATA, 1000, 2000));
}

#[test]
fn blocks_in_any_order_and_overlapping_are_one_set() {
    let mut bench = Bench::new(1, &plain());
    bench.send_over(&[0; 9]);
    bench.sack(0, 0, &[(8, 9), (2, 4), (3, 5), (6, 6)]);
    assert_eq!(bench.flight(0), 2000, "1 and 7");
    assert_eq!(bench.ack(0).map(|ack| ack.acked), Some(7000));
}

#[test]
fn a_stale_sack_changes_nothing() {
    let mut bench = Bench::new(1, &plain());
    bench.send_over(&[0; 4]);
    bench.sack(0, 2, &[]);
    let stale = bench.hear_window(0, 1, &[(3, 3)], &[], 1, 5);
    assert_eq!(stale, Err(SackFault::Stale));
    assert_eq!((bench.flight(0), bench.sent.outstanding.cumulative_tsn()), (2000, Tsn(2)));
    assert_eq!(bench.sent.peer_window(), 1_000_000 - 2000, "its window is not believed either");
    assert_eq!(bench.hear(0, 2_u32.wrapping_sub(0x7fff_ffff), &[], &[], 1), Err(SackFault::Stale));
    assert_eq!(bench.hear(0, 2 ^ 0x8000_0000, &[], &[], 1), Err(SackFault::Stale), "half way round");
}

#[test]
fn what_was_never_sent_cannot_be_acknowledged() {
    let mut bench = Bench::new(1, &plain());
    bench.send_over(&[0; 4]);
    assert_eq!(bench.hear_window(0, 5, &[(1, 1)], &[], 1, 7), Err(SackFault::Unsent));
    assert_eq!((bench.flight(0), bench.sent.outstanding.cumulative_tsn()), (4000, Tsn(0)));
    assert_eq!(bench.sent.peer_window(), 1_000_000 - 4000);
    // Of the blocks that counts which can be true, and so does the rest.
    let unsound: [(&[Block], &[Block], usize); 7] = [
        (&[(2, 3)], &[], 1000),
        (&[], &[(2, 3)], 1000),
        (&[(2, 2), (9, 9)], &[], 1000),
        (&[(0, 1)], &[], 1000),
        (&[(4, 3)], &[], 2000),
        (&[(65_535, 65_535)], &[], 2000),
        (&[(9, 0), (2, 1), (2, 65_535)], &[(0, 0)], 1000),
    ];
    for (renegable, non_renegable, flight) in unsound {
        let mut bench = Bench::new(1, &plain());
        bench.send_over(&[0; 4]);
        bench.hear_window(0, 2, renegable, non_renegable, 1, 7).expect("a cumulative TSN that was sent");
        assert!(bench.report.unsound, "{renegable:?} {non_renegable:?}");
        assert_eq!((bench.flight(0), bench.sent.outstanding.cumulative_tsn()), (flight, Tsn(2)));
    }
    let mut bench = Bench::new(1, &plain());
    bench.send_over(&[0; 4]);
    bench.sack(0, 2, &[(2, 2)]);
    assert!(!bench.report.unsound);
}

#[test]
fn tsns_wrap_around() {
    let mut bench = Bench::starting_at(Tsn(u32::MAX - 2), 2, &cmt());
    let tsns: Vec<u32> = [0, 1, 0, 1, 0, 1].map(|path| bench.send(path, LEN)).into();
    assert_eq!(tsns, [u32::MAX - 2, u32::MAX - 1, u32::MAX, 0, 1, 2]);
    assert_eq!(bench.sent.outstanding.cumulative_tsn(), Tsn(u32::MAX - 3));
    // Blocks count from the cumulative TSN, across zero.
    bench.sack(0, u32::MAX - 2, &[(2, 3)]);
    assert_eq!((bench.flight(0), bench.flight(1)), (1000, 2000));
    assert_eq!(bench.hear(0, 3, &[], &[], 1), Err(SackFault::Unsent));
    assert_eq!(bench.hear(0, u32::MAX - 3, &[], &[], 1), Err(SackFault::Stale));
    bench.sack(0, 0, &[]);
    assert_eq!(bench.sent.outstanding.cumulative_tsn(), Tsn(0));
    bench.sack(0, 2, &[]);
    assert!(bench.sent.outstanding.is_empty());
    assert_eq!(bench.hear(0, u32::MAX, &[], &[], 1), Err(SackFault::Stale));
}

#[test]
fn reneged_chunks_fly_again() {
    let mut bench = Bench::new(1, &plain());
    bench.send_over(&[0; 5]);
    bench.sack(0, 1, &[(2, 4)]);
    assert_eq!(bench.flight(0), 1000);
    // The peer ran out of memory and dropped 4, which lies below the highest it still reports.
    bench.sack(0, 1, &[(2, 2), (4, 4)]);
    assert_eq!(bench.flight(0), 2000);
    assert_eq!(bench.report.reneged, [PathId(0)]);
    assert_eq!(bench.misses(4), 1, "RFC 9260 §7.2.4: one missing report");
    bench.time_out(0, 0);
    assert_eq!(bench.lost(0), [2, 4]);
}

#[test]
fn a_sack_without_blocks_takes_everything_back() {
    let mut bench = Bench::new(1, &plain());
    bench.send_over(&[0; 4]);
    bench.sack(0, 1, &[(2, 3)]);
    bench.sack(0, 1, &[]);
    assert_eq!(bench.flight(0), 3000);
    bench.sack(0, 4, &[]);
    assert_eq!((bench.report.released, bench.flight(0)), (3 * DATA, 0));
}

#[test]
fn reneging_is_not_believed_of_another_path_nor_beyond_the_last_block() {
    let mut bench = Bench::new(2, &cmt());
    bench.send_over(&[0; 8]);
    bench.sack(0, 1, &[(2, 3), (6, 6)]);
    assert_eq!(bench.flight(0), 4000);
    // SACKs of two paths overtake each other: this one is merely older.
    bench.sack(1, 1, &[(2, 2)]);
    assert_eq!((bench.flight(0), bench.report.reneged.len()), (4000, 0));
    // A list that was cut to its packet says nothing about what follows its last block.
    bench.sack(0, 1, &[(2, 3)]);
    assert_eq!((bench.flight(0), bench.report.reneged.len()), (4000, 0));
}

#[test]
fn what_was_promised_cannot_be_reneged() {
    let mut bench = Bench::new(1, &cmt());
    bench.send_over(&[0; 4]);
    bench.nr_sack(0, 0, &[], &[(2, 3)]);
    bench.sack(0, 0, &[(4, 4)]);
    assert_eq!((bench.flight(0), bench.report.reneged.len()), (1000, 0));
    assert_eq!(bench.time_out(0, 0), 1, "only 1 is sent again");
    assert_eq!(bench.lost(0), [1]);
}

#[test]
fn a_report_that_leaves_promised_chunks_out_takes_only_others_back() {
    let mut bench = Bench::new(1, &cmt());
    bench.send_over(&[0; 9]);
    bench.nr_sack(0, 0, &[(3, 3)], &[(2, 2), (4, 6)]);
    assert_eq!((bench.flight(0), bench.report.released), (4000, 4 * DATA));
    // 3, which was not promised, is dropped; 2 and 5 are not, though nothing speaks of them.
    bench.nr_sack(0, 0, &[], &[(4, 4), (6, 8)]);
    assert_eq!(bench.report.reneged, [PathId(0)]);
    assert_eq!(bench.flight(0), 3000, "1, 9, and 3 again");
    assert_eq!((bench.report.released, bench.queued(0)), (2 * DATA, 3000));
}

#[test]
fn a_lost_chunk_that_arrived_after_all_is_not_sent_again() {
    let mut bench = Bench::new(1, &plain());
    bench.send_over(&[0; 3]);
    bench.time_out(0, 0);
    assert_eq!((bench.lost(0), bench.flight(0), bench.queued(0)), (vec![1, 2, 3], 0, 3000));
    bench.sack(0, 1, &[(2, 2)]);
    assert_eq!(bench.lost(0), [2]);
    assert_eq!(bench.ack(0).map(|ack| (ack.acked, ack.flight_before, ack.flight_after)), Some((2000, 0, 0)));
}

#[test]
fn shutdown_acknowledges_without_taking_back() {
    let mut bench = Bench::new(1, &plain());
    bench.send_over(&[0; 4]);
    bench.sack(0, 1, &[(2, 2)]);
    let mut report = AckReport::default();
    bench.sent.on_shutdown(bench.now, Tsn(2), PathId(0), &mut report).expect("sound");
    bench.check();
    assert_eq!((report.advanced, report.released, bench.flight(0)), (true, DATA, 1000));
    let stale = bench.sent.on_shutdown(bench.now, Tsn(1), PathId(0), &mut report);
    assert_eq!(stale, Err(SackFault::Stale));
    let impossible = bench.sent.on_shutdown(bench.now, Tsn(5), PathId(0), &mut report);
    assert_eq!(impossible, Err(SackFault::Unsent));
}

#[test]
fn the_peers_window_is_its_last_word_less_what_flies() {
    let mut bench = Bench::new(2, &cmt());
    bench.send_over(&[0, 1, 0]);
    assert_eq!(bench.sent.peer_window(), 997_000);
    bench.hear_window(0, 1, &[(2, 2)], &[], 1, 5000).expect("sound");
    assert_eq!(bench.sent.peer_window(), 4000, "2 flies, 3 is in the peer's buffer");
    bench.hear_window(0, 1, &[(2, 2)], &[], 1, 500).expect("sound");
    assert_eq!(bench.sent.peer_window(), 0);
    bench.time_out(1, 1);
    assert_eq!(bench.sent.peer_window(), 500, "what is lost no longer fills the window");
}
