//! Grammar of `tresse tunnel`: names, defaults and help. Runs no tunnel.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};
use tracing::Level;
use tresse::AssociationConfig;

use super::allowed::{Allowed, Pattern};
use super::flow::Limits;
use super::forward::{ClassOfPort, Forward, Reverse, Target, address_and_port};
use super::log;
use super::status::StatusArgs;
use super::tun::{LANES, Tun};
use crate::args::{SchedulerArgs, TransportArgs, duration, positive_duration};
use crate::call::{CallArgs, ListenArgs};
use crate::descriptors;
use crate::failure::Failure;
use crate::security::SecurityArgs;

#[derive(Parser)]
pub(crate) struct TunnelArgs {
    #[command(subcommand)]
    pub(super) role: Role,
}

#[derive(Subcommand)]
pub(super) enum Role {
    /// Wait for clients, and connect their connections to the targets
    Server(ServerArgs),
    /// Accept TCP connections and UDP datagrams, and carry them to the server
    Client(ClientArgs),
    /// Run as the server or the client that a configuration file describes, and read it again on SIGHUP
    Run(RunArgs),
    /// Show the state of a running tunnel
    Status(StatusArgs),
}

impl Role {
    /// Checks what has an effect at the start only: the settings of associations, and the files of keys, trusted peers and policies.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let (common, security) = match self {
            Role::Server(args) => (&args.common, &args.listen.security),
            Role::Client(args) => (&args.common, &args.call.security),
            Role::Run(_) | Role::Status(_) => return Ok(()),
        };
        common.config(security)?;
        common.schedulers.registry()?;
        match self {
            Role::Server(args) => security.keys(&args.listen.stated()).map(drop),
            Role::Client(args) => args.call.keys().map(drop),
            Role::Run(_) | Role::Status(_) => Ok(()),
        }
    }
}

#[derive(Args)]
pub(super) struct RunArgs {
    /// A TOML file: role = "server" or "client", and options of that command by their names (docs/tunnel.md)
    pub(super) file: PathBuf,
}

#[derive(Args)]
#[command(group = ArgGroup::new("permitted").args(["tcp", "udp", "allow", "allow_listen", "tun"]).required(true).multiple(true))]
pub(super) struct ServerArgs {
    #[command(flatten)]
    pub(super) listen: ListenArgs,
    /// TCP server that clients may reach; the first is for connections without a target. May be repeated
    #[arg(long, value_name = "HOST:PORT")]
    pub(super) tcp: Vec<Target>,
    /// UDP server that clients may reach; the first is for datagrams without a target. May be repeated
    #[arg(long, value_name = "HOST:PORT")]
    pub(super) udp: Vec<Target>,
    /// Further destinations that clients may name: HOST may be * or *.name, PORT may be *. May be repeated
    #[arg(long, value_name = "HOST:PORT")]
    pub(super) allow: Vec<Pattern>,
    /// Addresses of this host on which clients may accept connections (their --remote): ADDRESS and PORT may be *. May
    /// be repeated
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(super) allow_listen: Vec<Pattern>,
    #[command(flatten)]
    pub(super) common: CommonArgs,
}

#[derive(Args)]
#[command(group = ArgGroup::new("carried").args(["tcp", "udp", "socks", "remote", "tun"]).required(true).multiple(true))]
pub(super) struct ClientArgs {
    #[command(flatten)]
    pub(super) call: CallArgs,
    /// TCP address to accept connections on, and the target that they lead to: the server's first --tcp if not given.
    /// May be repeated
    #[arg(long, value_name = "ADDRESS:PORT[=HOST:PORT]")]
    pub(super) tcp: Vec<Forward>,
    /// Address of a SOCKS5 server, for programs that name the target of each connection. May be repeated
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address_and_port)]
    pub(super) socks: Vec<SocketAddr>,
    /// Address to receive UDP datagrams on, and the target that they lead to: the server's first --udp if not given. May
    /// be repeated
    #[arg(long, value_name = "ADDRESS:PORT[=HOST:PORT]")]
    pub(super) udp: Vec<Forward>,
    /// Let the server accept TCP connections at ADDRESS:PORT; they lead from here to HOST:PORT. May be repeated
    #[arg(long, value_name = "ADDRESS:PORT=HOST:PORT")]
    pub(super) remote: Vec<Reverse>,
    /// Class of connections to a port: latency, bulk or background. May be repeated
    #[arg(long, value_name = "PORT=CLASS")]
    pub(super) class: Vec<ClassOfPort>,
    /// Treatment of connections that are opened while the tunnel is down
    #[arg(long, value_enum, default_value_t = WhileDown::Wait)]
    pub(super) while_down: WhileDown,
    /// End with the association, instead of setting the tunnel up anew
    #[arg(long)]
    pub(super) once: bool,
    #[command(flatten)]
    pub(super) common: CommonArgs,
}

/// Fate of connections while the tunnel is down.
#[derive(Copy, Clone, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum WhileDown {
    /// Connections wait to be accepted until the tunnel works again
    Wait,
    /// Connections are reset
    Refuse,
}

#[derive(Args)]
pub(super) struct CommonArgs {
    /// Connections that each side opens at a time; further ones wait
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..=32767))]
    pub(super) connections: u16,
    /// Time without packets after which the other side is suspected to have failed
    #[arg(long, default_value = "1500ms", value_parser = patience)]
    pub(super) liveness: Duration,
    /// Carry the IP packets of this TUN device, as the other side does with a device of its own; on Linux only. It needs
    /// CAP_NET_ADMIN, or a device that was created for its user; the operator sets addresses and routes
    #[arg(long, value_name = "DEVICE")]
    pub(super) tun: Option<String>,
    /// Time without datagrams after which a UDP flow ends
    #[arg(long, default_value = "60s", value_parser = positive_duration)]
    pub(super) udp_idle: Duration,
    /// Lifetime of a UDP datagram or an IP packet, after which it is abandoned
    #[arg(long, default_value = "1s", value_parser = positive_duration)]
    pub(super) udp_lifetime: Duration,
    /// Address on which to answer HTTP with metrics for Prometheus (/metrics), and with the state that tresse tunnel
    /// status shows
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address_and_port)]
    pub(super) metrics: Option<SocketAddr>,
    #[command(flatten)]
    pub(super) schedulers: SchedulerArgs,
    #[command(flatten)]
    pub(super) transport: TransportArgs,
    /// Format of the log
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub(super) log: LogFormat,
    /// Print errors and warnings only
    #[arg(long, short)]
    pub(super) quiet: bool,
}

/// Form of the log.
#[derive(Copy, Clone, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum LogFormat {
    /// A line of text for each event
    Text,
    /// A JSON object for each event
    Json,
}

impl CommonArgs {
    /// Begins the log, and raises the limit of file descriptors, because each connection needs one.
    pub(super) fn begin(&self) {
        descriptors::raise();
        let level = if self.quiet { Level::WARN } else { Level::INFO };
        log::begin(level, self.log == LogFormat::Json);
    }

    /// Returns the settings of associations. Unless the user changes them, connections share the paths evenly, classes have an effect, no
    /// connection waits for the end of another one's message (RFC 8260), and after an outage of any length the paths are used again
    /// within seconds.
    pub(super) fn config(&self, security: &SecurityArgs) -> Result<AssociationConfig, Failure> {
        let settings = [
            ("stream_scheduler", "fair_bandwidth"),
            ("stream_map", "adaptive"),
            ("interleaving", "true"),
            ("rto_max", "3s"),
            ("association_max_retrans", "200"),
        ];
        let mut config = self.transport.config_over(&settings, security)?;
        // Stream 0 is for control messages, and each side opens as many of the others. Lanes are not counted as connections.
        let lanes = self.tun.as_ref().map_or(0, |_| LANES);
        config.outbound_streams = self.connections.saturating_add(lanes).saturating_mul(2).saturating_add(1);
        Ok(config)
    }

    /// Opens the TUN device, if one is requested.
    pub(super) fn open_tun(&self) -> Result<Option<Arc<Tun>>, Failure> {
        self.tun.as_ref().map(|name| Tun::open(name, self.udp_lifetime)).transpose()
    }

    pub(super) fn limits(&self) -> Limits {
        Limits { idle: self.udp_idle, lifetime: self.udp_lifetime }
    }
}

impl ServerArgs {
    /// Returns a description of the server's targets.
    pub(super) fn purpose(&self) -> String {
        let list = |targets: &[Target]| targets.iter().map(Target::to_string).collect::<Vec<_>>().join(", ");
        let mut parts = Vec::new();
        if !self.tcp.is_empty() {
            parts.push(format!("TCP to {}", list(&self.tcp)));
        }
        if !self.udp.is_empty() {
            parts.push(format!("UDP to {}", list(&self.udp)));
        }
        if let Some(device) = &self.common.tun {
            parts.push(format!("IP packets of {device}"));
        }
        if !self.allow.is_empty() || !self.allow_listen.is_empty() {
            parts.push("what it allows".to_owned());
        }
        parts.join(" and ")
    }

    pub(super) fn allowed(&self) -> Allowed {
        Allowed {
            tcp: self.tcp.clone(),
            udp: self.udp.clone(),
            patterns: self.allow.clone(),
            listen: self.allow_listen.clone(),
        }
    }
}

fn patience(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        short if short < SHORTEST_PATIENCE => {
            Err("it must be 300ms or more: answers take a round trip".to_owned())
        }
        long => Ok(long),
    }
}

/// The error in a configuration that would end the encryption of a running tunnel.
pub(super) const WITHOUT_KEYS: &str = "neither --key nor --secret-file is given any more";
const SHORTEST_PATIENCE: Duration = Duration::from_millis(300);
