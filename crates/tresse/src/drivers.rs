//! Drivers of one endpoint: one, or several on as many processor cores, each with a protocol core, sockets and a lock.
//!
//! The two SCTP ports of an association determine its driver ([`driver_of`]), so drivers share only the set of those
//! that have ended. A datagram that the system delivered to another driver is passed on.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tresse_proto::{Datagram, Instant};

use crate::shared::Shared;
use crate::transport::{driver_of, driver_of_packet};

/// The states of all drivers of an endpoint, by number; at least one.
pub(crate) struct Drivers(Vec<Arc<Shared>>);

impl Drivers {
    /// Makes the drivers of a group.
    pub(crate) fn new(all: Vec<Arc<Shared>>, group: &Group) -> Self {
        // Set only here: no other code has the group yet.
        let _ = group.members.set(all.iter().map(Arc::downgrade).collect());
        Drivers(all)
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

/// State that the drivers of an endpoint share.
pub(crate) struct Group {
    /// The clock is that of the runtime, which tests may pause.
    origin: tokio::time::Instant,
    /// The runtime of the drivers.
    pub(crate) runtime: Option<Handle>,
    members: OnceLock<Vec<Weak<Shared>>>,
    /// Notified when `accept` may return an association.
    pub(crate) incoming: Notify,
    /// Notified when the last association of a driver has ended.
    pub(crate) idle: Notify,
    /// Drivers that will get no commands any more.
    finished: Mutex<BTreeSet<usize>>,
}

impl Group {
    /// Makes the state of drivers that run in the present runtime.
    pub(crate) fn new() -> Self {
        Group {
            origin: tokio::time::Instant::now(),
            runtime: Handle::try_current().ok(),
            members: OnceLock::new(),
            incoming: Notify::new(),
            idle: Notify::new(),
            finished: Mutex::default(),
        }
    }

    /// Returns the time of all cores: nanoseconds since the endpoint was bound.
    pub(crate) fn now(&self) -> Instant {
        Instant::from_nanos(u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    fn members(&self) -> &[Weak<Shared>] {
        self.members.get().map_or(&[], Vec::as_slice)
    }

    /// Passes datagrams for other drivers than number `own` to them, and leaves the others in `arrived`, in order.
    pub(crate) fn hand_on(&self, own: usize, arrived: &mut Vec<Datagram>) {
        let members = self.members();
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
        let all = finished.len() >= self.members().len();
        drop(finished);
        if news && all {
            let others = self.members().iter().enumerate().filter(|(other, _)| *other != number);
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

    fn three() -> (Drivers, Arc<Group>) {
        let group = Arc::new(Group::new());
        let all = (0..3).map(|number| {
            let core =
                tresse_proto::Endpoint::new(EndpointConfig::default(), AssociationConfig::default(), [7; 32]);
            Arc::new(Shared::new((number, Arc::clone(&group)), core.expect("defaults"), Vec::new(), None))
        });
        (Drivers::new(all.collect(), &group), group)
    }

    #[test]
    fn what_came_to_another_driver_is_handed_on_in_order() {
        let (drivers, group) = three();
        let here = IpAddr::from([127, 0, 0, 1]);
        let datagram = |peer: u16, mark: u8| {
            let [high, low] = peer.to_be_bytes();
            let payload = vec![high, low, 0, 7, mark].into();
            Datagram { local: here, remote: here, encapsulation_port: Some(9), ecn: Ecn::NotEct, payload }
        };
        let all: Vec<Datagram> = (0..60).map(|at| datagram(1000 + at % 20, at as u8)).collect();
        let mut arrived = all.clone();
        group.hand_on(1, &mut arrived);
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
        let (_drivers, group) = three();
        assert!(!group.finish(1));
        assert!(!group.finish(1), "the same one again");
        assert!(!group.finish(0));
        assert!(group.finish(2), "the last one");
        assert!(group.finish(1), "and then the others");
    }
}
