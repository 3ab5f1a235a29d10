//! `tresse recv`: accepts associations and stores the files that it receives.

mod active_transfers;
mod incoming;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tresse::Endpoint;

use crate::args::{OutputArgs, SchedulerArgs, TransportArgs};
use crate::call::{self, ListenArgs};
use crate::failure::{Failure, of_file};
use crate::output;
use crate::places::{Acceptor, SILENCE};
use crate::progress;
use crate::signal;
use active_transfers::ActiveTransfers;
use incoming::Settings;

#[derive(Args)]
pub(crate) struct RecvArgs {
    #[command(flatten)]
    pub(crate) listen: ListenArgs,
    /// The directory for the files
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// End after one sender, with all its files
    #[arg(long)]
    pub(crate) once: bool,
    #[command(flatten)]
    pub(crate) schedulers: SchedulerArgs,
    #[command(flatten)]
    pub(crate) transport: TransportArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

pub(crate) async fn run(args: RecvArgs) -> Result<(), Failure> {
    let config = args.transport.config(&args.listen.security)?;
    check_directory(&args.out)?;
    let endpoint = args.listen.bind(config, args.schedulers.registry()?).await?;
    if !args.output.quiet {
        output::say(&args.listen.greeting(&endpoint));
    }
    let display = progress::display(args.output.quiet || args.output.json);
    let once = args.once;
    let outcome = serve(
        &endpoint,
        Arc::new(Settings { args, display, active_transfers: ActiveTransfers::default() }),
        once,
    )
    .await;
    call::say_farewell(&endpoint).await;
    outcome
}

/// Accepts transfers until the user interrupts or, with `once`, the first one ends.
async fn serve(endpoint: &Endpoint, settings: Arc<Settings>, once: bool) -> Result<(), Failure> {
    let (stop, stopped) = watch::channel(false);
    let mut transfers = JoinSet::new();
    let mut acceptor = Acceptor::new(endpoint, MAX_TRANSFERS, SILENCE);
    let mut interrupt = std::pin::pin!(signal::interrupted());
    let mut accepting = true;
    let interrupted = loop {
        tokio::select! {
            accepted = acceptor.admit(), if accepting => {
                let accepted = accepted.ok_or_else(|| Failure::running("the network driver broke down"))?;
                transfers.spawn(incoming::attend(accepted, Arc::clone(&settings), stopped.clone()));
                accepting = !once;
            }
            Some(done) = transfers.join_next() => {
                let done = done.unwrap_or_else(|_| Err(Failure::running("a transfer broke down")));
                match done {
                    Err(failure) if once => match acceptor.admit_waiting().await {
                        // An association that waits belongs to the same sender, at other addresses.
                        Some(accepted) => {
                            output::say(failure.message());
                            transfers.spawn(incoming::attend(accepted, Arc::clone(&settings), stopped.clone()));
                        }
                        None => return Err(failure),
                    },
                    Ok(()) if once => return Ok(()),
                    Ok(()) => {}
                    Err(failure) => output::say(failure.message()),
                }
            }
            () = &mut interrupt => break Failure::interrupted("interrupted"),
        }
    };
    if transfers.is_empty() {
        return Err(interrupted);
    }
    // Each transfer ends in order, and reports the data that it keeps.
    let _ = stop.send(true);
    let mut last = interrupted;
    while let Some(done) = transfers.join_next().await {
        if let Ok(Err(failure)) = done {
            if !transfers.is_empty() {
                output::say(failure.message());
            }
            last = Failure::interrupted(failure.message());
        }
    }
    Err(last)
}

/// Checks before the first transfer that files can be created in the directory.
fn check_directory(directory: &Path) -> Result<(), Failure> {
    let shown = directory.display();
    let refuse = |reason: &str| Err(Failure::usage(format!("--out {shown}: {reason}")));
    match fs::metadata(directory) {
        Ok(metadata) if !metadata.is_dir() => return refuse("is not a directory"),
        Err(error) if error.kind() == ErrorKind::NotFound => return refuse("there is no such directory"),
        Err(error) => return refuse(&error.to_string()),
        Ok(_) => {}
    }
    let probe = directory.join(format!(".tresse-{}", std::process::id()));
    match fs::File::create_new(&probe) {
        Ok(_) => {
            let _ = fs::remove_file(probe);
            Ok(())
        }
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            refuse("no permission to create files there")
        }
        Err(error) => Err(of_file(format!("--out {shown}: no file can be created there"), &error)),
    }
}

/// Most transfers at a time; further senders wait until one ends, or becomes silent.
const MAX_TRANSFERS: usize = 16;
