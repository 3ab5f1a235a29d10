//! `swarm`: runs random scripts on all cores until the time is up or one violates a rule; then shortens that script.
//!
//! Owns threads, the clock and arguments; the library uses none of them.

#![expect(clippy::disallowed_types, reason = "the time that a person waits; simulations have their own")]

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::panic;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tresse_swarm::{Breach, Census, Script, Shrunk, Summary, attempt, census, draw, judge, shrink, trace};

const USAGE: &str = "\
usage: swarm [--first N] [--count N] [--seconds N] [--jobs N]   play seeds from N on (drawn; until the time is up)
             [--census]                                         and say how often each mechanism was at work
             [--shortening N]                                   and shorten a failing one by playing N events at most
       swarm --seed N [--print]                                 play one and say what happened
       swarm --script FILE                                      play a script that was kept
             [--shorten]                                        and shorten it, or that of the seed";

/// Random first seeds are at least this. Smaller seeds are run only on request, so that a fixed range of seeds never
/// overlaps with random ones.
const FIXED: u64 = 1_000_000_000;
/// Number of seeds to draw from: a drawn seed has few enough digits to be typed.
const DRAWN: u64 = 1_000_000_000_000;

/// Most events in all runs that shorten a failing script; they take some minutes.
const SHORTENING: u64 = 10_000_000;

fn main() -> ExitCode {
    match Arguments::parse(std::env::args().skip(1)) {
        Ok(Arguments { script: Some(script), shorten: true, shortening, .. }) => {
            suppress_panic_output();
            match judge(&script) {
                Ok(_) => replay(&script, false),
                Err(breach) => shorten(script, breach, shortening),
            }
        }
        Ok(Arguments { script: Some(script), print, .. }) => replay(&script, print),
        Ok(arguments) => search(&arguments),
        Err(what) => {
            eprintln!("swarm: {what}\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

struct Arguments {
    first: u64,
    count: u64,
    time: Duration,
    jobs: usize,
    script: Option<Script>,
    print: bool,
    census: bool,
    shorten: bool,
    shortening: u64,
}

impl Arguments {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        let mut arguments = Arguments {
            first: random_seed(),
            count: u64::MAX,
            time: Duration::from_secs(60),
            jobs,
            script: None,
            print: false,
            census: false,
            shorten: false,
            shortening: SHORTENING,
        };
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} needs a value"));
            match word.as_str() {
                "--first" => arguments.first = number(&word, &value()?)?,
                "--count" => {
                    arguments.count = number(&word, &value()?)?;
                    arguments.time = Duration::MAX;
                }
                "--seconds" => arguments.time = Duration::from_secs(number(&word, &value()?)?),
                "--jobs" => arguments.jobs = number(&word, &value()?)?.max(1) as usize,
                "--seed" => arguments.script = Some(draw(number(&word, &value()?)?)),
                "--script" => {
                    let path = value()?;
                    let text = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
                    arguments.script = Some(text.parse().map_err(|error| format!("{path}: {error}"))?);
                }
                "--print" => arguments.print = true,
                "--census" => arguments.census = true,
                "--shorten" => arguments.shorten = true,
                "--shortening" => arguments.shortening = number(&word, &value()?)?,
                _ => return Err(format!("unknown argument {word}")),
            }
        }
        Ok(arguments)
    }
}

/// Returns a random first seed, which probably has not been used before.
fn random_seed() -> u64 {
    // The system draws the keys of the hash at random.
    FIXED + RandomState::new().hash_one(0_u8) % DRAWN
}

fn number(name: &str, text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{name}: \"{text}\" is not a whole number"))
}

/// Runs one script and prints all its events.
fn replay(script: &Script, print: bool) -> ExitCode {
    println!("{script}");
    if print {
        return ExitCode::SUCCESS;
    }
    let (outcome, lines) = trace(script);
    for line in lines {
        println!("{line}");
    }
    match outcome {
        Ok(summary) => {
            println!("\nall rules held: {summary:?}");
            ExitCode::SUCCESS
        }
        Err(breach) => {
            println!("\nbroken {breach}");
            ExitCode::FAILURE
        }
    }
}

/// Runs many scripts, until one fails or the time is up.
fn search(arguments: &Arguments) -> ExitCode {
    suppress_panic_output();
    println!("seeds from {} on (FIRST={0} plays them again)", arguments.first);
    let start = Instant::now();
    let next = AtomicU64::new(0);
    let stop = AtomicBool::new(false);
    let found: Mutex<Option<(u64, Breach)>> = Mutex::new(None);
    let totals = Mutex::new(Totals::default());
    std::thread::scope(|scope| {
        for _ in 0..arguments.jobs {
            scope.spawn(|| {
                let mut own = Totals::default();
                while !stop.load(Ordering::Relaxed) && start.elapsed() < arguments.time {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= arguments.count {
                        break;
                    }
                    let seed = arguments.first + number;
                    let script = draw(seed);
                    let (outcome, counted) = if arguments.census {
                        let (outcome, counted) = census(&script);
                        (outcome, Some(counted))
                    } else {
                        (judge(&script), None)
                    };
                    match outcome {
                        Ok(summary) => own.add(&summary, counted.as_ref()),
                        Err(breach) => {
                            stop.store(true, Ordering::Relaxed);
                            let mut found = found.lock().unwrap_or_else(|poison| poison.into_inner());
                            if found.as_ref().is_none_or(|(other, _)| seed < *other) {
                                *found = Some((seed, breach));
                            }
                        }
                    }
                }
                totals.lock().unwrap_or_else(|poison| poison.into_inner()).merge(own);
            });
        }
    });
    let totals = totals.into_inner().unwrap_or_else(|poison| poison.into_inner());
    totals.print(start.elapsed());
    match found.into_inner().unwrap_or_else(|poison| poison.into_inner()) {
        None => ExitCode::SUCCESS,
        Some((seed, breach)) => {
            println!("\nseed {seed} breaks a rule {breach}");
            shorten(draw(seed), breach, arguments.shortening);
            println!("\nthis was seed {seed}: make swarm SEED={seed} says more");
            ExitCode::FAILURE
        }
    }
}

/// Finds a shorter script that violates the same rule as `script`, and prints it.
fn shorten(script: Script, breach: Breach, events: u64) -> ExitCode {
    let Shrunk { script, breach, tries, .. } = shrink(script, breach, events, attempt);
    println!("\nthe shortest of {tries} scripts that break it, {breach}\n\n{script}");
    ExitCode::FAILURE
}

/// Suppresses the output of panics: each panic is reported as a violated rule.
fn suppress_panic_output() {
    panic::set_hook(Box::new(|_| {}));
}

/// Totals of all runs.
#[derive(Default)]
struct Totals {
    scripts: u64,
    events: u64,
    packets: u64,
    accepted: u64,
    delivered: u64,
    span: Duration,
    ends: BTreeMap<&'static str, u64>,
    /// Counts of each mechanism: how often it acted, and in how many scripts.
    at_work: BTreeMap<String, (u64, u64)>,
}

impl Totals {
    fn add(&mut self, summary: &Summary, census: Option<&Census>) {
        self.scripts += 1;
        self.events += summary.events;
        self.packets += summary.packets;
        self.accepted += summary.accepted;
        self.delivered += summary.delivered;
        self.span += summary.span;
        for (name, count) in &summary.ends {
            *self.ends.entry(name).or_default() += count;
        }
        for (name, count) in census.into_iter().flat_map(Census::counts) {
            let (times, scripts) = self.at_work.entry(name.to_owned()).or_default();
            *times += count;
            *scripts += u64::from(count > 0);
        }
    }

    fn merge(&mut self, other: Totals) {
        self.scripts += other.scripts;
        self.events += other.events;
        self.packets += other.packets;
        self.accepted += other.accepted;
        self.delivered += other.delivered;
        self.span += other.span;
        for (name, count) in other.ends {
            *self.ends.entry(name).or_default() += count;
        }
        for (name, (more_times, more_scripts)) in other.at_work {
            let (times, scripts) = self.at_work.entry(name).or_default();
            *times += more_times;
            *scripts += more_scripts;
        }
    }

    fn print(&self, took: Duration) {
        let minutes = took.as_secs_f64() / 60.0;
        println!(
            "{} seeds clean in {:.1} s, {:.0} a minute: {} packets, {} messages accepted, {} delivered, {:.0} hours of virtual time",
            self.scripts,
            took.as_secs_f64(),
            self.scripts as f64 / minutes.max(1e-9),
            self.packets,
            self.accepted,
            self.delivered,
            self.span.as_secs_f64() / 3600.0
        );
        let ends: Vec<String> = self.ends.iter().map(|(name, count)| format!("{name} {count}")).collect();
        println!("ends of associations: {}", ends.join(", "));
        for (name, (times, scripts)) in &self.at_work {
            println!("{times:>12} in {scripts:>8} scripts  {name}");
        }
    }
}
