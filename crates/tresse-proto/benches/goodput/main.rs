//! Goodput of two endpoints in one thread, over memory: what the core costs when nothing else does.
//!
//! The crate `sctp-proto` does the same work in the same run, taking turns with ours, so that the
//! ratio survives a noisy machine. One stream, ordered; IP packets of 1,500 bytes; checksums on; no
//! loss. Time is the CPU time of the thread; the stacks see a clock that this file moves.

mod ours;
mod pair;
mod reference;

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use rustix::time::{ClockId, clock_gettime};

use ours::Tresse;
use pair::{Progress, Stack, exchange};
use reference::SctpProto;

/// Message sizes: a small record, one that fills a UDP-encapsulated packet, one of many fragments.
const MESSAGE_SIZES: [usize; 3] = [65_536, 64, 1436];
/// Turns that each stack takes for a message size.
const TURNS: usize = 7;
/// CPU time of the measured part of a turn, and of the part before it that opens the windows.
const MEASURE: Duration = Duration::from_millis(300);
const WARM_UP: Duration = Duration::from_millis(100);

/// Send buffer of the comparison. The reference does best when little is outstanding: with more, its
/// work per SACK grows until it stands still.
const COMPARED_BUFFER: usize = 64 * 1024;
/// Send buffer of a path with a large product of bandwidth and delay.
const LARGE_BUFFER: usize = 4 * 1024 * 1024;

fn main() -> Result<(), Box<dyn Error>> {
    println!(
        "In-memory goodput per CPU: one thread, one path, one ordered stream, 1,500-byte IP packets, CRC32c."
    );
    println!(
        "Median (lowest to highest) of {TURNS} turns of {} ms of CPU time; ratio of the medians.\n",
        MEASURE.as_millis(),
    );
    println!(
        "{:>7}  {:<10} {:>11} {:>28} {:>14} {:>6}",
        "message", "stack", "send buffer", "goodput", "messages", "ratio"
    );
    for size in MESSAGE_SIZES {
        let message = Bytes::from(vec![0x5a; size]);
        let (mut compared, mut reference, mut large) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..TURNS {
            compared.push(turn(&mut Tresse::connected(COMPARED_BUFFER)?, &message)?);
            reference.push(turn(&mut SctpProto::connected(COMPARED_BUFFER)?, &message)?);
            large.push(turn(&mut Tresse::connected(LARGE_BUFFER)?, &message)?);
        }
        let [compared, reference, large] = [compared, reference, large].map(Spread::of);
        let ratio = format!("{:.2}", compared.median / reference.median);
        print_row(size, "sctp-proto", COMPARED_BUFFER, &reference, "");
        print_row(size, "tresse", COMPARED_BUFFER, &compared, &ratio);
        print_row(size, "tresse", LARGE_BUFFER, &large, "");
    }
    Ok(())
}

/// Goodput in bits per second of CPU time.
fn turn(stack: &mut impl Stack, message: &Bytes) -> Result<f64, Box<dyn Error>> {
    run_for(stack, message, WARM_UP)?;
    let (bytes, spent) = run_for(stack, message, MEASURE)?;
    Ok(bytes as f64 * 8.0 / spent.as_secs_f64())
}

/// Exchanges messages for at least `budget` of CPU time; bytes received, and the time it took.
fn run_for(
    stack: &mut impl Stack,
    message: &Bytes,
    budget: Duration,
) -> Result<(u64, Duration), Box<dyn Error>> {
    let start = cpu_time();
    let mut progress = Progress::default();
    loop {
        exchange(stack, message, &mut progress)?;
        let spent = cpu_time() - start;
        if spent >= budget {
            return Ok((progress.received, spent));
        }
    }
}

/// CPU time that this thread has used.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Lowest, median and highest of several turns.
struct Spread {
    lowest: f64,
    median: f64,
    highest: f64,
}

impl Spread {
    fn of(mut values: Vec<f64>) -> Spread {
        values.sort_by(f64::total_cmp);
        Spread { lowest: values[0], median: values[values.len() / 2], highest: values[values.len() - 1] }
    }
}

fn print_row(message: usize, stack: &str, send_buffer: usize, goodput: &Spread, ratio: &str) {
    let [lowest, median, highest] =
        [goodput.lowest, goodput.median, goodput.highest].map(|bits| format!("{:.2}", bits / 1e9));
    let spread = format!("{median} ({lowest} to {highest}) Gbit/s");
    let messages = format!("{:.0} /s", goodput.median / 8.0 / message as f64);
    let buffer = format!("{} KiB", send_buffer / 1024);
    println!("{message:>5} B  {stack:<10} {buffer:>11} {spread:>28} {messages:>14} {ratio:>6}");
}
