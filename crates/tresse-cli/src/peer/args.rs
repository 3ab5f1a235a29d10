//! Grammar of `tresse peer`: names, defaults and help. Opens no association.

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use tresse::{Reliability, Streams};

use super::message::Sizes;
use super::timeline::{self, At};
use crate::args::{OutputArgs, SchedulerArgs, TransportArgs, duration};
use crate::call::{CallArgs, ListenArgs};

#[derive(Args)]
pub(crate) struct PeerArgs {
    #[command(subcommand)]
    pub(super) role: Role,
}

impl PeerArgs {
    /// Returns the number of threads for the tasks of the command.
    pub(crate) fn threads(&self) -> usize {
        match &self.role {
            Role::Server(server) => server.drivers.into(),
            Role::Client(_) => 1,
        }
    }
}

#[derive(Subcommand)]
pub(super) enum Role {
    /// Wait for associations
    Server(ServerArgs),
    /// Open associations
    Client(ClientArgs),
}

#[derive(Args)]
pub(super) struct ServerArgs {
    #[command(flatten)]
    pub(super) listen: ListenArgs,
    /// Send SCTP over IP without UDP; needs the right to open raw sockets
    #[arg(long, conflicts_with = "port")]
    pub(super) raw: bool,
    /// Number of drivers, each with a thread of its own; associations are distributed by their SCTP ports (Linux)
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "raw",
        value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(super) drivers: u16,
    /// Work for each association
    #[arg(long, value_enum, default_value_t = Mode::Echo)]
    pub(super) mode: Mode,
    /// Number of associations after which to end; without it, continue until interrupted
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) associations: Option<u32>,
    #[command(flatten)]
    pub(super) work: WorkArgs,
    #[command(flatten)]
    pub(super) schedulers: SchedulerArgs,
    #[command(flatten)]
    pub(super) transport: TransportArgs,
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

#[derive(Args)]
pub(super) struct ClientArgs {
    #[command(flatten)]
    pub(super) call: CallArgs,
    /// Own SCTP port, and with several associations those that follow it; 0 for any
    #[arg(long, default_value_t = 0)]
    pub(super) local_sctp_port: u16,
    /// Send SCTP over IP without UDP; needs the right to open raw sockets
    #[arg(long, conflicts_with_all = ["port", "local_port"])]
    pub(super) raw: bool,
    /// Work for each association
    #[arg(long, value_enum, default_value_t = Mode::Generate)]
    pub(super) mode: Mode,
    /// Number of associations to open at once, each with an SCTP port of its own, and a UDP port: --local-port and those that
    /// follow it
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) associations: u32,
    #[command(flatten)]
    pub(super) work: WorkArgs,
    #[command(flatten)]
    pub(super) schedulers: SchedulerArgs,
    #[command(flatten)]
    pub(super) transport: TransportArgs,
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

/// Use that an endpoint makes of messages.
#[derive(Copy, Clone, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum Mode {
    /// Receive messages and discard them
    Discard,
    /// Send every message back on its stream, of which there are as many as the peer allows
    Echo,
    /// Send messages, and discard those that come
    Generate,
}

/// Course of one association, on either side.
#[derive(Args, Clone)]
pub(super) struct WorkArgs {
    /// Number of messages to generate in each association; 0 for no limit
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(super) count: u32,
    /// Length of generated messages, or the shortest and the longest: 1KiB, or 1B-64KiB
    #[arg(long, value_name = "SIZE", default_value = "1000B", value_parser = Sizes::parse)]
    pub(super) size: Sizes,
    /// Number of streams that carry the generated messages; at least as many are requested from the peer
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) streams: u16,
    /// Make every N-th generated message unordered; 1 for all of them
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) unordered_every: Option<u32>,
    /// Pause after every generated message
    #[arg(long, default_value = "0s", value_parser = duration)]
    pub(super) interval: Duration,
    /// Abandon generated messages after this time
    #[arg(long, value_name = "TIME", value_parser = duration, group = "policy")]
    pub(super) lifetime: Option<Duration>,
    /// Abandon a generated message instead of retransmitting a part of it more often than this
    #[arg(long, value_name = "N", group = "policy")]
    pub(super) max_retransmissions: Option<u32>,
    /// Priority of generated messages: when the send buffer is full they are abandoned for messages with a lower number
    #[arg(long, value_name = "N", group = "policy")]
    pub(super) priority: Option<u32>,
    /// Reset streams that this side sends on at a time, or once the peer has answered to the change before: 2s:all, or 2s:0,3; may be repeated
    #[arg(long, value_name = "TIME:STREAMS", value_parser = timeline::streams)]
    pub(super) reset_streams: Vec<At<Streams>>,
    /// Add streams for this side to send on at a time, or once the peer has answered to the change before: 2s:16; may be repeated
    #[arg(long, value_name = "TIME:N", value_parser = timeline::count)]
    pub(super) add_streams: Vec<At<u16>>,
    /// Before the end, wait until as many messages have come as were generated
    #[arg(long)]
    pub(super) await_echo: bool,
    /// Check that every message that comes is one that `tresse peer` generated, whole and in order
    #[arg(long)]
    pub(super) verify: bool,
    /// Shut each association down after this time, and the changes before it
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(super) shutdown_after: Option<Duration>,
    /// Abort each association after this time, and the changes before it
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(super) abort_after: Option<Duration>,
    /// End all associations after this time
    #[arg(long, value_parser = duration)]
    pub(super) duration: Option<Duration>,
}

impl WorkArgs {
    /// Returns the reliability of generated messages (RFC 3758, RFC 7496).
    pub(super) fn reliability(&self) -> Reliability {
        let lifetime = self.lifetime.map(Reliability::Lifetime);
        let retransmissions = self.max_retransmissions.map(Reliability::Retransmissions);
        let priority = self.priority.map(Reliability::Priority);
        lifetime.or(retransmissions).or(priority).unwrap_or_default()
    }
}
