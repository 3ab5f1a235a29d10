//! Presence of paths: some are added, and some removed, while the association runs (RFC 5061).
//!
//! Owns the rules for these times. The hosts carry out the changes.

use std::time::Duration;

use tresse_proto::AssociationConfig;

use super::PathSpec;
use super::error::ScenarioError;
use super::section::{DURATION, LONGEST_RUN, Section, parse_duration};

/// Virtual times between which a path belongs to the association.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Presence {
    /// Time at which the path joins; `None` for a path that exists from the beginning.
    pub joins: Option<Duration>,
    /// Time at which the path leaves; `None` if it does not leave.
    pub leaves: Option<Duration>,
}

impl Presence {
    /// Returns whether the path exists throughout the run.
    pub(crate) fn is_constant(self) -> bool {
        self == Presence::default()
    }

    /// Returns whether the path exists before `time` and still after it.
    fn spans(self, time: Duration) -> bool {
        self.joins.is_none_or(|joins| joins < time) && self.leaves.is_none_or(|leaves| leaves > time)
    }
}

/// Reads the times of a path.
pub(super) fn read_presence(section: &mut Section<'_>) -> Result<Presence, ScenarioError> {
    let joins = section.read("joins", DURATION, parse_duration)?;
    let leaves = section.read("leaves", DURATION, parse_duration)?;
    if joins.is_some_and(|joins| joins.is_zero() || joins > LONGEST_RUN) {
        let reason =
            "must be above 0 and at most 1000h: leave it out for a path that is there from the beginning";
        return Err(section.inconsistent("joins", reason));
    }
    if leaves.is_some_and(|leaves| leaves <= joins.unwrap_or_default() || leaves > LONGEST_RUN) {
        return Err(section.inconsistent("leaves", "must be later than joins, above 0 and at most 1000h"));
    }
    Ok(Presence { joins, leaves })
}

/// Checks that at any time there is a path, and that the hosts can change addresses if the scenario requires it.
pub(super) fn check_presence(
    top: &Section<'_>,
    paths: &[PathSpec],
    hosts: [&AssociationConfig; 2],
) -> Result<(), ScenarioError> {
    let presences = || paths.iter().map(|path| path.presence);
    let Some(first) = presences().position(|presence| !presence.is_constant()) else { return Ok(()) };
    if presences().all(|presence| presence.joins.is_some()) {
        let reason = "some path has to be there from the beginning: leave joins out of one";
        return Err(top.inconsistent("path[0].joins", reason));
    }
    for (position, presence) in presences().enumerate() {
        if let Some(leaves) = presence.leaves
            && !presences().any(|other| other.spans(leaves))
        {
            let reason = "would leave no path: another one must have joined before, and stay longer";
            return Err(top.inconsistent(&format!("path[{position}].leaves"), reason));
        }
    }
    let can_change = |config: &&AssociationConfig| config.dynamic_addresses && config.authentication;
    if !hosts.iter().all(can_change) {
        let key = if paths[first].presence.joins.is_some() { "joins" } else { "leaves" };
        let reason = "needs dynamic_addresses = true and authentication = true in [transport]";
        return Err(top.inconsistent(&format!("path[{first}].{key}"), reason));
    }
    Ok(())
}
