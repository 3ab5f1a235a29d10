//! Liveness of the other side: an association that hears nothing asks all its paths, and says so when none answers.
//!
//! An encrypted association believes no packet in the clear, also not that its peer has lost it. Silence is all there is to go by.

use std::convert::Infallible;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tresse::Association;

/// Signs of life of one association.
pub(crate) struct Pulse {
    association: Association,
    patience: Duration,
    /// Time at which something was heard last, once that is too long ago.
    silent: watch::Sender<Option<Instant>>,
}

impl Pulse {
    /// Silence of `patience` counts.
    pub(crate) fn new(association: Association, patience: Duration) -> Self {
        Pulse { association, patience, silent: watch::Sender::new(None) }
    }

    /// Listens; it never ends. A packet is asked for whenever none came for a third of the patience.
    pub(crate) async fn beat(&self) -> Infallible {
        let (mut heard, mut heard_at) = (self.packets(), Instant::now());
        loop {
            sleep(self.patience / 3).await;
            let now_heard = self.packets();
            if now_heard != heard {
                (heard, heard_at) = (now_heard, Instant::now());
                self.tell(None);
                continue;
            }
            self.ask();
            self.tell((heard_at.elapsed() >= self.patience).then_some(heard_at));
        }
    }

    /// Asks all paths for an answer.
    pub(crate) fn ask(&self) {
        for path in self.association.path_stats() {
            // A path that is gone meanwhile answers nothing anyway.
            let _ = self.association.request_heartbeat(path.id);
        }
    }

    /// Waits until nothing was heard for too long, or something is again.
    pub(crate) async fn turns(&self, silent: bool) {
        let _ = self.silent.subscribe().wait_for(|now| now.is_some() == silent).await;
    }

    pub(crate) fn is_silent(&self) -> bool {
        self.silence().is_some()
    }

    /// Time for which nothing was heard, if that is too long.
    pub(crate) fn silence(&self) -> Option<Duration> {
        self.silent.borrow().map(|heard_at| heard_at.elapsed())
    }

    fn packets(&self) -> u64 {
        self.association.path_stats().iter().map(|path| path.packets_received).sum()
    }

    fn tell(&self, silent: Option<Instant>) {
        self.silent.send_if_modified(|now| std::mem::replace(now, silent) != silent);
    }
}
