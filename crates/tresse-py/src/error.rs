//! The two exceptions of the module: one for errors in the caller's input, one for failures of a run. Also the text form of
//! exceptions that Python code raised.

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

pyo3::create_exception!(
    tresse._native,
    ScenarioError,
    PyValueError,
    "A scenario, or an override of it, that is not accepted."
);
pyo3::create_exception!(tresse._native, RunError, PyRuntimeError, "A run that could not be finished.");

/// Converts an error into a `ScenarioError`.
pub(crate) fn refused(error: &tresse_sim::ScenarioError) -> PyErr {
    ScenarioError::new_err(error.to_string())
}

/// Converts an error into a `ScenarioError` if other input can avoid it, otherwise into a `RunError`.
pub(crate) fn failed(error: &tresse_sim::RunError) -> PyErr {
    use tresse_sim::RunError as Reason;
    match error {
        Reason::Config(_) | Reason::Scheduler(_) | Reason::TooFewStreams { .. } | Reason::Message(_) => {
            ScenarioError::new_err(error.to_string())
        }
        _ => RunError::new_err(error.to_string()),
    }
}

/// Returns an exception as one line, with the place where it was raised.
pub(crate) fn words(py: Python<'_>, error: &PyErr) -> String {
    let kind =
        error.get_type(py).name().map(|name| name.to_string()).unwrap_or_else(|_| "exception".to_owned());
    let text = error.value(py).str().map(|text| text.to_string()).unwrap_or_default();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let said = if text.is_empty() { kind } else { format!("{kind}: {text}") };
    match place(py, error) {
        Ok(Some((file, line))) => format!("{said} ({file}, line {line})"),
        _ => said,
    }
}

/// Returns a value as one line of at most 80 characters.
pub(crate) fn shown(value: &Bound<'_, PyAny>) -> String {
    let text = value.repr().map(|text| text.to_string()).unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(80).collect()
}

/// Returns file and line of the innermost call.
fn place(py: Python<'_>, error: &PyErr) -> PyResult<Option<(String, u32)>> {
    let Some(mut call) = error.traceback(py).map(Bound::into_any) else { return Ok(None) };
    loop {
        let inner = call.getattr("tb_next")?;
        if inner.is_none() {
            break;
        }
        call = inner;
    }
    let file: String = call.getattr("tb_frame")?.getattr("f_code")?.getattr("co_filename")?.extract()?;
    let name = file.rsplit('/').next().unwrap_or_default().to_owned();
    Ok(Some((name, call.getattr("tb_lineno")?.extract()?)))
}
