//! Schedulers and congestion controllers from shared objects, and messages about policies that failed.

use std::convert::Infallible;
use std::fmt::Display;
use std::path::PathBuf;
use std::sync::Arc;

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
        Ok(self.load_into_registry()?.0)
    }

    /// Returns a registry with these policies and the built-in ones.
    pub(crate) fn registry(&self) -> Result<Registry, Failure> {
        Ok(self.load_into_registry()?.1)
    }

    /// Loads each file and registers its policy, so that a name that is taken is an error of that file.
    fn load_into_registry(&self) -> Result<(UserPolicies, Registry), Failure> {
        let (mut brought, mut registry) = (UserPolicies::default(), Registry::default());
        for file in &self.scheduler_so {
            let plugin = Plugin::load(file).map_err(refused)?;
            let name = plugin.name().to_owned();
            let (setting, registered) = match plugin.factory() {
                Factory::Stream(factory) => {
                    brought.of_streams.push((name.clone(), Arc::clone(&factory)));
                    ("stream_scheduler", registry.register_stream_scheduler(&name, factory))
                }
                Factory::Path(factory) => {
                    brought.of_paths.push((name.clone(), Arc::clone(&factory)));
                    ("path_scheduler", registry.register_path_scheduler(&name, factory))
                }
                Factory::Controller(factory) => {
                    brought.controllers.push((name.clone(), Arc::clone(&factory)));
                    ("congestion_control", registry.register_controller(&name, factory))
                }
            };
            registered.map_err(|error| refused(format!("{}: {error}", file.display())))?;
            brought.loaded.push(Loaded { file: file.clone(), name, setting });
        }
        Ok((brought, registry))
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
