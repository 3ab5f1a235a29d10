//! Time that duplicates save while a receive buffer of eleven packets blocks new data.

use crate::common::{checked, scenario};

/// Seconds that half the paper's file takes over its two paths of 45 ms, in three runs.
fn seconds(blocked_duplicates: &str, losses: [&str; 2]) -> f64 {
    let took = |seed| {
        let overrides = [
            ("preset", "cmt"),
            ("loss_oracle", "false"),
            ("traffic.volume", "4MiB"),
            ("transport.receive_buffer", "16KiB"),
            ("transport.blocked_duplicates", blocked_duplicates),
            ("path.0.loss", losses[0]),
            ("path.1.loss", losses[1]),
            ("seed", seed),
        ];
        let outcome = checked(&scenario("globecom2005/two-paths.toml", &overrides));
        outcome.completed_s.expect("the file has arrived")
    };
    ["1", "2", "3"].map(took).iter().sum()
}

#[test]
fn copies_shorten_a_transfer_behind_a_short_buffer_over_paths_that_lose() {
    let (on, off) = (seconds("lossy_paths", ["1%"; 2]), seconds("off", ["1%"; 2]));
    assert!(1.07 * on < off, "{on} s, {off} s without copies");
}

#[test]
fn a_path_that_loses_too_much_for_new_data_mends_the_losses_of_the_better_one() {
    let losses = ["1%", "7%"];
    let (on, off) = (seconds("lossy_paths", losses), seconds("off", losses));
    assert!(1.07 * on < off, "{on} s, {off} s without copies");
}

#[test]
fn nothing_changes_over_paths_that_lose_nothing() {
    assert_eq!(seconds("lossy_paths", ["0%"; 2]), seconds("off", ["0%"; 2]));
}
