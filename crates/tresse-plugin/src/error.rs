//! Errors of shared objects that cannot be used, each in one line.

use std::path::PathBuf;

use crate::abi::{ABI, NAME_SIZE};

/// Error of a shared object that cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}: {fault}", .path.display())]
#[non_exhaustive]
pub struct LoadError {
    /// File of the object.
    pub path: PathBuf,
    /// The fault of the object.
    pub fault: Fault,
}

/// Fault of a shared object.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The system cannot load the object.
    #[error("it cannot be loaded: {0}")]
    Unloadable(String),
    /// Code from an earlier file of this path is loaded, and would be used instead.
    #[error(
        "older code of this path is still in use: give the new file another name, or remove the older policy first"
    )]
    Replaced,
    /// The object exports no table.
    #[error(
        "it exports no \"tresse_scheduler\", \"tresse_path_scheduler\" or \"tresse_congestion_controller\": a table as \
         in include/tresse_scheduler.h is expected"
    )]
    NoTable,
    /// The object has tables of more than one kind.
    #[error(
        "it exports more than one of \"tresse_scheduler\", \"tresse_path_scheduler\" and \
         \"tresse_congestion_controller\": one is expected"
    )]
    TwoTables,
    /// The table is for another version of the interface.
    #[error("its table is for version {0} of the interface, and this program speaks {ABI}: build it again")]
    Version(u32),
    /// The table has another size.
    #[error("its table has {found} bytes and not {expected}: build it again with this program's header")]
    Size {
        /// Size in the table, in bytes.
        found: u32,
        /// Size that this program expects, in bytes.
        expected: usize,
    },
    /// The name is not valid.
    #[error(
        "its name is not one: a to z, digits and underscores are accepted, at most {} of them and a zero",
        NAME_SIZE - 1
    )]
    Name,
    /// The table has unknown flags.
    #[error("its flags are {0:#x}, and TRESSE_ASSIGNS and TRESSE_COPIES are all that there are")]
    Flags(u32),
    /// A required hook is missing.
    #[error("its table has no \"{0}\"")]
    Missing(&'static str),
}
