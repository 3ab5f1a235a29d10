//! Errors that commands return.

use std::net::IpAddr;
use std::time::Duration;

use tresse_policy::PathId;
use tresse_wire::StreamId;

use crate::config::ConfigError;

/// Reason for which no association could be started.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// No remote address was given.
    #[error("no remote address was given")]
    NoRemoteAddress,
    /// No local address was given.
    #[error("no local address was given")]
    NoLocalAddress,
    /// A remote address has no local address of its family.
    #[error("no local address can reach {remote}: give a local {} address", if remote.is_ipv4() { "IPv4" } else { "IPv6" })]
    AddressFamily {
        /// The address that cannot be reached.
        remote: IpAddr,
    },
    /// A remote address is unspecified, multicast or broadcast: not the address of one host.
    #[error("{remote} does not name one host: give an address of the peer")]
    NotOneHost {
        /// The address.
        remote: IpAddr,
    },
    /// The peer's SCTP port is 0.
    #[error("the remote SCTP port must not be 0")]
    PortZero,
    /// There is an association with this peer, or one is being set up (RFC 9260 §1.4: at most one between two endpoints).
    #[error("there is an association with {remote}, SCTP port {port}, already")]
    Connected {
        /// The address of both associations.
        remote: IpAddr,
        /// The peer's SCTP port.
        port: u16,
    },
    /// The setting `max_associations` is reached.
    #[error("the endpoint already has its {limit} associations (setting \"max_associations\")")]
    TooManyAssociations {
        /// The limit.
        limit: u32,
    },
    /// The settings are not valid.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// Reason for which a message was not accepted. No part of it was queued.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The send buffer has no room for the message; `Event::Writable` follows when there is room again.
    #[error("the send buffer has room for {free} more bytes only")]
    Full {
        /// Bytes that would be accepted now.
        free: usize,
    },
    /// The stream was not negotiated.
    #[error("stream {} does not exist: {count} streams were negotiated", stream.0)]
    NoSuchStream {
        /// The stream in the command.
        stream: StreamId,
        /// Number of streams, from 0 on.
        count: u16,
    },
    /// On stream 0 of a protected association, this payload protocol identifier is reserved for the key management.
    #[error("the payload protocol identifiers 4242 and 4243 are the key management's on stream 0")]
    ReservedPpid,
    /// The message is empty, which SCTP does not allow.
    #[error("a message has at least one byte")]
    Empty,
    /// The message is longer than the whole send buffer.
    #[error("the message has {len} bytes, and the send buffer holds at most {limit}")]
    TooLong {
        /// Length of the message in bytes.
        len: usize,
        /// Size of the send buffer in bytes.
        limit: usize,
    },
    /// The association cannot accept messages yet, or any more.
    #[error("the association is {state}: it takes no messages")]
    NotOpen {
        /// The state of the association.
        state: &'static str,
    },
}

/// Reason for which an address could not be added, removed or made primary. No request was made.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// Dynamic addresses were not negotiated (setting "dynamic_addresses" of both sides).
    #[error(
        "changing addresses was not agreed with the peer (settings \"dynamic_addresses\" and \"authentication\")"
    )]
    NotAgreed,
    /// The association cannot change addresses yet, or any more.
    #[error("the association is {state}: its addresses stay as they are")]
    NotOpen {
        /// The state of the association.
        state: &'static str,
    },
    /// The address is not the address of one host.
    #[error("{address} is no address of one host")]
    Unusable {
        /// The address.
        address: IpAddr,
    },
    /// The endpoint is not bound to the address, so that it cannot send from it.
    #[error("{address} is no address of the endpoint, which has {bound}: bind it first")]
    NotBound {
        /// The address.
        address: IpAddr,
        /// The addresses of the endpoint.
        bound: String,
    },
    /// The association has the address already, or still.
    #[error("{address} is an address of the association already")]
    Known {
        /// The address.
        address: IpAddr,
    },
    /// The association does not have the address, or not any more.
    #[error("{address} is no address of the association; its own are {known}")]
    Unknown {
        /// The address.
        address: IpAddr,
        /// The own addresses of the association.
        known: String,
    },
    /// The peer could reach no other address of this side (RFC 5061 §5.3 F5).
    #[error(
        "{address} is the last address of the association that the peer can reach: add another one first"
    )]
    Last {
        /// The address.
        address: IpAddr,
    },
    /// The peer has no address of its family.
    #[error("{address} reaches no address of the peer: it has no {} address", if address.is_ipv4() { "IPv4" } else { "IPv6" })]
    Unreachable {
        /// The address.
        address: IpAddr,
    },
    /// The association has the largest permitted number of paths.
    #[error("the association already has its {limit} paths (setting \"max_paths\")")]
    TooManyPaths {
        /// The limit.
        limit: u16,
    },
    /// Too many requests wait for the peer.
    #[error("too many requests wait for the peer's answer")]
    TooManyRequests,
}

/// Reason for which a shared key could not be set, used or removed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// Authentication of chunks was not negotiated (setting "authentication" of both sides).
    #[error("authentication was not agreed with the peer (setting \"authentication\")")]
    NotAgreed,
    /// There is no shared key with this number.
    #[error("there is no shared key {number}; there are {known}")]
    Unknown {
        /// The number in the command.
        number: u16,
        /// The numbers of the existing keys.
        known: String,
    },
    /// The key in use cannot be removed.
    #[error("shared key {number} is in use: use another one first")]
    Active {
        /// The number of the key.
        number: u16,
    },
    /// The key was deactivated, and cannot be used again.
    #[error("shared key {number} was deactivated: set it anew, or use another one")]
    Deactivated {
        /// The number of the key.
        number: u16,
    },
    /// The association has ended.
    #[error("the association is closed: it needs no keys")]
    Closed,
}

/// The path does not exist yet, or does not exist any more.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("path {} does not exist: the association has {count}", path.0)]
pub struct NoSuchPath {
    /// The path in the command.
    pub path: PathId,
    /// Number of paths, from 0 on.
    pub count: usize,
}

/// Reason for which streams cannot be reset or added now. No request was sent to the peer.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReconfigurationError {
    /// RE-CONFIG was not negotiated.
    #[error("RE-CONFIG was not negotiated: both sides need the setting \"stream_reconfiguration\"")]
    NotNegotiated,
    /// The association cannot change its streams yet, or any more.
    #[error("the association is {state}: its streams cannot be changed")]
    NotOpen {
        /// The state of the association.
        state: &'static str,
    },
    /// Another request is pending, and only one is possible at a time; `Event::Reconfigured` reports its completion.
    #[error("another request is under way, of this side or of the peer")]
    Busy,
    /// The stream was not negotiated.
    #[error("stream {} does not exist: there are {count} in that direction", stream.0)]
    NoSuchStream {
        /// The stream in the command.
        stream: StreamId,
        /// Number of streams, from 0 on.
        count: u16,
    },
    /// The reset names no stream, or more streams than one request can carry.
    #[error("{count} streams were named: 1 to {most} are possible at a time, or all")]
    Count {
        /// Number of streams in the command.
        count: usize,
        /// Maximum number.
        most: usize,
    },
    /// No streams were to be added, or a direction would have more streams than 65,535 or than the settings allow.
    #[error(
        "{outbound} outbound and {inbound} inbound streams were to be added: at most {most_outbound} and {most_inbound} are possible, and at least one"
    )]
    Added {
        /// Outbound streams to add.
        outbound: u16,
        /// Inbound streams to add.
        inbound: u16,
        /// Maximum number of outbound streams that can still be added.
        most_outbound: u16,
        /// Maximum number of inbound streams that can still be added, also limited by the setting "inbound_streams".
        most_inbound: u16,
    },
    /// The association was reset a short while ago (RFC 6525 §5.1.4).
    #[error("everything was numbered anew a short while ago: possible again in {} ms", wait.as_millis())]
    TooSoon {
        /// Time to wait before the next request.
        wait: Duration,
    },
}
