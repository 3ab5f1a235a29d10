//! Duplicates of chunks on other paths: where the path scheduler wants them everywhere, or where a full buffer keeps a path
//! from new data and the sharing policy wants them. `transmission` says what has not had its turn on a path, and writes it.

use tresse_policy::sharing::{Duplication, Moment, PathSample, is_short};
use tresse_policy::{Instant, PathId};
use tresse_wire::PacketWriter;

use super::Association;
use crate::coverage::Mechanism;
use crate::interface::stats::Limit;
use crate::transmission::{Candidate, Extent, Trip};

impl Association {
    /// A path on which a copy may leave now, before new data.
    pub(super) fn path_with_copy(&mut self) -> Option<PathId> {
        if !self.transmission.copies_everything() {
            return None;
        }
        self.path_ids().find(|&path| {
            self.seek_copy(path);
            self.may_copy(path)
        })
    }

    /// A path that no new data may leave on, because a buffer is full, and that has room for a duplicate.
    pub(super) fn path_with_blocked_copy(&mut self, now: Instant) -> Option<PathId> {
        // Asked whenever nothing else may leave, and mostly the buffers are large.
        if !(self.transmission.is_copying() || self.has_short_buffer()) {
            return None;
        }
        let samples = self.take_samples();
        let path = self.choose_for_duplicate(now, &samples);
        self.workspace.get().samples = samples;
        path
    }

    fn choose_for_duplicate(&mut self, now: Instant, samples: &[PathSample]) -> Option<PathId> {
        let copying = self.transmission.is_copying();
        let duplication = self.duplication(samples);
        if !self.path_ids().any(|path| duplication.is_possible_on(path)) {
            if copying {
                self.transmission.stop_copying();
            }
            return None;
        }
        if !copying {
            self.transmission.start_copying(Extent::Chosen);
        }
        self.path_ids().find(|&path| {
            self.seek_blocked_copy(now, path, samples);
            self.may_copy(path) && self.is_duplicated_now(now, path, samples)
        })
    }

    /// Whether the chunk whose turn it is on `path` may be copied there, as far as others and the path's window go.
    pub(super) fn may_copy(&self, path: PathId) -> bool {
        self.transmission.is_copying()
            && self.paths.may_carry_new_data(path)
            && self.transmission.may_copy(path, self.paths.window(path).gate())
            && self.burst_limit(path).is_none()
    }

    /// Whether it is to be duplicated there now: always where everything is. Else while a buffer keeps new data from the
    /// path, and while it is not full: what is more would wait in its queue.
    pub(super) fn is_copied_now(&mut self, now: Instant, path: PathId) -> bool {
        if self.transmission.copies_everything() {
            return true;
        }
        let samples = self.take_samples();
        let copied = self.is_duplicated_now(now, path, &samples);
        self.workspace.get().samples = samples;
        copied
    }

    fn is_duplicated_now(&self, now: Instant, path: PathId, samples: &[PathSample]) -> bool {
        let Some(Candidate { sent_at, from, .. }) = self.transmission.next_candidate(path) else {
            return false;
        };
        let duplication = self.duplication(samples);
        duplication.moment(now.since(sent_at), from, path) == Moment::Right
            && duplication.is_wide(path)
            && duplication.finds_no_queue_on(path)
            && matches!(self.may_send_new(path), Err(Limit::ReceiveBuffer | Limit::SendBuffer))
            && self.leaves_room(path, samples)
    }

    /// Whether a duplicate on `path` leaves the windows room for all that could follow at once, if all that is blocked
    /// were delivered now. A suspended path carries nothing else anyway.
    fn leaves_room(&self, path: PathId, samples: &[PathSample]) -> bool {
        if self.transmission.suspended_for(path).is_some() {
            return true;
        }
        let usable = samples.iter().filter(|sample| sample.carries_new_data);
        let wanted = self.transmission.whole_buffer().saturating_sub(self.transmission.flight());
        usable.map(|sample| sample.room).sum::<usize>() > wanted
    }

    /// Turns to what `path` is to carry next of what is under way elsewhere.
    fn seek_copy(&mut self, path: PathId) {
        while let Some(candidate) = self.transmission.copy_candidate(path)
            && !self.outbound.may_use(candidate.stream, path)
        {
            self.transmission.skip_copy(path);
        }
    }

    /// The same among what is worth a duplicate and not too late for one. What was sent again is not duplicated: nobody could
    /// tell which sending is acknowledged.
    fn seek_blocked_copy(&mut self, now: Instant, path: PathId, samples: &[PathSample]) {
        let room =
            self.paths.get(path).pmdcs().saturating_sub(self.auth.overhead() + self.protection.overhead());
        while let Some(candidate) = self.transmission.copy_candidate(path) {
            let duplication = self.duplication(samples);
            let Candidate { from, bytes, sent_at, fresh, stream } = candidate;
            if fresh
                && bytes <= room
                && duplication.is_worth(from)
                && duplication.moment(now.since(sent_at), from, path) != Moment::TooLate
                && self.outbound.may_use(stream, path)
            {
                break;
            }
            self.transmission.skip_copy(path);
        }
    }

    fn duplication<'a>(&'a self, samples: &'a [PathSample]) -> Duplication<'a> {
        self.sharing.duplication(self.config.sharing(), self.situation(samples))
    }

    /// Whether duplicates are wanted while a buffer keeps new data back, and it is so short that they pay.
    fn has_short_buffer(&self) -> bool {
        self.config.sharing().duplicates
            && self.paths.len() > 1
            && is_short(self.transmission.whole_buffer(), self.full_chunk())
    }

    /// Writes copies that may leave on `path`; answers whether there were any.
    pub(super) fn write_copies(&mut self, now: Instant, path: PathId, writer: &mut PacketWriter<'_>) -> bool {
        let carrier = self.capabilities.carrier();
        let everything = self.transmission.copies_everything();
        let mut any = false;
        while let Some(len) = self.transmission.next_copy(path)
            && writer.room() >= len
            && self.is_copied_now(now, path)
            && let Some(data) = self.transmission.send_copy(now, path)
        {
            any |= data.write(carrier, writer).is_ok();
            if everything {
                self.seek_copy(path);
            } else {
                self.counters.coverage.note(Mechanism::CopiedWhenBlocked);
                let samples = self.take_samples();
                self.seek_blocked_copy(now, path, &samples);
                self.workspace.get().samples = samples;
            }
        }
        any
    }

    /// Before an acknowledgement is processed: how long each path takes to answer says which of several sendings it is for.
    pub(super) fn tell_trips(&mut self) {
        if self.transmission.is_copying() {
            for path in self.path_ids() {
                let (shortest, usual) = (self.paths.shortest_rtt(path), self.paths.get(path).srtt());
                self.transmission.tell_trip(path, Trip { shortest, usual });
            }
        }
    }
}
