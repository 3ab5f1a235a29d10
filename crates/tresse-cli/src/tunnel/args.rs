//! The grammar of `tresse tunnel`. Knows names, defaults and help; does nothing.

use std::net::SocketAddr;

use clap::{Args, Subcommand, ValueEnum};
use tresse::AssociationConfig;

use crate::args::{SchedulerArgs, TransportArgs};
use crate::call::{CallArgs, ListenArgs};
use crate::failure::Failure;

#[derive(Args)]
pub(crate) struct TunnelArgs {
    #[command(subcommand)]
    pub(super) role: Role,
}

#[derive(Subcommand)]
pub(super) enum Role {
    /// Wait for clients, and connect what comes through to a TCP server
    Server(ServerArgs),
    /// Accept TCP connections, and carry them to the server
    Client(ClientArgs),
}

#[derive(Args)]
pub(super) struct ServerArgs {
    #[command(flatten)]
    pub(super) listen: ListenArgs,
    /// The TCP server that connections are for
    #[arg(long, value_name = "HOST:PORT", value_parser = host_and_port)]
    pub(super) tcp: String,
    #[command(flatten)]
    pub(super) common: CommonArgs,
}

#[derive(Args)]
pub(super) struct ClientArgs {
    #[command(flatten)]
    pub(super) call: CallArgs,
    /// Where to accept TCP connections
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address_and_port)]
    pub(super) tcp: SocketAddr,
    /// What becomes of connections that are made while the tunnel is down
    #[arg(long, value_enum, default_value_t = WhileDown::Wait)]
    pub(super) while_down: WhileDown,
    /// End with the association, instead of setting the tunnel up anew
    #[arg(long)]
    pub(super) once: bool,
    #[command(flatten)]
    pub(super) common: CommonArgs,
}

/// What becomes of connections while the tunnel is down.
#[derive(Copy, Clone, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum WhileDown {
    /// They wait to be accepted until it is there again
    Wait,
    /// They are reset
    Refuse,
}

#[derive(Args)]
pub(super) struct CommonArgs {
    /// Connections at a time; on the client's side further ones wait
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..=65534))]
    pub(super) connections: u16,
    #[command(flatten)]
    pub(super) schedulers: SchedulerArgs,
    #[command(flatten)]
    pub(super) transport: TransportArgs,
    /// Say nothing but errors
    #[arg(long, short)]
    pub(super) quiet: bool,
}

impl CommonArgs {
    /// The settings of associations: connections share the paths evenly unless the user wants it otherwise.
    pub(super) fn config(&self) -> Result<AssociationConfig, Failure> {
        let mut config = self.transport.config_over(&[("stream_scheduler", "fair_bandwidth")])?;
        // Stream 0 carries nothing.
        config.outbound_streams = self.connections + 1;
        Ok(config)
    }
}

fn address_and_port(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "it is not ADDRESS:PORT, such as 127.0.0.1:8080 or [::1]:8080".to_owned())
}

fn host_and_port(text: &str) -> Result<String, String> {
    let well_formed = text
        .rsplit_once(':')
        .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0));
    if well_formed {
        Ok(text.to_owned())
    } else {
        Err("it is not HOST:PORT, such as localhost:8080".to_owned())
    }
}
