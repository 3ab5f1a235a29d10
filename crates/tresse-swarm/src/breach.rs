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

impl Breach {
    /// Returns whether this is the same rule, broken in the same way as far as the first word tells: the kind of an end, the
    /// part of the core that disagrees.
    pub(crate) fn is_like(&self, other: &Breach) -> bool {
        let word =
            |breach: &Breach| breach.what.chars().take_while(|c| c.is_alphabetic()).collect::<String>();
        self.rule == other.rule && word(self) == word(other)
    }
}
