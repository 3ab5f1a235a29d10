//! One path: its addresses, timers and counters. Its window is in the set of paths, beside those of the other paths.

use std::net::IpAddr;
use std::time::Duration;

use tresse_policy::congestion::Sizes;
use tresse_policy::{Instant, PathId, PathState};
use tresse_wire::COMMON_HEADER_LEN;

use super::estimate::Estimate;
use super::fill::Fill;
use super::health::{PathHealth, Tolerance, Watch};
use super::heartbeat::{Heartbeats, Pace};
use super::limit::LimitClock;
use super::mtu::PathMtu;
use super::pacer::Pacer;
use super::rtt::{RtoRules, Rtt};
use super::tail::TailProbe;
use super::{PathProgress, PathRules};
use crate::collections::{LazyBox, LazyState};
use crate::fragment::DataFormat;
use crate::interface::stats::Limit;

/// Membership of a path in the association.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Member {
    /// The path belongs to the association.
    Joined,
    /// The peer has not confirmed the local address yet: only ASCONF is sent from it (RFC 5061 §5.3 F1).
    Pending,
    /// The peer has been asked to delete the local address: nothing is sent from it, and packets that still arrive are accepted
    /// (RFC 5061 §5.3 F4).
    Leaving,
    /// The path is removed; its slot is free.
    Gone,
}

/// A pair of a local and a remote address over which an association runs.
#[derive(Debug)]
pub(crate) struct Path {
    pub(super) id: PathId,
    /// Position in the order in which the paths joined. The paths in n slots, removed ones included, have the ranks 0 to n - 1.
    pub(super) rank: u8,
    pub(super) local: IpAddr,
    pub(super) remote: IpAddr,
    pub(super) encapsulation_port: Option<u16>,
    /// Size of the largest IP packet, and the search for it.
    pub(super) mtu: PathMtu,
    /// The kind of chunk that carries user data.
    data_format: DataFormat,
    pub(super) member: Member,
    pub(super) health: PathHealth,
    pub(super) rtt: Rtt,
    pub(super) traffic: LazyBox<Traffic>,
    pub(super) heartbeats: Heartbeats,
    /// Settings of this path that replace those of all paths.
    pub(super) own_watch: Option<Box<Watch>>,
    /// Time at which T3 expires.
    pub(super) t3: Option<Instant>,
    /// Time at which the last packet arrived on the path; the origin if none did.
    pub(super) heard: Instant,
    /// True if a window probe on this path has been answered since T3 last expired.
    pub(super) probe_answered: bool,
    pub(super) counters: Counters,
    pub(super) limits: LimitClock,
}

/// State of a path that is allocated with the first data or SACK on it.
#[derive(Debug)]
pub(super) struct Traffic {
    /// Time at which data was last sent; the origin if never.
    pub(super) last_data: Instant,
    /// Time at which the path last sent data or its window last decayed; the window decays one RTO later.
    pub(super) idle_since: Option<Instant>,
    /// Time at which a SACK was last sent on the path.
    pub(super) last_sack: Option<Instant>,
    /// Time at which the window was last halved because the path held up a faster one; the origin if never.
    pub(super) penalised: Instant,
    pub(super) estimate: Estimate,
    pub(super) pacer: Pacer,
    pub(super) fill: Fill,
    /// True if pacing held data back when that was last noted.
    pub(super) paced: bool,
    pub(super) tail: TailProbe,
    /// Time at which chunks that a later one overtook count as lost (RACK).
    pub(super) look_again: Option<Instant>,
    /// Time at which the path last failed to acknowledge in time, after it had done so before.
    pub(super) silent_since: Instant,
    /// The window before its last reduction, as long as that may prove spurious.
    pub(super) before_cut: Option<Sizes>,
}

impl Traffic {
    const NEW: Self = Traffic {
        last_data: Instant::ZERO,
        idle_since: None,
        last_sack: None,
        penalised: Instant::ZERO,
        estimate: Estimate::NEW,
        pacer: Pacer::NEW,
        fill: Fill::NEW,
        paced: false,
        tail: TailProbe::NEW,
        look_again: None,
        silent_since: Instant::ZERO,
        before_cut: None,
    };

    /// Returns the time at which the chunks in flight are to be checked, before T3 expires.
    pub(super) fn next_look(&self) -> Option<Instant> {
        [self.look_again, self.tail.due()].into_iter().flatten().min()
    }
}

impl Default for Traffic {
    fn default() -> Self {
        Self::NEW
    }
}

impl LazyState for Traffic {
    const INITIAL: &Self = &Self::NEW;
}

/// Traffic counters of a path, as in `PathStats`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Counters {
    pub(super) packets_sent: u64,
    pub(super) packet_bytes_sent: u64,
    pub(super) packets_received: u64,
    pub(super) packet_bytes_received: u64,
    pub(super) bytes_acked: u64,
    pub(super) timeouts: u32,
    pub(super) cuts_undone: u32,
    pub(super) heartbeats_sent: u32,
    pub(super) heartbeats_acked: u32,
}

impl Path {
    pub(super) fn new(
        id: PathId,
        (local, remote): (IpAddr, IpAddr),
        encapsulation_port: Option<u16>,
        confirmed: bool,
        (mtu, data_format, rto): (MtuRule, DataFormat, &RtoRules),
        now: Instant,
    ) -> Self {
        let limit = if confirmed { Limit::Nothing } else { Limit::Path };
        let headers = headers_len(remote, encapsulation_port);
        let mtu = match mtu {
            MtuRule::Given(mtu) => PathMtu::given(mtu),
            MtuRule::UpTo(ceiling) => PathMtu::discovered(ceiling, headers, remote.is_ipv6()),
        };
        Path {
            id,
            rank: id.0,
            local,
            remote,
            encapsulation_port,
            mtu,
            data_format,
            member: Member::Joined,
            health: PathHealth::new(confirmed),
            rtt: Rtt::new(rto),
            traffic: LazyBox::default(),
            heartbeats: Heartbeats::new(now),
            own_watch: None,
            t3: None,
            heard: Instant::ZERO,
            probe_answered: false,
            counters: Counters::default(),
            limits: LimitClock::new(now, limit),
        }
    }

    /// Returns the id.
    pub(crate) fn id(&self) -> PathId {
        self.id
    }

    /// Returns the number of errors since the path last answered.
    pub(crate) fn errors(&self) -> u32 {
        self.health.errors()
    }

    /// Returns whether the path is confirmed: the peer has answered on it, or set up the association over it (RFC 9260 §5.4).
    pub(crate) fn is_confirmed(&self) -> bool {
        self.health.confirmed()
    }

    /// Returns the membership of the path in the association.
    pub(crate) fn member(&self) -> Member {
        self.member
    }

    /// Returns the local address.
    pub(crate) fn local(&self) -> IpAddr {
        self.local
    }

    /// Returns the peer's address.
    pub(crate) fn remote(&self) -> IpAddr {
        self.remote
    }

    /// Returns the peer's UDP port, if packets are encapsulated in UDP (RFC 6951).
    pub(crate) fn encapsulation_port(&self) -> Option<u16> {
        self.encapsulation_port
    }

    /// Returns the state of the path, which says whether the path can be used.
    pub(crate) fn state(&self) -> PathState {
        match self.member {
            Member::Joined => self.health.state(),
            Member::Pending => PathState::Unconfirmed,
            Member::Leaving | Member::Gone => PathState::Removed,
        }
    }

    /// Returns the state of the path if it was not reported yet.
    pub(crate) fn unreported(&mut self) -> Option<PathState> {
        let state = self.state();
        self.health.unreported(state)
    }

    /// Returns the smoothed round-trip time, once measured.
    pub(crate) fn srtt(&self) -> Option<Duration> {
        self.rtt.srtt()
    }

    /// Returns the shortest round-trip time measured; zero before the first sample.
    pub(crate) fn shortest_rtt(&self) -> Duration {
        self.rtt.range().0
    }

    /// Returns the shortest round trip of all samples, whatever their return path and the length of their packets: so it is never
    /// above `srtt` or `seen_rtt`.
    pub(super) fn min_rtt(&self) -> Option<Duration> {
        let timed = self.srtt().map(|_| self.shortest_rtt());
        [timed, self.traffic.fill.min_rtt()].into_iter().flatten().min()
    }

    /// Notes that a SACK was sent on the path.
    pub(crate) fn on_sack_sent(&mut self, now: Instant) {
        self.traffic.last_sack = Some(now);
    }

    /// Returns the loss rate, from 0 to 1.
    pub(crate) fn loss(&self) -> f64 {
        self.traffic.estimate.loss()
    }

    /// Returns the retransmission timeout with its back-off.
    pub(crate) fn rto(&self) -> Duration {
        self.rtt.rto()
    }

    /// Bytes of user data acknowledged.
    #[cfg(feature = "invariants")]
    pub(crate) fn bytes_acked(&self) -> u64 {
        self.counters.bytes_acked
    }

    /// Checks that no average of round trips is below the shortest one.
    #[cfg(feature = "invariants")]
    pub(crate) fn check_round_trips(&self) -> Result<(), String> {
        let (shortest, averages) = (self.min_rtt(), [self.srtt(), self.traffic.fill.seen_rtt()]);
        if averages.into_iter().flatten().all(|average| shortest.is_some_and(|shortest| shortest <= average))
        {
            return Ok(());
        }
        Err(format!("path {}: a round trip of {averages:?} on average, {shortest:?} at least", self.id))
    }

    /// Returns whether data sent on the path has ever been acknowledged.
    pub(crate) fn has_delivered(&self) -> bool {
        self.counters.bytes_acked > 0
    }

    /// Applies a SACK to loss detection on the path. Returns the time at which the chunks in flight are to be checked, if that
    /// may be sooner than before.
    pub(super) fn look_after(&mut self, now: Instant, step: &PathProgress) -> Option<Instant> {
        let traffic = &mut *self.traffic;
        let before = step.shortest.is_some_and(|taken| now.since(traffic.silent_since) < taken);
        if before && traffic.tail.is_stale(step.shortest) && step.look_again.is_none() {
            traffic.tail.on_stale(now);
            return traffic.tail.due();
        }
        traffic.tail.on_answered();
        traffic.tail.disarm();
        traffic.look_again = step.look_again;
        match step.look_again {
            None if step.flight_after > 0 => self.watch_tail(now, step.late),
            due => due,
        }
    }

    /// Returns whether the path did not acknowledge in time.
    pub(crate) fn is_silent(&self) -> bool {
        self.traffic.tail.is_silent()
    }

    /// Arms the tail loss probe: chunks are in flight, and none is known to be overtaken. With `late`, the peer may delay its
    /// SACK for a second packet. Returns the time at which the probe is due.
    fn watch_tail(&mut self, now: Instant, late: bool) -> Option<Instant> {
        let round_trip = (self.rtt.srtt(), self.rtt.rttvar());
        self.traffic.tail.arm(now, round_trip, late, self.t3);
        self.traffic.tail.due()
    }

    /// Stops the timers of chunks in flight: there are none any more, or all are lost.
    pub(super) fn forget_flight(&mut self) {
        self.t3 = None;
        if let Some(traffic) = self.traffic.changed() {
            traffic.look_again = None;
            traffic.tail.disarm();
        }
    }

    /// Notes that the packet that leaves now could have left at `since`: the host was the limit in between.
    pub(crate) fn note_held(&mut self, since: Instant) {
        self.limits.note_held(since);
    }

    /// Notes that `limit` holds from `now` on; `paced` is true if pacing holds data back. Returns the limit, which is
    /// [`Limit::Full`] for a path with a standing queue, and the time since which data that pacing released has been overdue.
    pub(crate) fn note_limit(&mut self, now: Instant, limit: Limit, paced: bool) -> (Limit, Option<Instant>) {
        let limit = match limit {
            Limit::CongestionWindow
            | Limit::Pacing
            | Limit::Burst
            | Limit::ReceiveBuffer
            | Limit::SendBuffer
                if self.traffic.fill.is_full() =>
            {
                Limit::Full
            }
            other => other,
        };
        let due = self.traffic.pacer.overdue(now).filter(|_| self.traffic.paced);
        if self.traffic.paced != paced {
            self.traffic.paced = paced;
        }
        self.limits.note_late(due);
        self.limits.note(now, limit);
        (limit, due)
    }

    /// Returns whether pacing holds back at `now` what the window allows.
    #[inline]
    pub(crate) fn is_held(&self, now: Instant) -> bool {
        self.traffic.pacer.holds(now)
    }

    /// Returns whether T3 runs: data is in flight.
    pub(crate) fn t3_runs(&self) -> bool {
        self.t3.is_some()
    }

    /// Returns the size of the largest SCTP packet, common header included: the MTU without the IP and UDP headers.
    pub(crate) fn packet_size(&self) -> usize {
        self.mtu.size().saturating_sub(self.headers_len())
    }

    /// Returns the length of an IP packet with a single chunk of `chunk` bytes.
    pub(super) fn ip_packet_len(&self, chunk: usize) -> usize {
        self.headers_len() + COMMON_HEADER_LEN + chunk
    }

    /// Returns the path's own settings, or those of all paths.
    #[inline]
    pub(super) fn watch<'a>(&'a self, rules: &'a PathRules) -> &'a Watch {
        self.own_watch.as_deref().unwrap_or(&rules.watch)
    }

    /// Returns the limits of the path's error counter.
    #[inline]
    pub(super) fn tolerance(&self, rules: &PathRules) -> Tolerance {
        self.watch(rules).tolerance()
    }

    /// Returns whether a heartbeat awaits its answer, or waits for a packet.
    pub(crate) fn awaits_heartbeat(&self) -> bool {
        self.heartbeats.answer_due().is_some()
    }

    /// Returns the bytes that the IP and UDP headers take before an SCTP packet.
    pub(super) fn headers_len(&self) -> usize {
        headers_len(self.remote, self.encapsulation_port)
    }

    /// Returns the largest user data of a chunk in a packet of its own, in bytes. It is a multiple of 4, so that a full chunk
    /// needs no padding.
    pub(crate) fn payload(&self) -> usize {
        self.packet_size().saturating_sub(COMMON_HEADER_LEN + self.data_format.header_len()) & !3
    }

    /// Returns the size of a full DATA chunk, header included (PMDCS, RFC 9260 §1.3).
    pub(crate) fn pmdcs(&self) -> usize {
        self.data_format.header_len() + self.payload()
    }

    /// Returns the time at which the next heartbeat is due. `wanted` is present if the round-trip time has to be known, and is
    /// the interval of measurements while the path brings data. `wanted_back` is true if a failed path is to be probed more
    /// often.
    pub(super) fn heartbeat_due(
        &self,
        interval: Duration,
        next_probe: Instant,
        wanted: Option<Duration>,
        wanted_back: bool,
    ) -> Option<Instant> {
        if self.member != Member::Joined {
            return None;
        }
        self.heartbeats.due(&Pace {
            interval,
            rto: self.rto(),
            state: self.state(),
            busy: self.t3_runs(),
            wanted_back: wanted_back.then(|| RETURN_PAUSE.max(self.srtt().unwrap_or_default() * 2)),
            last_data: self.traffic.last_data,
            next_probe,
            unmeasured: wanted.is_some() && self.srtt().is_none(),
            measured_every: wanted.filter(|period| !period.is_zero() && self.heartbeats.data_since()),
        })
    }

    /// Returns the time at which the window of the idle path decays: once per RTO (RFC 9260 §7.2.1), but at most once in
    /// `SHORTEST_IDLE`.
    pub(super) fn idle_due(&self) -> Option<Instant> {
        self.traffic.idle_since.map(|since| since + self.rto().max(SHORTEST_IDLE))
    }
}

/// Source of the largest packet of a path.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum MtuRule {
    /// The size in the settings.
    Given(usize),
    /// Path MTU discovery up to this size.
    UpTo(usize),
}

fn headers_len(remote: IpAddr, encapsulation_port: Option<u16>) -> usize {
    let ip = if remote.is_ipv6() { IPV6_HEADER_LEN } else { IPV4_HEADER_LEN };
    let udp = if encapsulation_port.is_some() { UDP_HEADER_LEN } else { 0 };
    ip + udp
}

/// Least interval of heartbeats on a failed path while other paths carry data, so that it carries data within a second of its
/// return.
const RETURN_PAUSE: Duration = Duration::from_millis(500);
/// RTO.Min of RFC 9260 §16. A shorter one in the settings determines how soon losses are detected, not how long a window is
/// valid.
const SHORTEST_IDLE: Duration = Duration::from_secs(1);
const IPV4_HEADER_LEN: usize = 20;
const IPV6_HEADER_LEN: usize = 40;
const UDP_HEADER_LEN: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn path(remote: &str, port: Option<u16>) -> Path {
        let rules = RtoRules {
            initial: Duration::from_secs(1),
            min: Duration::from_secs(1),
            max: Duration::from_secs(60),
        };
        let remote: IpAddr = remote.parse().unwrap();
        Path::new(
            PathId(0),
            (remote, remote),
            port,
            true,
            (MtuRule::Given(1500), DataFormat::Data, &rules),
            Instant::ZERO,
        )
    }

    #[test]
    fn a_packet_is_what_ip_and_udp_leave() {
        let sizes = |path: Path| (path.packet_size(), path.payload());
        assert_eq!(sizes(path("10.0.0.1", None)), (1480, 1452));
        assert_eq!(sizes(path("10.0.0.1", Some(9899))), (1472, 1444));
        assert_eq!(sizes(path("fd00::1", None)), (1460, 1432));
        assert_eq!(sizes(path("fd00::1", Some(9899))), (1452, 1424));
        assert_eq!(Path { mtu: PathMtu::given(1503), ..path("10.0.0.1", None) }.payload(), 1452);
        assert_eq!(Path { data_format: DataFormat::IData, ..path("10.0.0.1", None) }.payload(), 1448);
    }

    #[test]
    fn an_idle_path_is_small() {
        assert!(size_of::<Path>() <= 512, "{}", size_of::<Path>());
    }
}
