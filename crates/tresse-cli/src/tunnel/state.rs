//! State of a tunnel at one instant, for `tresse tunnel status` and for metrics.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use tresse::Limit;

use super::hub::Hub;

/// The version of the document.
const SCHEMA: u32 = 1;

/// State of a tunnel.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
pub(super) struct State {
    /// The version of this document (docs/schemas).
    pub(super) schema: u32,
    /// `server` or `client`.
    pub(super) role: String,
    pub(super) running_s: f64,
    pub(super) reloads: Reloads,
    pub(super) sessions: Vec<SessionState>,
}

/// Reloads of the configuration file (SIGHUP).
#[derive(Serialize, Deserialize, Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Reloads {
    pub(super) applied: u64,
    /// Those that an error in the configuration prevented.
    pub(super) failed: u64,
}

/// One association.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
pub(super) struct SessionState {
    pub(super) session: u64,
    pub(super) peer: String,
    /// True if the other side is silent.
    pub(super) silent: bool,
    pub(super) encrypted: bool,
    /// Sets of keys so far.
    pub(super) key_generation: u64,
    pub(super) connections: usize,
    pub(super) connections_opened: u64,
    pub(super) connections_refused: u64,
    /// UDP datagrams and packets of a TUN device for which there was no room.
    pub(super) datagrams_dropped: u64,
    /// UDP datagrams and packets of a TUN device that were not sent within their lifetime.
    pub(super) datagrams_given_up: u64,
    pub(super) send_buffer_used: usize,
    pub(super) unsent: usize,
    pub(super) receive_buffer_used: usize,
    pub(super) peer_window: usize,
    pub(super) messages_sent: u64,
    pub(super) messages_received: u64,
    pub(super) duplicates: u64,
    /// Packets and chunks that were discarded, by reason. Reasons that did not occur are left out.
    pub(super) discards: BTreeMap<String, u64>,
    pub(super) paths: Vec<PathStatus>,
}

/// One path.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
pub(super) struct PathStatus {
    pub(super) local: String,
    pub(super) remote: String,
    pub(super) state: String,
    pub(super) mtu: usize,
    pub(super) cwnd: usize,
    pub(super) flight: usize,
    pub(super) srtt_ms: Option<f64>,
    pub(super) packets_sent: u64,
    pub(super) packets_received: u64,
    pub(super) bytes_sent: u64,
    pub(super) bytes_acked: u64,
    pub(super) chunks_resent: u64,
    pub(super) fast_retransmits: u64,
    pub(super) timeouts: u64,
    /// Seconds under each limit.
    pub(super) limited_s: BTreeMap<String, f64>,
}

/// A session, with the fields that its hub does not know.
pub(super) struct SessionView {
    pub(super) session: u64,
    pub(super) peer: String,
    pub(super) silent: bool,
    pub(super) hub: Arc<Hub>,
}

impl State {
    pub(super) fn of(role: &str, began: Instant, sessions: Vec<SessionView>) -> Self {
        State {
            schema: SCHEMA,
            role: role.to_owned(),
            running_s: began.elapsed().as_secs_f64(),
            reloads: Reloads::default(),
            sessions: sessions.iter().map(SessionState::of).collect(),
        }
    }
}

impl SessionState {
    fn of(seen: &SessionView) -> Self {
        let (association, counts) = (seen.hub.association(), seen.hub.counts());
        let stats = association.stats();
        let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let discards = stats.discards.named().into_iter().filter(|(_, count)| *count > 0);
        SessionState {
            session: seen.session,
            peer: seen.peer.clone(),
            silent: seen.silent,
            encrypted: association.protection_stats().is_some(),
            key_generation: association.key_generation(),
            connections: seen.hub.open(),
            connections_opened: count(&counts.opened),
            connections_refused: count(&counts.refused),
            datagrams_dropped: count(&counts.datagrams_dropped),
            datagrams_given_up: stats.abandoned.lifetime.sent + stats.abandoned.lifetime.unsent,
            send_buffer_used: stats.send_buffer_used,
            unsent: stats.unsent,
            receive_buffer_used: stats.receive_buffer_used,
            peer_window: stats.peer_window,
            messages_sent: stats.messages_sent,
            messages_received: stats.messages_received,
            duplicates: stats.duplicates,
            discards: discards.map(|(name, count)| (name.to_owned(), count)).collect(),
            paths: association.path_stats().iter().map(PathStatus::of).collect(),
        }
    }
}

impl PathStatus {
    fn of(path: &tresse::PathStats) -> Self {
        let limited =
            Limit::ALL.map(|limit| (limit.name().to_owned(), path.limited_by.of(limit).as_secs_f64()));
        PathStatus {
            local: path.local.to_string(),
            remote: path.remote.to_string(),
            state: path.state.name().to_owned(),
            mtu: path.mtu,
            cwnd: path.cwnd,
            flight: path.flight,
            srtt_ms: path.srtt.or(path.seen_rtt).map(|srtt| srtt.as_secs_f64() * 1e3),
            packets_sent: path.packets_sent,
            packets_received: path.packets_received,
            bytes_sent: path.bytes_sent,
            bytes_acked: path.bytes_acked,
            chunks_resent: path.chunks_resent,
            fast_retransmits: path.fast_retransmits,
            timeouts: path.timeouts,
            limited_s: limited.into_iter().collect(),
        }
    }
}
