//! Items that wait to be read from a socket, in the order in which they came.
//!
//! Owns their order, and the bound on them. Data of an association has one item, and another one behind each notification about
//! it: the core keeps the messages themselves within the receive buffer. Notifications are kept here, and a peer can cause as many as it likes of some, such as those of ERROR
//! chunks; so they have as much room again. RFC 6458 §6.1.10 promises them only as long as there is space in the receive buffer.

use std::collections::VecDeque;

use tresse_proto::AssociationId;

use crate::layout::Fields;
use crate::notify;
use crate::socket::{Item, Notification};

/// The turns of one association's data, each of which has an item in the queue. A turn ends where a notification about the
/// association comes next: what came before is read before it, and what came after it is read after it.
#[derive(Default)]
pub(crate) struct Turns {
    /// Messages and parts of messages that were read.
    read: u64,
    /// That number at the end of each turn that has one.
    ends: VecDeque<u64>,
    /// Behind these there is one without an end.
    open: bool,
}

impl Turns {
    fn count(&self) -> usize {
        self.ends.len() + usize::from(self.open)
    }
}

/// Items that wait to be read.
///
/// A notification for which there is no room is dropped, and those that wait stay: SCTP_ASSOC_CHANGE once they fill the receive
/// buffer, all others once they fill half of it, so that a program still hears which associations it has. SCTP_SEND_FAILED and
/// SCTP_SEND_FAILED_EVENT are never dropped: each returns a message that the program itself has sent, whose memory was in the send
/// buffer before.
#[derive(Default)]
pub(crate) struct Queue {
    items: VecDeque<Item>,
    /// Bytes of the notifications, except for those that are never dropped.
    used: usize,
    /// Notifications that were dropped.
    dropped: u64,
}

impl Queue {
    pub(crate) fn front(&self) -> Option<&Item> {
        self.items.front()
    }

    /// Queues the messages of an association that has none in the queue.
    pub(crate) fn push_data(&mut self, id: AssociationId, turns: &mut Turns) {
        self.items.push_back(Item::Data(id));
        turns.open = true;
    }

    /// Queues a notification, if `room` bytes hold it, behind the `unread` messages of its association that have come.
    pub(crate) fn push_notification(
        &mut self,
        told: Notification,
        room: usize,
        turns: &mut Turns,
        unread: usize,
    ) {
        if !self.admit(&told, room) {
            return;
        }
        let end = turns.read + unread as u64;
        if turns.open {
            turns.open = false;
            turns.ends.push_back(end);
        } else if turns.ends.back().is_some_and(|&last| last < end) {
            self.items.push_back(Item::Data(told.of));
            turns.ends.push_back(end);
        }
        self.items.push_back(Item::Notification(told));
    }

    /// Queues a notification that is read before everything else but the first `behind` items, if `room` bytes hold it.
    pub(crate) fn push_first(&mut self, told: Notification, room: usize, behind: usize) {
        if self.admit(&told, room) {
            self.items.insert(behind.min(self.items.len()), Item::Notification(told));
        }
    }

    /// Counts a notification; false if it is dropped.
    fn admit(&mut self, told: &Notification, room: usize) -> bool {
        let used = self.used + cost(told);
        let room = match kind(told) {
            notify::ASSOC_CHANGE => room,
            _ => room / 2,
        };
        if used > room && cost(told) > 0 {
            self.dropped += 1;
            return false;
        }
        self.used = used;
        true
    }

    /// Takes the first item out.
    pub(crate) fn pop_front(&mut self) {
        let Some(item) = self.items.pop_front() else { return };
        self.used -= cost_of(&item);
    }

    /// A message or a part of one was read. If there is `more` of the association, it waits until others have had their turn: all
    /// of those that wait, unless something about the association itself is among them.
    pub(crate) fn on_read(&mut self, id: AssociationId, turns: &mut Turns, more: bool) {
        turns.read += 1;
        if !more {
            self.remove_data(id, turns);
        } else if turns.ends.front().is_some_and(|&end| end <= turns.read) {
            turns.ends.pop_front();
            self.remove_turn(id);
            if turns.count() == 0 {
                self.push_data(id, turns);
            }
        } else if turns.ends.is_empty() && self.items.len() > 1 {
            self.remove_turn(id);
            self.items.push_back(Item::Data(id));
        }
    }

    /// Takes the items of the messages of an association out.
    pub(crate) fn remove_data(&mut self, id: AssociationId, turns: &mut Turns) {
        for _ in 0..turns.count() {
            self.remove_turn(id);
        }
        turns.ends.clear();
        turns.open = false;
    }

    /// Takes the first item of these out.
    fn remove_turn(&mut self, id: AssociationId) {
        if let Some(at) = self.items.iter().position(|item| *item == Item::Data(id)) {
            self.items.remove(at);
        }
    }

    /// Takes out the items for which `is_of` is true, as a queue of their own.
    pub(crate) fn split(&mut self, is_of: impl Fn(&Item) -> bool) -> Queue {
        let (own, rest): (VecDeque<Item>, VecDeque<Item>) =
            std::mem::take(&mut self.items).into_iter().partition(is_of);
        let used = own.iter().map(cost_of).sum();
        self.items = rest;
        self.used -= used;
        Queue { items: own, used, dropped: 0 }
    }
}

fn kind(told: &Notification) -> u16 {
    told.bytes.u16_at(0).unwrap_or_default()
}

/// Bytes that a notification counts for: as it is kept, so that many short ones count as well.
fn cost(told: &Notification) -> usize {
    match kind(told) {
        notify::SEND_FAILED | notify::SEND_FAILED_EVENT => 0,
        _ => size_of::<Item>() + told.bytes.len(),
    }
}

fn cost_of(item: &Item) -> usize {
    match item {
        Item::Data(_) => 0,
        Item::Notification(told) => cost(told),
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use tresse_proto::{AssociationConfig, Connect, Endpoint, EndpointConfig, Instant, StreamId};

    use super::*;
    use crate::notify::{Change, Failed};

    const ROOM: usize = 10_000;

    /// Two associations.
    fn ids() -> [AssociationId; 2] {
        let (settings, config) = (EndpointConfig::default(), AssociationConfig::default());
        let mut endpoint = Endpoint::new(settings, config.clone(), [0; 32]).expect("sound settings");
        let [here, there] = [[127, 0, 0, 1], [127, 0, 0, 2]].map(IpAddr::from);
        [7, 8].map(|port| {
            let connect = Connect::new(vec![here], vec![there], port, config.clone());
            endpoint.connect(Instant::from_nanos(0), connect).expect("sound settings")
        })
    }

    fn told(of: AssociationId, bytes: Vec<u8>) -> Notification {
        Notification { of, number: 3, from: None, bytes }
    }

    fn error(of: AssociationId) -> Notification {
        told(of, notify::remote_error(3, 1, &[0; 104]))
    }

    #[test]
    fn errors_of_the_peer_fill_half_and_changes_of_associations_the_rest() {
        let ([one, other], mut queue) = (ids(), Queue::default());
        for _ in 0..1000 {
            queue.push_notification(error(one), ROOM, &mut Turns::default(), 0);
        }
        let errors = queue.items.len();
        assert!(queue.used <= ROOM / 2 && queue.used + cost(&error(one)) > ROOM / 2);
        assert_eq!(queue.dropped, 1000 - errors as u64);
        let change = || told(other, notify::association_change(4, Change::new(notify::COMM_LOST, 0, 0), &[]));
        for _ in 0..1000 {
            queue.push_notification(change(), ROOM, &mut Turns::default(), 0);
        }
        assert!(queue.items.len() > errors && queue.used <= ROOM && queue.used + cost(&change()) > ROOM);
        // What is read makes room.
        while queue.front().is_some() {
            queue.pop_front();
        }
        assert_eq!(queue.used, 0);
        queue.push_notification(error(one), ROOM, &mut Turns::default(), 0);
        assert_eq!(queue.items.len(), 1);
    }

    #[test]
    fn messages_that_failed_are_told_whatever_waits() {
        let ([one, _], mut queue) = (ids(), Queue::default());
        let failed = Failed {
            error: 0,
            stream: StreamId(0),
            ppid: 0,
            context: 0,
            flags: 0,
            sent: false,
            data: vec![7; ROOM],
        };
        for _ in 0..100 {
            let event = notify::send_failed_event(3, &failed);
            queue.push_notification(told(one, event), ROOM, &mut Turns::default(), 0);
        }
        assert_eq!((queue.items.len(), queue.used, queue.dropped), (100, 0, 0));
    }

    #[test]
    fn what_a_peeled_off_association_takes_along_is_counted_there() {
        let ([one, other], mut queue) = (ids(), Queue::default());
        queue.push_notification(error(one), ROOM, &mut Turns::default(), 0);
        queue.push_notification(error(other), ROOM, &mut Turns::default(), 0);
        let all = queue.used;
        let own = queue.split(|item| matches!(item, Item::Notification(told) if told.of == other));
        assert_eq!((own.used, queue.used), (all / 2, all / 2));
    }

    /// Reads all of the queue: D for a message of `one`, d for one of another association, N for a notification.
    fn read(queue: &mut Queue, one: AssociationId, mut left: [(&mut Turns, usize); 2]) -> String {
        let mut text = String::new();
        while let Some(item) = queue.front().cloned() {
            if let Item::Data(of) = item {
                let (turns, unread) = &mut left[usize::from(of != one)];
                *unread -= 1;
                queue.on_read(of, turns, *unread > 0);
                text.push(if of == one { 'D' } else { 'd' });
            } else {
                queue.pop_front();
                text.push('N');
            }
        }
        text
    }

    #[test]
    fn notifications_stand_between_the_messages_before_and_after_them() {
        let ([one, other], mut queue) = (ids(), Queue::default());
        let (mut turns, mut of_other) = (Turns::default(), Turns::default());
        queue.push_data(one, &mut turns);
        queue.push_notification(error(one), ROOM, &mut turns, 2);
        queue.push_notification(error(one), ROOM, &mut turns, 2);
        queue.push_notification(error(one), ROOM, &mut turns, 3);
        queue.push_data(other, &mut of_other);
        assert_eq!(read(&mut queue, one, [(&mut turns, 5), (&mut of_other, 3)]), "DDNNDNdDdDd");
        assert_eq!((turns.count(), of_other.count()), (0, 0));
        // What is told first is told before all of that, but not within another notification.
        queue.push_data(one, &mut turns);
        queue.push_first(error(one), ROOM, 0);
        queue.push_first(error(other), ROOM, 1);
        assert!(matches!(queue.front(), Some(Item::Notification(told)) if told.of == one));
        assert_eq!(read(&mut queue, one, [(&mut turns, 1), (&mut of_other, 0)]), "NND");
    }

    #[test]
    fn messages_that_are_gone_take_their_turns_along() {
        let ([one, _], mut queue, mut turns) = (ids(), Queue::default(), Turns::default());
        queue.push_data(one, &mut turns);
        queue.push_notification(error(one), ROOM, &mut turns, 1);
        queue.push_notification(error(one), ROOM, &mut turns, 4);
        assert_eq!((queue.items.len(), turns.count()), (4, 2));
        queue.remove_data(one, &mut turns);
        assert_eq!((queue.items.len(), turns.count()), (2, 0));
    }
}
