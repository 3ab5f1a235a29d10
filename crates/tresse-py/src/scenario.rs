//! Runs of scenarios for Python, with text as input and output. Other Python threads continue meanwhile.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use pyo3::types::PyInt;
use tresse_sim::{Outcome, RunOptions, Scenario};

use crate::controller;
use crate::error::{RunError, failed, refused};
use crate::path_scheduler;
use crate::scheduler::{self, Interrupt};

/// Classes of schedulers or controllers by name.
type Classes = BTreeMap<String, Py<PyAny>>;

/// Classes of policies that the caller passes to a run.
#[derive(Default)]
struct UserPolicies {
    schedulers: Classes,
    path_schedulers: Classes,
    controllers: Classes,
}

/// Runs the scenario and returns the outcome document as JSON. `seed` replaces the scenario's own seed.
///
/// `schedulers` are classes of stream schedulers by the names that the scenario may use, `path_schedulers` those of
/// path schedulers, `controllers` those of congestion controllers.
///
/// An interrupt that reaches the calling thread ends the run within half a second of virtual time.
#[pyfunction]
#[pyo3(signature = (
    scenario_toml, overrides, seed = None, *,
    name = "scenario", schedulers = Classes::new(), path_schedulers = Classes::new(), controllers = Classes::new(),
))]
#[expect(clippy::too_many_arguments, reason = "Python names them")]
pub(crate) fn run(
    py: Python<'_>,
    scenario_toml: &str,
    mut overrides: BTreeMap<String, String>,
    seed: Option<&Bound<'_, PyInt>>,
    name: &str,
    schedulers: Classes,
    path_schedulers: Classes,
    controllers: Classes,
) -> PyResult<String> {
    if let Some(seed) = seed {
        overrides.insert("seed".to_owned(), seed.to_string());
    }
    let scenario = load(scenario_toml, &overrides, name)?;
    let outcome = py.detach(|| {
        run_detached(&scenario, None, UserPolicies { schedulers, path_schedulers, controllers })
    })?;
    serde_json::to_string(&outcome).map_err(|error| RunError::new_err(error.to_string()))
}

/// Runs the scenario with `seed` and returns its trace: one JSON object per line.
#[pyfunction]
#[pyo3(signature = (scenario_toml, overrides, seed, *, name = "scenario"))]
pub(crate) fn trace(
    py: Python<'_>,
    scenario_toml: &str,
    mut overrides: BTreeMap<String, String>,
    seed: &Bound<'_, PyInt>,
    name: &str,
) -> PyResult<String> {
    overrides.insert("seed".to_owned(), seed.to_string());
    let scenario = load(scenario_toml, &overrides, name)?;
    let mut trace = Vec::new();
    py.detach(|| run_detached(&scenario, Some(&mut trace), UserPolicies::default()))?;
    String::from_utf8(trace).map_err(|error| RunError::new_err(error.to_string()))
}

/// Returns the scenario as TOML, with overrides applied and all defaults filled in.
#[pyfunction]
#[pyo3(signature = (scenario_toml, overrides, *, name = "scenario"))]
pub(crate) fn resolve(
    scenario_toml: &str,
    overrides: BTreeMap<String, String>,
    name: &str,
) -> PyResult<String> {
    Ok(load(scenario_toml, &overrides, name)?.to_toml())
}

/// Returns the keys and values in the text of a scenario as JSON, as the simulator reads them.
#[pyfunction]
#[pyo3(signature = (scenario_toml, *, name = "scenario"))]
pub(crate) fn document(scenario_toml: &str, name: &str) -> PyResult<String> {
    let scenario = load(scenario_toml, &BTreeMap::new(), name)?;
    serde_json::to_string(scenario.document()).map_err(|error| RunError::new_err(error.to_string()))
}

/// Returns the settings in the scenario that have no effect because of others, one sentence for each.
#[pyfunction]
#[pyo3(signature = (scenario_toml, overrides, *, name = "scenario"))]
pub(crate) fn idle_settings(
    scenario_toml: &str,
    overrides: BTreeMap<String, String>,
    name: &str,
) -> PyResult<Vec<String>> {
    Ok(load(scenario_toml, &overrides, name)?.idle_settings().iter().map(ToString::to_string).collect())
}

/// Runs the scenario while other Python threads continue; checks at intervals whether this thread is interrupted.
fn run_detached(
    scenario: &Scenario,
    trace: Option<&mut Vec<u8>>,
    policies: UserPolicies,
) -> PyResult<Outcome> {
    let stop = AtomicBool::new(false);
    let raised = Interrupt::default();
    let of_streams = |(name, class)| (name, scheduler::factory(class, raised.clone()));
    let schedulers: Vec<_> = policies.schedulers.into_iter().map(of_streams).collect();
    let of_paths = |(name, class)| (name, path_scheduler::factory(class, raised.clone()));
    let path_schedulers: Vec<_> = policies.path_schedulers.into_iter().map(of_paths).collect();
    let of_windows = |(name, class)| (name, controller::factory(class, raised.clone()));
    let controllers: Vec<_> = policies.controllers.into_iter().map(of_windows).collect();
    let mut interrupt = None;
    let mut progress = |_share: f64| {
        let signalled = Python::attach(|py| py.check_signals()).err();
        if let Some(error) = raised.take().or(signalled) {
            interrupt = Some(error);
            stop.store(true, Ordering::Relaxed);
        }
    };
    let options = RunOptions {
        trace: trace.map(|trace| trace as &mut dyn Write),
        progress: Some(&mut progress),
        stop: Some(&stop),
        schedulers: &schedulers,
        path_schedulers: &path_schedulers,
        controllers: &controllers,
        ..RunOptions::default()
    };
    let outcome = tresse_sim::run(scenario, options);
    match interrupt.or_else(|| raised.take()) {
        Some(error) => Err(error),
        None => outcome.map_err(|error| failed(&error)),
    }
}

fn load(text: &str, overrides: &BTreeMap<String, String>, name: &str) -> PyResult<Scenario> {
    let mut scenario = Scenario::from_toml(text, name).map_err(|error| refused(&error))?;
    scenario
        .set_all(overrides.iter().map(|(key, value)| (key.as_str(), value.as_str())))
        .map_err(|error| refused(&error))?;
    Ok(scenario)
}
