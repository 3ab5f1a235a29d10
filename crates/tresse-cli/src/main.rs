//! The `tresse` command: parses, dispatches, and turns every outcome into an exit code. Each command has its own grammar.
//!
//! Exit codes: 0 done, 1 failed while running, 2 wrong usage or input, 3 peer unreachable, a name not found or all paths lost, 4 a
//! required throughput was missed, 5 the peer is not trusted or does not trust this side, 130 interrupted. Results go to standard output,
//! everything else to standard error.
//!
//! The layers; a module uses only modules on lines above its own, and no files use each other in a circle:
//!
//! ```text
//! 1  failure  input  signal            errors with their exit codes; files that are read; interrupts
//!    descriptors  links  liveness      limits of the system; links of paths; silence of a peer
//!    stun                              requests and answers of STUN
//! 2  output  written                   what is printed; files that are written
//!    security  places                  keys; peers of a server
//! 3  args  named  record               options and values that several commands have
//!    report  screen                    reports of paths and limits; the live table
//! 4  call  schedulers                  both ends of an association; policies from files
//!    progress  transfer                progress of work; the protocol of file transfers
//! 5  send  recv  perf  peer  tunnel    commands, each with its own options and its `run`
//!    sim  keygen  dissect  switches
//! 6  doctor  emulate                   commands that use others: a load of perf, a scenario as sim loads it
//! 7  main                              all commands
//! ```

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

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};
use failure::Failure;

/// CMT-SCTP in user space: one association over all the paths between two hosts.
///
/// Exit codes: 0 done; 1 failed while running; 2 wrong usage or input; 3 peer unreachable, a name
/// not found or all paths lost; 4 a required throughput was missed; 5 the peer is not trusted or does not trust this side; 130
/// interrupted.
#[derive(Parser)]
#[command(name = "tresse", version, arg_required_else_help = true)]
struct Tresse {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Simulate a scenario, and print the throughput and the limits of each path
    Sim(sim::SimArgs),
    /// Emulate a scenario's paths between real programs, in real time
    Emulate(emulate::EmulateArgs),
    /// Send a file, or standard input, over all paths
    Send(send::SendArgs),
    /// Receive files into a directory
    Recv(recv::RecvArgs),
    /// Measure the throughput between two hosts, and print the limits of each path
    Perf(perf::PerfArgs),
    /// Carry TCP connections, UDP flows and IP packets over all paths of one association
    Tunnel(tunnel::TunnelArgs),
    /// Make a private key, and print its fingerprint
    Keygen(keygen::KeygenArgs),
    /// Run a plain endpoint for tests: discard, echo or generate messages
    Peer(peer::PeerArgs),
    /// Check this host for problems with several paths, and print remedies
    Doctor(doctor::DoctorArgs),
    /// Print one line for every SCTP packet of a capture
    Dissect(dissect::DissectArgs),
    /// List every setting and preset of the transport
    Switches(switches::SwitchesArgs),
}

fn main() -> ExitCode {
    let command = match Tresse::try_parse() {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grammar_is_sound() {
        use clap::CommandFactory;
        Tresse::command().debug_assert();
    }

    #[test]
    fn what_is_no_number_is_refused_in_plain_words() {
        let said = |value: &str| {
            let error = Tresse::try_parse_from(["tresse", "sim", "x.toml", "--seed", value]);
            args::mistake(&error.map(|_| ()).expect_err("no seed"))
        };
        assert_eq!(said("x"), "invalid value 'x' for '--seed <SEED>': it is not a whole number");
        assert!(said("99999999999999999999").ends_with(": the number is too large"));
    }
}
