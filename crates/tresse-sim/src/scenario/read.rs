//! Reader of scenarios: converts a document into a resolved scenario. Contains every key except those of links, its
//! default and its accepted values.

use std::path::Path;
use std::time::Duration;

use toml::Table;
use tresse_proto::config::{ConfigError, Encryption, PRESETS, PathPairs, StreamMap};
use tresse_proto::{AssociationConfig, units};

use super::cross::{read_cross, read_sporadic};
use super::error::ScenarioError;
use super::link::read_path;
use super::presence::check_presence;
use super::section::{
    DURATION, LONGEST_RUN, Section, TRUTH, parse_duration, parse_message_size, parse_streams, parse_truth,
};
use super::{PathSpec, Resolved, Traffic};
use crate::traffic::{ReadOrder, Refill};

pub(super) fn resolve(file: &str, document: &Table) -> Result<Resolved, ScenarioError> {
    let mut top = Section::top(file, document);
    let stem =
        Path::new(file).file_stem().map_or("scenario".to_owned(), |stem| stem.to_string_lossy().into());
    let name = top.read_text("name", "a name in quotes, such as \"wifi-lte\"")?.unwrap_or(stem);
    let seed = top.read("seed", "a whole number from 0 to 18446744073709551615", parse_number)?;
    let preset = read_preset(&mut top)?;
    let settle = top.read("settle", DURATION, parse_duration)?.unwrap_or(Duration::from_secs(19));
    let measure = top.read("measure", DURATION, parse_duration)?.unwrap_or(Duration::from_secs(60));
    let start_jitter = top.read("start_jitter", DURATION, parse_duration)?.unwrap_or(Duration::from_secs(1));
    let framing = top.read("framing", "a size up to 1kB, such as \"7B\"", parse_framing)?.unwrap_or(0);
    if measure.is_zero() || settle.saturating_add(measure) > LONGEST_RUN {
        return Err(top.inconsistent("measure", "must be above 0, and at most 1000h together with settle"));
    }
    if start_jitter > LONGEST_RUN {
        return Err(top.inconsistent("start_jitter", "must be at most 1000h"));
    }
    let paths = read_paths(&mut top, framing)?;
    let (access, cross_traffic) = read_cross(&mut top, paths.len(), framing)?;
    let traffic = read_traffic(&mut top)?;
    let (record_interval, record_recovery) = read_record(&mut top, settle + measure)?;
    let loss_oracle = top.read("loss_oracle", TRUTH, parse_truth)?.unwrap_or(false);
    let packet_time = read_host(&mut top)?;
    let (sender, receiver) = read_settings(file, &mut top, &preset, &paths, &traffic)?;
    check_presence(&top, &paths, [&sender, &receiver])?;
    if record_recovery && [&sender, &receiver].iter().all(|config| config.encryption != Encryption::Off) {
        let reason =
            "TSNs of encrypted associations cannot be read on the way: leave it out, or set encryption = off";
        return Err(top.inconsistent("record.recovery", reason));
    }
    top.finish()?;
    Ok(Resolved {
        name,
        seed: seed.unwrap_or(1),
        preset,
        settle,
        measure,
        start_jitter,
        sender,
        receiver,
        packet_time,
        paths,
        access,
        cross_traffic,
        traffic,
        record_interval,
        record_recovery,
        loss_oracle,
    })
}

fn read_preset(top: &mut Section<'_>) -> Result<String, ScenarioError> {
    let names = || PRESETS.iter().map(|preset| preset.name);
    let preset = top.read("preset", "a preset", |text| Some(text.to_owned()))?.unwrap_or("cmt".to_owned());
    if !names().any(|name| name == preset) {
        let known = names().collect::<Vec<_>>().join(", ");
        return Err(top.inconsistent("preset", format!("\"{preset}\" is not one of the presets {known}")));
    }
    Ok(preset)
}

fn read_paths(top: &mut Section<'_>, framing: u32) -> Result<Vec<PathSpec>, ScenarioError> {
    let sections = top.sections("path")?;
    if sections.is_empty() {
        return Err(top.inconsistent("path", "a scenario has at least one [[path]]"));
    }
    if sections.len() > MOST_PATHS {
        return Err(top.inconsistent("path", format!("a scenario has at most {MOST_PATHS} paths")));
    }
    let mut paths = Vec::with_capacity(sections.len());
    for section in sections {
        paths.push(read_path(section, &paths, framing)?);
    }
    Ok(paths)
}

fn read_traffic(top: &mut Section<'_>) -> Result<Traffic, ScenarioError> {
    let mut traffic = Traffic::default();
    let Some(mut section) = top.section("traffic")? else { return Ok(traffic) };
    if let Some(streams) = section.read("streams", "a whole number from 1 to 65535", parse_streams)? {
        traffic.streams = streams;
    }
    traffic.sporadic = read_sporadic(&mut section, traffic.streams)?;
    if let Some(size) = section.read("message_size", "a size from 1B to 16MiB", parse_message_size)? {
        traffic.message_size = size;
    }
    if let Some(ordered) = section.read("ordered", TRUTH, parse_truth)? {
        traffic.ordered = ordered;
    }
    if let Some(refill) = section.read("refill", "\"in_turn\" or \"by_queue\"", parse_refill)? {
        traffic.refill = refill;
    }
    if let Some(read) = section.read("read", "\"before_sack\" or \"after_sack\"", parse_read)? {
        traffic.read = read;
    }
    traffic.volume = section.read("volume", "a size from 1B to 1024GiB, such as \"8MiB\"", parse_volume)?;
    if let Some(start) = section.read("start", DURATION, parse_duration)? {
        traffic.start = start;
    }
    traffic.stop = section.read("stop", DURATION, parse_duration)?;
    if traffic.start > LONGEST_RUN {
        return Err(section.inconsistent("start", "must be at most 1000h"));
    }
    if traffic.stop.is_some_and(|stop| stop <= traffic.start) {
        return Err(section.inconsistent("stop", "must be later than start"));
    }
    if traffic.volume.is_some() && !traffic.sporadic.is_empty() {
        return Err(
            section.inconsistent("volume", "has no end that sporadic streams know: leave one of them out")
        );
    }
    section.finish()?;
    Ok(traffic)
}

fn read_host(top: &mut Section<'_>) -> Result<Duration, ScenarioError> {
    let Some(mut section) = top.section("host")? else { return Ok(Duration::ZERO) };
    let accepted = "a duration up to 1s, such as \"50us\"";
    let packet_time = section.read("packet_time", accepted, parse_packet_time)?.unwrap_or_default();
    section.finish()?;
    Ok(packet_time)
}

fn read_record(top: &mut Section<'_>, whole: Duration) -> Result<(Option<Duration>, bool), ScenarioError> {
    let Some(mut section) = top.section("record")? else { return Ok((None, false)) };
    let interval = section.read("interval", DURATION, parse_duration)?;
    if interval.is_some_and(|interval| whole.as_nanos() > interval.as_nanos().saturating_mul(MOST_SAMPLES)) {
        let reason = format!("gives more than {MOST_SAMPLES} samples in the run: take a longer one");
        return Err(section.inconsistent("interval", reason));
    }
    let recovery = section.read("recovery", TRUTH, parse_truth)?.unwrap_or(false);
    section.finish()?;
    Ok((interval, recovery))
}

/// Reads the settings of both hosts: the preset, then `[transport]`, then the table of each host.
fn read_settings(
    file: &str,
    top: &mut Section<'_>,
    preset: &str,
    paths: &[PathSpec],
    traffic: &Traffic,
) -> Result<(AssociationConfig, AssociationConfig), ScenarioError> {
    let mut common =
        AssociationConfig::preset(preset).map_err(|error| ScenarioError::setting(file, "preset", error))?;
    common.outbound_streams = traffic.streams;
    apply_settings(file, top.section("transport")?, &mut common)?;
    let (mut sender, mut receiver) = (common.clone(), common.clone());
    apply_settings(file, top.section("sender")?, &mut sender)?;
    apply_settings(file, top.section("receiver")?, &mut receiver)?;
    let of_both = common.check().err();
    for (own, config) in [("sender", &sender), ("receiver", &receiver)] {
        // An error that both hosts have in common belongs to the table of both.
        let section = |error: &ConfigError| if of_both.as_ref() == Some(error) { "transport" } else { own };
        config.check().map_err(|error| ScenarioError::setting(file, section(&error), error))?;
    }
    if sender.outbound_streams < traffic.streams || receiver.inbound_streams < traffic.streams {
        return Err(top.inconsistent(
            "traffic.streams",
            format!(
                "is {}, but the hosts would agree on {}: raise outbound_streams and inbound_streams",
                traffic.streams,
                sender.outbound_streams.min(receiver.inbound_streams)
            ),
        ));
    }
    for config in [&sender, &receiver] {
        if config.path_pairs != PathPairs::ByPosition {
            return Err(
                top.inconsistent("transport.path_pairs", "disjoint paths are paired by_position only")
            );
        }
        if let StreamMap::Fixed(table) = &config.stream_map
            && let Some(path) = table.iter().find(|path| usize::from(**path) >= paths.len())
        {
            let last = paths.len() - 1;
            let reason = format!("names path {path}, and the scenario has paths 0 to {last}");
            return Err(top.inconsistent("transport.stream_map", reason));
        }
    }
    Ok((sender, receiver))
}

fn apply_settings(
    file: &str,
    section: Option<Section<'_>>,
    config: &mut AssociationConfig,
) -> Result<(), ScenarioError> {
    let Some(section) = section else { return Ok(()) };
    let path = section.path().to_owned();
    let texts: Vec<_> = AssociationConfig::describe().into_iter().filter(|switch| switch.text).collect();
    let is_text = |name: &str| texts.iter().any(|switch| switch.name == name);
    for (name, value) in section.entries(&is_text)? {
        config.set(&name, &value).map_err(|error| ScenarioError::setting(file, &path, error))?;
    }
    Ok(())
}

fn parse_number(text: &str) -> Option<u64> {
    text.parse().ok()
}

fn parse_packet_time(text: &str) -> Option<Duration> {
    parse_duration(text).filter(|time| *time <= Duration::from_secs(1))
}

fn parse_framing(text: &str) -> Option<u32> {
    units::parse_size(text).ok().filter(|size| *size <= 1000).map(|size| size as u32)
}

fn parse_volume(text: &str) -> Option<usize> {
    let bytes = units::parse_size(text).ok()?;
    if !(1..=LARGEST_VOLUME).contains(&bytes) {
        return None;
    }
    usize::try_from(bytes).ok()
}

fn parse_refill(text: &str) -> Option<Refill> {
    Refill::ALL.iter().copied().find(|refill| refill.name() == text)
}

fn parse_read(text: &str) -> Option<ReadOrder> {
    ReadOrder::ALL.iter().copied().find(|read| read.name() == text)
}

/// Each path has an address range of its own.
const MOST_PATHS: usize = 64;
const MOST_SAMPLES: u128 = 100_000;
/// One terabyte, more than any run can send.
const LARGEST_VOLUME: u64 = 1 << 40;
