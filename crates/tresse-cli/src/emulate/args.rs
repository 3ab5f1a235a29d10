//! Grammar of `tresse emulate`: names, defaults and help. Runs no emulation.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use clap::Args;

use crate::args::{DurationArgs, OutputArgs, address, key_value};
use crate::failure::Failure;

/// Carry packets between a client and a server as a scenario's paths would, in real time.
///
/// Path by path, the relay stands between one address of the client and one of the server, on UDP ports of its own at
/// these very addresses. So both sides see the addresses that they know: the client only has to take the relay's port
/// for the server's.
#[derive(Args)]
pub(crate) struct EmulateArgs {
    /// The scenario, a TOML file: only its paths and its cross traffic are used
    pub(crate) scenario: PathBuf,
    /// Seed of all random numbers; the scenario's own if not given
    #[arg(long)]
    pub(super) seed: Option<u64>,
    /// Change one value of the scenario, such as path.1.delay=75ms
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub(super) settings: Vec<(String, String)>,
    /// The client's addresses, one for each path; 127.0.1.1, 127.0.1.2, … if not given
    #[arg(long, value_name = "A,B,…", value_delimiter = ',', value_parser = address)]
    client: Vec<IpAddr>,
    /// The server's addresses, one for each path; 127.0.2.1, 127.0.2.2, … if not given
    #[arg(long, value_name = "A,B,…", value_delimiter = ',', value_parser = address)]
    server: Vec<IpAddr>,
    /// The UDP port on which the server listens
    #[arg(long, value_name = "UDP", default_value_t = tresse::DEFAULT_UDP_PORT, value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) server_port: u16,
    /// UDP port on which the emulator takes packets of clients, in place of the server's; 0 for any
    #[arg(long, value_name = "UDP", default_value_t = DEFAULT_PORT)]
    pub(super) port: u16,
    #[command(flatten)]
    pub(super) end: DurationArgs,
    /// Write a capture of all packets where they enter the links, as pcapng
    #[arg(long, value_name = "FILE")]
    pub(super) pcap: Option<PathBuf>,
    /// Overwrite the capture if it exists
    #[arg(long)]
    pub(super) force: bool,
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

impl EmulateArgs {
    /// Returns the addresses of the client and of the server for `paths` paths.
    ///
    /// # Errors
    /// There is not one address for each path, an address is given twice, or the relay's port is that of the server.
    pub(super) fn addresses(&self, paths: usize) -> Result<(Vec<IpAddr>, Vec<IpAddr>), Failure> {
        if self.port == self.server_port {
            return Err(Failure::usage(format!(
                "--port {} is the server's, which the relay stands beside on the same addresses: give another one",
                self.port
            )));
        }
        Ok((
            addresses("--client", &self.client, CLIENT_NET, paths)?,
            addresses("--server", &self.server, SERVER_NET, paths)?,
        ))
    }
}

fn addresses(option: &str, given: &[IpAddr], net: u8, paths: usize) -> Result<Vec<IpAddr>, Failure> {
    if given.is_empty() {
        return Ok((1..=paths).map(|host| Ipv4Addr::new(127, 0, net, host as u8).into()).collect());
    }
    if given.len() != paths {
        let counted =
            |count, one: &str, more: &str| format!("{count} {}", if count == 1 { one } else { more });
        let (given, paths) = (counted(given.len(), "address", "addresses"), counted(paths, "path", "paths"));
        return Err(Failure::usage(format!(
            "{option} has {given}, and the scenario {paths}: give one for each"
        )));
    }
    if let Some((_, twice)) = given.iter().enumerate().find(|&(at, address)| given[..at].contains(address)) {
        return Err(Failure::usage(format!("{option} has {twice} twice: each path has one of its own")));
    }
    Ok(given.to_vec())
}

/// Third bytes of the default addresses, in 127.0.1.0 and 127.0.2.0: every Linux host has these.
const CLIENT_NET: u8 = 1;
const SERVER_NET: u8 = 2;
/// The port after the registered one of SCTP in UDP, 9899 (RFC 6951).
const DEFAULT_PORT: u16 = 9900;
