//! Cuts that were for nothing: what counted as lost arrives late, by its first sending.

use super::*;

/// A sender on two paths that goes by time. Path 0 has a round trip of 40 ms, by what its first chunk took.
fn bench() -> Bench {
    let config = AssociationConfig { loss_detection: LossDetection::Rack, ..AssociationConfig::default() };
    let mut bench = Bench::new(2, &config);
    bench.send_over(&[0]);
    bench.wait(40);
    bench.sack(0, 1, &[]);
    bench
}

/// The same after three packets have overtaken the chunk 2, for which the window was cut.
fn overtaken() -> Bench {
    let mut bench = bench();
    bench.send_over(&[0; 4]);
    bench.wait(40);
    bench.sack(0, 1, &[(2, 4)]);
    assert_eq!(bench.lost(0), [2]);
    bench.sent.outstanding.watch_cut(PathId(0));
    bench
}

/// The same after T3 of path 0 has expired for the chunks 2 to 7; what it declares lost goes again on `target`.
fn timed_out(target: u8) -> Bench {
    let mut bench = bench();
    bench.send_over(&[0; 6]);
    bench.wait(1000);
    watch_timeout(&mut bench.sent, bench.now, PathId(0));
    assert_eq!(bench.time_out(0, target), 6);
    bench
}

fn duplicates(bench: &mut Bench, cumulative: u32, duplicates: &[u32]) {
    let duplicates: Vec<Tsn> = duplicates.iter().copied().map(Tsn).collect();
    let view = SackView {
        cumulative_tsn: Tsn(cumulative),
        a_rwnd: 1_000_000,
        renegable: List::Values(&[]),
        non_renegable: List::Values(&[]),
        duplicates: List::Values(&duplicates),
        dac_count: 1,
    };
    bench.sent.on_sack(bench.now, view, PathId(0), true, &mut bench.report).expect("a sound SACK");
    bench.check();
}

fn undone(bench: &Bench) -> Vec<u8> {
    bench.report.spurious.iter().map(|(path, _)| path.0).collect()
}

#[test]
fn what_arrives_before_it_goes_again_was_late() {
    let mut bench = overtaken();
    bench.wait(5);
    bench.sack(0, 5, &[]);
    assert_eq!(undone(&bench), [0]);
    let sent_at = bench.report.spurious[0].1;
    assert_eq!(sent_at.map(|at| bench.now.since(at)), Some(Duration::from_millis(45)));
}

#[test]
fn an_answer_that_comes_too_soon_is_for_the_first_sending() {
    for (after, expected) in [(19, &[0][..]), (20, &[])] {
        let mut bench = overtaken();
        assert_eq!(bench.resend(0), Some(2));
        bench.wait(after);
        bench.sack(0, 5, &[]);
        assert_eq!(undone(&bench), expected, "{after} ms");
    }
}

#[test]
fn what_the_peer_has_twice_was_late() {
    let mut bench = overtaken();
    assert_eq!(bench.resend(0), Some(2));
    bench.wait(40);
    bench.sack(0, 5, &[]);
    assert_eq!(undone(&bench), [] as [u8; 0]);
    bench.wait(1);
    duplicates(&mut bench, 5, &[2]);
    assert_eq!(undone(&bench), [0]);
}

#[test]
fn a_network_that_doubles_packets_proves_nothing_by_it() {
    let mut bench = overtaken();
    assert_eq!(bench.resend(0), Some(2));
    bench.send_over(&[0]);
    duplicates(&mut bench, 1, &[6]);
    bench.wait(40);
    bench.sack(0, 5, &[]);
    duplicates(&mut bench, 5, &[2]);
    assert_eq!(undone(&bench), [] as [u8; 0]);
}

#[test]
fn a_hasty_t3_is_known_by_a_second_answer_and_what_has_not_gone_again_is_under_way() {
    for target in [0, 1] {
        let mut bench = timed_out(target);
        assert_eq!(bench.resend(target), Some(2));
        bench.wait(5);
        bench.sack(0, 3, &[]);
        assert_eq!(undone(&bench), [] as [u8; 0], "it may repeat what a lost report said");
        bench.wait(1);
        bench.sack(0, 4, &[]);
        assert_eq!((undone(&bench), bench.lost(target)), (vec![0], vec![]), "target {target}");
        assert_eq!((bench.flight(0), bench.flight(1)), (3 * LEN, 0));
        bench.sack(0, 7, &[]);
        assert_eq!((bench.flight(0), bench.queued(0), bench.queued(1)), (0, 0, 0));
    }
}

#[test]
fn no_answer_revives_a_path_that_was_emptied() {
    let mut bench = timed_out(1);
    empty_path(&mut bench.sent, PathId(0), PathId(1));
    assert_eq!(bench.resend(1), Some(2));
    for cumulative in [3, 4] {
        bench.wait(1);
        bench.sack(0, cumulative, &[]);
        assert_eq!((undone(&bench), bench.flight(0)), (vec![], 0));
    }
}

#[test]
fn t3_was_right_where_only_what_went_again_is_answered() {
    let mut bench = timed_out(0);
    for tsn in 2..=7 {
        assert_eq!(bench.resend(0), Some(tsn));
        bench.wait(40);
        bench.sack(0, tsn, &[]);
        assert_eq!(undone(&bench), [] as [u8; 0]);
    }
}
