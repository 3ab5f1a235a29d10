//! Statistics of an endpoint, an association and its paths: counters, windows, and the time for which each limit held.
//! Every packet or chunk that is silently discarded is counted here.

use std::net::IpAddr;
use std::time::Duration;

use tresse_policy::engine::nanos;
use tresse_policy::{PathId, PathState};

use crate::collections::LazyState;
use crate::interface::reliability::Abandonments;

/// Limit that keeps a path, or an association, from sending more data at an instant.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Limit {
    /// No limit: data is being sent, or there is no association yet.
    #[default]
    Nothing,
    /// The path carries its capacity: the network has a standing queue, in which more data would only wait. The difference
    /// between [`PathStats::min_rtt`] and the present round-trip times shows the queue.
    Full,
    /// The congestion window: losses or marks, or competing flows.
    CongestionWindow,
    /// Pacing, which spreads the packets that the congestion window allows over the round trip.
    Pacing,
    /// The burst limit (`max_burst`).
    Burst,
    /// The peer's receive buffer, or this path's share of it.
    ReceiveBuffer,
    /// The send buffer of this side, or this path's share of it.
    SendBuffer,
    /// The path scheduler or the stream map: there is data, but not for this path.
    Scheduler,
    /// The application: there is room, but no data to send.
    Application,
    /// This host: the driver polled late for packets that pacing allowed, or left waiting packets to its next poll.
    Host,
    /// The path cannot be used: it is inactive, or not confirmed yet.
    Path,
}

impl Limit {
    /// Every limit, in the order of `LimitTimes`.
    pub const ALL: [Limit; 11] = [
        Limit::Nothing,
        Limit::Full,
        Limit::CongestionWindow,
        Limit::Pacing,
        Limit::Burst,
        Limit::ReceiveBuffer,
        Limit::SendBuffer,
        Limit::Scheduler,
        Limit::Application,
        Limit::Host,
        Limit::Path,
    ];

    /// Returns the name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Limit::Nothing => "nothing",
            Limit::Full => "full",
            Limit::CongestionWindow => "congestion_window",
            Limit::Pacing => "pacing",
            Limit::Burst => "burst",
            Limit::ReceiveBuffer => "receive_buffer",
            Limit::SendBuffer => "send_buffer",
            Limit::Scheduler => "scheduler",
            Limit::Application => "application",
            Limit::Host => "host",
            Limit::Path => "path_down",
        }
    }
}

/// Time for which each limit held, in nanoseconds: half the size of durations.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct LimitTimes([u64; Limit::ALL.len()]);

impl LazyState for LimitTimes {
    const INITIAL: &Self = &LimitTimes([0; Limit::ALL.len()]);
}

impl LimitTimes {
    /// Returns the time for which `limit` held.
    pub fn of(&self, limit: Limit) -> Duration {
        Duration::from_nanos(self.0[limit as usize])
    }

    /// Adds `time` to `limit`.
    pub fn add(&mut self, limit: Limit, time: Duration) {
        let held = &mut self.0[limit as usize];
        *held = held.saturating_add(nanos(time));
    }

    /// Returns the times since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &LimitTimes) -> LimitTimes {
        let mut times = *self;
        for (time, before) in times.0.iter_mut().zip(earlier.0) {
            *time = time.saturating_sub(before);
        }
        times
    }

    /// Returns the limit that held longest, the first of those that held as long; `None` if no time has passed.
    pub fn longest(&self) -> Option<Limit> {
        let longest = Limit::ALL.into_iter().rev().max_by_key(|limit| self.of(*limit))?;
        (!self.of(longest).is_zero()).then_some(longest)
    }

    /// Returns the share of each limit in the whole time, from 0 to 1; all zero if no time has passed.
    pub fn shares(&self) -> [(Limit, f64); Limit::ALL.len()] {
        let whole = self.0.iter().map(|&held| held as f64).sum::<f64>();
        Limit::ALL.map(|limit| {
            let share = if whole > 0.0 { self.0[limit as usize] as f64 / whole } else { 0.0 };
            (limit, share)
        })
    }
}

/// State and counters of one path. Windows and data in flight or queued are bytes of DATA chunks, headers included (RFC 9260
/// §1.3); counters are of user data unless named otherwise.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct PathStats {
    /// Position of the path.
    pub id: PathId,
    /// Own address.
    pub local: IpAddr,
    /// The peer's address.
    pub remote: IpAddr,
    /// State of the path: whether it can be used.
    pub state: PathState,
    /// True if it is the primary path.
    pub primary: bool,
    /// Congestion window, bytes.
    pub cwnd: usize,
    /// Slow-start threshold, bytes.
    pub ssthresh: usize,
    /// Another path that shares a bottleneck with this one, if the congestion controller has detected one: both then
    /// grow as one flow.
    pub shares_with: Option<PathId>,
    /// Bytes in flight.
    pub flight: usize,
    /// Bytes of duplicates among these: chunks that are in flight on another path, too, or that another path has delivered.
    pub copied: usize,
    /// Bytes sent on this path, or assigned to it and waiting for its window, that are not yet released from the send
    /// buffer.
    pub queued: usize,
    /// Smoothed round-trip time, once measured.
    pub srtt: Option<Duration>,
    /// The shortest round-trip time measured, of packets of any length and with any return path.
    pub min_rtt: Option<Duration>,
    /// Smoothed round-trip time of all samples, including those whose acknowledgement took another path. The setting
    /// `rtt_over_any_path` can exclude these from `srtt`.
    pub seen_rtt: Option<Duration>,
    /// Retransmission timeout with its back-off.
    pub rto: Duration,
    /// Largest IP packet, bytes with all headers.
    pub mtu: usize,
    /// Packets sent, of any kind.
    pub packets_sent: u64,
    /// Bytes of these packets, SCTP headers included.
    pub packet_bytes_sent: u64,
    /// Packets received.
    pub packets_received: u64,
    /// Bytes of these packets, SCTP headers included.
    pub packet_bytes_received: u64,
    /// Data chunks sent for the first time.
    pub chunks_sent: u64,
    /// Bytes of these chunks.
    pub bytes_sent: u64,
    /// Data chunks retransmitted.
    pub chunks_resent: u64,
    /// Bytes newly acknowledged, also after the peer reneged on them. A duplicate counts on its own path when it is acknowledged.
    pub bytes_acked: u64,
    /// Bytes of these that the peer reneged on later: a SACK that was overtaken looks like that, too.
    pub bytes_reneged: u64,
    /// Chunks declared lost by missing reports.
    pub fast_retransmits: u64,
    /// Chunks declared lost because the peer reported their packet as damaged.
    pub drop_reports: u64,
    /// Data chunks sent while they were in flight on another path: duplicates (path scheduler `redundant`, class
    /// `latency` of `stream_classes`).
    pub copies_sent: u64,
    /// T3 expirations.
    pub timeouts: u64,
    /// Number of window reductions that were found to be spurious and undone (RFC 4015).
    pub cuts_undone: u64,
    /// Packets received with a congestion mark (ECN).
    pub marks: u64,
    /// Number of window reductions because of congestion marks that the peer reported (ECNE).
    pub mark_cuts: u64,
    /// Heartbeats sent.
    pub heartbeats_sent: u64,
    /// Heartbeats answered.
    pub heartbeats_acked: u64,
    /// Time for which each limit held.
    pub limited_by: LimitTimes,
}

impl PathStats {
    /// Returns the bytes that this path has delivered: those acknowledged, without those that the peer reneged on.
    pub fn bytes_delivered(&self) -> u64 {
        self.bytes_acked.saturating_sub(self.bytes_reneged)
    }
}

/// State and counters of one association. Windows, data in flight and data in the receive buffer are bytes of DATA chunks,
/// headers included (RFC 9260 §1.3); all else is user data.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct AssociationStats {
    /// Its state (RFC 9260 §4).
    pub state: &'static str,
    /// The peer's receive window as this side sees it.
    pub peer_window: usize,
    /// The receive window (a_rwnd) that this side would advertise now.
    pub own_window: usize,
    /// Bytes in the send buffer: accepted, and not yet acknowledged cumulatively or as non-renegable.
    pub send_buffer_used: usize,
    /// Bytes of these not yet sent.
    pub unsent: usize,
    /// Bytes in flight on all paths.
    pub flight: usize,
    /// Bytes of DATA chunks in the receive buffer: out of order, incomplete, or not yet received by the application.
    pub receive_buffer_used: usize,
    /// Messages accepted from the application.
    pub messages_sent: u64,
    /// Messages received by the application.
    pub messages_received: u64,
    /// Bytes of these messages.
    pub bytes_received: u64,
    /// Data chunks that arrived more than once.
    pub duplicates: u64,
    /// SACK and NR-SACK chunks sent.
    pub sacks_sent: u64,
    /// SACK and NR-SACK chunks received.
    pub sacks_received: u64,
    /// Schedulers and congestion controllers that failed and were replaced (`Event::SchedulerFailed`).
    pub scheduler_failures: u64,
    /// Messages that were abandoned, by policy.
    pub abandoned: Abandonments,
    /// Time for which each limit held.
    pub limited_by: LimitTimes,
    /// Packets and chunks that were discarded.
    pub discards: Discards,
}

/// Declares counters of discarded packets and chunks, with their names.
macro_rules! discards {
    ($($(#[$meta:meta])* $field:ident,)+) => {
        /// Packets and chunks that were discarded, by reason.
        #[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
        pub struct Discards { $($(#[$meta])* pub $field: u64,)+ }

        impl Discards {
            /// Returns every counter with its name.
            pub fn named(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($field), self.$field),)+]
            }

            /// Returns counters that are all zero.
            const fn new() -> Self {
                Discards { $($field: 0,)+ }
            }

            /// Returns the sums of these counters and `others`.
            #[must_use]
            pub fn plus(&self, others: &Discards) -> Discards {
                Discards { $($field: self.$field + others.$field,)+ }
            }

            /// Returns the sum of all counters.
            pub fn total(&self) -> u64 {
                0 $(+ self.$field)+
            }
        }
    };
}

impl LazyState for Discards {
    const INITIAL: &Self = &Discards::new();
}

discards! {
    /// Packets shorter than their headers, or with an impossible length inside.
    malformed_packet,
    /// Packets whose CRC32c is wrong.
    bad_checksum,
    /// Packets whose verification tag is not this association's.
    wrong_tag,
    /// ICMP messages that quote no packet of this endpoint, or that have no effect (RFC 9260 §10).
    icmp,
    /// Packets that belong to no association (RFC 9260 §8.4).
    out_of_the_blue,
    /// INITs that were not alone, or with a tag other than 0.
    bad_init,
    /// State cookies that this endpoint did not sign, or that do not fit their packet.
    bad_cookie,
    /// State cookies past their lifetime, or of an INIT ACK that announced other settings than the endpoint now has.
    stale_cookie,
    /// State cookies, and INIT ACKs of a peer that sets up an association too, whose tags match neither the existing
    /// association nor an earlier one (RFC 9260 §5.2.4 C), or whose association has ended.
    late_cookie,
    /// INITs and cookies refused because the endpoint is full or does not listen.
    refused,
    /// Chunks whose own fields contradict each other.
    malformed_chunk,
    /// Chunks that are not expected in the present state.
    unexpected_chunk,
    /// Chunks of an unknown type.
    unrecognised_chunk,
    /// Chunks that must be authenticated and were not (RFC 4895 §6.3).
    unauthenticated_chunk,
    /// AUTH chunks with a wrong HMAC, with an unknown key or hash, or at a wrong place in the packet.
    bad_auth,
    /// Unprotected packets where only DTLS chunks are accepted; before that, unprotected packets with other chunks
    /// than set-up and key management need.
    unprotected,
    /// DTLS chunks that were not decrypted: forged, replayed, for a restart, or of an epoch without keys.
    unopened,
    /// Requests and answers about addresses that come out of turn (RFC 5061).
    stray_asconf,
    /// DATA beyond the receive window.
    beyond_window,
    /// DATA for a stream that does not exist, and such streams in a FORWARD-TSN.
    no_such_stream,
    /// DATA of messages that their sender abandoned before all of it had arrived (RFC 3758).
    given_up,
    /// SACKs older than one already processed.
    stale_sack,
    /// SACKs with gap blocks that end before they start or name TSNs that were never sent; these blocks are ignored.
    impossible_sack,
    /// Reports of dropped packets (PKTDROP) that this side did not send, that do not come from the peer, or that have
    /// another reason than damage; and chunks named in a report that are not in flight.
    stray_drop_report,
    /// ECNE chunks for a TSN that was never sent.
    stray_ecne,
    /// HEARTBEAT ACKs that match no HEARTBEAT.
    stray_heartbeat_ack,
    /// RE-CONFIG responses that match no request (RFC 6525).
    stray_reconfiguration,
    /// DATA of streams that are being reset, if it is not known whether its SSN is from before or after the reset.
    before_reset,
    /// Answers of this side that were not sent, because too many waited already or no packet could hold them.
    unsent_answer,
}

/// State of the send queue (draft-dreibholz-tsvwg-sctpsocket-sqinfo).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct SendQueueInfo {
    /// Size of the send buffer in bytes.
    pub limit: usize,
    /// Bytes in the send buffer: unsent, or sent and not yet acknowledged cumulatively or as non-renegable.
    pub used: usize,
    /// Bytes not yet sent, on all streams.
    pub unsent: usize,
}
