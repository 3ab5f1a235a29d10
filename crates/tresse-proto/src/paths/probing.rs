//! Path MTU discovery over the set of paths: its start, the contents of probes, and the payload of chunks.

use rand_chacha::ChaCha12Rng;
use rand_core::Rng;
use tresse_policy::{Instant, PathId, PathState};

use super::heartbeat::{HEARTBEAT_INFO_LEN, HeartbeatInfo};
use super::{Path, Paths};

impl Paths {
    /// Notes that larger packets would be useful, because a full one was sent. All paths are searched, since chunks are cut for
    /// the smallest one. Associations without bulk data send no probes.
    #[cold]
    pub(super) fn want_mtu_search(&mut self) {
        for path in &mut self.paths {
            path.mtu.want();
        }
    }

    /// Begins the wanted searches, because data was acknowledged: the peer is established, too, and accepts probes. An earlier
    /// probe could be lost at a peer that is not, and would show nothing.
    #[cold]
    pub(super) fn begin_mtu_search(&mut self) {
        self.quiet_until.set(None);
        for path in &mut self.paths {
            path.mtu.start();
        }
    }

    /// Ends the search, because the peer does not accept probes. The sizes found so far stay in use.
    pub(crate) fn end_mtu_search(&mut self) {
        self.mtu_search_over = true;
    }

    /// Notes that a packet had no room for all waiting data, even where its chunks are short: larger packets would be useful.
    #[inline]
    pub(crate) fn on_more_waiting(&mut self, id: PathId) {
        if self.get(id).mtu.is_resting() {
            self.want_mtu_search();
        }
    }

    /// Returns the Heartbeat Info of a probe that is sent now, and the length of the SCTP packet that the probe fills.
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

    /// Applies a router's report that it forwards no IP packets of more than `size` bytes on the path.
    pub(crate) fn on_packet_too_big(&mut self, id: PathId, now: Instant, size: usize) {
        if self.path_mut(id).mtu.on_too_big(now, size) {
            self.refresh_payload(id);
        }
    }

    /// Returns the time at which the search on a path continues. No probe is sent on a path that is not active, but a probe in
    /// flight still times out.
    pub(super) fn mtu_due(&self, path: &Path) -> Option<Instant> {
        let due = path.mtu.due()?;
        let rests = !self.probing
            || self.mtu_search_over
            || (due == Instant::ZERO && path.state() != PathState::Active);
        (!rests).then_some(due)
    }

    /// Recomputes the payload after a change of the packet size of the path, of its confirmation or of its membership.
    pub(super) fn refresh_payload(&mut self, id: PathId) {
        self.windows[id.index()].pmdcs = self.get(id).pmdcs();
        // An unconfirmed path carries no data yet, and its MTU has not been searched: it must not make all chunks small.
        let confirmed = |path: &&Path| path.health.confirmed();
        let payloads = |paths: &mut dyn Iterator<Item = &Path>| paths.map(Path::payload).min();
        let smallest = payloads(&mut self.living().filter(confirmed));
        let smallest = smallest.or_else(|| payloads(&mut self.living())).unwrap_or(0);
        self.smallest_payload = u16::try_from(smallest).unwrap_or(u16::MAX);
    }
}
