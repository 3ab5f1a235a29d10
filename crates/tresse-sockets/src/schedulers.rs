//! Policies that the program registers at run time by a table of hooks in C, beside the built-in ones.
//!
//! Every endpoint has a copy of the registry. A name is removed from all of them or from none: if that succeeds, no code uses the
//! hooks any more.

use std::sync::{Mutex, PoisonError};

use rustix::io::Errno;
use tresse_plugin::{Factory, Plugin};
use tresse_proto::{Registry, ScheduleError};

use crate::engine::State;
use crate::options::is_short_name;
use crate::shared::registry;
use crate::stack::every_engine;

/// Plugins that the program has registered. Locked while the list changes; this lock is not taken while an engine is locked.
static REGISTERED: Mutex<Vec<Plugin>> = Mutex::new(Vec::new());

/// Locks the list of registered plugins.
pub(crate) fn hold_list() -> impl Sized {
    REGISTERED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Registers a scheduler, which future associations can then name.
///
/// # Errors
/// `EXIST` for a name that is in use, or that SCTP_SCHED takes for a built-in scheduler.
pub(crate) fn register(plugin: Plugin) -> Result<(), Errno> {
    if is_short_name(plugin.name()) {
        return Err(Errno::EXIST);
    }
    let mut registered = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
    add(&mut registry(), &plugin).map_err(|_| Errno::EXIST)?;
    each_state(|state| {
        if let Some(endpoint) = &mut state.endpoint {
            // An endpoint that was created meanwhile has the scheduler already.
            let _ = add(endpoint.schedulers(), &plugin);
        }
        true
    });
    registered.push(plugin);
    Ok(())
}

/// Unregisters a scheduler. No code uses its hooks afterwards.
///
/// # Errors
/// `NOENT` for a name that is not registered; `BUSY` if an association or a socket uses the scheduler.
pub(crate) fn unregister(name: &str) -> Result<(), Errno> {
    let mut registered = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
    let at = registered.iter().position(|plugin| plugin.name() == name).ok_or(Errno::NOENT)?;
    registry().remove_stream_scheduler(name).map_err(|_| Errno::BUSY)?;
    let is_gone = each_state(|state| {
        let named = state.sockets.values().any(|socket| socket.config.stream_scheduler == name);
        let removed = match &mut state.endpoint {
            Some(endpoint) if !named => endpoint.schedulers().remove_stream_scheduler(name),
            _ => Ok(()),
        };
        !named && !matches!(removed, Err(ScheduleError::InUse(_)))
    });
    if is_gone {
        registered.swap_remove(at);
        return Ok(());
    }
    // One engine still uses it, so it is registered everywhere again.
    let _ = add(&mut registry(), &registered[at]);
    each_state(|state| {
        if let Some(endpoint) = &mut state.endpoint {
            let _ = add(endpoint.schedulers(), &registered[at]);
        }
        true
    });
    Err(Errno::BUSY)
}

fn add(registry: &mut Registry, plugin: &Plugin) -> Result<(), ScheduleError> {
    match plugin.factory() {
        Factory::Stream(factory) => registry.register_stream_scheduler(plugin.name(), factory),
        Factory::Path(factory) => registry.register_path_scheduler(plugin.name(), factory),
        Factory::Controller(factory) => registry.register_controller(plugin.name(), factory),
    }
}

/// Calls `act` for the state of each engine until it returns false; returns whether it never did.
fn each_state(mut act: impl FnMut(&mut State) -> bool) -> bool {
    every_engine().iter().all(|engine| act(&mut engine.lock()))
}
