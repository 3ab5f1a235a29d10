//! The path that lost least lately, and of paths that are alike in that the faster one.
//!
//! For links whose losses come and go, radio above all: what is lost on one path blocks what arrived on the others. Loses
//! where a path has to be tried to find out that it is clean again. The configuration is the difference in percent that
//! counts as none, 1 unless given. The same policy as cleanest.py.

use std::sync::Arc;

use tresse_policy::schedule::{Decision, Offer, PathScheduler, PathSchedulerFactory, PathView};
use tresse_policy::{Instant, PathId};

/// Paths in steps of so much loss, from 0 to 1.
struct Cleanest {
    step: f64,
}

impl Cleanest {
    /// How dirty a path is, in steps.
    fn dirt(&self, path: &PathView) -> u32 {
        (path.loss / self.step) as u32
    }
}

impl PathScheduler for Cleanest {
    fn name(&self) -> &'static str {
        "cleanest"
    }

    fn decide(&mut self, _now: Instant, offer: &Offer<'_>) -> Decision {
        offer.send_on_least(|path| (self.dirt(path), path.srtt.is_none(), path.srtt, path.id))
    }

    fn on_sent(&mut self, _path: PathId, _bytes: usize) {}
}

/// What makes one of these schedulers for each association.
pub fn factory() -> PathSchedulerFactory {
    Arc::new(|config| {
        let percent = if config.is_empty() { Ok(1.0) } else { config.parse::<f64>() };
        match percent {
            Ok(percent) if percent > 0.0 && percent <= 100.0 => {
                Ok(Box::new(Cleanest { step: percent / 100.0 }))
            }
            _ => Err(format!("\"{config}\" is no percentage above 0, such as 0.5")),
        }
    })
}
