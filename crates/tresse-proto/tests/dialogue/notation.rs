//! Lines to steps. Knows the words of the notation, not what they do.

use std::time::Duration;

use tresse_proto::Ecn;

/// A step, with the line that it was written in.
pub(crate) struct Line {
    pub(crate) number: usize,
    pub(crate) text: String,
    pub(crate) step: Step,
}

pub(crate) enum Step {
    /// A setting of the association, or of the endpoint.
    Setting {
        endpoint: bool,
        name: String,
        value: String,
    },
    Paths(u8),
    Call(Words),
    Read(Words),
    Inject(Packet),
    Expect(Packet, When),
    Silence(Duration),
    Pass(Duration),
    Event(String),
    State(String),
    Discards(String, u64),
}

/// A packet in words.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    /// From 0.
    pub(crate) path: u8,
    pub(crate) tag: Option<String>,
    pub(crate) ecn: Ecn,
    pub(crate) chunks: Vec<Words>,
}

/// When a packet has to leave, counted from the step before.
#[derive(Copy, Clone, Debug)]
pub(crate) struct When {
    pub(crate) earliest: Duration,
    pub(crate) latest: Duration,
}

/// A name and what is said of it: `key=value`, or a bare word, whose value is empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Words {
    pub(crate) name: String,
    pub(crate) fields: Vec<(String, String)>,
}

impl Words {
    pub(crate) fn new(name: &str) -> Self {
        Words { name: name.to_owned(), fields: Vec::new() }
    }

    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        let name = words.next().ok_or("a name is missing")?.to_owned();
        let fields = words.map(|word| match word.split_once('=') {
            Some((key, value)) => (key.to_owned(), value.to_owned()),
            None => (word.to_owned(), String::new()),
        });
        Ok(Words { name, fields: fields.collect() })
    }

    pub(crate) fn field(&self, key: &str) -> Option<&str> {
        self.fields.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.field(key).is_some()
    }

    /// The number of a field, in decimal or after `0x`.
    pub(crate) fn number(&self, key: &str, default: u64) -> Result<u64, String> {
        self.field(key).map_or(Ok(default), number)
    }

    pub(crate) fn put(&mut self, key: &str, value: impl ToString) {
        self.fields.push((key.to_owned(), value.to_string()));
    }
}

impl std::fmt::Display for Words {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)?;
        for (key, value) in &self.fields {
            if value.is_empty() { write!(f, " {key}")? } else { write!(f, " {key}={value}")? }
        }
        Ok(())
    }
}

const ESTABLISHED: &str = "
    call connect
    > INIT
    < INIT-ACK
    > COOKIE-ECHO cookie=P
    < COOKIE-ACK
    event Established
";

const ACCEPTED: &str = "
    < INIT
    > tag=init INIT-ACK
    < COOKIE-ECHO
    > COOKIE-ACK
    event Established
";

/// Reads a dialogue.
///
/// # Errors
/// The first line that cannot be read, and why.
pub(crate) fn read(dialogue: &str) -> Result<Vec<Line>, String> {
    let mut lines = Vec::new();
    for (position, text) in dialogue.lines().enumerate() {
        let text = text.split('#').next().unwrap_or_default().trim();
        let scene = match text {
            "" => continue,
            "established" => ESTABLISHED,
            "accepted" => ACCEPTED,
            _ => text,
        };
        for text in scene.lines().map(str::trim).filter(|text| !text.is_empty()) {
            let step = step(text).map_err(|why| format!("line {}, `{text}`: {why}", position + 1))?;
            lines.push(Line { number: position + 1, text: text.to_owned(), step });
        }
    }
    Ok(lines)
}

fn step(text: &str) -> Result<Step, String> {
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    Ok(match word {
        "with" | "endpoint" => {
            let (name, value) = assignment(rest)?;
            Step::Setting { endpoint: word == "endpoint", name, value }
        }
        "paths" => Step::Paths(rest.parse().map_err(|_| "a number of paths is missing")?),
        "call" => Step::Call(Words::parse(rest)?),
        "read" => Step::Read(Words::parse(&format!("message {rest}"))?),
        "<" => Step::Inject(packet(rest)?),
        ">" => {
            let (said, when) = timing(rest)?;
            Step::Expect(packet(said)?, when)
        }
        "nothing" => Step::Silence(duration(rest.strip_prefix("within ").ok_or("`within` is missing")?)?),
        "pass" => Step::Pass(duration(rest)?),
        "event" => Step::Event(rest.to_owned()),
        "state" => Step::State(rest.to_owned()),
        "discards" => {
            let (name, value) = assignment(rest)?;
            Step::Discards(name, number(&value)?)
        }
        _ => return Err("no line begins like this".to_owned()),
    })
}

fn assignment(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("`=` is missing")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// Splits off when a packet is expected.
fn timing(text: &str) -> Result<(&str, When), String> {
    if let Some((said, limit)) = text.rsplit_once(" within ") {
        return Ok((said, When { earliest: Duration::ZERO, latest: duration(limit)? }));
    }
    let Some((said, time)) = text.rsplit_once(" after ") else {
        return Ok((text, When { earliest: Duration::ZERO, latest: Duration::ZERO }));
    };
    let (earliest, latest) = time.split_once(" to ").unwrap_or((time, time));
    Ok((said, When { earliest: duration(earliest)?, latest: duration(latest)? }))
}

fn packet(text: &str) -> Result<Packet, String> {
    let (mut path, mut tag, mut ecn) = (0, None, Ecn::NotEct);
    let mut rest = text.trim();
    while let Some((word, after)) = rest.split_once(' ') {
        if let Some(number) = word.strip_prefix('@') {
            let number: u8 = number.parse().map_err(|_| "a path is a number from 1")?;
            path = number.checked_sub(1).ok_or("paths count from 1")?;
        } else if let Some(name) = word.strip_prefix("tag=") {
            tag = Some(name.to_owned());
        } else if let Some(codepoint) = codepoint(word) {
            ecn = codepoint;
        } else {
            break;
        }
        rest = after.trim_start();
    }
    let chunks = rest.split('|').map(chunks).collect::<Result<Vec<_>, _>>()?.concat();
    Ok(Packet { path, tag, ecn, chunks })
}

/// A chunk, or with `tsn=1-9` as many that are else alike.
fn chunks(text: &str) -> Result<Vec<Words>, String> {
    let words = Words::parse(text)?;
    let Some((first, last)) = words.field("tsn").and_then(|tsn| tsn.split_once('-')) else {
        return Ok(vec![words]);
    };
    let numbered = |tsn: u64| {
        let mut words = words.clone();
        words
            .fields
            .iter_mut()
            .filter(|(key, _)| key == "tsn")
            .for_each(|(_, value)| *value = tsn.to_string());
        words
    };
    Ok((number(first)?..=number(last)?).map(numbered).collect())
}

fn codepoint(word: &str) -> Option<Ecn> {
    match word {
        "ect0" => Some(Ecn::Ect0),
        "ce" => Some(Ecn::Ce),
        _ => None,
    }
}

pub(crate) fn number(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| format!("`{text}` is no number"))
}

/// A time like `200 ms`.
fn duration(text: &str) -> Result<Duration, String> {
    let (count, unit) = text.trim().split_once(' ').ok_or("a time is a number and a unit, as `200 ms`")?;
    let micros = match unit.trim() {
        "us" => 1,
        "ms" => 1_000,
        "s" => 1_000_000,
        _ => return Err(format!("`{unit}` is no unit of time: us, ms or s")),
    };
    Ok(Duration::from_micros(number(count)? * micros))
}
