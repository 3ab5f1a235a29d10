//! Grammar of `tresse perf`: names, defaults and help. Runs no measurement.

use std::time::Duration;

use clap::{Args, Subcommand};
use tresse::units::format_duration;

use super::message::{Load, MeasurementRequest, StreamLoad, Until, message_size};
use crate::args::{
    DurationArgs, OutputArgs, SchedulerArgs, TransportArgs, duration, positive_duration, positive_size, rate,
};
use crate::call::{CallArgs, ListenArgs};

#[derive(Args)]
pub(crate) struct PerfArgs {
    #[command(subcommand)]
    pub(super) role: Role,
}

#[derive(Subcommand)]
pub(super) enum Role {
    /// Wait for clients
    Server(ServerArgs),
    /// Measure against a server
    Client(ClientArgs),
}

#[derive(Args)]
pub(super) struct ServerArgs {
    #[command(flatten)]
    pub(super) listen: ListenArgs,
    /// End after one client
    #[arg(long)]
    pub(super) once: bool,
    /// Highest rate at which messages are read, to measure the effect of a slow application
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub(super) read_rate: Option<u64>,
    /// Answer STUN requests on UDP ports 3478 and 3479, for `tresse doctor`
    #[arg(long)]
    pub(super) stun: bool,
    #[command(flatten)]
    pub(super) schedulers: SchedulerArgs,
    #[command(flatten)]
    pub(super) transport: TransportArgs,
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

#[derive(Args)]
#[command(mut_arg("duration", |duration| {
    duration.help(format!("Send for this long; {} if not given", format_duration(DEFAULT_DURATION)))
}))]
pub(super) struct ClientArgs {
    #[command(flatten)]
    pub(super) call: CallArgs,
    #[command(flatten)]
    pub(super) load_end: DurationArgs,
    /// Time at the beginning that does not count; it is added to --duration
    #[arg(long, default_value = "0s", value_parser = duration, conflicts_with = "bytes")]
    pub(super) omit: Duration,
    /// Measure each path alone first, and then all of them together; the server must run without --once
    #[arg(long, conflicts_with = "json_stream")]
    pub(super) compare_single: bool,
    /// Send this much instead, however long it takes
    #[arg(long, value_name = "SIZE", value_parser = positive_size, conflicts_with = "duration")]
    pub(super) bytes: Option<u64>,
    /// Let the server send
    #[arg(long)]
    pub(super) reverse: bool,
    /// Let both send at the same time
    #[arg(long, conflicts_with = "reverse")]
    pub(super) both: bool,
    /// Length of a message
    #[arg(long, value_name = "SIZE", default_value = "64KiB", value_parser = message_size)]
    pub(super) message_size: u32,
    /// Number of streams that carry the messages, in turn
    #[arg(long, short = 'P', visible_alias = "parallel", value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) streams: u16,
    /// A stream with a load of its own, such as size=200B,rate=1Mbit/s,class=latency; given again, the next stream
    #[arg(long = "stream", value_name = "LOAD", conflicts_with_all = ["message_size", "streams", "rate"])]
    pub(super) per_stream: Vec<StreamLoad>,
    /// Send unordered messages
    #[arg(long)]
    pub(super) unordered: bool,
    /// Highest rate at which user data is sent, such as 50Mbit/s
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub(super) rate: Option<u64>,
    /// Interval of the lines of output
    #[arg(long, default_value = "1s", value_parser = positive_duration)]
    pub(super) interval: Duration,
    /// Exit with 4 if the throughput is lower than this, in the slower of the measured directions
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub(super) require_throughput: Option<u64>,
    /// Print every interval and the result as JSON, one document a line, as they come
    #[arg(long, conflicts_with_all = ["json", "quiet"])]
    pub(super) json_stream: bool,
    #[command(flatten)]
    pub(super) schedulers: SchedulerArgs,
    #[command(flatten)]
    pub(super) transport: TransportArgs,
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

impl ClientArgs {
    /// Returns the number of data streams.
    pub(super) fn stream_count(&self) -> u16 {
        if self.per_stream.is_empty() {
            self.streams
        } else {
            u16::try_from(self.per_stream.len()).unwrap_or(u16::MAX)
        }
    }

    /// Returns the request to the server.
    pub(super) fn ask(&self) -> MeasurementRequest {
        let until = match self.bytes {
            Some(bytes) => Until::Bytes(bytes),
            None => Until::Seconds(self.load_end.duration.unwrap_or(DEFAULT_DURATION).as_secs_f64()),
        };
        MeasurementRequest {
            client_sends: !self.reverse,
            server_sends: self.reverse || self.both,
            load: Load {
                until,
                message_bytes: self.message_size,
                streams: self.stream_count(),
                unordered: self.unordered,
                bits_per_second: self.rate,
                omit_seconds: self.omit.as_secs_f64(),
                per_stream: self.per_stream.clone(),
            },
        }
    }
}

/// Duration of a measurement, unless the user gives it or an amount of data.
const DEFAULT_DURATION: Duration = Duration::from_secs(10);
