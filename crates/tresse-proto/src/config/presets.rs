//! Presets: named bundles of switch settings, applied to the defaults.

use super::AssociationConfig;
use super::switch::ConfigError;

/// A bundle of settings: its name, what it is for, and the switches it sets.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Preset {
    /// The name.
    pub name: &'static str,
    /// Purpose of the preset.
    pub doc: &'static str,
    /// Switch names and values in their text form: what it shares with others first, each switch once.
    layers: &'static [&'static [(&'static str, &'static str)]],
}

impl Preset {
    /// Switch names and values in their text form.
    pub fn settings(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.layers.iter().copied().flatten().copied()
    }
}

/// Nothing that RFC 9260 does not have, as far as the protocol of a paper does not need it.
const PLAIN: &[(&str, &str)] = &[
    ("congestion_control", "rfc9260"),
    ("max_burst", "4"),
    ("pacing", "false"),
    ("rto_min", "1s"),
    ("association_max_retrans", "10"),
    ("path_max_retrans", "5"),
    ("loss_detection", "rfc9260"),
    ("buffer_shares", "equal"),
    ("paths_rest", "false"),
    ("chunk_rescheduling", "off"),
    ("immediate_sack_when_full", "false"),
    ("blocked_copies", "off"),
    ("potentially_failed", "false"),
    ("authentication", "false"),
    ("mtu_discovery", "false"),
    ("drop_reports", "false"),
    ("experiment.multiple_fast_retransmit", "false"),
    ("dynamic_addresses", "false"),
    ("ecn", "false"),
    ("data_with_cookie", "false"),
];

/// The papers of 2010, whose authors and simulation model are the same: one set of settings for both.
///
/// Their texts name NR-SACK, both buffers split by queued bytes, smart fast retransmission and what a rescheduled chunk
/// costs its old path. What they leave unsaid is as in the model that its authors published with INET.
const MODEL_OF_2010: &[(&str, &str)] = &[
    // RFC 4960, which both papers cite, has 3 s.
    ("rto_initial", "3s"),
    ("nr_sack", "delivered"),
    ("buffer_split", "both"),
    ("experiment.split_counts", "queued"),
    ("experiment.split_overbooking", "false"),
    ("experiment.moved_chunk_cut", "bytes"),
    // From here on: the model.
    ("experiment.moved_chunk_t3", "false"),
    ("experiment.rtt_over_any_path", "false"),
    ("delayed_ack", "true"),
    ("path_scheduler", "in_order"),
    // Its "standard": the source of the first DATA since the last SACK. The paper on asymmetric paths says of SCTP in
    // general that a SACK takes the path of the last packet received.
    ("sack_path", "first_data"),
    ("experiment.peer_window_test", "sack"),
    ("stream_scheduler", "round_robin"),
];

/// Declares the presets: a constant for each, with its documentation, and the list of all.
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
    // For streams in order over unlike paths with little buffer: docs/adaptive.md.
    /// As cmt, with the adaptive stream map, and buffer allocation by measured BDP at all times.
    ADAPTIVE = "adaptive": &[&[
        ("stream_map", "adaptive"),
        ("buffer_shares", "paths"),
        ("path_scheduler", "stms"),
        ("stream_scheduler", "round_robin"),
        ("sack_frequency", "1"),
        // A chunk that is rescheduled costs its path window, where a path becomes longer or dies.
        ("paths_rest", "false"),
        ("chunk_rescheduling", "off"),
        ("immediate_sack_when_full", "false"),
        ("blocked_copies", "off"),
    ]];
    /// One path at a time, nothing beyond RFC 9260.
    RFC9260 = "rfc9260": &[
        PLAIN,
        &[
            ("concurrent", "false"),
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
    // CMT as its first papers have it. They name the retransmission policy and the receive buffer of each figure, and
    // cite RFC 2960: an initial window of two packets, two packets that a loss leaves, and RTO.Initial of 3 s. New data
    // goes "as bandwidth becomes available on corresponding paths", and where several have it "arbitrarily": here to
    // the path with the most room. The rest is as in their simulator: one RTT sample from any SACK, SACKs to the source
    // of the last packet, no extension, and a send buffer that never limits.
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
    /// The settings: the defaults with those of the preset.
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
