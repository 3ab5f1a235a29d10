//! SOCKS version 5 (RFC 1928) as a server: no authentication, and CONNECT alone.

use std::io::{Error, ErrorKind, Result};
use std::net::{Ipv4Addr, Ipv6Addr};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::forward::Target;
use super::opening::{Refusal, is_host};

/// Receives the request of a program, and returns its target.
///
/// # Errors
/// The connection broke, or the request is not supported. Then the program has received a reply, if the protocol has one for the case.
pub(super) async fn request(tcp: &mut TcpStream) -> Result<Target> {
    let [version, methods] = read::<2>(tcp).await?;
    if version != VERSION {
        return Err(Error::new(ErrorKind::InvalidData, "it does not speak SOCKS version 5"));
    }
    let mut offered = vec![0; methods.into()];
    tcp.read_exact(&mut offered).await?;
    if !offered.contains(&NO_AUTHENTICATION) {
        tcp.write_all(&[VERSION, 0xff]).await?;
        return Err(Error::new(ErrorKind::Unsupported, "it wants to authenticate itself"));
    }
    tcp.write_all(&[VERSION, NO_AUTHENTICATION]).await?;
    let [version, command, _, kind] = read::<4>(tcp).await?;
    let host = match kind {
        1 => Ipv4Addr::from(read::<4>(tcp).await?).to_string(),
        3 => {
            let [length] = read::<1>(tcp).await?;
            let mut name = vec![0; length.into()];
            tcp.read_exact(&mut name).await?;
            // A name that is not UTF-8 is refused below, like any other name that no host can have.
            String::from_utf8(name).unwrap_or_default()
        }
        4 => Ipv6Addr::from(read::<16>(tcp).await?).to_string(),
        _ => {
            answer(tcp, 8).await?;
            return Err(Error::new(ErrorKind::InvalidData, "an address of an unknown kind"));
        }
    };
    let port = u16::from_be_bytes(read::<2>(tcp).await?);
    if version != VERSION || command != CONNECT {
        answer(tcp, 7).await?;
        return Err(Error::new(ErrorKind::Unsupported, "it wants something other than CONNECT"));
    }
    // The other side would refuse the name.
    if !is_host(&host) {
        answer(tcp, 4).await?;
        return Err(Error::new(ErrorKind::InvalidData, "it names what cannot be a host"));
    }
    Ok(Target { host, port })
}

/// Sends the reply to the program: success, or the reason for the failure.
pub(super) async fn reply(tcp: &mut TcpStream, outcome: std::result::Result<(), Refusal>) -> Result<()> {
    let code = match outcome {
        Ok(()) => 0,
        Err(Refusal::Broke) => 1,
        Err(Refusal::Forbidden) => 2,
        Err(Refusal::Unreachable) => 4,
        Err(Refusal::Refused) => 5,
    };
    answer(tcp, code).await
}

/// Sends a reply. Its bound address is zero, because only the other side knows it.
async fn answer(tcp: &mut TcpStream, code: u8) -> Result<()> {
    tcp.write_all(&[VERSION, code, 0, 1, 0, 0, 0, 0, 0, 0]).await
}

async fn read<const N: usize>(tcp: &mut TcpStream) -> Result<[u8; N]> {
    let mut bytes = [0; N];
    tcp.read_exact(&mut bytes).await.map(|_| bytes)
}

const VERSION: u8 = 5;
const NO_AUTHENTICATION: u8 = 0;
const CONNECT: u8 = 1;
