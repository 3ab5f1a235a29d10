//! Congestion controllers over all windows of an association.
//!
//! A controller gets the windows and the report of a SACK on each path, in bytes of DATA chunks, and changes the
//! windows. One controller serves all paths, so coupled algorithms (LIA, OLIA, BALIA, CMT/RP) need no interface of
//! their own. Independent of chunks and timers, which the core owns.
//!
//! Applications implement [`Controller`], and register it by name in a [`Registry`](crate::Registry).
//!
//! # A controller of one's own
//!
//! Additive increase, multiplicative decrease, with factors of its own and slow start as in RFC 9260:
//!
//! ```
//! use std::sync::Arc;
//!
//! use tresse_policy::Registry;
//! use tresse_policy::congestion::{Ack, Controller, Situation, Sizes};
//!
//! /// Two packets more for each window, a quarter less for each loss.
//! struct Gentle;
//!
//! impl Controller for Gentle {
//!     fn on_ack(&mut self, situation: &Situation<'_>, ack: &Ack) -> Sizes {
//!         let window = situation.window();
//!         if !ack.may_grow || !ack.fully_used {
//!             window.unchanged()
//!         } else if window.in_slow_start() {
//!             window.grown_by(ack.bytes.min(window.packet))
//!         } else {
//!             window.grown_by(2 * window.packet * ack.bytes / window.cwnd)
//!         }
//!     }
//!     fn on_loss(&mut self, situation: &Situation<'_>, _ack: &Ack) -> Sizes {
//!         let window = situation.window();
//!         window.cut_to((window.cwnd / 4 * 3).max(4 * window.packet))
//!     }
//! }
//!
//! let mut registry = Registry::default();
//! registry.register_controller("gentle", Arc::new(|_config| Ok(Box::new(Gentle))))?;
//! assert!(registry.controller_names().contains(&"gentle"));
//! # Ok::<(), tresse_policy::ScheduleError>(())
//! ```

mod balia;
mod bbr;
mod bottleneck;
mod cmt_rp_v1;
mod cmt_rp_v2;
pub(crate) mod control;
mod controller;
mod cubic;
mod delivery;
mod group;
mod guard;
mod hystart;
mod lia;
mod olia;
mod pooled;
mod recovery;
mod rfc9260;
mod steps;
pub(crate) mod window;

pub use crate::time::Instant;
pub use controller::{Ack, Controller, ControllerFactory, PathWindow, Situation, Sizes};

pub(crate) use control::CongestionControl;

use std::sync::Arc;

use crate::names::{NameInUse, no_settings};
use crate::panics::Made;

use balia::Balia;
use bbr::Bbr;
use cubic::Cubic;
use lia::Lia;
use olia::Olia;
use rfc9260::Rfc9260;

/// Factory of the controllers of one name.
#[derive(Clone)]
pub(crate) enum Make {
    /// A built-in controller.
    BuiltIn(BuiltIn),
    /// A controller that implements [`Controller`], such as those of applications.
    Brought(ControllerFactory),
}

type BuiltIn = fn() -> Box<dyn CongestionControl>;

impl Make {
    /// Makes a controller with this configuration; `name` is the name under which it was registered.
    ///
    /// # Errors
    /// The controller's reason to refuse its configuration; built-in ones take none.
    pub(crate) fn make(&self, config: &str, name: impl FnOnce() -> NameInUse) -> Made<dyn CongestionControl> {
        match self {
            Make::BuiltIn(make) => no_settings(config).map(|()| make()),
            Make::Brought(factory) => guard::make(factory, config, name()),
        }
    }
}

/// The built-in controllers, by the names that the switch `congestion_control` has for them.
pub(crate) fn built_in() -> impl Iterator<Item = (&'static str, Make)> {
    let built_in: [(&str, BuiltIn); 8] = [
        ("rfc9260", || Box::new(Rfc9260)),
        ("cubic", || Box::new(Cubic::<false>::default())),
        ("coupled_cubic", || Box::new(Cubic::<true>::default())),
        ("cmt_rp_v1", || Box::new(cmt_rp_v1::controller())),
        ("cmt_rp_v2", || Box::new(cmt_rp_v2::controller())),
        ("lia", || Box::new(Lia)),
        ("olia", || Box::new(Olia::default())),
        ("balia", || Box::new(Balia)),
    ];
    // BBR sets a pacing rate and uses delivery rates, so it implements the trait of applications.
    let bbr: ControllerFactory =
        Arc::new(|config| no_settings(config).map(|()| Box::new(Bbr::default()) as _));
    let built_in = built_in.into_iter().map(|(name, make)| (name, Make::BuiltIn(make)));
    built_in.chain([("bbr", Make::Brought(bbr))])
}

#[cfg(test)]
mod tests;
