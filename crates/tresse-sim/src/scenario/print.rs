//! Printer of scenarios: converts a resolved scenario into a document.

use std::time::Duration;

use toml::{Table, Value};
use tresse_proto::AssociationConfig;
use tresse_proto::units::{format_duration, format_rate, format_size};

use super::{PathSpec, Presence, Resolved, Traffic};
use crate::link::{Change, CoDelSpec, Discipline, GilbertElliott, ImpairmentSpec, LinkSpec, Loss, RedSpec};
use crate::tcp::{CrossLoad, CrossTraffic};
use crate::traffic::Sporadic;

pub(super) fn table(resolved: &Resolved) -> Table {
    let mut table = Table::new();
    put(&mut table, "name", resolved.name.as_str());
    match i64::try_from(resolved.seed) {
        Ok(seed) => put(&mut table, "seed", seed),
        Err(_) => put(&mut table, "seed", resolved.seed.to_string()),
    }
    put(&mut table, "preset", resolved.preset.as_str());
    put_duration(&mut table, "settle", resolved.settle);
    put_duration(&mut table, "measure", resolved.measure);
    put_duration(&mut table, "start_jitter", resolved.start_jitter);
    let framing = resolved.paths.first().map_or(0, |path| path.forward.framing);
    put(&mut table, "framing", format_size(u64::from(framing)));

    // The settings that both hosts share, then those of the receiver that differ.
    put(&mut table, "transport", settings(&resolved.sender));
    let own = differences(settings(&resolved.receiver), &settings(&resolved.sender));
    if !own.is_empty() {
        put(&mut table, "receiver", own);
    }
    let mut host = Table::new();
    put_duration(&mut host, "packet_time", resolved.packet_time);
    put(&mut table, "host", host);
    put(&mut table, "traffic", traffic(&resolved.traffic));
    put(&mut table, "loss_oracle", resolved.loss_oracle);
    let mut record = Table::new();
    if let Some(interval) = resolved.record_interval {
        put_duration(&mut record, "interval", interval);
    }
    put(&mut record, "recovery", resolved.record_recovery);
    put(&mut table, "record", record);
    let paths: Vec<Value> = resolved.paths.iter().map(|spec| Value::Table(path(spec))).collect();
    put(&mut table, "path", paths);
    // Shared paths have routers, as paths with cross traffic do.
    if !resolved.cross_traffic.is_empty() || resolved.paths.iter().any(|path| path.shares.is_some()) {
        let mut access = Table::new();
        put(&mut access, "rate", format_rate(resolved.access.rate));
        put_duration(&mut access, "delay", resolved.access.delay);
        put(&mut access, "queue", resolved.access.queue.to_string());
        put(&mut table, "access", access);
    }
    if !resolved.cross_traffic.is_empty() {
        let cross_traffic: Vec<Value> =
            resolved.cross_traffic.iter().map(|one| Value::Table(cross(one))).collect();
        put(&mut table, "cross", cross_traffic);
    }
    table
}

/// Returns the settings as a table; those of a group are in an inner table with its name.
fn settings(config: &AssociationConfig) -> Table {
    let mut table = Table::new();
    for (name, text) in config.values() {
        match name.split_once('.') {
            None => put(&mut table, name, natural(text)),
            Some((group, name)) => {
                let group = table.entry(group).or_insert_with(|| Value::Table(Table::new()));
                if let Value::Table(group) = group {
                    put(group, name, natural(text));
                }
            }
        }
    }
    table
}

/// Returns the values of `table` that `common` does not have, for inner tables too.
fn differences(table: Table, common: &Table) -> Table {
    let different = table.into_iter().filter_map(|(name, value)| match (value, common.get(&name)) {
        (Value::Table(inner), Some(Value::Table(common))) => {
            let inner = differences(inner, common);
            (!inner.is_empty()).then_some((name, Value::Table(inner)))
        }
        (value, other) => (other != Some(&value)).then_some((name, value)),
    });
    different.collect()
}

/// Returns integers and booleans as such TOML values, everything else as a string.
fn natural(text: String) -> Value {
    match (text.parse::<i64>(), text.parse::<bool>()) {
        // A text such as "007" stays a string.
        (Ok(number), _) if number.to_string() == text => Value::Integer(number),
        (_, Ok(truth)) => Value::Boolean(truth),
        _ => Value::String(text),
    }
}

fn traffic(traffic: &Traffic) -> Table {
    let mut table = Table::new();
    put(&mut table, "streams", i64::from(traffic.streams));
    put(&mut table, "message_size", format_size(traffic.message_size as u64));
    put(&mut table, "ordered", traffic.ordered);
    put(&mut table, "refill", traffic.refill.name());
    put(&mut table, "read", traffic.read.name());
    if !traffic.sporadic.is_empty() {
        let streams: Vec<Value> = traffic.sporadic.iter().map(|one| Value::Table(sporadic(one))).collect();
        put(&mut table, "sporadic", streams);
    }
    if let Some(volume) = traffic.volume {
        put(&mut table, "volume", format_size(volume as u64));
    }
    put_duration(&mut table, "start", traffic.start);
    if let Some(stop) = traffic.stop {
        put_duration(&mut table, "stop", stop);
    }
    table
}

fn sporadic(sporadic: &Sporadic) -> Table {
    let (least, most) = sporadic.size;
    let mut table = Table::new();
    put(&mut table, "stream", i64::from(sporadic.stream));
    put_duration(&mut table, "gap", sporadic.gap);
    put(&mut table, "size", format!("{}..{}", format_size(least as u64), format_size(most as u64)));
    table
}

fn cross(cross: &CrossTraffic) -> Table {
    let mut table = Table::new();
    put(&mut table, "kind", cross.load.name());
    put(&mut table, "path", cross.path as i64);
    put(&mut table, "reverse", cross.reverse);
    match cross.load {
        CrossLoad::Bulk { flows } => put(&mut table, "flows", i64::from(flows)),
        CrossLoad::Web(web) => {
            put(&mut table, "users", i64::from(web.users));
            put_duration(&mut table, "think", web.think);
            put(&mut table, "request", format_size(web.request));
            put(&mut table, "response", format_size(web.response));
            put(&mut table, "response_shape", web.response_shape);
        }
    }
    put_duration(&mut table, "start", cross.start);
    if let Some(stop) = cross.stop {
        put_duration(&mut table, "stop", stop);
    }
    put(&mut table, "initial_window", i64::from(cross.tcp.initial_window));
    put_duration(&mut table, "rto_min", cross.tcp.rto_min);
    put(&mut table, "receive_window", format_size(cross.tcp.receive_window));
    table
}

fn path(path: &PathSpec) -> Table {
    if let Some(owner) = path.shares {
        let mut table = Table::new();
        put(&mut table, "shares", owner as i64);
        put_presence(&mut table, path.presence);
        return table;
    }
    let mut table = link(&path.forward);
    if path.backward != path.forward {
        put(&mut table, "reverse", link(&path.backward));
    }
    put_presence(&mut table, path.presence);
    table
}

fn put_presence(table: &mut Table, presence: Presence) {
    for (key, at) in [("joins", presence.joins), ("leaves", presence.leaves)] {
        if let Some(at) = at {
            put_duration(table, key, at);
        }
    }
}

fn link(link: &LinkSpec) -> Table {
    let mut table = Table::new();
    put(&mut table, "rate", format_rate(link.rate));
    put_duration(&mut table, "delay", link.delay);
    put(&mut table, "queue", link.queue.to_string());
    match link.discipline {
        Discipline::DropTail => put(&mut table, "discipline", "drop_tail"),
        Discipline::Red(parameters) => {
            put(&mut table, "discipline", "red");
            put(&mut table, "red", red(&parameters));
        }
        Discipline::CoDel(CoDelSpec { target, interval, ecn }) => {
            put(&mut table, "discipline", "codel");
            let mut parameters = Table::new();
            put_duration(&mut parameters, "target", target);
            put_duration(&mut parameters, "interval", interval);
            put(&mut parameters, "ecn", ecn);
            put(&mut table, "codel", parameters);
        }
    }
    match link.loss {
        Loss::None => put(&mut table, "loss", 0.0),
        Loss::Uniform(probability) => put(&mut table, "loss", probability),
        Loss::GilbertElliott(GilbertElliott { p, r, good_loss, bad_loss }) => {
            let mut chain = Table::new();
            for (key, value) in [("p", p), ("r", r), ("good_loss", good_loss), ("bad_loss", bad_loss)] {
                put(&mut chain, key, value);
            }
            put(&mut table, "gilbert_elliott", chain);
        }
    }
    let ImpairmentSpec { bit_error_rate, bit_errors_spare, duplication, reordering, jitter } =
        link.impairments;
    put(&mut table, "bit_error_rate", bit_error_rate);
    put(&mut table, "bit_errors_spare", format_size(u64::from(bit_errors_spare)));
    put(&mut table, "duplicate", duplication);
    put_duration(&mut table, "jitter", jitter);
    put(&mut table, "reorder", reordering.map_or(0.0, |late| late.probability));
    if let Some(late) = reordering {
        put_duration(&mut table, "reorder_delay", late.extra_delay);
    }
    if let Some(mtu) = link.mtu {
        put(&mut table, "mtu", format_size(u64::from(mtu)));
    }
    let changes: Vec<Value> = link.changes.iter().map(|one| Value::Table(change(one))).collect();
    put(&mut table, "change", changes);
    table
}

fn red(red: &RedSpec) -> Table {
    let mut table = Table::new();
    put(&mut table, "weight", red.weight);
    put(&mut table, "min_threshold", i64::from(red.min_threshold));
    put(&mut table, "max_threshold", i64::from(red.max_threshold));
    put(&mut table, "max_probability", red.max_probability);
    put(&mut table, "idle_rate", red.idle_rate);
    put(&mut table, "uniform_drops", red.uniform_drops);
    put(&mut table, "ecn", red.ecn);
    table
}

fn change(change: &Change) -> Table {
    let mut table = Table::new();
    put_duration(&mut table, "at", change.at);
    if let Some(rate) = change.rate {
        put(&mut table, "rate", format_rate(rate));
    }
    if let Some(delay) = change.delay {
        put_duration(&mut table, "delay", delay);
    }
    match change.loss {
        Some(Loss::Uniform(probability)) => put(&mut table, "loss", probability),
        Some(_) => put(&mut table, "loss", 0.0),
        None => {}
    }
    if let Some(mtu) = change.mtu {
        put(&mut table, "mtu", format_size(u64::from(mtu)));
    }
    if let Some(outage) = change.outage {
        put(&mut table, "outage", outage);
    }
    table
}

fn put(table: &mut Table, key: &str, value: impl Into<Value>) {
    table.insert(key.to_owned(), value.into());
}

fn put_duration(table: &mut Table, key: &str, duration: Duration) {
    put(table, key, format_duration(duration));
}
