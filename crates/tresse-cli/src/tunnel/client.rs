//! The side that accepts TCP connections and opens the association.

use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tresse::StreamId;

use super::args::ClientArgs;
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
    let association = tokio::select! {
        association = args.call.connect(&endpoint) => association?,
        () = signal::interrupted() => return Err(Failure::interrupted("interrupted before the tunnel was there")),
    };
    if !args.common.quiet {
        let place = tcp.local_addr().map_or_else(|_| args.tcp.to_string(), |local| local.to_string());
        args.call.say_links(&association, &endpoint);
        output::say(&format!("TCP connections to {place} go through {}", call::list(&args.call.remote())));
    }
    let began = std::time::Instant::now();
    let hub = Hub::new(association);
    let failure = tokio::select! {
        outcome = hub.serve(|_| Err(breach("a connection of its own"))) => outcome.err().unwrap_or_else(|| Failure::running("the server closed the tunnel")),
        failure = accept_all(&hub, &tcp) => failure,
        never = schedulers::watch(hub.association().events(), output::say) => match never {},
        () = signal::interrupted() => Failure::interrupted("interrupted"),
    };
    if !args.common.quiet {
        let paths = PathsReport::new(&Snapshot::take(hub.association()), Side::Sender, began.elapsed());
        output::print(&(paths.lines().join("\n") + "\n"))?;
    }
    hub.association().abort("the tunnel was given up");
    drop(hub);
    let _ = timeout(FAREWELL, endpoint.wait_idle()).await;
    Err(call::with_causes(failure, &endpoint))
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
const PAUSE: std::time::Duration = std::time::Duration::from_millis(100);
