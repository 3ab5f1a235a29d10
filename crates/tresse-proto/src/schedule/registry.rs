//! Schedulers by name. An endpoint owns a registry; there is no global one.
//!
//! Names can be added and removed while associations run. A name that is in use cannot be removed,
//! and neither can the built-in ones, which configurations may count on.

use std::fmt;
use std::sync::Arc;

use super::built::Built;
use super::guard;
use super::names::{NameInUse, Names};
use super::path::{self, PathScheduler};
use super::stream::{
    FairBandwidth, FirstCome, Priority, RoundRobin, RoundRobinPacket, StreamScheduler, WeightedFair,
    no_settings,
};
use crate::config::AssociationConfig;
use crate::error::ScheduleError;

/// Makes a stream scheduler of its opaque configuration, or says in its own words what is wrong with that.
pub type StreamSchedulerFactory = Arc<dyn Fn(&str) -> Made<dyn StreamScheduler> + Send + Sync>;

/// Makes a path scheduler of its opaque configuration, or says in its own words what is wrong with that.
pub type PathSchedulerFactory = Arc<dyn Fn(&str) -> Made<dyn PathScheduler> + Send + Sync>;

/// What a factory makes of a configuration.
pub(super) type Made<S> = Result<Box<S>, String>;

/// The stream scheduler that stands in for one that fails.
pub(crate) const FALLBACK: &str = "first_come";

/// The stream schedulers and the path schedulers that associations can be given.
pub struct Registry {
    streams: Names<StreamSchedulerFactory>,
    paths: Names<PathSchedulerFactory>,
}

/// The names of the schedulers that an association is to have.
#[derive(Clone)]
pub(crate) struct NamesInUse {
    /// That of the stream scheduler.
    pub(crate) stream: NameInUse,
    /// That of the path scheduler.
    #[expect(dead_code, reason = "that it is there says it all")]
    pub(crate) path: NameInUse,
}

impl Registry {
    /// Adds a stream scheduler.
    ///
    /// # Errors
    /// A name that is taken.
    pub fn register(&mut self, name: &str, factory: StreamSchedulerFactory) -> Result<(), ScheduleError> {
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

    /// Removes a stream scheduler.
    ///
    /// # Errors
    /// An unknown name, a built-in one, or one that an association still uses.
    pub fn remove(&mut self, name: &str) -> Result<(), ScheduleError> {
        self.streams.remove(name)
    }

    /// Removes a path scheduler.
    ///
    /// # Errors
    /// An unknown name, a built-in one, or one that an association still uses.
    pub fn remove_path_scheduler(&mut self, name: &str) -> Result<(), ScheduleError> {
        self.paths.remove(name)
    }

    /// A new stream scheduler of this name. `config` goes to its factory as it is. What panics in a scheduler of an
    /// application, or in its factory, goes no further than that scheduler.
    ///
    /// # Errors
    /// An unknown name, or a configuration that the scheduler refuses.
    pub fn build(&self, name: &str, config: &str) -> Result<Built, ScheduleError> {
        let entry = self.streams.find(name)?;
        if name == FALLBACK {
            no_settings(config).map_err(refusal(name))?;
            return Ok(Built::first_come(entry.name_in_use()));
        }
        let made =
            if entry.built_in { (entry.factory)(config) } else { guard::make_stream(&entry.factory, config) };
        Ok(Built::new(made.map_err(refusal(name))?, entry.name_in_use()))
    }

    /// A new path scheduler of this name, as [`build`](Self::build) makes stream schedulers. As long as it lives its
    /// name cannot be removed.
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
        made.map_err(refusal(name))
    }

    /// Takes hold of the names in `config`.
    ///
    /// # Errors
    /// An unknown name, or a configuration that a scheduler refuses, after the setting and the name.
    pub(crate) fn reserve<'c>(
        &self,
        config: &'c AssociationConfig,
    ) -> Result<NamesInUse, (&'static str, &'c str, ScheduleError)> {
        let (stream, path) = (&config.stream_scheduler, &config.path_scheduler);
        let stream = self
            .build(stream, &config.stream_scheduler_config)
            .map_err(|error| ("stream_scheduler", stream.as_str(), error))?;
        let path = self
            .build_path_scheduler(path, &config.path_scheduler_config)
            .and_then(|_| self.paths.find(path))
            .map_err(|error| ("path_scheduler", path.as_str(), error))?;
        Ok(NamesInUse { stream: stream.name_in_use(), path: path.name_in_use() })
    }

    /// The names of the stream schedulers, in alphabetical order.
    pub fn names(&self) -> Vec<&str> {
        self.streams.list()
    }

    /// The names of the path schedulers, in alphabetical order.
    pub fn path_scheduler_names(&self) -> Vec<&str> {
        self.paths.list()
    }
}

fn refusal(name: &str) -> impl FnOnce(String) -> ScheduleError {
    move |reason| ScheduleError::BadConfig { name: name.to_owned(), reason }
}

impl Default for Registry {
    /// The built-in schedulers: of streams the six of RFC 8260 §3, of paths those of docs/path-schedulers.md.
    ///
    /// `priority` and `weighted_fair` take initial values of streams as configuration, such as
    /// "0=1,5=10"; streams that were not negotiated do no harm in it. The others take none.
    fn default() -> Self {
        type Make = fn(&str) -> Made<dyn StreamScheduler>;
        fn plain<S: StreamScheduler + Default + 'static>(config: &str) -> Made<dyn StreamScheduler> {
            no_settings(config)?;
            Ok(Box::new(S::default()))
        }
        let streams: [(&str, Make); 6] = [
            (FALLBACK, plain::<FirstCome>),
            ("round_robin", plain::<RoundRobin>),
            ("round_robin_packet", plain::<RoundRobinPacket>),
            ("priority", |config| Ok(Box::new(Priority::new(config)?))),
            ("fair_bandwidth", plain::<FairBandwidth>),
            ("weighted_fair", |config| Ok(Box::new(WeightedFair::new(config)?))),
        ];
        let streams = streams.map(|(name, make)| (name, Arc::new(make) as StreamSchedulerFactory));
        let paths = path::BUILT_IN.iter().map(|&(name, make)| {
            let factory = move |config: &str| no_settings(config).map(|()| make());
            (name, Arc::new(factory) as PathSchedulerFactory)
        });
        Registry {
            streams: Names::built_in("stream scheduler", streams),
            paths: Names::built_in("path scheduler", paths),
        }
    }
}

impl Clone for Registry {
    /// The same schedulers; what uses names of the one does not use those of the other.
    fn clone(&self) -> Self {
        Registry { streams: self.streams.anew(), paths: self.paths.anew() }
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry")
            .field("streams", &self.names())
            .field("paths", &self.path_scheduler_names())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUILT_IN: [&str; 6] =
        ["fair_bandwidth", "first_come", "priority", "round_robin", "round_robin_packet", "weighted_fair"];

    fn factory() -> StreamSchedulerFactory {
        Arc::new(|config| match config {
            "" | "fast" => Ok(Box::new(FirstCome::default())),
            _ => Err(format!("\"{config}\" is not \"fast\"")),
        })
    }

    #[test]
    fn the_built_in_schedulers_are_there_and_stay() {
        let mut registry = Registry::default();
        assert_eq!(registry.names(), BUILT_IN);
        for name in BUILT_IN {
            assert!(registry.build(name, "").is_ok_and(|built| built.name() == name && built.is_empty()));
            assert_eq!(registry.remove(name), Err(ScheduleError::BuiltIn(name.to_owned())));
        }
    }

    #[test]
    fn a_name_is_registered_once() {
        let mut registry = Registry::default();
        assert_eq!(registry.register("mine", factory()), Ok(()));
        assert_eq!(registry.register("mine", factory()), Err(ScheduleError::NameTaken("mine".to_owned())));
        let taken = registry.register("first_come", factory());
        assert_eq!(taken, Err(ScheduleError::NameTaken("first_come".to_owned())));
    }

    #[test]
    fn a_name_in_use_cannot_be_removed_until_its_last_user_is_gone() {
        let mut registry = Registry::default();
        registry.register("mine", factory()).unwrap();
        let first = registry.build("mine", "").unwrap();
        let second = registry.build("mine", "fast").unwrap();
        assert_eq!(registry.remove("mine"), Err(ScheduleError::InUse("mine".to_owned())));
        drop(first);
        assert_eq!(registry.remove("mine"), Err(ScheduleError::InUse("mine".to_owned())));
        drop(second);
        assert_eq!(registry.remove("mine"), Ok(()));
        assert!(registry.build("mine", "").is_err());
    }

    #[test]
    fn unknown_names_and_refused_configurations_are_explained() {
        let mut registry = Registry::default();
        let message = |error: ScheduleError| error.to_string();
        assert_eq!(
            registry.build("fifo", "").map(|_| ()).map_err(message),
            Err(format!("unknown stream scheduler \"fifo\"; registered are {}", BUILT_IN.join(", ")))
        );
        assert!(matches!(registry.remove("fifo"), Err(ScheduleError::Unknown { .. })));
        registry.register("mine", factory()).unwrap();
        assert_eq!(
            registry.build("mine", "slow").map(|_| ()).map_err(message),
            Err("scheduler \"mine\" refused its configuration: \"slow\" is not \"fast\"".to_owned())
        );
        assert!(registry.build("round_robin", "x").is_err());
        assert_eq!(registry.remove("mine"), Ok(()), "what was refused is not in use");
    }
}
