//! The private Python module `tresse._native`: runs scenarios, with text as input and output; schedulers and controllers are
//! objects.
//!
//! It only runs scenarios: sweeps, statistics and figures belong to the lab, in Python.

mod backlog;
mod controller;
mod error;
mod path_scheduler;
mod plugin;
mod scenario;
mod scheduler;
mod views;
mod windows;

use pyo3::prelude::*;

/// The simulator, as Python sees it.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::backlog::Backlog;
    #[pymodule_export]
    use super::error::{RunError, ScenarioError};
    #[pymodule_export]
    use super::plugin::Plugin;
    #[pymodule_export]
    use super::scenario::{document, idle_settings, resolve, run, trace};
    #[pymodule_export]
    use super::views::{Offer, Path, Queued, Removed, Taken};
    #[pymodule_export]
    use super::windows::{Ack, Situation, Window};
    #[pymodule_export]
    use super::{switches, version};
}

/// Returns name, default, accepted values and documentation of every association switch.
#[pyfunction]
fn switches() -> Vec<(&'static str, String, String, &'static str)> {
    tresse_proto::AssociationConfig::describe()
        .into_iter()
        .map(|switch| (switch.name, switch.default, switch.accepted, switch.doc))
        .collect()
}

/// Returns the version of the native module.
#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}
