//! Identifiers of the associations of an endpoint, which may have several drivers.

use std::fmt;

/// An association of one endpoint. An identifier is never reused for another association.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct AssociationId {
    /// The driver that has the association.
    pub(crate) driver: usize,
    /// Its identifier in the core of this driver.
    pub(crate) id: tresse_proto::AssociationId,
}

impl fmt::Display for AssociationId {
    /// Writes the identifier, after the driver's number if that is not 0.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.driver {
            0 => self.id.fmt(f),
            driver => write!(f, "{driver}/{}", self.id),
        }
    }
}
