//! Policies by name: stream schedulers, path schedulers and congestion controllers. An endpoint owns a registry; there
//! is no global one.
//!
//! Names can be added and removed while associations run. A name in use cannot be removed, nor can a built-in one:
//! configurations may rely on the built-in policies.

use std::fmt;

use crate::congestion::{self, CongestionControl, ControllerFactory};
use crate::error::{PolicyKind, ScheduleError};
use crate::names::{NameInUse, Names, no_settings};
use crate::schedule::factories::FALLBACK;
use crate::schedule::{self, Built, PathScheduler, PathSchedulerFactory, StreamSchedulerFactory, guard};

/// The policies that associations can be given.
pub struct Registry {
    streams: Names<StreamSchedulerFactory>,
    paths: Names<PathSchedulerFactory>,
    controllers: Names<congestion::Make>,
}

/// Name and configuration of a policy, as in the settings.
#[derive(Copy, Clone, Debug)]
pub struct PolicyName<'c> {
    /// Its name in the registry.
    pub name: &'c str,
    /// Its configuration, which only the policy interprets.
    pub config: &'c str,
}

/// Names of the policies of an association. They cannot be removed as long as this value exists.
#[derive(Clone, Debug)]
pub struct NamesInUse {
    /// Name of the stream scheduler.
    pub stream: NameInUse,
    /// Name of the path scheduler.
    #[expect(dead_code, reason = "that it is there says it all")]
    path: NameInUse,
    /// Name of the congestion controller.
    #[expect(dead_code, reason = "that it is there says it all")]
    controller: NameInUse,
}

impl Registry {
    /// Adds a stream scheduler.
    ///
    /// # Errors
    /// A name that is taken.
    pub fn register_stream_scheduler(
        &mut self,
        name: &str,
        factory: StreamSchedulerFactory,
    ) -> Result<(), ScheduleError> {
        self.streams.insert(name, factory)
    }

    /// Adds a path scheduler.
    ///
    /// # Errors
    /// A name that is taken.
    pub fn register_path_scheduler(
        &mut self,
        name: &str,
        factory: PathSchedulerFactory,
    ) -> Result<(), ScheduleError> {
        self.paths.insert(name, factory)
    }

    /// Adds a congestion controller.
    ///
    /// # Errors
    /// A name that is taken.
    pub fn register_controller(
        &mut self,
        name: &str,
        factory: ControllerFactory,
    ) -> Result<(), ScheduleError> {
        self.controllers.insert(name, congestion::Make::Brought(factory))
    }

    /// Removes a stream scheduler.
    ///
    /// # Errors
    /// An unknown name, a built-in one, or one that an association still uses.
    pub fn remove_stream_scheduler(&mut self, name: &str) -> Result<(), ScheduleError> {
        self.streams.remove(name)
    }

    /// Removes a path scheduler.
    ///
    /// # Errors
    /// An unknown name, a built-in one, or one that an association still uses.
    pub fn remove_path_scheduler(&mut self, name: &str) -> Result<(), ScheduleError> {
        self.paths.remove(name)
    }

    /// Removes a congestion controller.
    ///
    /// # Errors
    /// An unknown name, a built-in one, or one that an association still uses.
    pub fn remove_controller(&mut self, name: &str) -> Result<(), ScheduleError> {
        self.controllers.remove(name)
    }

    /// Checks that a policy of this kind could be removed now.
    ///
    /// # Errors
    /// The errors of removing the policy.
    pub fn removable(&self, kind: PolicyKind, name: &str) -> Result<(), ScheduleError> {
        match kind {
            PolicyKind::StreamScheduler => self.streams.removable(name),
            PolicyKind::PathScheduler => self.paths.removable(name),
            PolicyKind::CongestionController => self.controllers.removable(name),
        }
    }

    /// Builds a stream scheduler of this name. Its factory gets `config` unchanged. A panic in a scheduler of an
    /// application, or in its factory, affects only that scheduler.
    ///
    /// # Errors
    /// An unknown name, or a configuration that the scheduler refuses.
    pub fn build_stream_scheduler(&self, name: &str, config: &str) -> Result<Built, ScheduleError> {
        let entry = self.streams.find(name)?;
        let refused = self.streams.refusal(name);
        if name == FALLBACK {
            no_settings(config).map_err(refused)?;
            return Ok(Built::first_come(entry.name_in_use()));
        }
        let made =
            if entry.built_in { (entry.factory)(config) } else { guard::make_stream(&entry.factory, config) };
        Ok(Built::new(made.map_err(refused)?, entry.name_in_use()))
    }

    /// Builds a path scheduler of this name, as [`build_stream_scheduler`](Self::build_stream_scheduler) builds stream
    /// schedulers. The name cannot be removed as long as the scheduler exists.
    ///
    /// # Errors
    /// An unknown name, or a configuration that the scheduler refuses.
    pub fn build_path_scheduler(
        &self,
        name: &str,
        config: &str,
    ) -> Result<Box<dyn PathScheduler>, ScheduleError> {
        let entry = self.paths.find(name)?;
        let made = if entry.built_in {
            (entry.factory)(config)
        } else {
            guard::make_path(&entry.factory, config, entry.name_in_use())
        };
        made.map_err(self.paths.refusal(name))
    }

    /// Builds a congestion controller of this name, as [`build_stream_scheduler`](Self::build_stream_scheduler) builds
    /// stream schedulers. Only the core calls this: it owns the windows.
    ///
    /// # Errors
    /// An unknown name, or a configuration that the controller refuses.
    pub fn build_controller(
        &self,
        name: &str,
        config: &str,
    ) -> Result<Box<dyn CongestionControl>, ScheduleError> {
        let entry = self.controllers.find(name)?;
        let made = entry.factory.make(config, || entry.name_in_use());
        made.map_err(self.controllers.refusal(name))
    }

    /// Checks that the policies can be built with their configurations, and marks their names as in use. Only the core
    /// calls this.
    ///
    /// # Errors
    /// An unknown name, or a configuration that is refused, with the kind of the policy and its name.
    pub fn reserve<'c>(
        &self,
        stream: PolicyName<'c>,
        path: PolicyName<'c>,
        controller: PolicyName<'c>,
    ) -> Result<NamesInUse, (PolicyKind, &'c str, ScheduleError)> {
        let refused = |kind, wanted: PolicyName<'c>| move |error| (kind, wanted.name, error);
        let stream = self
            .build_stream_scheduler(stream.name, stream.config)
            .map_err(refused(PolicyKind::StreamScheduler, stream))?;
        let path = self
            .build_path_scheduler(path.name, path.config)
            .and_then(|_| self.paths.find(path.name))
            .map_err(refused(PolicyKind::PathScheduler, path))?;
        let controller = self
            .build_controller(controller.name, controller.config)
            .and_then(|_| self.controllers.find(controller.name))
            .map_err(refused(PolicyKind::CongestionController, controller))?;
        Ok(NamesInUse {
            stream: stream.name_in_use(),
            path: path.name_in_use(),
            controller: controller.name_in_use(),
        })
    }

    /// Returns the names of the stream schedulers, in alphabetical order.
    pub fn stream_scheduler_names(&self) -> Vec<&str> {
        self.streams.list()
    }

    /// Returns the names of the path schedulers, in alphabetical order.
    pub fn path_scheduler_names(&self) -> Vec<&str> {
        self.paths.list()
    }

    /// Returns the names of the congestion controllers, in alphabetical order.
    pub fn controller_names(&self) -> Vec<&str> {
        self.controllers.list()
    }
}

impl Default for Registry {
    /// Returns a registry of the built-in policies.
    fn default() -> Self {
        Registry {
            streams: Names::built_in(PolicyKind::StreamScheduler, schedule::stream_schedulers()),
            paths: Names::built_in(PolicyKind::PathScheduler, schedule::path_schedulers()),
            controllers: Names::built_in(PolicyKind::CongestionController, congestion::built_in()),
        }
    }
}

impl Clone for Registry {
    /// Returns the same policies. A name that is in use in the original is not in use in the clone.
    fn clone(&self) -> Self {
        Registry {
            streams: self.streams.anew(),
            paths: self.paths.anew(),
            controllers: self.controllers.anew(),
        }
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry")
            .field("streams", &self.stream_scheduler_names())
            .field("paths", &self.path_scheduler_names())
            .field("controllers", &self.controller_names())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    const BUILT_IN: [&str; 9] = [
        "fair_bandwidth",
        "fcfs",
        "first_come",
        "prio",
        "priority",
        "round_robin",
        "round_robin_packet",
        "weighted_fair",
        "wfq",
    ];

    fn factory() -> StreamSchedulerFactory {
        let (_, first_come) = schedule::stream_schedulers().next().expect("there are some");
        Arc::new(move |config| match config {
            "" | "fast" => first_come(""),
            _ => Err(format!("\"{config}\" is not \"fast\"")),
        })
    }

    #[test]
    fn the_built_in_schedulers_are_there_and_stay() {
        let mut registry = Registry::default();
        assert_eq!(registry.stream_scheduler_names(), BUILT_IN);
        for name in BUILT_IN {
            assert!(
                registry
                    .build_stream_scheduler(name, "")
                    .is_ok_and(|built| built.name() == name && built.is_empty())
            );
            assert_eq!(registry.remove_stream_scheduler(name), Err(ScheduleError::BuiltIn(name.to_owned())));
        }
    }

    #[test]
    fn a_name_is_registered_once() {
        let mut registry = Registry::default();
        assert_eq!(registry.register_stream_scheduler("mine", factory()), Ok(()));
        assert_eq!(
            registry.register_stream_scheduler("mine", factory()),
            Err(ScheduleError::NameTaken("mine".to_owned()))
        );
        let taken = registry.register_stream_scheduler("first_come", factory());
        assert_eq!(taken, Err(ScheduleError::NameTaken("first_come".to_owned())));
    }

    #[test]
    fn a_name_in_use_cannot_be_removed_until_its_last_user_is_gone() {
        let mut registry = Registry::default();
        registry.register_stream_scheduler("mine", factory()).unwrap();
        let first = registry.build_stream_scheduler("mine", "").unwrap();
        let second = registry.build_stream_scheduler("mine", "fast").unwrap();
        assert_eq!(registry.remove_stream_scheduler("mine"), Err(ScheduleError::InUse("mine".to_owned())));
        drop(first);
        assert_eq!(registry.remove_stream_scheduler("mine"), Err(ScheduleError::InUse("mine".to_owned())));
        drop(second);
        assert_eq!(registry.remove_stream_scheduler("mine"), Ok(()));
        assert!(registry.build_stream_scheduler("mine", "").is_err());
    }

    #[test]
    fn unknown_names_and_refused_configurations_are_explained() {
        let mut registry = Registry::default();
        let message = |error: ScheduleError| error.to_string();
        assert_eq!(
            registry.build_stream_scheduler("fifo", "").map(|_| ()).map_err(message),
            Err(format!("unknown stream scheduler \"fifo\"; registered are {}", BUILT_IN.join(", ")))
        );
        assert!(matches!(registry.remove_stream_scheduler("fifo"), Err(ScheduleError::Unknown { .. })));
        registry.register_stream_scheduler("mine", factory()).unwrap();
        assert_eq!(
            registry.build_stream_scheduler("mine", "slow").map(|_| ()).map_err(message),
            Err("stream scheduler \"mine\" refused its configuration: \"slow\" is not \"fast\"".to_owned())
        );
        assert!(registry.build_stream_scheduler("round_robin", "x").is_err());
        assert_eq!(registry.remove_stream_scheduler("mine"), Ok(()), "what was refused is not in use");
    }

    #[test]
    fn every_built_in_controller_is_there_and_takes_no_configuration() {
        let mut registry = Registry::default();
        let names = registry.controller_names().iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            names,
            ["balia", "bbr", "cmt_rp_v1", "cmt_rp_v2", "coupled_cubic", "cubic", "lia", "olia", "rfc9260"]
        );
        for name in names {
            assert!(registry.build_controller(&name, "").is_ok(), "{name}");
            let refused = registry.build_controller(&name, "1").map(|_| ()).unwrap_err().to_string();
            let expected = format!(
                "congestion controller \"{name}\" refused its configuration: it takes no configuration, but got \"1\""
            );
            assert_eq!(refused, expected);
            assert_eq!(registry.remove_controller(&name), Err(ScheduleError::BuiltIn(name)));
        }
        let unknown = registry.build_controller("reno", "").map(|_| ()).unwrap_err().to_string();
        let expected = "unknown congestion controller \"reno\"; registered are balia, bbr, cmt_rp_v1, cmt_rp_v2, \
                        coupled_cubic, cubic, lia, olia, rfc9260";
        assert_eq!(unknown, expected);
    }
}
