//! The stream schedulers of RFC 8260 §3, driven as the core does and in associations: who gets how
//! much, in which packets, and what becomes of an association whose scheduler misbehaves.

mod common;

#[path = "stream_schedulers/examples.rs"]
mod examples;
#[path = "stream_schedulers/faults.rs"]
mod faults;
#[path = "stream_schedulers/interleaved.rs"]
mod interleaved;
#[path = "stream_schedulers/packets.rs"]
mod packets;
#[path = "stream_schedulers/shares.rs"]
mod shares;
#[path = "stream_schedulers/values.rs"]
mod values;
