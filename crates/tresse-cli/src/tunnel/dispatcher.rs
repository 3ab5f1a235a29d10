//! The part of a client that outlives associations: the rules for connections, and the association that carries new ones.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tresse::config::StreamClass;

use super::args::{ClientArgs, WhileDown};
use super::flow::Limits;
use super::forward::{ClassOfPort, Reverse};
use super::hub::Hub;
use crate::descriptors;

/// Dispatcher, shared by the tasks that accept connections and the one that sets up associations.
pub(super) struct Dispatcher {
    hub: watch::Sender<Option<Arc<Hub>>>,
    rules: watch::Sender<Arc<Rules>>,
    /// Permits for SOCKS connections of all entries, both during the handshake and while they are carried.
    handshakes: Arc<Semaphore>,
}

/// Rules that may change while the tunnel runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Rules {
    pub(super) while_down: WhileDown,
    pub(super) classes: Vec<ClassOfPort>,
    pub(super) limits: Limits,
    /// Addresses that the server is to listen on, by number.
    pub(super) reverse: BTreeMap<u16, Reverse>,
}

impl Rules {
    /// Returns the rules of the options, without listeners at the server.
    pub(super) fn of(args: &ClientArgs) -> Self {
        Rules {
            while_down: args.while_down,
            classes: args.class.clone(),
            limits: args.common.limits(),
            reverse: BTreeMap::new(),
        }
    }

    pub(super) fn class_of(&self, port: u16) -> StreamClass {
        ClassOfPort::find(&self.classes, port)
    }

    /// Returns the rules with the listeners `wanted` at the server. Those that were there before keep their numbers.
    pub(super) fn with_reverse(mut self, before: &BTreeMap<u16, Reverse>, wanted: &[Reverse]) -> Self {
        let mut kept = before.clone();
        kept.retain(|_, reverse| wanted.contains(reverse));
        for reverse in wanted {
            if kept.values().any(|one| one == reverse) {
                continue;
            }
            // A number that has become free is not used again at once: messages under way would be taken for the new listener's.
            let after = before.keys().chain(kept.keys()).max().map_or(0, |last| last.wrapping_add(1));
            let free = (after..=u16::MAX).chain(0..after).find(|number| !kept.contains_key(number));
            kept.extend(free.map(|number| (number, reverse.clone())));
        }
        self.reverse = kept;
        self
    }
}

impl Dispatcher {
    pub(super) fn new(rules: Rules) -> Arc<Self> {
        let (hub, rules) = (watch::Sender::new(None), watch::Sender::new(Arc::new(rules)));
        // Half of the descriptors are left for all other uses.
        let most = descriptors::raise()
            .map_or(MOST_HANDSHAKES, |most| usize::try_from(most / 2).unwrap_or(usize::MAX));
        let handshakes = Arc::new(Semaphore::new(most.clamp(1, MOST_HANDSHAKES)));
        Arc::new(Dispatcher { hub, rules, handshakes })
    }

    /// Waits until one more connection through SOCKS may be accepted.
    pub(super) async fn handshake(&self) -> OwnedSemaphorePermit {
        match Arc::clone(&self.handshakes).acquire_owned().await {
            Ok(permit) => permit,
            // The semaphore is never closed.
            Err(_) => std::future::pending().await,
        }
    }

    /// Sets the hub for new connections; `None` while the tunnel is down.
    pub(super) fn send_to(&self, hub: Option<Arc<Hub>>) {
        self.hub.send_replace(hub);
    }

    pub(super) fn hubs(&self) -> watch::Receiver<Option<Arc<Hub>>> {
        self.hub.subscribe()
    }

    /// Returns the hub for new connections; `None` while the tunnel is down.
    pub(super) fn hub(&self) -> Option<Arc<Hub>> {
        self.hub.borrow().clone()
    }

    pub(super) fn rules(&self) -> Arc<Rules> {
        Arc::clone(&self.rules.borrow())
    }

    /// Returns the rules, with notification of changes.
    pub(super) fn watch_rules(&self) -> watch::Receiver<Arc<Rules>> {
        self.rules.subscribe()
    }

    pub(super) fn set_rules(&self, rules: Rules) {
        self.rules.send_replace(Arc::new(rules));
    }
}

/// Most SOCKS connections at a time, if there are enough descriptors.
const MOST_HANDSHAKES: usize = 4096;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn listeners_that_stay_keep_their_numbers() {
        let limits = Limits { idle: Duration::ZERO, lifetime: Duration::ZERO };
        let rules =
            Rules { while_down: WhileDown::Wait, classes: Vec::new(), limits, reverse: BTreeMap::new() };
        let [a, b, c] = ["1.1.1.1:1=a:1", "1.1.1.1:2=b:1", "1.1.1.1:3=c:1"]
            .map(|text| text.parse::<Reverse>().expect("a forward"));
        let first = rules.clone().with_reverse(&BTreeMap::new(), &[a.clone(), b.clone()]);
        assert_eq!(first.reverse, BTreeMap::from([(0, a.clone()), (1, b.clone())]));
        let second = rules.clone().with_reverse(&first.reverse, &[b.clone(), c.clone()]);
        assert_eq!(second.reverse, BTreeMap::from([(1, b), (2, c)]));
        let none = rules.with_reverse(&BTreeMap::from([(u16::MAX, a.clone())]), std::slice::from_ref(&a));
        assert_eq!(none.reverse, BTreeMap::from([(u16::MAX, a)]));
    }
}
