//! Processor time of the first thread of a process: how long it ran, and how long it waited for a processor; and how
//! long all processors of the host were idle.

use std::time::{Duration, Instant};

/// CPU time that the thread has used so far.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Load {
    at: Instant,
    running: Duration,
    waiting: Duration,
    /// Ticks of all processors since the host started: idle ones, and all.
    ticks: Option<(u64, u64)>,
}

/// Shares of the time between two readings, from 0 to 1.
#[derive(Copy, Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct LoadShares {
    /// The thread ran.
    pub running: f64,
    /// The thread could have run, but another one had the processor.
    pub waiting: f64,
    /// The host's processors were idle, as a share of the time of all of them; `None` if the system does not report it.
    pub idle: Option<f64>,
}

impl Load {
    /// Returns the CPU time that the process's first thread has used so far; `None` if the system does not report it
    /// (anything but Linux with schedstats).
    pub fn now() -> Option<Self> {
        let text = std::fs::read_to_string("/proc/self/schedstat").ok()?;
        let mut numbers =
            text.split_ascii_whitespace().map(|number| number.parse().map(Duration::from_nanos));
        let (running, waiting) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
        Some(Load { at: Instant::now(), running, waiting, ticks: ticks() })
    }

    /// Returns the shares of CPU time since `earlier`.
    pub fn since(&self, earlier: &Load) -> LoadShares {
        let whole = (self.at - earlier.at).as_secs_f64().max(1e-9);
        let share = |now: Duration, then: Duration| (now.saturating_sub(then).as_secs_f64() / whole).min(1.0);
        LoadShares {
            running: share(self.running, earlier.running),
            waiting: share(self.waiting, earlier.waiting),
            idle: self.idle_since(earlier),
        }
    }

    fn idle_since(&self, earlier: &Load) -> Option<f64> {
        let ((idle, all), (idle_before, all_before)) = (self.ticks?, earlier.ticks?);
        let passed = all.checked_sub(all_before).filter(|passed| *passed > 0)?;
        Some((idle.saturating_sub(idle_before) as f64 / passed as f64).min(1.0))
    }
}

/// Returns the ticks of all processors: idle ones, and all (proc_stat(5)).
fn ticks() -> Option<(u64, u64)> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    of_line(text.lines().next()?)
}

fn of_line(line: &str) -> Option<(u64, u64)> {
    let numbers = line.strip_prefix("cpu ")?.split_ascii_whitespace();
    // User, nice, system, idle, waiting for disks, interrupts (two), stolen; guests are counted with users.
    let ticks = numbers.take(8).map(|number| number.parse().ok()).collect::<Option<Vec<u64>>>()?;
    let idle = ticks.get(3)?.checked_add(*ticks.get(4)?)?;
    Some((idle, ticks.iter().fold(0, |sum, &one| u64::saturating_add(sum, one))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_those_of_the_time_between() {
        let load = |at, running, waiting| {
            let [at, running, waiting] = [at, running, waiting].map(Duration::from_millis);
            (at, running, waiting)
        };
        let begin = Instant::now();
        let at = |(at, running, waiting)| Load { at: begin + at, running, waiting, ticks: None };
        let shares = at(load(300, 150, 30)).since(&at(load(100, 50, 10)));
        assert!((shares.running - 0.5).abs() < 1e-9 && (shares.waiting - 0.1).abs() < 1e-9, "{shares:?}");
    }

    #[test]
    fn processors_without_work_are_idle_and_those_that_wait_for_disks_too() {
        assert_eq!(of_line("cpu  10 1 5 70 10 1 1 2 9 9"), Some((80, 100)));
        assert_eq!(of_line("cpu0 10 1 5 70 10 1 1 2"), None);
        assert_eq!(of_line("cpu  10 1"), None);
        let load =
            |ticks| Load { at: Instant::now(), running: Duration::ZERO, waiting: Duration::ZERO, ticks };
        let idle = |now, before| load(now).since(&load(before)).idle;
        assert_eq!(idle(Some((130, 300)), Some((80, 100))), Some(0.25));
        assert_eq!(idle(Some((80, 100)), Some((80, 100))), None, "no time has passed");
        assert_eq!(idle(None, Some((80, 100))), None);
    }
}
