//! How many data packets are simulated in a second of CPU time, with all their SACKs: the scenario
//! `scenarios/two-paths-100mbit.toml`, several times over.
//!
//! Prints the median with the fastest and the slowest run. CPU time comes from Linux's /proc/self/schedstat;
//! elsewhere it is wall-clock time, and the output says so.

#![allow(clippy::disallowed_types, reason = "a benchmark measures real time")]

use std::time::{Duration, Instant};

use tresse_sim::{RunOptions, Scenario, run};

const SCENARIO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/two-paths-100mbit.toml");
const RUNS: u64 = 5;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut scenario = Scenario::load(SCENARIO)?;
    let clock = Clock::start();
    println!("{}, {} runs, time is {}", scenario.resolved().name, RUNS, clock.kind());
    let mut rates = Vec::new();
    for seed in 1..=RUNS {
        scenario.set("seed", &seed.to_string())?;
        let before = clock.now();
        let outcome = run(&scenario, RunOptions::default())?;
        let seconds = (clock.now() - before).as_secs_f64();
        let facts = &outcome.run;
        rates.push(facts.data_chunks as f64 / seconds);
        println!(
            "seed {seed}: {} data packets, {} packets in all, {:.1} Mbit/s simulated, {seconds:.3} s: {:.0} data packets/s",
            facts.data_chunks,
            facts.packets,
            outcome.throughput_mbps,
            facts.data_chunks as f64 / seconds,
        );
    }
    rates.sort_by(f64::total_cmp);
    println!(
        "data packets/s: median {:.0}, min {:.0}, max {:.0}",
        rates[rates.len() / 2],
        rates[0],
        rates[rates.len() - 1]
    );
    Ok(())
}

/// CPU time of this process where the system tells it to the nanosecond, else wall-clock time.
struct Clock {
    start: Instant,
    cpu: bool,
}

impl Clock {
    fn start() -> Self {
        Clock { start: Instant::now(), cpu: cpu_time().is_some() }
    }

    fn kind(&self) -> &'static str {
        if self.cpu { "CPU time" } else { "wall-clock time" }
    }

    fn now(&self) -> Duration {
        if self.cpu { cpu_time().unwrap_or_default() } else { self.start.elapsed() }
    }
}

fn cpu_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}
