//! Stream schedulers that a command brings along in shared objects.

use std::path::PathBuf;

use tresse::schedule::{Registry, StreamSchedulerFactory};
use tresse_plugin::Plugin;

use crate::failure::Failure;

/// The schedulers of these files by their names.
pub(crate) fn load(files: &[PathBuf]) -> Result<Vec<(String, StreamSchedulerFactory)>, Failure> {
    let plugin = |file| {
        let plugin = Plugin::load(file).map_err(|error| Failure::usage(error).at("--scheduler-so"))?;
        Ok((plugin.name().to_owned(), plugin.factory()))
    };
    files.iter().map(plugin).collect()
}

/// They and the built-in ones.
pub(crate) fn registry(files: &[PathBuf]) -> Result<Registry, Failure> {
    let mut registry = Registry::default();
    for (name, factory) in load(files)? {
        registry.register(&name, factory).map_err(|error| Failure::usage(error).at("--scheduler-so"))?;
    }
    Ok(registry)
}
