//! What each path makes the others wait for: how long early arrivals are kept for the sake of its late chunks.
//!
//! A byte holds its place in a buffer for a round trip. When it is late or lost, everything in order behind it is held
//! too, until it has arrived. That is measured here and charged to the path that the late chunk was first sent on, as
//! the time by which each of its bytes holds buffer longer; and where a buffer was full, as what the others could not carry.
//! Only who shares out buffers asks (docs/adaptive.md).

use std::time::Duration;

use tresse_policy::{Instant, PathId};

use super::{PathLoad, Standing, Transmission};
use crate::fragment::Carrier;

/// The burdens of all paths.
#[derive(Debug)]
pub(super) struct Burdens {
    /// What has held since then: so many bytes wait for a chunk of that path.
    since: Instant,
    held: usize,
    culprit: Option<PathId>,
    /// What the others could carry meanwhile if nobody had to wait, in bytes a second.
    missing: f64,
    /// When everything was last halved.
    aged: Instant,
    paths: Vec<Burden>,
}

/// What one path's bytes have cost lately.
#[derive(Copy, Clone, Debug, Default)]
struct Burden {
    /// Byte-seconds for which others waited.
    waited: f64,
    /// Bytes that others could not carry meanwhile, as a buffer was full.
    missed: f64,
    /// New data sent on the path.
    carried: f64,
    /// The path's own count of it when `carried` was brought up to date.
    counted: u64,
    /// When it was last seen to have grown: copies and what goes again do not count.
    last: Instant,
    /// Most bytes that waited at a time.
    most: f64,
    /// What the others had sent when the path was last tried.
    tried: u64,
}

impl Burdens {
    fn new(now: Instant) -> Self {
        Burdens { since: now, held: 0, culprit: None, missing: 0.0, aged: now, paths: Vec::new() }
    }

    /// Charges the time since the last call, in which nothing has changed.
    fn charge(&mut self, now: Instant, sent: impl ExactSizeIterator<Item = u64>) {
        let elapsed = now.since(std::mem::replace(&mut self.since, now));
        while self.paths.len() < sent.len() {
            self.paths.push(Burden { last: now, ..Burden::default() });
        }
        if let Some(burden) = self.culprit.and_then(|path| self.paths.get_mut(path.index())) {
            let (seconds, held) = (elapsed.as_secs_f64(), self.held as f64);
            burden.waited += seconds * held;
            burden.missed += seconds * self.missing;
            burden.most = burden.most.max(held);
        }
        for (burden, total) in self.paths.iter_mut().zip(sent) {
            if total > burden.counted {
                burden.last = now;
                burden.carried += (total - burden.counted) as f64;
            }
            burden.counted = total;
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
        self.missed /= 2.0;
        self.carried /= 2.0;
    }

    /// What is known counts as much as if it were known of `len` bytes at the most.
    fn weigh_as(&mut self, len: usize) {
        let weight = (len as f64 / self.carried.max(f64::MIN_POSITIVE)).min(1.0);
        self.waited *= weight;
        self.missed *= weight;
        self.carried *= weight;
    }
}

impl Transmission {
    /// Brings the burdens up to date; to be called after each acknowledgement.
    pub(crate) fn weigh(&mut self, now: Instant) {
        let held = self.held_early();
        let first = self.ring.get(self.ring.cumulative() + 1);
        let late = |standing| matches!(standing, Standing::InFlight | Standing::Lost);
        let culprit = first.filter(|sent| held > 0 && late(sent.standing)).map(|sent| sent.origin);
        let carrier = self.carrier;
        let burdens = self.burdens.get_or_insert_with(|| Box::new(Burdens::new(now)));
        burdens.charge(now, self.loads.iter().map(|load| load.sent(carrier)));
        burdens.held = held;
        burdens.culprit = culprit;
        burdens.missing = 0.0;
    }

    /// The path that others wait for, and how many bytes do.
    pub(crate) fn waits_for(&self) -> Option<(PathId, usize)> {
        let burdens = self.burdens.as_ref()?;
        burdens.culprit.map(|culprit| (culprit, burdens.held))
    }

    /// Until the next acknowledgement the others could carry `rate` bytes a second if nobody had to wait.
    pub(crate) fn note_missing(&mut self, rate: f64) {
        if let Some(burdens) = &mut self.burdens {
            burdens.missing = rate;
        }
    }

    /// How many bytes others could not carry for each byte of `path`.
    pub(crate) fn price(&self, path: PathId) -> f64 {
        self.known_burden(path).map_or(0.0, |burden| burden.missed / burden.carried)
    }

    /// Whether others can afford that a packet of `len` bytes is tried on `path`, which rests: trials may cost them a small
    /// part of what they carry.
    pub(crate) fn can_afford(&self, path: PathId, len: usize) -> bool {
        let (others, burden) = self.others(path);
        let since = others.saturating_sub(burden.map_or(0, |burden| burden.tried));
        since as f64 * TRIAL_PART >= self.price(path) * len as f64
    }

    /// For how long `path` has carried no new data.
    pub(crate) fn silence(&self, path: PathId, now: Instant) -> Duration {
        let burden = self.burdens.as_ref().and_then(|burdens| burdens.paths.get(path.index()));
        burden.map_or(Duration::ZERO, |burden| now.since(burden.last))
    }

    /// A packet of `len` bytes is tried on `path`: what is known of the path weighs no more than the trial will.
    pub(crate) fn begin_trial(&mut self, path: PathId, len: usize) {
        let (others, _) = self.others(path);
        let burdens = self.burdens.as_mut();
        if let Some(burden) = burdens.and_then(|burdens| burdens.paths.get_mut(path.index())) {
            burden.tried = others;
            burden.weigh_as(len);
        }
    }

    /// What all others have sent, and what is known of `path`.
    fn others(&self, path: PathId) -> (u64, Option<&Burden>) {
        let others = (0..).zip(&self.loads).filter(|&(position, _)| position != path.index());
        let burden = self.burdens.as_ref().and_then(|burdens| burdens.paths.get(path.index()));
        (others.map(|(_, load)| load.sent(self.carrier)).sum(), burden)
    }

    /// The time by which a byte of `path` holds buffer longer than its own round trip, by what others wait; and how
    /// many bytes wait at most.
    pub(crate) fn burden(&self, path: PathId) -> (Duration, usize) {
        let most = self.known_burden(path).map_or(0.0, |burden| burden.most);
        (Duration::from_secs_f64(self.wait_for(path)), most as usize)
    }

    /// That time in seconds.
    pub(crate) fn wait_for(&self, path: PathId) -> f64 {
        self.known_burden(path).map_or(0.0, |burden| (burden.waited / burden.carried).min(LONGEST))
    }

    fn known_burden(&self, path: PathId) -> Option<&Burden> {
        let burden = self.burdens.as_ref().and_then(|burdens| burdens.paths.get(path.index()));
        burden.filter(|burden| burden.carried > 0.0)
    }

    /// Bytes that arrived early and are kept, by either side: of what the sender keeps, all that is neither in flight nor
    /// assigned, and what is promised.
    pub(crate) fn held_early(&self) -> usize {
        let early = self.held - self.flight - self.assigned();
        debug_assert_eq!(
            early,
            (0..).map(PathId).zip(&self.loads).map(|(path, _)| self.early_on(path)).sum()
        );
        early
    }
}

impl PathLoad {
    /// New data sent, in chunks of the kind `carrier`.
    fn sent(&self, carrier: Carrier) -> u64 {
        self.history.bytes_sent + self.history.chunks_sent * carrier.header_len() as u64
    }
}

/// Burdens are those of the last half to whole of so many bytes of a path: some hundred full packets.
const MEMORY: f64 = 512.0 * 1024.0;
/// What is older counts half: a path that rests is soon judged by what it is tried with.
const HALF_LIFE: Duration = Duration::from_secs(10);
/// The part of what the others carry that trials may cost.
const TRIAL_PART: f64 = 0.01;
/// Seconds; more would change nothing.
const LONGEST: f64 = 1000.0;
