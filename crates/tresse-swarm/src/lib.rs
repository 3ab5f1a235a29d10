//! Random simulations of two endpoints over a bad network, with rules that are checked after every event.
//!
//! A seed is turned into a [`Script`]: the complete input of a simulation, as text that can be read, shortened and kept.
//! [`judge`] runs a script in virtual time and returns the first rule that it broke, if it broke one. [`shrink`] removes
//! from a failing script whatever it fails without. The same script gives the same packets, byte by byte.
//!
//! The crate drives the core by its public interface only, as every driver does. Consistency between modules is checked
//! inside the core (its feature `invariants`). The library has no clock and no threads: those belong to the command.

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
