//! The two exceptions, and which failure becomes which: what the caller wrote, or what happened while running.

use pyo3::PyErr;
use pyo3::exceptions::{PyRuntimeError, PyValueError};

pyo3::create_exception!(
    tresse._native,
    ScenarioError,
    PyValueError,
    "A scenario, or an override of it, that is not accepted."
);
pyo3::create_exception!(tresse._native, RunError, PyRuntimeError, "A run that could not be finished.");

/// As a `ScenarioError`.
pub(crate) fn refused(error: &tresse_sim::ScenarioError) -> PyErr {
    ScenarioError::new_err(error.to_string())
}

/// As a `ScenarioError` when other input would have helped, else as a `RunError`.
pub(crate) fn failed(error: &tresse_sim::RunError) -> PyErr {
    use tresse_sim::RunError as Reason;
    match error {
        Reason::Config(_) | Reason::TooFewStreams { .. } | Reason::Message(_) => {
            ScenarioError::new_err(error.to_string())
        }
        _ => RunError::new_err(error.to_string()),
    }
}
