//! Extensions with keys or requests of their own: state machines that the association drives.
//!
//! Each owns the outstanding requests of both sides, the answers, and a timer. The state of other modules is an argument, and
//! actions are return values. Only dynamic addresses change another module directly, the paths.

pub(crate) mod asconf;
pub(crate) mod auth;
pub(crate) mod drop_report;
pub(crate) mod ecn;
pub(crate) mod protection;
pub(crate) mod reconfig;
