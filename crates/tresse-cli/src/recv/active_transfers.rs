//! Transfers under way in this process, by what they bring: a sender that was killed and comes back goes on at once.
//!
//! The association of a killed sender lives on here until it is given up, and its transfer holds the file. One from which
//! nothing has come for a moment makes way for a new one of the same file; one that goes on does not. What a killed sender sent
//! before is still being stored for a while, so it is given some moments.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};

use crate::transfer::message::TransferId;

/// All of them.
#[derive(Clone, Default)]
pub(crate) struct ActiveTransfers(Arc<Mutex<BTreeMap<TransferId, Arc<Transfer>>>>);

/// One of them.
pub(crate) struct Transfer {
    /// Bytes of the file that are here.
    pub(crate) stored: AtomicU64,
    /// Another one of the same file takes its place.
    pub(crate) superseded: Notify,
    over: watch::Sender<bool>,
}

/// A transfer's place among them, until it is dropped.
pub(crate) struct ActiveTransfer {
    all: ActiveTransfers,
    id: TransferId,
    pub(crate) transfer: Arc<Transfer>,
}

impl ActiveTransfers {
    /// A place for a transfer, once no other one of `id` is there or that one has made way.
    ///
    /// None where another one goes on.
    pub(crate) async fn enter(&self, id: TransferId) -> Option<ActiveTransfer> {
        for _moment in 0..MOMENTS {
            let other = self.lock().get(&id).map(Arc::clone);
            let Some(other) = other else { return Some(self.place(id)) };
            let (before, mut over) = (other.stored.load(Ordering::Relaxed), other.over.subscribe());
            let silence = sleep(SILENCE);
            tokio::select! {
                _ = over.wait_for(|over| *over) => continue,
                () = silence => {}
            }
            if other.stored.load(Ordering::Relaxed) != before {
                continue;
            }
            other.superseded.notify_one();
            timeout(MAKING_WAY, over.wait_for(|over| *over)).await.ok()?.ok();
        }
        None
    }

    fn place(&self, id: TransferId) -> ActiveTransfer {
        let (stored, superseded, over) = (AtomicU64::new(0), Notify::new(), watch::Sender::new(false));
        let transfer = Arc::new(Transfer { stored, superseded, over });
        self.lock().insert(id, Arc::clone(&transfer));
        ActiveTransfer { all: self.clone(), id, transfer }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<TransferId, Arc<Transfer>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ActiveTransfer {
    fn drop(&mut self) {
        self.all.lock().remove(&self.id);
        self.transfer.over.send_replace(true);
    }
}

/// From a sender that lives something comes more often, unless all its paths are down.
const SILENCE: Duration = Duration::from_secs(1);
/// So often it may have something to store meanwhile.
const MOMENTS: u32 = 5;
/// Time that a transfer which makes way for another has to store the data that has come.
const MAKING_WAY: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    const ID: TransferId = [7; 16];

    #[tokio::test(start_paused = true)]
    async fn a_silent_transfer_makes_way_and_one_that_goes_on_does_not() {
        let all = ActiveTransfers::default();
        let first = all.enter(ID).await.expect("nobody else is there");
        let going_on = async {
            let moving = async {
                for _ in 0..=MOMENTS {
                    sleep(SILENCE / 2).await;
                    first.transfer.stored.fetch_add(1, Ordering::Relaxed);
                    sleep(SILENCE / 2).await;
                }
            };
            tokio::join!(all.enter(ID), moving).0
        };
        assert!(going_on.await.is_none());
        let transfer = Arc::clone(&first.transfer);
        let makes_way = async move {
            transfer.superseded.notified().await;
            drop(first);
        };
        let (second, ()) = tokio::join!(all.enter(ID), makes_way);
        assert!(second.is_some());
        drop(second);
        assert!(all.lock().is_empty());
    }
}
