//! Documents of the command against the schemas in `docs/schemas`: as much of JSON Schema as these use.

#![allow(missing_docs, reason = "a test")]

mod common;
mod tunnels;

use common::{Dir, Running, receiver, text, tresse};
use serde_json::Value;

/// The schema called `name`.
fn schema(name: &str) -> Value {
    let file = format!("{}/../../docs/schemas/{name}.schema.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(&file).expect("a schema")).expect("JSON")
}

/// What is wrong with `value` at `place`.
fn faults(schema: &Value, value: &Value, place: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let fits = |wanted: &Value| wanted == kind || (wanted == "number" && kind == "integer");
    let right = match &schema["type"] {
        Value::Null => true,
        Value::Array(kinds) => kinds.iter().any(fits),
        one => fits(one),
    };
    if !right {
        faults.push(format!("{place} is {kind}, not {}", schema["type"]));
    }
    if schema["const"] != Value::Null && schema["const"] != *value {
        faults.push(format!("{place} is {value}, not {}", schema["const"]));
    }
    if schema["enum"].as_array().is_some_and(|values| !values.contains(value)) {
        faults.push(format!("{place} is {value}, not one of {}", schema["enum"]));
    }
    for item in value.as_array().into_iter().flatten() {
        faults.extend(self::faults(&schema["items"], item, &format!("{place}[]")));
    }
    let Some(members) = value.as_object() else { return faults };
    for required in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !members.contains_key(required) {
            faults.push(format!("{place} has no {required}"));
        }
    }
    for (name, member) in members {
        let place = format!("{place}.{name}");
        match (&schema["properties"][name], &schema["additionalProperties"]) {
            (Value::Null, Value::Bool(false)) => faults.push(format!("{place} is unknown")),
            (Value::Null, other) => faults.extend(self::faults(other, member, &place)),
            (known, _) => faults.extend(self::faults(known, member, &place)),
        }
    }
    faults
}

fn assert_fits(name: &str, document: &str) {
    let value: Value = serde_json::from_str(document).unwrap_or_else(|error| panic!("{error}: {document}"));
    let faults = faults(&schema(name), &value, name);
    assert!(faults.is_empty(), "{faults:?} in {value:#}");
}

#[test]
fn measurements_fit_their_schema() {
    let mut server =
        Running::start(&["perf", "server", "--listen", "127.0.0.1,127.0.0.2", "--port", "0", "--json"]);
    let port = server.udp_port();
    let call = ["perf", "client", "--to", "127.0.0.1,127.0.0.2", "--port", &port, "--json"];
    let more =
        ["--duration", "300ms", "--omit", "100ms", "--interval", "100ms", "--both", "--compare-single"];
    let done = tresse(&[&call[..], &more].concat());
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_fits("perf", &done.stdout);
    let document: Value = serde_json::from_str(&done.stdout).expect("JSON");
    assert_eq!(
        document["out"]["paths"].as_array().map(Vec::len),
        Some(2),
        "none joins towards this host: {document:#}"
    );
    assert!(document["out"]["delay"]["p50_ms"].is_number() && document["compared"]["best_mbps"].is_number());
    server.interrupt();
    let served = server.finish();
    assert_eq!(served.stdout.lines().count(), 3, "each path alone and both: {served:?}");
    served.stdout.lines().for_each(|line| assert_fits("perf", line));
}

#[test]
fn transfers_fit_their_schema() {
    let dir = Dir::new("schema-transfer");
    let file = dir.file("data.bin", 100_000);
    let (receiver, port) = receiver(&dir.out(), &["--listen", "127.0.0.1", "--once", "--json"]);
    let done = tresse(&["send", &text(&file), "--to", "127.0.0.1", "--port", &port, "--json"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_fits("transfer", &done.stdout);
    assert_fits("transfer", &receiver.finish().stdout);
}

#[test]
fn what_the_doctor_finds_fits_its_schema() {
    let done = tresse(&["doctor", "--from", "127.0.0.1", "--json"]);
    assert!(matches!(done.code, Some(0 | 4)), "{done:?}");
    assert_fits("doctor", &done.stdout);
    let document: Value = serde_json::from_str(&done.stdout).expect("JSON");
    let checks: Vec<_> =
        document["findings"].as_array().expect("a list").iter().map(|one| &one["check"]).collect();
    assert!(checks.contains(&&"clock".into()) && checks.contains(&&"interfaces".into()), "{checks:?}");
}

#[test]
fn simulations_fit_their_schema() {
    let dir = Dir::new("schema-sim");
    let scenario = dir.path("all.toml");
    let path = "[[path]]\nrate = \"4Mbit/s\"\ndelay = \"5ms\"\nloss = \"1%\"\n";
    let all = format!(
        "settle = \"200ms\"\nmeasure = \"800ms\"\nstart_jitter = \"0s\"\n[host]\npacket_time = \"20us\"\n\
         [record]\nrecovery = true\ninterval = \"100ms\"\n{path}{path}\
         [[cross]]\nkind = \"bulk\"\n[[cross]]\nkind = \"web\"\npath = 1\n"
    );
    std::fs::write(&scenario, all).expect("writable");
    let done = tresse(&["sim", &text(&scenario), "--json"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_fits("sim", &done.stdout);
    let document: Value = serde_json::from_str(&done.stdout).expect("JSON");
    for key in ["cross", "processors", "series", "recovery"] {
        assert!(!document[key].is_null(), "{key}: {document:#}");
    }
}

#[test]
fn emulations_fit_their_schema() {
    let dir = Dir::new("schema-emulate");
    let scenario = dir.path("paths.toml");
    let path = "[[path]]\nrate = \"4Mbit/s\"\ndelay = \"1ms\"\n";
    let cross = "[[cross]]\nkind = \"bulk\"\n";
    std::fs::write(&scenario, format!("start_jitter = \"0s\"\n{path}{cross}")).expect("writable");
    let ends = ["--client", "127.0.17.1", "--server", "127.0.18.1", "--port", "0", "--duration", "200ms"];
    let done = tresse(&[&["emulate", &text(&scenario), "--json"], &ends[..]].concat());
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_fits("emulate", &done.stdout);
}

#[test]
fn what_peers_report_fits_its_schema() {
    let listen = "127.0.0.1,127.0.0.2";
    let serve =
        ["peer", "server", "--listen", listen, "--port", "0", "--mode", "echo", "--associations", "1"];
    let mut server = Running::start(&[&serve[..], &["--json"]].concat());
    let port = server.udp_port();
    let call = ["peer", "client", "--to", listen, "--port", &port, "--await-echo", "--count", "50", "--json"];
    let done = tresse(&call);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_fits("peer", &done.stdout);
    assert_fits("peer", &server.finish().stdout);
}

#[test]
fn the_state_of_a_tunnel_fits_its_schema() {
    let target = tunnels::tcp_server(tunnels::echo).to_string();
    let (mut server, port) = tunnels::server(&["--tcp", &target, "--metrics", "127.0.0.1:0"]);
    let watched = server.line_with("http://").replace("/metrics", " ");
    let watched = tunnels::place(&watched, "http://").to_string();
    let mut client = tunnels::client(&port, &["--tcp", "127.0.0.1:0"]);
    let entry = tunnels::place(&client.line(), "connections to ");
    let data = common::noise(10_000);
    assert!(tunnels::echoed(tunnels::connect(entry), data.clone()) == data);
    let done = tresse(&["tunnel", "status", &watched, "--json"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_fits("tunnel", &done.stdout);
    let document: Value = serde_json::from_str(&done.stdout).expect("JSON");
    assert_eq!(document["sessions"][0]["paths"].as_array().map(Vec::len), Some(2), "{document:#}");
}

#[test]
fn settings_fit_their_schema() {
    assert_fits("switches", &tresse(&["switches", "--json"]).stdout);
}
