//! Congestion controllers that are Python objects, for the lab. An exception of a hook is a failure of the controller.

use std::num::NonZeroU64;
use std::sync::Arc;

use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use tresse_plugin::Factory;
use tresse_policy::PathId;
use tresse_policy::congestion::{self, Controller, ControllerFactory, PathWindow, Sizes};

use crate::error::{shown, words};
use crate::plugin;
use crate::scheduler::{Interrupt, refusal};
use crate::windows::{Ack, Situation, Window};

/// Accepted answers of the hooks that set a window.
const ANSWERS: &str = "a window and a threshold in whole bytes are accepted, or None";

/// Returns a factory of controllers: that of a plugin, or one that calls `class` with the configuration.
pub(crate) fn factory(class: Py<PyAny>, interrupt: Interrupt) -> ControllerFactory {
    match plugin::factory(&class) {
        Some(Factory::Controller(factory)) => return factory,
        Some(Factory::Stream(_)) => return Arc::new(|_| Err("it is a scheduler of streams".to_owned())),
        Some(Factory::Path(_)) => return Arc::new(|_| Err("it is a scheduler of paths".to_owned())),
        None => {}
    }
    Arc::new(move |config| {
        Python::attach(|py| match Scripted::new(py, &class, config, interrupt.clone()) {
            Ok(controller) => Ok(Box::new(controller) as Box<dyn Controller>),
            Err(error) => Err(refusal(py, error, &interrupt)),
        })
    })
}

/// A controller whose hooks are methods of an object.
struct Scripted {
    object: Py<PyAny>,
    has: Optional,
    failed: Option<String>,
    interrupt: Interrupt,
}

/// Flags for the optional hooks: true if a class has it.
#[derive(Copy, Clone)]
struct Optional {
    on_timeout: bool,
    on_idle: bool,
    on_path_added: bool,
    pacing_rate: bool,
}

impl Scripted {
    fn new(py: Python<'_>, class: &Py<PyAny>, config: &str, interrupt: Interrupt) -> PyResult<Self> {
        let object = class.bind(py).call1((config,))?;
        let has = |hook: &str| object.hasattr(hook);
        for hook in ["on_ack", "on_loss"] {
            if !has(hook)? {
                let kind = object.get_type();
                return Err(PyException::new_err(format!("{} has no \"{hook}\"", kind.qualname()?)));
            }
        }
        let has = Optional {
            on_timeout: has("on_timeout")?,
            on_idle: has("on_idle")?,
            on_path_added: has("on_path_added")?,
            pacing_rate: has("pacing_rate")?,
        };
        Ok(Scripted { object: object.unbind(), has, failed: None, interrupt })
    }

    /// Calls a hook and returns the window that it returns; `None` if it returns `None` or an invalid window, or fails.
    fn call(&mut self, hook: impl FnOnce(Python<'_>, &Py<PyAny>) -> PyResult<Py<PyAny>>) -> Option<Sizes> {
        Python::attach(|py| {
            let answer = match hook(py, &self.object) {
                Ok(answer) => answer,
                Err(error) => {
                    self.fail(py, error);
                    return None;
                }
            };
            if let Ok(answer) = answer.extract::<Option<(i64, i64)>>(py) {
                return self.sizes(answer?);
            }
            let answered = shown(answer.bind(py));
            self.failed = Some(format!("it answered {answered}: {ANSWERS}"));
            None
        })
    }

    fn sizes(&mut self, (cwnd, ssthresh): (i64, i64)) -> Option<Sizes> {
        match (usize::try_from(cwnd), usize::try_from(ssthresh)) {
            (Ok(cwnd), Ok(ssthresh)) => Some(Sizes { cwnd, ssthresh }),
            _ => {
                let said = format!("it answered ({cwnd}, {ssthresh}), which is no window and threshold");
                self.failed = Some(said);
                None
            }
        }
    }

    fn fail(&mut self, py: Python<'_>, error: PyErr) {
        self.failed = Some(words(py, &error));
        if !error.is_instance_of::<PyException>(py) {
            self.interrupt.put(error);
        }
    }
}

impl Controller for Scripted {
    fn on_path_added(&mut self, window: &PathWindow) {
        if self.has.on_path_added {
            Python::attach(|py| {
                if let Err(error) = self.object.call_method1(py, "on_path_added", (Window::from(window),)) {
                    self.fail(py, error);
                }
            });
        }
    }

    fn on_ack(&mut self, situation: &congestion::Situation<'_>, ack: &congestion::Ack) -> Sizes {
        let shown = (Situation::from(situation), Ack::from(ack));
        let answer = self.call(|py, object| object.call_method1(py, "on_ack", shown));
        answer.unwrap_or_else(|| situation.window().unchanged())
    }

    fn on_loss(&mut self, situation: &congestion::Situation<'_>, ack: &congestion::Ack) -> Sizes {
        let shown = (Situation::from(situation), Ack::from(ack));
        let answer = self.call(|py, object| object.call_method1(py, "on_loss", shown));
        answer.unwrap_or_else(|| situation.window().unchanged())
    }

    fn on_timeout(&mut self, situation: &congestion::Situation<'_>) -> Option<Sizes> {
        let shown = (Situation::from(situation),);
        self.has.on_timeout.then(|| self.call(|py, object| object.call_method1(py, "on_timeout", shown)))?
    }

    fn on_idle(&mut self, situation: &congestion::Situation<'_>) -> Option<Sizes> {
        let shown = (Situation::from(situation),);
        self.has.on_idle.then(|| self.call(|py, object| object.call_method1(py, "on_idle", shown)))?
    }

    fn pacing_rate(&mut self, path: PathId) -> Option<NonZeroU64> {
        if !self.has.pacing_rate {
            return None;
        }
        Python::attach(|py| {
            let answer = self.object.call_method1(py, "pacing_rate", (path.0,));
            match answer.and_then(|answer| answer.extract::<Option<f64>>(py)) {
                Ok(Some(rate)) if rate >= 0.0 => NonZeroU64::new(rate as u64),
                Ok(None) => None,
                Ok(Some(rate)) => {
                    self.failed =
                        Some(format!("it answered {rate}: a rate in bytes per second is accepted, or None"));
                    None
                }
                Err(error) => {
                    self.fail(py, error);
                    None
                }
            }
        })
    }

    fn failure(&self) -> Option<String> {
        self.failed.clone()
    }
}
