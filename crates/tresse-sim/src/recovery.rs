//! Recovery of losses: the time that a TSN takes to reach the receiver, and consecutive expirations of T3.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use tresse_proto::{Instant, PathStats};

/// Cost of losses, over the whole run.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct RecoveryOutcome {
    /// TSNs that arrived.
    pub tsns: u64,
    /// Mean time from the first transmission of a TSN until it, or a retransmission of it, reached the receiver; absent
    /// when none did.
    pub tsn_ms: Option<f64>,
    /// The longest such time.
    pub tsn_max_ms: Option<f64>,
    /// T3 expirations on all paths.
    pub timeouts: u64,
    /// `timeout_rows[n - 1]`: how often T3 of a path expired for the n-th time in a row, that is, without an
    /// acknowledgement of data sent on that path since the last expiration.
    pub timeout_rows: Vec<u64>,
}

/// Counts during the run.
#[derive(Debug, Default)]
pub(crate) struct Recoveries {
    /// TSNs in flight, with the time of their first transmission.
    under_way: BTreeMap<u32, Instant>,
    /// Highest TSN sent.
    sent_to: u32,
    arrived: u64,
    whole: Duration,
    longest: Duration,
    paths: Vec<Row>,
    rows: Vec<u64>,
}

/// Timeouts of one path.
#[derive(Copy, Clone, Debug, Default)]
struct Row {
    timeouts: u64,
    bytes_acked: u64,
    /// Expirations in a row so far.
    length: usize,
}

impl Recoveries {
    pub(crate) fn on_sent(&mut self, now: Instant, tsn: u32) {
        // New TSNs only increase.
        if tsn > self.sent_to {
            self.sent_to = tsn;
            self.under_way.insert(tsn, now);
        }
    }

    pub(crate) fn on_arrived(&mut self, now: Instant, tsn: u32) {
        if let Some(sent) = self.under_way.remove(&tsn) {
            let took = now - sent;
            self.arrived += 1;
            self.whole += took;
            self.longest = self.longest.max(took);
        }
    }

    /// Takes the sender's counters; called after everything that can make a timer expire.
    pub(crate) fn on_state(&mut self, paths: &[PathStats]) {
        for path in paths {
            let position = path.id.index();
            if self.paths.len() <= position {
                self.paths.resize(position + 1, Row::default());
            }
            let row = &mut self.paths[position];
            if path.bytes_acked > row.bytes_acked {
                row.bytes_acked = path.bytes_acked;
                row.length = 0;
            }
            for _ in row.timeouts..path.timeouts {
                row.length += 1;
                self.rows.resize(self.rows.len().max(row.length), 0);
                self.rows[row.length - 1] += 1;
            }
            row.timeouts = path.timeouts;
        }
    }

    pub(crate) fn outcome(&self) -> RecoveryOutcome {
        let millis = |time: Duration| time.as_secs_f64() * 1e3;
        let any = self.arrived > 0;
        RecoveryOutcome {
            tsns: self.arrived,
            tsn_ms: any.then(|| millis(self.whole) / self.arrived as f64),
            tsn_max_ms: any.then(|| millis(self.longest)),
            timeouts: self.paths.iter().map(|path| path.timeouts).sum(),
            timeout_rows: self.rows.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn a_tsn_takes_until_its_first_arrival() {
        let mut recoveries = Recoveries::default();
        recoveries.on_sent(at(0), 1);
        recoveries.on_sent(at(1), 2);
        recoveries.on_sent(at(900), 1);
        recoveries.on_arrived(at(46), 2);
        recoveries.on_arrived(at(945), 1);
        recoveries.on_arrived(at(950), 1);
        let outcome = recoveries.outcome();
        let (mean, longest) = (Some((945.0 + 45.0) / 2.0), Some(945.0));
        assert_eq!((outcome.tsns, outcome.tsn_ms, outcome.tsn_max_ms), (2, mean, longest));
    }

    #[test]
    fn without_an_arrival_there_is_no_time() {
        let mut recoveries = Recoveries::default();
        recoveries.on_sent(at(0), 1);
        let outcome = recoveries.outcome();
        assert_eq!((outcome.tsns, outcome.tsn_ms, outcome.tsn_max_ms), (0, None, None));
    }
}
