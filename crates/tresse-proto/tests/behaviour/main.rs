//! What two endpoints do with each other, one file for each behaviour.

#[path = "../common/mod.rs"]
mod common;

mod failover;
mod handshake;
mod multihoming;
mod refusals;
mod reports;
mod shutdown;
mod strays;
mod windows;
