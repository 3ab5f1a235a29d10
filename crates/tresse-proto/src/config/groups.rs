//! Groups of settings for their documentation. Settings that only a paper's figure or an ablation needs are last.

use super::switch::SwitchInfo;

/// Settings that belong together.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Group {
    /// The heading.
    pub name: &'static str,
    /// The names of the settings.
    pub settings: &'static [&'static str],
}

impl Group {
    /// Returns the settings of the group, in its order.
    pub fn select<'s>(&self, settings: &'s [SwitchInfo]) -> impl Iterator<Item = &'s SwitchInfo> {
        self.settings.iter().filter_map(|name| settings.iter().find(|info| info.name == *name))
    }
}

/// The groups of an association's settings; each setting is in one.
pub const GROUPS: &[Group] = &[
    Group {
        name: "Timers and failures",
        settings: &[
            "rto_initial",
            "rto_min",
            "rto_max",
            "association_max_retrans",
            "path_max_retrans",
            "max_init_retransmits",
            "heartbeat_interval",
            "potentially_failed",
            "potentially_failed_max_retrans",
            "potentially_failed_window",
            "primary_switchover_max_retrans",
        ],
    },
    Group {
        name: "Buffers and streams",
        settings: &[
            "send_buffer",
            "receive_buffer",
            "outbound_streams",
            "inbound_streams",
            "partial_delivery_point",
            "data_with_cookie",
        ],
    },
    Group {
        name: "Paths",
        settings: &[
            "concurrent",
            "path_pairs",
            "max_paths",
            "list_addresses",
            "address_scopes",
            "mtu",
            "mtu_discovery",
        ],
    },
    Group {
        name: "Scheduling",
        settings: &[
            "path_scheduler",
            "path_scheduler_config",
            "stream_map",
            "stream_classes",
            "stream_scheduler",
            "stream_scheduler_config",
        ],
    },
    Group {
        name: "Sharing of buffers among paths",
        settings: &[
            "buffer_split",
            "buffer_allocation",
            "path_suspension",
            "chunk_rescheduling",
            "immediate_sack_when_full",
        ],
    },
    Group {
        name: "Congestion control and losses",
        settings: &[
            "congestion_control",
            "congestion_control_config",
            "pacing",
            "max_burst",
            "initial_window",
            "loss_detection",
            "timeout_retransmit_path",
            "fast_retransmit_path",
            "ecn",
        ],
    },
    Group {
        name: "Acknowledgements",
        settings: &[
            "sack_delay",
            "sack_frequency",
            "sack_batch",
            "sack_path",
            "sack_path_probes",
            "nr_sack",
            "nr_sack_blocks",
            "delayed_ack",
        ],
    },
    Group {
        name: "Encryption",
        settings: &["encryption", "key_management", "key_role", "key_drain", "rekey_megabytes"],
    },
    Group {
        name: "Extensions",
        settings: &[
            "partial_reliability",
            "stream_reconfiguration",
            "accept_stream_resets",
            "accept_association_resets",
            "accept_added_streams",
            "dynamic_addresses",
            "interleaving",
            "authentication",
            "authenticated_chunks",
            "authentication_hash",
            "drop_reports",
            "adaptation",
            "zero_checksum",
        ],
    },
    Group {
        name: "For figures of papers and ablations",
        settings: &[
            "experiment.min_ssthresh",
            "experiment.split_fast_retransmit",
            "experiment.smart_fast_retransmit",
            "experiment.multiple_fast_retransmit",
            "experiment.cwnd_update",
            "experiment.pseudo_cumulative_recovery",
            "experiment.rtt_over_any_path",
            "experiment.peer_window_test",
            "experiment.split_counts",
            "experiment.split_overbooking",
            "experiment.rescheduling_threshold",
            "experiment.reinjection_cut",
            "experiment.reinjection_t3",
            "experiment.opportunistic_retransmission",
            "experiment.penalisation",
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::AssociationConfig;

    #[test]
    fn each_setting_is_in_one_group() {
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|group| group.settings).copied().collect();
        let mut all: Vec<&str> = AssociationConfig::names().collect();
        grouped.sort_unstable();
        all.sort_unstable();
        assert_eq!(grouped, all);
    }
}
