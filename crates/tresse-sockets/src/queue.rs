//! Items that wait to be read from a socket, in the order of their arrival.
//!
//! Owns their order, and the bound on them. Data of an association has one item, and another one after each notification about the
//! association; the core keeps the messages themselves within the receive buffer. Notifications are kept here. A peer can cause any
//! number of some kinds, for instance by ERROR chunks, so they are bounded by the size of the receive buffer. RFC 6458 §6.1.10
//! guarantees them only while there is space in the receive buffer.

use std::collections::VecDeque;

use tresse_proto::AssociationId;

use crate::layout::{Fields, SocketName};
use crate::notify;

/// Item that waits to be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Item {
    /// Messages of this association.
    Data(AssociationId),
    Notification(Notification),
}

/// A notification, with data of its association, which may have ended when the notification is read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Notification {
    pub(crate) of: AssociationId,
    /// The association ID.
    pub(crate) number: i32,
    /// The peer's primary name.
    pub(crate) from: Option<SocketName>,
    pub(crate) bytes: Vec<u8>,
}

/// The turns of one association's data; each turn has an item in the queue. A turn ends at a notification about the association:
/// messages that arrived before the notification are read before it, later ones after it.
#[derive(Default)]
pub(crate) struct Turns {
    /// Messages and parts of messages that were read.
    read: u64,
    /// The number of messages read at the end of each turn that has an end.
    ends: VecDeque<u64>,
    /// True if a turn without an end follows.
    open: bool,
}

impl Turns {
    fn count(&self) -> usize {
        self.ends.len() + usize::from(self.open)
    }
}

/// Items that wait to be read.
///
/// A notification is dropped if there is no room for it: SCTP_ASSOC_CHANGE if the notifications fill the receive buffer, all others
/// if they fill half of it. So a program still learns which associations it has. SCTP_SEND_FAILED and SCTP_SEND_FAILED_EVENT are
/// never dropped: each returns a message of the program, whose memory counted in the send buffer before.
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

    /// Queues an item for the messages of an association that has none.
    pub(crate) fn push_data(&mut self, id: AssociationId, turns: &mut Turns) {
        self.items.push_back(Item::Data(id));
        turns.open = true;
    }

    /// Queues a notification, if it fits into `room` bytes, after the `unread` messages of its association that have arrived.
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

    /// Queues a notification, if it fits into `room` bytes, before all items but the first `behind` ones.
    pub(crate) fn push_first(&mut self, told: Notification, room: usize, behind: usize) {
        if self.admit(&told, room) {
            self.items.insert(behind.min(self.items.len()), Item::Notification(told));
        }
    }

    /// Counts the bytes of a notification; returns false if it is dropped.
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

    /// Removes the first item.
    pub(crate) fn pop_front(&mut self) {
        let Some(item) = self.items.pop_front() else { return };
        self.used -= cost_of(&item);
    }

    /// Notes that a message, or a part of one, was read. If the association has `more`, its item moves to the end of the queue. It
    /// stays if a notification about the association is queued, until the data before the notification has been read.
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

    /// Removes the items of the messages of an association.
    pub(crate) fn remove_data(&mut self, id: AssociationId, turns: &mut Turns) {
        for _ in 0..turns.count() {
            self.remove_turn(id);
        }
        turns.ends.clear();
        turns.open = false;
    }

    /// Removes the first of these items.
    fn remove_turn(&mut self, id: AssociationId) {
        if let Some(at) = self.items.iter().position(|item| *item == Item::Data(id)) {
            self.items.remove(at);
        }
    }

    /// Removes the items for which `is_of` is true, and returns them as a queue of their own.
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

/// Returns the bytes that a notification counts for, which include its item: many short notifications count as well.
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

    /// Returns two associations.
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
        // Reading a notification frees its room.
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
        // A notification that is queued first precedes all others, but does not interrupt one that is being read.
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
