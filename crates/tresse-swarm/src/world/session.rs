//! Record of one association at a host: its course as its application sees it, and the limits on its new data.
//!
//! The host records it, and the rules read it.

use tresse_proto::{CloseReason, Instant, Joiner, PathStats};

/// An association as its application sees it.
#[derive(Clone, Debug)]
pub(super) struct Session {
    /// Number of the association, counted over both hosts.
    pub(super) number: u32,
    pub(super) established: bool,
    /// End that the application has requested.
    pub(super) ending: Ending,
    /// Time and reason of the end.
    pub(super) closed: Option<(Instant, CloseReason)>,
    /// Last time at which the host had sent packets before the instant of the end.
    pub(super) last_sent: Option<Instant>,
    pub(super) accepted: u64,
    pub(super) delivered: u64,
    /// Number of responses that the peer still has to send to requests about streams.
    pub(super) unanswered: u32,
    /// State of the paths' T3 at the last update.
    pub(super) timeouts: Vec<Timeouts>,
    /// Joins the parts of messages that are delivered partially.
    pub(super) joiner: Joiner,
}

/// End that an application has requested.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Ending {
    None,
    Shutdown,
    Abort,
}

/// Number of expirations of a path's T3, and the bytes acknowledged on the path at the last update.
#[derive(Copy, Clone, Default, Debug)]
pub(super) struct Timeouts {
    expired: u64,
    acked: u64,
    /// Number of window reductions that were undone.
    undone: u64,
    /// True if since the last expiration nothing was acknowledged and nothing has shown that T3 expired too early (RFC 5682 §3).
    pub(super) silent: bool,
}

impl Timeouts {
    /// Updates the state from the path's statistics.
    pub(super) fn update(&mut self, path: &PathStats) {
        // A count that decreases belongs to another path, which took the slot of a removed one.
        let spurious = path.cuts_undone > self.undone;
        let quiet = path.bytes_acked == self.acked && path.timeouts >= self.expired && !spurious;
        let silent = quiet && (self.silent || path.timeouts > self.expired);
        *self =
            Timeouts { expired: path.timeouts, acked: path.bytes_acked, undone: path.cuts_undone, silent };
    }
}

/// State of the limits on new data.
pub(super) struct Windows {
    pub(super) paths: Vec<PathStats>,
    /// Flags by path: true if nothing was acknowledged since T3 expired.
    pub(super) silent: Vec<bool>,
    /// The peer's receiver window, if the sender compares it before each packet.
    pub(super) peer: Option<usize>,
    /// Size of the largest packet in bytes.
    pub(super) mtu: usize,
}
