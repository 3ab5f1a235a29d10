//! What goes wrong on the wire, after the queue: loss models.
//!
//! A lost packet has taken its turn in the queue and its time on the transmitter.

use crate::seed::{Generator, unit_interval};

/// Which packets are lost.
#[derive(Copy, Clone, PartialEq, Debug, Default)]
pub enum Loss {
    /// None.
    #[default]
    None,
    /// Each one by itself with this probability.
    Uniform(f64),
}

impl Loss {
    /// Whether the next packet is lost.
    pub(super) fn strikes(&self, generator: &mut Generator) -> bool {
        match *self {
            Loss::None => false,
            Loss::Uniform(probability) => unit_interval(generator) < probability,
        }
    }
}
