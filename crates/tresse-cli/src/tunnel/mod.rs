//! `tresse tunnel`: TCP connections and UDP flows as streams of one association, over all paths between two hosts.
//!
//! Each connection has a stream of its own, so there is no head-of-line blocking between connections; a scheduler shares the paths among
//! them. The messages on a stream, in either direction:
//!
//! ```text
//!   Open                    from the side that accepted the connection: its kind, class and destination
//!   Ready                   from the other side, once it has connected to the destination
//!   Data …                  as far as the other side has granted credit
//!   Credit …                for data that was written to the TCP connection
//!   End                     no more data in this direction
//!   Closed, or Reset        the final message; the stream is free once both sides have sent theirs
//! ```
//!
//! Credit prevents a connection whose program does not read from filling the association's receive buffer, which all connections share. A
//! UDP flow has Datagram in place of Data, Credit and End: unordered, and abandoned when it is late. Stream 0 carries control messages
//! (`control`) about sessions, by which a client distinguishes a server that has restarted from one that was cut off, and about listeners
//! at the server.
//!
//! The layers inside, from the bottom up: messages (`opening`, `control`, `message`), the association that connections share (`parts`,
//! `hub`), what it carries (`connection`, `flow`, `tun`) and its state (`state`, `status`), options (`args`, `settings`), what makes
//! connections (`dispatcher`, `entry`, `listeners`, `dial`), and the two sides (`session` and `client`, `server`).

mod allowed;
mod args;
mod client;
mod connection;
mod control;
mod credit;
mod datagrams;
mod dial;
mod dispatcher;
mod entry;
mod flow;
mod flow_listener;
mod forward;
mod http;
mod hub;
#[cfg(target_os = "linux")]
mod ip_packet;
mod listeners;
mod log;
#[cfg(test)]
mod loopback;
mod message;
mod metrics;
#[cfg(not(target_os = "linux"))]
mod no_tun;
mod notify;
mod opening;
mod parts;
mod path_log;
mod server;
mod service;
mod session;
mod settings;
mod socks;
mod state;
mod status;
#[cfg(target_os = "linux")]
mod tun;
mod turns;
#[cfg(not(target_os = "linux"))]
use no_tun as tun;

pub(crate) use args::TunnelArgs;

use args::Role;
use service::Source;

use crate::failure::Failure;

pub(crate) async fn run(args: TunnelArgs) -> Result<(), Failure> {
    let Role::Run(args) = args.role else { return of_role(args.role, None).await };
    let source = Source::read(args.file.clone())?;
    let outcome = of_role(source.role()?, Some(source)).await;
    outcome.map_err(|failure| match failure.is_usage() {
        // The mistake is in the file.
        true => failure.at(args.file.display()),
        false => failure,
    })
}

async fn of_role(role: Role, source: Option<Source>) -> Result<(), Failure> {
    match role {
        Role::Server(args) => server::run(args, source).await,
        Role::Client(args) => client::run(args, source).await,
        Role::Status(args) => status::run(args).await,
        Role::Run(_) => Err(Failure::usage("a configuration file cannot name another one")),
    }
}
