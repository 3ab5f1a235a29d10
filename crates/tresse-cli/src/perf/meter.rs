//! Measurements of a client by interval.

use std::cell::OnceCell;
use std::time::{Duration, Instant};

use serde::Serialize;
use tresse::{Association, LimitTimes, PathStats, StreamId};

use super::message::MeasurementRequest;
use super::table::{PathRow, Sample, StreamRow};
use super::tally::Tally;
use crate::report::words::{Shares, limit_words, rate, shares};

/// Meter that reads an association and a tally repeatedly.
pub(super) struct Meter<'a> {
    association: &'a Association,
    tally: &'a Tally,
    /// Directions that are measured: data that this side sends, and receives.
    directions: (bool, bool),
    started: Instant,
    last: Reading,
}

struct Reading {
    at: Instant,
    limited_by: LimitTimes,
    paths: Vec<PathStats>,
    received: u64,
    streams: Vec<StreamReading>,
}

/// Bytes that a stream has carried, and bytes that wait on it.
struct StreamReading {
    id: u16,
    sent: u64,
    received: u64,
    waiting: usize,
}

/// Measurements from one reading to the next. Every key names its unit.
#[derive(Serialize)]
pub(super) struct Interval {
    start_s: f64,
    end_s: f64,
    #[serde(rename = "out", skip_serializing_if = "Option::is_none")]
    outward: Option<Outward>,
    #[serde(rename = "in", skip_serializing_if = "Option::is_none")]
    inward: Option<Inward>,
    /// Contents of the live table.
    #[serde(skip)]
    sample: Sample,
}

/// Data that the peer acknowledged.
#[derive(Serialize)]
struct Outward {
    throughput_mbps: f64,
    paths: Vec<PathInterval>,
    limited_by: Shares,
}

#[derive(Serialize)]
struct PathInterval {
    id: usize,
    state: &'static str,
    throughput_mbps: f64,
    srtt_ms: Option<f64>,
    cwnd_bytes: usize,
    flight_bytes: usize,
    chunks_resent: u64,
}

/// Data received.
#[derive(Serialize)]
struct Inward {
    throughput_mbps: f64,
    /// Rates of packets by path, headers of SCTP included.
    paths_wire_mbps: Vec<f64>,
}

impl<'a> Meter<'a> {
    /// Creates a meter. The times of intervals count from `origin`, which becomes now if it is not set yet.
    pub(super) fn new(
        association: &'a Association,
        tally: &'a Tally,
        (ask, origin): (&MeasurementRequest, &OnceCell<Instant>),
    ) -> Self {
        let last = Reading::take(association, tally);
        let directions = (ask.client_sends, ask.server_sends);
        Meter { association, tally, directions, started: *origin.get_or_init(|| last.at), last }
    }

    /// Reads all counters, and returns the changes since the last reading.
    pub(super) fn read(&mut self) -> Interval {
        let now = Reading::take(self.association, self.tally);
        let last = std::mem::replace(&mut self.last, now);
        let now = &self.last;
        let elapsed = now.at - last.at;
        // The counters of a path that was added since begin at zero.
        let before = |id: usize| last.paths.get(id);
        let outward = self.directions.0.then(|| {
            let paths: Vec<_> =
                now.paths.iter().map(|path| path_interval(path, before(path.id.index()), elapsed)).collect();
            Outward {
                throughput_mbps: paths.iter().map(|path| path.throughput_mbps).sum(),
                paths,
                limited_by: shares(&now.limited_by.since(&last.limited_by)),
            }
        });
        let inward = self.directions.1.then(|| {
            let carried = |path: &PathStats| {
                let before = before(path.id.index()).map_or(0, |path| path.packet_bytes_received);
                mbps(path.packet_bytes_received.saturating_sub(before), elapsed)
            };
            Inward {
                throughput_mbps: mbps(now.received - last.received, elapsed),
                paths_wire_mbps: now.paths.iter().map(carried).collect(),
            }
        });
        let since = |at: Instant| (at - self.started).as_secs_f64();
        let sample = Sample {
            at_s: since(now.at),
            out_mbps: outward.as_ref().map(|outward| outward.throughput_mbps),
            in_mbps: inward.as_ref().map(|inward| inward.throughput_mbps),
            limited_by: outward.as_ref().map(|outward| limit_words(&outward.limited_by)).unwrap_or_default(),
            paths: now.paths.iter().map(|path| path_row(path, before(path.id.index()), elapsed)).collect(),
            streams: now.streams.iter().map(|stream| stream_row(stream, &last.streams, elapsed)).collect(),
        };
        Interval { start_s: since(last.at), end_s: since(now.at), outward, inward, sample }
    }
}

impl Reading {
    fn take(association: &Association, tally: &Tally) -> Self {
        Reading {
            at: Instant::now(),
            limited_by: association.stats().limited_by,
            paths: association.path_stats(),
            received: tally.all_bytes(),
            streams: tally
                .carried()
                .into_iter()
                .map(|(id, carried)| of_stream(association, id, carried))
                .collect(),
        }
    }
}

/// Returns the reading of a stream. Messages that wait do not count as sent.
fn of_stream(association: &Association, id: u16, (handed_over, received): (u64, u64)) -> StreamReading {
    let waiting = association.unsent_on(StreamId(id));
    StreamReading { id, sent: handed_over.saturating_sub(waiting as u64), received, waiting }
}

fn path_row(path: &PathStats, before: Option<&PathStats>, elapsed: Duration) -> PathRow {
    let since = |count: fn(&PathStats) -> u64| count(path).saturating_sub(before.map_or(0, count));
    let PathInterval { id, state, throughput_mbps, srtt_ms, cwnd_bytes, flight_bytes, chunks_resent } =
        path_interval(path, before, elapsed);
    PathRow {
        id,
        ends: format!("{} > {}", path.local, path.remote),
        state,
        out_mbps: throughput_mbps,
        in_mbps: mbps(since(|path| path.packet_bytes_received), elapsed),
        srtt_ms,
        cwnd_bytes,
        flight_bytes,
        chunks_resent,
    }
}

/// Returns the row of a stream. `before` has the readings of all streams at the beginning of the interval.
fn stream_row(stream: &StreamReading, before: &[StreamReading], elapsed: Duration) -> StreamRow {
    let before = before.iter().find(|before| before.id == stream.id);
    let (sent, received) = before.map_or((0, 0), |before| (before.sent, before.received));
    StreamRow {
        id: stream.id,
        out_mbps: mbps(stream.sent.saturating_sub(sent), elapsed),
        in_mbps: mbps(stream.received.saturating_sub(received), elapsed),
        waiting: stream.waiting,
    }
}

fn path_interval(path: &PathStats, before: Option<&PathStats>, elapsed: Duration) -> PathInterval {
    let since = |count: fn(&PathStats) -> u64| count(path).saturating_sub(before.map_or(0, count));
    PathInterval {
        id: path.id.index(),
        state: path.state.name(),
        throughput_mbps: mbps(since(PathStats::bytes_delivered), elapsed),
        srtt_ms: path.srtt.or(path.seen_rtt).map(|srtt| srtt.as_secs_f64() * 1e3),
        cwnd_bytes: path.cwnd,
        flight_bytes: path.flight,
        chunks_resent: since(|path| path.chunks_resent),
    }
}

fn mbps(bytes: u64, elapsed: Duration) -> f64 {
    let seconds = elapsed.as_secs_f64();
    if seconds > 0.0 { bytes as f64 * 8e-6 / seconds } else { 0.0 }
}

impl Interval {
    /// Returns the contents of the live table.
    pub(super) fn sample(&self) -> &Sample {
        &self.sample
    }

    /// Returns one line for each direction.
    pub(super) fn lines(&self) -> Vec<String> {
        let time = format!("{:>7.1} s", self.end_s);
        let outward = self.outward.as_ref().map(|outward| {
            let path = |path: &PathInterval| match (path.state, path.srtt_ms) {
                ("active", Some(srtt)) => format!("{} at {srtt:.1} ms", rate(path.throughput_mbps * 1e6)),
                ("active", None) => rate(path.throughput_mbps * 1e6),
                (state, _) => state.replace('_', " "),
            };
            let paths = outward.paths.iter().map(path).collect::<Vec<_>>().join(" + ");
            let all = rate(outward.throughput_mbps * 1e6);
            format!("{time}  out {all} ({paths}); limited by {}", limit_words(&outward.limited_by))
        });
        let inward = self.inward.as_ref().map(|inward| {
            let paths = inward.paths_wire_mbps.iter().map(|mbps| rate(mbps * 1e6));
            let paths = paths.collect::<Vec<_>>().join(" + ");
            format!("{time}  in {} (packets: {paths})", rate(inward.throughput_mbps * 1e6))
        });
        outward.into_iter().chain(inward).collect()
    }
}
