//! Stream schedulers that are Python objects, for the lab.
//!
//! For each hook of the core it calls the method of the same name. An exception is a failure of the scheduler. A hook takes about a
//! microsecond in the interpreter.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use tresse_plugin::Factory;
use tresse_policy::StreamId;
use tresse_policy::schedule::{self, PathView, StreamScheduler, StreamSchedulerFactory};

use crate::backlog::{Backlog, Mirror};
use crate::error::words;
use crate::plugin;
use crate::views::{Path, Queued, Removed, Taken};

/// An exception that is not a failure of a scheduler, for instance an interrupt: it ends the run.
#[derive(Clone, Default)]
pub(crate) struct Interrupt(Arc<Mutex<Option<PyErr>>>);

impl Interrupt {
    pub(crate) fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(crate) fn put(&self, error: PyErr) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }
}

/// Returns a factory of schedulers: that of a plugin, or one that calls `class` with the configuration.
pub(crate) fn factory(class: Py<PyAny>, interrupt: Interrupt) -> StreamSchedulerFactory {
    match plugin::factory(&class) {
        Some(Factory::Stream(factory)) => return factory,
        Some(Factory::Path(_)) => return Arc::new(|_| Err("it is a scheduler of paths".to_owned())),
        Some(Factory::Controller(_)) => return Arc::new(|_| Err("it is a congestion controller".to_owned())),
        None => {}
    }
    Arc::new(move |config| {
        Python::attach(|py| match Scripted::new(py, &class, config, interrupt.clone()) {
            Ok(scheduler) => Ok(Box::new(scheduler) as Box<dyn StreamScheduler>),
            Err(error) => Err(refusal(py, error, &interrupt)),
        })
    })
}

/// Returns the reason why a class makes no scheduler, or refuses a value: the text of its exception. An exception that is not an
/// `Exception`, such as an interrupt, also ends the run.
pub(crate) fn refusal(py: Python<'_>, error: PyErr, interrupt: &Interrupt) -> String {
    let text = words(py, &error);
    if !error.is_instance_of::<PyException>(py) {
        interrupt.put(error);
    }
    text
}

/// A scheduler whose hooks are methods of an object.
struct Scripted {
    object: Py<PyAny>,
    has: Optional,
    backlog: Py<Backlog>,
    mirror: Arc<Mutex<Mirror>>,
    failed: Option<String>,
    interrupt: Interrupt,
}

/// Flags for the optional hooks: true if a class has it.
#[derive(Copy, Clone)]
struct Optional {
    on_removed: bool,
    on_packet_end: bool,
    set_value: bool,
    value: bool,
}

impl Scripted {
    fn new(py: Python<'_>, class: &Py<PyAny>, config: &str, interrupt: Interrupt) -> PyResult<Self> {
        let object = class.bind(py).call1((config,))?;
        let has = |hook: &str| object.hasattr(hook);
        for hook in ["on_queued", "next", "on_taken", "is_empty"] {
            if !has(hook)? {
                let kind = object.get_type();
                return Err(PyException::new_err(format!("{} has no \"{hook}\"", kind.qualname()?)));
            }
        }
        let has = Optional {
            on_removed: has("on_removed")?,
            on_packet_end: has("on_packet_end")?,
            set_value: has("set_value")?,
            value: has("value")?,
        };
        let mirror = Arc::new(Mutex::new(Mirror::default()));
        let backlog = Py::new(py, Backlog::new(Arc::clone(&mirror)))?;
        Ok(Scripted { object: object.unbind(), has, backlog, mirror, failed: None, interrupt })
    }

    /// Calls a hook; `None` if it raises an exception, or a hook did so before.
    fn call<T>(&mut self, hook: impl FnOnce(Python<'_>, &Self) -> PyResult<T>) -> Option<T> {
        if self.failed.is_some() {
            return None;
        }
        Python::attach(|py| match hook(py, self) {
            Ok(answer) => Some(answer),
            Err(error) => {
                self.failed = Some(words(py, &error));
                if !error.is_instance_of::<PyException>(py) {
                    self.interrupt.put(error);
                }
                None
            }
        })
    }

    fn note(&self, note: impl FnOnce(&mut Mirror)) {
        note(&mut self.mirror.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl StreamScheduler for Scripted {
    fn on_queued(&mut self, queued: schedule::Queued) {
        self.note(|mirror| mirror.on_queued(queued.stream, queued.bytes));
        self.call(|py, this| this.object.call_method1(py, "on_queued", (Queued::from(queued),)));
    }

    fn next(&mut self, path: &PathView, _backlog: &dyn schedule::Backlog) -> Option<StreamId> {
        let answer = self.call(|py, this| {
            let path = Path::from(path.clone());
            let answer = this.object.call_method1(py, "next", (path, this.backlog.clone_ref(py)))?;
            answer.extract::<Option<i64>>(py)
        });
        let stream = answer.flatten()?;
        let named = u16::try_from(stream).ok().map(StreamId);
        if named.is_none() {
            self.failed = Some(format!("it answered {stream}, which is no stream"));
        }
        named
    }

    fn on_taken(&mut self, taken: schedule::Taken) {
        self.note(|mirror| mirror.on_taken(taken.stream, taken.bytes, taken.message_done));
        self.call(|py, this| this.object.call_method1(py, "on_taken", (Taken::from(taken),)));
    }

    fn on_removed(&mut self, removed: schedule::Removed) {
        self.note(|mirror| mirror.on_removed(removed.stream, removed.ahead));
        if self.has.on_removed {
            self.call(|py, this| this.object.call_method1(py, "on_removed", (Removed::from(removed),)));
        } else if removed.stream_empty {
            let taken = Taken::withdrawn(removed);
            self.call(|py, this| this.object.call_method1(py, "on_taken", (taken,)));
        }
    }

    fn on_packet_end(&mut self) {
        if self.has.on_packet_end {
            self.call(|py, this| this.object.call_method0(py, "on_packet_end"));
        }
    }

    fn is_empty(&self) -> bool {
        let answer = Python::attach(|py| self.object.call_method0(py, "is_empty")?.extract::<bool>(py));
        answer.unwrap_or(true)
    }

    fn set_value(&mut self, stream: StreamId, value: u16) -> Result<(), String> {
        if !self.has.set_value {
            return Err("streams have no values with this scheduler".to_owned());
        }
        // An exception of this hook refuses the value; it is not a failure.
        Python::attach(|py| {
            let outcome = self.object.call_method1(py, "set_value", (stream.0, value));
            outcome.map(|_| ()).map_err(|error| refusal(py, error, &self.interrupt))
        })
    }

    fn value(&self, stream: StreamId) -> Option<u16> {
        let value = || {
            Python::attach(|py| {
                self.object.call_method1(py, "value", (stream.0,))?.extract::<Option<u16>>(py)
            })
        };
        self.has.value.then(value)?.ok().flatten()
    }

    fn failure(&self) -> Option<String> {
        self.failed.clone()
    }
}
