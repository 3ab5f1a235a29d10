//! Liveness of the other side. An association that gets no acknowledgements requests heartbeats on all paths, and the other side counts
//! as silent if none is acknowledged.
//!
//! Only acknowledgements end a silence, because they prove that the other side receives packets of this side. A side that receives
//! nothing still sends retransmissions and heartbeats until it closes the association.
//!
//! An encrypted association ignores packets in the clear, including an ABORT from a peer that has lost the association. So silence is the
//! only sign of such a loss.

use std::convert::Infallible;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tresse::Association;

/// Monitor of the liveness of one association.
pub(crate) struct Liveness {
    association: Association,
    patience: Duration,
    /// Time of the last acknowledgement, while the other side is silent.
    silent: watch::Sender<Option<Instant>>,
}

impl Liveness {
    /// Creates a monitor, for which the other side is silent after `patience`.
    pub(crate) fn new(association: Association, patience: Duration) -> Self {
        Liveness { association, patience, silent: watch::Sender::new(None) }
    }

    /// Runs the monitor; never returns. Requests heartbeats whenever a third of the patience has passed without an acknowledgement.
    pub(crate) async fn watch(&self) -> Infallible {
        let (mut packets, mut heard_at) = (self.packets(), Instant::now());
        let (mut answers, mut answered_at) = (self.answers(), heard_at);
        loop {
            sleep(self.patience / 3).await;
            let (now_packets, now_answers) = (self.packets(), self.answers());
            if now_packets != packets {
                (packets, heard_at) = (now_packets, Instant::now());
            }
            if now_answers != answers {
                (answers, answered_at) = (now_answers, Instant::now());
                self.tell(None);
                continue;
            }
            self.ask();
            let quiet = heard_at.elapsed() >= self.patience;
            // If packets still arrive, the acknowledgement may wait in a long queue.
            let deaf = answered_at.elapsed() >= self.patience * BEHIND_A_QUEUE;
            self.tell((quiet || deaf || self.is_silent()).then_some(answered_at));
        }
    }

    /// Requests a heartbeat on all paths.
    pub(crate) fn ask(&self) {
        for path in self.association.path_stats() {
            // A path that was removed meanwhile needs no heartbeat.
            let _ = self.association.request_heartbeat(path.id);
        }
    }

    /// Waits until the other side is silent, or if `silent` is false, until it is not.
    pub(crate) async fn turns(&self, silent: bool) {
        let _ = self.silent.subscribe().wait_for(|now| now.is_some() == silent).await;
    }

    pub(crate) fn is_silent(&self) -> bool {
        self.silence().is_some()
    }

    /// Returns the time since the last acknowledgement if the other side is silent; otherwise `None`.
    pub(crate) fn silence(&self) -> Option<Duration> {
        self.silent.borrow().map(|heard_at| heard_at.elapsed())
    }

    fn packets(&self) -> u64 {
        self.association.path_stats().iter().map(|path| path.packets_received).sum()
    }

    /// Returns a counter that grows with each acknowledgement of new data, or of a heartbeat.
    fn answers(&self) -> u64 {
        self.association.path_stats().iter().map(|path| path.bytes_acked + path.heartbeats_acked).sum()
    }

    fn tell(&self, silent: Option<Instant>) {
        self.silent.send_if_modified(|now| std::mem::replace(now, silent) != silent);
    }
}

/// Time without acknowledgements while other packets arrive, as a multiple of the patience.
const BEHIND_A_QUEUE: u32 = 3;
