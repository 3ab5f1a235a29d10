//! Identifier and state of a path.

use std::fmt;

/// Position of a path in its association. It does not change as long as the path exists; a later path may take the
/// position of a removed one.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, Default)]
pub struct PathId(pub u8);

impl PathId {
    /// The position as an index into tables by path.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Returns the value of `path` in a list by path. A list that is too short is extended with default values.
pub fn path_entry<T: Default>(by_path: &mut Vec<T>, path: PathId) -> &mut T {
    if by_path.len() <= path.index() {
        by_path.resize_with(path.index() + 1, T::default);
    }
    &mut by_path[path.index()]
}

impl fmt::Display for PathId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Usability of a path (RFC 9260 §8, RFC 7829).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum PathState {
    /// Not yet confirmed by a HEARTBEAT ACK (RFC 9260 §5.4).
    Unconfirmed,
    /// In use.
    Active,
    /// Timed out lately: probed by heartbeats, and used only if no path is active (RFC 7829).
    PotentiallyFailed,
    /// Timed out more often than Path.Max.Retrans: probed by heartbeats only.
    Inactive,
    /// One of its addresses was removed from the association (RFC 5061); another path may take its position.
    Removed,
}

impl PathState {
    /// Name of the state in reports.
    pub const fn name(self) -> &'static str {
        match self {
            PathState::Unconfirmed => "unconfirmed",
            PathState::Active => "active",
            PathState::PotentiallyFailed => "potentially_failed",
            PathState::Inactive => "inactive",
            PathState::Removed => "removed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_by_path_grows_as_far_as_it_is_asked_and_no_further() {
        let mut by_path = vec![7];
        *path_entry(&mut by_path, PathId(2)) += 1;
        *path_entry(&mut by_path, PathId(0)) += 1;
        assert_eq!(by_path, [8, 0, 1]);
    }
}
