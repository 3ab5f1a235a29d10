//! Queues of streams threaded through one table: a stream joins and leaves in constant time,
//! wherever it stands.
//!
//! Who uses them sees to it that a stream stands in one queue of a table at a time.

use tresse_wire::StreamId;

use crate::stream_table::StreamTable;

/// The neighbours of every stream in its queue. Each queue is a circle.
#[derive(Debug, Default)]
pub(super) struct Links(StreamTable<Link>);

#[derive(Copy, Clone, Debug, Default)]
struct Link {
    before: StreamId,
    after: StreamId,
}

/// A queue: where its circle begins.
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

    pub(super) fn push_back(&mut self, links: &mut Links, stream: StreamId) {
        let Some(front) = self.front else {
            *links.0.entry(stream) = Link { before: stream, after: stream };
            self.front = Some(stream);
            return;
        };
        let back = std::mem::replace(&mut links.0.entry(front).before, stream);
        links.0.entry(back).after = stream;
        *links.0.entry(stream) = Link { before: back, after: front };
    }

    pub(super) fn remove(&mut self, links: &mut Links, stream: StreamId) {
        let Link { before, after } = *links.0.entry(stream);
        if after == stream {
            self.front = None;
            return;
        }
        links.0.entry(before).after = after;
        links.0.entry(after).before = before;
        if self.front == Some(stream) {
            self.front = Some(after);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(list: List, links: &mut Links) -> Vec<u16> {
        let mut list = list;
        let mut order = Vec::new();
        while let Some(stream) = list.front() {
            order.push(stream.0);
            list.remove(links, stream);
        }
        order
    }

    fn queue(streams: &[u16]) -> (List, Links) {
        let (mut list, mut links) = (List::default(), Links::default());
        for &stream in streams {
            list.push_back(&mut links, StreamId(stream));
        }
        (list, links)
    }

    #[test]
    fn streams_keep_the_order_in_which_they_joined() {
        let (list, mut links) = queue(&[5, 0, 65_535, 7]);
        assert_eq!(order(list, &mut links), [5, 0, 65_535, 7]);
    }

    #[test]
    fn any_stream_can_leave() {
        for (leaver, rest) in [(5, [0, 9]), (0, [5, 9]), (9, [5, 0])] {
            let (mut list, mut links) = queue(&[5, 0, 9]);
            list.remove(&mut links, StreamId(leaver));
            assert_eq!(order(list, &mut links), rest);
        }
        let (mut list, mut links) = queue(&[3]);
        list.remove(&mut links, StreamId(3));
        assert!(list.is_empty());
    }
}
