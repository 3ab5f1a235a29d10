//! Tests of the table of settings, of the presets, and of checks across settings.

use super::*;

#[test]
fn every_switch_reads_what_it_prints() {
    for preset in PRESETS {
        let config = AssociationConfig::preset(preset.name).expect("every preset names valid switches");
        let mut copy = AssociationConfig::default();
        for (name, value) in config.values() {
            copy.set(name, &value).expect("a printed value is accepted");
        }
        assert_eq!(copy, config, "{}", preset.name);
        assert_eq!(config.check(), Ok(()), "{}", preset.name);
    }
}

#[test]
fn the_papers_of_one_model_have_one_set_of_settings() {
    assert_eq!(AssociationConfig::preset("pfldnet2010"), AssociationConfig::preset("globecom2010"));
}

#[test]
fn a_preset_sets_each_switch_once() {
    for preset in PRESETS {
        let mut names: Vec<_> = preset.settings().map(|(name, _)| name).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all, "{}", preset.name);
    }
}

/// RFC 9260 §16, and RFC 7829 §6 for the threshold of potential failure.
#[test]
fn protocol_parameters_are_those_of_the_rfcs() {
    let config = AssociationConfig::preset("rfc9260").expect("a preset");
    let endpoint = EndpointConfig::default();
    for (name, value) in [
        ("rto_initial", "1s"),
        ("rto_min", "1s"),
        ("rto_max", "60s"),
        ("max_burst", "4"),
        ("association_max_retrans", "10"),
        ("path_max_retrans", "5"),
        ("max_init_retransmits", "8"),
        ("heartbeat_interval", "30s"),
        ("sack_delay", "200ms"),
        ("sack_frequency", "2"),
        ("potentially_failed_max_retrans", "0"),
        ("cookie_lifetime", "60s"),
    ] {
        let mut switches = config.values().into_iter().chain(endpoint.values());
        let found = switches.find(|(known, _)| *known == name).map(|(_, value)| value);
        assert_eq!(found.as_deref(), Some(value), "{name}");
    }
}

#[test]
fn a_switch_of_a_group_is_found_by_its_own_name() {
    let mut config = AssociationConfig::default();
    let error = config.set("min_ssthresh", "2").expect_err("it has the group before it");
    assert_eq!(
        error.to_string(),
        "unknown setting \"min_ssthresh\"; did you mean \"experiment.min_ssthresh\"?"
    );
    config.set("experiment.min_ssthresh", "2").expect("a switch");
    assert_eq!(config.experiment.min_ssthresh, 2);
    let error = config.set("experiment.min_ssthresh", "few").expect_err("no number");
    assert!(error.to_string().starts_with("setting \"experiment.min_ssthresh\": \"few\" is not"), "{error}");
}

#[test]
fn every_switch_is_documented() {
    for info in AssociationConfig::describe().into_iter().chain(EndpointConfig::describe()) {
        assert!(info.doc.ends_with('.'), "{}: {}", info.name, info.doc);
        assert!(!info.accepted.is_empty());
    }
}

#[test]
fn unknown_names_meet_the_nearest_valid_one_or_all_of_them() {
    let mut config = AssociationConfig::default();
    let error = config.set("send_bufer", "64KiB").expect_err("misspelled");
    assert_eq!(error.to_string(), "unknown setting \"send_bufer\"; did you mean \"send_buffer\"?");
    let error = config.set("send_buffer", "64").expect_err("no unit");
    assert_eq!(error.to_string(), "setting \"send_buffer\": \"64\" is not a size such as \"64KiB\"");
    let error = config.set("preset", "cmt").expect_err("no switch is spelled nearly so");
    assert_eq!(error.to_string(), "unknown setting \"preset\"; docs/switches.md lists them");
    let error = AssociationConfig::preset("cnt").expect_err("misspelled").to_string();
    assert!(error.starts_with("unknown preset \"cnt\"; the presets are cmt, "), "{error}");
}

#[test]
fn stream_maps_have_a_text_form() {
    let map = StreamMap::parse("fixed:2,0,1").expect("a table");
    assert_eq!(map.print(), "fixed:2,0,1");
    assert_eq!(map.path_of(tresse_wire::StreamId(3)), Some(2));
    assert_eq!(StreamMap::Any.path_of(tresse_wire::StreamId(3)), None);
    assert_eq!(StreamMap::parse("adaptive").map(|map| map.print()), Some("adaptive".to_owned()));
    for text in ["fixed:", "fixed:a", "fixed", "0,1"] {
        assert_eq!(StreamMap::parse(text), None, "{text}");
    }
}

#[test]
fn contradictions_are_refused() {
    for (name, value) in [
        ("rto_max", "10ms"),
        ("sack_delay", "1s"),
        ("sack_frequency", "0"),
        ("mtu", "100B"),
        ("receive_buffer", "100B"),
        ("send_buffer", "0"),
        ("outbound_streams", "0"),
        ("stream_map", "fixed:99"),
    ] {
        let mut config = AssociationConfig::default();
        config.set(name, value).expect("well-formed");
        assert!(matches!(config.check(), Err(ConfigError::Inconsistent { .. })), "{name}={value}");
    }
}
