//! Settings that are said to have no effect have none: not a packet differs, whatever their value.

use tresse_proto::{AssociationConfig, Registry};
use tresse_sim::{RunOptions, Scenario, run};

/// Settings that take the effect of others; each row of the table in `tresse-proto/src/config/effect.rs` holds for one.
const BESIDE: &[&[(&str, &str)]] = &[
    &[("concurrent", "false")],
    &[("max_paths", "1")],
    &[("buffer_split", "none")],
    &[("buffer_split", "sender")],
    &[("buffer_allocation", "equal")],
    &[("stream_map", "any")],
    &[("chunk_rescheduling", "by_deadline")],
    &[("chunk_rescheduling", "off")],
    &[("sack_path", "last_data")],
    &[("nr_sack", "delivered")],
    &[("sack_frequency", "1")],
    &[("potentially_failed", "false")],
    &[("stream_reconfiguration", "false")],
    &[("authentication", "false")],
    &[("encryption", "off")],
    &[("encryption", "offer"), ("key_management", "pre_shared")],
    &[("encryption", "require"), ("key_management", "pre_shared")],
];

/// Values of settings that are no choice among names.
const VALUES: &[(&str, &[&str])] = &[
    ("path_scheduler", &["lowest_rtt", "most_room", "in_order", "ecf", "blest", "stms"]),
    ("stream_classes", &["0=background,1=bulk"]),
    ("sack_path_probes", &["0ms", "50ms"]),
    ("nr_sack_blocks", &["0", "8"]),
    ("sack_delay", &["0ms", "500ms"]),
    ("potentially_failed_max_retrans", &["1", "3"]),
    ("experiment.rescheduling_threshold", &["1", "100"]),
    ("key_drain", &["1ms", "20s"]),
    ("rekey_megabytes", &["1"]),
];

/// Loss, unlike paths, buffers that are short for them, and a path that dies and returns.
const UNLIKE_PATHS: &str = r#"
preset = "cmt"
settle = "0s"
measure = "12s"

[transport]
send_buffer = "96KiB"
receive_buffer = "96KiB"

[traffic]
streams = 3

[[path]]
rate = "10Mbit/s"
delay = "10ms"
loss = "2%"

[[path]]
rate = "8Mbit/s"
delay = "60ms"

[[path.change]]
at = "5s"
outage = true

[[path.change]]
at = "8s"
outage = false
"#;

/// `None` where these settings do not go together.
fn scenario(settings: &[(&str, &str)]) -> Option<Scenario> {
    let keys: Vec<(String, &str)> =
        settings.iter().map(|(name, value)| (format!("transport.{name}"), *value)).collect();
    let mut scenario = Scenario::from_toml(UNLIKE_PATHS, "unlike").expect("a good scenario");
    scenario.set_all(keys.iter().map(|(key, value)| (key.as_str(), *value))).ok().map(|()| scenario)
}

fn trace(scenario: &Scenario) -> String {
    run(scenario, RunOptions::default()).expect("it runs").run.trace_hash
}

fn alternatives(name: &str, choices: &[(&'static str, &'static str)], accepted: &str) -> Vec<&'static str> {
    if let Some((_, values)) = VALUES.iter().find(|(known, _)| *known == name) {
        return values.to_vec();
    }
    match accepted {
        "true or false" => vec!["true", "false"],
        _ => choices.iter().map(|(choice, _)| *choice).collect(),
    }
}

#[test]
fn settings_without_effect_change_no_packet() {
    let (mut compared, mut differ) = (Vec::new(), Vec::new());
    for beside in BESIDE {
        let base = scenario(beside).expect("a good scenario");
        let reference = trace(&base);
        let idle = |name: &str| base.resolved().sender.idle_beside(name).is_some();
        for switch in AssociationConfig::describe().into_iter().filter(|switch| idle(switch.name)) {
            for value in alternatives(switch.name, &switch.choices, &switch.accepted) {
                let mut settings = beside.to_vec();
                settings.push((switch.name, value));
                let Some(changed) = scenario(&settings) else { continue };
                if trace(&changed) != reference {
                    differ.push(format!("{} = {value} beside {beside:?}", switch.name));
                }
                compared.push(switch.name);
            }
        }
    }
    assert!(differ.is_empty(), "{differ:#?}");
    assert!(compared.len() > 100, "{}: {compared:?}", compared.len());
}

#[test]
fn a_scenario_tells_which_of_its_settings_have_no_effect() {
    let settings = [("key_drain", "5s"), ("experiment.split_counts", "queued"), ("buffer_split", "none")];
    let idle: Vec<String> = scenario(&settings)
        .expect("a good scenario")
        .idle_settings()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert!(
        idle.contains(&"transport.key_drain has no effect beside encryption = off".to_owned()),
        "{idle:?}"
    );
    assert!(
        idle.contains(
            &"transport.experiment.split_counts has no effect beside buffer_split = none".to_owned()
        ),
        "{idle:?}"
    );
}

/// Links, traffic and access links in the settings of which some have no effect.
const UNUSED: &str = r#"
settle = "0s"
measure = "5s"
[transport]
ecn = false
[access]
delay = "5ms"
[traffic]
streams = 2
message_size = "800B"
refill = "by_queue"
[[traffic.sporadic]]
stream = 0
gap = "3ms"
size = "100B..3000B"
[[traffic.sporadic]]
stream = 1
gap = "3ms"
size = "1200B"
[[path]]
rate = "2Mbit/s"
delay = "10ms"
queue = "20 packets"
bit_errors_spare = "48B"
reorder_delay = "5ms"
red = { min_threshold = 3 }
reverse = { discipline = "codel", codel = { target = "1ms", ecn = true } }
[[path]]
rate = "2Mbit/s"
delay = "30ms"
discipline = "red"
red = { min_threshold = 2, max_threshold = 15, weight = 1.0, ecn = true }
codel = { interval = "50ms" }
reorder = "5%"
reorder_delay = "0s"
reverse = { discipline = "drop_tail", reorder = 0, reorder_delay = "1s", loss = "1%" }
"#;

/// Those of `UNUSED`, with another value of each.
const UNUSED_SETTINGS: &[(&str, &str, &str)] = &[
    ("path[0].red has no effect beside a discipline other than red", "path.0.red.min_threshold", "1"),
    (
        "path[0].reverse.codel.ecn has no effect beside ecn = false of a host",
        "path.0.reverse.codel.ecn",
        "false",
    ),
    ("path[0].bit_errors_spare has no effect beside bit_error_rate = 0", "path.0.bit_errors_spare", "0B"),
    ("path[0].reorder_delay has no effect beside reorder = 0", "path.0.reorder_delay", "1s"),
    ("path[1].codel has no effect beside a discipline other than codel", "path.1.codel.interval", "1ms"),
    ("path[1].red.ecn has no effect beside ecn = false of a host", "path.1.red.ecn", "false"),
    ("path[1].reverse.reorder_delay has no effect beside reorder = 0", "path.1.reverse.reorder_delay", "1ms"),
    ("path[1].reorder has no effect beside reorder_delay = 0s", "path.1.reorder", "0"),
    (
        "access has no effect beside paths that have no cross traffic and share no links",
        "access.delay",
        "50ms",
    ),
    (
        "traffic.message_size has no effect beside sporadic messages on every stream",
        "traffic.message_size",
        "20B",
    ),
    ("traffic.refill has no effect beside sporadic messages on every stream", "traffic.refill", "in_turn"),
];

fn idle(scenario: &Scenario) -> Vec<String> {
    scenario.idle_settings().iter().map(ToString::to_string).collect()
}

#[test]
fn settings_of_links_and_traffic_without_effect_are_told_and_change_no_packet() {
    let base = Scenario::from_toml(UNUSED, "unused").expect("a good scenario");
    let told: Vec<&str> = UNUSED_SETTINGS.iter().map(|(told, ..)| *told).collect();
    assert_eq!(idle(&base), told);
    let reference = trace(&base);
    for (_, key, value) in UNUSED_SETTINGS {
        let mut changed = base.clone();
        changed.set(key, value).expect(key);
        assert!(changed.document() != base.document(), "{key}");
        assert_eq!(trace(&changed), reference, "{key} = {value}");
    }
}

#[test]
fn settings_of_links_with_an_effect_in_either_direction_are_not_told() {
    let mut scenario = Scenario::from_toml(UNUSED, "used").expect("a good scenario");
    let used = [
        ("transport.ecn", "true"),
        ("path.0.reverse.discipline", "red"),
        ("path.0.reverse.bit_error_rate", "1e-6"),
        ("path.0.reverse.reorder", "1%"),
        ("path.1.reverse.discipline", "codel"),
        ("path.1.reverse.reorder", "1%"),
        ("path.1.reorder_delay", "1ms"),
        ("traffic.streams", "3"),
    ];
    scenario.set_all(used).expect("sound settings");
    let expected = ["path[0].reverse.codel", "access"];
    let keys: Vec<String> = scenario.idle_settings().into_iter().map(|idle| idle.key).collect();
    assert_eq!(keys, expected);
    // A table of the other direction changes some parameters, and the rest is inherited.
    let own = [("path.0.reverse.red.max_threshold", "9")];
    scenario.set_all(own).expect("sound settings");
    let keys: Vec<String> = scenario.idle_settings().into_iter().map(|idle| idle.key).collect();
    assert_eq!(keys, expected);
    let shared = "\n[[path]]\nshares = 0\n";
    let shared = Scenario::from_toml(&format!("{UNUSED}{shared}"), "shared").expect("a good scenario");
    assert!(!idle(&shared).iter().any(|idle| idle.starts_with("access")), "shared links have routers");
}

/// A resolved scenario spells everything out, and what it says of links is in use.
#[test]
fn a_resolved_scenario_names_no_setting_of_a_link_without_effect() {
    let used = UNUSED
        .replace("ecn = false", "ecn = true")
        .replace("reorder_delay = \"0s\"", "reorder_delay = \"1ms\"")
        .replace("bit_errors_spare = \"48B\"", "bit_error_rate = 0");
    for text in [used.as_str(), UNLIKE_PATHS] {
        let resolved = Scenario::from_toml(text, "first").expect("a good scenario").to_toml();
        let again = Scenario::from_toml(&resolved, "again").expect("what is printed reads back");
        let idle = idle(&again).into_iter().filter(|idle| idle.starts_with("path")).collect::<Vec<_>>();
        assert!(idle.is_empty(), "{idle:?}");
    }
}

#[test]
fn loss_rates_that_nobody_reads_are_told_and_change_no_packet() {
    let told = "loss_oracle has no effect beside settings of the sender of which none reads loss rates";
    let mut silent = vec![("chunk_rescheduling", "off"), ("path_scheduler", "blest")];
    let registry = Registry::default();
    for path_scheduler in registry.path_scheduler_names() {
        silent[1].1 = path_scheduler;
        let mut scenario = scenario(&silent).expect("a good scenario");
        let reference = trace(&scenario);
        assert!(idle(&scenario).is_empty(), "it is off");
        scenario.set("loss_oracle", "true").expect("a good scenario");
        assert_eq!(idle(&scenario), [told]);
        assert_eq!(trace(&scenario), reference, "{path_scheduler}");
    }
    let readers = [("fast_retransmit_path", "loss_rate"), ("path_scheduler", "own")];
    for (name, value) in readers {
        let mut scenario = scenario(&silent).expect("a good scenario");
        let reader = format!("sender.{name}");
        scenario.set_all([("loss_oracle", "true"), (&reader, value)]).expect("a good scenario");
        assert!(idle(&scenario).is_empty(), "{reader}");
    }
}

#[test]
fn times_after_the_end_of_the_run_are_told() {
    let mut scenario = Scenario::from_toml(UNLIKE_PATHS, "late").expect("a good scenario");
    let late = "settle and measure, which end before";
    assert!(idle(&scenario).is_empty(), "{:?}", idle(&scenario));
    scenario.set_all([("measure", "6s"), ("traffic.stop", "7s")]).expect("sound settings");
    assert_eq!(
        idle(&scenario),
        [
            format!("path[1].change[1] has no effect beside {late}"),
            format!("traffic.stop has no effect beside {late}"),
        ]
    );
    assert!(scenario.idle_settings().iter().all(tresse_sim::IdleSetting::is_late));
    let before = trace(&scenario);
    scenario.set_all([("path.1.change.1.at", "9s"), ("traffic.stop", "8s")]).expect("sound settings");
    assert_eq!(trace(&scenario), before);
    let moving =
        "[[path]]\njoins = \"15s\"\nleaves = \"20s\"\nshares = 1\n[[cross]]\nkind = \"web\"\nstop = \"1h\"\n";
    let moving = Scenario::from_toml(&format!("{UNLIKE_PATHS}{moving}"), "moving").expect("a good scenario");
    let keys: Vec<String> = moving.idle_settings().into_iter().map(|idle| idle.key).collect();
    assert_eq!(keys, ["path[2].joins", "path[2].leaves", "cross[0].stop"]);
}
