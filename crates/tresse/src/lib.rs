//! CMT-SCTP over real sockets: associations over all paths between two hosts, in user space.
//!
//! SCTP packets are sent in UDP (RFC 6951), so an ordinary user can use every address of the host, also through NATs;
//! or over IP without UDP ([`Endpoint::bind_raw`]), by privileged processes. One driver task per [`Endpoint`] moves
//! packets between the sockets and the protocol core, [`tresse_proto`], which makes all decisions; this crate only
//! wakes tasks.
//!
//! [`Association::send`] and [`Association::recv`] send and receive messages. [`Association::messages`] does so as a
//! `Stream` and a `Sink`, and [`Association::byte_stream`] has bytes in place of messages. [`Association::events`]
//! returns other events, and [`PathStats::limited_by`] has the limits of each path, with the time for which each held.
//!
//! # Example
//!
//! A message over two paths of one host, and its echo:
//!
//! ```
//! use tresse::{AssociationConfig, Endpoint, EndpointConfig, Peer, SendOptions, StreamId};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let here = ["127.0.0.1".parse()?, "127.0.0.2".parse()?];
//! let settings = AssociationConfig::preset("cmt")?;
//!
//! let listening = EndpointConfig::listening(7);
//! let server = Endpoint::bind(&here, 0, listening, settings.clone())?;
//! let peer = Peer::new(here, 7).with_udp_port(server.udp_port());
//!
//! tokio::spawn(async move {
//!     while let Some(association) = server.accept().await {
//!         while let Ok(Some(message)) = association.recv().await {
//!             let options = SendOptions::on(message.stream);
//!             association.send(options, message.payload.into_bytes()).await.expect("room for an echo");
//!         }
//!     }
//! });
//!
//! let client = Endpoint::bind(&here, 0, EndpointConfig::default(), settings)?;
//! let association = client.connect(peer).await?;
//! association.send(SendOptions::on(StreamId(3)), "hello").await?;
//! let answer = association.recv().await?.expect("the echo comes before the end");
//! assert_eq!(answer.payload.into_bytes(), "hello");
//! assert_eq!(association.path_stats().len(), 2);
//! association.shutdown().await?;
//! # Ok(())
//! # }
//! ```

mod association;
mod association_id;
mod builder;
mod byte_stream;
mod connecting;
mod driver;
mod drivers;
mod endpoint;
mod error;
mod events;
pub mod host;
mod messages;
#[cfg(not(feature = "encryption"))]
mod no_keyring;
#[cfg(feature = "encryption")]
pub mod security;
mod shared;
mod tap;
mod transport;

pub use association::Association;
pub use association_id::AssociationId;
pub use builder::EndpointBuilder;
pub use byte_stream::ByteStream;
pub use connecting::Connecting;
pub use endpoint::{Endpoint, Peer};
pub use error::{BindError, ConnectError, Ended, TryRecvError};
pub use events::{Events, Lagged};
pub use messages::Messages;
pub use tap::{Tap, Tapped};
pub use transport::{DEFAULT_UDP_PORT, LocalStats, source_towards};

pub use bytes::Bytes;
pub use tresse_proto::{
    Abandoned, Abandonments, AddressChange, AddressError, AddressOutcome, AdjustError, Adjustment,
    AssociationConfig, AssociationStats, CauseCode, CloseReason, ConfigError, Direction, Discards, Ecn,
    EndpointConfig, Event, Joiner, KeyError, Limit, LimitTimes, Message, NoSuchPath, PacketSize, Part,
    PathAdjustment, PathId, PathState, PathStats, Payload, PolicyKind, Ppid, Reconfiguration,
    ReconfigurationError, ReconfigurationOutcome, Registry, Reliability, ScheduleError, SchedulerFault,
    SendError, SendOptions, SendQueueInfo, Ssn, StreamId, Streams, Tsn, Undelivered, units,
};
pub use tresse_proto::{config, congestion, protection, schedule};

/// Compiles the examples of the page on schedulers with those of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/schedulers.md")]
struct Schedulers;

/// Compiles those of the page on path schedulers.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/path-schedulers.md")]
struct PathSchedulers;

/// Compiles those of the page on congestion controllers.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/congestion.md")]
struct Controllers;

/// Compiles and runs the example of the README with those of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
