//! Types that applications and drivers exchange with an endpoint: commands, errors, events, packets, statistics.

pub(crate) mod addresses;
pub(crate) mod adjustment;
pub(crate) mod association_id;
pub(crate) mod connect;
pub(crate) mod datagram;
pub(crate) mod error;
pub(crate) mod event;
pub(crate) mod icmp;
pub(crate) mod joiner;
pub(crate) mod moderation;
pub mod protection;
pub(crate) mod reconfiguration;
pub(crate) mod reliability;
pub(crate) mod stats;
pub(crate) mod undelivered;
