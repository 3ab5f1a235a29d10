//! CMT-SCTP without I/O: endpoints, associations, paths and the policies that drive them.
//!
//! The contract for every driver, in one sentence: after anything happens, poll for packets until
//! there are none, read the events, sleep until the deadline. The simulator, the socket driver and
//! the tests are that same loop around an [`Endpoint`].
//!
//! The core has no clock, no threads, no sockets and no ambient randomness: time is an argument
//! ([`Instant`]), and one seed feeds every random choice.
//!
//! ARCHITECTURE.md has the map of the rooms and the walks of data through them.

mod addresses;
mod association;
mod association_id;
pub mod config;
mod cx;
mod datagram;
mod endpoint;
mod error;
mod event;
mod extensions;
mod few;
mod fragment;
mod icmp;
mod inbound;
mod joiner;
mod outbound;
mod paths;
mod range_set;
mod rare;
mod receiver;
mod reconfiguration;
mod reliability;
mod stats;
mod tally;
mod transmission;
pub mod units;

pub use addresses::{AddressChange, AddressOutcome};
pub use association_id::AssociationId;
pub use config::{AssociationConfig, ConfigError, EndpointConfig};
pub use datagram::{Datagram, Ecn, Transmit};
pub use endpoint::{AssociationHandle, Connect, Endpoint};
pub use error::{AddressError, ConnectError, KeyError, NoSuchPath, ReconfigurationError, SendError};
pub use event::{CloseReason, Event, Message, Part, Payload, SchedulerFault, SendOptions};
pub use icmp::{IcmpError, IcmpKind};
pub use joiner::Joiner;
pub use reconfiguration::{Direction, Reconfiguration, ReconfigurationOutcome, Streams};
pub use reliability::{Abandoned, Abandonments, Reliability};
pub use stats::{AssociationStats, Discards, Limit, LimitTimes, PathStats, SendQueueInfo};
pub use tresse_policy::{
    Asked, Instant, Offer, OpenPath, PathId, PathScheduler, PathState, PathView, PolicyKind, Registry,
    ScheduleError, StreamScheduler, congestion, schedule,
};
pub use tresse_wire::{Ppid, Ssn, StreamId, Tsn};
