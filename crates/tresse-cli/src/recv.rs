//! `tresse recv`: accepts associations and stores the files that they bring.

mod incoming;

use std::fs;
use std::io::{ErrorKind, Write};
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tresse::{Endpoint, EndpointConfig};

use crate::args::RecvArgs;
use crate::failure::Failure;
use crate::progress;
use crate::signal;
use incoming::Settings;

pub(crate) async fn run(args: RecvArgs) -> Result<(), Failure> {
    let config = args.transport.config()?;
    check_directory(&args.out)?;
    let listening = EndpointConfig { port: args.sctp_port, listen: true, ..EndpointConfig::default() };
    let endpoint = Endpoint::bind(&args.listen, args.port, listening, config)?;
    if !args.output.quiet {
        let addresses = args.listen.iter().map(IpAddr::to_string).collect::<Vec<_>>().join(",");
        let (udp, sctp) = (endpoint.udp_port(), endpoint.port());
        say(&format!("listening on {addresses}, UDP port {udp}, SCTP port {sctp}"));
    }
    let display = progress::display(args.output.quiet || args.output.json);
    let once = args.once;
    let outcome = serve(&endpoint, Arc::new(Settings { args, display }), once).await;
    // What tells the peers of the end should leave before this process does.
    let _ = timeout(FAREWELL, endpoint.wait_idle()).await;
    outcome
}

/// Accepts and stores until the user, or with `once` the first transfer, ends it.
async fn serve(endpoint: &Endpoint, settings: Arc<Settings>, once: bool) -> Result<(), Failure> {
    let (stop, stopped) = watch::channel(false);
    let mut transfers = JoinSet::new();
    let mut interrupt = std::pin::pin!(signal::interrupted());
    let mut accepting = true;
    let interrupted = loop {
        tokio::select! {
            association = endpoint.accept(), if accepting && transfers.len() < MAX_TRANSFERS => {
                let association = association.ok_or_else(|| Failure::running("the network driver broke down"))?;
                transfers.spawn(incoming::receive(association, Arc::clone(&settings), stopped.clone()));
                accepting = !once;
            }
            Some(done) = transfers.join_next() => {
                let done = done.unwrap_or_else(|_| Err(Failure::running("a transfer broke down")));
                match done {
                    _ if once => return done,
                    Ok(()) => {}
                    Err(failure) => say(failure.message()),
                }
            }
            () = &mut interrupt => break Failure::interrupted("interrupted"),
        }
    };
    if transfers.is_empty() {
        return Err(interrupted);
    }
    // Every transfer ends in order and says what it keeps.
    let _ = stop.send(true);
    let mut last = interrupted;
    while let Some(done) = transfers.join_next().await {
        if let Ok(Err(failure)) = done {
            if !transfers.is_empty() {
                say(failure.message());
            }
            last = Failure::interrupted(failure.message());
        }
    }
    Err(last)
}

/// Refuses a directory that cannot take files before anybody sends one.
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
        Err(error) => refuse(&format!("no file can be created there: {error}")),
    }
}

/// A line for the user that is no result.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "tresse: {line}");
}

/// Transfers at a time; further associations wait to be accepted.
const MAX_TRANSFERS: usize = 16;
/// How long to wait for peers once everything that matters is done.
const FAREWELL: Duration = Duration::from_secs(2);
