//! Schedulers and controllers that a command brings along in shared objects, and what it says when one fails.

use std::convert::Infallible;
use std::fmt::Display;

use tresse::congestion::ControllerFactory;
use tresse::schedule::{PathSchedulerFactory, StreamSchedulerFactory};
use tresse::{Association, Event, Registry};
use tresse_plugin::{Factory, Plugin};

use crate::args::SchedulerArgs;
use crate::failure::Failure;

/// Policies that the user brought along, by name.
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

    /// They and the built-in ones.
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

/// Lets `say` put into words when a policy of the association was replaced.
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
            // Events of messages that were abandoned come in thousands. Whether a failure was among them is counted.
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
