//! Scalable TCP (Kelly 2003): a window grows by a share of itself and loses a share of itself, so that the time between
//! losses does not depend on how large it is.
//!
//! For long and fast paths, where one packet more for each window takes minutes to make good a loss. Loses, in fairness,
//! where a path is shared: who has more gets more. A window too small for that grows as RFC 9260 says. The configuration
//! is the percentage that a loss takes away, 12.5 unless given. The same as scalable.c and scalable.py.

use std::sync::Arc;

use tresse_policy::congestion::{Ack, Controller, ControllerFactory, Situation, Sizes};

/// Every path by itself, with nothing to remember.
struct Scalable {
    /// What a loss leaves, from 0 to 1.
    keeps: f64,
}

impl Controller for Scalable {
    fn on_ack(&mut self, situation: &Situation<'_>, ack: &Ack) -> Sizes {
        let window = situation.window();
        if !ack.may_grow || !ack.fully_used {
            window.unchanged()
        } else if window.in_slow_start() {
            window.grown_by(ack.bytes.min(window.packet))
        } else {
            window.grown_by((ack.bytes / 100).max(window.packet * ack.bytes / window.cwnd))
        }
    }

    fn on_loss(&mut self, situation: &Situation<'_>, _ack: &Ack) -> Sizes {
        let window = situation.window();
        window.cut_to(((window.cwnd as f64 * self.keeps) as usize).max(4 * window.packet))
    }
}

/// What makes one of these controllers for each association.
pub fn factory() -> ControllerFactory {
    Arc::new(|config| {
        let percent = if config.is_empty() { Ok(12.5) } else { config.parse::<f64>() };
        match percent {
            Ok(percent) if percent > 0.0 && percent < 100.0 => {
                Ok(Box::new(Scalable { keeps: 1.0 - percent / 100.0 }))
            }
            _ => Err(format!("\"{config}\" is no percentage between 0 and 100, such as 12.5")),
        }
    })
}
