//! Shares out the buffers between the paths, where their shares follow the paths, and tells an adaptive stream map
//! how the paths look: `paths` knows what fills each, `transmission` how much buffer there is, and `schedule` who gets
//! what.

use tresse_policy::engine::shares::{Claim, allot, most_needed, split};
use tresse_policy::maps::placement::Prospect;
use tresse_policy::{Instant, PathId};

use super::Association;
use crate::config::BufferShares;
use crate::coverage::Mechanism;
use crate::interface::stats::Limit;

impl Association {
    /// To be called when an acknowledgement was processed, and when a path comes or goes.
    pub(super) fn share_buffers(&mut self, now: Instant) {
        let follows = self.config.concurrent && self.config.buffer_shares != BufferShares::Equal;
        if self.paths.len() < 2 || !(follows || self.outbound.is_adaptive()) {
            return;
        }
        if follows && self.config.paths_rest {
            self.transmission.weigh(now);
        }
        if follows && !self.outbound.is_adaptive() && self.has_enough_for_all() {
            return self.transmission.share_equally();
        }
        let mut claims = std::mem::take(&mut self.workspace.get().claims);
        claims.clear();
        claims.extend(self.path_ids().map(|path| self.claim_of(path)));
        if follows && let Some((buffer, limit)) = self.transmission.shared_buffer() {
            let when_short = self.config.buffer_shares == BufferShares::WhenShort;
            let resting = self.config.paths_rest && self.rest_dear_paths(&mut claims);
            let whole = self.transmission.whole_buffer();
            let fits = when_short && claims.iter().map(Claim::cost).sum::<usize>() <= whole;
            let alike = claims.iter().all(|claim| claim.need <= buffer / claims.len());
            if fits && alike && !resting {
                self.transmission.share_equally();
            } else {
                let rule = if fits { split } else { allot };
                self.share_out(now, &claims, rule, buffer, limit);
            }
        }
        if self.outbound.is_adaptive() {
            let (buffer, packet) = (self.transmission.whole_buffer(), self.paths.smallest_chunk());
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
                    self.counters.coverage.note(Mechanism::PathCalmed);
                }
                self.paths.set_calm(path, calm);
            }
        }
        self.workspace.get().claims = claims;
    }

    /// Whether shares are equal already by what the paths claim at most. That takes less than the claims themselves.
    fn has_enough_for_all(&self) -> bool {
        let Some((buffer, _)) = self.transmission.shared_buffer() else { return false };
        let (paths, whole) = (self.paths.len(), self.transmission.whole_buffer());
        let need = |path| {
            let claim = self.paths.claim(path, self.transmission.flight_on(path));
            most_needed(&claim, self.transmission.wait_for(path), buffer / paths)
        };
        self.config.buffer_shares == BufferShares::WhenShort
            && self.path_ids().try_fold(whole, |left, path| left.checked_sub(need(path)?)).is_some()
            && !(self.config.paths_rest && self.has_dear_path())
    }

    fn share_out(
        &mut self,
        now: Instant,
        claims: &[Claim],
        rule: fn(&[Claim], usize, &mut Vec<usize>),
        buffer: usize,
        limit: Limit,
    ) {
        let mut shares = std::mem::take(&mut self.workspace.get().shares);
        rule(claims, buffer, &mut shares);
        if shares.windows(2).any(|pair| pair[0] != pair[1]) {
            self.counters.coverage.note(Mechanism::SharedByPaths);
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
}

/// What fills all paths that are faster than that of `claim`.
fn needed_by_faster(claims: &[Claim], claim: &Claim) -> usize {
    claims.iter().filter(|other| other.rtt < claim.rtt).map(|other| other.need).sum()
}

/// With fewer packets under way than these, a slower path gains less than what it makes wait costs.
const FOOTHOLD_PACKETS: usize = 4;
