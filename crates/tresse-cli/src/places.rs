//! Places of a server for its peers: there is a bounded number of them, and who is not heard any more makes way for who comes.
//!
//! A peer that was killed ends no association; its side of it lives on here until the transport gives it up, which takes minutes.
//! Until all places are taken it keeps its own, because it may only be cut off.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use tresse::{Association, Endpoint};

use crate::pulse::Pulse;

/// Entrance of a server: each association that peers set up, once there is a place for it.
pub(crate) struct Door<'a> {
    endpoint: &'a Endpoint,
    places: Places,
    /// Time without packets after which a peer makes way (`Pulse`).
    patience: Duration,
    /// It was accepted, and waits for a place.
    waiting: Option<(Association, Arc<Pulse>)>,
}

/// A peer that has a place.
pub(crate) struct Guest {
    pub(crate) association: Association,
    /// Whoever serves it lets this beat.
    pub(crate) pulse: Arc<Pulse>,
    pub(crate) place: Place,
}

#[derive(Clone)]
struct Places(Arc<Shared>);

struct Shared {
    most: usize,
    taken: Mutex<Taken>,
    freed: Notify,
}

#[derive(Default)]
struct Taken {
    last: u64,
    by: BTreeMap<u64, (Arc<Pulse>, Arc<Notify>)>,
}

/// Place of a guest, until it is dropped.
pub(crate) struct Place {
    places: Places,
    number: u64,
    lost: Arc<Notify>,
}

impl<'a> Door<'a> {
    /// To `most` places.
    pub(crate) fn new(endpoint: &'a Endpoint, most: usize, patience: Duration) -> Self {
        let shared = Shared { most, taken: Mutex::default(), freed: Notify::new() };
        Door { endpoint, places: Places(Arc::new(shared)), patience, waiting: None }
    }

    /// The next peer, once it has a place; `None` where the endpoint is no more. Giving up the future loses nobody.
    pub(crate) async fn admit(&mut self) -> Option<Guest> {
        if self.waiting.is_none() {
            let association = self.endpoint.accept().await?;
            let pulse = Arc::new(Pulse::new(association.clone(), self.patience));
            self.waiting = Some((association, pulse));
        }
        let place = self.places.take(&self.waiting.as_ref()?.1).await;
        let (association, pulse) = self.waiting.take()?;
        Some(Guest { association, pulse, place })
    }

    /// A peer that already waits, as a sender whose addresses have changed does.
    pub(crate) async fn admit_waiting(&mut self) -> Option<Guest> {
        timeout(Duration::ZERO, self.admit()).await.ok().flatten()
    }
}

impl Places {
    /// A place, once one is free or whoever was not heard for longest makes way.
    async fn take(&self, pulse: &Arc<Pulse>) -> Place {
        loop {
            if let Some(place) = self.try_take(pulse) {
                return place;
            }
            tokio::select! {
                () = self.0.freed.notified() => {}
                () = sleep(BETWEEN_LOOKS) => {}
            }
        }
    }

    fn try_take(&self, pulse: &Arc<Pulse>) -> Option<Place> {
        let mut taken = self.taken();
        if taken.by.len() >= self.0.most {
            let silent = taken.by.iter().filter_map(|(&number, (pulse, _))| Some((pulse.silence()?, number)));
            let (_, longest) = silent.max()?;
            let (_, lost) = taken.by.remove(&longest)?;
            lost.notify_one();
        }
        taken.last += 1;
        let (number, lost) = (taken.last, Arc::new(Notify::new()));
        taken.by.insert(number, (Arc::clone(pulse), Arc::clone(&lost)));
        Some(Place { places: self.clone(), number, lost })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.0.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Waits until another peer has taken it.
    pub(crate) async fn lost(&self) {
        self.lost.notified().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.taken().by.remove(&self.number);
        self.places.0.freed.notify_one();
    }
}

/// Patience with peers that have no other association to go on with: an outage of usual length is to cost them nothing.
pub(crate) const SILENCE: Duration = Duration::from_secs(5);
/// Interval at which a peer that waits looks for one that has fallen silent.
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use tokio::runtime::{Builder, Runtime};
    use tokio::sync::oneshot;
    use tresse::{AssociationConfig, EndpointConfig, Peer};

    use super::*;

    const HERE: [IpAddr; 1] = [IpAddr::V4(Ipv4Addr::LOCALHOST)];
    /// Longer than any machine needs.
    const FOREVER: Duration = Duration::from_secs(300);

    fn config() -> AssociationConfig {
        AssociationConfig::preset("cmt").expect("a preset")
    }

    fn server() -> Endpoint {
        Endpoint::bind(&HERE, 0, EndpointConfig::listening(5001), config()).expect("a free port")
    }

    /// Sets up one association with `server`, in a process of its own as far as that can tell: it ends without a word when the
    /// runtime is dropped.
    async fn peer(server: &Endpoint) -> Runtime {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a thread");
        let peer = Peer::new(HERE, 5001).with_udp_port(server.udp_port());
        let (there, done) = oneshot::channel();
        runtime.spawn(async move {
            let endpoint =
                Endpoint::bind(&HERE, 0, EndpointConfig::default(), config()).expect("a free port");
            let association = endpoint.connect(peer).await;
            let _ = there.send(association.is_ok());
            std::future::pending::<()>().await;
        });
        assert_eq!(done.await, Ok(true), "it is set up");
        runtime
    }

    async fn admitted(door: &mut Door<'_>) -> Guest {
        timeout(FOREVER, door.admit()).await.expect("there is a place").expect("the endpoint is there")
    }

    /// As whoever serves a guest does; answers it once it has lost its place.
    fn serve(guest: Guest) -> tokio::task::JoinHandle<()> {
        tokio::spawn(async move {
            tokio::select! {
                never = guest.pulse.beat() => match never {},
                () = guest.place.lost() => {}
            }
        })
    }

    #[tokio::test]
    async fn who_was_killed_makes_way_where_all_places_are_taken() {
        let server = server();
        let mut door = Door::new(&server, 2, Duration::from_millis(300));
        let (mut killed, mut served) = (Vec::new(), Vec::new());
        for _ in 0..2 {
            killed.push(peer(&server).await);
            served.push(serve(admitted(&mut door).await));
        }
        killed.into_iter().for_each(Runtime::shutdown_background);
        let one = peer(&server).await;
        let guest = admitted(&mut door).await;
        let mut places: [_; 2] = served.try_into().expect("two");
        let lost = async {
            let [first, second] = &mut places;
            tokio::select! {
                lost = first => lost,
                lost = second => lost,
            }
        };
        timeout(FOREVER, lost).await.expect("one makes way").expect("it runs");
        assert_eq!(places.iter().filter(|one| one.is_finished()).count(), 1, "one place is enough");
        drop(guest);
        one.shutdown_background();
    }

    #[tokio::test]
    async fn who_is_heard_keeps_its_place_and_the_next_waits() {
        let server = server();
        let mut door = Door::new(&server, 1, FOREVER);
        let (first, second) = (peer(&server).await, peer(&server).await);
        let guest = admitted(&mut door).await;
        let number = guest.place.number;
        assert!(timeout(3 * BETWEEN_LOOKS, door.admit()).await.is_err(), "there is no place");
        drop(guest);
        assert!(admitted(&mut door).await.place.number > number, "nobody is lost");
        first.shutdown_background();
        second.shutdown_background();
    }
}
