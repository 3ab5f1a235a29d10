//! Server of measurements: it waits for clients and serves their requests.

use std::net::IpAddr;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;
use tresse::{Association, Endpoint};

use super::args::ServerArgs;
use super::clock::unix_nanos;
use super::exchange::{DataReceiver, exchange, put};
use super::message::{Control, MeasurementRequest};
use super::report::Report;
use super::tally::Tally;
use crate::args::OutputArgs;
use crate::call::{self, FAREWELL, breach};
use crate::failure::Failure;
use crate::output;
use crate::places::{AcceptedPeer, Acceptor, SILENCE};
use crate::schedulers;
use crate::signal;
use crate::stun::Reflector;

pub(super) async fn run(args: ServerArgs) -> Result<(), Failure> {
    let mut config = args.transport.config(&args.listen.security)?;
    // A client may request as many.
    config.outbound_streams = u16::MAX;
    let endpoint = args.listen.bind(config, args.schedulers.registry()?).await?;
    let _reflector = if args.stun { Some(reflector(&endpoint).await?) } else { None };
    if !args.output.quiet {
        output::say(&args.listen.greeting(&endpoint));
    }
    let outcome = serve(&endpoint, &args).await;
    call::say_farewell(&endpoint).await;
    outcome
}

/// Starts a STUN server on the addresses of `endpoint`, except link-local ones, which no NAT translates.
async fn reflector(endpoint: &Endpoint) -> Result<Reflector, Failure> {
    let of_link = |address: &IpAddr| matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
    let addresses: Vec<_> = endpoint.local_addresses().into_iter().filter(|one| !of_link(one)).collect();
    Reflector::bind(&addresses).await.map_err(|(place, error)| {
        Failure::running(format!("cannot take UDP port {} on {}: {error}", place.port(), place.ip()))
            .at("--stun")
    })
}

async fn serve(endpoint: &Endpoint, args: &ServerArgs) -> Result<(), Failure> {
    let mut sessions = JoinSet::new();
    let mut acceptor = Acceptor::new(endpoint, MOST_CLIENTS, SILENCE);
    let mut interrupt = std::pin::pin!(signal::interrupted());
    let mut accepting = true;
    loop {
        tokio::select! {
            accepted = acceptor.admit(), if accepting => {
                let accepted = accepted.ok_or_else(|| Failure::running("the network driver broke down"))?;
                sessions.spawn(attend(accepted, args.output, args.read_rate));
                accepting = !args.once;
            }
            Some(done) = sessions.join_next() => {
                let done = done.unwrap_or_else(|_| Err(Failure::running("a measurement broke down")));
                match done {
                    Err(failure) if args.once => match acceptor.admit_waiting().await {
                        // An association that waits belongs to the same client, at other addresses.
                        Some(accepted) => {
                            output::say(failure.message());
                            drop(sessions.spawn(attend(accepted, args.output, args.read_rate)));
                        }
                        None => return Err(failure),
                    },
                    Ok(()) if args.once => return Ok(()),
                    Ok(()) => {}
                    Err(failure) => output::say(failure.message()),
                }
            }
            () = &mut interrupt => return Err(Failure::interrupted("interrupted")),
        }
    }
}

/// Serves one client, from its request to the end of the association.
async fn attend(accepted: AcceptedPeer, output: OutputArgs, read_rate: Option<u64>) -> Result<(), Failure> {
    let AcceptedPeer { association, liveness, place } = accepted;
    let peer = call::peer_of(&association);
    let outcome = tokio::select! {
        outcome = measure(&association, &peer, read_rate) => outcome,
        never = liveness.watch() => match never {},
        never = schedulers::watch(&association, output::say) => match never {},
        () = place.lost() => Err(Failure::running("it was not heard any more, and another client takes its place")),
    };
    let report = match outcome {
        Ok(report) => report,
        Err(failure) => {
            association.abort(failure.message());
            return Err(failure.at(peer));
        }
    };
    let printed = match (output.json, output.quiet) {
        (true, _) => serde_json::to_string(&report).map_err(Failure::running).map(|text| text + "\n"),
        (false, true) => Ok(String::new()),
        (false, false) => Ok(report.lines().join("\n") + "\n"),
    };
    output::print(&printed?)
}

async fn measure(association: &Association, peer: &str, read_rate: Option<u64>) -> Result<Report, Failure> {
    // The client's request determines the time that is omitted. No data arrives before it, so this tally stays empty.
    let unasked = Tally::new(Duration::ZERO, false);
    let request = timeout(PATIENCE, DataReceiver::new(association, &unasked).control(false)).await;
    let MeasurementRequest { client_sends, server_sends, load } = match request {
        Ok(Ok(Control::Ask(ask))) => match ask.check(association.streams()) {
            Ok(()) => ask,
            Err(reason) => {
                put(association, Control::Refuse(reason.clone())).await?;
                let _ = timeout(FAREWELL, association.shutdown()).await;
                return Err(Failure::running(format!("refused: {reason}")));
            }
        },
        Ok(Ok(_)) => return Err(breach("a message out of turn")),
        Ok(Err(failure)) => return Err(failure),
        Err(_) => return Err(Failure::running("asked for nothing")),
    };
    put(association, Control::Go(unix_nanos())).await?;
    let tally = Tally::new(Duration::from_secs_f64(load.omit_seconds), !load.per_stream.is_empty());
    let mut receiver = DataReceiver::new(association, &tally).reading_at(read_rate);
    let flows = exchange(&mut receiver, &load, (server_sends, client_sends)).await?;
    let _ = timeout(FAREWELL, receiver.until_done()).await;
    if load.is_timed() {
        // The rest of a timed load is not needed.
        association.abort("the measurement is over");
    } else {
        let _ = timeout(FAREWELL, association.shutdown()).await;
    }
    Ok(Report::new(peer.to_owned(), load, flows, None))
}

/// Most clients at a time; further ones wait until one ends, or becomes silent.
const MOST_CLIENTS: usize = 16;
/// Time that a client may take to send its request.
const PATIENCE: Duration = Duration::from_secs(10);
