//! Stream schedulers that a command brings along in shared objects, and what it says when one fails.

use std::convert::Infallible;

use tresse::schedule::{Registry, StreamSchedulerFactory};
use tresse::{Event, Events};
use tresse_plugin::Plugin;

use crate::args::SchedulerArgs;
use crate::failure::Failure;

impl SchedulerArgs {
    /// The schedulers of these files by their names.
    pub(crate) fn load(&self) -> Result<Vec<(String, StreamSchedulerFactory)>, Failure> {
        let plugin = |file| {
            let plugin = Plugin::load(file).map_err(|error| Failure::usage(error).at("--scheduler-so"))?;
            Ok((plugin.name().to_owned(), plugin.factory()))
        };
        self.scheduler_so.iter().map(plugin).collect()
    }

    /// They and the built-in ones.
    pub(crate) fn registry(&self) -> Result<Registry, Failure> {
        let mut registry = Registry::default();
        for (name, factory) in self.load()? {
            registry.register(&name, factory).map_err(|error| Failure::usage(error).at("--scheduler-so"))?;
        }
        Ok(registry)
    }
}

/// Lets `say` put into words when a scheduler was replaced.
pub(crate) async fn watch(mut events: Events, say: impl Fn(&str)) -> Infallible {
    while let Some(event) = events.next().await {
        if let Event::SchedulerFailed { name, fault } = event {
            say(&format!("stream scheduler \"{name}\" failed, first_come took its place: {fault}"));
        }
    }
    std::future::pending().await
}
