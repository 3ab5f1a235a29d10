//! `tresse perf`: the throughput between two hosts over all their paths, and its limits.
//!
//! ```text
//! client                                        server
//!   stream 0   Ask: directions, load         →
//!              ←  Go: the server's clock (or Refuse: why)
//!   streams 1… data                          →        ←  data, in the directions asked for
//!   stream 0   Sent: the sender's report     →        ←  each sender, once its load has ended
//!              ←  Got: the receiver's report           →  each receiver, once it has all data, or the time is over
//!   stream 0   Done                          →
//!              ←  shutdown, or ABORT if the load was timed
//! ```
//!
//! The throughput is the data that the receiving application got, over the time from its first byte to its last. The sender reports the
//! limits.

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

use std::time::Duration;

use exchange::{DataReceiver, put};
use message::{Control, Load, MeasurementRequest, Until};
use tally::Tally;
use tresse::Association;

use crate::call::breach;
use crate::failure::Failure;

pub(crate) async fn run(args: PerfArgs) -> Result<(), Failure> {
    match args.role {
        args::Role::Server(args) => server::run(args).await,
        args::Role::Client(args) => client::run(args).await,
    }
}

/// Sends data over `association` to a server for `time`, at a modest rate, while the caller observes the paths.
///
/// # Errors
/// The server refuses, or the association ended.
pub(crate) async fn send_for(association: &Association, time: Duration) -> Result<(), Failure> {
    let load = Load {
        until: Until::Seconds(time.as_secs_f64()),
        message_bytes: 16 * 1024,
        streams: 1,
        unordered: false,
        bits_per_second: Some(2_000_000),
        omit_seconds: 0.0,
        per_stream: Vec::new(),
    };
    let ask = MeasurementRequest { client_sends: true, server_sends: false, load };
    let tally = Tally::new(Duration::ZERO, false);
    let mut receiver = DataReceiver::new(association, &tally);
    put(association, Control::Ask(ask.clone())).await?;
    match receiver.control(false).await? {
        Control::Go(_) => ask.load.send(association, &tally).await.map(drop),
        _ => Err(breach("a message out of turn")),
    }
}
