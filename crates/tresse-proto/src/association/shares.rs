//! Shares out the buffers between the paths, where their shares follow the paths, and tells an adaptive stream map
//! how the paths look: `paths` knows what fills each, `transmission` how much buffer there is, and `schedule` who gets
//! what.

use super::Association;
use crate::config::BufferShares;
use crate::path_id::PathId;
use crate::schedule::placement::Prospect;
use crate::schedule::shares::{Claim, allot};
use crate::tally::Mechanism;
use crate::time::Instant;

impl Association {
    /// To be called when an acknowledgement was processed, and when a path comes or goes.
    pub(super) fn share_buffers(&mut self, now: Instant) {
        let follows = self.config.buffer_shares == BufferShares::Paths;
        if self.paths.len() < 2 || !(follows || self.outbound.is_adaptive()) {
            return;
        }
        let mut claims = std::mem::take(&mut self.workspace.get().claims);
        claims.clear();
        if follows && self.config.paths_rest {
            self.transmission.weigh(now);
        }
        claims.extend(self.path_ids().map(|path| {
            let (burden, held) = self.transmission.burden(path);
            Claim { burden, held, ..self.paths.claim(path) }
        }));
        if follows && let Some((buffer, limit)) = self.transmission.shared_buffer() {
            let mut shares = std::mem::take(&mut self.workspace.get().shares);
            allot(&claims, buffer, &mut shares);
            if shares.windows(2).any(|pair| pair[0] != pair[1]) {
                self.counters.tally.note(Mechanism::SharedByPaths);
            }
            if self.config.paths_rest {
                self.rest_or_try(now, &claims, &mut shares);
            }
            self.transmission.share_out(&shares, limit);
            self.workspace.get().shares = shares;
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

    /// A path whose share is less than a packet rests: with so little under way every loss would have to wait for a
    /// timer. Now and then it is tried, as it may have become better.
    fn rest_or_try(&mut self, now: Instant, claims: &[Claim], shares: &mut [usize]) {
        let packet = self.paths.smallest_payload();
        for ((path, share), claim) in (0..).map(PathId).zip(shares).zip(claims) {
            if *share < packet && claim.need > 0 {
                let silent = now.since(self.paths.get(path).last_data());
                *share = usize::from(silent >= claim.rtt * TRIAL_ROUND_TRIPS);
                self.counters.tally.note(Mechanism::PathRested);
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
