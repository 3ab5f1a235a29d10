//! Buffer policy: the part of a shared buffer that a path may hold, as one typed value that stands for several settings.

use super::{AssociationConfig, BufferAllocation, BufferSplit, SplitCounts};

/// Allocation of the buffers to the paths.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum BufferPolicy {
    /// Any path may fill either buffer (`buffer_split = none`).
    None,
    /// Equal parts (`buffer_allocation = equal`).
    Equal(EqualParts),
    /// Allocation by the sharing policy (docs/sharing.md).
    Adaptive {
        /// True if allocations always hold (`buffer_allocation = paths`). Otherwise they hold only while the buffer is short; at
        /// other times the parts are equal.
        always: bool,
        /// True if paths are suspended that cost the others more than they deliver (`path_suspension`).
        suspend: bool,
        /// The buffers that are split, and the counting of equal parts.
        parts: EqualParts,
    },
}

/// Buffer splitting (GLOBECOM 2010 paper, section IV).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct EqualParts {
    /// The buffers that are split (`buffer_split`).
    pub buffers: BufferSplit,
    /// Bytes of a path that are counted (`experiment.split_counts`).
    pub counts: SplitCounts,
    /// True if a path may exceed its part of the receive buffer by one packet (`experiment.split_overbooking`).
    pub overbook: bool,
}

impl BufferPolicy {
    /// Returns the buffers that are split.
    pub fn split(&self) -> BufferSplit {
        match self {
            BufferPolicy::None => BufferSplit::None,
            BufferPolicy::Equal(parts) | BufferPolicy::Adaptive { parts, .. } => parts.buffers,
        }
    }

    /// Returns whether the policy suspends paths.
    pub fn suspends(&self) -> bool {
        matches!(self, BufferPolicy::Adaptive { suspend: true, .. })
    }
}

impl AssociationConfig {
    /// Returns the buffer policy that follows from the settings.
    pub fn buffer_policy(&self) -> BufferPolicy {
        let parts = EqualParts {
            buffers: self.buffer_split,
            counts: self.experiment.split_counts,
            overbook: self.experiment.split_overbooking,
        };
        match self.buffer_allocation {
            _ if self.buffer_split == BufferSplit::None => BufferPolicy::None,
            BufferAllocation::Equal => BufferPolicy::Equal(parts),
            shares => BufferPolicy::Adaptive {
                always: shares == BufferAllocation::Paths,
                suspend: self.path_suspension,
                parts,
            },
        }
    }

    /// Changes the settings to this buffer policy. Settings that the policy does not contain keep their values.
    pub fn set_buffer_policy(&mut self, policy: BufferPolicy) {
        self.buffer_split = policy.split();
        if let BufferPolicy::Equal(parts) | BufferPolicy::Adaptive { parts, .. } = policy {
            self.experiment.split_counts = parts.counts;
            self.experiment.split_overbooking = parts.overbook;
        }
        match policy {
            BufferPolicy::None => {}
            BufferPolicy::Equal(_) => self.buffer_allocation = BufferAllocation::Equal,
            BufferPolicy::Adaptive { always, suspend, .. } => {
                self.buffer_allocation =
                    if always { BufferAllocation::Paths } else { BufferAllocation::WhenShort };
                self.path_suspension = suspend;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_presets_have_the_policies_of_their_papers() {
        let policy = |name| AssociationConfig::preset(name).expect("a preset").buffer_policy();
        let parts =
            EqualParts { buffers: BufferSplit::Both, counts: SplitCounts::Outstanding, overbook: false };
        assert_eq!(policy("cmt"), BufferPolicy::Adaptive { always: false, suspend: true, parts });
        assert_eq!(policy("adaptive"), BufferPolicy::Adaptive { always: true, suspend: false, parts });
        assert_eq!(policy("rfc9260"), BufferPolicy::None);
        let queued = EqualParts { counts: SplitCounts::Queued, ..parts };
        assert_eq!(policy("globecom2010"), BufferPolicy::Equal(queued));
    }

    #[test]
    fn a_policy_that_is_set_is_the_policy_that_there_is() {
        let parts = EqualParts { buffers: BufferSplit::Sender, counts: SplitCounts::Queued, overbook: true };
        for policy in [
            BufferPolicy::None,
            BufferPolicy::Equal(parts),
            BufferPolicy::Adaptive { always: true, suspend: false, parts },
            BufferPolicy::Adaptive { always: false, suspend: true, parts },
        ] {
            let mut config = AssociationConfig::default();
            config.set_buffer_policy(policy);
            assert_eq!(config.buffer_policy(), policy);
            assert_eq!(
                policy.suspends(),
                policy.split() == BufferSplit::Sender
                    && config.path_suspension
                    && config.buffer_allocation != BufferAllocation::Equal
            );
        }
    }
}
