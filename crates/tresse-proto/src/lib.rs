//! CMT-SCTP without I/O: endpoints, associations, paths and the policies that drive them.
//!
//! The contract for every driver: after each input, poll for packets until there are none, read the events, sleep until
//! the deadline. The simulator, the socket driver and the tests run this loop around an [`Endpoint`].
//!
//! The core has no clock, no threads and no sockets. Time is an argument ([`Instant`]), and every random choice derives
//! from one seed.
//!
//! # A driver
//!
//! Two endpoints in one program, between which packets take no time. A real driver sends each [`Transmit`] to the other
//! host, makes a [`Datagram`] of each packet that arrives, and calls [`Endpoint::handle_timeout`] when
//! [`Endpoint::poll_timeout`] is due:
//!
//! ```
//! use std::net::IpAddr;
//!
//! use tresse_proto::{
//!     AssociationConfig, Connect, Datagram, Endpoint, EndpointConfig, Event, Instant, SendOptions, StreamId,
//! };
//!
//! /// Passes all packets of one endpoint to the other; returns whether there were any.
//! fn carry(from: &mut Endpoint, to: &mut Endpoint, now: Instant) -> bool {
//!     let mut any = false;
//!     let mut buffer = Vec::new();
//!     while let Some(transmit) = from.poll_transmit(now, 1, &mut buffer) {
//!         let payload = std::mem::take(&mut buffer).into();
//!         let (local, remote) = (transmit.remote, transmit.local);
//!         let datagram = Datagram { local, remote, encapsulation_port: None, ecn: transmit.ecn, payload };
//!         to.handle_datagram(now, datagram);
//!         any = true;
//!     }
//!     any
//! }
//!
//! let settings = AssociationConfig::default();
//! // On a real network the seeds must be unpredictable.
//! let mut client = Endpoint::new(EndpointConfig::default(), settings.clone(), [1; 32])?;
//! let mut server = Endpoint::new(EndpointConfig::listening(7), settings.clone(), [2; 32])?;
//! let (here, there): (IpAddr, IpAddr) = ("192.0.2.1".parse()?, "192.0.2.2".parse()?);
//!
//! let now = Instant::ZERO;
//! let id = client.connect(now, Connect::new(vec![here], vec![there], 7, settings))?;
//! let mut opened = client.association(id).expect("it is not released");
//! opened.send(now, SendOptions::on(StreamId(3)), "hello".into())?;
//! while carry(&mut client, &mut server, now) | carry(&mut server, &mut client, now) {}
//!
//! let mut received = Vec::new();
//! while let Some((id, event)) = server.poll_event() {
//!     if event == Event::Readable {
//!         let mut association = server.association(id).expect("it is not released");
//!         received.extend(std::iter::from_fn(|| association.recv(now)));
//!     }
//! }
//! assert_eq!(received.len(), 1);
//! assert_eq!(received.remove(0).payload.into_bytes(), "hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! ARCHITECTURE.md describes the modules and the flow of data through them.

mod association;
mod collections;
pub mod config;
mod context;
mod coverage;
mod endpoint;
mod extensions;
mod fragment;
mod inbound;
mod interface;
mod outbound;
mod paths;
mod receiver;
mod transmission;
pub mod units;

pub use config::{AssociationConfig, ConfigError, EndpointConfig};
pub use endpoint::{AssociationHandle, Endpoint, PreSharedKeys};
pub use interface::addresses::{AddressChange, AddressOutcome};
pub use interface::adjustment::{AdjustError, Adjustment, PacketSize, PathAdjustment};
pub use interface::association_id::AssociationId;
pub use interface::connect::Connect;
pub use interface::datagram::{Datagram, Ecn, Transmit};
pub use interface::error::{
    AddressError, ConnectError, KeyError, NoSuchPath, ReconfigurationError, SendError,
};
pub use interface::event::{CloseReason, Event, Message, Part, Payload, SchedulerFault, SendOptions};
pub use interface::icmp::{IcmpError, IcmpKind};
pub use interface::joiner::Joiner;
pub use interface::moderation::{DriverLoad, Moderation};
pub use interface::protection;
pub use interface::reconfiguration::{Direction, Reconfiguration, ReconfigurationOutcome, Streams};
pub use interface::reliability::{Abandoned, Abandonments, Reliability};
pub use interface::stats::{AssociationStats, Discards, Limit, LimitTimes, PathStats, SendQueueInfo};
pub use interface::undelivered::Undelivered;
pub use tresse_policy::{
    Decision, Instant, Offer, OpenPath, PathId, PathScheduler, PathState, PathView, PolicyKind, Registry,
    ScheduleError, StreamScheduler, congestion, schedule,
};
pub use tresse_wire::{CauseCode, Ppid, Ssn, StreamId, Tsn};
