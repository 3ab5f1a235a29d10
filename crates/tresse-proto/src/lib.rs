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
pub mod config;
pub mod congestion;
mod cx;
mod datagram;
mod endpoint;
mod error;
mod event;
mod extensions;
mod few;
mod foreign;
mod fragment;
mod icmp;
mod inbound;
mod joiner;
mod names;
mod outbound;
mod path_id;
mod paths;
mod range_set;
mod rare;
mod receiver;
mod reconfiguration;
mod registry;
mod reliability;
pub mod schedule;
mod stats;
mod stream_table;
mod tally;
mod time;
mod transmission;
pub mod units;

pub use addresses::{AddressChange, AddressOutcome};
pub use config::{AssociationConfig, ConfigError, EndpointConfig};
pub use datagram::{Datagram, Ecn, Transmit};
pub use endpoint::{AssociationHandle, Connect, Endpoint};
pub use error::{
    AddressError, ConnectError, KeyError, NoSuchPath, ReconfigurationError, ScheduleError, SendError,
};
pub use event::{CloseReason, Event, Message, Part, Payload, SchedulerFault, SendOptions};
pub use icmp::{IcmpError, IcmpKind};
pub use joiner::Joiner;
pub use names::PolicyKind;
pub use path_id::{AssociationId, PathId};
pub use reconfiguration::{Direction, Reconfiguration, ReconfigurationOutcome, Streams};
pub use registry::Registry;
pub use reliability::{Abandoned, Abandonments, Reliability};
pub use schedule::{Asked, Offer, OpenPath, PathScheduler, PathView, StreamScheduler};
pub use stats::{AssociationStats, Discards, Limit, LimitTimes, PathState, PathStats, SendQueueInfo};
pub use time::Instant;
pub use tresse_wire::{Ppid, Ssn, StreamId, Tsn};
