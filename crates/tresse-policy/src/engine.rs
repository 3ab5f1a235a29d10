//! Interface between this crate and the protocol core. Policies do not need it.
//!
//! It is here, and public, because the core is a crate of its own. Applications and policies use the rest of the crate;
//! this module may change with the core at any time.

pub use crate::congestion::control::CongestionControl;
pub use crate::congestion::window::{PathAck, Window};
pub use crate::names::NameInUse;
pub use crate::path::path_entry;
pub use crate::registry::{NamesInUse, PolicyName};
pub use crate::schedule::factories::FALLBACK;
pub use crate::schedule::path::{fallback as fallback_path_scheduler, most_assigned};
pub use crate::time::{earlier, earliest, nanos};

/// The path of a SACK.
pub mod ack_path {
    pub use crate::schedule::ack_path::{DataSource, choose};
}

/// The path of a retransmission.
pub mod resend_path {
    pub use crate::schedule::resend_path::{choose, moves_on};
}
