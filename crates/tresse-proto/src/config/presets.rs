//! Presets: named sets of settings, applied to the defaults.

use super::AssociationConfig;
use super::switch::ConfigError;

/// A named set of settings, with its purpose.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Preset {
    /// The name.
    pub name: &'static str,
    /// Purpose of the preset.
    pub doc: &'static str,
    /// Settings and values as text, in layers: those shared with other presets first, each setting once.
    layers: &'static [&'static [(&'static str, &'static str)]],
}

impl Preset {
    /// Returns settings and values as text.
    pub fn settings(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.layers.iter().copied().flatten().copied()
    }
}

/// Switches off all that RFC 9260 does not have, except what the protocol of a paper needs.
const PLAIN: &[(&str, &str)] = &[
    ("congestion_control", "rfc9260"),
    ("max_burst", "4"),
    ("pacing", "false"),
    ("rto_min", "1s"),
    ("association_max_retrans", "10"),
    ("path_max_retrans", "5"),
    ("loss_detection", "rfc9260"),
    ("buffer_allocation", "equal"),
    ("path_suspension", "false"),
    ("chunk_rescheduling", "off"),
    ("immediate_sack_when_full", "false"),
    ("sack_batch", "1"),
    ("potentially_failed", "false"),
    ("authentication", "false"),
    ("mtu_discovery", "false"),
    ("drop_reports", "false"),
    ("experiment.multiple_fast_retransmit", "false"),
    ("dynamic_addresses", "false"),
    ("ecn", "false"),
    ("data_with_cookie", "false"),
];

/// The papers of 2010. They have the same authors and the same simulation model, so one set of settings serves both.
///
/// Their texts specify NR-SACK, both buffers split by queued bytes, smart fast retransmission, and the window reduction of the
/// old path for a rescheduled chunk. The other settings follow the model that the authors published with INET.
const MODEL_OF_2010: &[(&str, &str)] = &[
    // RFC 4960, which both papers cite, has 3 s.
    ("rto_initial", "3s"),
    ("nr_sack", "delivered"),
    ("buffer_split", "both"),
    ("experiment.split_counts", "queued"),
    ("experiment.split_overbooking", "false"),
    ("experiment.reinjection_cut", "bytes"),
    // The settings from here on follow the model.
    ("experiment.reinjection_t3", "false"),
    ("experiment.rtt_over_any_path", "false"),
    ("delayed_ack", "true"),
    ("path_scheduler", "in_order"),
    // The model's "standard": the SACK is sent to the source of the first DATA since the last SACK. The paper on asymmetric paths
    // writes about SCTP in general that a SACK takes the path of the last received packet.
    ("sack_path", "first_data"),
    ("experiment.peer_window_test", "sack"),
    ("stream_scheduler", "round_robin"),
];

/// Declares the presets: a documented constant for each, and the list of all.
macro_rules! presets {
    ($(#[doc = $doc:literal] $constant:ident = $name:literal: $layers:expr;)+) => {
        impl Preset {
            $(
                #[doc = $doc]
                pub const $constant: Preset =
                    Preset { name: $name, doc: $doc.trim_ascii(), layers: $layers };
            )+
        }

        /// All presets.
        pub const PRESETS: &[Preset] = &[$(Preset::$constant),+];
    };
}

presets! {
    /// All paths at once, with our recommended settings.
    CMT = "cmt": &[];
    // For ordered streams over unlike paths with small buffers: docs/adaptive.md.
    /// As cmt, with the adaptive stream map, and buffer allocation by measured BDP at all times.
    ADAPTIVE = "adaptive": &[&[
        ("stream_map", "adaptive"),
        ("buffer_allocation", "paths"),
        ("path_scheduler", "stms"),
        ("stream_scheduler", "round_robin"),
        ("sack_frequency", "1"),
        // A rescheduled chunk reduces the window of its path when this path becomes longer or fails.
        ("path_suspension", "false"),
        ("chunk_rescheduling", "off"),
        ("immediate_sack_when_full", "false"),
    ]];
    /// One path at a time, nothing beyond RFC 9260.
    RFC9260 = "rfc9260": &[
        PLAIN,
        &[
            ("concurrent", "false"),
            ("path_scheduler", "round_robin"),
            ("experiment.split_fast_retransmit", "false"),
            ("experiment.cwnd_update", "off"),
            ("delayed_ack", "false"),
            ("experiment.pseudo_cumulative_recovery", "false"),
            ("experiment.smart_fast_retransmit", "false"),
            ("nr_sack", "off"),
            ("sack_path", "last_data"),
            ("buffer_split", "none"),
            ("partial_reliability", "false"),
            ("stream_reconfiguration", "false"),
        ],
    ];
    /// Transmission Scheduling Optimizations for CMT (Dreibholz, Seggelmann, Tüxen, Rathgeb; PFLDNeT 2010).
    PFLDNET2010 = "pfldnet2010": &[PLAIN, MODEL_OF_2010];
    // CMT as in its first papers. They specify the retransmission policy and the receive buffer of each figure, and cite RFC
    // 2960: an initial window of two packets, a window of at least two packets after a loss, and RTO.Initial of 3 s. New data is
    // sent "as bandwidth becomes available on corresponding paths", and if several paths have bandwidth, "arbitrarily": here on
    // the path with the most room. The rest is as in their simulator: one RTT sample from any SACK, SACKs to the source of the
    // last packet, no extensions, and a send buffer that is never the limit.
    /// Receive Buffer Blocking in Concurrent Multipath Transfer (Iyengar, Amer, Stewart; GLOBECOM 2005).
    GLOBECOM2005 = "globecom2005": &[
        PLAIN,
        &[
            ("rto_initial", "3s"),
            ("initial_window", "2936B"),
            ("experiment.min_ssthresh", "2"),
            ("path_scheduler", "most_room"),
            ("nr_sack", "off"),
            ("buffer_split", "none"),
            ("experiment.smart_fast_retransmit", "false"),
            ("experiment.pseudo_cumulative_recovery", "false"),
            ("sack_path", "last_data"),
            ("send_buffer", "16MiB"),
            ("fast_retransmit_path", "same"),
            ("timeout_retransmit_path", "same"),
        ],
    ];
    /// On the Use of CMT over Asymmetric Paths (Dreibholz, Becke, Rathgeb, Tüxen; GLOBECOM 2010).
    GLOBECOM2010 = "globecom2010": &[PLAIN, MODEL_OF_2010];
}

impl Preset {
    /// Returns the defaults with the settings of the preset.
    pub fn config(&self) -> AssociationConfig {
        let mut config = AssociationConfig::default();
        for (switch, value) in self.settings() {
            let set = config.set(switch, value);
            debug_assert!(set.is_ok(), "{set:?}");
        }
        config
    }
}

pub(super) fn build(name: &str) -> Result<AssociationConfig, ConfigError> {
    let preset = PRESETS.iter().find(|preset| preset.name == name).ok_or_else(|| {
        let names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
        ConfigError::UnknownPreset { name: name.to_owned(), known: names.join(", ") }
    })?;
    Ok(preset.config())
}
