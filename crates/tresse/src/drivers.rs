//! Drivers of one endpoint: one, or several on as many processor cores, each with a protocol core, sockets and a lock.
//!
//! The two SCTP ports of an association determine its driver ([`driver_of`]), so drivers share only the set of those
//! that have ended. A datagram that the system delivered to another driver is passed on.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tresse_proto::Datagram;

use crate::shared::Shared;
use crate::transport::{driver_of, driver_of_packet};

/// The states of all drivers of an endpoint, by number; at least one.
pub(crate) struct Drivers(Vec<Arc<Shared>>);

impl Drivers {
    pub(crate) fn new(all: Vec<Arc<Shared>>) -> Self {
        Drivers(all)
    }

    /// Returns the part of a driver in the work of all: one value for all drivers, made before the first one runs.
    pub(crate) fn siblings(&self) -> Arc<Siblings> {
        let members = self.0.iter().map(Arc::downgrade).collect();
        Arc::new(Siblings { members, finished: Mutex::default() })
    }

    /// Returns the first driver, for queries that all drivers answer alike.
    pub(crate) fn first(&self) -> &Arc<Shared> {
        &self.0[0]
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Arc<Shared>> {
        self.0.iter()
    }

    /// Returns the driver of the associations between these SCTP ports.
    pub(crate) fn of(&self, peer: u16, own: u16) -> &Arc<Shared> {
        &self.0[driver_of(peer, own, self.0.len())]
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }
}

/// The drivers of an endpoint as each of them knows the others, by number.
pub(crate) struct Siblings {
    members: Vec<Weak<Shared>>,
    /// Drivers that will get no commands any more.
    finished: Mutex<BTreeSet<usize>>,
}

impl Siblings {
    /// Passes datagrams for other drivers than number `own` to them, and leaves the others in `arrived`, in order.
    pub(crate) fn hand_on(&self, own: usize, arrived: &mut Vec<Datagram>) {
        let members = &self.members;
        if members.len() < 2 {
            return;
        }
        let of = |datagram: &Datagram| driver_of_packet(&datagram.payload, members.len());
        if arrived.iter().all(|datagram| of(datagram) == own) {
            return;
        }
        let mut foreign: Vec<Vec<Datagram>> = members.iter().map(|_| Vec::new()).collect();
        for datagram in std::mem::take(arrived) {
            match of(&datagram) {
                number if number == own => arrived.push(datagram),
                number => foreign[number].push(datagram),
            }
        }
        for (member, datagrams) in members.iter().zip(foreign).filter(|(_, datagrams)| !datagrams.is_empty())
        {
            if let Some(shared) = member.upgrade() {
                shared.lock().hand(datagrams);
            }
        }
    }

    /// Notes that driver `number` will get no commands any more. The system selects the sockets of a group by their
    /// order, so all drivers stay until the last has finished. Returns whether all have; then every driver is woken.
    pub(crate) fn finish(&self, number: usize) -> bool {
        let mut finished = self.finished.lock().unwrap_or_else(PoisonError::into_inner);
        let news = finished.insert(number);
        let all = finished.len() >= self.members.len();
        drop(finished);
        if news && all {
            let others = self.members.iter().enumerate().filter(|(other, _)| *other != number);
            for shared in others.filter_map(|(_, member)| member.upgrade()) {
                shared.lock().wake_driver();
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use tresse_proto::{AssociationConfig, Ecn, EndpointConfig};

    use super::*;
    use crate::driver_group::Group;

    fn three() -> (Drivers, Arc<Siblings>) {
        let group = Arc::new(Group::new());
        let all = (0..3).map(|number| {
            let core =
                tresse_proto::Endpoint::new(EndpointConfig::default(), AssociationConfig::default(), [7; 32]);
            Arc::new(Shared::new((number, Arc::clone(&group)), core.expect("defaults"), Vec::new(), None))
        });
        let drivers = Drivers::new(all.collect());
        let siblings = drivers.siblings();
        (drivers, siblings)
    }

    #[test]
    fn what_came_to_another_driver_is_handed_on_in_order() {
        let (drivers, siblings) = three();
        let here = IpAddr::from([127, 0, 0, 1]);
        let datagram = |peer: u16, mark: u8| {
            let [high, low] = peer.to_be_bytes();
            let payload = vec![high, low, 0, 7, mark].into();
            Datagram { local: here, remote: here, encapsulation_port: Some(9), ecn: Ecn::NotEct, payload }
        };
        let all: Vec<Datagram> = (0..60).map(|at| datagram(1000 + at % 20, at as u8)).collect();
        let mut arrived = all.clone();
        siblings.hand_on(1, &mut arrived);
        for shared in drivers.iter() {
            let mut got = if shared.number == 1 { std::mem::take(&mut arrived) } else { Vec::new() };
            shared.lock().take_handed(&mut got);
            let packets = all.iter().map(|datagram| &datagram.payload);
            let own = packets.filter(|packet| driver_of_packet(packet, 3) == shared.number);
            assert!(got.iter().map(|datagram| &datagram.payload).eq(own), "driver {}", shared.number);
            assert!(!got.is_empty(), "20 ports for three drivers");
        }
    }

    #[test]
    fn drivers_finish_together() {
        let (_drivers, siblings) = three();
        assert!(!siblings.finish(1));
        assert!(!siblings.finish(1), "the same one again");
        assert!(!siblings.finish(0));
        assert!(siblings.finish(2), "the last one");
        assert!(siblings.finish(1), "and then the others");
    }
}
