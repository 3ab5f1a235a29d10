//! Path schedulers that are Python objects, for the lab. An exception of a hook is a failure of the scheduler.

use std::sync::Arc;

use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use tresse_plugin::Factory;
use tresse_policy::schedule::{self, Decision, PathScheduler, PathSchedulerFactory};
use tresse_policy::{Instant, PathId};

use crate::error::{shown, words};
use crate::plugin;
use crate::scheduler::{Interrupt, refusal};
use crate::views::Offer;

/// Returns a factory of schedulers: that of a plugin, or one that calls `class` with the configuration.
pub(crate) fn factory(class: Py<PyAny>, interrupt: Interrupt) -> PathSchedulerFactory {
    match plugin::factory(&class) {
        Some(Factory::Path(factory)) => return factory,
        Some(Factory::Stream(_)) => return Arc::new(|_| Err("it is a scheduler of streams".to_owned())),
        Some(Factory::Controller(_)) => return Arc::new(|_| Err("it is a congestion controller".to_owned())),
        None => {}
    }
    Arc::new(move |config| {
        Python::attach(|py| match Scripted::new(py, &class, config, interrupt.clone()) {
            Ok(scheduler) => Ok(Box::new(scheduler) as Box<dyn PathScheduler>),
            Err(error) => Err(refusal(py, error, &interrupt)),
        })
    })
}

/// A scheduler whose hooks are methods of an object.
struct Scripted {
    object: Py<PyAny>,
    /// True if it has the hook `on_sent`.
    has_on_sent: bool,
    failed: Option<String>,
    interrupt: Interrupt,
}

impl Scripted {
    fn new(py: Python<'_>, class: &Py<PyAny>, config: &str, interrupt: Interrupt) -> PyResult<Self> {
        let object = class.bind(py).call1((config,))?;
        if !object.hasattr("pick")? {
            let kind = object.get_type();
            return Err(PyException::new_err(format!("{} has no \"pick\"", kind.qualname()?)));
        }
        let has_on_sent = object.hasattr("on_sent")?;
        Ok(Scripted { object: object.unbind(), has_on_sent, failed: None, interrupt })
    }

    fn fail(&mut self, py: Python<'_>, error: PyErr) {
        self.failed = Some(words(py, &error));
        if !error.is_instance_of::<PyException>(py) {
            self.interrupt.put(error);
        }
    }
}

impl PathScheduler for Scripted {
    fn name(&self) -> &'static str {
        "python"
    }

    fn decide(&mut self, now: Instant, offer: &schedule::Offer<'_>) -> Decision {
        let named = Python::attach(|py| {
            let named = match self.object.call_method1(py, "pick", (now.as_secs_f64(), Offer::from(offer))) {
                Ok(named) => named,
                Err(error) => {
                    self.fail(py, error);
                    return None;
                }
            };
            match named.extract::<Option<i64>>(py) {
                Ok(named) => {
                    let path =
                        named.map(|named| u8::try_from(named).map(PathId).map_err(|_| named)).transpose();
                    path.unwrap_or_else(|named| {
                        self.failed = Some(format!("it answered {named}, which is no path"));
                        None
                    })
                }
                Err(_) => {
                    let answered = shown(named.bind(py));
                    self.failed =
                        Some(format!("it answered {answered}: the id of an open path is accepted, or None"));
                    None
                }
            }
        });
        named.map_or(Decision::Wait, Decision::Send)
    }

    fn on_sent(&mut self, path: PathId, bytes: usize) {
        if self.has_on_sent {
            Python::attach(|py| {
                if let Err(error) = self.object.call_method1(py, "on_sent", (path.0, bytes)) {
                    self.fail(py, error);
                }
            });
        }
    }

    fn failure(&self) -> Option<String> {
        self.failed.clone()
    }
}
