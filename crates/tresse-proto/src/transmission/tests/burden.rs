//! What paths make each other wait for.

use super::*;
use crate::config::BufferShares;

fn shared() -> AssociationConfig {
    AssociationConfig { buffer_shares: BufferShares::Paths, ..AssociationConfig::default() }
}

impl Bench {
    fn weigh(&mut self) {
        self.sent.weigh(self.now);
    }

    /// Milliseconds by which a byte of the path holds buffer longer, and how many bytes wait at most.
    fn burden(&self, path: u8) -> (u128, usize) {
        let (longer, most) = self.sent.burden(PathId(path));
        (longer.as_millis(), most)
    }
}

#[test]
fn what_waits_is_charged_to_the_path_that_the_late_chunk_was_sent_on() {
    let mut bench = Bench::new(2, &shared());
    bench.weigh();
    bench.send_over(&[1, 0, 0]);
    bench.wait(50);
    bench.nr_sack(0, 0, &[], &[(2, 3)]);
    bench.weigh();
    assert_eq!((bench.burden(0), bench.burden(1)), ((0, 0), (0, 0)), "they have not waited yet");
    bench.wait(100);
    bench.sack(1, 3, &[]);
    bench.weigh();
    assert_eq!(bench.burden(0), (0, 0));
    assert_eq!(bench.burden(1), (200, 2000), "2,000 bytes waited 100 ms for 1,000");
}

#[test]
fn a_chunk_that_goes_again_elsewhere_is_still_its_first_paths() {
    let mut bench = Bench::new(2, &shared());
    bench.weigh();
    bench.send_over(&[1, 0]);
    bench.nr_sack(0, 0, &[], &[(2, 2)]);
    bench.sent.move_chunk(1, PathId(0)).expect("it is in flight");
    bench.sent.resend(bench.now, 1).expect("it waits");
    bench.weigh();
    bench.wait(100);
    bench.weigh();
    assert_eq!((bench.burden(0).0, bench.burden(1).0), (0, 100));
}

#[test]
fn nothing_waits_for_the_path_of_unordered_messages() {
    let mut bench = Bench::new(2, &shared());
    bench.weigh();
    for path in [1, 0, 0] {
        bench.send_message(path, LEN, true);
    }
    bench.nr_sack(0, 0, &[], &[(2, 3)]);
    bench.weigh();
    bench.wait(100);
    bench.weigh();
    assert_eq!(bench.burden(1), (0, 0));
}

#[test]
fn a_burden_is_forgotten_as_the_path_carries_more() {
    let mut bench = Bench::new(2, &shared());
    bench.weigh();
    bench.send_over(&[1, 0]);
    bench.nr_sack(0, 0, &[], &[(2, 2)]);
    bench.weigh();
    bench.wait(1000);
    bench.sack(1, 2, &[]);
    bench.weigh();
    assert_eq!(bench.burden(1).0, 1000);
    for _ in 0..9 {
        let tsn = bench.send(1, LEN);
        bench.sack(1, tsn, &[]);
        bench.weigh();
    }
    assert_eq!(bench.burden(1).0, 100);
}

#[test]
fn what_others_could_not_carry_meanwhile_is_the_price_of_a_path() {
    let mut bench = Bench::new(2, &shared());
    bench.weigh();
    bench.send_over(&[1, 0, 0]);
    bench.nr_sack(0, 0, &[], &[(2, 3)]);
    bench.weigh();
    assert_eq!(bench.sent.waits_for(), Some((PathId(1), 2000)));
    bench.sent.note_missing(50_000.0);
    bench.wait(100);
    bench.sack(1, 3, &[]);
    bench.weigh();
    assert_eq!(
        (bench.sent.price(PathId(0)), bench.sent.price(PathId(1))),
        (0.0, 5.0),
        "5,000 bytes for 1,000"
    );
    bench.wait(100);
    bench.weigh();
    assert_eq!(bench.sent.price(PathId(1)), 5.0, "nobody waits any more");
}

#[test]
fn a_trial_waits_until_the_others_have_carried_a_hundred_times_its_price() {
    let mut bench = Bench::new(2, &shared());
    bench.weigh();
    bench.send_over(&[1, 1, 0]);
    bench.nr_sack(0, 0, &[], &[(3, 3)]);
    bench.weigh();
    bench.sent.note_missing(10_000.0);
    bench.wait(400);
    bench.sack(3, 3, &[]);
    bench.weigh();
    assert_eq!(bench.sent.price(PathId(1)), 2.0);
    for _ in 0..199 {
        assert!(!bench.sent.can_afford(PathId(1), LEN));
        let tsn = bench.send(0, LEN);
        bench.sack(0, tsn, &[]);
    }
    assert!(bench.sent.can_afford(PathId(1), LEN));
    bench.sent.begin_trial(PathId(1), LEN);
    assert!(!bench.sent.can_afford(PathId(1), LEN), "one at a time");
    // The trial weighs as much as all that was known before.
    let tsn = bench.send(1, LEN);
    bench.sack(0, tsn, &[]);
    bench.weigh();
    assert_eq!(bench.sent.price(PathId(1)), 1.0);
}
