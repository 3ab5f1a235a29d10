//! Which paths rest, because the others bring more without them: `transmission` knows what a path has made others miss,
//! `paths` what they could carry. A path that rests carries no new data but for a trial now and then; what goes again, and
//! control chunks, it does carry.

use std::time::Duration;

use tresse_policy::engine::shares::{Claim, shortest_hold};
use tresse_policy::{Instant, PathId};

use super::Association;
use crate::config::BufferShares;
use crate::coverage::Mechanism;
use crate::interface::stats::Limit;

impl Association {
    /// A path that costs the others more than it brings claims nothing; answers whether there is one. The one that
    /// holds buffer for the shortest time never rests, and none that streams are bound to: nobody could carry them.
    pub(super) fn rest_dear_paths(&self, claims: &mut [Claim]) -> bool {
        // Mostly no path costs the others anything.
        if self.outbound.is_mapped() || !self.has_dear_path() {
            return false;
        }
        let best = shortest_hold(claims);
        for (position, claim) in claims.iter_mut().enumerate() {
            claim.rests = claim.need > 0 && best != Some(position) && self.is_dear(PathId(position as u8));
            if claim.rests {
                claim.need = 0;
            }
        }
        claims.iter().any(|claim| claim.rests)
    }

    /// Whether any path makes others miss more than it may.
    pub(super) fn has_dear_path(&self) -> bool {
        self.path_ids().any(|path| self.is_dear(path))
    }

    fn is_dear(&self, path: PathId) -> bool {
        let price = self.transmission.price(path);
        price > 0.0 && price > self.dearest(path)
    }

    /// How many bytes `path` may make others miss for each of its own. Where others lose it can carry copies when it rests, and
    /// so brings something all the same.
    fn dearest(&self, path: PathId) -> f64 {
        if self.could_carry_copies(path) { DEAR_BESIDE_COPIES } else { DEAR }
    }

    /// A path whose share is less than a packet rests too: with so little under way every loss would have to wait for a
    /// timer. Now and then a path that rests is tried, as it may have become better. The best one never rests: when
    /// even that holds more than `buffer`, nobody has anything to gain by its silence.
    pub(super) fn rest_or_try(
        &mut self,
        now: Instant,
        buffer: usize,
        claims: &[Claim],
        shares: &mut [usize],
    ) {
        let packet = self.paths.smallest_chunk();
        let best = shortest_hold(claims);
        for ((path, share), claim) in (0..).map(PathId).zip(shares).zip(claims) {
            if *share >= packet {
                continue;
            }
            let usable = claim.need > 0 || claim.rests;
            *share = if best == Some(path.index()) {
                claim.need.min(buffer).max(1)
            } else if !usable || self.outbound.is_mapped() {
                (*share).max(1)
            } else {
                self.counters.coverage.note(Mechanism::PathRested);
                let due = self.is_trial_due(now, path, claim, best.map(|best| PathId(best as u8)));
                if due {
                    self.transmission.begin_trial(path, packet);
                }
                usize::from(due)
            }
        }
    }

    /// Whether `path`, which rests, is to be tried. Copies tell of its losses without a trial: while it carries some, it is not
    /// tried soon if it loses more than the `best` path. It would be taken for a good one until the next loss.
    fn is_trial_due(&self, now: Instant, path: PathId, claim: &Claim, best: Option<PathId>) -> bool {
        let pause = claim.rtt * TRIAL_ROUND_TRIPS;
        let mut silent = now.since(self.paths.get(path).last_data());
        let mut judged = false;
        if self.transmission.mends_by_copies() {
            judged = silent < pause && best.is_some_and(|best| self.paths.loss(path) > self.paths.loss(best));
            silent = self.transmission.silence(path, now);
        }
        let affordable = || self.transmission.can_afford(path, self.paths.smallest_chunk());
        silent >= pause && (silent >= LONGEST_REST || !judged && affordable())
    }

    /// Notes what the other paths could carry while they wait for one path's late chunk behind a full buffer: what fills them
    /// but for what they do carry, which is under way. To be called when nothing more can be sent.
    pub(super) fn note_missed(&mut self) {
        if !self.config.paths_rest || self.config.buffer_shares == BufferShares::Equal {
            return;
        }
        let Some((culprit, held)) = self.transmission.waits_for() else { return };
        let packet = self.paths.smallest_chunk();
        // Bytes a second; seconds.
        let (mut rate, mut shortest) = (0.0, f64::INFINITY);
        for path in self.path_ids().filter(|&path| path != culprit) {
            let flight = self.transmission.flight_on(path);
            let claim = self.paths.claim(path, flight);
            if claim.need == 0 || claim.rtt.is_zero() {
                continue;
            }
            let rtt = claim.rtt.as_secs_f64();
            shortest = shortest.min(rtt);
            let kept = || matches!(self.limit_of(path), Limit::ReceiveBuffer | Limit::SendBuffer);
            if flight + packet <= claim.need && kept() {
                rate += (claim.need - flight) as f64 / rtt;
            }
        }
        // The room of what waits would have carried as much in each round trip.
        self.transmission.note_missing(rate.min(held as f64 / shortest));
    }
}

/// A path rests that makes others miss more bytes than so many times its own.
const DEAR: f64 = 1.0;
/// The same where it could carry copies instead. Beside a path that loses as much, a new packet costs what it makes others
/// miss, and twice that for the copy whose place it takes, which would have mended one of the other's losses.
const DEAR_BESIDE_COPIES: f64 = 1.0 / 3.0;
/// A path that rests is tried with a packet after so many of its round trips, at the earliest.
const TRIAL_ROUND_TRIPS: u32 = 16;
/// And after this, whatever it costs: nothing else tells that it has become better.
const LONGEST_REST: Duration = Duration::from_secs(10);
