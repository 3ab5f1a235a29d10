//! Shares out the buffers between the paths, where their shares follow the paths, and tells an adaptive stream map
//! how the paths look: `paths` knows what fills each, `transmission` how much buffer there is, and `schedule` who gets
//! what.

use super::Association;
use crate::config::BufferShares;
use crate::path_id::PathId;
use crate::schedule::placement::Prospect;
use crate::schedule::shares::{Claim, allot};
use crate::stats::Limit;
use crate::tally::Mechanism;
use crate::time::Instant;

impl Association {
    /// To be called when an acknowledgement was processed, and when a path comes or goes.
    pub(super) fn share_buffers(&mut self, now: Instant) {
        let follows = self.config.concurrent && self.config.buffer_shares != BufferShares::Equal;
        if self.paths.len() < 2 || !(follows || self.outbound.is_adaptive()) {
            return;
        }
        let mut claims = std::mem::take(&mut self.workspace.get().claims);
        claims.clear();
        if follows && self.config.paths_rest {
            self.transmission.weigh(now);
        }
        claims.extend(self.path_ids().map(|path| self.claim_of(path)));
        if follows && let Some((buffer, limit)) = self.transmission.shared_buffer() {
            let when_short = self.config.buffer_shares == BufferShares::WhenShort;
            if when_short && claims.iter().map(Claim::cost).sum::<usize>() <= buffer {
                self.transmission.share_equally();
            } else {
                self.share_out(now, &claims, buffer, limit);
            }
        }
        if self.outbound.is_adaptive() {
            let (buffer, packet) = (self.transmission.whole_buffer(), self.paths.smallest_payload());
            let prospects = (0..).map(PathId).zip(&claims).map(|(path, claim)| {
                let foothold = claim.need.min(FOOTHOLD_PACKETS * packet);
                let flight = self.transmission.flight_on(path);
                Prospect {
                    flight,
                    foothold,
                    rtt: claim.rtt,
                    lately: self.paths.get(path).srtt().unwrap_or_default().max(claim.rtt),
                    slack: buffer.saturating_sub(needed_by_faster(&claims, claim)),
                    usable: claim.need > 0,
                }
            });
            self.outbound.set_prospects(now, prospects);
            // What waits in a queue of one path is buffer that another one could use.
            let short = claims.iter().map(|claim| claim.need).sum::<usize>() > buffer;
            for path in self.path_ids() {
                let calm = short || self.outbound.wants_calm(path);
                if calm {
                    self.counters.tally.note(Mechanism::PathCalmed);
                }
                self.paths.set_calm(path, calm);
            }
        }
        self.workspace.get().claims = claims;
    }

    fn share_out(&mut self, now: Instant, claims: &[Claim], buffer: usize, limit: Limit) {
        let mut shares = std::mem::take(&mut self.workspace.get().shares);
        allot(claims, buffer, &mut shares);
        if shares.windows(2).any(|pair| pair[0] != pair[1]) {
            self.counters.tally.note(Mechanism::SharedByPaths);
        }
        if self.config.paths_rest {
            self.rest_or_try(now, buffer, claims, &mut shares);
        }
        self.transmission.share_out(&shares, limit);
        self.workspace.get().shares = shares;
    }

    fn claim_of(&self, path: PathId) -> Claim {
        let (burden, held) = self.transmission.burden(path);
        let flight = self.transmission.flight_on(path);
        let claim = Claim { burden, held, ..self.paths.claim(path, flight) };
        // Where a table binds streams to paths, one whose streams are silent claims nothing beside the others.
        let bound = self.outbound.is_mapped() && !self.outbound.is_adaptive() && !self.outbound.is_empty();
        if bound && !self.outbound.has_data_for(path) {
            return Claim { need: claim.need.min(flight), ..claim };
        }
        claim
    }

    /// A path whose share is less than a packet rests: with so little under way every loss would have to wait for a
    /// timer. Now and then it is tried, as it may have become better. The best one never rests: when even that holds
    /// more than `buffer`, nobody has anything to gain by its silence. Nor does one that has streams of its own.
    fn rest_or_try(&mut self, now: Instant, buffer: usize, claims: &[Claim], shares: &mut [usize]) {
        let packet = self.paths.smallest_payload();
        let usable = (0..).zip(claims).filter(|(_, claim)| claim.need > 0);
        let best = usable.min_by_key(|(_, claim)| claim.hold()).map(|(position, _)| position);
        for ((path, share), claim) in (0..).map(PathId).zip(shares).zip(claims) {
            if *share >= packet {
                continue;
            }
            *share = if best == Some(path.index()) {
                claim.need.min(buffer).max(1)
            } else if claim.need == 0 || self.outbound.is_mapped() {
                (*share).max(1)
            } else {
                self.counters.tally.note(Mechanism::PathRested);
                let silent = now.since(self.paths.get(path).last_data());
                usize::from(silent >= claim.rtt * TRIAL_ROUND_TRIPS)
            }
        }
    }
}

/// What fills all paths that are faster than that of `claim`.
fn needed_by_faster(claims: &[Claim], claim: &Claim) -> usize {
    claims.iter().filter(|other| other.rtt < claim.rtt).map(|other| other.need).sum()
}

/// A path that rests is tried with a packet after so many of its round trips.
const TRIAL_ROUND_TRIPS: u32 = 16;
/// With fewer packets under way than these, a slower path gains less than what it makes wait costs.
const FOOTHOLD_PACKETS: usize = 4;
