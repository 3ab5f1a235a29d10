//! Identifier of an association.

use std::fmt;

/// Identifier of an association of one endpoint. It is never reused for another association.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct AssociationId {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

impl fmt::Display for AssociationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.slot, self.generation)
    }
}
