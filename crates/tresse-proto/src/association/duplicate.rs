//! Duplicates of chunks on other paths: for the path scheduler `redundant`, or of short messages of latency-critical streams.
//! `transmission` provides the chunks that a path has not duplicated yet, and writes them.

use tresse_policy::sharing::duplicate_saves_time;
use tresse_policy::{Instant, PathId};
use tresse_wire::PacketWriter;

use super::sender::Sender;
use crate::coverage::Mechanism;
use crate::transmission::Candidate;

/// Returns a path on which a duplicate may leave at `now`, before new data.
pub(super) fn path_for_duplicate(now: Instant, sender: &mut Sender) -> Option<PathId> {
    let copies = &sender.transmission.copies;
    if copies.is_of_everything() {
        sender.path_ids().find(|&path| {
            seek_any(sender, path);
            sender.may_copy(path)
        })
    } else if copies.is_of_latency() {
        let mut any = false;
        let path = sender.path_ids().find(|&path| {
            any |= seek_urgent(now, sender, path);
            sender.may_copy(path) && is_wanted_for_latency(now, sender, path)
        });
        if !any {
            sender.transmission.copies.stop();
        }
        path
    } else {
        None
    }
}

/// Returns whether the next candidate for `path` is to be duplicated there now. If everything is duplicated: always. Of
/// latency-critical messages: if no more data of the stream waits.
pub(super) fn is_wanted(now: Instant, sender: &Sender, path: PathId) -> bool {
    sender.transmission.copies.is_of_everything() || is_wanted_for_latency(now, sender, path)
}

/// Writes duplicates that may leave on `path`; returns whether there were any.
pub(super) fn write(now: Instant, sender: &mut Sender, path: PathId, writer: &mut PacketWriter<'_>) -> bool {
    let everything = sender.transmission.copies.is_of_everything();
    let data_format = sender.data_format();
    let mut any = false;
    while let Some(len) = sender.transmission.next_copy(path)
        && writer.room() >= len
        && is_wanted(now, sender, path)
        && let Some(data) = sender.transmission.send_copy(now, path)
    {
        any |= data.write(data_format, writer).is_ok();
        if everything {
            seek_any(sender, path);
        } else {
            sender.coverage.note(Mechanism::CopiedForLatency);
            seek_urgent(now, sender, path);
        }
    }
    any
}

/// Advances to the next chunk in flight on another path that `path` duplicates.
fn seek_any(sender: &mut Sender, path: PathId) {
    while let Some(candidate) = sender.transmission.copy_candidate(path)
        && !sender.outbound.may_use(candidate.stream, path)
    {
        sender.transmission.copies.skip(path);
    }
}

/// Advances to a short message of a latency-critical stream that is worth a duplicate on `path`; returns whether there is one.
fn seek_urgent(now: Instant, sender: &mut Sender, path: PathId) -> bool {
    while let Some(candidate) = sender.transmission.copy_candidate(path) {
        if is_urgent(now, sender, path, candidate) {
            return true;
        }
        sender.transmission.copies.skip(path);
    }
    false
}

/// Returns whether the next chunk for `path` is to be duplicated there now. Another chunk may have become the next since
/// [`seek_urgent`], and a stream that sends as much as it can would lose throughput by duplicates.
fn is_wanted_for_latency(now: Instant, sender: &Sender, path: PathId) -> bool {
    sender.transmission.next_candidate(path).is_some_and(|candidate| {
        is_urgent(now, sender, path, candidate) && sender.outbound.unsent_on(candidate.stream) == 0
    })
}

/// Returns whether a chunk is a short message of a latency-critical stream, whose duplicate on `path` can still be
/// acknowledged before a retransmission. Retransmitted chunks are not duplicated, because their acknowledgements could
/// not be attributed.
fn is_urgent(now: Instant, sender: &Sender, path: PathId, candidate: Candidate) -> bool {
    let Candidate { stream, bytes, from, sent_at, fresh, whole } = candidate;
    let room = sender.paths.get(path).pmdcs().saturating_sub(sender.overhead());
    let srtt = |path| sender.paths.get(path).srtt();
    fresh
        && whole
        && bytes <= room
        && sender.outbound.classes.is_urgent(stream)
        && (sender.outbound.is_adaptive() || sender.outbound.may_use(stream, path))
        && duplicate_saves_time(now.since(sent_at), srtt(from), srtt(path))
}
