//! Server of `tresse peer`, which accepts associations.

use tokio::sync::watch;
use tokio::task::JoinSet;
use tresse::Endpoint;

use super::args::ServerArgs;
use super::session::{self, Session, Task};
use super::summary::{Facts, Summary};
use super::{Stop, refused, stopped, streams_for, trouble};
use crate::call::{self, list};
use crate::failure::Failure;
use crate::output::say;
use crate::security;

pub(super) async fn run(args: ServerArgs) -> Result<(), Failure> {
    let (mut settings, common) = args.transport.plain(&args.listen.security)?;
    settings.outbound_streams = settings.outbound_streams.max(streams_for(args.mode, &args.work));
    let config = common.with(|c| {
        c.port = args.listen.sctp_port;
        c.listen = true;
    });
    let schedulers = args.schedulers.registry()?;
    let local = args.listen.local().await?;
    let keys = args.listen.security.keys(&local)?;
    let endpoint = if args.raw {
        security::bind_raw(&local, (config, settings), &schedulers, keys.as_ref())
    } else {
        let settings = (config, settings);
        security::bind_shared(&local, args.listen.port, settings, schedulers, keys, args.drivers.into())
    };
    let endpoint = endpoint.map_err(refused)?;
    args.listen.record.watch(&endpoint)?;
    if !args.output.quiet {
        let udp = if args.raw { String::new() } else { format!("UDP port {}, ", endpoint.udp_port()) };
        say(&format!(
            "listening on {}, {udp}SCTP port {}",
            list(&endpoint.local_addresses()),
            endpoint.port()
        ));
    }
    let outcome = serve(&endpoint, &args).await;
    call::say_farewell(&endpoint).await;
    outcome
}

async fn serve(endpoint: &Endpoint, args: &ServerArgs) -> Result<(), Failure> {
    let (stop, stopping) = watch::channel(false);
    let mut sessions: JoinSet<Session> = JoinSet::new();
    let mut summary =
        Summary::new(Facts { role: "server", mode: args.mode, raw: args.raw, output: args.output });
    let mut awaited = args.associations;
    let mut ending = std::pin::pin!(stopped(args.work.end.duration));
    let (mut outcome, mut interrupted) = (Ok(()), false);
    loop {
        let accepting = awaited != Some(0) && !*stop.borrow();
        if sessions.is_empty() && !accepting {
            break;
        }
        tokio::select! {
            association = endpoint.accept(), if accepting => {
                let association = association.ok_or_else(|| Failure::running("the network driver broke down"))?;
                let task = Task { mode: args.mode, work: args.work.clone() };
                let stopping = stopping.clone();
                sessions.spawn(async move { session::run(&association, &task, stopping).await });
                awaited = awaited.map(|awaited| awaited - 1);
            }
            Some(session) = sessions.join_next() => {
                let session = session.map_err(|_| Failure::running("an association broke down"))?;
                if let Some(failure) = trouble(&session) {
                    if !args.output.quiet {
                        say(failure.message());
                    }
                    outcome = outcome.and(Err(failure));
                }
                summary.add(session);
            }
            cause = &mut ending, if !*stop.borrow() => {
                interrupted = cause == Stop::Interrupt;
                let _ = stop.send(true);
            }
        }
    }
    summary.print(&args.output)?;
    if interrupted { Err(Failure::interrupted("interrupted")) } else { outcome }
}
