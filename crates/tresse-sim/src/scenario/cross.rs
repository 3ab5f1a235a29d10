//! Reader of further traffic: cross traffic over TCP between other hosts, and sporadic streams.

use std::collections::BTreeSet;
use std::time::Duration;

use tresse_proto::units;

use super::error::ScenarioError;
use super::link::read_access;
use super::section::{
    DURATION, LONGEST_RUN, Section, TRUTH, parse_duration, parse_message_size, parse_streams, parse_truth,
};
use crate::link::LinkSpec;
use crate::tcp::{CrossLoad, CrossTraffic, TcpSpec, WebSpec};
use crate::traffic::Sporadic;

/// Reads the pairs of hosts whose traffic crosses the scenario's paths, and the links between hosts and routers.
pub(super) fn read_cross(
    top: &mut Section<'_>,
    paths: usize,
    framing: u32,
) -> Result<(LinkSpec, Vec<CrossTraffic>), ScenarioError> {
    let access = read_access(top.section("access")?, framing)?;
    let sections = top.sections("cross")?;
    if sections.len() > MOST_PAIRS {
        return Err(top.inconsistent("cross", format!("a scenario has at most {MOST_PAIRS} of them")));
    }
    let cross_traffic = sections.into_iter().map(|section| read_crossing(section, paths));
    Ok((access, cross_traffic.collect::<Result<_, _>>()?))
}

fn read_crossing(mut section: Section<'_>, paths: usize) -> Result<CrossTraffic, ScenarioError> {
    let load = match section.require("kind", "\"bulk\" or \"web\"", parse_kind)? {
        Kind::Bulk => CrossLoad::Bulk { flows: section.read("flows", COUNT, parse_count)?.unwrap_or(1) },
        Kind::Web => CrossLoad::Web(read_web(&mut section)?),
    };
    let defaults = TcpSpec::default();
    let accepted = format!("a path, from 0 to {}", paths - 1);
    let path = |text: &str| text.parse::<usize>().ok().filter(|path| *path < paths);
    let cross = CrossTraffic {
        path: section.read("path", &accepted, path)?.unwrap_or(0),
        reverse: section.read("reverse", TRUTH, parse_truth)?.unwrap_or(false),
        load,
        start: section.read("start", DURATION, parse_start)?.unwrap_or_default(),
        stop: section.read("stop", DURATION, parse_duration)?,
        tcp: TcpSpec {
            initial_window: section
                .read("initial_window", "1 to 1000 segments", parse_window)?
                .unwrap_or(defaults.initial_window),
            rto_min: section
                .read("rto_min", "a duration from 1ms to 60s", parse_rto_min)?
                .unwrap_or(defaults.rto_min),
            receive_window: section
                .read("receive_window", "a size from 4KiB to 15MiB", parse_receive_window)?
                .unwrap_or(defaults.receive_window),
        },
    };
    if cross.stop.is_some_and(|stop| stop <= cross.start) {
        return Err(section.inconsistent("stop", "must be later than start"));
    }
    section.finish()?;
    Ok(cross)
}

fn read_web(section: &mut Section<'_>) -> Result<WebSpec, ScenarioError> {
    let response = "a size from 1B to 1GB, such as \"12kB\"";
    Ok(WebSpec {
        users: section.read("users", COUNT, parse_count)?.unwrap_or(1),
        think: section
            .read("think", "a duration from 1ms to 1000h", parse_gap)?
            .unwrap_or(Duration::from_secs(1)),
        request: section.read("request", "a size from 1B to 1GB", parse_response)?.unwrap_or(300),
        response: section.read("response", response, parse_response)?.unwrap_or(12_000),
        response_shape: section
            .read("response_shape", "a number above 1, such as 1.2", parse_shape)?
            .unwrap_or(1.2),
    })
}

/// Reads the streams of `[[traffic.sporadic]]`; each stream may occur once only.
pub(super) fn read_sporadic(traffic: &mut Section<'_>, streams: u16) -> Result<Vec<Sporadic>, ScenarioError> {
    let (mut found, mut described) = (Vec::new(), BTreeSet::new());
    for mut section in traffic.sections("sporadic")? {
        let sporadic = Sporadic {
            stream: section
                .require("stream", "a stream of the traffic, from 0 on", |text| text.parse().ok())?,
            gap: section.require("gap", "a duration from 1ms to 1000h", parse_gap)?,
            size: section.require("size", "two sizes such as \"1B..100B\", or one", parse_sizes)?,
        };
        if sporadic.stream >= streams {
            let last = streams - 1;
            return Err(section.inconsistent("stream", format!("the traffic has streams 0 to {last}")));
        }
        if !described.insert(sporadic.stream) {
            return Err(section.inconsistent("stream", "has its messages described before"));
        }
        section.finish()?;
        found.push(sporadic);
    }
    Ok(found)
}

enum Kind {
    Bulk,
    Web,
}

fn parse_kind(text: &str) -> Option<Kind> {
    match text {
        "bulk" => Some(Kind::Bulk),
        "web" => Some(Kind::Web),
        _ => None,
    }
}

fn parse_count(text: &str) -> Option<u16> {
    parse_streams(text).filter(|count| *count <= 1000)
}

fn parse_start(text: &str) -> Option<Duration> {
    parse_duration(text).filter(|start| *start <= LONGEST_RUN)
}

fn parse_gap(text: &str) -> Option<Duration> {
    parse_start(text).filter(|gap| *gap >= Duration::from_millis(1))
}

fn parse_response(text: &str) -> Option<u64> {
    units::parse_size(text).ok().filter(|size| (1..=1_000_000_000).contains(size))
}

fn parse_shape(text: &str) -> Option<f64> {
    text.parse().ok().filter(|shape: &f64| *shape > 1.0 && *shape <= 1000.0)
}

fn parse_window(text: &str) -> Option<u32> {
    text.parse().ok().filter(|segments| (1..=1000).contains(segments))
}

fn parse_rto_min(text: &str) -> Option<Duration> {
    parse_gap(text).filter(|least| *least <= Duration::from_secs(60))
}

fn parse_receive_window(text: &str) -> Option<u64> {
    units::parse_size(text).ok().filter(|size| (4 << 10..=15 << 20).contains(size))
}

fn parse_sizes(text: &str) -> Option<(usize, usize)> {
    let (least, most) = text.split_once("..").unwrap_or((text, text));
    let (least, most) = (parse_message_size(least.trim())?, parse_message_size(most.trim())?);
    (least <= most).then_some((least, most))
}

const COUNT: &str = "a whole number from 1 to 1000";
/// Each pair has addresses of its own.
const MOST_PAIRS: usize = 64;
