//! Scenarios that several tests share.

use tresse_sim::{Outcome, RunOptions, Scenario, run};

/// The scenario of the repository at `path` below `scenarios/`, with overrides.
pub(crate) fn scenario(path: &str, overrides: &[(&str, &str)]) -> Scenario {
    let file = format!("{}/../../scenarios/{path}", env!("CARGO_MANIFEST_DIR"));
    let mut scenario = Scenario::load(&file).unwrap_or_else(|error| panic!("{error}"));
    scenario.set_all(overrides.iter().copied()).unwrap_or_else(|error| panic!("{error}"));
    scenario
}

/// The paper's two paths, for a few seconds.
pub(crate) fn two_paths(overrides: &[(&str, &str)]) -> Scenario {
    let mut short = vec![("settle", "3s"), ("measure", "5s")];
    short.extend(overrides);
    scenario("pfldnet2010/two-paths.toml", &short)
}

/// Runs a scenario with every rule checked after every event.
pub(crate) fn checked(scenario: &Scenario) -> Outcome {
    let options = RunOptions { check: true, ..RunOptions::default() };
    run(scenario, options).unwrap_or_else(|error| panic!("{error}\n{}", scenario.to_toml()))
}
