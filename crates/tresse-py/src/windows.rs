//! Views for Python controllers: the core's views under the same names. Times are seconds, sizes bytes of
//! DATA chunks, headers included.

use pyo3::prelude::*;
use tresse_policy::congestion::{self, PathWindow};

/// The congestion window of a path.
#[pyclass(frozen, get_all, module = "tresse._native")]
pub(crate) struct Window {
    path: u8,
    cwnd: usize,
    ssthresh: usize,
    packet: usize,
    srtt: Option<f64>,
    min_rtt: Option<f64>,
    usable: bool,
    recovering: bool,
}

impl From<&PathWindow> for Window {
    fn from(window: &PathWindow) -> Self {
        Window {
            path: window.path.0,
            cwnd: window.cwnd,
            ssthresh: window.ssthresh,
            packet: window.packet,
            srtt: window.srtt.map(|srtt| srtt.as_secs_f64()),
            min_rtt: window.min_rtt.map(|rtt| rtt.as_secs_f64()),
            usable: window.usable,
            recovering: window.recovering,
        }
    }
}

/// Time of an event on one path, and the windows of all paths at that time.
#[pyclass(frozen, module = "tresse._native")]
pub(crate) struct Situation {
    #[pyo3(get)]
    now: f64,
    #[pyo3(get)]
    path: u8,
    window: PathWindow,
    windows: Vec<PathWindow>,
}

#[pymethods]
impl Situation {
    #[getter]
    fn window(&self) -> Window {
        Window::from(&self.window)
    }
    #[getter]
    fn windows(&self) -> Vec<Window> {
        self.windows.iter().map(Window::from).collect()
    }
}

impl From<&congestion::Situation<'_>> for Situation {
    fn from(situation: &congestion::Situation<'_>) -> Self {
        Situation {
            now: situation.now.as_secs_f64(),
            path: situation.path.0,
            window: *situation.window(),
            windows: situation.windows.to_vec(),
        }
    }
}

/// Report of a SACK for one path.
#[pyclass(frozen, get_all, module = "tresse._native")]
pub(crate) struct Ack {
    bytes: usize,
    flight_before: usize,
    flight_after: usize,
    may_grow: bool,
    fully_used: bool,
    lost: usize,
    rtt: Option<f64>,
    rate: u64,
}

impl From<&congestion::Ack> for Ack {
    fn from(ack: &congestion::Ack) -> Self {
        let congestion::Ack {
            bytes, flight_before, flight_after, may_grow, fully_used, lost, rtt, rate, ..
        } = *ack;
        let rtt = rtt.map(|rtt| rtt.as_secs_f64());
        Ack { bytes, flight_before, flight_after, may_grow, fully_used, lost, rtt, rate }
    }
}
