//! Reader of links: reads the two links of a path from its table. Contains every key of a link, its default and its accepted values.

use std::time::Duration;

use tresse_proto::units;

use super::PathSpec;
use super::error::ScenarioError;
use super::presence::read_presence;
use super::section::{DURATION, LONGEST_RUN, Section, TRUTH, parse_duration, parse_truth};
use crate::link::{
    Change, CoDelSpec, Discipline, GilbertElliott, LinkSpec, Loss, QueueLimit, RedSpec, Reordering,
};

const RATE: &str = "a rate from 1bit/s to 1000Gbit/s, such as \"10Mbit/s\"";
const DELAY: &str = "a duration up to 10min, such as \"25ms\"";
const PERIOD: &str = "a duration above 0s and up to 10min, such as \"5ms\"";
const QUEUE: &str = "a limit such as \"100 packets\" or \"64KiB\"";
const DISCIPLINE: &str = "\"drop_tail\", \"red\" or \"codel\"";
const PROBABILITY: &str = "a probability such as \"1%\" or 0.01";
const MTU: &str = "a size from 576B to 65535B, such as \"1400B\"";
const SPARE: &str = "a size up to 65535B, such as \"48B\"";
const THRESHOLD: &str = "a whole number of packets up to 1000000";

/// Reads a path. `before` are the paths before it in the document; `framing` is the same on all links.
pub(super) fn read_path(
    mut section: Section<'_>,
    before: &[PathSpec],
    framing: u32,
) -> Result<PathSpec, ScenarioError> {
    let owner = |text: &str| {
        text.parse()
            .ok()
            .filter(|&path| before.get(path).is_some_and(|path: &PathSpec| path.shares.is_none()))
    };
    let presence = read_presence(&mut section)?;
    if let Some(path) = section.read("shares", "a path before this one with links of its own", owner)? {
        section.finish()?;
        return Ok(PathSpec { shares: Some(path), presence, ..before[path].clone() });
    }
    let rate = section.require("rate", RATE, parse_rate)?;
    let delay = section.require("delay", DELAY, parse_delay)?;
    let defaults = Draft::new(LinkSpec { framing, ..LinkSpec::new(rate, delay) });
    let there = read_link(&mut section, &defaults)?;
    let mut back = there.clone();
    if let Some(mut reverse) = section.section("reverse")? {
        back = read_link(&mut reverse, &there)?;
        reverse.finish()?;
    }
    section.finish()?;
    Ok(PathSpec { forward: there.spec, backward: back.spec, shares: None, presence })
}

/// Reads the links between hosts and routers; by default they are fast and have no delay.
pub(super) fn read_access(section: Option<Section<'_>>, framing: u32) -> Result<LinkSpec, ScenarioError> {
    let mut access = LinkSpec { framing, queue: ACCESS_QUEUE, ..LinkSpec::new(ACCESS_RATE, Duration::ZERO) };
    let Some(mut section) = section else { return Ok(access) };
    update(&mut access.rate, section.read("rate", RATE, parse_rate)?);
    update(&mut access.delay, section.read("delay", DELAY, parse_delay)?);
    update(&mut access.queue, section.read("queue", QUEUE, QueueLimit::parse)?);
    section.finish()?;
    Ok(access)
}

/// A link, with the parameters that it does not use itself but that the other direction may inherit.
#[derive(Clone)]
struct Draft {
    spec: LinkSpec,
    kind: Kind,
    red: RedSpec,
    codel: CoDelSpec,
    reorder: f64,
    reorder_delay: Duration,
}

#[derive(Copy, Clone)]
enum Kind {
    DropTail,
    Red,
    CoDel,
}

impl Draft {
    fn new(spec: LinkSpec) -> Self {
        Draft {
            spec,
            kind: Kind::DropTail,
            red: RedSpec::default(),
            codel: CoDelSpec::default(),
            reorder: 0.0,
            reorder_delay: Duration::from_millis(1),
        }
    }
}

/// Reads one direction; keys that are missing have the values of `base`.
fn read_link(section: &mut Section<'_>, base: &Draft) -> Result<Draft, ScenarioError> {
    let mut draft = base.clone();
    let spec = &mut draft.spec;
    update(&mut spec.rate, section.read("rate", RATE, parse_rate)?);
    update(&mut spec.delay, section.read("delay", DELAY, parse_delay)?);
    update(&mut spec.queue, section.read("queue", QUEUE, QueueLimit::parse)?);
    update(&mut spec.loss, read_loss(section)?);
    let impairments = &mut spec.impairments;
    update(&mut impairments.bit_error_rate, section.read("bit_error_rate", PROBABILITY, parse_probability)?);
    update(&mut impairments.bit_errors_spare, section.read("bit_errors_spare", SPARE, parse_spare)?);
    update(&mut impairments.duplication, section.read("duplicate", PROBABILITY, parse_probability)?);
    update(&mut impairments.jitter, section.read("jitter", DELAY, parse_delay)?);
    update(&mut spec.mtu, section.read("mtu", MTU, |text| parse_mtu(text).map(Some))?);
    if section.contains("change") {
        spec.changes = read_changes(section)?;
    }
    update(&mut draft.reorder, section.read("reorder", PROBABILITY, parse_probability)?);
    update(&mut draft.reorder_delay, section.read("reorder_delay", DELAY, parse_delay)?);
    draft.spec.impairments.reordering = (draft.reorder > 0.0)
        .then_some(Reordering { probability: draft.reorder, extra_delay: draft.reorder_delay });

    update(&mut draft.kind, section.read("discipline", DISCIPLINE, parse_discipline)?);
    if let Some(table) = section.section("red")? {
        draft.red = read_red(table, draft.red)?;
    }
    if let Some(table) = section.section("codel")? {
        draft.codel = read_codel(table, draft.codel)?;
    }
    draft.spec.discipline = match draft.kind {
        Kind::DropTail => Discipline::DropTail,
        Kind::Red => Discipline::Red(draft.red),
        Kind::CoDel => Discipline::CoDel(draft.codel),
    };
    Ok(draft)
}

fn read_loss(section: &mut Section<'_>) -> Result<Option<Loss>, ScenarioError> {
    let uniform = section.read("loss", PROBABILITY, parse_loss)?;
    let Some(mut table) = section.section("gilbert_elliott")? else { return Ok(uniform) };
    if uniform.is_some() {
        return Err(section.inconsistent("gilbert_elliott", "takes the place of loss: leave one of them out"));
    }
    let chain = GilbertElliott {
        p: table.require("p", PROBABILITY, parse_probability)?,
        r: table.require("r", PROBABILITY, parse_probability)?,
        good_loss: table.read("good_loss", PROBABILITY, parse_probability)?.unwrap_or(0.0),
        bad_loss: table.read("bad_loss", PROBABILITY, parse_probability)?.unwrap_or(1.0),
    };
    if chain.p + chain.r == 0.0 {
        return Err(table.inconsistent("p", "and r must not both be 0"));
    }
    table.finish()?;
    Ok(Some(Loss::GilbertElliott(chain)))
}

fn read_red(mut table: Section<'_>, base: RedSpec) -> Result<RedSpec, ScenarioError> {
    let mut red = base;
    update(&mut red.weight, table.read("weight", "a number above 0 and up to 1", parse_weight)?);
    update(&mut red.min_threshold, table.read("min_threshold", THRESHOLD, parse_threshold)?);
    update(&mut red.max_threshold, table.read("max_threshold", THRESHOLD, parse_threshold)?);
    update(&mut red.max_probability, table.read("max_probability", PROBABILITY, parse_probability)?);
    update(&mut red.idle_rate, table.read("idle_rate", "packets a second, such as 150", parse_idle_rate)?);
    update(&mut red.uniform_drops, table.read("uniform_drops", TRUTH, parse_truth)?);
    update(&mut red.ecn, table.read("ecn", TRUTH, parse_truth)?);
    if red.min_threshold >= red.max_threshold {
        return Err(table.inconsistent("max_threshold", "must be above min_threshold"));
    }
    table.finish()?;
    Ok(red)
}

fn read_codel(mut table: Section<'_>, base: CoDelSpec) -> Result<CoDelSpec, ScenarioError> {
    let mut codel = base;
    update(&mut codel.target, table.read("target", PERIOD, parse_period)?);
    update(&mut codel.interval, table.read("interval", PERIOD, parse_period)?);
    update(&mut codel.ecn, table.read("ecn", TRUTH, parse_truth)?);
    table.finish()?;
    Ok(codel)
}

fn read_changes(section: &mut Section<'_>) -> Result<Vec<Change>, ScenarioError> {
    let mut changes: Vec<Change> = Vec::new();
    for mut table in section.sections("change")? {
        let change = Change {
            at: table.require("at", DURATION, parse_duration)?,
            rate: table.read("rate", RATE, parse_rate)?,
            delay: table.read("delay", DELAY, parse_delay)?,
            loss: table.read("loss", PROBABILITY, parse_loss)?,
            outage: table.read("outage", TRUTH, parse_truth)?,
            mtu: table.read("mtu", MTU, parse_mtu)?,
        };
        if change == (Change { at: change.at, ..Change::default() }) {
            return Err(table.inconsistent("at", "changes nothing: give a rate, delay, loss, outage or mtu"));
        }
        if change.at > LONGEST_RUN || changes.last().is_some_and(|last| last.at >= change.at) {
            return Err(
                table.inconsistent("at", "must be later than in the change before, and at most 1000h")
            );
        }
        table.finish()?;
        changes.push(change);
    }
    Ok(changes)
}

fn update<T>(value: &mut T, written: Option<T>) {
    if let Some(written) = written {
        *value = written;
    }
}

fn parse_delay(text: &str) -> Option<Duration> {
    parse_duration(text).filter(|delay| *delay <= LONGEST_DELAY)
}

/// Reads an interval, which must not be zero.
fn parse_period(text: &str) -> Option<Duration> {
    parse_delay(text).filter(|period| !period.is_zero())
}

fn parse_rate(text: &str) -> Option<u64> {
    units::parse_rate(text).ok().filter(|rate| (1..=FASTEST).contains(rate))
}

fn parse_discipline(text: &str) -> Option<Kind> {
    match text {
        "drop_tail" => Some(Kind::DropTail),
        "red" => Some(Kind::Red),
        "codel" => Some(Kind::CoDel),
        _ => None,
    }
}

fn parse_loss(text: &str) -> Option<Loss> {
    parse_probability(text).map(|p| if p == 0.0 { Loss::None } else { Loss::Uniform(p) })
}

fn parse_probability(text: &str) -> Option<f64> {
    let probability = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().ok()? / 100.0,
        None => text.parse::<f64>().ok()?,
    };
    (0.0..=1.0).contains(&probability).then_some(probability)
}

fn parse_mtu(text: &str) -> Option<u32> {
    u32::try_from(units::parse_size(text).ok()?).ok().filter(|mtu| (576..=65_535).contains(mtu))
}

fn parse_spare(text: &str) -> Option<u32> {
    u32::try_from(units::parse_size(text).ok()?).ok().filter(|bytes| *bytes <= 65_535)
}

fn parse_weight(text: &str) -> Option<f64> {
    parse_probability(text).filter(|weight| *weight > 0.0)
}

fn parse_threshold(text: &str) -> Option<u32> {
    text.parse().ok().filter(|packets| *packets <= QueueLimit::MAX_PACKETS)
}

fn parse_idle_rate(text: &str) -> Option<f64> {
    text.parse().ok().filter(|rate| (0.0..=1e12).contains(rate))
}

const ACCESS_RATE: u64 = 1_000_000_000;
const ACCESS_QUEUE: QueueLimit = QueueLimit::Packets(1000);
const LONGEST_DELAY: Duration = Duration::from_secs(600);
const FASTEST: u64 = 1_000_000_000_000;
