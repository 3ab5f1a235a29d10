//! Random simulations: two endpoints, a bad network, capricious applications, and rules that hold after every event.
//!
//! A seed becomes a [`Script`]: everything that is going to happen, written down as text that can be read, cut and kept.
//! [`judge`] plays a script in virtual time and says which rule broke first, if one did; [`shrink`] takes out of a failing
//! script whatever it fails without. The same script gives the same packets, byte by byte.
//!
//! Drives the core by its public interface only, as every driver does; consistency between modules is checked inside the
//! core (its feature `invariants`). Has no clock and no threads: those belong to the command.

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
