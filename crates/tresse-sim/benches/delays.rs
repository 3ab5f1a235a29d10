//! One-way delays of messages that come up whether or not the transport is ready (open loop), where packets are lost; and
//! what a dead path costs. All in the simulator, so that the numbers depend on nothing but the stack.
//!
//! A row is a message size and a mean gap, over one path and over two equal ones; delays count from when a message came up.
//! `aim` is the 99th percentile that is asked for: over two paths that, or what one path has, if that is less. It is the mean
//! over the seeds, with its standard error: of 2,000 messages 20 are lost, give or take four, so that chance decides for each
//! seed whether the 99th percentile is one of them. The last rows
//! say how long it takes, from the death of one of two paths on, until the other carries 0.9 of its rate, and how long a
//! paced flow is silent. Settings follow on the command line, as `loss_detection=rfc9260`.

use std::error::Error;
use std::ops::RangeInclusive;

use tresse_sim::{Outcome, RunOptions, Scenario, run};

const SEEDS: RangeInclusive<u64> = 7..=36;
/// Name, message size, mean gap in milliseconds, seconds measured, aim in milliseconds.
const ROWS: [(&str, &str, u32, u32, Option<f64>); 4] = [
    ("1 KiB every 250 ms", "1KiB", 250, 500, Some(110.0)),
    ("1 KiB every 20 ms", "1KiB", 20, 100, Some(90.0)),
    ("16 KiB every 250 ms", "16KiB", 250, 500, None),
    ("16 KiB every 20 ms", "16KiB", 20, 100, None),
];
/// There and back in 50 ms, and one packet in a hundred is lost.
const LOSSY: &str = "[[path]]\nrate = \"20Mbit/s\"\ndelay = \"25ms\"\nloss = 0.01\nqueue = \"100 packets\"\n";
/// Two paths, of which the first dies after five seconds.
const DYING: &str = "[[path]]\nrate = \"10Mbit/s\"\ndelay = \"25ms\"\n[[path.change]]\nat = \"5s\"\noutage = true\n\
     [[path]]\nrate = \"10Mbit/s\"\ndelay = \"25ms\"\n";
const DEATH_MS: u32 = 5000;
/// Seconds from the death until the survivor is full, as asked for.
const FULL_AGAIN: f64 = 0.3;

fn main() -> Result<(), Box<dyn Error>> {
    let settings: Vec<(String, String)> = std::env::args()
        .skip(1)
        .filter_map(|argument| {
            argument.split_once('=').map(|(key, value)| (format!("transport.{key}"), value.into()))
        })
        .collect();
    println!("one-way delay in ms, 25 ms of them on the way; 1 % loss; seeds {SEEDS:?}, ± standard error");
    println!("{:<36}{:>8}{:>8}{:>8}  {:<8}{:>8}  aim of p99", "", "p50", "p95", "p99", "", "max");
    for (name, size, gap, seconds, aim) in ROWS {
        let mut alone = None;
        for (paths, class) in [(1, ""), (2, ""), (2, "0=latency")] {
            let text = talk(size, gap, seconds, class) + &LOSSY.repeat(paths);
            let delays = delays(&text, &settings, SEEDS)?;
            let aim = alone.map_or(aim, |alone: f64| Some(aim.map_or(alone, |aim| aim.min(alone))));
            let label = format!(
                "{name}, {paths} path{}{}",
                if paths > 1 { "s" } else { "" },
                if class.is_empty() { "" } else { ", latency" }
            );
            let verdict = aim.map_or(String::new(), |aim| {
                format!("{aim:.0} {}", if delays.p99 <= aim { "met" } else { "missed" })
            });
            println!(
                "{label:<36}{:>8.1}{:>8.1}{:>8.1}  ± {:<6.1}{:>8.1}  {verdict}",
                delays.p50, delays.p95, delays.p99, delays.error, delays.max
            );
            alone = alone.or(Some(delays.p99));
        }
    }
    let after = full_again(&settings)?;
    let told = after.map_or("not within 3 s".to_owned(), |seconds| format!("{seconds:.2} s"));
    let met = if after.is_some_and(|seconds| seconds <= FULL_AGAIN) { "met" } else { "missed" };
    println!("one of two paths dies, until the other is full: {told} (aim {FULL_AGAIN} s {met})");
    let text = talk("1KiB", 5, 4, "").replace("settle = \"2s\"", "settle = \"4s\"") + DYING;
    let silence = delays(&text, &settings, 7..=9)?.max;
    println!("one of two paths dies, the longest delay of 1 KiB every 5 ms: {silence:.0} ms");
    Ok(())
}

/// One stream with a message now and then.
fn talk(size: &str, gap: u32, seconds: u32, class: &str) -> String {
    format!(
        "preset = \"cmt\"\nsettle = \"2s\"\nmeasure = \"{seconds}s\"\n[transport]\nstream_classes = \"{class}\"\n\
         [traffic]\n[[traffic.sporadic]]\nstream = 0\ngap = \"{gap}ms\"\nsize = \"{size}\"\n"
    )
}

/// Delays in milliseconds: percentiles as means over all seeds, and the maximum of all.
struct Delays {
    p50: f64,
    p95: f64,
    p99: f64,
    /// Standard error of `p99`.
    error: f64,
    max: f64,
}

fn delays(
    text: &str,
    settings: &[(String, String)],
    seeds: RangeInclusive<u64>,
) -> Result<Delays, Box<dyn Error>> {
    let mut all = Vec::new();
    for seed in seeds {
        let outcome = play(text, settings, &[("seed", &seed.to_string())])?;
        all.push(outcome.streams.first().and_then(|stream| stream.delay_ms).ok_or("no message came")?);
    }
    let count = all.len() as f64;
    let mean = |of: &dyn Fn(usize) -> f64| (0..all.len()).map(of).sum::<f64>() / count;
    let p99 = mean(&|seed| all[seed].p99);
    let variance = mean(&|seed| (all[seed].p99 - p99).powi(2)) * count / (count - 1.0).max(1.0);
    Ok(Delays {
        p50: mean(&|seed| all[seed].p50),
        p95: mean(&|seed| all[seed].p95),
        p99,
        error: (variance / count).sqrt(),
        max: all.iter().map(|delays| delays.max).fold(0.0, f64::max),
    })
}

/// Seconds after the death from which on the survivor carries 0.9 of what it can.
fn full_again(settings: &[(String, String)]) -> Result<Option<f64>, Box<dyn Error>> {
    let text = format!("preset = \"cmt\"\nmeasure = \"200ms\"\n{DYING}");
    for after in (0..3000).step_by(50) {
        let settle = format!("{}ms", DEATH_MS + after);
        let outcome = play(&text, settings, &[("settle", &settle)])?;
        let carried = outcome.paths.get(1).map_or(0.0, |path| path.throughput_mbps);
        if carried >= 0.9 * 10.0 * 1452.0 / 1500.0 {
            return Ok(Some(f64::from(after) / 1e3));
        }
    }
    Ok(None)
}

fn play(
    text: &str,
    settings: &[(String, String)],
    overrides: &[(&str, &str)],
) -> Result<Outcome, Box<dyn Error>> {
    let mut scenario = Scenario::from_toml(text, "delays")?;
    scenario.set_all(settings.iter().map(|(key, value)| (key.as_str(), value.as_str())))?;
    scenario.set_all(overrides.iter().copied())?;
    Ok(run(&scenario, RunOptions::default())?)
}
