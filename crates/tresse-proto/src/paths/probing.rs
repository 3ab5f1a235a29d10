//! Path MTU discovery over the set of paths: its start, the contents of probes, and the payload
//! of chunks.

use rand_chacha::ChaCha12Rng;
use rand_core::Rng;
use tresse_policy::{Instant, PathId, PathState};

use super::heartbeat::{HEARTBEAT_INFO_LEN, HeartbeatInfo};
use super::{Path, Paths};

impl Paths {
    /// A full packet was sent: larger ones are of use. All paths are searched, since chunks are cut for the
    /// smallest; associations without bulk data are spared the probes.
    #[cold]
    pub(super) fn want_mtu_search(&mut self) {
        for path in &mut self.paths {
            path.mtu.want();
        }
    }

    /// Data was acknowledged while a search was wanted: the peer has come to be established, too, and takes what is
    /// sent. A probe before that could be lost on one that is not, and would say nothing.
    #[cold]
    pub(super) fn begin_mtu_search(&mut self) {
        self.quiet_until.set(None);
        for path in &mut self.paths {
            path.mtu.start();
        }
    }

    /// The peer does not bear probes. What has been shown to pass stays in use.
    pub(crate) fn end_mtu_search(&mut self) {
        self.mtu_search_over = true;
    }

    /// A packet had no room for all that waits, however small its pieces: larger ones are of use.
    #[inline]
    pub(crate) fn on_more_waiting(&mut self, id: PathId) {
        if self.get(id).mtu.is_resting() {
            self.want_mtu_search();
        }
    }

    /// The information for a probe that leaves now, and the length of the SCTP packet that it has to fill.
    pub(crate) fn mtu_probe(
        &mut self,
        id: PathId,
        now: Instant,
        rng: &mut ChaCha12Rng,
    ) -> ([u8; HEARTBEAT_INFO_LEN], usize) {
        let nonce = rng.next_u64();
        let path = self.path_mut(id);
        let rto = path.rto();
        path.mtu.on_probe_sent(now, nonce, rto);
        let len = path.mtu.tried().saturating_sub(path.headers_len());
        (HeartbeatInfo { path: id, sent: now, nonce }.to_bytes(), len)
    }

    /// A router on the path forwards no IP packets of more than `size` bytes.
    pub(crate) fn on_packet_too_big(&mut self, id: PathId, now: Instant, size: usize) {
        if self.path_mut(id).mtu.on_too_big(now, size) {
            self.refresh_payload(id);
        }
    }

    /// Time at which the search on a path continues. It pauses on paths that are not in use, except for the end of a
    /// probe in flight.
    pub(super) fn mtu_due(&self, path: &Path) -> Option<Instant> {
        let due = path.mtu.due()?;
        let rests = !self.probing
            || self.mtu_search_over
            || (due == Instant::ZERO && path.state() != PathState::Active);
        (!rests).then_some(due)
    }

    /// Refreshes the payload after a change of what a packet of the path holds, of whether the path is confirmed, or of
    /// whether it is in use.
    pub(super) fn refresh_payload(&mut self, id: PathId) {
        self.windows[id.index()].pmdcs = self.get(id).pmdcs();
        // A path that carries no data yet, and has not been searched, is not to make everybody's chunks small.
        let confirmed = |path: &&Path| path.health.confirmed();
        let payloads = |paths: &mut dyn Iterator<Item = &Path>| paths.map(Path::payload).min();
        let smallest = payloads(&mut self.living().filter(confirmed));
        let smallest = smallest.or_else(|| payloads(&mut self.living())).unwrap_or(0);
        self.smallest_payload = u16::try_from(smallest).unwrap_or(u16::MAX);
    }
}
