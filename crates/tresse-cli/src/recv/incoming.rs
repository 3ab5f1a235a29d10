//! The receiver's side of the file transfer protocol, for one association.
//!
//! Messages are received here and stored by another thread, behind a short queue. If the disk is slow, the queue fills, messages stay in
//! the transport, and the receiver window slows the sender down.

use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Buf;
use indicatif::MultiProgress;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::timeout;
use tresse::{Association, Joiner, Message, Payload, SendOptions};

use super::RecvArgs;
use super::active_transfers::ActiveTransfers;
use crate::call;
use crate::failure::Failure;
use crate::output;
use crate::places::AcceptedPeer;
use crate::progress::Progress;
use crate::report::paths::{Side, Snapshot};
use crate::report::words::{printable, size};
use crate::report::{Facts, Report};
use crate::transfer::message::Control;
use crate::transfer::partial::{Order, Partial, StoreError};
use crate::transfer::{CONTROL, DATA, DATA_HEADER, QUEUE, name, whole_message};

/// Settings that all transfers of this process share.
pub(crate) struct Settings {
    pub(crate) args: RecvArgs,
    pub(crate) display: MultiProgress,
    pub(crate) active_transfers: ActiveTransfers,
}

/// Receives the files of a sender, and monitors its liveness: a silent sender is evicted if others wait.
///
/// # Errors
/// As [`receive`].
pub(crate) async fn attend(
    accepted: AcceptedPeer,
    settings: Arc<Settings>,
    stop: watch::Receiver<bool>,
) -> Result<(), Failure> {
    let AcceptedPeer { association, liveness, place } = accepted;
    let mut receiving = pin!(receive(association.clone(), settings, stop));
    tokio::select! {
        outcome = &mut receiving => return outcome,
        never = liveness.watch() => match never {},
        () = place.lost() => {}
    }
    let peer = call::peer_of(&association);
    output::say(&format!("{peer}: it was not heard any more, and another sender takes its place"));
    association.abort("another sender takes its place");
    // Data that has arrived is still stored.
    receiving.await
}

/// Receives files and reports on each, until the sender has no more.
///
/// # Errors
/// The first fault, with file and peer: a file was refused, broke off or could not be stored, or the user stopped the command.
async fn receive(
    association: Association,
    settings: Arc<Settings>,
    mut stop: watch::Receiver<bool>,
) -> Result<(), Failure> {
    let peer = call::peer_of(&association);
    let (mut outcome, mut any) = (Ok(()), false);
    loop {
        let next = tokio::select! {
            next = timeout(PATIENCE, announced(&association, &settings)) => next,
            // The sending half exists as long as the process serves.
            Ok(()) = stop.changed() => {
                if any {
                    break;
                }
                association.abort(INTERRUPTED);
                return Err(Failure::interrupted("interrupted before a file was announced").at(peer));
            }
        };
        let order = match next {
            Ok(Ok(order)) => order,
            Ok(Err(StoreFailure::Refused(failure))) => {
                outcome = outcome.and(Err(failure.at(&peer)));
                any = true;
                continue;
            }
            // After a file, it does not matter how the association ends: the file is stored or not.
            Ok(Err(_)) | Err(_) if any => break,
            Ok(Err(StoreFailure::Over(failure))) => {
                association.abort(failure.message());
                return Err(failure.at(peer));
            }
            Err(_) => {
                association.abort("no file was announced");
                return Err(Failure::running(format!("{peer}: announced no file")));
            }
        };
        any = true;
        let place = format!("{} from {peer}", order.name);
        match receive_file(&association, order, &settings, stop.clone()).await {
            Ok(()) => {}
            Err(StoreFailure::Refused(failure)) => outcome = outcome.and(Err(failure.at(place))),
            Err(StoreFailure::Over(failure)) => return outcome.and(Err(failure.at(place))),
        }
    }
    let _ = timeout(FAREWELL, association.closed()).await;
    outcome
}

/// Reason for which a file is not stored.
enum StoreFailure {
    /// The file is refused. The sender has received the reason, and may send other files.
    Refused(Failure),
    /// The association cannot be used any more.
    Over(Failure),
}

impl From<Failure> for StoreFailure {
    fn from(failure: Failure) -> Self {
        StoreFailure::Over(failure)
    }
}

/// Waits for the sender's announcement. A name that is not permitted is refused.
async fn announced(association: &Association, settings: &Settings) -> Result<Order, StoreFailure> {
    let message = whole_message(association, &mut Joiner::default()).await?;
    let message = message.filter(|message| message.ppid == CONTROL);
    let message = message.ok_or_else(|| Failure::running("sent something else than an announcement"))?;
    let Control::Announce { id, size, name } = decode(message.payload)? else {
        return Err(Failure::running("sent something else than an announcement").into());
    };
    if let Err(reason) = name::check(&name) {
        let refusal = format!("\"{}\" is refused: {reason}", printable(&name));
        answer(association, Err(refusal.clone())).await;
        return Err(StoreFailure::Refused(Failure::running(refusal)));
    }
    let RecvArgs { out, listen, .. } = &settings.args;
    let force = listen.record.force;
    Ok(Order { directory: out.clone(), name, id, size, force })
}

async fn receive_file(
    association: &Association,
    order: Order,
    settings: &Settings,
    stop: watch::Receiver<bool>,
) -> Result<(), StoreFailure> {
    let (name, announced_size) = (order.name.clone(), order.size);
    let (started, before) = (Instant::now(), Snapshot::take(association));
    let Some(place) = settings.active_transfers.enter(order.id).await else {
        answer(association, Err(StoreError::Busy.to_string())).await;
        return Err(StoreFailure::Refused(Failure::running(StoreError::Busy)));
    };
    let opened = tokio::task::spawn_blocking(move || Partial::open(order)).await;
    let partial = match opened.map_err(|_| Failure::running("the storing thread broke down"))? {
        Ok(partial) => partial,
        Err(error) => {
            answer(association, Err(error.to_string())).await;
            return Err(StoreFailure::Refused(Failure::running(error)));
        }
    };
    let resumed = partial.resumed();
    let accept = Control::Accept { have: partial.have().clone() };
    let options = SendOptions::default().with(|o| o.ppid = CONTROL);
    let transfer = &place.transfer;
    transfer.stored.store(resumed, Ordering::Relaxed);
    let (items, queue) = mpsc::channel(QUEUE);
    let storing = tokio::task::spawn_blocking({
        let transfer = Arc::clone(transfer);
        move || store(partial, queue, &transfer.stored)
    });
    let work = async {
        // If this fails, the first `recv` fails, too.
        let _ = association.send(options, accept.encode()).await;
        let end = take_all(association, items, (stop, &transfer.superseded)).await;
        let stored = storing.await.map_err(|_| Failure::running("the storing thread broke down"))?;
        Ok::<_, Failure>((end, stored))
    };
    let progress = Progress::new(&settings.display, &name, announced_size);
    let watching = progress.watch(
        association,
        |_| transfer.stored.load(Ordering::Relaxed),
        |path| path.packet_bytes_received,
    );
    let (end, stored) = tokio::select! {
        outcome = work => outcome?,
        never = watching => match never {},
    };
    // Other transfers may open the file now.
    drop(place);
    let snapshot = Snapshot::take(association).since(&before);
    conclude(association, end, stored, |size, digest| {
        let facts = Facts { name, size, resumed, elapsed: started.elapsed(), digest: Some(digest) };
        let output = &settings.args.output;
        if output.quiet && !output.json {
            return Ok(());
        }
        Report::new(facts, &snapshot, Side::Receiver).print(output.json)
    })
    .await
}

/// Reports the outcome to the sender and the user.
async fn conclude(
    association: &Association,
    end: End,
    stored: Stored,
    report: impl FnOnce(u64, [u8; 32]) -> Result<(), Failure>,
) -> Result<(), StoreFailure> {
    Err(match (stored, end) {
        (Stored::Complete { size, digest }, _) => {
            let reported = report(size, digest);
            answer(association, Ok(())).await;
            return Ok(reported?);
        }
        (Stored::Failed(error), _) => {
            answer(association, Err(error.to_string())).await;
            return Err(StoreFailure::Refused(Failure::running(error)));
        }
        (Stored::Broken { .. }, End::Enough) => Failure::running("the storing thread stopped early"),
        (Stored::Broken { kept, bytes }, End::Failed(failure)) => {
            association.abort(failure.message());
            failure.followed_by(&left(kept, bytes))
        }
        (Stored::Broken { kept, bytes }, End::Superseded) => {
            association.abort("the file comes anew");
            Failure::running(format!("nothing came any more, and it comes anew; {}", left(kept, bytes)))
        }
        (Stored::Broken { kept, bytes }, End::Stopped) => {
            association.abort(INTERRUPTED);
            Failure::interrupted(format!("interrupted; {}", left(kept, bytes)))
        }
    }
    .into())
}

/// Returns a description of the data that is kept of an interrupted transfer.
fn left(kept: Option<PathBuf>, bytes: u64) -> String {
    match kept {
        Some(path) => {
            format!("{} are kept in {}: the same file sent again goes on there", size(bytes), path.display())
        }
        None => "nothing of it is kept".to_owned(),
    }
}

/// Reason for which no more messages are received.
enum End {
    /// Storing has ended, with success or not.
    Enough,
    /// The association or the peer failed.
    Failed(Failure),
    /// The user stopped the command.
    Stopped,
    /// Nothing has arrived for a while, and another transfer sends the file again.
    Superseded,
}

/// Passes messages from the association to the storing thread until either ends.
async fn take_all(
    association: &Association,
    items: mpsc::Sender<Item>,
    (mut stop, superseded): (watch::Receiver<bool>, &Notify),
) -> End {
    let mut joiner = Joiner::default();
    loop {
        let message = tokio::select! {
            message = whole_message(association, &mut joiner) => message,
            () = items.closed() => return End::Enough,
            // The sending half exists as long as the process serves.
            Ok(()) = stop.changed() => return End::Stopped,
            () = superseded.notified() => return End::Superseded,
        };
        let item = match message {
            Ok(Some(message)) => item(message),
            Ok(None) => Err(Failure::running("the sender closed the association before the end of the file")),
            Err(failure) => Err(failure),
        };
        match item {
            // An error means that storing has ended, which the next iteration notices.
            Ok(item) => drop(items.send(item).await),
            Err(failure) => return End::Failed(failure),
        }
    }
}

/// Command to the storing thread.
enum Item {
    Data { offset: u64, payload: Payload },
    Finish { size: u64, digest: [u8; 32] },
}

fn item(message: Message) -> Result<Item, Failure> {
    match message.ppid {
        DATA => {
            let (offset, payload) = split_data(message.payload)
                .ok_or_else(|| Failure::running("the sender sent data without an offset"))?;
            Ok(Item::Data { offset, payload })
        }
        CONTROL => match decode(message.payload)? {
            Control::Finish { size, digest } => Ok(Item::Finish { size, digest }),
            _ => Err(Failure::running("the sender sent a control message out of turn")),
        },
        _ => Err(Failure::running("the sender sent a message of unknown kind")),
    }
}

/// Splits a data message into its offset and its data; `None` if it is too short.
fn split_data(payload: Payload) -> Option<(u64, Payload)> {
    let mut pieces = match payload {
        Payload::Whole(bytes) => vec![bytes],
        Payload::Fragments(pieces) => pieces,
    };
    let mut header = [0; DATA_HEADER];
    let mut filled = 0;
    for piece in &mut pieces {
        let len = piece.len().min(DATA_HEADER - filled);
        piece.copy_to_slice(&mut header[filled..filled + len]);
        filled += len;
    }
    (filled == DATA_HEADER).then_some((u64::from_be_bytes(header), Payload::Fragments(pieces)))
}

/// Result of storing.
enum Stored {
    /// The file is complete, and has its final name.
    Complete { size: u64, digest: [u8; 32] },
    /// The file cannot be stored.
    Failed(StoreError),
    /// The data ended before the file was complete.
    Broken { kept: Option<PathBuf>, bytes: u64 },
}

/// Stores data until the file is complete or the queue ends. Blocks.
fn store(mut partial: Partial, mut queue: mpsc::Receiver<Item>, counter: &AtomicU64) -> Stored {
    let (mut finish, mut bytes) = (None, Vec::new());
    while let Some(item) = queue.blocking_recv() {
        match item {
            Item::Data { offset, payload } => {
                // One copy is cheaper than a system call, and a start of the hash function, for each fragment.
                bytes.clear();
                payload.pieces().iter().for_each(|piece| bytes.extend_from_slice(piece));
                drop(payload);
                if let Err(error) = partial.write(offset, &bytes) {
                    partial.discard();
                    return Stored::Failed(error);
                }
                counter.store(partial.have().total(), Ordering::Relaxed);
            }
            Item::Finish { size, digest } => finish = Some((size, digest)),
        }
        if let Some((size, digest)) = finish
            && partial.is_complete(size)
        {
            return match partial.finish(size, &digest) {
                Ok(_) => Stored::Complete { size, digest },
                Err(error) => Stored::Failed(error),
            };
        }
    }
    let bytes = partial.have().total();
    Stored::Broken { kept: partial.keep(), bytes }
}

/// Sends the verdict on a file to the sender.
async fn answer(association: &Association, verdict: Result<(), String>) {
    let options = SendOptions::default().with(|o| o.ppid = CONTROL);
    let _ = association.send(options, Control::Verdict(verdict).encode()).await;
}

fn decode(payload: Payload) -> Result<Control, Failure> {
    Control::decode(&payload.into_bytes())
        .map_err(|error| Failure::running(format!("the sender sent {error}")))
}

/// Reason in the ABORT to a sender when the user stops the command.
const INTERRUPTED: &str = "the receiver was interrupted";
/// Time that a sender may take to announce a file.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time to wait for the end of the association after its last message.
const FAREWELL: Duration = Duration::from_secs(5);
