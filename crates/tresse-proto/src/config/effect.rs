//! Settings that have no effect beside other settings, and the warnings about them.
//!
//! The table has an entry only if the packets of an association do not depend on the value of the setting;
//! `tresse-sim/tests/simulations/effect.rs` compares them.

use super::{
    AssociationConfig, BufferAllocation, BufferSplit, ChunkRescheduling, Encryption, LossDetection, NrSack,
    StreamClass, StreamMap,
};
use tresse_policy::SackPath;

/// Settings that have no effect if `holds` is true.
struct Idle {
    settings: &'static [&'static str],
    /// The condition, written as settings.
    beside: &'static str,
    holds: fn(&AssociationConfig) -> bool,
}

const IDLE: &[Idle] = &[
    // `redundant` accounts for duplicates with any number of paths.
    Idle {
        settings: &["path_scheduler", "path_scheduler_config"],
        beside: "concurrent = false",
        holds: |config| !config.concurrent && config.path_scheduler != "redundant",
    },
    Idle {
        settings: &["path_scheduler", "path_scheduler_config"],
        beside: "max_paths = 1",
        holds: |config| config.max_paths == 1 && config.path_scheduler != "redundant",
    },
    Idle {
        settings: &["buffer_allocation", "path_suspension"],
        beside: "concurrent = false",
        holds: |config| !config.concurrent,
    },
    Idle {
        settings: &[
            "concurrent",
            "buffer_allocation",
            "path_suspension",
            "chunk_rescheduling",
            "sack_path",
            "sack_path_probes",
            "timeout_retransmit_path",
            "fast_retransmit_path",
        ],
        beside: "max_paths = 1",
        holds: |config| config.max_paths == 1,
    },
    Idle {
        settings: &["path_suspension", "experiment.split_counts", "experiment.split_overbooking"],
        beside: "buffer_split = none",
        holds: |config| config.buffer_split == BufferSplit::None,
    },
    Idle {
        settings: &["experiment.split_overbooking"],
        beside: "buffer_split = sender",
        holds: |config| config.buffer_split == BufferSplit::Sender,
    },
    Idle {
        settings: &["path_suspension"],
        beside: "buffer_allocation = equal",
        holds: |config| config.buffer_allocation == BufferAllocation::Equal,
    },
    Idle {
        settings: &["stream_classes"],
        beside: "a stream_map other than adaptive, without latency",
        holds: |config| {
            let latency = |(_, class): &(_, StreamClass)| *class == StreamClass::Latency;
            config.stream_map != StreamMap::Adaptive && !config.stream_classes.0.iter().any(latency)
        },
    },
    Idle {
        settings: &[
            "experiment.split_fast_retransmit",
            "experiment.smart_fast_retransmit",
            "experiment.multiple_fast_retransmit",
        ],
        beside: "loss_detection = rack",
        // If chunks are duplicated on several paths, missing reports still detect their losses.
        holds: |config| config.loss_detection == LossDetection::Rack && config.path_scheduler != "redundant",
    },
    Idle {
        settings: &["experiment.rescheduling_threshold"],
        beside: "chunk_rescheduling = by_deadline or off",
        holds: |config| {
            matches!(config.chunk_rescheduling, ChunkRescheduling::ByDeadline | ChunkRescheduling::Off)
        },
    },
    Idle {
        settings: &[
            "experiment.reinjection_t3",
            "experiment.opportunistic_retransmission",
            "experiment.penalisation",
        ],
        beside: "chunk_rescheduling = by_deadline",
        holds: |config| config.chunk_rescheduling == ChunkRescheduling::ByDeadline,
    },
    Idle {
        settings: &["experiment.reinjection_cut", "experiment.reinjection_t3"],
        beside: "chunk_rescheduling = off",
        holds: |config| {
            config.chunk_rescheduling == ChunkRescheduling::Off
                && !config.experiment.opportunistic_retransmission
        },
    },
    Idle {
        settings: &["sack_path_probes"],
        beside: "a sack_path other than fastest",
        holds: |config| config.sack_path != SackPath::Fastest,
    },
    Idle {
        settings: &["nr_sack_blocks"],
        beside: "an nr_sack other than everything",
        holds: |config| config.nr_sack != NrSack::Everything,
    },
    Idle {
        settings: &["sack_delay", "sack_batch"],
        beside: "sack_frequency = 1",
        holds: |config| config.sack_frequency == 1,
    },
    Idle {
        settings: &["potentially_failed_max_retrans"],
        beside: "potentially_failed = false",
        holds: |config| !config.potentially_failed,
    },
    Idle {
        settings: &["accept_stream_resets", "accept_association_resets", "accept_added_streams"],
        beside: "stream_reconfiguration = false",
        holds: |config| !config.stream_reconfiguration,
    },
    Idle {
        settings: &["authentication_hash"],
        beside: "authentication = false",
        holds: |config| !config.authentication,
    },
    Idle {
        settings: &["dynamic_addresses"],
        beside: "authentication = false and encryption = off",
        holds: |config| !config.authentication && config.encryption == Encryption::Off,
    },
    Idle {
        settings: &["key_management", "key_role", "key_drain", "rekey_megabytes"],
        beside: "encryption = off",
        holds: |config| config.encryption == Encryption::Off,
    },
    Idle {
        settings: &["zero_checksum"],
        beside: "encryption = offer or require",
        holds: |config| config.encryption != Encryption::Off,
    },
    Idle {
        settings: &["authentication_hash", "drop_reports"],
        beside: "encryption = require",
        holds: |config| config.encryption == Encryption::Require,
    },
];

impl AssociationConfig {
    /// Returns the condition beside which the setting `name` has no effect, such as `buffer_split = none`; `None` if it has an
    /// effect.
    pub fn idle_beside(&self, name: &str) -> Option<&'static str> {
        let idle = IDLE.iter().find(|idle| idle.settings.contains(&name) && (idle.holds)(self))?;
        Some(idle.beside)
    }

    /// Returns all conditions beside which the setting `name` has no effect; one of them suffices.
    pub fn idle_conditions(name: &str) -> impl Iterator<Item = &'static str> {
        IDLE.iter().filter(move |idle| idle.settings.contains(&name)).map(|idle| idle.beside)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_names_settings_that_exist() {
        for name in IDLE.iter().flat_map(|idle| idle.settings) {
            assert!(AssociationConfig::names().any(|known| known == *name), "{name}");
        }
    }

    #[test]
    fn a_setting_is_idle_beside_the_one_that_takes_its_effect() {
        let mut config = AssociationConfig::default();
        assert_eq!(config.idle_beside("path_suspension"), None);
        assert_eq!(config.idle_beside("key_drain"), Some("encryption = off"));
        config.buffer_split = BufferSplit::None;
        assert_eq!(config.idle_beside("path_suspension"), Some("buffer_split = none"));
        config.encryption = Encryption::Require;
        assert_eq!(config.idle_beside("key_drain"), None);
    }
}
