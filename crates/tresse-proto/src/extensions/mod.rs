//! Extensions with keys or requests of their own: state machines that the association drives.
//!
//! Each owns which request of either side is under way, what was answered, and its timer. None of them
//! touches a room, but for dynamic addresses, which change the paths: facts come in as arguments, and what is to be done
//! goes out as values.

pub(crate) mod asconf;
pub(crate) mod auth;
pub(crate) mod drop_report;
pub(crate) mod ecn;
pub(crate) mod protection;
pub(crate) mod reconfig;
