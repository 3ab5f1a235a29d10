//! Port numbers for tests that run at the same time, in this process and in others.

use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Mutex;

/// A port number that no other test has until this process ends. It is below those that the system gives out by itself, and was
/// free for UDP and TCP. The name that claims it is in the abstract namespace of local sockets: it belongs to the network
/// namespace, as ports do, and ends with the process.
pub(crate) fn reserved() -> u16 {
    static CLAIMS: Mutex<Vec<UnixDatagram>> = Mutex::new(Vec::new());
    let mut claims = CLAIMS.lock().expect("nobody has panicked");
    let start = std::process::id() as u16 % PORTS;
    let ports = (0..PORTS).map(|step| FIRST + (start + step) % PORTS);
    let (port, claim) = ports.filter_map(|port| Some((port, claim(port)?))).next().expect("a free port");
    claims.push(claim);
    port
}

fn claim(port: u16) -> Option<UnixDatagram> {
    let name = SocketAddr::from_abstract_name(format!("tresse/test/port/{port}")).ok()?;
    let claim = UnixDatagram::bind_addr(&name).ok()?;
    let anywhere = (Ipv4Addr::UNSPECIFIED, port);
    UdpSocket::bind(anywhere).and(TcpListener::bind(anywhere).map(drop)).ok()?;
    Some(claim)
}

const FIRST: u16 = 12_000;
/// As many as there are below the first ephemeral port of Linux.
const PORTS: u16 = 20_000;
