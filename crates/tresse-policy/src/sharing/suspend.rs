//! Suspension of paths that cost the others more than they bring, and trials of suspended paths.
//!
//! A suspended path carries no new data but for a trial now and then; retransmissions and control chunks it does carry.
//! Optimises throughput of ordered data behind short buffers. It loses where a path becomes better soon after it was
//! suspended: nothing tells but a trial.

use std::time::Duration;

use super::allocate::{self, Demand};
use super::hol_cost::HolCosts;
use super::situation::{PathSample, Situation};
use crate::path::PathId;
use crate::time::Instant;

/// Whether `path` makes others lose more than it may: more than it brings, or a third of that where it
/// `could_duplicate` their losses instead, and so brings something even while it is suspended.
pub(crate) fn costs_too_much(costs: &HolCosts, path: PathId, could_duplicate: impl FnOnce() -> bool) -> bool {
    let displaced = costs.displaced_by(path);
    displaced > 0.0 && displaced > if could_duplicate() { DEAR_BESIDE_DUPLICATES } else { DEAR }
}

/// Takes the demand of each path that `costs_too_much`, but not of the [best](allocate::best); answers whether there was one.
pub(crate) fn suspend(demands: &mut [Demand], costs_too_much: impl Fn(PathId) -> bool) -> bool {
    let best = allocate::best(demands);
    for (position, demand) in demands.iter_mut().enumerate() {
        demand.suspended = demand.bdp > 0 && best != Some(position) && costs_too_much(PathId(position as u8));
        if demand.suspended {
            demand.bdp = 0;
        }
    }
    demands.iter().any(|demand| demand.suspended)
}

/// Suspends paths with an allocation of less than a packet, too: with so little in flight every loss would have to wait
/// for a timer. The best one never is: when even that demands more than the `buffer` to allocate, nobody gains by its silence. Lets one
/// packet leave on each suspended path whose trial is due.
pub(crate) fn suspend_or_try(
    now: Instant,
    buffer: usize,
    situation: &Situation<'_>,
    demands: &[Demand],
    costs: &mut HolCosts,
    allocation: &mut [usize],
) {
    let best = allocate::best(demands);
    for ((sample, bytes), demand) in situation.paths.iter().zip(allocation).zip(demands) {
        if *bytes >= situation.packet {
            continue;
        }
        let usable = demand.bdp > 0 || demand.suspended;
        *bytes = if best == Some(sample.id.index()) {
            demand.bdp.min(buffer).max(1)
        } else if !usable || situation.bound {
            (*bytes).max(1)
        } else {
            let best = best.and_then(|best| situation.paths.get(best));
            let due = is_trial_due(now, situation, sample, demand, best, costs);
            if due {
                costs.begin_trial(sample.id, situation.packet);
            }
            usize::from(due)
        }
    }
}

/// Whether a suspended path is to be tried. Duplicates tell of its losses without a trial: while it carries some, it is
/// not tried soon if it loses more than the `best` path. It would be taken for a good one until the next loss.
fn is_trial_due(
    now: Instant,
    situation: &Situation<'_>,
    sample: &PathSample,
    demand: &Demand,
    best: Option<&PathSample>,
    costs: &HolCosts,
) -> bool {
    let pause = demand.min_rtt * TRIAL_ROUND_TRIPS;
    let mut silent = now.since(sample.last_data);
    let mut known_to_lose = false;
    if situation.duplicating {
        known_to_lose = silent < pause && best.is_some_and(|best| sample.loss > best.loss);
        silent = costs.silence(sample.id, now);
    }
    let affordable = || costs.affords_trial(sample.id, situation.packet);
    silent >= pause && (silent >= LONGEST_SUSPENSION || !known_to_lose && affordable())
}

/// Bytes that a path may keep others from sending for each of its own before it is suspended.
const DEAR: f64 = 1.0;
/// The same where it could carry duplicates instead. Beside a path that loses as much, a new packet costs what it displaces,
/// and twice that for the duplicate whose place it takes, which would have mended one of the other's losses.
const DEAR_BESIDE_DUPLICATES: f64 = 1.0 / 3.0;
/// Round trips of a suspended path before it is tried with a packet, at least.
const TRIAL_ROUND_TRIPS: u32 = 16;
/// After this it is tried whatever that costs: nothing else tells that it has become better.
const LONGEST_SUSPENSION: Duration = Duration::from_secs(10);
