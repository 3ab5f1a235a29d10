//! A deterministic network simulator around the tresse endpoint.
//!
//! It has virtual time in whole nanoseconds, one event queue and one seed. Two runs of the same [`Scenario`] with the
//! same seed send the same packets at the same times, on every machine: there is no clock, no thread and no
//! hash-ordered container, and every entity has a random generator that is derived from the seed and the entity's name.
//! The simulator uses only the public interface of `tresse-proto`, in the loop that every driver runs.
//!
//! The layers; a file uses only files on lines above its own, or in its own folder, and no files use each other in a circle:
//!
//! ```text
//!  1  error  ip  pcapng  processor     errors; headers; capture files; processing time of packets
//!     queue  recovery  route  seed     events; repair of losses; routes; random numbers
//!     records  trace                   keys and ciphers of hosts; traces of runs
//!  2  link  traffic                    links; applications and the ledger of their messages
//!  3  packet  trace_hash               a packet on its way; the hash of all packets
//!     tcp without tcp/host             TCP for cross traffic
//!  4  scenario                         runs as data
//!  5  topology                         nodes, links and routes of a scenario
//!  6  pcap  watch                      observers of packets
//!  7  network                          links, routes, packets on their way
//!  8  host  tcp/host                   endpoints and TCP, driven
//!  9  invariant  record                rules after every event; samples of the state
//! 10  world  outcome                   the loop over events; results
//! 11  cross  measure                   hosts of cross traffic; measurement
//! 12  setup  emulation                 worlds of scenarios; their networks without endpoints
//! 13  run                              runs of scenarios
//! ```
//!
//! A run of a scenario with one path, which measures five seconds of virtual time after slow start:
//!
//! ```
//! use tresse_sim::{RunOptions, Scenario, run};
//!
//! let text = r#"
//!     settle = "3s"
//!     measure = "5s"
//!     [[path]]
//!     rate = "10Mbit/s"
//!     delay = "10ms"
//! "#;
//! let mut scenario = Scenario::from_toml(text, "example")?;
//! scenario.set("path.0.delay", "20ms")?;
//! assert!(scenario.set("path.0.dealy", "20ms").unwrap_err().to_string().contains("did you mean \"delay\"?"));
//!
//! let outcome = run(&scenario, RunOptions::default())?;
//! assert!(outcome.throughput_mbps > 9.0 && outcome.throughput_mbps < 10.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cross;
mod emulation;
mod error;
mod host;
mod invariant;
pub mod ip;
pub mod link;
mod measure;
mod network;
mod outcome;
mod packet;
mod pcap;
pub mod pcapng;
mod processor;
pub mod queue;
mod record;
pub mod records;
mod recovery;
pub mod route;
mod run;
mod scenario;
pub mod seed;
mod setup;
mod tcp;
pub mod topology;
mod trace;
mod trace_hash;
pub mod traffic;
mod watch;
mod world;

pub use emulation::{Delivery, Emulation, End};
pub use error::RunError;
pub use outcome::{
    AssociationOutcome, CrossOutcome, Delay, Discarded, LimitedBy, Outcome, PathOutcome, Processors,
    RunFacts, SCHEMA, Shares, StreamOutcome,
};
pub use record::{PathSeries, Series};
pub use recovery::RecoveryOutcome;
pub use run::{RunOptions, run};
pub use scenario::{IdleSetting, PathSpec, Presence, Resolved, Scenario, ScenarioError, Traffic};
pub use tcp::{CrossLoad, CrossTraffic, TcpSpec, WebSpec};
pub use trace::{DataSeen, Trace};
pub use traffic::Sporadic;
pub use tresse_proto::Instant;
pub use watch::{reports_in, user_data_in};
