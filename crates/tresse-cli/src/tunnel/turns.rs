//! The right to open streams: a turn for each connection and flow that a side may have open at a time.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Turns of one side of an association.
pub(super) struct Turns {
    free: Arc<Semaphore>,
    /// Those beyond the connections that the side may have: for lanes of a TUN device.
    spare: Arc<Semaphore>,
}

/// The right to open one stream, until it is dropped.
pub(super) struct Turn(#[expect(dead_code, reason = "it is held")] OwnedSemaphorePermit);

impl Turns {
    /// Turns for `streams`, of which connections have `connections` at the most.
    pub(super) fn new(streams: usize, connections: usize) -> Self {
        let spare = streams.saturating_sub(connections);
        Turns { free: Arc::new(Semaphore::new(streams - spare)), spare: Arc::new(Semaphore::new(spare)) }
    }

    /// Waits for a turn.
    pub(super) async fn next(&self) -> Turn {
        match Arc::clone(&self.free).acquire_owned().await {
            Ok(permit) => Turn(permit),
            // Nobody closes it.
            Err(_) => std::future::pending().await,
        }
    }

    /// The same without waiting.
    pub(super) fn try_next(&self) -> Option<Turn> {
        Arc::clone(&self.free).try_acquire_owned().ok().map(Turn)
    }

    /// A turn for a lane; it is one of the connections' where the other side has no more streams than those need.
    pub(super) async fn for_lane(&self) -> Turn {
        match Arc::clone(&self.spare).try_acquire_owned() {
            Ok(permit) => Turn(permit),
            Err(_) => self.next().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn lanes_take_no_turns_of_connections_while_there_are_others() {
        let turns = Turns::new(4, 2);
        let lanes = [turns.for_lane().await, turns.for_lane().await];
        let connections = [turns.next().await, turns.next().await];
        assert!(turns.try_next().is_none());
        assert!(timeout(Duration::from_secs(9), turns.for_lane()).await.is_err(), "there is none left");
        drop(connections);
        let _third = turns.for_lane().await;
        assert!(turns.try_next().is_some() && lanes.len() == 2);
        assert!(Turns::new(1, 2).try_next().is_some(), "the other side has fewer");
    }
}
