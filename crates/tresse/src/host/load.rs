//! Processor time of the thread that a process began with: how much of it ran, and how much waited for a processor.

use std::time::{Duration, Instant};

/// What the thread has used so far.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Load {
    at: Instant,
    running: Duration,
    waiting: Duration,
}

/// Shares of the time between two readings, from 0 to 1.
#[derive(Copy, Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct LoadShares {
    /// It ran.
    pub running: f64,
    /// It could have run, and another had the processor.
    pub waiting: f64,
}

impl Load {
    /// What the process's first thread has used so far; `None` where the system does not tell (anything but Linux with
    /// schedstats).
    pub fn now() -> Option<Self> {
        let text = std::fs::read_to_string("/proc/self/schedstat").ok()?;
        let mut numbers =
            text.split_ascii_whitespace().map(|number| number.parse().map(Duration::from_nanos));
        let (running, waiting) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
        Some(Load { at: Instant::now(), running, waiting })
    }

    /// What was used since `earlier`.
    pub fn since(&self, earlier: &Load) -> LoadShares {
        let whole = (self.at - earlier.at).as_secs_f64().max(1e-9);
        let share = |now: Duration, then: Duration| (now.saturating_sub(then).as_secs_f64() / whole).min(1.0);
        LoadShares {
            running: share(self.running, earlier.running),
            waiting: share(self.waiting, earlier.waiting),
        }
    }
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
        let at = |(at, running, waiting)| Load { at: begin + at, running, waiting };
        let shares = at(load(300, 150, 30)).since(&at(load(100, 50, 10)));
        assert!((shares.running - 0.5).abs() < 1e-9 && (shares.waiting - 0.1).abs() < 1e-9, "{shares:?}");
    }
}
