//! Random settings: a preset, and some settings with values that a user could choose.
//!
//! The values of settings that are true or false, or one of several names, come from the table of the configuration.
//! The values of numbers are listed here.

use tresse_proto::AssociationConfig;
use tresse_proto::config::PeerWindowTest;

use super::dice::Dice;
use crate::script::HostPlan;

/// Names of numeric settings, with the values to choose from.
const VALUES: &[(&str, &[&str])] = &[
    ("rto_initial", &["20ms", "100ms", "300ms", "1s"]),
    ("rto_min", &["10ms", "50ms", "200ms", "1s"]),
    ("rto_max", &["1s", "4s", "10s"]),
    ("association_max_retrans", &["6", "10", "20"]),
    ("path_max_retrans", &["0", "1", "2", "5"]),
    ("max_init_retransmits", &["6", "8", "16"]),
    ("heartbeat_interval", &["100ms", "1s", "10s"]),
    ("sack_delay", &["0s", "1ms", "40ms", "200ms", "500ms"]),
    ("sack_frequency", &["1", "2", "3", "8"]),
    ("sack_batch", &["1", "4", "64"]),
    ("max_burst", &["0", "1", "2", "4", "16"]),
    ("initial_window", &["0B", "1B", "1500B", "4KiB", "30KiB"]),
    ("outbound_streams", &["1", "2", "3", "10", "100"]),
    ("inbound_streams", &["1", "2", "5", "65535"]),
    ("send_buffer", &["1B", "100B", "1500B", "4000B", "16KiB", "64KiB", "256KiB"]),
    ("receive_buffer", &["1500B", "1600B", "3000B", "6000B", "16KiB", "64KiB", "256KiB"]),
    ("experiment.rescheduling_threshold", &["1", "20", "50", "100"]),
    ("mtu", &["576B", "600B", "1280B", "1500B", "9000B"]),
    ("max_paths", &["4", "16"]),
    (
        "path_scheduler",
        &[
            "round_robin",
            "lowest_rtt",
            "most_room",
            "in_order",
            "ecf",
            "blest",
            "otias",
            "daps",
            "stms",
            "redundant",
            // These fail deliberately.
            "astray",
            "deserter",
        ],
    ),
    ("stream_map", &["any", "adaptive", "fixed:0", "fixed:0,0", "fixed:0,1"]),
    ("stream_classes", &["0=latency", "0=background,1=latency", "0=latency,2=background,5=background"]),
    ("stream_scheduler", STREAM_SCHEDULERS),
    ("congestion_control", CONTROLLERS),
    ("potentially_failed_max_retrans", &["0", "1", "3"]),
    ("potentially_failed_window", &["0", "1", "2"]),
    ("primary_switchover_max_retrans", &["0", "1", "5", "65535"]),
    ("partial_delivery_point", &["0B", "1B", "1000B", "5000B"]),
    (
        "authenticated_chunks",
        &["none", "data", "data,sack,nr_sack,i_data", "cookie_echo,heartbeat,forward_tsn"],
    ),
];

/// Settings that are not drawn for one host alone: encryption needs matching values on both hosts, so `encrypt` draws them for both.
const NOT_DRAWN: &[&str] = &["encryption", "key_management", "key_role", "key_drain", "rekey_megabytes"];

/// Names of stream schedulers; the last three fail deliberately.
pub(super) const STREAM_SCHEDULERS: &[&str] = &[
    "first_come",
    "round_robin",
    "round_robin_packet",
    "priority",
    "fair_bandwidth",
    "weighted_fair",
    "stray",
    "silent",
    "tired",
];

/// Names of congestion controllers; the last three fail deliberately.
const CONTROLLERS: &[&str] = &[
    "rfc9260",
    "cubic",
    "coupled_cubic",
    "cmt_rp_v1",
    "cmt_rp_v2",
    "lia",
    "olia",
    "balia",
    "bbr",
    "bloated",
    "starved",
    "weary",
];

/// Presets to draw from; those for general use are drawn most often.
const PRESETS_DRAWN: &[&str] =
    &["cmt", "cmt", "cmt", "adaptive", "rfc9260", "pfldnet2010", "globecom2005", "globecom2010"];

/// Names and values of settings.
type Theme = &'static [(&'static str, &'static str)];

/// Sets of settings, each for a mechanism that needs several settings at once. Independent draws would rarely combine them.
const THEMES: &[Theme] = &[
    // Deadline-based reinjection, with buffers that early arrivals fill soon.
    &[
        ("buffer_allocation", "paths"),
        ("path_suspension", "true"),
        ("chunk_rescheduling", "by_deadline"),
        ("immediate_sack_when_full", "true"),
        ("sack_path", "fastest"),
        ("send_buffer", "16KiB"),
    ],
    &[
        ("buffer_allocation", "paths"),
        ("path_suspension", "true"),
        ("chunk_rescheduling", "by_deadline"),
        ("immediate_sack_when_full", "true"),
        ("receive_buffer", "16KiB"),
    ],
    // None of these mechanisms: equal allocation.
    &[
        ("buffer_allocation", "equal"),
        ("path_suspension", "false"),
        ("chunk_rescheduling", "off"),
        ("immediate_sack_when_full", "false"),
        ("sack_path", "round_robin"),
    ],
    &[("chunk_rescheduling", "both"), ("experiment.rescheduling_threshold", "20"), ("send_buffer", "16KiB")],
    // Opportunistic retransmission and penalisation, as in MPTCP.
    &[
        ("experiment.opportunistic_retransmission", "true"),
        ("experiment.penalisation", "true"),
        ("buffer_split", "none"),
        ("path_scheduler", "lowest_rtt"),
        ("receive_buffer", "16KiB"),
    ],
    // Path schedulers that queue data on paths whose windows are full.
    &[("path_scheduler", "otias"), ("stream_map", "any")],
    &[("path_scheduler", "daps"), ("stream_map", "any")],
    &[("path_scheduler", "stms"), ("stream_map", "any")],
    // Redundant transmission, with buffers that duplicates fill.
    &[("path_scheduler", "redundant"), ("stream_map", "any"), ("concurrent", "true")],
    &[
        ("path_scheduler", "redundant"),
        ("stream_map", "any"),
        ("concurrent", "true"),
        ("send_buffer", "4000B"),
        ("partial_reliability", "true"),
    ],
    &[
        ("path_scheduler", "redundant"),
        ("stream_map", "any"),
        ("concurrent", "true"),
        ("receive_buffer", "3000B"),
        ("interleaving", "true"),
    ],
    // All mechanisms that choose paths for data by measurements, at once.
    &[
        ("stream_map", "adaptive"),
        ("buffer_allocation", "when_short"),
        ("path_suspension", "true"),
        ("chunk_rescheduling", "by_deadline"),
        ("immediate_sack_when_full", "true"),
        ("send_buffer", "16KiB"),
    ],
    &[
        ("stream_map", "adaptive"),
        ("path_scheduler", "stms"),
        ("buffer_allocation", "when_short"),
        ("path_suspension", "true"),
        ("chunk_rescheduling", "by_deadline"),
        ("immediate_sack_when_full", "true"),
        ("receive_buffer", "16KiB"),
    ],
    // The adaptive map with classes of streams.
    &[
        ("stream_map", "adaptive"),
        ("stream_classes", "0=latency,3=background"),
        ("path_scheduler", "lowest_rtt"),
    ],
    &[("stream_map", "adaptive"), ("stream_scheduler", "round_robin"), ("sack_path", "fastest")],
    // Messages that exceed the receive buffer.
    &[("receive_buffer", "3000B"), ("send_buffer", "256KiB")],
    &[("receive_buffer", "6000B"), ("interleaving", "true"), ("send_buffer", "256KiB")],
    &[("partial_delivery_point", "1000B"), ("interleaving", "true")],
    // Interleaved messages, some of which are abandoned.
    &[("interleaving", "true"), ("partial_reliability", "true"), ("send_buffer", "4000B")],
];

/// Returns settings that belong together, or none.
pub(super) fn theme(dice: &mut Dice) -> Theme {
    let &theme = dice.pick(THEMES);
    if dice.hits(0.5) { theme } else { &[] }
}

/// Draws settings that are consistent with each other, in addition to those of a `theme`. Where paths are `damaging`,
/// packets keep their checksums.
pub(super) fn draw(dice: &mut Dice, theme: Theme, damaging: bool) -> HostPlan {
    let preset = *dice.pick(PRESETS_DRAWN);
    let mut plan = HostPlan { switches: vec![("preset".to_owned(), preset.to_owned())] };
    // Most timers are limited to a few seconds, because timers of minutes only lengthen simulations.
    if dice.hits(0.8) {
        plan.switches.push(("rto_max".to_owned(), (*dice.pick(&["1s", "4s", "10s"])).to_owned()));
        plan.switches.push(("rto_initial".to_owned(), (*dice.pick(&["100ms", "300ms", "1s"])).to_owned()));
        plan.switches.push(("rto_min".to_owned(), (*dice.pick(&["10ms", "50ms", "200ms", "1s"])).to_owned()));
    }
    plan.switches.extend(theme.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())));
    // Sequence numbers that wrap do so once, early enough for most scripts.
    if dice.hits(0.2) {
        plan.switches.push(("wrap_in".to_owned(), dice.magnitude(1, 300).to_string()));
    }
    if dice.hits(0.2) {
        plan.switches.push(("messages_wrap_in".to_owned(), dice.magnitude(1, 30).to_string()));
    }
    let share = *dice.pick(&[0.0, 0.1, 0.3, 0.6]);
    for info in AssociationConfig::describe() {
        if NOT_DRAWN.contains(&info.name) {
            continue;
        }
        if !dice.hits(share) || (damaging && info.name == "zero_checksum") {
            continue;
        }
        let Some(value) = value_of(&info, dice) else { continue };
        plan.switches.push((info.name.to_owned(), value));
        if plan.settings().is_ok_and(|(association, _)| association.check().is_err()) {
            plan.switches.pop();
        }
    }
    for (name, values) in ENDPOINT_VALUES {
        if dice.hits(share) {
            plan.switches.push(((*name).to_owned(), (*dice.pick(values)).to_owned()));
        }
    }
    plan
}

/// Removes the requirement of AUTH if one host does not support AUTH: the other would refuse the association, and the
/// script would test nothing.
pub(super) fn agree(hosts: &mut [HostPlan; 2]) {
    let both_authenticate =
        hosts.iter().all(|plan| plan.settings().is_ok_and(|(config, _)| config.authentication));
    if !both_authenticate {
        for plan in hosts.iter_mut() {
            plan.switches.retain(|(name, _)| name != "authenticated_chunks");
        }
    }
    // A sender that compares the peer's window only at SACKs sends into a closed window only a probe on each path. A
    // receive buffer of a few packets drops most data, and only T3 retransmits it, with its RTO doubled each time.
    let config_of = |plan: &HostPlan| plan.settings().ok().map(|(config, _)| config);
    for (sender, receiver) in [(0, 1), (1, 0)] {
        let tests_rarely = config_of(&hosts[sender])
            .is_some_and(|config| config.experiment.peer_window_test == PeerWindowTest::Sack);
        let is_small =
            config_of(&hosts[receiver]).is_some_and(|config| config.receive_buffer.0 < LEAST_FOR_RARE_TESTS);
        if tests_rarely && is_small {
            let enough = ("receive_buffer".to_owned(), format!("{LEAST_FOR_RARE_TESTS}B"));
            hosts[receiver].switches.push(enough);
        }
    }
}

/// Bytes of the smallest receive buffer in the papers whose model compares the peer's window only at SACKs.
const LEAST_FOR_RARE_TESTS: usize = 16 * 1024;

/// Makes both hosts ready for encryption with common keys; in most cases at least one of them requires it.
pub(super) fn encrypt(dice: &mut Dice, hosts: &mut [HostPlan; 2]) {
    let ready: [&str; 2] = *dice.pick(&[
        ["require", "require"],
        ["require", "require"],
        ["require", "offer"],
        ["offer", "require"],
        ["offer", "offer"],
        ["offer", "off"],
    ]);
    let roles: [&str; 2] = *dice.pick(&[
        ["any", "any"],
        ["any", "any"],
        ["client", "server"],
        ["server", "client"],
        ["any", "server"],
    ]);
    for ((plan, encryption), role) in hosts.iter_mut().zip(ready).zip(roles) {
        // Encryption replaces AUTH: it authenticates all chunks.
        plan.switches.retain(|(name, _)| name != "authenticated_chunks");
        let drain = *dice.pick(&["0s", "10ms", "100ms", "1s", "120s"]);
        let switches = [
            ("encryption", encryption),
            ("key_management", "pre_shared"),
            ("key_role", role),
            ("key_drain", drain),
            ("rekey_megabytes", "1"),
        ];
        plan.switches.extend(switches.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }
}

/// Makes both hosts list their addresses. Otherwise two set-ups that collide can come from different addresses of one
/// peer; the other side cannot know that, and two associations result.
pub(super) fn list_addresses(hosts: &mut [HostPlan; 2]) {
    for plan in hosts {
        plan.switches.retain(|(name, _)| name != "list_addresses");
    }
}

const ENDPOINT_VALUES: &[(&str, &[&str])] =
    &[("cookie_lifetime", &["1s", "5s", "60s"]), ("cookie_key_lifetime", &["1s", "60s", "1h"])];

fn value_of(info: &tresse_proto::config::SwitchInfo, dice: &mut Dice) -> Option<String> {
    if let Some((_, values)) = VALUES.iter().find(|(name, _)| *name == info.name) {
        return Some((*dice.pick(values)).to_owned());
    }
    if info.accepted == "true or false" {
        return Some(dice.hits(0.5).to_string());
    }
    let choices: Vec<&str> = info.accepted.strip_prefix("one of ")?.split(", ").collect();
    Some((*dice.pick(&choices)).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawn_settings_can_be_used() {
        for seed in 0..200 {
            let mut dice = Dice::new(seed);
            let theme = theme(&mut dice);
            let plan = draw(&mut dice, theme, false);
            let (association, _) = plan.settings().expect("known switches");
            assert_eq!(association.check(), Ok(()), "{plan:?}");
            let mut hosts = [plan.clone(), plan];
            encrypt(&mut dice, &mut hosts);
            for plan in hosts {
                let (association, _) = plan.settings().expect("known switches");
                assert_eq!(association.check(), Ok(()), "{plan:?}");
            }
        }
    }

    #[test]
    fn every_theme_can_be_used_with_every_preset() {
        for (preset, theme) in
            PRESETS_DRAWN.iter().flat_map(|preset| THEMES.iter().map(move |theme| (preset, theme)))
        {
            let mut config = AssociationConfig::preset(preset).expect("a preset");
            for (name, value) in *theme {
                assert_eq!(config.set(name, value), Ok(()), "{name}={value}");
            }
            assert_eq!(config.check(), Ok(()), "{preset} with {theme:?}");
        }
    }

    #[test]
    fn every_range_is_one_of_a_switch_and_accepted_by_it() {
        for (name, values) in VALUES {
            for value in *values {
                assert_eq!(AssociationConfig::default().set(name, value), Ok(()), "{name}={value}");
            }
        }
    }
}
