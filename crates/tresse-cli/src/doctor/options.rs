//! Grammar of `tresse doctor`: names, defaults and help. Performs no check.

use std::io::ErrorKind;
use std::net::IpAddr;
use std::time::Duration;

use clap::Args;
use tresse::host::{self, Local, Remote};

use crate::args::{DEFAULT_SCTP_PORT, duration, positive_duration};
use crate::call::CallArgs;
use crate::failure::Failure;
use crate::named::{self, Named};
use crate::record::RecordArgs;
use crate::security::SecurityArgs;

#[derive(Args)]
pub(crate) struct DoctorArgs {
    /// Check the paths to this peer too; the checks over a path need a peer that runs `tresse perf server`
    #[arg(long, value_name = "A,B,…", value_delimiter = ',')]
    pub(super) to: Vec<Named<Remote>>,
    /// Own addresses to check, as in `tresse perf client`
    #[arg(long, value_name = "A,B,…", value_delimiter = ',', default_value = "auto")]
    from: Vec<Named<Local>>,
    /// The peer's UDP port
    #[arg(long, value_name = "UDP", default_value_t = tresse::DEFAULT_UDP_PORT, value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) port: u16,
    /// Time to wait for the peer's first answer over each path
    #[arg(long, default_value = "5s", value_parser = positive_duration)]
    timeout: Duration,
    /// Longest binding lifetime of a NAT to test; each path takes this time and some seconds
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "to")]
    pub(super) binding_lifetime: Option<Duration>,
    #[command(flatten)]
    security: SecurityArgs,
    /// Print the findings as JSON
    #[arg(long)]
    pub(super) json: bool,
}

impl DoctorArgs {
    /// Looks up the names of both sides.
    pub(super) async fn resolve(&mut self) -> Result<(), Failure> {
        named::look_up_both(&mut self.to, &mut self.from).await
    }

    /// Returns the own addresses to check.
    pub(super) fn local(&self) -> Result<Vec<IpAddr>, Failure> {
        let (own, others) = (named::found(&self.from), named::found(&self.to));
        match others.is_empty() {
            true => match host::waiting_on(&own) {
                // A host without one is a finding, not a failure of the command.
                Err(error) if error.kind() == ErrorKind::AddrNotAvailable => Ok(Vec::new()),
                local => local.map_err(|error| Failure::usage(error).at("--from")),
            },
            false => host::starting_towards(&own, &others).map_err(Failure::unreachable),
        }
    }

    /// Returns a call to the peer.
    pub(super) fn call(&self) -> CallArgs {
        CallArgs {
            to: self.to.clone(),
            from: self.from.clone(),
            port: self.port,
            local_port: 0,
            sctp_port: DEFAULT_SCTP_PORT,
            timeout: self.timeout,
            security: self.security.clone(),
            record: RecordArgs::default(),
        }
    }
}
