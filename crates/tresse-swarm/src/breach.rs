//! Violations of rules.

use tresse_proto::Instant;

/// A rule that did not hold.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("at {:.6} s: {rule}: {what}", at.as_secs_f64())]
pub struct Breach {
    /// Virtual time of the violation.
    pub at: Instant,
    /// Name of the rule; it stays the same while a script is shortened.
    pub rule: &'static str,
    /// Description of the violation, with its numbers.
    pub what: String,
}

impl Breach {
    /// Returns whether `other` violates the same rule in the same way, as far as the first word of the description
    /// tells: the reason for an end, or the inconsistent part of the core.
    pub(crate) fn is_like(&self, other: &Breach) -> bool {
        let word =
            |breach: &Breach| breach.what.chars().take_while(|c| c.is_alphabetic()).collect::<String>();
        self.rule == other.rule && word(self) == word(other)
    }
}
