//! Grammar of `tresse peer`: names, defaults and help. Opens no association.

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use tresse::{Reliability, StreamId, Streams, units};

use crate::args::{DurationArgs, OutputArgs, SchedulerArgs, TransportArgs, duration};
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
    pub(super) pause: Duration,
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
    #[arg(long, value_name = "TIME:STREAMS", value_parser = streams_at)]
    pub(super) reset_streams: Vec<At<Streams>>,
    /// Add streams for this side to send on at a time, or once the peer has answered to the change before: 2s:16; may be repeated
    #[arg(long, value_name = "TIME:N", value_parser = count_at)]
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
    #[command(flatten)]
    pub(super) end: DurationArgs,
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

/// Range of the lengths of messages, in bytes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Sizes {
    pub(super) shortest: u32,
    pub(super) longest: u32,
}

impl Sizes {
    /// Parses one size, or two with a dash between.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (shortest, longest) = text.split_once('-').unwrap_or((text, text));
        let size = |text: &str| match units::parse_size(text.trim()) {
            Ok(bytes) => {
                u32::try_from(bytes).ok().filter(|bytes| (1..=LONGEST).contains(bytes)).ok_or_else(|| {
                    format!("\"{text}\" is not from 1B to {}", units::format_size(LONGEST.into()))
                })
            }
            Err(error) => Err(error.to_string()),
        };
        let (shortest, longest) = (size(shortest)?, size(longest)?);
        if shortest > longest {
            return Err(format!("\"{text}\" puts the longer size first"));
        }
        Ok(Sizes { shortest, longest })
    }
}

/// Longest message in bytes: longer ones fit no send buffer.
pub(super) const LONGEST: u32 = 1 << 30;

/// A time after set-up, with the argument of an action.
#[derive(Clone, Debug)]
pub(super) struct At<T> {
    pub(super) after: Duration,
    pub(super) what: T,
}

/// Parses `TIME:WHAT`.
fn at<T>(text: &str, what: impl FnOnce(&str) -> Option<T>, accepted: &str) -> Result<At<T>, String> {
    let refused = || format!("\"{text}\" is not a time and {accepted}, with a colon between");
    let (after, rest) = text.split_once(':').ok_or_else(refused)?;
    let after = units::parse_duration(after.trim()).map_err(|error| error.to_string())?;
    Ok(At { after, what: what(rest.trim()).ok_or_else(refused)? })
}

/// Parses `2s:all` or `2s:0,3`.
fn streams_at(text: &str) -> Result<At<Streams>, String> {
    let list = |text: &str| {
        if text == "all" {
            return Some(Streams::All);
        }
        let numbers: Result<_, _> =
            text.split(',').map(|number| number.trim().parse().map(StreamId)).collect();
        numbers.ok().map(Streams::These)
    };
    at(text, list, "numbers of streams such as 0,3, or all")
}

/// Parses `2s:16`.
fn count_at(text: &str) -> Result<At<u16>, String> {
    at(text, |text| text.parse().ok().filter(|&count| count > 0), "a number of streams from 1 to 65535")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_one_or_a_range() {
        assert_eq!(Sizes::parse("1KiB"), Ok(Sizes { shortest: 1024, longest: 1024 }));
        assert_eq!(Sizes::parse("1B-64KiB"), Ok(Sizes { shortest: 1, longest: 65_536 }));
        assert_eq!(Sizes::parse("2KiB-1KiB"), Err("\"2KiB-1KiB\" puts the longer size first".to_owned()));
        assert!(Sizes::parse("0B").is_err() && Sizes::parse("12").is_err());
    }

    #[test]
    fn a_time_comes_before_what_is_done_then() {
        let reset = streams_at("1500ms:0,3").expect("sound");
        assert_eq!(reset.after, Duration::from_millis(1500));
        assert_eq!(reset.what, Streams::These([StreamId(0), StreamId(3)].into()));
        assert_eq!(streams_at("2s:all").expect("sound").what, Streams::All);
        assert_eq!(count_at("1s:4").expect("sound").what, 4);
    }

    #[test]
    fn mistakes_say_what_is_accepted() {
        let refused = "is not a time and numbers of streams such as 0,3, or all, with a colon between";
        for text in ["2s", "2s:", "2s:x", "2s:0,70000"] {
            assert_eq!(streams_at(text).err(), Some(format!("\"{text}\" {refused}")));
        }
        assert!(count_at("1s:0").is_err() && streams_at("soon:all").is_err());
    }
}
