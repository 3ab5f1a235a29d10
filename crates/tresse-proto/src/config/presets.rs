//! Presets: named bundles of switch settings, applied to the defaults.

use super::AssociationConfig;
use super::switch::ConfigError;

/// One bundle: its name, what it is for, and the switches it sets.
pub struct Preset {
    /// The name.
    pub name: &'static str,
    /// What it is for.
    pub doc: &'static str,
    /// Switch names and values in their text form.
    pub settings: &'static [(&'static str, &'static str)],
}

/// All presets.
pub const PRESETS: &[Preset] = &[
    Preset { name: "cmt", doc: "All paths at once, with our recommended settings.", settings: &[] },
    // For streams in order over unlike paths with little buffer: docs/adaptive.md.
    Preset {
        name: "adaptive",
        doc: "As cmt, with streams, buffers and SACKs placed by what is measured of the paths.",
        settings: &[
            ("stream_map", "adaptive"),
            ("buffer_shares", "paths"),
            ("path_scheduler", "stms"),
            ("stream_scheduler", "round_robin"),
            ("sack_frequency", "1"),
            // What goes again in time on the other path costs it its window where a path becomes longer or dies.
            ("paths_rest", "false"),
            ("chunk_rescheduling", "off"),
            ("immediate_sack_when_full", "false"),
            ("blocked_copies", "off"),
        ],
    },
    Preset {
        name: "rfc9260",
        doc: "One path at a time, nothing beyond RFC 9260.",
        settings: &[
            ("congestion_control", "rfc9260"),
            ("concurrent", "false"),
            ("split_fast_retransmit", "false"),
            ("cwnd_update", "off"),
            ("delayed_ack", "false"),
            ("pseudo_cumulative_recovery", "false"),
            ("smart_fast_retransmit", "false"),
            ("nr_sack", "off"),
            ("sack_path", "last_data"),
            ("buffer_shares", "equal"),
            ("paths_rest", "false"),
            ("chunk_rescheduling", "off"),
            ("immediate_sack_when_full", "false"),
            ("blocked_copies", "off"),
            ("buffer_split", "none"),
            ("potentially_failed", "false"),
            ("partial_reliability", "false"),
            ("stream_reconfiguration", "false"),
            ("authentication", "false"),
            ("mtu_discovery", "false"),
            ("drop_reports", "false"),
            ("multiple_fast_retransmit", "false"),
            ("dynamic_addresses", "false"),
            ("ecn", "false"),
            ("data_with_cookie", "false"),
        ],
    },
    // The settings that the paper names, and for those it leaves unsaid the ones of its simulation model; but
    // paths take turns, where that model serves the primary one first, and gaps are reported at once, where that
    // model delays such reports (DAC): with DAC, what comes out hangs on the other unsaid settings (docs/lab.md).
    Preset {
        name: "pfldnet2010",
        doc: "Transmission Scheduling Optimizations for CMT (Dreibholz, Seggelmann, Tüxen, Rathgeb; PFLDNeT 2010).",
        settings: &[
            ("congestion_control", "rfc9260"),
            ("rto_initial", "3s"),
            ("nr_sack", "delivered"),
            ("buffer_split", "both"),
            ("split_counts", "queued"),
            ("split_overbooking", "false"),
            ("delayed_ack", "false"),
            ("sack_path", "first_data"),
            ("buffer_shares", "equal"),
            ("paths_rest", "false"),
            ("chunk_rescheduling", "off"),
            ("immediate_sack_when_full", "false"),
            ("blocked_copies", "off"),
            ("rtt_over_any_path", "false"),
            ("stream_scheduler", "round_robin"),
            ("potentially_failed", "false"),
            ("mtu_discovery", "false"),
            ("authentication", "false"),
            ("drop_reports", "false"),
            ("multiple_fast_retransmit", "false"),
            ("dynamic_addresses", "false"),
            ("ecn", "false"),
            ("data_with_cookie", "false"),
        ],
    },
    // CMT as its first papers have it. They name the retransmission policy and the receive buffer of each figure; what
    // they leave unsaid is as in their simulator: RTO.Initial of RFC 2960, one RTT sample from any SACK, SACKs to the
    // source of the last packet, no extension, and a send buffer that never limits.
    Preset {
        name: "globecom2005",
        doc: "Receive Buffer Blocking in Concurrent Multipath Transfer (Iyengar, Amer, Stewart; GLOBECOM 2005).",
        settings: &[
            ("congestion_control", "rfc9260"),
            ("rto_initial", "3s"),
            ("nr_sack", "off"),
            ("buffer_split", "none"),
            ("smart_fast_retransmit", "false"),
            ("pseudo_cumulative_recovery", "false"),
            ("sack_path", "last_data"),
            ("buffer_shares", "equal"),
            ("paths_rest", "false"),
            ("chunk_rescheduling", "off"),
            ("immediate_sack_when_full", "false"),
            ("blocked_copies", "off"),
            ("potentially_failed", "false"),
            ("send_buffer", "16MiB"),
            ("fast_retransmit_path", "same"),
            ("timeout_retransmit_path", "same"),
            ("authentication", "false"),
            ("mtu_discovery", "false"),
            ("drop_reports", "false"),
            ("multiple_fast_retransmit", "false"),
            ("dynamic_addresses", "false"),
            ("ecn", "false"),
            ("data_with_cookie", "false"),
        ],
    },
    // What the paper names: NR-SACK and both buffers split by queued bytes (its figures switch them off and on), smart
    // fast retransmission, SACKs to the path of the last packet. For the rest as `pfldnet2010`, whose authors are the
    // same: paths take turns, where their model serves the primary one first.
    Preset {
        name: "globecom2010",
        doc: "On the Use of CMT over Asymmetric Paths (Dreibholz, Becke, Rathgeb, Tüxen; GLOBECOM 2010).",
        settings: &[
            ("congestion_control", "rfc9260"),
            ("rto_initial", "3s"),
            ("nr_sack", "delivered"),
            ("buffer_split", "both"),
            ("split_counts", "queued"),
            ("split_overbooking", "false"),
            ("moved_chunk_t3", "false"),
            ("sack_path", "last_data"),
            ("buffer_shares", "equal"),
            ("paths_rest", "false"),
            ("chunk_rescheduling", "off"),
            ("immediate_sack_when_full", "false"),
            ("blocked_copies", "off"),
            ("rtt_over_any_path", "false"),
            ("potentially_failed", "false"),
            ("authentication", "false"),
            ("mtu_discovery", "false"),
            ("drop_reports", "false"),
            ("multiple_fast_retransmit", "false"),
            ("dynamic_addresses", "false"),
            ("ecn", "false"),
            ("data_with_cookie", "false"),
        ],
    },
];

pub(super) fn build(name: &str) -> Result<AssociationConfig, ConfigError> {
    let Some(preset) = PRESETS.iter().find(|preset| preset.name == name) else {
        let names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
        return Err(ConfigError::UnknownPreset { name: name.to_owned(), known: names.join(", ") });
    };
    let mut config = AssociationConfig::default();
    for (switch, value) in preset.settings {
        config.set(switch, value)?;
    }
    Ok(config)
}
