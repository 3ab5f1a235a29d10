//! What two endpoints do with each other, one file for each behaviour.

#[path = "../common/mod.rs"]
mod common;

mod added_streams;
mod addresses;
mod assigned;
mod authentication;
mod blocked_copies;
mod bundling;
mod choices;
mod controllers;
mod copies;
mod determinism;
mod drop_reports;
mod early_data;
mod ecn;
mod encapsulation;
mod failover;
mod handshake;
mod icmp;
mod in_time;
mod interleaving;
mod limits;
mod low_water;
mod mtu;
mod multihoming;
mod parameters;
mod partial;
mod partial_delivery;
mod path_schedulers;
mod potentially_failed;
mod refusals;
mod renumbering;
mod reports;
mod rescheduling;
mod resend_paths;
mod restart;
mod robustness;
mod shutdown;
mod states;
mod strays;
mod stream_classes;
mod stream_resets;
mod timers;
mod windows;
mod zero_checksum;
