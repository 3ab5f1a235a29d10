//! Groups of an adaptive map by the classes of streams.
//!
//! There is one group for each path and class, latency-critical ones first, once any stream has a class; before that there is
//! one for each path. This module decides neither paths nor the order within a group.

use tresse_policy::{PathId, Registry, ScheduleError, StreamTable};
use tresse_wire::StreamId;

use super::Outbound;
use crate::config::{StreamClass, StreamClasses, StreamMap};

/// The classes of streams; allocated with the first class that is not bulk.
#[derive(Default)]
pub(crate) struct Classes(Option<Box<StreamTable<StreamClass>>>);

impl Classes {
    /// Returns the classes of the streams below `count`.
    pub(super) fn new(classes: &StreamClasses, count: u16) -> Self {
        let mut initial = Classes::default();
        for &(stream, class) in classes.0.iter().filter(|(stream, _)| stream.0 < count) {
            initial.set(stream, class);
        }
        initial
    }

    /// Returns whether any stream has a class.
    #[inline]
    pub(super) fn are_used(&self) -> bool {
        self.0.is_some()
    }

    fn set(&mut self, stream: StreamId, class: StreamClass) {
        *self.0.get_or_insert_default().entry(stream) = class;
    }

    pub(super) fn of(&self, stream: StreamId) -> StreamClass {
        self.0.as_ref().and_then(|classes| classes.get(stream)).copied().unwrap_or_default()
    }

    /// Returns whether a stream is latency-critical.
    #[inline]
    pub(crate) fn is_urgent(&self, stream: StreamId) -> bool {
        self.are_used() && self.of(stream) == StreamClass::Latency
    }

    /// Returns the number of groups that an adaptive map has for each path.
    pub(super) fn layers(&self) -> usize {
        if self.are_used() { StreamClass::ALL.len() } else { 1 }
    }

    /// Returns the position of a stream's class among these groups; position 0 is served first.
    pub(super) fn layer_of(&self, stream: StreamId) -> usize {
        if self.are_used() { self.of(stream) as usize } else { 0 }
    }
}

impl Outbound {
    /// Sets the class of a stream; queued messages stay.
    ///
    /// # Errors
    /// The stream was not negotiated, or a scheduler cannot be built for the additional groups; nothing has changed then.
    pub(crate) fn set_class(
        &mut self,
        registry: &Registry,
        stream: StreamId,
        class: StreamClass,
    ) -> Result<(), ScheduleError> {
        let Some(old) = self.class(stream) else { return Err(ScheduleError::NoSuchStream(stream)) };
        if old == class {
            return Ok(());
        }
        let first = !self.classes.are_used();
        let from = self.group_of(stream);
        self.classes.set(stream, class);
        if *self.map != StreamMap::Adaptive {
            return Ok(());
        }
        if first {
            self.regroup(registry).inspect_err(|_| self.classes = Classes::default())
        } else {
            self.move_stream(stream, from);
            Ok(())
        }
    }

    /// Returns the class of a stream; `None` if the stream was not negotiated.
    pub(crate) fn class(&self, stream: StreamId) -> Option<StreamClass> {
        (stream.0 < self.stream_count).then(|| self.classes.of(stream))
    }

    /// Returns whether a latency-critical stream that belongs to `path` has data for it: this data may exceed the path's share
    /// of a buffer.
    pub(crate) fn has_urgent_for(&self, path: PathId) -> bool {
        self.classes.are_used()
            && self.adaptive.is_some()
            && self.open.is_none_or(|stream| self.classes.is_urgent(stream))
            && self.groups.get(path.index()).is_some_and(|group| group.has_data_for(path))
    }
}
