//! Shares out the buffers between the paths, where their shares follow the paths: `paths` knows what fills each,
//! `transmission` how much buffer there is, and `schedule` who gets what.

use super::Association;
use crate::config::BufferShares;
use crate::schedule::shares::allot;

impl Association {
    /// To be called when an acknowledgement was processed, and when a path comes or goes.
    pub(super) fn share_buffers(&mut self) {
        if self.config.buffer_shares == BufferShares::Equal || self.paths.len() < 2 {
            return;
        }
        let Some((buffer, limit)) = self.transmission.shared_buffer() else { return };
        let scratch = self.workspace.get();
        let (mut claims, mut shares) =
            (std::mem::take(&mut scratch.claims), std::mem::take(&mut scratch.shares));
        claims.clear();
        claims.extend(self.path_ids().map(|path| self.paths.claim(path)));
        allot(&claims, buffer, &mut shares);
        self.transmission.share_out(&shares, limit);
        let scratch = self.workspace.get();
        (scratch.claims, scratch.shares) = (claims, shares);
    }
}
