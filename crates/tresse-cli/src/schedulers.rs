//! Schedulers and congestion controllers from shared objects, and messages about policies that failed.

use std::convert::Infallible;
use std::fmt::Display;
use std::path::PathBuf;

use tresse::congestion::ControllerFactory;
use tresse::schedule::{PathSchedulerFactory, StreamSchedulerFactory};
use tresse::{Association, AssociationConfig, Event, Registry};
use tresse_plugin::{Factory, Plugin};

use crate::args::SchedulerArgs;
use crate::failure::Failure;

/// Policies that the user loaded, by name.
#[derive(Default)]
pub(crate) struct UserPolicies {
    pub(crate) of_streams: Vec<(String, StreamSchedulerFactory)>,
    pub(crate) of_paths: Vec<(String, PathSchedulerFactory)>,
    pub(crate) controllers: Vec<(String, ControllerFactory)>,
    loaded: Vec<Loaded>,
}

/// A policy, its file, and the setting that would name it.
struct Loaded {
    file: PathBuf,
    name: String,
    setting: &'static str,
}

impl UserPolicies {
    /// Returns one line for each policy that none of the settings names.
    pub(crate) fn idle(&self, used: &[&AssociationConfig]) -> Vec<String> {
        let line = |Loaded { file, name, setting }: &Loaded| {
            let values = used.iter().flat_map(|config| config.values());
            let mut values: Vec<String> =
                values.filter(|value| value.0 == *setting).map(|value| value.1).collect();
            values.dedup();
            (!values.contains(name)).then(|| {
                let (file, values) = (file.display(), values.join(" and "));
                format!("--scheduler-so {file} ({name}) has no effect beside {setting} = {values}")
            })
        };
        self.loaded.iter().filter_map(line).collect()
    }
}

impl SchedulerArgs {
    /// Loads the policies of these files.
    pub(crate) fn load(&self) -> Result<UserPolicies, Failure> {
        let mut brought = UserPolicies::default();
        for file in &self.scheduler_so {
            let plugin = Plugin::load(file).map_err(refused)?;
            let name = plugin.name().to_owned();
            let factory = plugin.factory();
            let setting = match factory {
                Factory::Stream(_) => "stream_scheduler",
                Factory::Path(_) => "path_scheduler",
                Factory::Controller(_) => "congestion_control",
            };
            brought.loaded.push(Loaded { file: file.clone(), name: name.clone(), setting });
            match factory {
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
        let UserPolicies { of_streams, of_paths, controllers, .. } = self.load()?;
        for (name, factory) in of_streams {
            registry.register_stream_scheduler(&name, factory).map_err(refused)?;
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
