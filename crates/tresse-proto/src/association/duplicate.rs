//! Duplicates of chunks on other paths: for the path scheduler `redundant`, of short messages of latency-critical streams, or for
//! the sharing policy while a full buffer blocks new data on a path. `transmission` provides the chunks that a path has not
//! duplicated yet, and writes them.

use tresse_policy::sharing::{DuplicateTiming, Duplication, PathSample, is_short, moment};
use tresse_policy::{Instant, PathId};
use tresse_wire::PacketWriter;

use super::sender::Sender;
use super::sharing::{SharedBuffers, situation};
use crate::coverage::Mechanism;
use crate::interface::stats::Limit;
use crate::transmission::{Candidate, CopyScope};

/// Selection of the duplicates that may leave at one instant.
pub(super) struct Duplicates<'a> {
    pub(super) now: Instant,
    pub(super) sharing: &'a SharedBuffers,
    /// Samples of the paths, computed at first use.
    pub(super) samples: &'a mut Vec<PathSample>,
}

impl Duplicates<'_> {
    /// A path on which a duplicate may leave now, before new data.
    pub(super) fn path_before_new_data(&self, sender: &mut Sender) -> Option<PathId> {
        let copies = &sender.transmission.copies;
        if copies.is_of_everything() {
            sender.path_ids().find(|&path| {
                seek_any(sender, path);
                sender.may_copy(path)
            })
        } else if copies.is_of_latency() {
            let mut any = false;
            let path = sender.path_ids().find(|&path| {
                any |= self.seek_urgent(sender, path);
                sender.may_copy(path) && self.is_wanted_for_latency(sender, path)
            });
            if !any {
                sender.transmission.copies.stop();
            }
            path
        } else {
            None
        }
    }

    /// A path that has room for a duplicate while a full buffer blocks new data there.
    pub(super) fn path_when_blocked(&mut self, sender: &mut Sender) -> Option<PathId> {
        let copying = sender.transmission.copies.may_duplicate();
        // Called whenever nothing else may leave; in most cases the buffers are large.
        if !(copying || has_short_buffer(sender)) {
            return None;
        }
        sender.fill_samples(self.samples);
        let duplication = self.duplication(sender);
        if !sender.path_ids().any(|path| duplication.is_possible_on(path)) {
            if copying {
                sender.transmission.copies.stop();
            }
            return None;
        }
        if !copying {
            sender.transmission.start_copying(CopyScope::Chosen);
        }
        sender.path_ids().find(|&path| {
            self.seek(sender, path);
            sender.may_copy(path) && self.is_right_now(sender, path)
        })
    }

    /// Returns whether the next candidate for `path` is to be duplicated there now. If everything is duplicated: always. Of
    /// latency-critical messages: if no more data of the stream waits. Otherwise: while a full buffer blocks new data on the
    /// path, and the path is not full, so that the duplicate does not wait in its queue.
    pub(super) fn is_wanted(&mut self, sender: &Sender, path: PathId) -> bool {
        let copies = &sender.transmission.copies;
        if copies.is_of_everything() {
            true
        } else if copies.is_of_latency() {
            self.is_wanted_for_latency(sender, path)
        } else {
            sender.fill_samples(self.samples);
            self.is_right_now(sender, path)
        }
    }

    fn is_right_now(&self, sender: &Sender, path: PathId) -> bool {
        let Some(Candidate { sent_at, from, .. }) = sender.transmission.next_candidate(path) else {
            return false;
        };
        let duplication = self.duplication(sender);
        duplication.moment(self.now.since(sent_at), from, path) == DuplicateTiming::Right
            && duplication.is_wide(path)
            && duplication.finds_no_queue_on(path)
            && matches!(sender.may_send_new(path), Err(Limit::ReceiveBuffer | Limit::SendBuffer))
            && self.leaves_room(sender, path)
    }

    /// Returns whether the windows have room, beside a duplicate on `path`, for all new data that could be sent at once if the
    /// blocked data were delivered now. A suspended path carries no new data anyway.
    fn leaves_room(&self, sender: &Sender, path: PathId) -> bool {
        if sender.transmission.suspended_for(path).is_some() {
            return true;
        }
        let usable = self.samples.iter().filter(|sample| sample.carries_new_data);
        let wanted =
            sender.transmission.whole_buffer().saturating_sub(sender.transmission.outstanding.flight());
        usable.map(|sample| sample.room).sum::<usize>() > wanted
    }

    /// Advances to the next chunk that is worth a duplicate on `path` and not too late for one. Retransmitted chunks are not
    /// duplicated, because their acknowledgements could not be attributed.
    fn seek(&self, sender: &mut Sender, path: PathId) {
        let room = sender.paths.get(path).pmdcs().saturating_sub(sender.overhead());
        while let Some(candidate) = sender.transmission.copy_candidate(path) {
            let duplication = self.duplication(sender);
            let Candidate { from, bytes, sent_at, fresh, stream, .. } = candidate;
            if fresh
                && bytes <= room
                && duplication.is_worth(from)
                && duplication.moment(self.now.since(sent_at), from, path) != DuplicateTiming::TooLate
                && sender.outbound.may_use(stream, path)
            {
                break;
            }
            sender.transmission.copies.skip(path);
        }
    }

    /// Advances to a short message of a latency-critical stream that is worth a duplicate on `path`; returns whether there is one.
    fn seek_urgent(&self, sender: &mut Sender, path: PathId) -> bool {
        while let Some(candidate) = sender.transmission.copy_candidate(path) {
            if self.is_urgent(sender, path, candidate) {
                return true;
            }
            sender.transmission.copies.skip(path);
        }
        false
    }

    /// Returns whether the next chunk for `path` is to be duplicated there now. Another chunk may have become the next since
    /// [`seek_urgent`](Self::seek_urgent), and a stream that sends as much as it can would lose throughput by duplicates.
    fn is_wanted_for_latency(&self, sender: &Sender, path: PathId) -> bool {
        sender.transmission.next_candidate(path).is_some_and(|candidate| {
            self.is_urgent(sender, path, candidate) && sender.outbound.unsent_on(candidate.stream) == 0
        })
    }

    /// Returns whether a chunk is a short message of a latency-critical stream, whose duplicate on `path` can still be
    /// acknowledged before a retransmission.
    fn is_urgent(&self, sender: &Sender, path: PathId, candidate: Candidate) -> bool {
        let Candidate { stream, bytes, from, sent_at, fresh, whole } = candidate;
        let room = sender.paths.get(path).pmdcs().saturating_sub(sender.overhead());
        let srtt = |path| sender.paths.get(path).srtt();
        fresh
            && whole
            && bytes <= room
            && sender.outbound.classes.is_urgent(stream)
            && (sender.outbound.is_adaptive() || sender.outbound.may_use(stream, path))
            && moment(self.now.since(sent_at), srtt(from), srtt(path)) != DuplicateTiming::TooLate
    }

    fn duplication<'a>(&'a self, sender: &'a Sender) -> Duplication<'a> {
        self.sharing.0.duplication(sender.config.sharing(), situation(sender, self.samples))
    }

    /// Writes duplicates that may leave on `path`; returns whether there were any.
    pub(super) fn write(&mut self, sender: &mut Sender, path: PathId, writer: &mut PacketWriter<'_>) -> bool {
        let (everything, urgent) =
            (sender.transmission.copies.is_of_everything(), sender.transmission.copies.is_of_latency());
        let data_format = sender.data_format();
        let mut any = false;
        while let Some(len) = sender.transmission.next_copy(path)
            && writer.room() >= len
            && self.is_wanted(sender, path)
            && let Some(data) = sender.transmission.send_copy(self.now, path)
        {
            any |= data.write(data_format, writer).is_ok();
            if everything {
                seek_any(sender, path);
            } else if urgent {
                sender.coverage.note(Mechanism::CopiedForLatency);
                self.seek_urgent(sender, path);
            } else {
                sender.coverage.note(Mechanism::CopiedWhenBlocked);
                sender.fill_samples(self.samples);
                self.seek(sender, path);
            }
        }
        any
    }
}

/// Advances to the next chunk in flight on another path that `path` duplicates.
fn seek_any(sender: &mut Sender, path: PathId) {
    while let Some(candidate) = sender.transmission.copy_candidate(path)
        && !sender.outbound.may_use(candidate.stream, path)
    {
        sender.transmission.copies.skip(path);
    }
}

/// Returns whether the settings allow duplicates while a full buffer blocks new data, and the buffer is so short that they pay.
fn has_short_buffer(sender: &Sender) -> bool {
    sender.config.sharing().duplicates
        && sender.paths.len() > 1
        && is_short(sender.transmission.whole_buffer(), sender.full_chunk())
}
