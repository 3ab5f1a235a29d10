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
//! Methods that are not `async` wait neither for the network nor for the peer. They take a lock that the driver task
//! holds while it processes packets, and not while it reads or writes sockets. Dropping a future has no effect, unless
//! its method says otherwise.
//!
//! # Associations and paths
//!
//! A message over two paths of one host, and its echo. The first address of each side forms the first path, the second
//! one the second path:
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
//!
//! [`Endpoint::builder`] also takes host names, interfaces, and single settings.
//!
//! # Streams, order and reliability
//!
//! Each message has a stream. A stream keeps the order of its ordered messages, whatever happens on the others. A
//! message may be abandoned if it is late (RFC 3758) or was retransmitted too often (RFC 7496):
//!
//! ```no_run
//! # async fn send(association: &tresse::Association) -> Result<(), tresse::SendError> {
//! use std::time::Duration;
//! use tresse::{Reliability, SendOptions, StreamId};
//!
//! // Ordered on stream 1, and retransmitted until it arrives.
//! association.send(SendOptions::on(StreamId(1)), "an order").await?;
//!
//! // Delivered as soon as it arrives.
//! let unordered = SendOptions::on(StreamId(1)).with(|o| o.unordered = true);
//! association.send(unordered, "an alarm").await?;
//!
//! // Abandoned after 200 ms; `Event::Abandoned` then has the context.
//! let short_lived = SendOptions::on(StreamId(2)).with(|o| {
//!     o.reliability = Reliability::Lifetime(Duration::from_millis(200));
//!     o.context = 17;
//! });
//! association.send(short_lived, "a position").await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Encryption
//!
//! With keys, all packets are encrypted and both sides authenticate. Here each side knows the fingerprint of the other
//! side's key; the module `security` has other kinds of trust.
//!
//! ```
//! # #[cfg(feature = "encryption")]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//!
//! use tresse::security::{Identity, Peers, Security};
//! use tresse::{Endpoint, Peer};
//!
//! // Between two hosts each side reads its own key from a file, and learns only the fingerprint of the other one.
//! let client_key = Identity::from_pem(Identity::generate_pem()?.as_bytes())?;
//! let server_key = Identity::from_pem(Identity::generate_pem()?.as_bytes())?;
//! let client_security = Security::pinned(&client_key, &Peers::new([server_key.fingerprint()]))?;
//! let server_security = Security::pinned(&server_key, &Peers::new([client_key.fingerprint()]))?;
//!
//! let server = Endpoint::builder().local("127.0.0.1")?.listen(7).security(Arc::new(server_security)).bind()?;
//! let client = Endpoint::builder().local("127.0.0.1")?.security(Arc::new(client_security)).bind()?;
//! let peer = Peer::new(["127.0.0.1".parse()?], 7).with_udp_port(server.udp_port());
//! let (opened, accepted) = tokio::join!(client.connect(peer), server.accept());
//! let proved = opened?.peer_identity().expect("a peer without a trusted key gets no association");
//! assert_eq!(proved.fingerprint, server_key.fingerprint());
//! # drop(accepted);
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "encryption"))]
//! # fn main() {}
//! ```
//!
//! # Schedulers and congestion control
//!
//! Settings name the policies of an association: `path_scheduler`, `stream_scheduler`, `stream_map` and
//! `congestion_control`. An endpoint can have policies of the application beside the built-in ones; [`schedule`] and
//! [`congestion`] have the traits. A path scheduler that selects the open path with the least data in flight:
//!
//! ```
//! use std::sync::Arc;
//!
//! use tresse::schedule::{Decision, Instant, Offer, PathScheduler};
//! use tresse::{AssociationConfig, Endpoint, PathId};
//!
//! struct LeastInFlight;
//!
//! impl PathScheduler for LeastInFlight {
//!     fn name(&self) -> &str {
//!         "least_in_flight"
//!     }
//!     fn decide(&mut self, _now: Instant, offer: &Offer<'_>) -> Decision {
//!         Decision::send(offer.open().min_by_key(|path| path.flight))
//!     }
//!     fn on_sent(&mut self, _path: PathId, _bytes: usize) {}
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let settings = AssociationConfig::default().with(|c| c.path_scheduler = "least_in_flight".to_owned());
//! let endpoint = Endpoint::builder()
//!     .local("127.0.0.1")?
//!     .path_scheduler("least_in_flight", Arc::new(|_config| Ok(Box::new(LeastInFlight))))?
//!     .association_config(settings)
//!     .bind()?;
//! assert!(endpoint.path_schedulers().contains(&"least_in_flight".to_owned()));
//! # Ok(())
//! # }
//! ```
//!
//! # Statistics
//!
//! Each path, and the association as a whole, has exactly one limit at any time:
//!
//! ```no_run
//! # fn report(association: &tresse::Association) {
//! for path in association.path_stats() {
//!     println!("{} -> {}: {:?}, round trip {:?}", path.local, path.remote, path.state, path.srtt);
//!     for (limit, share) in path.limited_by.shares() {
//!         println!("  limited by {} for {:.0} % of the time", limit.name(), share * 100.0);
//!     }
//! }
//! println!("{} bytes are not sent yet", association.send_queue().unsent);
//! # }
//! ```

// The layers from the bottom up; a file uses only files on the lines before its own, and those beside it without a circle:
//
// 1. `waiting`, `association_id`, `driver_group`; `host` without `host/follow`; `security` or `no_keyring`
// 2. `error`, `events`, `tap`
// 3. `transport`
// 4. `shared`: the core behind its lock
// 5. `drivers`, `driver`; `association`
// 6. `messages`, `byte_stream`, `connecting`
// 7. `endpoint`
// 8. `builder`, `host/follow`

mod association;
mod association_id;
mod builder;
mod byte_stream;
mod connecting;
mod driver;
mod driver_group;
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
mod waiting;

pub use association::Association;
pub use association_id::AssociationId;
pub use builder::EndpointBuilder;
pub use byte_stream::ByteStream;
pub use connecting::Connecting;
pub use endpoint::{Endpoint, Peer};
pub use error::{BindError, ConnectError, Ended, TryRecvError};
pub use events::{Events, Lagged};
pub use host::source_towards;
pub use messages::Messages;
pub use tap::{Tap, Tapped};
pub use transport::{DEFAULT_UDP_PORT, LocalStats};

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
