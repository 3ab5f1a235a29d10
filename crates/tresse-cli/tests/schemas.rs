//! Documents of the command against the schemas in `docs/schemas`: as much of JSON Schema as these use.

#![allow(missing_docs, reason = "a test")]

mod common;

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
    let line = server.line();
    let port = line.split("UDP port ").nth(1).and_then(|rest| rest.split(',').next()).expect("a port");
    let call = ["perf", "client", "--to", "127.0.0.1,127.0.0.2", "--port", port, "--json"];
    let more = ["--time", "300ms", "--omit", "100ms", "--interval", "100ms", "--both", "--compare-single"];
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
