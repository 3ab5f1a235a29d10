//! Random simulations of two endpoints over a bad network, with rules that are checked after every event.
//!
//! A seed determines a [`Script`]: the complete input of a simulation, as text that can be read, shortened and kept. [`judge`]
//! runs a script in virtual time and returns the first rule that it violated, if any. [`shrink`] removes from a failing script
//! all parts that are not needed for the failure. The same script gives the same packets, byte by byte.
//!
//! The crate uses only the public interface of the core, as every driver does. Consistency between modules is checked
//! inside the core (its feature `invariants`). The library has no clock and no threads; the command has them.
//!
//! The layers; a file uses only files on lines above its own, and no files use each other in a circle:
//!
//! ```text
//! 1  script   breach                   scripts as values and as text; a violated rule
//! 2  draw                              random scripts
//!    world/census  forge  ledger       counts of mechanisms; forged packets; messages sent and delivered
//!    world/session  turncoat  wire     an association as the rules see it; policies that fail; links
//! 3  world/log                         a line for every event
//! 4  world/station                     a host with its application
//! 5  world/rules                       the rules, of hosts and sessions
//! 6  world                             the run of a script
//! 7  shrink                            the search for the smallest script that fails
//! ```

mod breach;
mod draw;
mod script;
mod shrink;
mod world;

pub use breach::Breach;
pub use draw::draw;
pub use script::{Act, Deed, Host, HostPlan, PathPlan, Script, ScriptError};
pub use shrink::{Shrunk, shrink};
pub use world::{Census, Summary, Trial, attempt, census, judge, trace};
