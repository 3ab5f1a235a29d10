//! Items that wait to be read from a socket, in the order in which they came.
//!
//! Owns the bound on them. Of data there is one item for each association that has any: the core keeps the messages themselves
//! within the receive buffer. Notifications are kept here, and a peer can cause as many as it likes of some, such as those of ERROR
//! chunks; so they have as much room again. RFC 6458 §6.1.10 promises them only as long as there is space in the receive buffer.

use std::collections::VecDeque;

use tresse_proto::AssociationId;

use crate::layout::Fields;
use crate::notify;
use crate::socket::{Item, Notification};

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

    /// Queues the messages of an association.
    pub(crate) fn push_data(&mut self, id: AssociationId) {
        self.items.push_back(Item::Data(id));
    }

    /// Queues a notification, if `room` bytes hold it.
    pub(crate) fn push_notification(&mut self, told: Notification, room: usize) {
        let used = self.used + cost(&told);
        let room = match kind(&told) {
            notify::ASSOC_CHANGE => room,
            _ => room / 2,
        };
        if used > room && cost(&told) > 0 {
            self.dropped += 1;
            return;
        }
        self.used = used;
        self.items.push_back(Item::Notification(told));
    }

    /// Takes the first item out.
    pub(crate) fn pop_front(&mut self) {
        let Some(item) = self.items.pop_front() else { return };
        self.used -= cost_of(&item);
    }

    /// Takes the item of the messages of an association out.
    pub(crate) fn remove_data(&mut self, id: AssociationId) {
        if let Some(at) = self.items.iter().position(|item| *item == Item::Data(id)) {
            self.items.remove(at);
        }
    }

    /// Lets the next association have its turn, if nothing but messages of several waits.
    pub(crate) fn rotate_data(&mut self) {
        if self.items.len() > 1 && self.items.iter().all(|item| matches!(item, Item::Data(_))) {
            self.items.rotate_left(1);
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
            queue.push_notification(error(one), ROOM);
        }
        let errors = queue.items.len();
        assert!(queue.used <= ROOM / 2 && queue.used + cost(&error(one)) > ROOM / 2);
        assert_eq!(queue.dropped, 1000 - errors as u64);
        let change = || told(other, notify::association_change(4, Change::new(notify::COMM_LOST, 0, 0), &[]));
        for _ in 0..1000 {
            queue.push_notification(change(), ROOM);
        }
        assert!(queue.items.len() > errors && queue.used <= ROOM && queue.used + cost(&change()) > ROOM);
        queue.push_data(one);
        assert_eq!(queue.items.back(), Some(&Item::Data(one)));
        // What is read makes room.
        while queue.front().is_some() {
            queue.pop_front();
        }
        assert_eq!(queue.used, 0);
        queue.push_notification(error(one), ROOM);
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
            queue.push_notification(told(one, notify::send_failed_event(3, &failed)), ROOM);
        }
        assert_eq!((queue.items.len(), queue.used, queue.dropped), (100, 0, 0));
    }

    #[test]
    fn what_a_peeled_off_association_takes_along_is_counted_there() {
        let ([one, other], mut queue) = (ids(), Queue::default());
        queue.push_notification(error(one), ROOM);
        queue.push_notification(error(other), ROOM);
        let all = queue.used;
        let own = queue.split(|item| matches!(item, Item::Notification(told) if told.of == other));
        assert_eq!((own.used, queue.used), (all / 2, all / 2));
    }
}
