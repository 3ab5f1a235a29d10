//! Active transfers of this process, by their identifiers, so that a sender that was killed and restarted can resume at once.
//!
//! The association of a killed sender remains until the transport gives it up, and its transfer holds the file. A new transfer of the
//! same file replaces one that has stored nothing for `SILENCE`, but not one that makes progress. Data of a killed sender may still be
//! stored for a while, so the check is repeated up to `MOMENTS` times.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};

use crate::transfer::message::TransferId;

/// All active transfers.
#[derive(Clone, Default)]
pub(crate) struct ActiveTransfers(Arc<Mutex<BTreeMap<TransferId, Arc<Transfer>>>>);

/// An active transfer.
pub(crate) struct Transfer {
    /// Bytes of the file that are stored.
    pub(crate) stored: AtomicU64,
    /// Notified when another transfer of the same file replaces this one.
    pub(crate) superseded: Notify,
    over: watch::Sender<bool>,
}

/// Entry of an active transfer, which is removed when this is dropped.
pub(crate) struct ActiveTransfer {
    all: ActiveTransfers,
    id: TransferId,
    pub(crate) transfer: Arc<Transfer>,
}

impl ActiveTransfers {
    /// Registers a transfer, once there is no other one of `id`, or that one was replaced.
    ///
    /// Returns `None` if the other one makes progress, or does not end in time.
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

/// Time without stored data after which a transfer may be replaced. A running sender is never silent for so long, unless all its paths
/// are down.
const SILENCE: Duration = Duration::from_secs(1);
/// Number of checks in which the other transfer may still store data.
const MOMENTS: u32 = 5;
/// Time that a replaced transfer has to store the data that has arrived.
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
