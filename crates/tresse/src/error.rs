//! Errors of the crate, in one line each: the fault, its place, and accepted values.

use std::io::{self, ErrorKind};
use std::net::IpAddr;

use tresse_proto::{CloseReason, ConfigError};

/// Reason for which an endpoint could not be bound.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// No local address was given.
    #[error("no local address was given")]
    NoAddress,
    /// The address is unspecified or multicast, so that no path can start there.
    #[error(
        "{address} does not name one address of this host: give each address that a path shall start from"
    )]
    NotOneAddress {
        /// The address.
        address: IpAddr,
    },
    /// The same address was given twice.
    #[error("local address {address} was given twice")]
    Twice {
        /// The address.
        address: IpAddr,
    },
    /// The addresses of this host are not known, or others can reach none of them.
    #[error("no addresses to bind: {0}")]
    Addresses(#[from] io::Error),
    /// The operating system refused the socket.
    #[error("cannot bind {address} to UDP port {port}: {}", bind_reason(source, *port))]
    Io {
        /// The local address.
        address: IpAddr,
        /// The UDP port; 0 stands for any.
        port: u16,
        /// Error of the system.
        source: io::Error,
    },
    /// The process may not open raw sockets.
    #[error(
        "raw IP needs the right to open raw sockets (root or CAP_NET_RAW); SCTP in UDP needs no privilege"
    )]
    RawNotPermitted,
    /// The operating system refused the raw socket.
    #[error("cannot use raw IP on {address}: {}", bind_reason(source, 0))]
    Raw {
        /// The local address.
        address: IpAddr,
        /// Error of the system.
        source: io::Error,
    },
    /// Another endpoint over raw IP uses the SCTP port.
    #[error("cannot use SCTP port {port} on {address}: another endpoint over raw IP has it")]
    PortTaken {
        /// The local address.
        address: IpAddr,
        /// The SCTP port.
        port: u16,
    },
    /// The settings are not usable.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Encryption is required, but there are no keys for it.
    #[error("encryption needs keys: bind with them (Endpoint::bind_secured), or set encryption = off")]
    NoKeys,
    /// There would be more driver tasks than an endpoint can have.
    #[error("{drivers} drivers were requested: an endpoint can have {most} at most")]
    TooManyDrivers {
        /// The requested number.
        drivers: usize,
        /// Maximum number.
        most: usize,
    },
    /// The system provides no random numbers, but an endpoint must be unpredictable.
    #[error("no random seed from the operating system: {0}")]
    Seed(String),
}

impl BindError {
    pub(crate) fn io(address: IpAddr, port: u16, source: io::Error) -> Self {
        BindError::Io { address, port, source }
    }

    pub(crate) fn raw(address: IpAddr, source: io::Error) -> Self {
        match source.kind() {
            ErrorKind::PermissionDenied => BindError::RawNotPermitted,
            _ => BindError::Raw { address, source },
        }
    }
}

fn bind_reason(error: &io::Error, port: u16) -> String {
    match error.kind() {
        ErrorKind::AddrInUse if port == 0 => "no port is free".to_owned(),
        ErrorKind::AddrInUse => "the port is in use".to_owned(),
        ErrorKind::AddrNotAvailable => "this host does not have the address".to_owned(),
        ErrorKind::PermissionDenied => "permission denied (ports below 1024 need a privilege)".to_owned(),
        ErrorKind::Unsupported => "this host does not have the address family".to_owned(),
        _ => error.to_string(),
    }
}

/// Reason for which there is no association.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The set-up was not started.
    #[error(transparent)]
    Refused(#[from] tresse_proto::ConnectError),
    /// Encryption is required, but the endpoint has no keys for it.
    #[error("encryption needs keys: bind with them (Endpoint::bind_secured), or set encryption = off")]
    NoKeys,
    /// The peer's UDP port is 0.
    #[error("the remote UDP port must not be 0: give the port at which the peer receives SCTP in UDP")]
    UdpPortZero,
    /// The association ended before it was set up.
    #[error(transparent)]
    Ended(#[from] Ended),
    /// The peer did not prove a trusted identity, or does not trust this side.
    #[cfg(feature = "encryption")]
    #[error(transparent)]
    NotAuthenticated(#[from] crate::security::SecurityFault),
}

impl ConnectError {
    /// Returns whether the endpoint lacks an address of the family of a peer's address.
    pub fn lacks_address_family(&self) -> bool {
        matches!(self, ConnectError::Refused(tresse_proto::ConnectError::AddressFamily { .. }))
    }
}

/// The association ended in another way than by a shutdown with everything delivered.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}", close_text(.0))]
pub struct Ended(pub CloseReason);

/// Reason for which no message was returned.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TryRecvError {
    /// No message has arrived.
    #[error("no message is here now")]
    Empty,
    /// The peer has ended the association gracefully, and all messages were received.
    #[error("the peer has ended the association, and every message was taken")]
    Finished,
    /// The association ended in another way.
    #[error(transparent)]
    Ended(#[from] Ended),
}

/// Returns a reason as the end of a line for a person.
fn close_text(reason: &CloseReason) -> String {
    match reason {
        CloseReason::Graceful => "the association was shut down".to_owned(),
        CloseReason::Aborted => "the association was aborted here".to_owned(),
        CloseReason::AbortedByPeer { cause, .. } => format!("the peer aborted the association: {cause}"),
        CloseReason::SetupTimeout => "the peer did not answer".to_owned(),
        CloseReason::PathsLost => "all paths to the peer were lost".to_owned(),
        CloseReason::ShutdownTimeout => "the peer did not let the shutdown come to its end".to_owned(),
        // A peer without the extension does not violate the protocol.
        CloseReason::PeerUnprotected => {
            "the peer has no protection by DTLS chunks, which is required here".to_owned()
        }
        CloseReason::DriverEnded => "the driver of the endpoint has ended, with its runtime".to_owned(),
        CloseReason::KeysSpent => "the keys are spent, and there are no new ones".to_owned(),
        CloseReason::PeerFault(fault) => format!("the peer broke the protocol: {fault}"),
        _ => "the association ended".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_socket_names_address_port_and_reason() {
        let address = IpAddr::from([192, 0, 2, 1]);
        let error = BindError::io(address, 9899, ErrorKind::AddrNotAvailable.into());
        assert_eq!(
            error.to_string(),
            "cannot bind 192.0.2.1 to UDP port 9899: this host does not have the address"
        );
        let error = BindError::io(address, 0, ErrorKind::AddrInUse.into());
        assert_eq!(error.to_string(), "cannot bind 192.0.2.1 to UDP port 0: no port is free");
    }
}
