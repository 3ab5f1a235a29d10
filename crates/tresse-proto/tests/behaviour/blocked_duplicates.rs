//! Copies while a buffer keeps new data back (`blocked_duplicates`): they mend losses, cost the path that lost what a loss
//! costs, and are not sent where nothing is lost.

use std::time::Duration;

use tresse_proto::AssociationConfig;
use tresse_proto::config::{BlockedDuplicates, LossDetection, Size};

use crate::common::{Dice, Pair};

const M: usize = 1452;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The peer can hold twelve chunks. Bursts of four leave a part of them to each path, so that both go on being measured.
fn config(blocked_duplicates: BlockedDuplicates) -> AssociationConfig {
    AssociationConfig::default().with(|c| {
        c.blocked_duplicates = blocked_duplicates;
        c.max_burst = 4;
        c.mtu_discovery = false;
        c.receive_buffer = Size(12 * M);
    })
}

/// Both paths take 40 ms each way; path 1 loses one packet with data in twenty-five.
fn losing(pair: &mut Pair) {
    let mut dice = Dice::new(3);
    pair.network = Box::new(move |flight| {
        let lost = flight.to_server && flight.has_data() && flight.path() == 1 && dice.hits(0.04);
        (!lost).then_some(ms(40))
    });
}

fn clean(pair: &mut Pair) {
    pair.network = Box::new(|_| Some(ms(40)));
}

fn copies(pair: &mut Pair) -> u64 {
    pair.path(0).copies_sent + pair.path(1).copies_sent
}

fn established(blocked_duplicates: BlockedDuplicates) -> Pair {
    let mut pair = Pair::established(2, &config(blocked_duplicates));
    clean(&mut pair);
    pair
}

#[test]
fn where_nothing_is_lost_nothing_is_copied() {
    let mut pair = established(BlockedDuplicates::LossyPaths);
    pair.saturate(1, 0, M, ms(10_000));
    assert_eq!(copies(&mut pair), 0);
}

#[test]
fn what_a_losing_path_carries_is_copied_and_all_arrives_once_and_sooner() {
    let carried = |blocked_duplicates| {
        let mut pair = established(blocked_duplicates);
        losing(&mut pair);
        pair.saturate(1, 0, M, ms(30_000));
        let numbers = pair.server.numbers_on(0);
        assert!(numbers.iter().copied().eq(0..numbers.len() as u32), "each once and in order");
        (numbers.len(), copies(&mut pair))
    };
    let ((with, copies), (without, none)) =
        (carried(BlockedDuplicates::LossyPaths), carried(BlockedDuplicates::Off));
    assert_eq!(none, 0);
    assert!(copies > 100 && with > without, "{with} with {copies} copies, {without} without");
}

#[test]
fn a_path_pays_for_losses_that_copies_have_mended() {
    let mut pair = established(BlockedDuplicates::LossyPaths);
    let untouched = pair.path(1).ssthresh;
    losing(&mut pair);
    pair.saturate(1, 0, M, ms(30_000));
    let bad = pair.path(1);
    assert!(bad.ssthresh < untouched, "{} of {untouched}", bad.ssthresh);
    assert!(copies(&mut pair) > 0);
}

#[test]
fn a_path_that_has_become_clean_is_copied_for_no_more() {
    let mut pair = established(BlockedDuplicates::LossyPaths);
    losing(&mut pair);
    let number = pair.saturate(1, 0, M, ms(20_000));
    assert!(copies(&mut pair) > 0);
    clean(&mut pair);
    let number = pair.saturate(1, number, M, ms(60_000));
    let before = copies(&mut pair);
    pair.saturate(1, number, M, ms(20_000));
    assert_eq!(copies(&mut pair), before);
}

/// Both paths take 20 ms each way. Path 0 carries a packet in so many; path 1 loses one packet in twenty-five.
fn beside_a_path_with(pace: Duration) -> impl Fn(&mut Pair) {
    move |pair| {
        let (mut dice, mut free) = (Dice::new(3), pair.now);
        pair.network = Box::new(move |flight| {
            let data = flight.to_server && flight.has_data();
            match flight.path() {
                0 if data => {
                    free = free.max(flight.sent) + pace;
                    Some(free - flight.sent + ms(20))
                }
                0 => Some(ms(20)),
                _ => (!(data && dice.hits(0.04))).then_some(ms(20)),
            }
        });
    }
}

#[test]
fn a_narrow_path_carries_no_copies_whatever_it_claims() {
    let carried = |pace| {
        let by_reports = config(BlockedDuplicates::LossyPaths).with(|c| {
            c.loss_detection = LossDetection::Rfc9260;
            c.rto_min = ms(1000);
        });
        let mut pair = Pair::established(2, &by_reports);
        clean(&mut pair);
        beside_a_path_with(pace)(&mut pair);
        let number = pair.saturate(1, 0, M, ms(10_000));
        let before = pair.path(0).copies_sent;
        pair.saturate(1, number, M, ms(20_000));
        pair.path(0).copies_sent - before
    };
    // Five packets in a round trip, where twelve fit the buffer; and two hundred.
    let (narrow, wide) = (carried(ms(10)), carried(Duration::from_micros(200)));
    assert!(narrow == 0 && wide > 500, "{narrow} on the narrow one, {wide} on the wide one");
}

/// Path 1 loses a fifth of its packets for 20 s. Once it is back both carry all that the buffer has room for, and how they
/// share it stays as it was when that came about: here 3 to 1 or 2 to 1.
#[test]
fn a_path_that_rests_while_its_copies_are_lost_returns_when_they_are_no_more() {
    for seed in 7..10 {
        let mut pair = established(BlockedDuplicates::LossyPaths);
        let (end, mut dice) = (pair.now + ms(20_000), Dice::new(seed));
        pair.network = Box::new(move |flight| {
            let lossy = flight.path() == 1 && flight.sent < end;
            (!(lossy && dice.hits(0.2))).then_some(ms(45))
        });
        let mut number = pair.saturate(1, 0, M, ms(10_000));
        let mut carried = |pair: &mut Pair, duration| {
            let before = [0, 1].map(|position| pair.path(position).chunks_sent);
            number = pair.saturate(1, number, M, duration);
            [0, 1].map(|position| pair.path(position).chunks_sent - before[position])
        };
        let bad = carried(&mut pair, ms(10_000));
        carried(&mut pair, ms(20_000));
        let good = carried(&mut pair, ms(10_000));
        assert!(bad[1] * 10 < bad[0] && good[1] * 4 > good[0], "{bad:?} {good:?}");
    }
}
