//! Stream schedulers out of shared objects, written in C or in whatever else makes such objects.
//!
//! Owns the boundary to foreign code: what of a table can be checked is checked here, and this is the only crate with
//! `unsafe`. To everybody else a [`Plugin`] is a factory of stream schedulers like any other.
//!
//! `include/tresse_scheduler.h` is the interface; `docs/schedulers.md` walks through an example.
//!
//! ```no_run
//! use tresse_plugin::Plugin;
//! use tresse_proto::Registry;
//!
//! let mut registry = Registry::default();
//! let plugin = Plugin::load("./one_by_one.so")?;
//! registry.register(plugin.name(), plugin.factory())?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod abi;
mod error;
mod library;
mod scheduler;
mod table;
mod views;

use std::path::Path;
use std::sync::Arc;

use tresse_proto::schedule::StreamSchedulerFactory;

pub use error::LoadError;

use library::Loaded;
use scheduler::Foreign;

/// A scheduler out of a shared object.
///
/// The object stays loaded until the plugin, every factory from it and every scheduler from those are gone: nothing
/// can pull it away from under an association.
#[derive(Clone)]
pub struct Plugin {
    loaded: Arc<Loaded>,
}

impl Plugin {
    /// Loads a shared object and checks its table.
    ///
    /// The object's code runs with all the rights of this process, and nothing can check what it does: as with a
    /// program, who names the file trusts it. For that reason files are named by the command line and by programs,
    /// never by scenarios.
    ///
    /// # Errors
    /// A file that cannot be loaded, or a table that is missing, made for another interface, or incomplete.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, LoadError> {
        Ok(Plugin { loaded: Arc::new(Loaded::open(path.as_ref())?) })
    }

    /// The name that its table has.
    pub fn name(&self) -> &str {
        self.loaded.name()
    }

    /// What makes its schedulers: to be registered under [`Plugin::name`], or another one.
    pub fn factory(&self) -> StreamSchedulerFactory {
        let loaded = Arc::clone(&self.loaded);
        Arc::new(move |config| Ok(Box::new(Foreign::create(&loaded, config)?)))
    }
}

impl std::fmt::Debug for Plugin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Plugin").field(&self.name()).finish()
    }
}
