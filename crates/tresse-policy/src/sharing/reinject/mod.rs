//! Reinjection: the head-of-line chunk is sent again on another path before it counts as lost.
//!
//! Three rules, of which one at a time is in force: [`deadline`] (the default), [`chunk_rescheduling`] (the rule of the
//! GLOBECOM 2010 paper) and [`opportunistic`] (the rule of MPTCP).

pub mod chunk_rescheduling;
pub mod deadline;
pub mod opportunistic;

pub use super::view::HeadOfLine;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::path::PathId;
    use crate::sharing::view::{HeadOfLine, PathSample};

    /// A path with room and this round-trip time.
    pub(super) fn with_srtt(id: u8, millis: u64) -> PathSample {
        PathSample { srtt: Some(Duration::from_millis(millis)), ..unmeasured(id) }
    }

    pub(super) fn unmeasured(id: u8) -> PathSample {
        PathSample { room: 10_000, ..PathSample::new(PathId(id)) }
    }

    pub(super) fn full(path: PathSample) -> PathSample {
        PathSample { room: 0, ..path }
    }

    pub(super) fn head(path: u8, millis: u64) -> HeadOfLine {
        HeadOfLine { index: 7, path: PathId(path), bytes: 1000, age: Duration::from_millis(millis) }
    }
}
