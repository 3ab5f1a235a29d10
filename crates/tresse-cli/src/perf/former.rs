//! Reports on earlier associations of a measurement. They were replaced because this host's addresses changed and the peer does not
//! support changes of an association's addresses.

use std::net::IpAddr;
use std::time::Duration;

use serde::Serialize;
use tresse::Association;

use super::message::{MeasurementRequest, Until};
use crate::call::list;
use crate::report::words::size;

/// An association that was replaced, as seen by this side.
#[derive(Serialize)]
pub(super) struct ReplacedAssociation {
    /// Seconds from the beginning of the measurement until it was replaced.
    until_s: f64,
    from: Vec<IpAddr>,
    acknowledged_bytes: u64,
    received_bytes: u64,
}

impl ReplacedAssociation {
    pub(super) fn new(until: Duration, association: &Association, received_bytes: u64) -> Self {
        let paths = association.path_stats();
        let mut from: Vec<_> = paths.iter().map(|path| path.local).collect();
        from.dedup();
        let acknowledged_bytes = paths.iter().map(|path| path.bytes_acked).sum();
        ReplacedAssociation { until_s: until.as_secs_f64(), from, acknowledged_bytes, received_bytes }
    }

    /// Returns the rest of `ask` after the time `passed`. The rest is never empty, because the next association carries the reports.
    pub(super) fn rest_of(&self, ask: &MeasurementRequest, passed: Duration) -> MeasurementRequest {
        let mut rest = ask.clone();
        let passed = passed.as_secs_f64();
        rest.load.omit_seconds = (ask.load.omit_seconds - passed).max(0.0);
        rest.load.until = match ask.load.until {
            Until::Seconds(seconds) => {
                let counted = (passed - ask.load.omit_seconds).max(0.0);
                Until::Seconds((seconds - counted).max(SHORTEST_REST))
            }
            Until::Bytes(bytes) => {
                let moved = [
                    ask.client_sends.then_some(self.acknowledged_bytes),
                    ask.server_sends.then_some(self.received_bytes),
                ];
                let moved = moved.into_iter().flatten().min().unwrap_or(0);
                Until::Bytes(bytes.saturating_sub(moved).max(1))
            }
        };
        rest
    }

    /// Returns the report as a line of text.
    pub(super) fn line(&self) -> String {
        format!(
            "until {:.1} s from {}: {} acknowledged, {} received; what follows is of the association after that",
            self.until_s,
            list(&self.from),
            size(self.acknowledged_bytes),
            size(self.received_bytes)
        )
    }
}

/// Least duration of a rest, in seconds.
const SHORTEST_REST: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::super::message::Load;
    use super::*;

    #[test]
    fn the_rest_is_what_was_neither_moved_nor_waited_for() {
        let ask = |until, server_sends| MeasurementRequest {
            client_sends: true,
            server_sends,
            load: Load {
                until,
                message_bytes: 1000,
                streams: 1,
                unordered: false,
                bits_per_second: None,
                omit_seconds: 2.0,
                per_stream: Vec::new(),
            },
        };
        let former = ReplacedAssociation {
            until_s: 5.0,
            from: Vec::new(),
            acknowledged_bytes: 700,
            received_bytes: 300,
        };
        let rest = |until, server_sends, passed| {
            let rest = former.rest_of(&ask(until, server_sends), Duration::from_secs(passed)).load;
            match rest.until {
                Until::Seconds(seconds) => (rest.omit_seconds, seconds),
                Until::Bytes(bytes) => (rest.omit_seconds, bytes as f64),
            }
        };
        assert_eq!(rest(Until::Seconds(10.0), false, 5), (0.0, 7.0));
        assert_eq!(rest(Until::Seconds(10.0), false, 1), (1.0, 10.0));
        assert_eq!(rest(Until::Seconds(10.0), false, 60).1, SHORTEST_REST);
        assert_eq!(rest(Until::Bytes(1000), false, 5).1, 300.0);
        assert_eq!(rest(Until::Bytes(1000), true, 5).1, 700.0, "the slower direction");
        assert_eq!(rest(Until::Bytes(500), false, 5).1, 1.0);
    }
}
