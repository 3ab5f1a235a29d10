//! `tresse send`: opens an association over all paths and moves one file through it.

use std::pin::pin;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::time::timeout;
use tresse::{Association, Joiner, SendOptions, StreamId};

use crate::args::SendArgs;
use crate::call::{self, FAREWELL, breach, put};
use crate::failure::Failure;
use crate::output;
use crate::progress::{self, Progress};
use crate::report::paths::{Side, Snapshot};
use crate::report::words::printable;
use crate::report::{Facts, Report};
use crate::schedulers;
use crate::signal;
use crate::transfer::message::Control;
use crate::transfer::ranges::Ranges;
use crate::transfer::source::{Source, Whole};
use crate::transfer::{CONTROL, DATA, DATA_STREAMS, QUEUE, whole_message};

pub(crate) async fn run(args: SendArgs) -> Result<(), Failure> {
    let config = args.transport.config()?;
    let schedulers = args.schedulers.registry()?;
    let source = Source::open(&args.file, args.name.as_deref())?;
    let endpoint = args.call.bind(config, schedulers)?;
    let announce = Control::Announce { id: source.id, size: source.size, name: source.name.clone() };
    let control = SendOptions { ppid: CONTROL, ..SendOptions::default() };
    let again = source.next_time();
    let association = tokio::select! {
        association = args.call.connect_saying(&endpoint, control, announce.encode()) => association?,
        () = signal::interrupted() => return Err(Failure::interrupted("interrupted before anything was sent")),
    };
    if !args.output.quiet {
        args.call.say_links(&association, &endpoint);
    }
    let outcome = tokio::select! {
        outcome = transfer(&association, source, &args) => outcome,
        never = args.call.follow(&endpoint, &association, args.output.quiet) => match never {},
        () = signal::interrupted() => {
            association.abort("the sender was interrupted");
            Err(Failure::interrupted(format!("interrupted: {again}")))
        }
    };
    if outcome.is_err() {
        association.abort("the sender gave up");
    }
    drop(association);
    call::say_farewell(&endpoint).await;
    outcome.map_err(|failure| call::with_causes(failure, &endpoint))
}

/// The whole dialogue, from the answer to the announcement to the verdict and the report.
async fn transfer(association: &Association, source: Source, args: &SendArgs) -> Result<(), Failure> {
    let (name, announced) = (source.name.clone(), source.size);
    let started = Instant::now();
    let have = match hear(association).await? {
        Control::Accept { have } => have,
        other => {
            return Err(verdict_of(other, &name).err().unwrap_or_else(|| breach("a verdict without a file")));
        }
    };
    let resumed = have.total();
    let work = send_and_hear(association, source, have, (&name, args.rate));
    let display = progress::display(args.output.quiet || args.output.json);
    let faults = schedulers::watch(association.events(), |line| display.suspend(|| output::say(line)));
    let progress = Progress::new(&display, &name, announced);
    let watching = progress.watch(
        association,
        |paths| resumed + paths.iter().map(|path| path.bytes_acked).sum::<u64>(),
        |path| path.packet_bytes_sent,
    );
    let outcome = tokio::select! {
        outcome = work => outcome,
        never = watching => match never {},
        never = faults => match never {},
    };
    let snapshot = Snapshot::take(association);
    let whole = outcome?;
    let facts =
        Facts { name, size: whole.size, resumed, elapsed: started.elapsed(), digest: Some(whole.digest) };
    // The file is stored: whether the association ends well changes nothing about that.
    let _ = timeout(FAREWELL, association.shutdown()).await;
    if args.output.quiet && !args.output.json {
        return Ok(());
    }
    Report::new(facts, &snapshot, Side::Sender).print(args.output.json)
}

/// Sends everything that the receiver does not have and waits for its verdict, which may come early.
async fn send_and_hear(
    association: &Association,
    source: Source,
    have: Ranges,
    (name, rate): (&str, Option<u64>),
) -> Result<Whole, Failure> {
    let mut verdict = pin!(hear(association));
    let whole = tokio::select! {
        whole = send_all(association, source, have, rate) => whole,
        early = &mut verdict => {
            let refused = early.and_then(|message| verdict_of(message, name));
            return Err(refused.err().unwrap_or_else(|| breach("a verdict before the end")));
        }
    };
    match whole {
        Ok(whole) => verdict_of(verdict.await?, name).map(|()| whole),
        Err(failure) => Err(failure),
    }
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
        let options = SendOptions { ppid: DATA, unordered: true, ..SendOptions::on(StreamId(stream)) };
        put(association, options, piece).await?;
    }
    let whole = reading.await.map_err(|_| Failure::running("the reading thread broke down"))??;
    let finish = Control::Finish { size: whole.size, digest: whole.digest };
    put(association, SendOptions { ppid: CONTROL, ..SendOptions::default() }, finish.encode()).await?;
    Ok(whole)
}

/// The receiver's next control message.
async fn hear(association: &Association) -> Result<Control, Failure> {
    match whole_message(association, &mut Joiner::default()).await? {
        Some(message) if message.ppid == CONTROL => Control::decode(&message.payload.into_bytes())
            .map_err(|error| Failure::running(format!("the receiver sent {error}"))),
        Some(_) => Err(breach("data")),
        None => Err(Failure::running("the receiver closed the association before the file was stored")),
    }
}

fn verdict_of(message: Control, name: &str) -> Result<(), Failure> {
    match message {
        Control::Verdict(Ok(())) => Ok(()),
        Control::Verdict(Err(reason)) => {
            // The reason comes from the network and goes to a terminal.
            Err(Failure::running(format!("the receiver did not store {name}: {}", printable(&reason))))
        }
        _ => Err(breach("a message out of turn")),
    }
}
