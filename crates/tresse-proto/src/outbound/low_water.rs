//! Low-water marks of streams: an application is notified when the queue of a stream falls below its mark
//! (after draft-dreibholz-tsvwg-sctpsocket-sqinfo).
//!
//! Owns the marks and the pending notifications. Independent of the queues: their lengths are arguments.

use std::collections::VecDeque;

use tresse_policy::{ScheduleError, StreamTable};
use tresse_wire::StreamId;

use super::Outbound;

/// The low-water marks of an association.
#[derive(Debug, Default)]
pub(super) struct LowWater {
    marks: StreamTable<Option<LowWaterMark>>,
    /// Streams whose queue fell below their mark, in that order: those in the phase `Passed`.
    passed: VecDeque<StreamId>,
}

#[derive(Copy, Clone, Debug)]
struct LowWaterMark {
    bytes: usize,
    phase: Phase,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Phase {
    /// More data than the mark waits, or the queue was not checked yet.
    Above,
    /// The queue fell below the mark, and the application was not notified yet.
    Passed,
    /// The application was notified.
    Notified,
}

impl LowWater {
    fn set(&mut self, stream: StreamId, bytes: Option<usize>) {
        self.passed.retain(|&passed| passed != stream);
        *self.marks.entry(stream) = bytes.map(|bytes| LowWaterMark { bytes, phase: Phase::Above });
    }

    /// Compares the mark of `stream` with the `unsent` bytes that wait now.
    fn on_change(&mut self, stream: StreamId, unsent: usize) {
        let Some(Some(mark)) = self.marks.get_mut(stream) else { return };
        match mark.phase {
            Phase::Above if unsent <= mark.bytes => {
                mark.phase = Phase::Passed;
                self.passed.push_back(stream);
            }
            Phase::Notified if unsent > mark.bytes => mark.phase = Phase::Above,
            _ => {}
        }
    }

    /// Returns whether the application is to be notified of the stream now, and notes that it is. It is not if the queue was
    /// refilled.
    fn report(&mut self, stream: StreamId, unsent: usize) -> bool {
        let Some(Some(mark)) = self.marks.get_mut(stream) else { return false };
        let low = unsent <= mark.bytes;
        mark.phase = if low { Phase::Notified } else { Phase::Above };
        low
    }

    fn marked(&self) -> Vec<StreamId> {
        self.marks.iter().filter(|(_, mark)| mark.is_some()).map(|(stream, _)| stream).collect()
    }
}

impl Outbound {
    /// Sets the low-water mark of a stream in bytes; `None` removes the mark.
    ///
    /// # Errors
    /// The stream was not negotiated.
    pub(crate) fn set_low_water(
        &mut self,
        stream: StreamId,
        bytes: Option<usize>,
    ) -> Result<(), ScheduleError> {
        if stream.0 >= self.stream_count {
            return Err(ScheduleError::NoSuchStream(stream));
        }
        if bytes.is_some() || self.low_water.is_some() {
            self.low_water.get_or_insert_default().set(stream, bytes);
            self.gauge(stream);
        }
        Ok(())
    }

    /// Returns a stream whose queue fell below its mark, and the bytes that wait there; once for each time.
    pub(crate) fn pop_low(&mut self) -> Option<(StreamId, usize)> {
        loop {
            let stream = self.low_water.as_deref_mut()?.passed.pop_front()?;
            let unsent = self.unsent_on(stream);
            if self.low_water.as_deref_mut()?.report(stream, unsent) {
                return Some((stream, unsent));
            }
        }
    }

    /// Notes that the data waiting on `stream` has changed.
    #[inline]
    pub(super) fn gauge(&mut self, stream: StreamId) {
        if self.low_water.is_some() {
            self.compare_to_mark(stream);
        }
    }

    fn compare_to_mark(&mut self, stream: StreamId) {
        let unsent = self.unsent_on(stream);
        if let Some(low_water) = &mut self.low_water {
            low_water.on_change(stream, unsent);
        }
    }

    /// Takes over the marks of an earlier association, whose queues are gone.
    pub(super) fn keep_marks(&mut self, marks: Option<Box<LowWater>>) {
        let marked = marks.as_deref().map(LowWater::marked).unwrap_or_default();
        self.low_water = marks;
        marked.into_iter().for_each(|stream| self.gauge(stream));
    }
}
