//! Queues of streams, linked through the table of their states: a stream is added at the end and removed from any
//! position in constant time.
//!
//! The caller must keep each stream in at most one queue of a table.

use tresse_wire::StreamId;

use crate::stream_table::StreamTable;

/// The state of a stream that can be in a queue.
pub(super) trait Linked: Default {
    fn link(&mut self) -> &mut Link;
}

/// The neighbours of a stream in its queue, which is a circular list.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Link {
    before: StreamId,
    after: StreamId,
}

/// A queue: the first stream of its circular list.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct List {
    front: Option<StreamId>,
}

impl List {
    pub(super) fn front(&self) -> Option<StreamId> {
        self.front
    }

    pub(super) fn is_empty(&self) -> bool {
        self.front.is_none()
    }

    pub(super) fn push_back<T: Linked>(&mut self, table: &mut StreamTable<T>, stream: StreamId) {
        let Some(front) = self.front else {
            *table.entry(stream).link() = Link { before: stream, after: stream };
            self.front = Some(stream);
            return;
        };
        let back = std::mem::replace(&mut table.entry(front).link().before, stream);
        table.entry(back).link().after = stream;
        *table.entry(stream).link() = Link { before: back, after: front };
    }

    pub(super) fn remove<T: Linked>(&mut self, table: &mut StreamTable<T>, stream: StreamId) {
        let Link { before, after } = *table.entry(stream).link();
        if after == stream {
            self.front = None;
            return;
        }
        table.entry(before).link().after = after;
        table.entry(after).link().before = before;
        if self.front == Some(stream) {
            self.front = Some(after);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Linked for Link {
        fn link(&mut self) -> &mut Link {
            self
        }
    }

    fn order(list: List, table: &mut StreamTable<Link>) -> Vec<u16> {
        let mut list = list;
        let mut order = Vec::new();
        while let Some(stream) = list.front() {
            order.push(stream.0);
            list.remove(table, stream);
        }
        order
    }

    fn queue(streams: &[u16]) -> (List, StreamTable<Link>) {
        let (mut list, mut table) = (List::default(), StreamTable::default());
        for &stream in streams {
            list.push_back(&mut table, StreamId(stream));
        }
        (list, table)
    }

    #[test]
    fn streams_keep_the_order_in_which_they_joined() {
        let (list, mut table) = queue(&[5, 0, 65_535, 7]);
        assert_eq!(order(list, &mut table), [5, 0, 65_535, 7]);
    }

    #[test]
    fn any_stream_can_leave() {
        for (leaver, rest) in [(5, [0, 9]), (0, [5, 9]), (9, [5, 0])] {
            let (mut list, mut table) = queue(&[5, 0, 9]);
            list.remove(&mut table, StreamId(leaver));
            assert_eq!(order(list, &mut table), rest);
        }
        let (mut list, mut table) = queue(&[3]);
        list.remove(&mut table, StreamId(3));
        assert!(list.is_empty());
    }
}
