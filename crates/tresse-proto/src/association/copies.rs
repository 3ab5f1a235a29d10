//! Copies of chunks on other paths, where the path scheduler wants them everywhere, or a full buffer keeps a path from
//! new data: `paths` says how each path fares, `outbound` what it may carry, `transmission` what has not had its turn
//! there, and `schedule` whether that is worth it.

use std::time::Duration;

use tresse_policy::engine::blocked_copies::{self, Moment};
use tresse_policy::{Instant, PathId};
use tresse_wire::PacketWriter;

use super::Association;
use crate::config::BlockedCopies;
use crate::coverage::Mechanism;
use crate::interface::stats::Limit;
use crate::transmission::{Candidate, Extent, Trip};

impl Association {
    /// A path on which a copy may leave now, before new data.
    #[inline]
    pub(super) fn path_with_copy(&mut self) -> Option<PathId> {
        if !self.transmission.copies_everything() {
            return None;
        }
        self.path_ids().find(|&path| {
            self.seek_copy(path);
            self.may_copy(path)
        })
    }

    /// A path that no new data may leave on, because a buffer is full, and that has room for a copy.
    #[inline]
    pub(super) fn path_with_blocked_copy(&mut self, now: Instant) -> Option<PathId> {
        let copying = self.transmission.is_copying();
        // Asked whenever nothing else may leave, and mostly the buffers are large.
        if !(copying || self.has_short_buffer()) {
            return None;
        }
        if !self.path_ids().any(|path| self.could_carry_copies(path)) {
            if copying {
                self.transmission.stop_copying();
            }
            return None;
        }
        if !copying {
            self.transmission.start_copying(Extent::Chosen);
        }
        self.path_ids().find(|&path| {
            self.seek_blocked_copy(now, path);
            self.may_copy(path) && self.is_copied_now(now, path)
        })
    }

    /// Whether the chunk whose turn it is on `path` may be copied there, as far as others and the path's window go.
    #[inline]
    pub(super) fn may_copy(&self, path: PathId) -> bool {
        self.transmission.is_copying()
            && self.paths.may_carry_new_data(path)
            && self.transmission.may_copy(path, self.paths.window(path).gate())
            && self.burst_allows(path)
    }

    /// Whether it is to be copied there now: always where everything is. Else while a buffer keeps new data from the
    /// path, and while it is not full: what is more would wait in its queue.
    pub(super) fn is_copied_now(&self, now: Instant, path: PathId) -> bool {
        if self.transmission.copies_everything() {
            return true;
        }
        let flight = self.transmission.flight_on(path);
        let candidate = self.transmission.next_candidate(path);
        let claim = self.paths.claim(path, flight);
        candidate.is_some_and(|candidate| self.moment_of(now, &candidate, path) == Moment::Right)
            && self.is_wide(path)
            && flight < claim.need
            && !blocked_copies::is_crowded(self.paths.get(path).srtt(), claim.rtt)
            && matches!(self.may_send_new(path), Err(Limit::ReceiveBuffer | Limit::SendBuffer))
            && self.is_room_to_spare(path)
    }

    /// Whether a copy on `path` leaves the windows room for all that could follow at once, if all that waits for others
    /// were delivered now. A path that rests carries nothing else anyway.
    fn is_room_to_spare(&self, path: PathId) -> bool {
        if self.transmission.rests(path) {
            return true;
        }
        let room = |path| self.paths.window(path).room(self.transmission.flight_on(path));
        let usable = self.path_ids().filter(|&path| self.paths.may_carry_new_data(path));
        let wanted = self.transmission.whole_buffer().saturating_sub(self.transmission.flight());
        usable.map(room).sum::<usize>() > wanted
    }

    /// Turns to what `path` is to carry next of what is under way elsewhere.
    fn seek_copy(&mut self, path: PathId) {
        while let Some(candidate) = self.transmission.copy_candidate(path)
            && !self.outbound.may_use(candidate.stream, path)
        {
            self.transmission.skip_copy(path);
        }
    }

    /// The same among what is worth a copy and not too late for one. What goes again is not copied: it could not be told
    /// what its acknowledgement is for.
    fn seek_blocked_copy(&mut self, now: Instant, path: PathId) {
        let room = self.paths.get(path).pmdcs().saturating_sub(self.auth.overhead());
        while let Some(candidate) = self.transmission.copy_candidate(path)
            && !(candidate.fresh
                && candidate.bytes <= room
                && self.is_worth_copies(candidate.from)
                && self.moment_of(now, &candidate, path) != Moment::TooLate
                && self.outbound.may_use(candidate.stream, path))
        {
            self.transmission.skip_copy(path);
        }
    }

    /// Whether `candidate` may be copied on `path`, as far as time goes.
    fn moment_of(&self, now: Instant, candidate: &Candidate, path: PathId) -> Moment {
        let srtt = |path| self.paths.get(path).srtt();
        blocked_copies::moment(now.since(candidate.sent_at), srtt(candidate.from), srtt(path))
    }

    /// Whether some other path loses so much, and takes so long, that copies of what it carries are worth it on `path`.
    pub(super) fn could_carry_copies(&self, path: PathId) -> bool {
        let srtt = |path| self.paths.get(path).srtt();
        let in_time =
            |from| blocked_copies::moment(Duration::ZERO, srtt(from), srtt(path)) != Moment::TooLate;
        self.has_short_buffer()
            && self.is_wide(path)
            && self.path_ids().any(|from| from != path && in_time(from) && self.is_worth_copies(from))
    }

    /// Whether the path has been losing as much as is worth copies of what it carries.
    fn is_worth_copies(&self, path: PathId) -> bool {
        let loss = self.paths.loss(path);
        let packets = || self.transmission.whole_buffer() / self.full_chunk().max(1);
        loss > 0.0 && blocked_copies::pays(loss, packets()) && self.is_wide(path)
    }

    /// Whether copies are wanted while a buffer keeps new data back, and it is so short that they pay.
    fn has_short_buffer(&self) -> bool {
        self.config.blocked_copies != BlockedCopies::Off
            && self.paths.len() > 1
            && self.transmission.whole_buffer() <= blocked_copies::MOST_PACKETS * self.full_chunk()
    }

    /// Whether the path alone could use half of the buffer: a narrow one brings little, and queues what it carries besides.
    /// What it claims may never have been measured; what its bursts tell goes before.
    fn is_wide(&self, path: PathId) -> bool {
        let width = self.paths.width(path, self.transmission.flight_on(path));
        2 * width >= self.transmission.whole_buffer()
    }

    /// Writes copies that may leave on `path`; answers whether there were any.
    pub(super) fn write_copies(&mut self, now: Instant, path: PathId, writer: &mut PacketWriter<'_>) -> bool {
        let carrier = self.capabilities.carrier();
        let everything = self.transmission.copies_everything();
        let mut any = false;
        while let Some(len) = self.transmission.next_copy(path)
            && writer.room() >= len
            && (everything || self.is_copied_now(now, path))
            && let Some(data) = self.transmission.send_copy(now, path)
        {
            any |= data.write(carrier, writer).is_ok();
            if everything {
                self.seek_copy(path);
            } else {
                self.counters.coverage.note(Mechanism::CopiedWhenBlocked);
                self.seek_blocked_copy(now, path);
            }
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
