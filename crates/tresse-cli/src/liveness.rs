//! Liveness of the other side: an association that hears nothing asks all its paths, and says so when none answers.
//!
//! Acknowledgements alone end a silence: the other side sends them because it hears this one. A side that hears nothing still sends
//! retransmissions and heartbeats of its own until it gives the association up.
//!
//! An encrypted association believes no packet in the clear, also not that its peer has lost it. Silence is all there is to go by.

use std::convert::Infallible;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tresse::Association;

/// Signs of life of one association.
pub(crate) struct Liveness {
    association: Association,
    patience: Duration,
    /// Time at which something was answered last, once that is too long ago.
    silent: watch::Sender<Option<Instant>>,
}

impl Liveness {
    /// Silence of `patience` counts.
    pub(crate) fn new(association: Association, patience: Duration) -> Self {
        Liveness { association, patience, silent: watch::Sender::new(None) }
    }

    /// Listens; it never ends. An answer is asked for whenever none came for a third of the patience.
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
            // One that is heard without an answer may have it in a long queue.
            let deaf = answered_at.elapsed() >= self.patience * BEHIND_A_QUEUE;
            self.tell((quiet || deaf || self.is_silent()).then_some(answered_at));
        }
    }

    /// Asks all paths for an answer.
    pub(crate) fn ask(&self) {
        for path in self.association.path_stats() {
            // A path that is gone meanwhile answers nothing anyway.
            let _ = self.association.request_heartbeat(path.id);
        }
    }

    /// Waits until nothing was answered for too long, or something is again.
    pub(crate) async fn turns(&self, silent: bool) {
        let _ = self.silent.subscribe().wait_for(|now| now.is_some() == silent).await;
    }

    pub(crate) fn is_silent(&self) -> bool {
        self.silence().is_some()
    }

    /// Time for which nothing was answered, if that is too long.
    pub(crate) fn silence(&self) -> Option<Duration> {
        self.silent.borrow().map(|heard_at| heard_at.elapsed())
    }

    fn packets(&self) -> u64 {
        self.association.path_stats().iter().map(|path| path.packets_received).sum()
    }

    /// A number that grows with each acknowledgement of data or of a heartbeat that was not acknowledged before.
    fn answers(&self) -> u64 {
        self.association.path_stats().iter().map(|path| path.bytes_acked + path.heartbeats_acked).sum()
    }

    fn tell(&self, silent: Option<Instant>) {
        self.silent.send_if_modified(|now| std::mem::replace(now, silent) != silent);
    }
}

/// Patience with answers while other packets come, in patiences.
const BEHIND_A_QUEUE: u32 = 3;
