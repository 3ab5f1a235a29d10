//! Cost of an association besides moving data: setting it up, keeping it, and keeping it alive.
//!
//! Two endpoints in one thread hand each other packets over memory, checksums on. The crate `sctp-proto` does the
//! same in the same run. Time is the CPU time of the thread and covers both sides; memory is what both endpoints
//! together have taken from the allocator, divided by the number of association ends.

mod ours;
mod reference;

use std::error::Error;
use std::time::Duration;

use allocation_counter::measure;
use rustix::time::{ClockId, clock_gettime};

/// Associations of the tables on set-ups and memory.
const CROWD: u32 = 10_000;
/// Turns that each stack takes at setting them up.
const TURNS: usize = 5;
/// Associations that are kept alive, and for how long of their own time.
const LIVING: u32 = 100_000;
const LIFE: Duration = Duration::from_secs(600);

/// Two endpoints that set up associations with each other.
trait Crowd: Sized {
    /// Two endpoints without any association.
    fn new() -> Result<Self, Box<dyn Error>>;

    /// Sets up association `number`, of addresses that no other number has, until both sides know it.
    fn meet(&mut self, number: u32) -> Result<(), Box<dyn Error>>;

    /// Associations that both sides call established.
    fn established(&mut self) -> usize;
}

fn main() -> Result<(), Box<dyn Error>> {
    set_ups()?;
    memory()?;
    life()
}

fn set_ups() -> Result<(), Box<dyn Error>> {
    println!(
        "Set-ups per second of CPU, both sides in one thread; median (lowest to highest) of {TURNS} turns.\n"
    );
    let (mut ours, mut reference) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        reference.push(set_up_rate::<reference::Pair>()?);
        ours.push(set_up_rate::<ours::Pair>()?);
    }
    let base = print_rates("sctp-proto", &mut reference, None);
    print_rates("tresse", &mut ours, Some(base));
    Ok(())
}

fn set_up_rate<C: Crowd>() -> Result<f64, Box<dyn Error>> {
    let mut crowd = C::new()?;
    let start = cpu_time();
    for number in 0..CROWD {
        crowd.meet(number)?;
    }
    let spent = cpu_time() - start;
    if crowd.established() != CROWD as usize {
        return Err("not every association was set up".into());
    }
    Ok(f64::from(CROWD) / spent.as_secs_f64())
}

fn print_rates(name: &str, rates: &mut [f64], base: Option<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    let median = rates[rates.len() / 2];
    let ratio = median / base.unwrap_or(median);
    println!(
        "{name:<10} {median:>9.0} /s ({:.0} to {:.0})  ratio {ratio:.2}",
        rates[0],
        rates[rates.len() - 1]
    );
    median
}

fn memory() -> Result<(), Box<dyn Error>> {
    println!(
        "\nMemory of an association at rest: bytes for each of its two ends, {CROWD} associations; and how often the \
         allocator was asked in a set-up, both sides together.\n"
    );
    let (base, allocations) = rest::<reference::Pair>()?;
    println!("{:<10} {base:>6.0} B  ratio 1.00  {allocations:>4.0} allocations", "sctp-proto");
    let (ours, allocations) = rest::<ours::Pair>()?;
    println!("{:<10} {ours:>6.0} B  ratio {:.2}  {allocations:>4.0} allocations", "tresse", ours / base);
    Ok(())
}

/// Bytes for each end, and allocations for each set-up.
fn rest<C: Crowd>() -> Result<(f64, f64), Box<dyn Error>> {
    let mut outcome = Ok(());
    let mut crowd = C::new()?;
    let taken = measure(|| outcome = (0..CROWD).try_for_each(|number| crowd.meet(number)));
    outcome?;
    let ends = f64::from(2 * CROWD);
    Ok((taken.bytes_current as f64 / ends, taken.count_total as f64 / f64::from(CROWD)))
}

fn life() -> Result<(), Box<dyn Error>> {
    println!(
        "\nKeeping {LIVING} associations alive for {} s of their time, heartbeats as by default.\n",
        LIFE.as_secs()
    );
    let mut crowd = ours::Pair::new()?;
    let mut outcome = Ok(());
    let taken = measure(|| outcome = (0..LIVING).try_for_each(|number| crowd.meet(number)));
    outcome?;
    let start = cpu_time();
    let packets = crowd.live(LIFE)?;
    let spent = cpu_time() - start;
    let alive = crowd.established();
    println!(
        "tresse     {alive} alive, {:.0} MB for both ends; {packets} packets cost {:.2} s of CPU: {:.1} % of one core",
        taken.bytes_current as f64 / 1e6,
        spent.as_secs_f64(),
        100.0 * spent.as_secs_f64() / LIFE.as_secs_f64(),
    );
    if alive != LIVING as usize {
        return Err("an association died".into());
    }
    Ok(())
}

/// CPU time that this thread has used.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
