//! A breach: the rule, the time, and the numbers.

use tresse_proto::Instant;

/// A rule that did not hold.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("at {:.6} s: {rule}: {what}", at.as_secs_f64())]
pub struct Breach {
    /// Virtual time.
    pub at: Instant,
    /// The rule, by a name that stays the same while a script is made shorter.
    pub rule: &'static str,
    /// Finding that breaks it.
    pub what: String,
}
