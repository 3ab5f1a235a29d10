//! Policies of an endpoint by name, for its associations.

use std::sync::Arc;

use tresse_proto::congestion::ControllerFactory;
use tresse_proto::schedule::{PathSchedulerFactory, StreamSchedulerFactory};
use tresse_proto::{PolicyKind, Registry, ScheduleError};

use super::Endpoint;

impl Endpoint {
    /// Returns the names of the stream schedulers that associations can use, in alphabetical order.
    pub fn stream_schedulers(&self) -> Vec<String> {
        self.drivers
            .first()
            .lock()
            .core
            .schedulers()
            .stream_scheduler_names()
            .into_iter()
            .map(str::to_owned)
            .collect()
    }

    /// Adds a stream scheduler; [`schedule`](crate::schedule) has an example of one. From now on
    /// [`Association::set_stream_scheduler`](crate::Association::set_stream_scheduler) and settings find it by its name.
    ///
    /// # Errors
    /// A name that is taken.
    pub fn register_stream_scheduler(
        &self,
        name: &str,
        factory: StreamSchedulerFactory,
    ) -> Result<(), ScheduleError> {
        self.all(|core| core.schedulers().register_stream_scheduler(name, Arc::clone(&factory)))
    }

    /// Removes a stream scheduler.
    ///
    /// # Errors
    /// An unknown name, a built-in one, or one that an association or the endpoint still uses.
    pub fn remove_stream_scheduler(&self, name: &str) -> Result<(), ScheduleError> {
        self.remove(PolicyKind::StreamScheduler, name, Registry::remove_stream_scheduler)
    }

    /// Returns the names of the path schedulers that associations can use, in alphabetical order.
    pub fn path_schedulers(&self) -> Vec<String> {
        self.drivers
            .first()
            .lock()
            .core
            .schedulers()
            .path_scheduler_names()
            .into_iter()
            .map(str::to_owned)
            .collect()
    }

    /// Adds a path scheduler. From now on the setting `path_scheduler` finds it by its name.
    ///
    /// # Errors
    /// A name that is taken.
    pub fn register_path_scheduler(
        &self,
        name: &str,
        factory: PathSchedulerFactory,
    ) -> Result<(), ScheduleError> {
        self.all(|core| core.schedulers().register_path_scheduler(name, Arc::clone(&factory)))
    }

    /// Removes a path scheduler.
    ///
    /// # Errors
    /// An unknown name, a built-in one, or one that an association or the endpoint still uses.
    pub fn remove_path_scheduler(&self, name: &str) -> Result<(), ScheduleError> {
        self.remove(PolicyKind::PathScheduler, name, Registry::remove_path_scheduler)
    }

    /// Returns the names of the congestion controllers that associations can use, in alphabetical order.
    pub fn controllers(&self) -> Vec<String> {
        self.drivers
            .first()
            .lock()
            .core
            .schedulers()
            .controller_names()
            .into_iter()
            .map(str::to_owned)
            .collect()
    }

    /// Adds a congestion controller; [`congestion`](crate::congestion) has an example of one. From now on the setting
    /// `congestion_control` finds it by its name.
    ///
    /// # Errors
    /// A name that is taken.
    pub fn register_controller(&self, name: &str, factory: ControllerFactory) -> Result<(), ScheduleError> {
        self.all(|core| core.schedulers().register_controller(name, Arc::clone(&factory)))
    }

    /// Removes a congestion controller.
    ///
    /// # Errors
    /// An unknown name, a built-in one, or one that an association still uses.
    pub fn remove_controller(&self, name: &str) -> Result<(), ScheduleError> {
        self.remove(PolicyKind::CongestionController, name, Registry::remove_controller)
    }

    /// Sets the stream scheduler of new associations, those that peers set up and those of [`Endpoint::connect`].
    /// Existing associations keep theirs.
    ///
    /// # Errors
    /// An unknown name, or a configuration that the scheduler refuses; the old scheduler then stays.
    pub fn set_stream_scheduler(&self, name: &str, config: &str) -> Result<(), ScheduleError> {
        self.all(|core| core.set_stream_scheduler(name, config))
    }

    /// Removes a policy from all cores, unless one of them uses it.
    fn remove(
        &self,
        kind: PolicyKind,
        name: &str,
        remove: impl Fn(&mut Registry, &str) -> Result<(), ScheduleError>,
    ) -> Result<(), ScheduleError> {
        // The locks are taken one after the other, always in the same order.
        let mut states: Vec<_> = self.drivers.iter().map(|shared| shared.lock()).collect();
        for state in &mut states {
            state.core.schedulers().removable(kind, name)?;
        }
        states.iter_mut().try_for_each(|state| remove(state.core.schedulers(), name))
    }
}
