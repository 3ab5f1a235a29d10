//! The side that waits for clients and connects what they bring to a TCP server.

use std::sync::Arc;

use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tresse::{Association, Endpoint};

use super::args::ServerArgs;
use super::connection::{carry, turn_away};
use super::hub::{Hub, Place};
use crate::call;
use crate::failure::Failure;
use crate::output;
use crate::schedulers;
use crate::signal;

pub(super) async fn run(args: ServerArgs) -> Result<(), Failure> {
    let mut config = args.common.config()?;
    // A client may not ask for more connections than that.
    config.inbound_streams = config.outbound_streams;
    let endpoint = args.listen.bind(config, args.common.schedulers.registry()?)?;
    if !args.common.quiet {
        output::say(&format!("{}, for TCP to {}", args.listen.greeting(&endpoint), args.tcp));
    }
    let outcome = serve(&endpoint, &args).await;
    call::say_farewell(&endpoint).await;
    outcome
}

async fn serve(endpoint: &Endpoint, args: &ServerArgs) -> Result<(), Failure> {
    let target: Arc<str> = args.tcp.as_str().into();
    let (stop, stopped) = watch::channel(false);
    let mut clients = JoinSet::new();
    let mut interrupt = std::pin::pin!(signal::interrupted());
    loop {
        tokio::select! {
            association = endpoint.accept(), if clients.len() < MOST_CLIENTS => {
                let association = association.ok_or_else(|| Failure::running("the network driver broke down"))?;
                clients.spawn(attend(association, Arc::clone(&target), stopped.clone(), args.common.quiet));
            }
            Some(done) = clients.join_next() => {
                if let Err(failure) = done.unwrap_or_else(|_| Err(Failure::running("a client's tunnel broke down"))) {
                    output::say(failure.message());
                }
            }
            () = &mut interrupt => break,
        }
    }
    // Every client is told.
    let _ = stop.send(true);
    while clients.join_next().await.is_some() {}
    Err(Failure::interrupted("interrupted"))
}

/// One client, until its association ends.
async fn attend(
    association: Association,
    target: Arc<str>,
    mut stop: watch::Receiver<bool>,
    quiet: bool,
) -> Result<(), Failure> {
    let peer = call::peer_of(&association);
    if !quiet {
        output::say(&format!("{peer}: a tunnel begins"));
    }
    let hub = Hub::new(association);
    let serving = hub.serve(|place| {
        tokio::spawn(dial(Arc::clone(&hub), place, Arc::clone(&target)));
        Ok(())
    });
    let outcome = tokio::select! {
        outcome = serving => outcome,
        never = schedulers::watch(hub.association().events(), output::say) => match never {},
        _ = stop.wait_for(|stop| *stop) => Err(Failure::interrupted("the tunnel was interrupted")),
    };
    if let Err(failure) = &outcome {
        hub.association().abort(failure.message());
    }
    outcome.map_err(|failure| failure.at(peer))
}

/// One connection. How the association ends is for the hub to say.
async fn dial(hub: Arc<Hub>, place: Place, target: Arc<str>) {
    let connected = timeout(PATIENCE, TcpStream::connect(&*target)).await;
    let error = match connected {
        Ok(Ok(tcp)) => {
            let _ = carry(&hub, place, tcp).await;
            return;
        }
        Ok(Err(error)) => error.to_string(),
        Err(_) => "no answer".to_owned(),
    };
    output::say(&format!("{target}: {error}"));
    let _ = turn_away(&hub, place).await;
}

/// Clients at a time; further ones wait to be accepted.
const MOST_CLIENTS: usize = 64;
/// How long a TCP server may take to accept.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(15);
