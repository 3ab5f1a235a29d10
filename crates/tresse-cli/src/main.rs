//! The `tresse` command: parses, dispatches, and turns every outcome into an exit code.
//!
//! Exit codes: 0 done, 1 failed while running, 2 wrong usage or input, 3 peer unreachable, a name not found or all paths lost, 4 a
//! required throughput was missed, 5 the peer is not trusted or does not trust this side, 130 interrupted. Results go to standard output,
//! everything else to standard error.

mod args;
mod call;
mod descriptors;
mod dissect;
mod doctor;
mod emulate;
mod failure;
mod input;
mod keygen;
mod links;
mod liveness;
mod named;
mod output;
mod peer;
mod perf;
mod places;
mod progress;
mod record;
mod recv;
mod report;
mod schedulers;
mod screen;
mod security;
mod send;
mod signal;
mod sim;
mod stun;
mod switches;
mod transfer;
mod tunnel;
mod written;

use std::io::Write;
use std::process::ExitCode;

use args::Command;
use clap::Parser;
use clap::error::ErrorKind;
use failure::Failure;

fn main() -> ExitCode {
    let command = match args::Tresse::try_parse() {
        Ok(tresse) => tresse.command,
        Err(error) => return refuse(&error),
    };
    match run(command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // Nothing is left to do if even standard error is gone.
            let _ = writeln!(std::io::stderr(), "tresse: {}", failure.message());
            ExitCode::from(failure.exit_code())
        }
    }
}

fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Sim(args) => on_runtime(sim::run(args)),
        Command::Emulate(args) => on_runtime(emulate::run(args)),
        Command::Send(args) => on_runtime(send::run(args)),
        Command::Recv(args) => on_runtime(recv::run(args)),
        Command::Perf(args) => on_runtime(perf::run(args)),
        Command::Tunnel(args) => on_runtime(tunnel::run(args)),
        Command::Keygen(args) => keygen::run(&args),
        Command::Peer(args) => {
            let threads = args.threads();
            on_threads(threads, peer::run(args))
        }
        Command::Doctor(args) => on_runtime(doctor::run(args)),
        Command::Dissect(args) => dissect::run(&args),
        Command::Switches(args) => switches::run(&args),
    }
}

fn on_runtime(command: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    on_threads(1, command)
}

/// Runs a command whose tasks share `threads` threads.
fn on_threads(threads: usize, command: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    use tokio::runtime::Builder;

    // If the driver and the command share one thread, they need not wake each other across processors for every message. Files are read
    // and written on other threads.
    let runtime = match threads {
        1 => Builder::new_current_thread().enable_all().build(),
        threads => Builder::new_multi_thread().worker_threads(threads).enable_all().build(),
    };
    let runtime = runtime.map_err(|error| Failure::running(format!("cannot start: {error}")))?;
    let outcome = runtime.block_on(command);
    // A thread may be blocked in a read from a terminal; the process does not wait for it.
    runtime.shutdown_background();
    outcome
}

/// Prints help and version as clap formats them, and the help also if there is no command. Prints any other error in one line.
fn refuse(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let _ = error.print();
        return ExitCode::from(2);
    }
    let line = args::mistake(error);
    let _ = writeln!(std::io::stderr(), "tresse: {line} (--help says what is accepted)");
    ExitCode::from(2)
}
