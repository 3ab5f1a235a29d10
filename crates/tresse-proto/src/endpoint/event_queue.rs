//! Queue of events for applications, in the order in which they happened.

use std::collections::VecDeque;

use crate::interface::association_id::AssociationId;
use crate::interface::event::Event;

/// The queue. [`Event::Readable`], the most frequent event, uses no entry while it is the last one.
#[derive(Debug, Default)]
pub(super) struct EventQueue {
    queue: VecDeque<(AssociationId, Event)>,
    /// [`Event::Readable`] of this association follows the events in the queue.
    readable: Option<AssociationId>,
}

impl EventQueue {
    pub(super) fn push(&mut self, id: AssociationId, event: Event) {
        if let Some(earlier) = self.readable.take() {
            self.queue.push_back((earlier, Event::Readable));
        }
        self.queue.push_back((id, event));
    }

    /// Adds [`Event::Readable`].
    pub(super) fn push_readable(&mut self, id: AssociationId) {
        if let Some(earlier) = self.readable.replace(id) {
            self.queue.push_back((earlier, Event::Readable));
        }
    }

    pub(super) fn pop(&mut self) -> Option<(AssociationId, Event)> {
        match self.queue.pop_front() {
            None => self.readable.take().map(|id| (id, Event::Readable)),
            first => first,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn news_leave_in_order_wherever_something_to_read_stands_among_them() {
        let [one, other] = [1, 2].map(|slot| AssociationId { slot, generation: 0 });
        let mut news = EventQueue::default();
        news.push_readable(one);
        news.push(one, Event::Writable);
        news.push(other, Event::PeerShutdown);
        news.push_readable(one);
        news.push_readable(other);
        let expected = [
            (one, Event::Readable),
            (one, Event::Writable),
            (other, Event::PeerShutdown),
            (one, Event::Readable),
            (other, Event::Readable),
        ];
        assert_eq!(std::iter::from_fn(|| news.pop()).collect::<Vec<_>>(), expected);
        assert_eq!(news.pop(), None);
    }
}
