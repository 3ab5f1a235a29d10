//! Schedulers and controllers from shared objects, for runs of the lab.

use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tresse_plugin::Factory;

/// A scheduler or a controller from a shared object (`include/tresse_scheduler.h`).
#[pyclass(frozen, module = "tresse._native")]
pub(crate) struct Plugin(pub(crate) tresse_plugin::Plugin);

#[pymethods]
impl Plugin {
    #[new]
    fn new(path: PathBuf) -> PyResult<Self> {
        tresse_plugin::Plugin::load(path)
            .map(Plugin)
            .map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// The name in its table.
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }
}

/// Returns the factory of `class`, if it is a plugin.
pub(crate) fn factory(class: &Py<PyAny>) -> Option<Factory> {
    Python::attach(|py| class.extract::<PyRef<'_, Plugin>>(py).map(|plugin| plugin.0.factory()).ok())
}
