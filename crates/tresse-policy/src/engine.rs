//! The core's side: what the protocol core asks of this crate, and no policy needs.
//!
//! It is here, and public, because the core is a crate of its own. Applications and policies use the rest of the crate;
//! this module may change with the core at any time.

pub use crate::congestion::control::CongestionControl;
pub use crate::congestion::window::{PathAck, Window};
pub use crate::names::NameInUse;
pub use crate::registry::{NamesInUse, PolicyName};
pub use crate::schedule::factories::FALLBACK;
pub use crate::schedule::path::{fallback as fallback_path_scheduler, most_assigned};
pub use crate::schedule::reschedule::HeadOfLine;
pub use crate::time::{earlier, earliest, nanos};

/// The path of a SACK.
pub mod ack_path {
    pub use crate::schedule::ack_path::{DataSource, choose};
}

/// Duplicates of chunks in flight while a buffer keeps new data back.
pub mod blocked_copies {
    pub use crate::schedule::blocked_copies::{MOST_PACKETS, Moment, is_crowded, moment, pays};
}

/// Deadline-based reinjection of the head-of-line chunk.
pub mod in_time {
    pub use crate::schedule::in_time::{Outlook, Repeat, choose, is_left_alone, next_turn, overdue_after};
}

/// Opportunistic retransmission as MPTCP has it.
pub mod opportunistic {
    pub use crate::schedule::opportunistic::choose;
}

/// Chunk rescheduling.
pub mod reschedule {
    pub use crate::schedule::reschedule::choose;
}

/// The path of a retransmission.
pub mod resend_path {
    pub use crate::schedule::resend_path::{choose, moves_on};
}

/// Allocation of a split buffer to paths.
pub mod shares {
    pub use crate::schedule::shares::{Claim, allot, most_needed, shortest_hold, split};
}
