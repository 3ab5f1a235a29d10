//! Groups of an adaptive map, made from the classes of streams.
//!
//! One group for each path and class, latency-critical ones first, once any stream has a class; before that one for
//! each path. Decides neither paths nor order within a group.

use tresse_policy::{PathId, Registry, ScheduleError, StreamTable};
use tresse_wire::StreamId;

use super::Outbound;
use crate::config::{StreamClass, StreamClasses, StreamMap};

/// The classes of streams; there is one from the first class that is not bulk on.
pub(super) type Classes = Option<Box<StreamTable<StreamClass>>>;

/// The classes of the streams below `count`.
pub(super) fn initial(classes: &StreamClasses, count: u16) -> Classes {
    let mut table = StreamTable::default();
    let mut any = false;
    for &(stream, class) in classes.0.iter().filter(|(stream, _)| stream.0 < count) {
        *table.entry(stream) = class;
        any = true;
    }
    any.then(|| Box::new(table))
}

impl Outbound {
    /// Says what a stream is for; what is queued stays.
    ///
    /// # Errors
    /// A stream that was not negotiated, or a scheduler that cannot be built for the groups that this takes;
    /// nothing has changed then.
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
        let first = self.classes.is_none();
        let from = self.group_of(stream);
        *self.classes.get_or_insert_default().entry(stream) = class;
        if *self.map != StreamMap::Adaptive {
            return Ok(());
        }
        if first {
            self.regroup(registry).inspect_err(|_| self.classes = None)
        } else {
            self.move_stream(stream, from);
            Ok(())
        }
    }

    /// Purpose of a stream; `None` for one that was not negotiated.
    pub(crate) fn class(&self, stream: StreamId) -> Option<StreamClass> {
        (stream.0 < self.stream_count).then(|| self.class_of(stream))
    }

    pub(super) fn class_of(&self, stream: StreamId) -> StreamClass {
        self.classes.as_ref().and_then(|classes| classes.get(stream)).copied().unwrap_or_default()
    }

    /// Groups that an adaptive map makes for each path.
    pub(super) fn layers(&self) -> usize {
        if self.classes.is_some() { StreamClass::ALL.len() } else { 1 }
    }

    /// Returns whether a latency-critical stream has something for `path`, the one that it belongs to: that may exceed
    /// the path's share of a buffer.
    pub(crate) fn has_urgent_for(&self, path: PathId) -> bool {
        self.classes.is_some()
            && self.adaptive.is_some()
            && self.open.is_none_or(|stream| self.class_of(stream) == StreamClass::Latency)
            && self.groups.get(path.index()).is_some_and(|group| group.has_data_for(path))
    }
}

/// Returns whether a stream is latency-critical.
#[inline]
pub(crate) fn is_urgent(outbound: &Outbound, stream: StreamId) -> bool {
    outbound.classes.is_some() && outbound.class_of(stream) == StreamClass::Latency
}

/// The place of a class among the groups: the one that goes first is 0.
pub(super) fn rank(class: StreamClass) -> usize {
    class as usize
}
