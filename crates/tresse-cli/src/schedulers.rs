//! Schedulers and congestion controllers from shared objects, and messages about policies that failed.

use std::convert::Infallible;
use std::fmt::Display;

use tresse::congestion::ControllerFactory;
use tresse::schedule::{PathSchedulerFactory, StreamSchedulerFactory};
use tresse::{Association, Event, Registry};
use tresse_plugin::{Factory, Plugin};

use crate::args::SchedulerArgs;
use crate::failure::Failure;

/// Policies that the user loaded, by name.
#[derive(Default)]
pub(crate) struct UserPolicies {
    pub(crate) of_streams: Vec<(String, StreamSchedulerFactory)>,
    pub(crate) of_paths: Vec<(String, PathSchedulerFactory)>,
    pub(crate) controllers: Vec<(String, ControllerFactory)>,
}

impl SchedulerArgs {
    /// Loads the policies of these files.
    pub(crate) fn load(&self) -> Result<UserPolicies, Failure> {
        let mut brought = UserPolicies::default();
        for file in &self.scheduler_so {
            let plugin = Plugin::load(file).map_err(refused)?;
            let name = plugin.name().to_owned();
            match plugin.factory() {
                Factory::Stream(factory) => brought.of_streams.push((name, factory)),
                Factory::Path(factory) => brought.of_paths.push((name, factory)),
                Factory::Controller(factory) => brought.controllers.push((name, factory)),
            }
        }
        Ok(brought)
    }

    /// Returns a registry with these policies and the built-in ones.
    pub(crate) fn registry(&self) -> Result<Registry, Failure> {
        let mut registry = Registry::default();
        let UserPolicies { of_streams, of_paths, controllers } = self.load()?;
        for (name, factory) in of_streams {
            registry.register(&name, factory).map_err(refused)?;
        }
        for (name, factory) in of_paths {
            registry.register_path_scheduler(&name, factory).map_err(refused)?;
        }
        for (name, factory) in controllers {
            registry.register_controller(&name, factory).map_err(refused)?;
        }
        Ok(registry)
    }
}

fn refused(error: impl Display) -> Failure {
    Failure::usage(error).at("--scheduler-so")
}

/// Calls `say` with a line whenever a policy of the association failed and was replaced; never returns.
pub(crate) async fn watch(association: &Association, say: impl Fn(&str)) -> Infallible {
    let mut events = association.events();
    let mut told = association.stats().scheduler_failures;
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::SchedulerFailed { kind, name, fault }) => {
                told += 1;
                say(&format!("{kind} \"{name}\" failed and was replaced: {fault}"));
            }
            Ok(_) => {}
            // Events were missed, because abandoned messages cause thousands. The counter shows whether failures were among them.
            Err(_) => {
                let failures = association.stats().scheduler_failures;
                if failures > told {
                    say(&format!("{} times a policy failed and was replaced", failures - told));
                    told = failures;
                }
            }
        }
    }
    std::future::pending().await
}
