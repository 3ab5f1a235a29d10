//! `tresse send`: opens an association over all paths and sends files through it, one after the other.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::pin::pin;
use std::time::{Duration, Instant};

use bytes::Bytes;
use clap::Args;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tresse::{Association, AssociationConfig, Endpoint, Joiner, SendOptions, StreamId};

use crate::args::{OutputArgs, SchedulerArgs, TransportArgs, rate};
use crate::call::{self, CallArgs, FAREWELL, breach, put};
use crate::failure::Failure;
use crate::output;
use crate::progress::{self, Progress};
use crate::report::paths::{Side, Snapshot};
use crate::report::words::printable;
use crate::report::{Facts, Report};
use crate::schedulers;
use crate::signal;
use crate::transfer::files::{self, Offer};
use crate::transfer::message::Control;
use crate::transfer::ranges::Ranges;
use crate::transfer::source::{Source, Whole};
use crate::transfer::{CONTROL, DATA, DATA_STREAMS, QUEUE, whole_message};

#[derive(Args)]
pub(crate) struct SendArgs {
    /// Files and directories, which stand for all files below them; - for standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) call: CallArgs,
    /// The name that the receiver gives to the file or directory; its own if not given
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Highest rate at which a file is sent, such as 50Mbit/s
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub(crate) rate: Option<u64>,
    #[command(flatten)]
    pub(crate) schedulers: SchedulerArgs,
    #[command(flatten)]
    pub(crate) transport: TransportArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

pub(crate) async fn run(mut args: SendArgs) -> Result<(), Failure> {
    let config = args.transport.config(&args.call.security)?;
    let schedulers = args.schedulers.registry()?;
    let offers = files::expand(&args.files, args.name.as_deref())?;
    let first = offers.first().ok_or_else(|| Failure::usage("there is no file to send"))?;
    let mut source = first.open()?;
    args.call.resolve().await?;
    let mut endpoint = args.call.bind(config.clone(), schedulers)?;
    let again = source.next_time();
    let mut association = tokio::select! {
        association = args.call.connect_saying(&endpoint, control(), announcement(&source)) => association?,
        () = signal::interrupted() => return Err(Failure::interrupted("interrupted before anything was sent")),
    };
    if !args.output.quiet {
        args.call.say_links(&association, &endpoint);
    }
    let queue = Queue { config: &config, offers: &offers, at: Cell::new(0), refused: RefCell::default() };
    let outcome = loop {
        let new = tokio::select! {
            outcome = send_each(&association, source, &queue, &args) => break outcome,
            new = args.call.successor(&endpoint, &association, args.output.quiet, async |_| begin_anew(&queue, &args).await) => new,
            () = signal::interrupted() => {
                association.abort("the sender was interrupted");
                break Err(Failure::interrupted(format!("interrupted: {again}")));
            }
        };
        let (from, next) = (std::mem::replace(&mut endpoint, new.endpoint), new.association);
        call::retire(from, std::mem::replace(&mut association, next));
        source = new.source;
        queue.at.set(new.at);
    };
    if outcome.is_err() {
        association.abort("the sender gave up");
    }
    drop(association);
    call::say_farewell(&endpoint).await;
    outcome.map_err(|failure| call::with_causes(failure, &endpoint))
}

/// The files of one call, and the position of the current one.
struct Queue<'a> {
    config: &'a AssociationConfig,
    offers: &'a [Offer],
    /// Index of the current file.
    at: Cell<usize>,
    refused: RefCell<Vec<Failure>>,
}

/// A new association that continues a transfer, with the file that was announced on it.
struct ResumedTransfer {
    endpoint: Endpoint,
    association: Association,
    source: Source,
    at: usize,
}

/// Announces the current file on a new association from the present addresses. The receiver resumes the file.
async fn begin_anew(queue: &Queue<'_>, args: &SendArgs) -> Result<ResumedTransfer, Failure> {
    let at = queue.at.get();
    let offer = queue.offers.get(at).ok_or_else(|| Failure::running("all files are sent"))?;
    let source = offer.open_again()?;
    let endpoint = args.call.bind(queue.config.clone(), args.schedulers.registry()?)?;
    let association = args.call.connect_saying(&endpoint, control(), announcement(&source)).await?;
    Ok(ResumedTransfer { endpoint, association, source, at })
}

/// Reason for which a file did not arrive.
enum TransferFailure {
    /// The receiver refuses or cannot store the file; others may follow.
    Refused(Failure),
    /// Nothing more can be sent.
    Over(Failure),
}

impl From<Failure> for TransferFailure {
    fn from(failure: Failure) -> Self {
        TransferFailure::Over(failure)
    }
}

/// Sends `first`, which has been announced, and then the following files, also after a file was refused.
async fn send_each(
    association: &Association,
    first: Source,
    queue: &Queue<'_>,
    args: &SendArgs,
) -> Result<(), Failure> {
    let mut source = first;
    loop {
        match transfer(association, source, args).await {
            Ok(()) => {}
            Err(TransferFailure::Refused(failure)) => queue.refused.borrow_mut().push(failure),
            Err(TransferFailure::Over(failure)) => return Err(failure),
        }
        queue.at.set(queue.at.get() + 1);
        let Some(next) = queue.offers.get(queue.at.get()) else { break };
        source = next.open()?;
        put(association, control(), announcement(&source)).await?;
    }
    // The files are stored, so the outcome of the shutdown does not matter.
    let _ = timeout(FAREWELL, association.shutdown()).await;
    let mut refused = queue.refused.take();
    let last = refused.pop();
    refused.iter().for_each(|failure| output::say(failure.message()));
    last.map_or(Ok(()), Err)
}

fn announcement(source: &Source) -> Bytes {
    Control::Announce { id: source.id, size: source.size, name: source.name.clone() }.encode()
}

fn control() -> SendOptions {
    SendOptions::default().with(|o| o.ppid = CONTROL)
}

/// Runs the dialogue about one file, from the answer to the announcement until the verdict, and prints the report.
async fn transfer(association: &Association, source: Source, args: &SendArgs) -> Result<(), TransferFailure> {
    let (name, announced) = (source.name.clone(), source.size);
    let started = Instant::now();
    let have = match recv_control(association).await? {
        Control::Accept { have } => have,
        other => {
            verdict_of(other, &name)?;
            return Err(breach("a verdict without a file").into());
        }
    };
    let before = Snapshot::take(association);
    let acked_before: u64 = association.path_stats().iter().map(|path| path.bytes_acked).sum();
    let resumed = have.total();
    let work = send_and_await_verdict(association, source, have, (&name, args.rate));
    let display = progress::display(args.output.quiet || args.output.json);
    let faults = schedulers::watch(association, |line| display.suspend(|| output::say(line)));
    let progress = Progress::new(&display, &name, announced);
    let watching = progress.watch(
        association,
        |paths| resumed + paths.iter().map(|path| path.bytes_acked).sum::<u64>() - acked_before,
        |path| path.packet_bytes_sent,
    );
    let outcome = tokio::select! {
        outcome = work => outcome,
        never = watching => match never {},
        never = faults => match never {},
    };
    let snapshot = Snapshot::take(association).since(&before);
    let whole = outcome?;
    let facts =
        Facts { name, size: whole.size, resumed, elapsed: started.elapsed(), digest: Some(whole.digest) };
    if args.output.quiet && !args.output.json {
        return Ok(());
    }
    Ok(Report::new(facts, &snapshot, Side::Sender).print(args.output.json)?)
}

/// Sends the data that the receiver does not have, and waits for the verdict, which may come early.
async fn send_and_await_verdict(
    association: &Association,
    source: Source,
    have: Ranges,
    (name, rate): (&str, Option<u64>),
) -> Result<Whole, TransferFailure> {
    let mut verdict = pin!(recv_control(association));
    let whole = tokio::select! {
        whole = send_all(association, source, have, rate) => whole?,
        early = &mut verdict => {
            // Data of this file that is under way would be taken for data of the next one.
            return Err(TransferFailure::Over(match verdict_of(early?, name) {
                Err(TransferFailure::Refused(failure) | TransferFailure::Over(failure)) => failure,
                Ok(()) => breach("a verdict before the end"),
            }));
        }
    };
    verdict_of(verdict.await?, name)?;
    Ok(whole)
}

async fn send_all(
    association: &Association,
    source: Source,
    have: Ranges,
    rate: Option<u64>,
) -> Result<Whole, Failure> {
    let (sender, mut pieces) = mpsc::channel(QUEUE);
    let reading = tokio::task::spawn_blocking(move || source.read_all(&have, &sender));
    let data_streams = association.streams().0.saturating_sub(1).min(DATA_STREAMS);
    let (mut turn, began, mut sent) = (0, Instant::now(), 0);
    while let Some(piece) = pieces.recv().await {
        if let Some(rate) = rate {
            let due = began + Duration::from_secs_f64(sent as f64 * 8.0 / rate as f64);
            tokio::time::sleep_until(due.into()).await;
            sent += piece.len();
        }
        // Stream 0 is for control, unless there is no other.
        let stream = if data_streams == 0 { 0 } else { 1 + turn % data_streams };
        turn = turn.wrapping_add(1) % DATA_STREAMS.max(1);
        let options = SendOptions::on(StreamId(stream)).with(|o| {
            o.ppid = DATA;
            o.unordered = true;
        });
        put(association, options, piece).await?;
    }
    let whole = reading.await.map_err(|_| Failure::running("the reading thread broke down"))??;
    let finish = Control::Finish { size: whole.size, digest: whole.digest };
    put(association, control(), finish.encode()).await?;
    Ok(whole)
}

/// Waits for the receiver's next control message.
async fn recv_control(association: &Association) -> Result<Control, Failure> {
    match whole_message(association, &mut Joiner::default()).await? {
        Some(message) if message.ppid == CONTROL => Control::decode(&message.payload.into_bytes())
            .map_err(|error| Failure::running(format!("the receiver sent {error}"))),
        Some(_) => Err(breach("data")),
        None => Err(Failure::running("the receiver closed the association before the file was stored")),
    }
}

fn verdict_of(message: Control, name: &str) -> Result<(), TransferFailure> {
    match message {
        Control::Verdict(Ok(())) => Ok(()),
        Control::Verdict(Err(reason)) => {
            // The reason comes from the network and goes to a terminal.
            let reason = printable(&reason);
            Err(TransferFailure::Refused(Failure::running(format!(
                "the receiver did not store {name}: {reason}"
            ))))
        }
        _ => Err(breach("a message out of turn").into()),
    }
}
