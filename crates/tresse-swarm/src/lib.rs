//! Random simulations of two endpoints over a bad network, with rules that are checked after every event.
//!
//! A seed determines a [`Script`]: the complete input of a simulation, as text that can be read, shortened and kept. [`judge`]
//! runs a script in virtual time and returns the first rule that it violated, if any. [`shrink`] removes from a failing script
//! all parts that are not needed for the failure. The same script gives the same packets, byte by byte.
//!
//! The crate uses only the public interface of the core, as every driver does. Consistency between modules is checked
//! inside the core (its feature `invariants`). The library has no clock and no threads; the command has them.

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
