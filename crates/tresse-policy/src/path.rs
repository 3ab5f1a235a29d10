//! Identifier and state of a path.

use std::fmt;

/// A path of one association, by its position: stable for the association's life.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, Default)]
pub struct PathId(pub u8);

impl PathId {
    /// As an index into per-path tables.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for PathId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Usability of a path (RFC 9260 §8, RFC 7829).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum PathState {
    /// Not yet shown to lead to the peer (RFC 9260 §5.4).
    Unconfirmed,
    /// In use.
    Active,
    /// Timed out lately: probed, and used only when no other path is better (RFC 7829).
    PotentiallyFailed,
    /// Timed out more often than Path.Max.Retrans; probed only.
    Inactive,
    /// One of its addresses belongs to the association no longer (RFC 5061); another path may take its place.
    Removed,
}

impl PathState {
    /// The name that reports use.
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
