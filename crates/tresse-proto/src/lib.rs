//! CMT-SCTP without I/O: endpoints, associations, paths and the policies that drive them.
//!
//! The contract for every driver: after each input, poll for packets until there are none, read the events, sleep until
//! the deadline. The simulator, the socket driver and the tests run this loop around an [`Endpoint`].
//!
//! The core has no clock, no threads and no sockets. Time is an argument ([`Instant`]), and every random choice derives
//! from one seed.
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
