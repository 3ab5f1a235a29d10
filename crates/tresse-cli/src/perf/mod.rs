//! `tresse perf`: how much two hosts can move over all their paths, and what limits it.
//!
//! ```text
//! client                                        server
//!   stream 0   Ask: directions, load         →
//!              ←  Go: the server's clock (or Refuse: why)
//!   streams 1… data                          →        ←  data, in the directions asked for
//!   stream 0   Sent: how much, which paths   →        ←  each sender, once its load has ended
//!              ←  Got: how much, how long              →  each receiver, once all of that is here, or its time is over
//!   stream 0   Done                          →
//!              ←  shutdown, or ABORT where the time was over before all had come
//! ```
//!
//! What counts is what the receiving application got, over the time from its first byte to its last; what limited
//! it is the sender's to say.

mod args;
mod client;
mod clock;
mod compare;
mod delays;
mod events;
mod exchange;
mod former;
mod load;
mod message;
mod meter;
mod report;
mod server;
mod streams;
mod table;
mod tally;

pub(crate) use args::PerfArgs;

use crate::failure::Failure;

pub(crate) async fn run(args: PerfArgs) -> Result<(), Failure> {
    match args.role {
        args::Role::Server(args) => server::run(args).await,
        args::Role::Client(args) => client::run(args).await,
    }
}
