//! Views for Python schedulers: the core's views under the same names. Times are seconds.

use pyo3::prelude::*;
use tresse_policy::schedule::{self, PathView};

/// Event: a message was queued.
#[pyclass(frozen, get_all, module = "tresse._native")]
pub(crate) struct Queued {
    stream: u16,
    bytes: usize,
    was_idle: bool,
    at: f64,
}

impl From<schedule::Queued> for Queued {
    fn from(queued: schedule::Queued) -> Self {
        Queued {
            stream: queued.stream.0,
            bytes: queued.bytes,
            was_idle: queued.was_idle,
            at: queued.at.as_secs_f64(),
        }
    }
}

/// Event: data of a stream was put into a packet.
#[pyclass(frozen, get_all, module = "tresse._native")]
pub(crate) struct Taken {
    stream: u16,
    bytes: usize,
    message_done: bool,
    turn_over: bool,
    stream_empty: bool,
}

impl Taken {
    /// Converts a withdrawal that emptied a stream, for schedulers without `on_removed`.
    pub(crate) fn withdrawn(removed: schedule::Removed) -> Self {
        Taken {
            stream: removed.stream.0,
            bytes: removed.bytes,
            message_done: true,
            turn_over: true,
            stream_empty: removed.stream_empty,
        }
    }
}

impl From<schedule::Taken> for Taken {
    fn from(taken: schedule::Taken) -> Self {
        Taken {
            stream: taken.stream.0,
            bytes: taken.bytes,
            message_done: taken.message_done,
            turn_over: taken.turn_over,
            stream_empty: taken.stream_empty,
        }
    }
}

/// Event: a message was withdrawn before it was sent.
#[pyclass(frozen, get_all, module = "tresse._native")]
pub(crate) struct Removed {
    stream: u16,
    bytes: usize,
    ahead: usize,
    stream_empty: bool,
}

impl From<schedule::Removed> for Removed {
    fn from(removed: schedule::Removed) -> Self {
        Removed {
            stream: removed.stream.0,
            bytes: removed.bytes,
            ahead: removed.ahead,
            stream_empty: removed.stream_empty,
        }
    }
}

/// Transmission opportunity: new data waits, and these paths could carry it.
#[pyclass(frozen, module = "tresse._native")]
pub(crate) struct Offer {
    paths: Vec<PathView>,
    #[pyo3(get)]
    unsent: usize,
    #[pyo3(get)]
    buffer_limited: bool,
    #[pyo3(get)]
    streams_bound: bool,
    #[pyo3(get)]
    peer_window: usize,
}

impl From<&schedule::Offer<'_>> for Offer {
    fn from(offer: &schedule::Offer<'_>) -> Self {
        Offer {
            paths: offer.paths().to_vec(),
            unsent: offer.unsent,
            buffer_limited: offer.buffer_limited,
            streams_bound: offer.streams_bound,
            peer_window: offer.peer_window,
        }
    }
}

#[pymethods]
impl Offer {
    #[getter]
    fn paths(&self) -> Vec<Path> {
        self.paths.iter().cloned().map(Path).collect()
    }
    fn open(&self) -> Vec<Path> {
        self.paths.iter().filter(|path| path.open).cloned().map(Path).collect()
    }
}

/// A path for which a stream is selected, or that a path scheduler may select.
#[pyclass(frozen, module = "tresse._native")]
pub(crate) struct Path(PathView);

impl From<PathView> for Path {
    fn from(view: PathView) -> Self {
        Path(view)
    }
}

#[pymethods]
impl Path {
    #[getter]
    fn id(&self) -> u8 {
        self.0.id.0
    }
    #[getter]
    fn primary(&self) -> bool {
        self.0.primary
    }
    #[getter]
    fn state(&self) -> &'static str {
        self.0.state.name()
    }
    #[getter]
    fn open(&self) -> bool {
        self.0.open
    }
    #[getter]
    fn recovering(&self) -> bool {
        self.0.recovering
    }
    #[getter]
    fn cwnd(&self) -> usize {
        self.0.cwnd
    }
    #[getter]
    fn ssthresh(&self) -> usize {
        self.0.ssthresh
    }
    #[getter]
    fn flight(&self) -> usize {
        self.0.flight
    }
    #[getter]
    fn room(&self) -> usize {
        self.0.room
    }
    #[getter]
    fn srtt(&self) -> Option<f64> {
        self.0.srtt.map(|srtt| srtt.as_secs_f64())
    }
    #[getter]
    fn rttvar(&self) -> f64 {
        self.0.rttvar.as_secs_f64()
    }
    #[getter]
    fn rtt_range(&self) -> (f64, f64) {
        let (shortest, longest) = self.0.rtt_range;
        (shortest.as_secs_f64(), longest.as_secs_f64())
    }
    #[getter]
    fn rto(&self) -> f64 {
        self.0.rto.as_secs_f64()
    }
    #[getter]
    fn mtu(&self) -> usize {
        self.0.mtu
    }
    #[getter]
    fn rate(&self) -> u64 {
        self.0.rate
    }
    #[getter]
    fn loss(&self) -> f64 {
        self.0.loss
    }
    #[getter]
    fn last_sent(&self) -> f64 {
        self.0.last_sent.as_secs_f64()
    }
}
