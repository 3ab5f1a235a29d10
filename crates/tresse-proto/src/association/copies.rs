//! Copies of chunks on every path, where the path scheduler wants them: `paths` says how each path fares, `outbound` what
//! it may carry, and `transmission` what has not had its turn there.

use tresse_wire::PacketWriter;

use super::Association;
use crate::path_id::PathId;
use crate::time::Instant;
use crate::transmission::Trip;

impl Association {
    /// A path on which a copy may leave now.
    #[inline]
    pub(super) fn path_with_copy(&mut self) -> Option<PathId> {
        if !self.transmission.is_copying() {
            return None;
        }
        self.path_ids().find(|&path| {
            self.seek_copy(path);
            self.may_copy(path)
        })
    }

    #[inline]
    pub(super) fn may_copy(&self, path: PathId) -> bool {
        self.transmission.is_copying()
            && self.paths.may_carry_new_data(path)
            && self.transmission.may_copy(path, self.paths.window(path).cwnd)
            && self.bursts.allows(path)
    }

    /// Turns to what `path` is to carry next of what is under way elsewhere.
    fn seek_copy(&mut self, path: PathId) {
        while let Some(stream) = self.transmission.copy_candidate(path)
            && !self.outbound.may_use(stream, path)
        {
            self.transmission.skip_copy(path);
        }
    }

    /// Writes copies that may leave on `path`; answers whether there were any.
    pub(super) fn write_copies(&mut self, now: Instant, path: PathId, writer: &mut PacketWriter<'_>) -> bool {
        let carrier = self.capabilities.carrier();
        let mut any = false;
        while let Some(len) = self.transmission.next_copy(path)
            && writer.room() >= carrier.header_len() + len
            && let Some(data) = self.transmission.send_copy(now, path)
        {
            any |= data.write(carrier, writer).is_ok();
            self.seek_copy(path);
        }
        any
    }

    /// Before an acknowledgement is processed: how long each path takes to answer says which of several sendings it is for.
    #[inline]
    pub(super) fn tell_trips(&mut self) {
        if self.transmission.is_copying() {
            for path in self.path_ids() {
                let (shortest, usual) = (self.paths.shortest_rtt(path), self.paths.get(path).srtt());
                self.transmission.tell_trip(path, Trip { shortest, usual });
            }
        }
    }
}
