//! The side that accepts TCP connections and opens the association.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tresse::{Association, Endpoint, StreamId, units};

use super::args::{ClientArgs, WhileDown};
use super::connection::carry;
use super::hub::Hub;
use super::message::Word;
use crate::call::{self, FAREWELL, breach};
use crate::failure::Failure;
use crate::output;
use crate::report::paths::{PathsReport, Side, Snapshot};
use crate::schedulers;
use crate::signal;

pub(super) async fn run(args: ClientArgs) -> Result<(), Failure> {
    let config = args.common.config()?;
    let tcp = TcpListener::bind(args.tcp).await;
    let tcp = tcp.map_err(|error| Failure::usage(format!("--tcp {}: {error}", args.tcp)))?;
    let endpoint = args.call.bind(config, args.common.schedulers.registry()?)?;
    let failure = last(&args, &tcp, &endpoint).await;
    let _ = timeout(FAREWELL, endpoint.wait_idle()).await;
    Err(call::with_causes(failure, &endpoint))
}

/// One association after the other, until the user ends it or the first cannot be had; answers why it ends.
async fn last(args: &ClientArgs, tcp: &TcpListener, endpoint: &Endpoint) -> Failure {
    let mut interrupt = std::pin::pin!(signal::interrupted());
    let (mut first, mut pause) = (true, SHORTEST_PAUSE);
    loop {
        let attempt = tokio::select! {
            attempt = args.call.connect(endpoint) => attempt,
            never = turn_away_all(tcp), if !first && args.while_down == WhileDown::Refuse => match never {},
            () = &mut interrupt => return Failure::interrupted("interrupted before the tunnel was there"),
        };
        let failure = match attempt {
            Ok(association) => {
                if !args.common.quiet && first {
                    args.call.say_links(&association, endpoint);
                    let place =
                        tcp.local_addr().map_or_else(|_| args.tcp.to_string(), |local| local.to_string());
                    let server = call::list(&args.call.remote());
                    output::say(&format!("TCP connections to {place} go through {server}"));
                } else if !args.common.quiet {
                    output::say("the tunnel is there again");
                }
                (first, pause) = (false, SHORTEST_PAUSE);
                let began = Instant::now();
                let failure = tokio::select! {
                    failure = carry_all(tcp, &association) => failure,
                    never = args.call.follow(endpoint, &association, args.common.quiet) => match never {},
                    () = &mut interrupt => Failure::interrupted("interrupted"),
                };
                if args.once || failure.is_interruption() {
                    if !args.common.quiet {
                        let _ = output::print(&report(&association, began));
                    }
                    association.abort("the tunnel was given up");
                    return failure;
                }
                association.abort("the tunnel broke down");
                failure
            }
            Err(failure) if first || args.once => return failure,
            Err(failure) => failure,
        };
        output::say(&format!("{}; trying again in {}", failure.message(), units::format_duration(pause)));
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            never = turn_away_all(tcp), if args.while_down == WhileDown::Refuse => match never {},
            () = &mut interrupt => return Failure::interrupted("interrupted while the tunnel was down"),
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Carries connections over one association, until it ends; answers why.
async fn carry_all(tcp: &TcpListener, association: &Association) -> Failure {
    let hub = Hub::new(association.clone());
    tokio::select! {
        outcome = hub.serve(|_| Err(breach("a connection of its own"))) => {
            outcome.err().unwrap_or_else(|| Failure::running("the server closed the tunnel"))
        }
        failure = accept_all(&hub, tcp) => failure,
        never = schedulers::watch(association.events(), output::say) => match never {},
    }
}

/// What the paths carried since the association began, and what limited them.
fn report(association: &Association, began: Instant) -> String {
    let paths = PathsReport::new(&Snapshot::take(association), Side::Sender, began.elapsed());
    paths.lines().join("\n") + "\n"
}

/// Resets whatever connects.
async fn turn_away_all(tcp: &TcpListener) -> Infallible {
    loop {
        match tcp.accept().await {
            Ok((connection, _)) => drop(connection.set_zero_linger()),
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// Gives each connection a stream, as long as there are any.
async fn accept_all(hub: &Arc<Hub>, tcp: &TcpListener) -> Failure {
    let streams = hub.association().streams();
    // Stream 0 carries nothing.
    let streams = streams.0.min(streams.1).saturating_sub(1);
    let turns = Arc::new(Semaphore::new(streams.into()));
    loop {
        let Ok(turn) = Arc::clone(&turns).acquire_owned().await else {
            return Failure::running("the tunnel broke down");
        };
        let connection = match tcp.accept().await {
            Ok((connection, _)) => connection,
            // Gone before it was accepted, or too many files are open: neither ends the others.
            Err(error) => {
                output::say(&format!("a TCP connection was not accepted: {error}"));
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        let Some(place) = hub.any_place((1..=streams).map(StreamId)) else {
            return Failure::running("no stream is free although a connection has ended");
        };
        let hub = Arc::clone(hub);
        tokio::spawn(async move {
            // How the association ends is for the hub to say.
            if hub.say(place.stream, Word::Open).await.is_ok() {
                let _ = carry(&hub, place, connection).await;
            }
            drop(turn);
        });
    }
}

/// Before another connection is accepted, when one could not be.
const PAUSE: Duration = Duration::from_millis(100);
/// Before the tunnel is set up anew, and at most so after many attempts: a server that restarts is soon there again, and one
/// that is gone is not bothered.
const SHORTEST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);
