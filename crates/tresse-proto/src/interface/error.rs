//! Errors of commands: one small enum for each.

use std::net::IpAddr;
use std::time::Duration;

use tresse_policy::PathId;
use tresse_wire::StreamId;

use crate::config::ConfigError;

/// Reason for which no association could be started.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// Nothing to connect to.
    #[error("no remote address was given")]
    NoRemoteAddress,
    /// Nothing to connect from.
    #[error("no local address was given")]
    NoLocalAddress,
    /// A remote address without any local address of its family.
    #[error("no local address can reach {remote}: give a local {} address", if remote.is_ipv4() { "IPv4" } else { "IPv6" })]
    AddressFamily {
        /// The address that cannot be reached.
        remote: IpAddr,
    },
    /// Unspecified, multicast or broadcast: not the address of one host.
    #[error("{remote} does not name one host: give an address of the peer")]
    NotOneHost {
        /// The address.
        remote: IpAddr,
    },
    /// The peer's SCTP port is 0.
    #[error("the remote SCTP port must not be 0")]
    PortZero,
    /// There is an association with this peer, or one is being set up (RFC 9260 §1.4: at most one between
    /// two endpoints).
    #[error("there is an association with {remote}, SCTP port {port}, already")]
    Connected {
        /// The address that both have.
        remote: IpAddr,
        /// The peer's SCTP port.
        port: u16,
    },
    /// max_associations is reached.
    #[error("the endpoint already has its {limit} associations (setting \"max_associations\")")]
    TooManyAssociations {
        /// The limit.
        limit: u32,
    },
    /// The settings are not usable.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// Reason for which a message was not accepted. Nothing of it was queued.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The send buffer has no room for it; `Event::Writable` will tell when that changes.
    #[error("the send buffer has room for {free} more bytes only")]
    Full {
        /// Bytes that would be accepted now.
        free: usize,
    },
    /// The stream was not negotiated.
    #[error("stream {} does not exist: {count} streams were negotiated", stream.0)]
    NoSuchStream {
        /// The stream that was asked for.
        stream: StreamId,
        /// Number of streams, from 0 on.
        count: u16,
    },
    /// On the first stream of a protected association these identifiers are the key management's.
    #[error("the payload protocol identifiers 4242 and 4243 are the key management's on stream 0")]
    ReservedPpid,
    /// SCTP has no empty messages.
    #[error("a message has at least one byte")]
    Empty,
    /// The send buffer can never hold it.
    #[error("the message has {len} bytes, and the send buffer holds at most {limit}")]
    TooLong {
        /// Its length.
        len: usize,
        /// The size of the send buffer.
        limit: usize,
    },
    /// The association is not yet, or no longer, able to take messages.
    #[error("the association is {state}: it takes no messages")]
    NotOpen {
        /// Its state, in words.
        state: &'static str,
    },
}

/// Reason for which an address could not be added, removed or preferred. Nothing was begun.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// The peer does not want it, or this side does not (setting "dynamic_addresses").
    #[error(
        "changing addresses was not agreed with the peer (settings \"dynamic_addresses\" and \"authentication\")"
    )]
    NotAgreed,
    /// The association is not yet, or no longer, able to change.
    #[error("the association is {state}: its addresses stay as they are")]
    NotOpen {
        /// Its state, in words.
        state: &'static str,
    },
    /// No host can have the address.
    #[error("{address} is no address of one host")]
    Unusable {
        /// The address.
        address: IpAddr,
    },
    /// The endpoint is not bound to the address: nothing could be sent from there.
    #[error("{address} is no address of the endpoint, which has {bound}: bind it first")]
    NotBound {
        /// The address.
        address: IpAddr,
        /// Those that it has.
        bound: String,
    },
    /// The association has it already, or still.
    #[error("{address} is an address of the association already")]
    Known {
        /// The address.
        address: IpAddr,
    },
    /// The association does not have it, or not any more.
    #[error("{address} is no address of the association; its own are {known}")]
    Unknown {
        /// The address.
        address: IpAddr,
        /// Those that it has.
        known: String,
    },
    /// No address would be left that the peer can reach (RFC 5061 §5.3 F5).
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
    /// There are as many paths as there may be.
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
    /// Chunks are not authenticated here: one of the sides does not want it (setting "authentication").
    #[error("authentication was not agreed with the peer (setting \"authentication\")")]
    NotAgreed,
    /// No such key.
    #[error("there is no shared key {number}; there are {known}")]
    Unknown {
        /// The number that was given.
        number: u16,
        /// The numbers there are.
        known: String,
    },
    /// The key in use cannot be removed.
    #[error("shared key {number} is in use: use another one first")]
    Active {
        /// Its number.
        number: u16,
    },
    /// The association has ended.
    #[error("the association is closed: it needs no keys")]
    Closed,
}

/// A path was named that does not exist, not yet, or not any more.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("path {} does not exist: the association has {count}", path.0)]
pub struct NoSuchPath {
    /// The path that was named.
    pub path: PathId,
    /// Number of paths, from 0 on.
    pub count: usize,
}

/// Reason for which streams cannot be reset or added now. Nothing was asked of the peer.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReconfigurationError {
    /// RE-CONFIG was not negotiated.
    #[error("RE-CONFIG was not negotiated: both sides need the setting \"stream_reconfiguration\"")]
    NotNegotiated,
    /// The association is not yet, or no longer, able to change its streams.
    #[error("the association is {state}: its streams cannot be changed")]
    NotOpen {
        /// Its state, in words.
        state: &'static str,
    },
    /// One request at a time: `Event::Reconfigured` tells when it is over.
    #[error("another request is under way, of this side or of the peer")]
    Busy,
    /// The stream was not negotiated.
    #[error("stream {} does not exist: there are {count} in that direction", stream.0)]
    NoSuchStream {
        /// The stream that was asked for.
        stream: StreamId,
        /// Number of streams, from 0 on.
        count: u16,
    },
    /// A reset of no stream, or more streams than one request can name.
    #[error("{count} streams were named: 1 to {most} are possible at a time, or all")]
    Count {
        /// Number that was named.
        count: usize,
        /// The most there can be.
        most: usize,
    },
    /// A direction has at most 65,535 streams, and no streams to add is no request.
    #[error(
        "{outbound} outbound and {inbound} inbound streams were to be added: at most {most_outbound} and {most_inbound} are possible, and at least one"
    )]
    Added {
        /// As asked for.
        outbound: u16,
        /// As asked for.
        inbound: u16,
        /// The most that can still be added.
        most_outbound: u16,
        /// The most that can still be added, by the setting "inbound_streams" too.
        most_inbound: u16,
    },
    /// Everything was numbered anew a short while ago (RFC 6525 §5.1.4).
    #[error("everything was numbered anew a short while ago: possible again in {} ms", wait.as_millis())]
    TooSoon {
        /// Time to wait.
        wait: Duration,
    },
}
