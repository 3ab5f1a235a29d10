//! Factories of schedulers: those of applications, and the built-in ones by name.

use std::sync::Arc;

use super::path::{self, PathScheduler};
use super::stream::{
    FairBandwidth, FirstCome, Priority, RoundRobin, RoundRobinPacket, StreamScheduler, WeightedFair,
};
use crate::names::no_settings;
use crate::panics::Made;

/// Makes a stream scheduler from its configuration, or returns the reason for which the scheduler refuses it. The core
/// does not interpret the configuration.
pub type StreamSchedulerFactory = Arc<dyn Fn(&str) -> Made<dyn StreamScheduler> + Send + Sync>;

/// Makes a path scheduler from its configuration, or returns the reason for which the scheduler refuses it. The core
/// does not interpret the configuration.
pub type PathSchedulerFactory = Arc<dyn Fn(&str) -> Made<dyn PathScheduler> + Send + Sync>;

/// The stream scheduler that replaces one that fails.
pub const FALLBACK: &str = "first_come";

/// The six stream schedulers of RFC 8260 §3. Three of them also have their names in Linux: `fcfs`, `prio` and `wfq`
/// (the paper on customisable scheduling).
///
/// `priority` and `weighted_fair` take initial values of streams as configuration, such as "0=1,5=10", or one for each
/// stream from 0 on, such as "1,10"; values of streams that were not negotiated have no effect. The other schedulers
/// take no configuration.
pub(crate) fn stream_schedulers() -> impl Iterator<Item = (&'static str, StreamSchedulerFactory)> {
    type Make = fn(&str) -> Made<dyn StreamScheduler>;
    fn plain<S: StreamScheduler + Default + 'static>(config: &str) -> Made<dyn StreamScheduler> {
        no_settings(config)?;
        Ok(Box::new(S::default()))
    }
    let built_in: [(&str, Make); 9] = [
        (FALLBACK, plain::<FirstCome>),
        ("round_robin", plain::<RoundRobin>),
        ("round_robin_packet", plain::<RoundRobinPacket>),
        ("priority", |config| Ok(Box::new(Priority::new(config)?))),
        ("fair_bandwidth", plain::<FairBandwidth>),
        ("weighted_fair", |config| Ok(Box::new(WeightedFair::new(config)?))),
        ("fcfs", plain::<FirstCome>),
        ("prio", |config| Ok(Box::new(Priority::new(config)?))),
        ("wfq", |config| Ok(Box::new(WeightedFair::new(config)?))),
    ];
    built_in.into_iter().map(|(name, make)| (name, Arc::new(make) as StreamSchedulerFactory))
}

/// The path schedulers of docs/path-schedulers.md; they take no configuration.
pub(crate) fn path_schedulers() -> impl Iterator<Item = (&'static str, PathSchedulerFactory)> {
    path::BUILT_IN.iter().map(|&(name, make)| {
        let factory = move |config: &str| no_settings(config).map(|()| make());
        (name, Arc::new(factory) as PathSchedulerFactory)
    })
}
