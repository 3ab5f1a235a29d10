//! Client of `tresse peer`, which opens associations. Each has an endpoint of its own, because two hosts have at most one association for
//! a pair of ports.

use std::net::IpAddr;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tresse::security::Security;
use tresse::{Association, AssociationConfig, Endpoint, EndpointConfig, Registry};

use super::args::ClientArgs;
use super::session::{self, Session, Task};
use super::summary::{Facts, Summary};
use super::{Stop, refused, stopped, streams_for, trouble};
use crate::call::{self, CallArgs, list};
use crate::descriptors;
use crate::failure::Failure;
use crate::security;

pub(super) async fn run(mut args: ClientArgs) -> Result<(), Failure> {
    let (mut settings, common) = args.transport.plain(&args.call.security)?;
    settings.outbound_streams = settings.outbound_streams.max(streams_for(args.mode, &args.work));
    args.call.resolve().await?;
    let keys = args.call.keys()?;
    let local = args.call.local()?;
    let schedulers = args.schedulers.registry()?;
    // Each association has sockets of its own.
    descriptors::raise();
    let mut endpoints = Vec::new();
    for position in 0..args.associations {
        endpoints.push(bind(&args, &local, (&common, &settings, &schedulers), keys.as_ref(), position)?);
    }
    let (stop, stopping) = watch::channel(false);
    let mut sessions = JoinSet::new();
    let call = Arc::new(args.call.clone());
    for endpoint in endpoints {
        let task = Task { mode: args.mode, work: args.work.clone() };
        sessions.spawn(converse(endpoint, Arc::clone(&call), task, stopping.clone()));
    }
    gather(sessions, stop, &args).await
}

/// Runs all associations to their ends and reports on them.
async fn gather(
    mut sessions: JoinSet<Result<Session, Failure>>,
    stop: watch::Sender<bool>,
    args: &ClientArgs,
) -> Result<(), Failure> {
    let mut summary =
        Summary::new(Facts { role: "client", mode: args.mode, raw: args.raw, output: args.output });
    let mut outcome = Ok(());
    let mut ending = std::pin::pin!(stopped(args.work.end.duration));
    let mut interrupted = false;
    loop {
        let session = tokio::select! {
            session = sessions.join_next() => session,
            cause = &mut ending, if !*stop.borrow() => {
                interrupted = cause == Stop::Interrupt;
                let _ = stop.send(true);
                continue;
            }
        };
        let Some(session) = session else { break };
        match session.unwrap_or_else(|_| Err(Failure::running("an association broke down"))) {
            Ok(session) => {
                if let (Ok(()), Some(failure)) = (&outcome, trouble(&session)) {
                    outcome = Err(failure);
                }
                summary.add(session);
            }
            Err(failure) => {
                summary.add_failed();
                outcome = outcome.and(Err(failure));
            }
        }
    }
    summary.print(&args.output)?;
    if interrupted { Err(Failure::interrupted("interrupted")) } else { outcome }
}

/// Binds the endpoint of the association at `position`. Ports are consecutive, unless the system selects them.
fn bind(
    args: &ClientArgs,
    local: &[IpAddr],
    (common, settings, schedulers): (&EndpointConfig, &AssociationConfig, &Registry),
    keys: Option<&Arc<Security>>,
    position: u32,
) -> Result<Endpoint, Failure> {
    let at = |first: u16, option: &str| match first {
        0 => Ok(0),
        first => u16::try_from(u32::from(first) + position)
            .map_err(|_| Failure::usage(format!("{option} {first}: {} ports do not fit", args.associations))),
    };
    let port = at(args.local_sctp_port, "--local-sctp-port")?;
    let config = common.clone().with(|c| c.port = port);
    let settings = (config, settings.clone());
    let endpoint = if args.raw {
        security::bind_raw(local, settings, schedulers, keys)
    } else {
        let udp_port = at(args.call.local_port, "--local-port")?;
        security::bind(local, udp_port, settings, schedulers.clone(), keys)
    };
    let endpoint = endpoint.map_err(refused)?;
    if position == 0 {
        args.call.record.watch(&endpoint)?;
    }
    Ok(endpoint)
}

/// Runs one association from its set-up to its end.
async fn converse(
    endpoint: Endpoint,
    call: Arc<CallArgs>,
    task: Task,
    stop: watch::Receiver<bool>,
) -> Result<Session, Failure> {
    let mut early = stop.clone();
    let association = tokio::select! {
        association = connect(&endpoint, &call) => association?,
        _ = early.wait_for(|stop| *stop) => return Err(Failure::running("ended before it was set up")),
    };
    let session = session::run(&association, &task, stop).await;
    drop(association);
    call::say_farewell(&endpoint).await;
    Ok(session)
}

async fn connect(endpoint: &Endpoint, call: &CallArgs) -> Result<Association, Failure> {
    let peer = call.peer();
    let udp = if endpoint.udp_port() == 0 { String::new() } else { format!(" UDP port {}", peer.udp_port) };
    let place = format!("{}{udp} SCTP port {}", list(&peer.addresses), peer.port);
    call.answered(endpoint, place, endpoint.connect(peer)).await
}
