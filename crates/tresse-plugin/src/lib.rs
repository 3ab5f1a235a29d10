//! Plugins: stream schedulers, path schedulers and congestion controllers in shared objects, written in C or in any other
//! language that makes such objects.
//!
//! Owns the boundary to foreign code of policies: it checks everything in a table that can be checked. For other crates a
//! [`Plugin`] is a factory like any other.
//!
//! `include/tresse_scheduler.h` is the interface; `docs/schedulers.md`, `docs/path-schedulers.md` and
//! `docs/congestion.md` have an example each.
//!
//! ```no_run
//! use tresse_plugin::{Factory, Plugin};
//! use tresse_policy::Registry;
//!
//! let mut registry = Registry::default();
//! let plugin = Plugin::load("./one_by_one.so")?;
//! match plugin.factory() {
//!     Factory::Stream(factory) => registry.register_stream_scheduler(plugin.name(), factory)?,
//!     Factory::Path(factory) => registry.register_path_scheduler(plugin.name(), factory)?,
//!     Factory::Controller(factory) => registry.register_controller(plugin.name(), factory)?,
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod abi;
mod controller;
mod error;
mod instance;
mod library;
mod path;
mod stream;
mod table;
mod views;

use std::ffi::c_void;
use std::path::Path;
use std::sync::Arc;

use tresse_policy::congestion::ControllerFactory;
use tresse_policy::schedule::{PathSchedulerFactory, StreamSchedulerFactory};

pub use error::{Fault, LoadError};

use abi::Hooks;
use controller::ForeignController;
use library::Loaded;
use path::ForeignPath;
use stream::ForeignStream;

/// A scheduler or a controller from a shared object, or a stream scheduler from a table in memory.
///
/// The object stays loaded until the plugin, all its factories and all instances made by them are dropped: it cannot be unloaded
/// while an association uses it.
#[derive(Clone)]
pub struct Plugin {
    loaded: Arc<Loaded>,
}

/// Factory of schedulers or controllers, of the kind that the object has.
#[derive(Clone)]
pub enum Factory {
    /// Stream schedulers: each selects the stream whose data leaves next.
    Stream(StreamSchedulerFactory),
    /// Path schedulers: each selects the path for the next data.
    Path(PathSchedulerFactory),
    /// Congestion controllers: each sets the amount of data in flight on each path.
    Controller(ControllerFactory),
}

impl Plugin {
    /// Loads a shared object and checks its table.
    ///
    /// The object's code runs with all rights of this process, and nothing can check what it does. As with a program, the user has
    /// to trust the file. For that reason the command line and programs name such files, but scenarios cannot.
    ///
    /// # Errors
    /// A file that cannot be loaded, or a table that is missing, made for another interface, or incomplete.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, LoadError> {
        Ok(Plugin { loaded: Arc::new(Loaded::open(path.as_ref())?) })
    }

    /// Checks and copies a table of stream scheduler hooks in memory: `struct tresse_scheduler` of the header. When the plugin, all
    /// its factories and all instances made by them are dropped, `unused` is called, on the thread that dropped the last: from then
    /// on the code may be unloaded.
    ///
    /// # Errors
    /// A table for another version of the interface, or an incomplete one; `unused` is not called then.
    ///
    /// # Safety
    /// `table` is null or points to a table that is at least as long as its own size field says. The hooks satisfy the header, and
    /// stay loaded until `unused` is called.
    pub unsafe fn of_table(
        table: *const c_void,
        unused: impl FnOnce() + Send + Sync + 'static,
    ) -> Result<Self, LoadError> {
        // SAFETY: the caller guarantees it.
        Ok(Plugin { loaded: Arc::new(unsafe { Loaded::of_table(table.cast(), Box::new(unused)) }?) })
    }

    /// Returns the name in its table.
    pub fn name(&self) -> &str {
        self.loaded.name()
    }

    /// Returns the factory of its schedulers or controllers, to be registered under [`Plugin::name`] or another name.
    pub fn factory(&self) -> Factory {
        let loaded = Arc::clone(&self.loaded);
        match *self.loaded.hooks() {
            Hooks::Stream(hooks) => Factory::Stream(Arc::new(move |config| {
                Ok(Box::new(ForeignStream::create(&loaded, hooks, config)?))
            })),
            Hooks::Path(hooks) => Factory::Path(Arc::new(move |config| {
                Ok(Box::new(ForeignPath::create(&loaded, hooks, config)?))
            })),
            Hooks::Controller(hooks) => Factory::Controller(Arc::new(move |config| {
                Ok(Box::new(ForeignController::create(&loaded, hooks, config)?))
            })),
        }
    }
}

impl std::fmt::Debug for Plugin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Plugin").field(&self.name()).finish()
    }
}
