//! Coverage counters of mechanisms that leave no trace in packets or statistics.
//!
//! Random simulations check that each mechanism acted at least once. The counters exist with the feature `invariants`
//! only; without it they take no memory and no time.

/// A mechanism of an association that neither a packet nor a statistic shows.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Mechanism {
    /// A chunk was reinjected because early arrivals filled its path's share of a buffer.
    RescheduledForShare,
    /// A chunk was reinjected before the buffers were full.
    RescheduledInTime,
    /// A chunk was reinjected because it was overdue.
    RescheduledOverdue,
    /// A chunk was reinjected on a faster path that the receiver window kept from sending new data.
    Overtaken,
    /// The congestion window of the slower path was halved for the same reason.
    Penalised,
    /// Data was assigned to a path whose window was full.
    Assigned,
    /// A message of a latency-critical stream was duplicated on another path.
    CopiedForLatency,
    /// The paths' shares of a buffer were not equal.
    SharedByPaths,
    /// A path was suspended because its share of a buffer was less than a packet.
    PathRested,
    /// A stream moved to another path (adaptive map).
    StreamMoved,
    /// A path was kept free of queues, for latency-critical streams or because another path needed the buffer.
    PathCalmed,
    /// A closed receiver window was probed.
    WindowProbed,
    /// Chunks sent before an acknowledged one were marked lost because they were not acknowledged in time (RACK).
    Overdue,
    /// A tail loss probe was sent.
    TailProbed,
    /// A reduction of a window was undone because the data was late and not lost.
    CutUndone,
    /// A path was suspected to have failed before a timeout.
    PathSuspected,
}

impl Mechanism {
    #[cfg(feature = "invariants")]
    const NAMED: [(Mechanism, &'static str); 16] = [
        (Mechanism::RescheduledForShare, "rescheduled for a share"),
        (Mechanism::RescheduledInTime, "rescheduled in time"),
        (Mechanism::RescheduledOverdue, "rescheduled when overdue"),
        (Mechanism::Overtaken, "overtaken by a faster path"),
        (Mechanism::Penalised, "penalised for a faster path"),
        (Mechanism::Assigned, "assigned to a full path"),
        (Mechanism::CopiedForLatency, "copied for latency"),
        (Mechanism::SharedByPaths, "buffer shares follow paths"),
        (Mechanism::PathRested, "path rested"),
        (Mechanism::StreamMoved, "stream moved by the map"),
        (Mechanism::PathCalmed, "path kept calm"),
        (Mechanism::WindowProbed, "closed window probed"),
        (Mechanism::Overdue, "lost when overdue"),
        (Mechanism::TailProbed, "tail probed"),
        (Mechanism::CutUndone, "cut undone"),
        (Mechanism::PathSuspected, "path suspected"),
    ];
}

/// Counters of the mechanisms that acted.
#[derive(Debug, Default)]
pub(crate) struct Coverage {
    /// Allocated with the first count: the tests of the size of an idle association run with this feature too, and
    /// allow one pointer.
    #[cfg(feature = "invariants")]
    counts: Option<Box<[u64; Mechanism::NAMED.len()]>>,
}

impl Coverage {
    /// Counts one use of a mechanism.
    #[inline]
    #[cfg_attr(
        not(feature = "invariants"),
        expect(clippy::unused_self, reason = "counts in simulations only")
    )]
    pub(crate) fn note(&mut self, mechanism: Mechanism) {
        #[cfg(feature = "invariants")]
        {
            self.counts.get_or_insert_default()[mechanism as usize] += 1;
        }
        #[cfg(not(feature = "invariants"))]
        let _ = mechanism;
    }

    /// Returns every mechanism by name, and how often `self` and `other` counted it together.
    #[cfg(feature = "invariants")]
    pub(crate) fn named_with(&self, other: Option<&Coverage>) -> Vec<(&'static str, u64)> {
        let count = |mechanism: Mechanism| {
            let of = |coverage: &Coverage| {
                coverage.counts.as_deref().map_or(0, |counts| counts[mechanism as usize])
            };
            of(self) + other.map_or(0, of)
        };
        Mechanism::NAMED.into_iter().map(|(mechanism, name)| (name, count(mechanism))).collect()
    }
}
