//! A fixed handful of seeds, always the same; `make swarm` plays many more.

use tresse_swarm::{draw, judge, trace};

const SEEDS: u64 = 400;

#[test]
fn every_rule_holds_in_the_first_seeds() {
    for seed in 0..SEEDS {
        if let Err(breach) = judge(&draw(seed)) {
            panic!("seed {seed} breaks a rule {breach}\n\nmake swarm SEED={seed} says more");
        }
    }
}

#[test]
fn a_script_plays_the_same_way_twice() {
    for seed in 0..20 {
        let script = draw(seed);
        assert_eq!(trace(&script), trace(&script), "seed {seed}");
    }
}
