//! Settings that are said to have no effect have none: not a packet differs, whatever their value.

use tresse_proto::AssociationConfig;
use tresse_sim::{RunOptions, Scenario, run};

/// Settings that take the effect of others; each row of the table in `tresse-proto/src/config/effect.rs` holds for one.
const BESIDE: &[&[(&str, &str)]] = &[
    &[("concurrent", "false")],
    &[("max_paths", "1")],
    &[("buffer_split", "none")],
    &[("buffer_split", "sender")],
    &[("buffer_shares", "equal")],
    &[("stream_map", "any")],
    &[("blocked_copies", "off")],
    &[("chunk_rescheduling", "in_time")],
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
