//! Data packets simulated in a second of CPU time, with all their SACKs: the scenario
//! `scenarios/two-paths-100mbit.toml`, several times over.
//!
//! Prints the median with the fastest and the slowest run. CPU time comes from Linux's /proc/self/schedstat;
//! elsewhere it is wall-clock time, and the output says so. How fast a machine is, and how busy, differs more than anything
//! that is changed here: between the runs the crate `sctp-proto` exchanges messages in memory, as in the benchmark `goodput`
//! of the core, and the ratio of the two is what can be compared.

#![allow(clippy::disallowed_types, reason = "a benchmark measures real time")]

#[path = "../../tresse-proto/benches/goodput/pair.rs"]
mod pair;
#[path = "../../tresse-proto/benches/goodput/reference.rs"]
mod reference;

use std::error::Error;
use std::time::{Duration, Instant};

use bytes::Bytes;
use pair::exchange_for;
use reference::SctpProto;
use tresse_sim::{RunOptions, Scenario, run};

const SCENARIO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/two-paths-100mbit.toml");
const RUNS: u64 = 5;
/// What the reference exchanges: a message for each packet, with the buffers with which it is fastest, for so long at least.
const REFERENCE_MESSAGE: usize = 1436;
const REFERENCE_BUFFER: usize = 32 * 1024;
const REFERENCE_TIME: Duration = Duration::from_millis(300);

fn main() -> Result<(), Box<dyn Error>> {
    let mut scenario = Scenario::load(SCENARIO)?;
    let clock = Clock::start();
    println!("{}, {} runs, time is {}", scenario.resolved().name, RUNS, clock.kind());
    let (mut rates, mut references) = (Vec::new(), Vec::new());
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
        references.push(reference_rate(&clock)?);
    }
    rates.sort_by(f64::total_cmp);
    references.sort_by(f64::total_cmp);
    let (median, reference) = (rates[rates.len() / 2], references[references.len() / 2]);
    println!("data packets/s: median {median:.0}, min {:.0}, max {:.0}", rates[0], rates[rates.len() - 1]);
    println!(
        "sctp-proto in memory: {reference:.0} messages of {REFERENCE_MESSAGE} B/s ({:.2} Gbit/s); ratio {:.2}",
        reference * REFERENCE_MESSAGE as f64 * 8.0 / 1e9,
        median / reference,
    );
    Ok(())
}

/// Messages that two endpoints of the reference exchange in a second, without a network between them.
fn reference_rate(clock: &Clock) -> Result<f64, Box<dyn Error>> {
    let mut stack = SctpProto::connected(REFERENCE_BUFFER)?;
    let message = Bytes::from(vec![0x5a; REFERENCE_MESSAGE]);
    // The windows open first.
    exchange_for(&mut stack, &message, REFERENCE_TIME / 3, || clock.now())?;
    let (bytes, spent) = exchange_for(&mut stack, &message, REFERENCE_TIME, || clock.now())?;
    Ok(bytes as f64 / REFERENCE_MESSAGE as f64 / spent.as_secs_f64())
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
