//! One side of a measurement: serves or sends until its standard input ends, and says on demand what it has done.
//!
//! `child serve STACK WORKERS` prints `ready ADDRESS`; `child send STACK WORKERS ADDRESS BYTES COUNT MESSAGES` opens COUNT
//! associations, prints `ready`, and sends so many messages of BYTES on each. Each line on standard input is
//! answered with one line of numbers ([`Mark`](crate::process::Mark)).

use std::error::Error;
use std::io::{BufRead, Write, stdin, stdout};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::{Builder, Runtime};

use crate::stacks;

/// What a sender is to do.
pub(crate) struct Load {
    /// Where the server is, as it said.
    pub(crate) server: Vec<String>,
    /// Length of each message.
    pub(crate) message: usize,
    /// How many of them on each association; plain UDP, quinn and usrsctp never end.
    pub(crate) messages: u64,
    /// Associations.
    pub(crate) count: usize,
}

/// Bytes received, by association.
#[derive(Default)]
pub(crate) struct Tally(Mutex<Vec<Arc<AtomicU64>>>);

impl Tally {
    /// A counter for one association more.
    pub(crate) fn join(&self) -> Arc<AtomicU64> {
        let counter = Arc::default();
        self.0.lock().expect("no holder panics").push(Arc::clone(&counter));
        counter
    }

    fn read(&self) -> Vec<u64> {
        let counters = self.0.lock().expect("no holder panics");
        counters.iter().map(|counter| counter.load(Ordering::Relaxed)).collect()
    }
}

pub(crate) fn run(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let tally = Arc::new(Tally::default());
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["serve", stack, workers] => {
            let runtime = runtime(workers.parse()?)?;
            let _inside = runtime.enter();
            let address = stacks::serve(stack, &tally)?;
            answer_with(&runtime, &tally, &format!("ready {address}"))
        }
        ["send", stack, workers, server, message, count, messages] => {
            let runtime = runtime(workers.parse()?)?;
            let server = server.split(' ').map(str::to_owned).collect();
            let (message, messages, count) = (message.parse()?, messages.parse()?, count.parse()?);
            let load = Load { server, message, messages, count };
            runtime.block_on(stacks::send(stack, load))?;
            answer_with(&runtime, &tally, "ready")
        }
        _ => Err("child serve STACK WORKERS | child send STACK WORKERS ADDRESS BYTES COUNT MESSAGES".into()),
    }
}

/// Everything on the thread that waits, or on so many others.
fn runtime(workers: usize) -> std::io::Result<Runtime> {
    match workers {
        0 => Builder::new_current_thread().enable_all().build(),
        _ => Builder::new_multi_thread().worker_threads(workers).enable_all().build(),
    }
}

/// Drives the runtime while a thread of its own answers what comes on standard input.
fn answer_with(runtime: &Runtime, tally: &Arc<Tally>, ready: &str) -> Result<(), Box<dyn Error>> {
    println!("{ready}");
    stdout().flush()?;
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let tally = Arc::clone(tally);
    std::thread::spawn(move || {
        let mut before = tally.read();
        for _ in stdin().lock().lines().map_while(Result::ok) {
            let now = tally.read();
            let told =
                now.iter().zip(before.iter().chain(std::iter::repeat(&0))).map(|(now, before)| now - before);
            let got: Vec<u64> = told.collect();
            println!("{} {} {} {}", now.iter().sum::<u64>(), cpu_time().as_nanos(), resident(), jain(&got));
            let _ = stdout().flush();
            before = now;
        }
        drop(end);
    });
    let _ = runtime.block_on(ended);
    std::process::exit(0)
}

/// Jain's index of fairness: 1 where all got the same, 1 / n where one got everything.
fn jain(shares: &[u64]) -> f64 {
    let sum: f64 = shares.iter().map(|&share| share as f64).sum();
    let squares: f64 = shares.iter().map(|&share| (share as f64).powi(2)).sum();
    if squares == 0.0 { 1.0 } else { sum * sum / (squares * shares.len() as f64) }
}

/// CPU time of this process, all threads.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Resident memory of this process in bytes; 0 where the system does not tell.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: Option<u64> = statm.split_whitespace().nth(1).and_then(|pages| pages.parse().ok());
    pages.unwrap_or(0) * rustix::param::page_size() as u64
}
