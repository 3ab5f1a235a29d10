//! Cost of one decision of each stream scheduler with 2 and with 65,535 streams that all have data.
//!
//! A decision is a message of a saturated stream: asked for, taken, and another one queued behind it;
//! a packet ends after every second one. Lengths are mixed. Both numbers of streams take turns, so that the ratio survives
//! a noisy machine; what counts is the fastest turn. Time is the CPU time of the thread. The worked example `one_by_one` is
//! brought along as an application would bring it, to show what that costs.

use std::error::Error;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tresse_proto::schedule::{Backlog, Built, Queued, Taken};
use tresse_proto::{Instant, PathId, PathView, Registry, StreamId};

#[path = "../../../examples/schedulers/one_by_one.rs"]
#[expect(unreachable_pub, reason = "it is written as an application would have it")]
mod one_by_one;

const FEW: u16 = 2;
const MANY: u16 = 65_535;
const TURNS: usize = 15;
/// Decisions in a turn: every stream comes up several times.
const DECISIONS: u32 = 400_000;
/// What a decision may cost more with many streams.
const AIM: f64 = 1.3;

fn main() -> Result<(), Box<dyn Error>> {
    println!("CPU time of a decision with {FEW} and {MANY} backlogged streams, fastest of {TURNS} turns.\n");
    println!("{:<20} {:>12} {:>12} {:>7}", "scheduler", "few", "many", "ratio");
    let mut registry = Registry::default();
    registry.register_stream_scheduler("one_by_one", one_by_one::factory())?;
    for name in registry.stream_scheduler_names() {
        let (mut few, mut many) = (Bench::new(&registry, name, FEW)?, Bench::new(&registry, name, MANY)?);
        let (mut with_few, mut with_many) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..TURNS {
            with_few = with_few.min(few.turn());
            with_many = with_many.min(many.turn());
        }
        let ratio = with_many / with_few;
        let verdict = if ratio <= AIM { "" } else { "  more than aimed at" };
        println!("{name:<20} {with_few:>9.1} ns {with_many:>9.1} ns {ratio:>7.2}{verdict}");
    }
    Ok(())
}

/// A scheduler with streams that always have data.
struct Bench {
    scheduler: Built,
    backlog: Saturated,
    path: PathView,
}

/// What the first message of each stream has, bytes; others follow.
struct Saturated {
    heads: Vec<u16>,
    dice: u64,
}

impl Saturated {
    fn new(streams: u16) -> Self {
        let mut backlog = Saturated { heads: vec![0; usize::from(streams)], dice: 0x9e37_79b9_7f4a_7c15 };
        for stream in 0..streams {
            backlog.renew(StreamId(stream));
        }
        backlog
    }

    /// Gives a stream its next message, of up to a packet, and answers its length.
    fn renew(&mut self, stream: StreamId) -> usize {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        let bytes = 64 + (self.dice >> 32) as u16 % 1373;
        self.heads[usize::from(stream.0)] = bytes;
        usize::from(bytes)
    }
}

impl Backlog for Saturated {
    fn unsent_bytes(&self, stream: StreamId) -> usize {
        2 * self.head_bytes(stream)
    }
    fn messages(&self, _stream: StreamId) -> usize {
        2
    }
    fn head_bytes(&self, stream: StreamId) -> usize {
        usize::from(self.heads[usize::from(stream.0)])
    }
}

impl Bench {
    fn new(registry: &Registry, name: &str, streams: u16) -> Result<Self, Box<dyn Error>> {
        let mut scheduler = registry.build_stream_scheduler(name, "")?;
        let backlog = Saturated::new(streams);
        for stream in (0..streams).map(StreamId) {
            if name == "weighted_fair" {
                scheduler.set_value(stream, 1 + stream.0 % 2)?;
            }
            for was_idle in [true, false] {
                let bytes = backlog.head_bytes(stream);
                let mut queued = Queued::new(stream, bytes, Instant::ZERO);
                queued.was_idle = was_idle;
                scheduler.on_queued(queued);
            }
        }
        Ok(Bench { scheduler, backlog, path: path() })
    }

    /// CPU time of a decision, in nanoseconds.
    fn turn(&mut self) -> f64 {
        let start = cpu_time();
        for number in 0..DECISIONS {
            let Some(stream) = self.scheduler.next(&self.path, &self.backlog) else { break };
            let bytes = self.backlog.head_bytes(stream);
            let queued = self.backlog.renew(stream);
            self.scheduler.on_taken(Taken::new(stream, bytes));
            self.scheduler.on_queued(Queued::new(stream, queued, Instant::ZERO));
            if number % 2 == 1 {
                self.scheduler.on_packet_end();
            }
        }
        (cpu_time() - start).as_nanos() as f64 / f64::from(DECISIONS)
    }
}

fn path() -> PathView {
    let mut path = PathView::new(PathId(0));
    (path.primary, path.open) = (true, true);
    (path.cwnd, path.ssthresh, path.room) = (100_000, 100_000, 100_000);
    path
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
