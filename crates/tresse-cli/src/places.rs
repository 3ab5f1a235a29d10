//! Places of a server for its peers. Their number is bounded. If all are taken, a new peer evicts the one that has been silent for
//! longest.
//!
//! A peer that was killed does not end its association, which remains at the server until the transport gives it up, after minutes. The
//! peer keeps its place while others are free, because only its network may have failed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use tresse::{Association, Endpoint};

use crate::liveness::Liveness;

/// Acceptor of a server: returns each association that peers set up, once there is a place for it.
pub(crate) struct Acceptor<'a> {
    endpoint: &'a Endpoint,
    places: Slots,
    /// Time without packets after which a peer may be evicted (`Liveness`).
    patience: Duration,
    /// An association that was accepted and waits for a place.
    waiting: Option<(Association, Arc<Liveness>)>,
}

/// A peer that has a place.
pub(crate) struct AcceptedPeer {
    pub(crate) association: Association,
    /// Monitor of the peer; the code that serves the peer must run [`Liveness::watch`].
    pub(crate) liveness: Arc<Liveness>,
    pub(crate) place: Slot,
}

#[derive(Clone)]
struct Slots(Arc<Shared>);

struct Shared {
    most: usize,
    taken: Mutex<Taken>,
    freed: Notify,
}

#[derive(Default)]
struct Taken {
    last: u64,
    by: BTreeMap<u64, (Arc<Liveness>, Arc<Notify>)>,
}

/// Place of an accepted peer, which is free again when this is dropped.
pub(crate) struct Slot {
    places: Slots,
    number: u64,
    lost: Arc<Notify>,
}

impl<'a> Acceptor<'a> {
    /// Creates an acceptor with `most` places.
    pub(crate) fn new(endpoint: &'a Endpoint, most: usize, patience: Duration) -> Self {
        let shared = Shared { most, taken: Mutex::default(), freed: Notify::new() };
        Acceptor { endpoint, places: Slots(Arc::new(shared)), patience, waiting: None }
    }

    /// Returns the next peer, once it has a place; `None` if the endpoint has ended. If the future is dropped, no peer is lost.
    pub(crate) async fn admit(&mut self) -> Option<AcceptedPeer> {
        if self.waiting.is_none() {
            let association = self.endpoint.accept().await?;
            let liveness = Arc::new(Liveness::new(association.clone(), self.patience));
            self.waiting = Some((association, liveness));
        }
        let place = self.places.take(&self.waiting.as_ref()?.1).await;
        let (association, liveness) = self.waiting.take()?;
        Some(AcceptedPeer { association, liveness, place })
    }

    /// Returns a peer that already waits, such as a sender whose addresses have changed.
    pub(crate) async fn admit_waiting(&mut self) -> Option<AcceptedPeer> {
        timeout(Duration::ZERO, self.admit()).await.ok().flatten()
    }
}

impl Slots {
    /// Waits for a place: a free one, or that of the peer that has been silent for longest, which is evicted.
    async fn take(&self, liveness: &Arc<Liveness>) -> Slot {
        loop {
            if let Some(place) = self.try_take(liveness) {
                return place;
            }
            tokio::select! {
                () = self.0.freed.notified() => {}
                () = sleep(BETWEEN_LOOKS) => {}
            }
        }
    }

    fn try_take(&self, liveness: &Arc<Liveness>) -> Option<Slot> {
        let mut taken = self.taken();
        if taken.by.len() >= self.0.most {
            let silent =
                taken.by.iter().filter_map(|(&number, (liveness, _))| Some((liveness.silence()?, number)));
            let (_, longest) = silent.max()?;
            let (_, lost) = taken.by.remove(&longest)?;
            lost.notify_one();
        }
        taken.last += 1;
        let (number, lost) = (taken.last, Arc::new(Notify::new()));
        taken.by.insert(number, (Arc::clone(liveness), Arc::clone(&lost)));
        Some(Slot { places: self.clone(), number, lost })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.0.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    /// Waits until another peer has taken this place.
    pub(crate) async fn lost(&self) {
        self.lost.notified().await;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.places.taken().by.remove(&self.number);
        self.places.0.freed.notify_one();
    }
}

/// Patience with peers that cannot continue over another association: an outage of usual length must not evict them.
pub(crate) const SILENCE: Duration = Duration::from_secs(5);
/// Interval at which a waiting peer looks for a silent one.
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use tokio::runtime::{Builder, Runtime};
    use tokio::sync::oneshot;
    use tresse::{AssociationConfig, EndpointConfig, Peer};

    use super::*;

    const HERE: [IpAddr; 1] = [IpAddr::V4(Ipv4Addr::LOCALHOST)];
    /// Time limit that no machine reaches.
    const FOREVER: Duration = Duration::from_secs(300);

    fn config() -> AssociationConfig {
        AssociationConfig::preset("cmt").expect("a preset")
    }

    fn server() -> Endpoint {
        Endpoint::bind(&HERE, 0, EndpointConfig::listening(5001), config()).expect("a free port")
    }

    /// Sets up one association with `server` from a runtime of its own. When that is dropped, the peer ends without an ABORT, like a
    /// process that was killed.
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

    async fn admitted(acceptor: &mut Acceptor<'_>) -> AcceptedPeer {
        timeout(FOREVER, acceptor.admit()).await.expect("there is a place").expect("the endpoint is there")
    }

    /// Serves an accepted peer; the task ends when the peer has lost its place.
    fn serve(accepted: AcceptedPeer) -> tokio::task::JoinHandle<()> {
        tokio::spawn(async move {
            tokio::select! {
                never = accepted.liveness.watch() => match never {},
                () = accepted.place.lost() => {}
            }
        })
    }

    #[tokio::test]
    async fn who_was_killed_makes_way_where_all_places_are_taken() {
        let server = server();
        let mut acceptor = Acceptor::new(&server, 2, Duration::from_millis(300));
        let (mut killed, mut served) = (Vec::new(), Vec::new());
        for _ in 0..2 {
            killed.push(peer(&server).await);
            served.push(serve(admitted(&mut acceptor).await));
        }
        killed.into_iter().for_each(Runtime::shutdown_background);
        let one = peer(&server).await;
        let accepted = admitted(&mut acceptor).await;
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
        drop(accepted);
        one.shutdown_background();
    }

    #[tokio::test]
    async fn who_is_heard_keeps_its_place_and_the_next_waits() {
        let server = server();
        let mut acceptor = Acceptor::new(&server, 1, FOREVER);
        let (first, second) = (peer(&server).await, peer(&server).await);
        let accepted = admitted(&mut acceptor).await;
        let number = accepted.place.number;
        assert!(timeout(3 * BETWEEN_LOOKS, acceptor.admit()).await.is_err(), "there is no place");
        drop(accepted);
        assert!(admitted(&mut acceptor).await.place.number > number, "nobody is lost");
        first.shutdown_background();
        second.shutdown_background();
    }
}
