//! Detection of paths that share a bottleneck: their round-trip times change together.
//!
//! Packets of two paths that wait in one queue wait longer at the same times. So time is divided into intervals. The
//! *move* of a path is the change of its shortest round trip from one interval to the next, and two paths share a
//! bottleneck if their moves agree. The test uses moves and not delays, because windows that fill separate
//! queues grow alike for seconds, and their delays with them. A move is limited to the usual size of moves, because a
//! window reduction moves a delay by more than anything else, and a few reductions coincide by chance. The test uses
//! the shortest round trip, because delayed acknowledgements and other causes delay packets as well.
//!
//! The concordance of two paths' moves measures their agreement: twice their covariance over the sum of their
//! variances. Unlike a correlation, it is high only if the moves have the same size, as moves of one queue have.
//!
//! This test is simpler than that of RFC 8382, which needs one-way delays and tens of seconds: SCTP measures round
//! trips. So a queue on the return path, which delays the SACKs of all paths, looks like a bottleneck that the paths
//! share.

use std::time::Duration;

use crate::path::PathId;
use crate::time::Instant;

/// Delays of the paths of one association, and which paths share a bottleneck.
#[derive(Default)]
pub(super) struct Bottlenecks {
    /// Beginning of the interval.
    began: Instant,
    /// Delays by path.
    delays: Vec<Delay>,
    /// Pairs of paths 0 and 1, 0 and 2, 1 and 2, 0 and 3, ...
    pairs: Vec<Pair>,
}

/// A change of a path from one flow to another: it begins or ceases to share a bottleneck.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Change {
    /// The first path of the flow that it was part of.
    pub(super) from: PathId,
    /// The first path of the flow that it is part of now.
    pub(super) to: PathId,
}

/// Round-trip times of one path.
#[derive(Copy, Clone, Default)]
struct Delay {
    /// The shortest in this interval and in the one before; `None` without a measurement.
    this: Option<Duration>,
    last: Option<Duration>,
    /// Mean size of the path's moves, in seconds.
    usual: Average,
    /// The move from the interval before the last to the last, in seconds.
    moved: Option<f64>,
    /// The first path that shares a bottleneck with this one; this path itself if no earlier one does.
    flow: PathId,
    /// The `flow` that was last reported.
    reported: PathId,
}

/// Statistics on the moves of two paths. Each move is divided by the usual size of moves and limited to -1 to 1.
#[derive(Copy, Clone, Default)]
struct Pair {
    /// Mean move of each path.
    moves: [Average; 2],
    /// Means of the sum of the squares of both moves, and of their product.
    squares: Average,
    product: Average,
    together: bool,
}

/// Mean over about the last [`MEMORY`] values.
#[derive(Copy, Clone, Default)]
struct Average {
    mean: f64,
    values: u32,
}

impl Bottlenecks {
    /// Returns the first path that shares a bottleneck with `path`; `path` itself if no earlier one does.
    pub(super) fn flow(&self, path: PathId) -> PathId {
        self.delays.get(path.index()).map_or(path, |delay| delay.reported)
    }

    /// Returns the first other path that shares a bottleneck with `path`.
    pub(super) fn shares_with(&self, path: PathId) -> Option<PathId> {
        let mut others = (0..self.delays.len()).map(|place| PathId(place as u8));
        others.find(|other| *other != path && self.flow(*other) == self.flow(path))
    }

    /// Discards all measurements of `path`, because a new path has taken its position.
    pub(super) fn forget(&mut self, path: PathId) {
        let Some(delay) = self.delays.get_mut(path.index()) else { return };
        *delay = Delay { flow: path, reported: path, ..Delay::default() };
        for other in (0..self.delays.len()).filter(|other| *other != path.index()) {
            self.pairs[place(path.index(), other)] = Pair::default();
        }
        self.assign();
    }

    /// Takes the round-trip time of data of the path.
    pub(super) fn on_round_trip(&mut self, now: Instant, path: PathId, rtt: Duration) {
        while self.delays.len() <= path.index() {
            let added = PathId(self.delays.len() as u8);
            self.pairs.resize(self.pairs.len() + added.index(), Pair::default());
            self.delays.push(Delay { flow: added, reported: added, ..Delay::default() });
        }
        if now.since(self.began) >= INTERVAL {
            self.compare();
            self.began = now;
        }
        let this = &mut self.delays[path.index()].this;
        *this = Some(this.map_or(rtt, |least| least.min(rtt)));
    }

    /// Returns a path's change of flow that has not been returned yet.
    pub(super) fn pop_change(&mut self) -> Option<Change> {
        let place = self.delays.iter().position(|delay| delay.flow != delay.reported)?;
        let delay = &mut self.delays[place];
        let change = Change { from: delay.reported, to: delay.flow };
        delay.reported = delay.flow;
        Some(change)
    }

    /// Ends an interval and compares all paths.
    fn compare(&mut self) {
        for delay in &mut self.delays {
            delay.end_interval();
        }
        for path in 0..self.delays.len() {
            for before in 0..path {
                self.pairs[place(before, path)].add(&self.delays[before], &self.delays[path]);
            }
        }
        self.assign();
    }

    /// Assigns paths that share a bottleneck to the same flow.
    fn assign(&mut self) {
        for path in 0..self.delays.len() {
            let companion = (0..path).find(|before| self.pairs[place(*before, path)].together);
            self.delays[path].flow = companion.map_or(PathId(path as u8), |before| self.delays[before].flow);
        }
    }
}

impl Delay {
    fn end_interval(&mut self) {
        self.moved = self.this.zip(self.last).map(|(this, last)| this.as_secs_f64() - last.as_secs_f64());
        if let Some(moved) = self.moved {
            self.usual.add(moved.abs());
        }
        self.last = self.this.take();
    }
}

impl Pair {
    /// Adds an interval of both paths.
    fn add(&mut self, one: &Delay, other: &Delay) {
        let (Some(one_moved), Some(other_moved)) = (one.moved, other.moved) else { return };
        let usual = (one.usual.mean + other.usual.mean) / 2.0;
        // If neither path ever moves, the quotient is not a number.
        let limited = |moved: f64| if moved == 0.0 { 0.0 } else { (moved / usual).clamp(-1.0, 1.0) };
        let (one, other) = (limited(one_moved), limited(other_moved));
        self.moves[0].add(one);
        self.moves[1].add(other);
        self.squares.add(one * one + other * other);
        self.product.add(one * other);
        // After few intervals, moves may agree by chance, so the concordance counts less. A plain agreement is found soon all the same.
        let certain = f64::from(self.product.values.min(ENOUGH)) / f64::from(ENOUGH);
        let concordance = self.concordance() * certain.sqrt();
        self.together = concordance > if self.together { APART } else { TOGETHER };
    }

    /// Returns the concordance, from -1 to 1; about 0 if neither path moves.
    fn concordance(&self) -> f64 {
        let [one, other] = self.moves.map(|moves| moves.mean);
        let variances = self.squares.mean - one * one - other * other;
        let covariance = self.product.mean - one * other;
        2.0 * covariance / (variances + STILL)
    }
}

impl Average {
    fn add(&mut self, value: f64) {
        self.values = self.values.saturating_add(1);
        self.mean += (value - self.mean) / f64::from(self.values.min(MEMORY));
    }
}

/// Returns the place of the pair of two paths in the list.
fn place(one: usize, other: usize) -> usize {
    let (low, high) = (one.min(other), one.max(other));
    high * (high - 1) / 2 + low
}

/// Length of an interval. It is long enough for some packets of a slow path, and for paths whose delays to the
/// bottleneck differ by 20 ms, and short enough for a decision within seconds.
const INTERVAL: Duration = Duration::from_millis(70);
/// Number of intervals that a mean covers, about, and number of intervals after which the concordance counts in full.
const MEMORY: u32 = 128;
const ENOUGH: u32 = 100;
/// Added to the variances, which are 0.6 each if a queue moves all the time. A late SACK makes the round trips of all paths longer.
/// Because of this term, one such SACK in ten seconds does not make paths with constant delays count as sharing.
const STILL: f64 = 0.1;
/// Concordance above which two paths count as sharing a bottleneck, and below which they no longer do. In random setups
/// (docs/congestion.md) the concordance of paths with links of their own mostly stays below 0.3.
const TOGETHER: f64 = 0.3;
const APART: f64 = 0.25;

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers from 0 to 99 without a pattern.
    fn noise(seed: u64, step: u64) -> u64 {
        let mixed = ((seed << 32) | step).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) % 100
    }

    /// Feeds each path a round trip every 10 ms for `seconds`: 50 ms, and the µs that its queue adds.
    fn run(found: &mut Bottlenecks, seconds: u64, queues: &[&dyn Fn(u64) -> u64]) {
        let from = found.began.as_nanos() / 1_000_000;
        for step in 0..seconds * 100 {
            for (path, queue) in queues.iter().enumerate() {
                let rtt = Duration::from_micros(50_000 + queue(step));
                let now = Instant::from_nanos((from + step * 10) * 1_000_000);
                found.on_round_trip(now, PathId(path as u8), rtt);
            }
        }
    }

    fn flows(found: &mut Bottlenecks, paths: u8) -> Vec<u8> {
        while found.pop_change().is_some() {}
        (0..paths).map(|path| found.flow(PathId(path)).0).collect()
    }

    /// A queue that fills for three seconds and is then emptied at once, in µs; packets of other flows add to it.
    fn queue(seed: u64) -> impl Fn(u64) -> u64 {
        move |step| (step + 37 * seed) % 300 * 100 + noise(seed, step / 7) * 100
    }

    #[test]
    fn those_that_wait_in_one_queue_are_one_flow() {
        let (one, other) = (queue(1), queue(2));
        // The third path has a longer delay before the queue, which varies a little.
        let longer = |step: u64| one(step) + 30_000 + noise(3, step) * 5;
        let mut found = Bottlenecks::default();
        run(&mut found, 10, &[&one, &other, &longer]);
        assert_eq!(flows(&mut found, 3), [0, 1, 0]);
        assert_eq!(found.shares_with(PathId(0)), Some(PathId(2)));
        assert_eq!(found.shares_with(PathId(1)), None);
    }

    /// Two seconds are 28 intervals.
    #[test]
    fn the_plainer_it_is_the_sooner_it_is_found() {
        let (one, other) = (queue(1), queue(2));
        let mixed = |step: u64| one(step) + 2 * other(step);
        let mut found = Bottlenecks::default();
        run(&mut found, 2, &[&one, &one, &mixed]);
        assert_eq!(flows(&mut found, 3), [0, 0, 2]);
    }

    #[test]
    fn queues_that_fill_and_empty_at_the_same_times_are_not_one() {
        let one = |step: u64| step % 300 * 100 + noise(1, step / 7) * 100;
        let other = |step: u64| step % 300 * 100 + noise(2, step / 7) * 100;
        let mut found = Bottlenecks::default();
        run(&mut found, 60, &[&one, &other]);
        assert_eq!(flows(&mut found, 2), [0, 1]);
    }

    #[test]
    fn moves_of_unlike_sizes_are_not_of_one_queue() {
        let one = queue(1);
        let faster = |step: u64| one(step) / 20;
        let mut found = Bottlenecks::default();
        run(&mut found, 60, &[&one, &faster]);
        assert_eq!(flows(&mut found, 2), [0, 1]);
    }

    /// SACKs acknowledge data of both paths, and are late for 140 ms every ten seconds.
    #[test]
    fn a_few_large_moves_of_paths_that_are_still_are_not_of_a_queue() {
        let late = |step: u64| if step % 1_000 < 14 { 20_000 } else { 0 };
        let one = |step: u64| late(step) + noise(1, step);
        let other = |step: u64| late(step) + noise(2, step);
        let mut found = Bottlenecks::default();
        run(&mut found, 60, &[&one, &other]);
        assert_eq!(flows(&mut found, 2), [0, 1]);
    }

    #[test]
    fn who_parts_is_let_go_and_a_new_path_is_unknown() {
        let (one, other) = (queue(1), queue(2));
        let mut found = Bottlenecks::default();
        run(&mut found, 10, &[&one, &one]);
        let change = Change { from: PathId(1), to: PathId(0) };
        assert_eq!([found.pop_change(), found.pop_change()], [Some(change), None]);
        run(&mut found, 30, &[&one, &other]);
        let change = Change { from: PathId(0), to: PathId(1) };
        assert_eq!(found.pop_change(), Some(change));

        run(&mut found, 30, &[&one, &one]);
        assert_eq!(flows(&mut found, 2), [0, 0]);
        found.forget(PathId(1));
        assert_eq!(flows(&mut found, 2), [0, 1]);

        for first in [0, 2] {
            let mut found = Bottlenecks::default();
            run(&mut found, 10, &[&one, &one, &one]);
            assert_eq!(flows(&mut found, 3), [0, 0, 0]);
            found.forget(PathId(first));
            assert_eq!(flows(&mut found, 3), if first == 0 { [0, 1, 1] } else { [0, 0, 2] });
        }
    }

    #[test]
    fn silence_and_stillness_say_nothing() {
        let mut found = Bottlenecks::default();
        run(&mut found, 10, &[&|_| 0, &|_| 0]);
        assert_eq!(flows(&mut found, 2), [0, 1]);
        let one = queue(1);
        run(&mut found, 10, &[&one]);
        assert_eq!(flows(&mut found, 2), [0, 1]);
    }
}
