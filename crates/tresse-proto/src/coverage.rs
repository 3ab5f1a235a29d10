//! Coverage counters of mechanisms that leave no trace in packets or statistics.
//!
//! Random simulations check that each mechanism acted at least once.
//!
//! They count with the feature `invariants` only; without it they have no memory and no cost.

/// Something that an association does now and then, and that neither a packet nor a counter shows.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Mechanism {
    /// A chunk left its path because its share of a buffer was full of early arrivals.
    RescheduledForShare,
    /// A chunk left its path before the buffers were full.
    RescheduledInTime,
    /// One did because it was overdue.
    RescheduledOverdue,
    /// One did because the peer's window kept a faster path silent.
    Overtaken,
    /// The window of the slower path was halved for that.
    Penalised,
    /// Data was left to a path whose window was full.
    Assigned,
    /// A path that a full buffer kept from new data carried copies.
    CopiedWhenBlocked,
    /// A message of a latency-critical stream left on another path too.
    CopiedForLatency,
    /// A path's share of a buffer was another one than an equal one.
    SharedByPaths,
    /// A path rested because its share was less than a packet.
    PathRested,
    /// A stream moved to another path (adaptive map).
    StreamMoved,
    /// A path was kept free of queues for latency-critical streams.
    PathCalmed,
    /// A closed window was probed.
    WindowProbed,
    /// Data that had been overtaken was lost because nothing was heard of it in time.
    Overdue,
    /// The end of what was sent was probed.
    TailProbed,
    /// A window was what it was before a cut: what it was made for had been late.
    CutUndone,
    /// A path was suspected to have failed before a timeout.
    PathSuspected,
}

impl Mechanism {
    #[cfg(feature = "invariants")]
    const NAMED: [(Mechanism, &'static str); 17] = [
        (Mechanism::RescheduledForShare, "rescheduled for a share"),
        (Mechanism::RescheduledInTime, "rescheduled in time"),
        (Mechanism::RescheduledOverdue, "rescheduled when overdue"),
        (Mechanism::Overtaken, "overtaken by a faster path"),
        (Mechanism::Penalised, "penalised for a faster path"),
        (Mechanism::Assigned, "assigned to a full path"),
        (Mechanism::CopiedWhenBlocked, "copied when blocked"),
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

/// Mechanisms that were noted.
#[derive(Debug, Default)]
pub(crate) struct Coverage {
    /// Made with the first: what an association at rest takes is tested with this feature too, and allowed this pointer.
    #[cfg(feature = "invariants")]
    counts: Option<Box<[u64; Mechanism::NAMED.len()]>>,
}

impl Coverage {
    /// A mechanism was at work.
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

    /// Every mechanism by its name, and how often it was at work, by this and by `other`.
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
