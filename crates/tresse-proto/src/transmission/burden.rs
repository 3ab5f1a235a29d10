//! What each path makes the others wait for: how long early arrivals are kept for the sake of its late chunks.
//!
//! A byte holds its place in a buffer for a round trip. When it is late or lost, everything in order behind it is held
//! too, until it has arrived. That is measured here and charged to the path that the late chunk was first sent on, as
//! the time by which each of its bytes holds buffer longer. Only who shares out buffers asks (docs/adaptive.md).

use std::time::Duration;

use super::{Standing, Transmission};
use crate::path_id::PathId;
use crate::time::Instant;

/// The burdens of all paths.
#[derive(Debug)]
pub(super) struct Burdens {
    /// What has held since then: so many bytes wait for a chunk of that path.
    since: Instant,
    held: usize,
    culprit: Option<PathId>,
    /// When everything was last halved.
    aged: Instant,
    paths: Vec<Burden>,
}

/// What one path's bytes have cost lately.
#[derive(Copy, Clone, Debug, Default)]
struct Burden {
    /// Byte-seconds for which others waited.
    waited: f64,
    /// New data sent on the path.
    carried: f64,
    /// The path's own count of it when `carried` was brought up to date.
    counted: u64,
    /// Most bytes that waited at a time.
    most: f64,
}

impl Burdens {
    fn new(now: Instant) -> Self {
        Burdens { since: now, held: 0, culprit: None, aged: now, paths: Vec::new() }
    }

    /// Charges the time since the last call, in which nothing has changed.
    fn charge(&mut self, now: Instant, sent: impl Iterator<Item = u64>) {
        let elapsed = now.since(self.since).as_secs_f64();
        self.since = now;
        for (position, total) in sent.enumerate() {
            if self.paths.len() <= position {
                self.paths.push(Burden::default());
            }
            let burden = &mut self.paths[position];
            burden.carried += total.saturating_sub(burden.counted) as f64;
            burden.counted = total;
            if self.culprit.is_some_and(|path| path.index() == position) {
                burden.waited += elapsed * self.held as f64;
                burden.most = burden.most.max(self.held as f64);
            }
            if burden.carried > MEMORY {
                burden.halve();
            }
        }
        if now.since(self.aged) >= HALF_LIFE {
            self.aged = now;
            for burden in &mut self.paths {
                burden.halve();
                burden.most /= 2.0;
            }
        }
    }
}

impl Burden {
    fn halve(&mut self) {
        self.waited /= 2.0;
        self.carried /= 2.0;
    }
}

impl Transmission {
    /// Brings the burdens up to date; to be called after each acknowledgement.
    pub(crate) fn weigh(&mut self, now: Instant) {
        let held = self.held_early();
        let first = self.ring.get(self.ring.cumulative() + 1);
        let late = |standing| matches!(standing, Standing::InFlight | Standing::Lost);
        let culprit = first.filter(|sent| held > 0 && late(sent.standing)).map(|sent| sent.origin);
        let burdens = self.burdens.get_or_insert_with(|| Box::new(Burdens::new(now)));
        burdens.charge(now, self.loads.iter().map(|load| load.bytes_sent));
        burdens.held = held;
        burdens.culprit = culprit;
    }

    /// The time by which a byte of `path` holds buffer longer than its own round trip, by what others wait; and how
    /// many bytes wait at most.
    pub(crate) fn burden(&self, path: PathId) -> (Duration, usize) {
        let burden = self.burdens.as_ref().and_then(|burdens| burdens.paths.get(path.index()));
        let Some(burden) = burden.filter(|burden| burden.carried > 0.0) else { return (Duration::ZERO, 0) };
        let longer = (burden.waited / burden.carried).min(LONGEST);
        (Duration::from_secs_f64(longer), burden.most as usize)
    }

    /// Bytes that arrived early and are kept, by either side.
    pub(crate) fn held_early(&self) -> usize {
        (0..self.loads.len()).map(|position| self.early_on(PathId(position as u8))).sum()
    }
}

/// Burdens are those of the last half to whole of so many bytes of a path: some hundred full packets.
const MEMORY: f64 = 512.0 * 1024.0;
/// What is older counts half: a path that rests is soon judged by what it is tried with.
const HALF_LIFE: Duration = Duration::from_secs(10);
/// Seconds; more would change nothing.
const LONGEST: f64 = 1000.0;
