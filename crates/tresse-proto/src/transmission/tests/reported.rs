//! Chunks that the peer reports as damaged: which reports are believed, and what becomes of the chunk.

use super::*;

/// The beginning of what `Bench::send` sends.
const SHOWN: [u8; 40] = [0; 40];

#[test]
fn a_reported_chunk_goes_again_and_is_no_fast_retransmission() {
    let mut bench = Bench::new(2, &cmt());
    bench.send_over(&[0, 1, 0]);
    let dropped = bench.sent.outstanding.reported(Tsn(1), &SHOWN).expect("in flight");
    assert_eq!(dropped.path, PathId(0));
    bench.sent.on_reported(dropped, PathId(0));
    bench.check();
    assert_eq!((bench.lost(0), bench.flight(0), bench.flight(1)), (vec![1], LEN, LEN));
    assert_eq!((bench.load(0).repairs.drop_reports, bench.load(0).repairs.fast_retransmits), (1, 0));
    assert_eq!(bench.resend(0), Some(1));
    // Its next loss can be reported just as well.
    assert!(bench.sent.outstanding.reported(Tsn(1), &SHOWN).is_some());
    bench.sack(0, 3, &[]);
    assert!(bench.ack(0).is_some_and(|ack| !ack.lost));
    assert!(
        bench.progress(0).is_some_and(|progress| progress.rtt.is_none()),
        "3 was sent before 1 was again"
    );
}

#[test]
fn another_path_may_carry_it_again() {
    let mut bench = Bench::new(2, &cmt());
    bench.send_over(&[0, 0]);
    let dropped = bench.sent.outstanding.reported(Tsn(1), &SHOWN).expect("in flight");
    bench.sent.on_reported(dropped, PathId(1));
    bench.check();
    assert_eq!((bench.lost(1), bench.flight(0), bench.queued(1)), (vec![1], LEN, LEN));
    assert_eq!(bench.load(0).timed.index(), None);
}

#[test]
fn only_what_is_in_flight_can_be_reported() {
    let mut bench = Bench::new(1, &cmt());
    bench.send_over(&[0, 0, 0, 0]);
    bench.sack(0, 1, &[(2, 2)]);
    bench.time_out(0, 0);
    bench.resend(0);
    let believed = [0, 1, 2, 3, 4, 5, u32::MAX, 1 << 31]
        .map(|tsn| bench.sent.outstanding.reported(Tsn(tsn), &SHOWN).is_some());
    // 1 and 3 are acknowledged, 4 waits to be sent again.
    assert_eq!(believed, [false, false, true, false, false, false, false, false]);
}

#[test]
fn a_report_must_show_what_only_a_receiver_can_know() {
    let mut bench = Bench::new(1, &cmt());
    let (long, short) = (bench.send(0, LEN), bench.send(0, HEADER + 3));
    let believed = |tsn: u32, shown: &[u8]| bench.sent.outstanding.reported(Tsn(tsn), shown).is_some();
    assert!(believed(long, &[0; 32]) && !believed(long, &[0; 31]));
    assert!(believed(short, &[0; 3]) && !believed(short, &[0; 2]));
    // Eight damaged bits are damage, nine are something else.
    let mut damaged = [0; 32];
    (damaged[0], damaged[31]) = (0x7F, 0x01);
    assert!(believed(long, &damaged));
    damaged[15] = 0x80;
    assert!(!believed(long, &damaged));
}

#[test]
fn tsns_wrap() {
    let mut bench = Bench::starting_at(Tsn(u32::MAX), 1, &cmt());
    bench.send_over(&[0, 0, 0]);
    assert!(
        [u32::MAX, 0, 1].into_iter().all(|tsn| bench.sent.outstanding.reported(Tsn(tsn), &SHOWN).is_some())
    );
    assert!(
        [u32::MAX - 1, 2].into_iter().all(|tsn| bench.sent.outstanding.reported(Tsn(tsn), &SHOWN).is_none())
    );
}
