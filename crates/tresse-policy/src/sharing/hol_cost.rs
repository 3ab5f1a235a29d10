//! Head-of-line (HoL) blocking cost of each path: buffer that early arrivals hold while they wait for late chunks of the path.
//!
//! A byte occupies a buffer for a round trip. When a chunk is late or lost, all ordered data behind it occupies the buffer
//! until the chunk has arrived. This cost is added to the path on which the head-of-line chunk was first sent: as the time
//! by which each of its bytes occupies buffer longer, and if a buffer was full, as the bytes that other paths could not
//! send. The association reports the blocked data after each acknowledgement; this module does not know chunks.

use std::time::Duration;

use crate::path::PathId;
use crate::time::Instant;

/// The costs of all paths.
#[derive(Debug, Default)]
pub(crate) struct HolCosts {
    /// Time of the last report.
    since: Instant,
    blocking: Option<Blocking>,
    /// Rate at which the other paths could send since then if nothing were blocked, in bytes per second.
    unused_rate: f64,
    /// Time at which all measurements were last halved.
    aged: Instant,
    paths: Vec<HolCost>,
}

/// Head-of-line blocking at one instant.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Blocking {
    /// The path on which the head-of-line chunk was first sent. The chunk is in flight, or lost.
    pub path: PathId,
    /// Bytes that arrived early and are held behind it.
    pub bytes: usize,
}

/// Recent cost of one path's bytes.
#[derive(Copy, Clone, Debug, Default)]
struct HolCost {
    /// Byte-seconds of blocking.
    blocked: f64,
    /// Bytes that other paths could not send meanwhile, because a buffer was full.
    displaced: f64,
    /// Bytes of new data sent on the path.
    sent: f64,
    /// The path's count of new data sent, at the last report.
    counted: u64,
    /// Most bytes that were blocked at a time.
    most: f64,
    /// Bytes that the other paths had sent when the last trial of this path began.
    tried: u64,
}

impl HolCosts {
    pub(crate) fn new(now: Instant) -> Self {
        HolCosts { since: now, aged: now, ..HolCosts::default() }
    }

    /// Charges the blocking since the last report to its path, and stores the `blocking` from now on. `sent` is the new
    /// data ever sent on each path, by position.
    pub(crate) fn on_report(
        &mut self,
        now: Instant,
        blocking: Option<Blocking>,
        sent: impl ExactSizeIterator<Item = u64>,
    ) {
        let elapsed = now.since(std::mem::replace(&mut self.since, now));
        let before = std::mem::replace(&mut self.blocking, blocking);
        let unused_rate = std::mem::take(&mut self.unused_rate);
        while self.paths.len() < sent.len() {
            self.paths.push(HolCost::default());
        }
        if let Some(Blocking { path, bytes }) = before
            && let Some(cost) = self.paths.get_mut(path.index())
        {
            let (seconds, bytes) = (elapsed.as_secs_f64(), bytes as f64);
            cost.blocked += seconds * bytes;
            cost.displaced += seconds * unused_rate;
            cost.most = cost.most.max(bytes);
        }
        for (cost, total) in self.paths.iter_mut().zip(sent) {
            cost.sent += total.saturating_sub(cost.counted) as f64;
            cost.counted = total;
            if cost.sent > MEMORY {
                cost.halve();
            }
        }
        if now.since(self.aged) >= HALF_LIFE {
            self.aged = now;
            for cost in &mut self.paths {
                cost.halve();
                cost.most /= 2.0;
            }
        }
    }

    /// Removes the costs of `path`, because another path takes its position.
    pub(crate) fn forget(&mut self, path: PathId) {
        if let Some(cost) = self.paths.get_mut(path.index()) {
            *cost = HolCost::default();
        }
        self.blocking = self.blocking.filter(|blocking| blocking.path != path);
    }

    /// Returns the blocking of the last report.
    pub(crate) fn blocking(&self) -> Option<Blocking> {
        self.blocking
    }

    /// Sets the rate in bytes per second at which the other paths could send until the next report if nothing were blocked.
    pub(crate) fn set_unused_rate(&mut self, rate: f64) {
        self.unused_rate = rate;
    }

    /// Returns the bytes that other paths could not send for each byte of `path`.
    pub(crate) fn displaced_by(&self, path: PathId) -> f64 {
        self.known(path).map_or(0.0, |cost| cost.displaced / cost.sent)
    }

    /// Returns the time by which a byte of `path` holds buffer longer than its own round trip.
    pub(crate) fn blocked_time(&self, path: PathId) -> Duration {
        let seconds = self.known(path).map_or(0.0, |cost| (cost.blocked / cost.sent).min(LONGEST));
        Duration::from_secs_f64(seconds)
    }

    /// Returns the most bytes that `path` blocks at one time.
    pub(crate) fn most_blocked(&self, path: PathId) -> usize {
        self.known(path).map_or(0.0, |cost| cost.most) as usize
    }

    /// Returns whether a trial of `len` bytes on `path`, which is suspended, is affordable: trials may cost other paths
    /// a small part of what they send.
    pub(crate) fn allows_trial(&self, path: PathId, len: usize) -> bool {
        let tried = self.paths.get(path.index()).map_or(0, |cost| cost.tried);
        let since = self.sent_by_others(path).saturating_sub(tried);
        since as f64 * TRIAL_PART >= self.displaced_by(path) * len as f64
    }

    /// Begins a trial of `len` bytes on `path`. Earlier measurements of the path get at most the weight of the trial.
    pub(crate) fn begin_trial(&mut self, path: PathId, len: usize) {
        let others = self.sent_by_others(path);
        if let Some(cost) = self.paths.get_mut(path.index()) {
            cost.tried = others;
            cost.rescale(len);
        }
    }

    fn sent_by_others(&self, path: PathId) -> u64 {
        let others = (0..).zip(&self.paths).filter(|&(position, _)| position != path.index());
        others.map(|(_, cost)| cost.counted).sum()
    }

    fn known(&self, path: PathId) -> Option<&HolCost> {
        self.paths.get(path.index()).filter(|cost| cost.sent > 0.0)
    }
}

impl HolCost {
    fn halve(&mut self) {
        self.blocked /= 2.0;
        self.displaced /= 2.0;
        self.sent /= 2.0;
    }

    /// Reduces the weight of the measurements to at most `len` bytes.
    fn rescale(&mut self, len: usize) {
        let weight = (len as f64 / self.sent.max(f64::MIN_POSITIVE)).min(1.0);
        self.blocked *= weight;
        self.displaced *= weight;
        self.sent *= weight;
    }
}

/// Number of bytes of a path at which the measurements are halved, so that the last half to whole of it counts: some
/// hundred full packets.
const MEMORY: f64 = 512.0 * 1024.0;
/// Time after which measurements count half: trials soon determine the cost of a suspended path.
const HALF_LIFE: Duration = Duration::from_secs(10);
/// Part of the bytes sent by other paths that trials may cost.
const TRIAL_PART: f64 = 0.01;
/// Upper bound of the additional seconds for which a byte holds buffer; more would change nothing.
const LONGEST: f64 = 1000.0;

#[cfg(test)]
mod tests {
    use super::*;

    const LEN: usize = 1000;

    /// Two paths and the bytes that they have sent.
    struct Bench {
        costs: HolCosts,
        now: Instant,
        sent: [u64; 2],
    }

    impl Bench {
        fn new() -> Self {
            let mut bench = Bench { costs: HolCosts::new(Instant::ZERO), now: Instant::ZERO, sent: [0; 2] };
            bench.report(None);
            bench
        }

        /// Path 1 sends so many packets, and blocks so many bytes from now on.
        fn block(&mut self, packets: usize, bytes: usize) {
            self.sent[1] += (packets * LEN) as u64;
            self.report(Some(Blocking { path: PathId(1), bytes }));
        }

        fn report(&mut self, blocking: Option<Blocking>) {
            self.costs.on_report(self.now, blocking, self.sent.into_iter());
        }

        fn wait(&mut self, millis: u64) {
            self.now += Duration::from_millis(millis);
        }

        fn blocked_millis(&self, path: u8) -> u128 {
            self.costs.blocked_time(PathId(path)).as_millis()
        }
    }

    #[test]
    fn blocking_is_charged_to_the_path_of_the_head_of_line_chunk() {
        let mut bench = Bench::new();
        bench.block(1, 2 * LEN);
        assert_eq!((bench.blocked_millis(1), bench.costs.most_blocked(PathId(1))), (0, 0), "not yet");
        bench.wait(100);
        bench.report(None);
        assert_eq!(bench.blocked_millis(1), 200, "2,000 bytes for 100 ms, by 1,000 bytes sent");
        assert_eq!(bench.costs.most_blocked(PathId(1)), 2 * LEN);
        assert_eq!((bench.blocked_millis(0), bench.costs.most_blocked(PathId(0))), (0, 0));
    }

    #[test]
    fn a_cost_is_forgotten_as_the_path_sends_more() {
        let mut bench = Bench::new();
        bench.block(1, LEN);
        bench.wait(1000);
        bench.report(None);
        assert_eq!(bench.blocked_millis(1), 1000);
        bench.sent[1] += 9 * LEN as u64;
        bench.report(None);
        assert_eq!(bench.blocked_millis(1), 100);
    }

    #[test]
    fn bytes_that_others_could_not_send_are_displaced() {
        let mut bench = Bench::new();
        bench.block(1, 2 * LEN);
        bench.costs.set_unused_rate(50_000.0);
        bench.wait(100);
        bench.report(None);
        assert_eq!(bench.costs.displaced_by(PathId(0)), 0.0);
        assert_eq!(bench.costs.displaced_by(PathId(1)), 5.0, "5,000 bytes for 1,000");
        bench.wait(100);
        bench.report(None);
        assert_eq!(bench.costs.displaced_by(PathId(1)), 5.0, "nothing is blocked any more");
    }

    #[test]
    fn a_path_does_not_inherit_the_costs_of_the_one_whose_place_it_takes() {
        let mut bench = Bench::new();
        bench.block(1, 2 * LEN);
        bench.costs.set_unused_rate(50_000.0);
        bench.wait(100);
        bench.block(0, 2 * LEN);
        bench.costs.forget(PathId(1));
        bench.wait(100);
        bench.sent[1] = LEN as u64;
        bench.report(None);
        assert_eq!((bench.blocked_millis(1), bench.costs.displaced_by(PathId(1))), (0, 0.0));
        assert_eq!(bench.costs.most_blocked(PathId(1)), 0);
    }

    #[test]
    fn a_trial_waits_until_the_others_have_sent_a_hundred_times_its_cost() {
        let mut bench = Bench::new();
        bench.block(2, LEN);
        bench.costs.set_unused_rate(10_000.0);
        bench.wait(400);
        bench.report(None);
        assert_eq!(bench.costs.displaced_by(PathId(1)), 2.0);
        for _ in 0..200 {
            assert!(!bench.costs.allows_trial(PathId(1), LEN));
            bench.sent[0] += LEN as u64;
            bench.report(None);
        }
        assert!(bench.costs.allows_trial(PathId(1), LEN));
        bench.costs.begin_trial(PathId(1), LEN);
        assert!(!bench.costs.allows_trial(PathId(1), LEN), "one at a time");
        // The trial weighs as much as all that was known before.
        bench.sent[1] += LEN as u64;
        bench.report(None);
        assert_eq!(bench.costs.displaced_by(PathId(1)), 1.0);
    }
}
