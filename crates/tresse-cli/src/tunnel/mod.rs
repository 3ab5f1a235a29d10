//! `tresse tunnel`: TCP connections as streams of one association, over all paths between two hosts.
//!
//! Each connection has a stream of its own, so none waits for what another lost; a scheduler shares the paths among
//! them. On its stream, in either direction:
//!
//! ```text
//!   Open                    from the client, which accepted the connection
//!   Data …                  as far as the other side has given credit
//!   Credit …                what was written to the other connection
//!   End                     no more data this way
//!   Closed, or Reset        the last word; the stream is free once both have said theirs
//! ```
//!
//! Credit keeps a connection that nobody reads from filling the association's receive buffer, which all share.

mod args;
mod client;
mod connection;
mod credit;
mod hub;
mod message;
mod server;

pub(crate) use args::TunnelArgs;

use crate::failure::Failure;

pub(crate) async fn run(args: TunnelArgs) -> Result<(), Failure> {
    match args.role {
        args::Role::Server(args) => server::run(args).await,
        args::Role::Client(args) => client::run(args).await,
    }
}
