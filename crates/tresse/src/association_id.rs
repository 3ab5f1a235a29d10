//! Identifiers of the associations of an endpoint, which may have several drivers.

use std::fmt;

/// An association of one endpoint. An identifier is never reused for another association.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct AssociationId {
    /// The driver that has it.
    pub(crate) driver: usize,
    /// Its identifier there.
    pub(crate) id: tresse_proto::AssociationId,
}

impl fmt::Display for AssociationId {
    /// The identifier, after the driver's number where that is not the first.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.driver {
            0 => self.id.fmt(f),
            driver => write!(f, "{driver}/{}", self.id),
        }
    }
}
