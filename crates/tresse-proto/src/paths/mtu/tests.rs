//! Path MTU discovery on a path that carries packets up to a given size.

use super::*;

const RTO: Duration = Duration::from_secs(1);
/// Length of the IPv4 and UDP headers.
const HEADERS: usize = 28;

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

/// Sends probes until none is due before `end`. The path answers those of at most `carries` bytes. Returns the sizes tried.
fn probe(mtu: &mut PathMtu, carries: usize, end: Instant) -> Vec<usize> {
    let mut tried = Vec::new();
    let mut nonce = 0;
    let mut now = Instant::ZERO;
    while let Some(due) = mtu.due().filter(|&due| due < end) {
        now = now.max(due);
        if mtu.on_due(now, true) {
            nonce += 1;
            tried.push(mtu.tried());
            mtu.on_probe_sent(now, nonce, RTO);
            if mtu.tried() <= carries {
                assert!(mtu.accept(now, nonce, now));
            }
        }
    }
    tried
}

fn discovered(ceiling: usize) -> PathMtu {
    let mut mtu = PathMtu::discovered(ceiling, HEADERS, false);
    mtu.want();
    mtu.start();
    mtu
}

/// Sends `count` full packets that time out; returns whether the size fell at each timeout.
fn time_out(mtu: &mut PathMtu, count: usize) -> Vec<bool> {
    let falls = |_| {
        mtu.on_data_sent(mtu.size());
        mtu.on_timeout(true)
    };
    (0..count).map(falls).collect()
}

#[test]
fn one_probe_finds_the_ceiling_where_the_path_carries_it() {
    let mut mtu = discovered(1500);
    assert_eq!(mtu.size(), 1228);
    assert_eq!(probe(&mut mtu, 1500, at(100)), [1500]);
    assert_eq!((mtu.size(), mtu.due()), (1500, None));
}

#[test]
fn a_size_is_too_large_after_three_probes() {
    let mut mtu = discovered(1500);
    let tried = probe(&mut mtu, 1400, at(300));
    assert_eq!(tried[..7], [1500, 1500, 1500, 1492, 1492, 1492, 1472]);
    assert_eq!(tried[12..], [1400, 1420, 1420, 1420], "then the middle, as long as it is worth it");
    assert_eq!(mtu.size(), 1400);
}

#[test]
fn every_path_is_found_nearly_exactly() {
    for ceiling in [1300, 1500, 9000] {
        for carries in (1228..=ceiling).step_by(7) {
            let mut mtu = discovered(ceiling);
            let tried = probe(&mut mtu, carries, at(300));
            assert!(mtu.size() <= carries && mtu.size() + 32 > carries, "{} of {carries}", mtu.size());
            assert!(tried.len() <= 3 * 16, "{} probes", tried.len());
        }
    }
}

#[test]
fn the_search_begins_again_after_ten_minutes() {
    let mut mtu = discovered(1500);
    probe(&mut mtu, 1400, at(300));
    let due = mtu.due().expect("1400 is not the ceiling");
    assert!(due > at(600) && due < at(660), "{due:?}");
    assert_eq!(probe(&mut mtu, 1500, at(700)), [1500]);
    assert_eq!(mtu.size(), 1500);
}

#[test]
fn nothing_is_probed_before_a_full_packet_was_sent() {
    let mut mtu = PathMtu::discovered(1500, HEADERS, false);
    assert_eq!(mtu.due(), None);
    assert!(!mtu.on_data_sent(1000));
    assert!(mtu.on_data_sent(1228));
    mtu.want();
    assert_eq!((mtu.awaits_proof(), mtu.due()), (true, None), "nothing was acknowledged yet");
    mtu.start();
    assert_eq!(mtu.due(), Some(Instant::ZERO));
    assert!(!mtu.on_data_sent(1228), "it has begun");
}

#[test]
fn only_the_last_probe_has_an_answer_and_only_once() {
    let mut mtu = discovered(1500);
    assert!(mtu.on_due(at(0), true));
    mtu.on_probe_sent(at(1), 7, RTO);
    assert!(!mtu.accept(at(2), 8, at(1)));
    assert!(!mtu.accept(at(2), 7, at(0)), "a round trip that nothing took");
    assert!(mtu.accept(at(2), 7, at(1)));
    assert!(!mtu.accept(at(2), 7, at(1)));
}

#[test]
fn a_path_that_answers_nothing_says_nothing_about_sizes() {
    let mut mtu = discovered(1500);
    assert!(mtu.on_due(at(0), true));
    for turn in 1..10 {
        mtu.on_probe_sent(at(turn), turn, RTO);
        assert!(!mtu.on_due(at(turn + 1), false));
    }
    assert_eq!(probe(&mut mtu, 1500, at(100)), [1500]);
}

#[test]
fn full_packets_that_time_out_twice_fell_into_a_black_hole() {
    let mut mtu = discovered(1500);
    probe(&mut mtu, 1500, at(10));
    assert_eq!(time_out(&mut mtu, 2), [false, true]);
    assert_eq!(mtu.size(), 1228);
    assert_eq!(probe(&mut mtu, 1300, at(300)).first(), Some(&1500), "and the search begins anew");
    assert!((1280..=1300).contains(&mtu.size()));
}

#[test]
fn the_base_size_is_given_up_when_probes_of_it_fail_too() {
    let mut mtu = discovered(1500);
    probe(&mut mtu, 1500, at(10));
    assert_eq!(time_out(&mut mtu, 4), [false, true, false, false]);
    assert_eq!(mtu.size(), 1228, "perhaps the path leads nowhere");
    assert_eq!(probe(&mut mtu, 1500, at(20))[..2], [1228, 1500]);

    assert_eq!(time_out(&mut mtu, 4), [false, true, false, false]);
    let tried = probe(&mut mtu, 1000, at(300));
    assert_eq!(tried[..4], [1228, 1228, 1228, 1500]);
    assert!((968..=1000).contains(&mtu.size()), "{}", mtu.size());
}

/// A peer that drops unknown chunks answers no probe, however small.
#[test]
fn a_full_packet_that_arrives_ends_the_doubt_though_no_probe_is_answered() {
    let mut mtu = discovered(1500);
    probe(&mut mtu, 0, at(100));
    assert_eq!((time_out(&mut mtu, 2), mtu.size()), (vec![false, false], 1228));
    assert!(mtu.on_due(at(100), true));
    mtu.on_probe_sent(at(100), 1, RTO);
    assert!(!mtu.on_acked(at(100), 600, false), "others pass any hole");
    assert!(mtu.on_acked(at(100), 1228, false));
    probe(&mut mtu, 0, at(300));
    assert_eq!(mtu.size(), 1228);
}

#[test]
fn without_probes_full_packets_of_the_base_size_that_vanish_become_small() {
    let mut mtu = discovered(1500);
    probe(&mut mtu, 1500, at(10));
    assert_eq!(time_out(&mut mtu, 2), [false, true]);
    let mut fall = || {
        mtu.on_data_sent(mtu.size());
        mtu.on_timeout(false)
    };
    assert_eq!([fall(), fall(), fall(), fall()], [false, true, false, false]);
    assert_eq!(mtu.size(), 576);
}

#[test]
fn a_full_packet_acknowledged_between_two_timeouts_separates_them() {
    let mut mtu = discovered(1500);
    probe(&mut mtu, 1500, at(10));
    for _ in 0..5 {
        assert_eq!(time_out(&mut mtu, 1), [false]);
        mtu.on_acked(at(0), 1500, false);
    }
    assert_eq!(time_out(&mut mtu, 1), [false]);
    mtu.on_acked(at(0), 600, false);
    assert_eq!(time_out(&mut mtu, 1), [true], "small ones pass any hole");
}

/// Full packets are retransmitted on another path, and short ones go in between.
#[test]
fn short_packets_with_nothing_behind_them_do_not_separate_timeouts() {
    let mut mtu = discovered(1500);
    probe(&mut mtu, 1500, at(10));
    assert_eq!(time_out(&mut mtu, 1), [false]);
    mtu.on_data_sent(600);
    mtu.on_acked(at(11), 600, true);
    assert_eq!(time_out(&mut mtu, 1), [true]);
    probe(&mut mtu, 1500, at(20));
    assert_eq!(time_out(&mut mtu, 1), [false]);
    mtu.on_data_sent(1500);
    mtu.on_acked(at(20), 600, true);
    assert_eq!(time_out(&mut mtu, 1), [false], "a full packet was among what has arrived");
}

#[test]
fn timeouts_of_small_packets_say_nothing() {
    let mut mtu = discovered(1500);
    probe(&mut mtu, 1500, at(10));
    for _ in 0..10 {
        mtu.on_data_sent(400);
        assert!(!mtu.on_timeout(true));
    }
    assert_eq!(mtu.size(), 1500);
}

#[test]
fn a_router_may_name_the_size() {
    let mut mtu = discovered(1500);
    assert!(mtu.on_due(at(0), true));
    mtu.on_probe_sent(at(0), 1, RTO);
    assert!(!mtu.on_too_big(at(0), 1600), "larger than the probe");
    assert!(!mtu.on_too_big(at(0), 300), "smaller than any path");
    assert!(!mtu.on_too_big(at(0), 1410), "between what is used and what was tried");
    assert_eq!(probe(&mut mtu, 1410, at(300))[0], 1400);
    assert!((1400..=1410).contains(&mtu.size()));
    assert!(mtu.on_too_big(at(300), 1300));
    assert_eq!(mtu.size(), 1228, "what is named has to be shown");
    probe(&mut mtu, 1300, at(600));
    assert!((1280..=1300).contains(&mtu.size()));
    assert!(mtu.on_too_big(at(600), 1000));
    assert_eq!(mtu.size(), 1000);
}

#[test]
fn a_given_size_is_never_questioned() {
    let mut mtu = PathMtu::given(1500);
    mtu.want();
    mtu.start();
    assert!(!mtu.on_data_sent(1500));
    assert_eq!(time_out(&mut mtu, 5), [false; 5]);
    assert!(!mtu.on_too_big(at(0), 1000));
    assert_eq!((mtu.size(), mtu.due()), (1500, None));
}

#[test]
fn a_low_ceiling_leaves_nothing_to_search_for() {
    let mtu = PathMtu::discovered(1000, HEADERS, false);
    assert_eq!((mtu.size(), mtu.due()), (1000, None));
    assert_eq!(PathMtu::discovered(1500, 48, true).size(), 1280, "what every IPv6 link carries");
}
