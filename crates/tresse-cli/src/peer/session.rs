//! One association from set-up to end: sends and receives its messages, and counts them.

use std::future::pending;
use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};
use tresse::{Association, Bytes, CloseReason, Joiner, Message, SendError, SendOptions};

use super::args::{LONGEST, Mode, WorkArgs};
use super::event_log::{self, EventRecord};
use super::message::{Verifier, generate, number_of};
use super::timeline::{End, follow};
use crate::report::paths::Snapshot;

/// Result of an association.
pub(super) struct Session {
    pub(super) tally: Transferred,
    pub(super) reason: CloseReason,
    /// Streams after negotiation: outbound and inbound.
    pub(super) streams: (u16, u16),
    pub(super) elapsed: Duration,
    pub(super) snapshot: Snapshot,
    /// True if the association did all of its work.
    pub(super) complete: bool,
    pub(super) events: Vec<EventRecord>,
}

/// Messages and bytes, sent and received.
#[derive(Clone, Default)]
pub(super) struct Transferred {
    pub(super) messages_sent: u64,
    pub(super) bytes_sent: u64,
    pub(super) messages_received: u64,
    pub(super) bytes_received: u64,
    /// Messages without the echo that was due from this side, or with `--await-echo` from the peer.
    pub(super) not_echoed: u64,
    /// Wrong messages, and the fault of the first one.
    pub(super) wrong: u64,
    pub(super) first_wrong: Option<String>,
}

impl Transferred {
    fn on_wrong(&mut self, what: String) {
        self.wrong += 1;
        self.first_wrong.get_or_insert(what);
    }
}

/// Work that an association has to do.
pub(super) struct Task {
    pub(super) mode: Mode,
    pub(super) work: WorkArgs,
}

/// Counters that the two directions of one association share.
#[derive(Default)]
struct Counts {
    tally: Mutex<Transferred>,
    received: Notify,
}

impl Counts {
    fn with<T>(&self, look: impl FnOnce(&mut Transferred) -> T) -> T {
        look(&mut self.tally.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Runs `association` to its end. When `stop` becomes true, the association is shut down early.
pub(super) async fn run(association: &Association, task: &Task, mut stop: watch::Receiver<bool>) -> Session {
    let started = Instant::now();
    let counts = Counts::default();
    let (mut complete, mut stopped) = (false, false);
    let mut events = Vec::new();
    let mut source = association.events();
    {
        let refused = |what: String| counts.with(|tally| tally.on_wrong(what));
        let mut receiving = pin!(async {
            let recording = event_log::record(&mut source, started, &mut events);
            tokio::join!(receive(association, task, &counts), recording);
        });
        let peer_ended = tokio::select! {
            () = &mut receiving => true,
            done = act(association, task, &counts) => { complete = done; false }
            end = follow(association, &task.work, refused) => {
                if end == End::Abort {
                    association.abort("as asked for");
                }
                complete = true;
                false
            }
            _ = stop.wait_for(|stop| *stop) => { stopped = true; false }
        };
        let patience = if stopped { FAREWELL } else { Duration::MAX };
        let ending = async {
            if peer_ended {
                association.closed().await;
            } else {
                // The rest of the peer's data must be received, or the shutdown cannot complete (RFC 9260 section 9.2).
                let _ = tokio::join!(association.shutdown(), receiving);
            }
        };
        let _ = timeout(patience, ending).await;
    }
    let mut tally = counts.with(std::mem::take);
    let snapshot = Snapshot::take(association);
    if task.mode == Mode::Generate && task.work.await_echo {
        let expected = tally.messages_sent.saturating_sub(snapshot.abandoned());
        tally.not_echoed = expected.saturating_sub(tally.messages_received);
    }
    let reason = association.close_reason().unwrap_or_else(|| {
        association.abort("interrupted");
        CloseReason::Aborted
    });
    complete |= stopped || (task.mode != Mode::Generate && reason == CloseReason::Graceful);
    let (streams, elapsed) = (association.streams(), started.elapsed());
    Session { tally, reason, streams, elapsed, snapshot, complete, events }
}

/// Sends the messages of this side. Returns whether all were sent, and echoed if that is awaited. Never returns if this side sends none,
/// or the association has ended.
async fn act(association: &Association, task: &Task, counts: &Counts) -> bool {
    if task.mode != Mode::Generate {
        return pending().await;
    }
    let streams = task.work.streams.min(association.streams().0);
    let mut number = 0;
    while task.work.count == 0 || number < task.work.count {
        let (options, bytes) = generate(&task.work, streams, number);
        match put(association, options, bytes, counts).await {
            SendOutcome::Taken => {}
            SendOutcome::Ended => return pending().await,
            SendOutcome::Refused => return false,
        }
        number = number.wrapping_add(1);
        if !task.work.pause.is_zero() {
            sleep(task.work.pause).await;
        }
    }
    while task.work.await_echo && counts.with(|tally| tally.messages_received) < u64::from(number) {
        counts.received.notified().await;
    }
    true
}

/// Receives messages until the peer sends no more.
async fn receive(association: &Association, task: &Task, counts: &Counts) {
    let mut verifier = task.work.verify.then(Verifier::default);
    let mut joiner = Joiner::default();
    while let Ok(Some(part)) = association.recv().await {
        let Some(message) = joiner.join(part) else {
            if joiner.held() > LONGEST as usize {
                return association.abort("a message of more than 1GiB");
            }
            continue;
        };
        note(&message, verifier.as_mut(), counts);
        if task.mode == Mode::Echo {
            let options = SendOptions::on(message.stream).with(|o| {
                o.ppid = message.ppid;
                o.unordered = message.unordered;
            });
            // The echo is missing until the send buffer accepts it: this future may be dropped while it waits for room.
            counts.with(|tally| tally.not_echoed += 1);
            if put(association, options, message.payload.into_bytes(), counts).await == SendOutcome::Taken {
                counts.with(|tally| tally.not_echoed -= 1);
            }
        }
    }
}

fn note(message: &Message, verifier: Option<&mut Verifier>, counts: &Counts) {
    let wrong = verifier.and_then(|verifier| verifier.check(message).err());
    counts.with(|tally| {
        tally.messages_received += 1;
        tally.bytes_received += message.payload.len() as u64;
        if let Some(wrong) = wrong {
            tally.on_wrong(wrong);
        }
    });
    counts.received.notify_one();
}

/// Outcome of sending a message.
#[derive(Copy, Clone, PartialEq, Eq)]
enum SendOutcome {
    Taken,
    /// The association accepts no more messages; `receive` ends, too.
    Ended,
    /// The message can never be sent, and counts as wrong.
    Refused,
}

async fn put(
    association: &Association,
    options: SendOptions,
    bytes: impl Into<Bytes>,
    counts: &Counts,
) -> SendOutcome {
    let bytes = bytes.into();
    let len = bytes.len() as u64;
    match association.send(options, bytes).await {
        Ok(()) => counts.with(|tally| {
            tally.messages_sent += 1;
            tally.bytes_sent += len;
            SendOutcome::Taken
        }),
        Err(SendError::NotOpen { .. }) => SendOutcome::Ended,
        Err(error) => {
            counts.with(|tally| {
                tally.on_wrong(format!("message {} was refused: {error}", number_of(options.ppid)))
            });
            SendOutcome::Refused
        }
    }
}

/// Time that the shutdown may take if the run is stopped early.
const FAREWELL: Duration = Duration::from_secs(2);
