//! What two endpoints do with each other, one file for each behaviour.

#[path = "../common/mod.rs"]
mod common;

mod handshake;
mod refusals;
mod shutdown;
mod strays;
