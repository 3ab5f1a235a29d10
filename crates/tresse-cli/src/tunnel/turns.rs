//! Permits to open streams: one for each connection and flow that a side may have open at a time, and the eviction of idle flows.
//!
//! Only time shows that a flow is over. Programs with a single request each would hold all permits for the whole idle time. So a
//! connection that waits gets the permit of the flow that has been idle for longest, if it was idle for at least `QUIET`.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep};

/// Stream permits of one side of an association.
pub(super) struct StreamPermits {
    free: Arc<Semaphore>,
    /// Permits beyond the connections that the side may have, for lanes of a TUN device.
    spare: Arc<Semaphore>,
    flows: Arc<Mutex<Flows>>,
}

/// Flows that may be evicted, with the time of the last datagram of each.
#[derive(Default)]
struct Flows {
    last: u64,
    by: BTreeMap<u64, (Instant, Arc<Notify>)>,
}

/// Entry of a flow, which is removed when this is dropped.
pub(super) struct Flow {
    flows: Arc<Mutex<Flows>>,
    number: u64,
    unwanted: Arc<Notify>,
}

/// Permit to open one stream, which is released when this is dropped.
pub(super) struct StreamPermit(#[expect(dead_code, reason = "it is held")] OwnedSemaphorePermit);

impl StreamPermits {
    /// Creates permits for `streams`, of which connections get at most `connections`.
    pub(super) fn new(streams: usize, connections: usize) -> Self {
        let spare = streams.saturating_sub(connections);
        let (free, spare) = (Arc::new(Semaphore::new(streams - spare)), Arc::new(Semaphore::new(spare)));
        StreamPermits { free, spare, flows: Arc::default() }
    }

    /// Waits for a permit; evicts at most one flow for it.
    pub(super) async fn next(&self) -> StreamPermit {
        tokio::select! {
            biased;
            permit = Arc::clone(&self.free).acquire_owned() => match permit {
                Ok(permit) => StreamPermit(permit),
                // The semaphore is never closed.
                Err(_) => std::future::pending().await,
            },
            never = self.evict_idle() => match never {},
        }
    }

    /// Returns a permit if one is free.
    pub(super) fn try_next(&self) -> Option<StreamPermit> {
        Arc::clone(&self.free).try_acquire_owned().ok().map(StreamPermit)
    }

    /// Waits for a permit for a lane. If the other side has no more streams than the connections need, the permit is one of theirs.
    #[cfg_attr(
        not(target_os = "linux"),
        expect(dead_code, reason = "only TUN devices have lanes, and only Linux has these")
    )]
    pub(super) async fn for_lane(&self) -> StreamPermit {
        match Arc::clone(&self.spare).try_acquire_owned() {
            Ok(permit) => StreamPermit(permit),
            Err(_) => self.next().await,
        }
    }

    /// Registers a flow that holds a permit and may be evicted.
    pub(super) fn flow(&self) -> Flow {
        let mut flows = lock(&self.flows);
        flows.last += 1;
        let (number, unwanted) = (flows.last, Arc::new(Notify::new()));
        flows.by.insert(number, (Instant::now(), Arc::clone(&unwanted)));
        Flow { flows: Arc::clone(&self.flows), number, unwanted }
    }

    /// Evicts one flow, once one has been idle for long enough; never returns.
    async fn evict_idle(&self) -> Infallible {
        loop {
            {
                let mut flows = lock(&self.flows);
                let quietest =
                    flows.by.iter().min_by_key(|(_, flow)| flow.0).map(|(&number, flow)| (number, flow.0));
                if let Some((number, since)) = quietest
                    && since.elapsed() >= QUIET
                {
                    if let Some((_, unwanted)) = flows.by.remove(&number) {
                        unwanted.notify_one();
                    }
                    break;
                }
            }
            sleep(BETWEEN_LOOKS).await;
        }
        std::future::pending().await
    }
}

impl Flow {
    /// Records that the flow has a datagram.
    pub(super) fn is_used(&self) {
        if let Some(flow) = lock(&self.flows).by.get_mut(&self.number) {
            flow.0 = Instant::now();
        }
    }

    /// Waits until the flow is evicted.
    pub(super) async fn unwanted(&self) {
        self.unwanted.notified().await;
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        lock(&self.flows).by.remove(&self.number);
    }
}

fn lock(flows: &Mutex<Flows>) -> MutexGuard<'_, Flows> {
    flows.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Time without datagrams after which a flow may be evicted; a flow in use has datagrams more often.
const QUIET: Duration = Duration::from_secs(1);
/// Interval at which a waiting connection looks for such a flow.
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn lanes_take_no_turns_of_connections_while_there_are_others() {
        let turns = StreamPermits::new(4, 2);
        let lanes = [turns.for_lane().await, turns.for_lane().await];
        let connections = [turns.next().await, turns.next().await];
        assert!(turns.try_next().is_none());
        assert!(timeout(Duration::from_secs(9), turns.for_lane()).await.is_err(), "there is none left");
        drop(connections);
        let _third = turns.for_lane().await;
        assert!(turns.try_next().is_some() && lanes.len() == 2);
        assert!(StreamPermits::new(1, 2).try_next().is_some(), "the other side has fewer");
    }

    #[tokio::test(start_paused = true)]
    async fn the_flow_that_was_quiet_for_longest_makes_way_and_no_other() {
        let turns = StreamPermits::new(2, 2);
        let mut held = [turns.next().await, turns.next().await].map(Some);
        let [first, second] = [turns.flow(), turns.flow()];
        first.is_used();
        let waits = timeout(QUIET / 2, turns.next());
        assert!(waits.await.is_err(), "both are in use");
        first.is_used();
        let ended = async {
            second.unwanted().await;
            drop(held[1].take());
        };
        let (third, ()) = tokio::join!(turns.next(), ended);
        let stays = timeout(9 * QUIET, first.unwanted());
        assert!(stays.await.is_err(), "nobody waits any more");
        drop((third, held));
    }
}
