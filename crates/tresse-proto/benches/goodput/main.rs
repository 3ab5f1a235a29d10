//! Goodput of two endpoints in one thread, over memory: what the core costs when nothing else does.
//!
//! The crate `sctp-proto` does the same work in the same run, taking turns with ours, so that the
//! ratio survives a noisy machine. The last row of each size has messages of partial reliability, whose lifetime does not
//! end. One stream, ordered; IP packets of 1,500 bytes; checksums on; no
//! loss. Time is the CPU time of the thread; the stacks see a clock that this file moves.

mod ours;
mod pair;
mod reference;

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use rustix::time::{ClockId, clock_gettime};
use tresse_proto::Reliability;

use ours::Tresse;
use pair::{Stack, exchange_for};
use reference::SctpProto;

/// Message sizes: a small record, one that fills a UDP-encapsulated packet, one of many fragments.
const MESSAGE_SIZES: [usize; 3] = [64, 1436, 65_536];
/// Turns that each stack takes for a message size.
const TURNS: usize = 5;
/// CPU time of the measured part of a turn, and of the part before it that opens the windows.
const MEASURE: Duration = Duration::from_millis(300);
const WARM_UP: Duration = Duration::from_millis(100);

/// Send and receive buffer of our endpoints: short paths, and a large product of bandwidth and delay.
const OUR_BUFFERS: [usize; 2] = [64 * 1024, 4 * 1024 * 1024];
const LIFETIME: Reliability = Reliability::Lifetime(Duration::from_secs(3600));
/// Buffers that the reference tries. Its work per SACK grows with what is outstanding, so each message
/// size has another buffer at which it is fastest; ours is compared with that one.
const REFERENCE_BUFFERS: [usize; 3] = [8 * 1024, 32 * 1024, 64 * 1024];

fn main() -> Result<(), Box<dyn Error>> {
    println!(
        "In-memory goodput per CPU: one thread, one path, one ordered stream, 1,500-byte IP packets, CRC32c."
    );
    println!(
        "Median (lowest to highest) of {TURNS} turns of {} ms of CPU time; ratio to the reference's best median.\n",
        MEASURE.as_millis(),
    );
    println!(
        "{:>7}  {:<10} {:>8} {:>29} {:>14} {:>6}",
        "message", "stack", "buffers", "goodput", "messages", "ratio"
    );
    for size in MESSAGE_SIZES {
        let message = Bytes::from(vec![0x5a; size]);
        let mut reference: Vec<Entry> =
            REFERENCE_BUFFERS.into_iter().filter(|&buffer| buffer >= size).map(Entry::with_buffer).collect();
        let mut ours: Vec<Entry> = OUR_BUFFERS.into_iter().map(Entry::with_buffer).collect();
        let mut mortal = Entry::with_buffer(OUR_BUFFERS[1]);
        for _ in 0..TURNS {
            for entry in &mut reference {
                entry.turns.push(turn(&mut SctpProto::connected(entry.buffer)?, &message)?);
            }
            for entry in &mut ours {
                entry.turns.push(turn(&mut Tresse::connected(entry.buffer, Reliability::Full)?, &message)?);
            }
            mortal.turns.push(turn(&mut Tresse::connected(mortal.buffer, LIFETIME)?, &message)?);
        }
        let best = reference.iter().map(Entry::median).fold(0.0, f64::max);
        reference.iter().for_each(|entry| entry.print(size, "sctp-proto", best));
        ours.iter().for_each(|entry| entry.print(size, "tresse", best));
        mortal.print(size, "lifetime", best);
    }
    Ok(())
}

/// Goodput in bits per second of CPU time.
fn turn(stack: &mut impl Stack, message: &Bytes) -> Result<f64, Box<dyn Error>> {
    exchange_for(stack, message, WARM_UP, cpu_time)?;
    let (bytes, spent) = exchange_for(stack, message, MEASURE, cpu_time)?;
    Ok(bytes as f64 * 8.0 / spent.as_secs_f64())
}

/// CPU time that this thread has used.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// One row of the table: a stack with one size of buffers, and its goodput in each turn.
struct Entry {
    buffer: usize,
    turns: Vec<f64>,
}

impl Entry {
    fn with_buffer(buffer: usize) -> Entry {
        Entry { buffer, turns: Vec::with_capacity(TURNS) }
    }

    fn sorted(&self) -> Vec<f64> {
        let mut turns = self.turns.clone();
        turns.sort_by(f64::total_cmp);
        turns
    }

    fn median(&self) -> f64 {
        self.sorted()[self.turns.len() / 2]
    }

    fn print(&self, message: usize, stack: &str, reference: f64) {
        let sorted = self.sorted();
        let [lowest, median, highest] = [sorted[0], self.median(), sorted[sorted.len() - 1]];
        let gigabits = |bits: f64| format!("{:.2}", bits / 1e9);
        let goodput = format!("{} ({} to {}) Gbit/s", gigabits(median), gigabits(lowest), gigabits(highest));
        let messages = format!("{:.0} /s", median / 8.0 / message as f64);
        let buffers = format!("{} KiB", self.buffer / 1024);
        let ratio = median / reference;
        println!("{message:>5} B  {stack:<10} {buffers:>8} {goodput:>29} {messages:>14} {ratio:>6.2}");
    }
}
