//! Traces of runs, one JSON object in a line. The first line names the run; the key `e` of the others is the kind of event.
//!
//! | `e` | when | keys |
//! | --- | --- | --- |
//! | `sent` | user data left the sender | `path`, `tsn`, `bytes`, `again` (sent before), `dropped` (by the link, at once) |
//! | `arrived` | user data reached the receiver | `path`, `tsn`, `again` (arrived before) |
//! | `sack` | a SACK or NR-SACK reached the sender | `path`, `tsn` (cumulative), `window` (bytes) |
//! | `state` | the sender's state changed | `peer_window`, `send_buffer`, and by path `cwnd`, `ssthresh`, `flight` (all bytes), `limit`, `timeouts` |
//!
//! `t` is virtual time in seconds; TSNs count from 1.

use std::collections::BTreeSet;
use std::io::Write;

use serde::Serialize;
use tresse_proto::{AssociationStats, Instant, Limit, LimitTimes, PathStats};

/// User data in a packet.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct DataSeen {
    /// The path that carries it.
    pub path: usize,
    /// The TSN, counted from 1.
    pub tsn: u32,
    /// Length in bytes.
    pub bytes: usize,
}

/// A trace being written to `W`.
pub struct Trace<W> {
    output: W,
    /// TSNs that were sent, and TSNs that arrived.
    sent: BTreeSet<u32>,
    arrived: BTreeSet<u32>,
    state: Option<State>,
    /// Times of each path at the last call, and the limit that it told.
    limits: Vec<(LimitTimes, Limit)>,
    failed: Option<std::io::Error>,
}

impl<W> std::fmt::Debug for Trace<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trace").finish_non_exhaustive()
    }
}

#[derive(Serialize)]
struct Head<'a> {
    tresse_trace: u32,
    name: &'a str,
    seed: u64,
    paths: usize,
}

#[derive(Serialize)]
struct Line<T> {
    t: f64,
    e: &'static str,
    #[serde(flatten)]
    what: T,
}

#[derive(Serialize)]
struct SentLine {
    path: usize,
    tsn: u32,
    bytes: usize,
    again: bool,
    dropped: bool,
}

#[derive(Serialize)]
struct ArrivedLine {
    path: usize,
    tsn: u32,
    again: bool,
}

#[derive(Serialize)]
struct ReportLine {
    path: usize,
    tsn: u32,
    window: u32,
}

#[derive(Clone, PartialEq, Serialize)]
struct State {
    peer_window: usize,
    send_buffer: usize,
    cwnd: Vec<usize>,
    ssthresh: Vec<usize>,
    flight: Vec<usize>,
    limit: Vec<&'static str>,
    timeouts: Vec<u64>,
}

impl<W: Write> Trace<W> {
    /// Starts a trace of the run `name`.
    pub fn new(output: W, name: &str, seed: u64, paths: usize) -> Self {
        let mut trace = Trace {
            output,
            sent: BTreeSet::new(),
            arrived: BTreeSet::new(),
            state: None,
            limits: vec![(LimitTimes::default(), Limit::default()); paths],
            failed: None,
        };
        trace.write(&Head { tresse_trace: VERSION, name, seed, paths });
        trace
    }

    /// User data left the sender; `dropped` is true if the link dropped it at once.
    pub fn on_sent(&mut self, now: Instant, data: DataSeen, dropped: bool) {
        let DataSeen { path, tsn, bytes } = data;
        let again = !self.sent.insert(tsn);
        self.line(now, "sent", SentLine { path, tsn, bytes, again, dropped });
    }

    /// User data reached the receiver.
    pub fn on_arrived(&mut self, now: Instant, data: DataSeen) {
        let DataSeen { path, tsn, .. } = data;
        let again = !self.arrived.insert(tsn);
        self.line(now, "arrived", ArrivedLine { path, tsn, again });
    }

    /// A SACK or NR-SACK reached the sender, with this cumulative TSN, counted from 1, and this window in bytes.
    pub fn on_report(&mut self, now: Instant, path: usize, tsn: u32, window: u32) {
        self.line(now, "sack", ReportLine { path, tsn, window });
    }

    /// Writes the state of the sender if it has changed since it was last written.
    pub fn on_state(&mut self, now: Instant, association: &AssociationStats, paths: &[PathStats]) {
        let state = State {
            peer_window: association.peer_window,
            send_buffer: association.send_buffer_used,
            cwnd: self.by_position(paths, |path| path.cwnd),
            ssthresh: self.by_position(paths, |path| path.ssthresh),
            flight: self.by_position(paths, |path| path.flight),
            limit: self.limits_of(paths),
            timeouts: self.by_position(paths, |path| path.timeouts),
        };
        if self.state.as_ref() != Some(&state) {
            self.line(now, "state", state.clone());
            self.state = Some(state);
        }
    }

    /// Returns the reason for which the trace stopped, if it did.
    pub fn take_failure(&mut self) -> Option<std::io::Error> {
        self.failed.take()
    }

    /// Flushes the output.
    ///
    /// # Errors
    /// Error of the output.
    pub fn flush(&mut self) -> std::io::Result<()> {
        self.output.flush()
    }

    /// Returns a number of each path, 0 for paths that have not been added.
    fn by_position<T: Default>(&self, paths: &[PathStats], number: fn(&PathStats) -> T) -> Vec<T> {
        let of = |position| paths.iter().find(|path| path.id.index() == position).map(number);
        (0..self.limits.len()).map(|position| of(position).unwrap_or_default()).collect()
    }

    /// Returns the limit of each path that held longest since the last call.
    fn limits_of(&mut self, paths: &[PathStats]) -> Vec<&'static str> {
        let most = |(position, (before, last)): (usize, &mut (LimitTimes, Limit))| {
            let path = paths.iter().find(|path| path.id.index() == position);
            *last = path.map_or(Limit::Path, |path| {
                let since = path.limited_by.since(before);
                *before = path.limited_by;
                // Of several events at one instant, the first tells of the time before.
                since.longest().unwrap_or(*last)
            });
            last.name()
        };
        self.limits.iter_mut().enumerate().map(most).collect()
    }

    fn line(&mut self, now: Instant, e: &'static str, what: impl Serialize) {
        self.write(&Line { t: now.as_secs_f64(), e, what });
    }

    /// Writes a line. After the first failure, which is kept, nothing is written.
    fn write(&mut self, line: &impl Serialize) {
        if self.failed.is_some() {
            return;
        }
        let written = serde_json::to_writer(&mut self.output, line)
            .map_err(std::io::Error::from)
            .and_then(|()| self.output.write_all(b"\n"));
        self.failed = written.err();
    }
}

/// Version of the format.
const VERSION: u32 = 1;
