//! Stream schedulers by name. An endpoint owns a registry; there is no global one.
//!
//! Names can be added and removed while associations run. A name that is in use cannot be removed,
//! and neither can the built-in ones, which configurations may count on.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use super::guard;
use super::stream::{
    FairBandwidth, FirstCome, Priority, RoundRobin, RoundRobinPacket, StreamScheduler, WeightedFair,
    no_settings,
};
use crate::error::ScheduleError;

/// Makes a scheduler of its opaque configuration, or says in its own words what is wrong with that.
pub type StreamSchedulerFactory = Arc<dyn Fn(&str) -> Made + Send + Sync>;

/// What a factory makes of a configuration.
pub(super) type Made = Result<Box<dyn StreamScheduler>, String>;

/// The scheduler that stands in for one that fails.
pub(crate) const FALLBACK: &str = "first_come";

/// The stream schedulers that associations can be given.
pub struct Registry {
    entries: BTreeMap<String, Entry>,
}

struct Entry {
    factory: StreamSchedulerFactory,
    built_in: bool,
    /// Every scheduler built holds a clone: this one left alone means that none is in use.
    name: Arc<str>,
}

/// A scheduler from a [`Registry`]. As long as it lives its name cannot be removed.
pub struct Built {
    scheduler: Box<dyn StreamScheduler>,
    name: Arc<str>,
}

/// The name of a scheduler that an association is to have.
#[derive(Clone)]
pub(crate) struct NameInUse(#[expect(dead_code, reason = "that it is there says it all")] Arc<str>);

impl Registry {
    /// Adds a scheduler.
    ///
    /// # Errors
    /// A name that is taken.
    pub fn register(&mut self, name: &str, factory: StreamSchedulerFactory) -> Result<(), ScheduleError> {
        self.insert(name, factory, false)
    }

    /// Removes a scheduler.
    ///
    /// # Errors
    /// An unknown name, a built-in one, or one that an association still uses.
    pub fn remove(&mut self, name: &str) -> Result<(), ScheduleError> {
        let entry = self.entries.get(name).ok_or_else(|| self.unknown(name))?;
        if entry.built_in {
            return Err(ScheduleError::BuiltIn(name.to_owned()));
        }
        if Arc::strong_count(&entry.name) > 1 {
            return Err(ScheduleError::InUse(name.to_owned()));
        }
        self.entries.remove(name);
        Ok(())
    }

    /// A new scheduler of this name. `config` goes to its factory as it is. What panics in a scheduler of an
    /// application, or in its factory, goes no further than that scheduler.
    ///
    /// # Errors
    /// An unknown name, or a configuration that the scheduler refuses.
    pub fn build(&self, name: &str, config: &str) -> Result<Built, ScheduleError> {
        let entry = self.entries.get(name).ok_or_else(|| self.unknown(name))?;
        let made = if entry.built_in { (entry.factory)(config) } else { guard::make(&entry.factory, config) };
        let scheduler = made.map_err(|reason| ScheduleError::BadConfig { name: name.to_owned(), reason })?;
        Ok(Built { scheduler, name: Arc::clone(&entry.name) })
    }

    /// The names, in alphabetical order.
    pub fn names(&self) -> Vec<&str> {
        self.entries.keys().map(String::as_str).collect()
    }

    fn insert(
        &mut self,
        name: &str,
        factory: StreamSchedulerFactory,
        built_in: bool,
    ) -> Result<(), ScheduleError> {
        if self.entries.contains_key(name) {
            return Err(ScheduleError::NameTaken(name.to_owned()));
        }
        self.entries.insert(name.to_owned(), Entry { factory, built_in, name: name.into() });
        Ok(())
    }

    fn unknown(&self, name: &str) -> ScheduleError {
        let known = self.names().join(", ");
        ScheduleError::Unknown { kind: "stream scheduler", name: name.to_owned(), known }
    }
}

impl Default for Registry {
    /// The built-in schedulers: the six of RFC 8260 §3.
    ///
    /// `priority` and `weighted_fair` take initial values of streams as configuration, such as
    /// "0=1,5=10"; streams that were not negotiated do no harm in it. The others take none.
    fn default() -> Self {
        type Make = fn(&str) -> Made;
        fn plain<S: StreamScheduler + Default + 'static>(config: &str) -> Made {
            no_settings(config)?;
            Ok(Box::new(S::default()))
        }
        let schedulers: [(&str, Make); 6] = [
            (FALLBACK, plain::<FirstCome>),
            ("round_robin", plain::<RoundRobin>),
            ("round_robin_packet", plain::<RoundRobinPacket>),
            ("priority", |config| Ok(Box::new(Priority::new(config)?))),
            ("fair_bandwidth", plain::<FairBandwidth>),
            ("weighted_fair", |config| Ok(Box::new(WeightedFair::new(config)?))),
        ];
        let entry = |name: &str, make| Entry { factory: Arc::new(make), built_in: true, name: name.into() };
        Registry {
            entries: schedulers
                .into_iter()
                .map(|(name, make)| (name.to_owned(), entry(name, make)))
                .collect(),
        }
    }
}

impl Clone for Registry {
    /// The same schedulers; what uses names of the one does not use those of the other.
    fn clone(&self) -> Self {
        let anew = |(name, entry): (&String, &Entry)| {
            let Entry { factory, built_in, .. } = entry;
            let entry =
                Entry { factory: Arc::clone(factory), built_in: *built_in, name: name.as_str().into() };
            (name.clone(), entry)
        };
        Registry { entries: self.entries.iter().map(anew).collect() }
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Registry").field(&self.names()).finish()
    }
}

impl Built {
    /// What stands in for a scheduler that failed.
    pub(crate) fn fallback() -> Self {
        let scheduler = Box::new(FirstCome::default());
        Built { scheduler, name: FALLBACK.into() }
    }

    /// The name it was built by.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Keeps its name, which cannot be removed as long as this lives.
    pub(crate) fn name_in_use(&self) -> NameInUse {
        NameInUse(Arc::clone(&self.name))
    }
}

impl Deref for Built {
    type Target = dyn StreamScheduler;

    fn deref(&self) -> &Self::Target {
        self.scheduler.as_ref()
    }
}

impl DerefMut for Built {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.scheduler.as_mut()
    }
}

impl fmt::Debug for Built {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Built").field(&self.name).finish()
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
