//! Text form of scripts: one line for the seed, for each path, for each host and for each act.
//!
//! A printed script reads back unchanged. `#` begins a comment.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use tresse_proto::units::{format_duration, format_rate, parse_duration, parse_rate};
use tresse_proto::{Direction, Reliability};

use super::{ADDRESS_CHANGES, Act, Change, Deed, Forgery, Host, HostPlan, Move, PathPlan, Script};

/// A line that is not valid in a script.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct ScriptError {
    /// Number of the line, from 1 on.
    pub line: usize,
    /// The fault, and the accepted values.
    pub what: String,
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}", self.seed)?;
        for path in &self.paths {
            writeln!(f, "path {path}")?;
        }
        for host in Host::BOTH {
            write!(f, "{}", host.name())?;
            for (name, value) in &self.hosts[host.index()].switches {
                write!(f, " {name}={value}")?;
            }
            writeln!(f)?;
        }
        for act in &self.acts {
            writeln!(f, "at {} {}", format_duration(act.at), act.deed)?;
        }
        Ok(())
    }
}

impl fmt::Display for PathPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PathPlan { rate, delay, queue, marks, loss, twice, late, damage, mtu, ipv6 } = self;
        write!(f, "rate={} delay={} queue={queue}", format_rate(*rate), format_duration(*delay))?;
        for (name, value) in [("marks", marks), ("loss", loss), ("twice", twice), ("damage", damage)] {
            if *value > 0.0 {
                write!(f, " {name}={value}")?;
            }
        }
        if let Some((share, by)) = late {
            write!(f, " late={share}/{}", format_duration(*by))?;
        }
        if let Some(mtu) = mtu {
            write!(f, " mtu={mtu}")?;
        }
        if *ipv6 { write!(f, " ipv6") } else { Ok(()) }
    }
}

impl fmt::Display for Deed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Deed::Host(host, what) => write!(f, "{} {what}", host.name()),
            Deed::Path { path, from, change } => {
                write!(f, "path {path}")?;
                if let Some(from) = from {
                    write!(f, " from={}", from.name())?;
                }
                write!(f, "{change}")
            }
            Deed::Replay { to, back } => write!(f, "replay to={} back={back}", to.name()),
            Deed::Forge { to, what } => {
                let name = Forgery::ALL.iter().find(|(kind, _)| kind == what).map_or("", |&(_, name)| name);
                write!(f, "forge to={} what={name}", to.name())
            }
        }
    }
}

impl fmt::Display for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Move::Connect { addresses } => write!(f, "connect addresses={addresses}"),
            Move::Send { len, stream, unordered, reliability, times } => {
                write!(f, "send len={len} stream={stream} times={times}")?;
                write_reliability(f, reliability)?;
                if *unordered { write!(f, " unordered") } else { Ok(()) }
            }
            Move::Pause => write!(f, "pause"),
            Move::Resume => write!(f, "resume"),
            Move::Shutdown => write!(f, "shutdown"),
            Move::Abort => write!(f, "abort"),
            Move::Restart => write!(f, "restart"),
            Move::Primary { path } => write!(f, "primary path={path}"),
            Move::Address { change, path } => {
                let named = ADDRESS_CHANGES.iter().find(|(kind, _)| kind == change);
                write!(f, "{} path={path}", named.map_or("", |&(_, name)| name))
            }
            Move::Scheduler { name } => write!(f, "scheduler name={name}"),
            Move::Reset { stream: Some(stream), direction } => {
                write!(f, "reset stream={stream} direction={}", name_of(*direction))
            }
            Move::Reset { stream: None, direction } => write!(f, "reset direction={}", name_of(*direction)),
            Move::ResetAssociation => write!(f, "reset_association"),
            Move::AddStreams { outbound, inbound } => {
                write!(f, "add_streams outbound={outbound} inbound={inbound}")
            }
            Move::UseKey { number } => write!(f, "use_key number={number}"),
            Move::Rekey => write!(f, "rekey"),
        }
    }
}

fn write_reliability(f: &mut fmt::Formatter<'_>, reliability: &Reliability) -> fmt::Result {
    match reliability {
        Reliability::Full => Ok(()),
        Reliability::Lifetime(life) => write!(f, " lifetime={}", format_duration(*life)),
        Reliability::Retransmissions(limit) => write!(f, " retransmissions={limit}"),
        Reliability::Priority(priority) => write!(f, " priority={priority}"),
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(out) = self.out {
            write!(f, " out={out}")?;
        }
        if let Some(loss) = self.loss {
            write!(f, " loss={loss}")?;
        }
        if let Some(delay) = self.delay {
            write!(f, " delay={}", format_duration(delay))?;
        }
        if let Some(rate) = self.rate {
            write!(f, " rate={}", format_rate(rate))?;
        }
        match self.mtu {
            Some(mtu) => write!(f, " mtu={mtu}"),
            None => Ok(()),
        }
    }
}

impl FromStr for Script {
    type Err = ScriptError;

    fn from_str(text: &str) -> Result<Self, ScriptError> {
        let mut script = Script::default();
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or("");
            read_line(line, &mut script).map_err(|what| ScriptError { line: number + 1, what })?;
        }
        script.acts.sort_by_key(|act| act.at);
        Ok(script)
    }
}

fn read_line(line: &str, script: &mut Script) -> Result<(), String> {
    let mut words = Words::new(line);
    match words.next() {
        None => Ok(()),
        Some("seed") => {
            script.seed = read("seed", words.next().unwrap_or(""))?;
            Ok(())
        }
        Some("path") => {
            script.paths.push(read_path(words)?);
            Ok(())
        }
        Some("at") => {
            let at = words.next().unwrap_or("");
            let at = parse_duration(at).map_err(|error| error.to_string())?;
            script.acts.push(Act { at, deed: read_deed(words)? });
            Ok(())
        }
        Some(name) if host(name).is_ok() => {
            script.hosts[host(name)?.index()] = read_host(words)?;
            Ok(())
        }
        Some(other) => Err(format!("\"{other}\" is none of seed, path, client, server, at")),
    }
}

fn read_path(words: Words<'_>) -> Result<PathPlan, String> {
    let mut path = PathPlan {
        rate: 10_000_000,
        delay: Duration::from_millis(10),
        queue: 100,
        marks: 0.0,
        loss: 0.0,
        twice: 0.0,
        late: None,
        damage: 0.0,
        mtu: None,
        ipv6: false,
    };
    for (key, value) in words.pairs() {
        match key {
            "rate" => path.rate = rate(value)?,
            "delay" => path.delay = duration(value)?,
            "queue" => path.queue = read(key, value)?,
            "marks" => path.marks = read(key, value)?,
            "loss" => path.loss = read(key, value)?,
            "twice" => path.twice = read(key, value)?,
            "damage" => path.damage = read(key, value)?,
            "mtu" => path.mtu = Some(read(key, value)?),
            "late" => {
                let (share, by) = value.split_once('/').ok_or("late is a probability, \"/\" and a delay")?;
                path.late = Some((read(key, share)?, duration(by)?));
            }
            "ipv6" => path.ipv6 = true,
            _ => return Err(format!("a path has no \"{key}\"")),
        }
    }
    Ok(path)
}

fn read_host(words: Words<'_>) -> Result<HostPlan, String> {
    let pair = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let plan = HostPlan { switches: words.pairs().map(pair).collect() };
    plan.settings().map_err(|error| error.to_string())?;
    Ok(plan)
}

fn read_deed(mut words: Words<'_>) -> Result<Deed, String> {
    match words.next() {
        Some("path") => {
            let path = read("path", words.next().unwrap_or(""))?;
            let (mut from, mut change) = (None, Change::default());
            for (key, value) in words.pairs() {
                match key {
                    "from" => from = Some(host(value)?),
                    "out" => change.out = Some(read(key, value)?),
                    "loss" => change.loss = Some(read(key, value)?),
                    "delay" => change.delay = Some(duration(value)?),
                    "rate" => change.rate = Some(rate(value)?),
                    "mtu" => change.mtu = Some(read(key, value)?),
                    _ => return Err(format!("a path cannot change \"{key}\"")),
                }
            }
            Ok(Deed::Path { path, from, change })
        }
        Some("replay") => {
            Ok(Deed::Replay { to: host(words.value("to")?)?, back: read("back", words.value("back")?)? })
        }
        Some("forge") => {
            let name = words.value("what")?;
            let what = Forgery::ALL.iter().find(|(_, known)| *known == name).map(|&(kind, _)| kind);
            Ok(Deed::Forge {
                to: host(words.value("to")?)?,
                what: what.ok_or(format!("no forgery \"{name}\""))?,
            })
        }
        Some(name) => Ok(Deed::Host(host(name)?, read_move(words)?)),
        None => Err("nothing happens: a host, path, replay or forge is missing".to_owned()),
    }
}

fn read_move(mut words: Words<'_>) -> Result<Move, String> {
    let number = |words: &Words<'_>, key: &'static str| read(key, words.value(key)?);
    Ok(match words.next().unwrap_or("") {
        "connect" => Move::Connect { addresses: number(&words, "addresses")? },
        "send" => Move::Send {
            len: read("len", words.value("len")?)?,
            stream: read("stream", words.value("stream")?)?,
            unordered: words.value("unordered").is_ok(),
            reliability: read_reliability(&words)?,
            times: read("times", words.value("times")?)?,
        },
        "pause" => Move::Pause,
        "resume" => Move::Resume,
        "shutdown" => Move::Shutdown,
        "abort" => Move::Abort,
        "restart" => Move::Restart,
        "primary" => Move::Primary { path: number(&words, "path")? },
        "scheduler" => Move::Scheduler { name: words.value("name")?.to_owned() },
        "reset" => Move::Reset {
            stream: words.value("stream").ok().map(|stream| read("stream", stream)).transpose()?,
            direction: read_direction(words.value("direction")?)?,
        },
        "reset_association" => Move::ResetAssociation,
        "add_streams" => Move::AddStreams {
            outbound: read("outbound", words.value("outbound")?)?,
            inbound: read("inbound", words.value("inbound")?)?,
        },
        "use_key" => Move::UseKey { number: read("number", words.value("number")?)? },
        "rekey" => Move::Rekey,
        other => match ADDRESS_CHANGES.iter().find(|(_, name)| *name == other) {
            Some(&(change, _)) => Move::Address { change, path: number(&words, "path")? },
            None => return Err(format!("no host can \"{other}\"")),
        },
    })
}

fn read_reliability(words: &Words<'_>) -> Result<Reliability, String> {
    if let Ok(life) = words.value("lifetime") {
        return duration(life).map(Reliability::Lifetime);
    }
    if let Ok(limit) = words.value("retransmissions") {
        return read("retransmissions", limit).map(Reliability::Retransmissions);
    }
    let priority = words.value("priority").map(|priority| read("priority", priority));
    priority.map_or(Ok(Reliability::Full), |priority| priority.map(Reliability::Priority))
}

const DIRECTIONS: [(Direction, &str); 3] =
    [(Direction::Outbound, "outbound"), (Direction::Inbound, "inbound"), (Direction::Both, "both")];

fn name_of(direction: Direction) -> &'static str {
    DIRECTIONS.iter().find(|(known, _)| *known == direction).map_or("", |&(_, name)| name)
}

fn read_direction(name: &str) -> Result<Direction, String> {
    let found = DIRECTIONS.iter().find(|(_, known)| *known == name);
    found.map(|&(direction, _)| direction).ok_or(format!("\"{name}\" is none of outbound, inbound, both"))
}

fn host(name: &str) -> Result<Host, String> {
    Host::BOTH
        .into_iter()
        .find(|host| host.name() == name)
        .ok_or(format!("\"{name}\" is neither client nor server"))
}

fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|error| error.to_string())
}

fn rate(text: &str) -> Result<u64, String> {
    parse_rate(text).map_err(|error| error.to_string())
}

fn read<T: FromStr>(key: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{key}: \"{text}\" is not a value for it"))
}

/// The words of a line, some of them of the form `key=value`.
struct Words<'a> {
    rest: Vec<&'a str>,
    taken: usize,
}

impl<'a> Words<'a> {
    fn new(line: &'a str) -> Self {
        Words { rest: line.split_whitespace().collect(), taken: 0 }
    }

    fn next(&mut self) -> Option<&'a str> {
        let word = self.rest.get(self.taken).copied();
        self.taken += 1;
        word
    }

    /// Returns the remaining words as pairs; a word without `=` has an empty value.
    fn pairs(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.rest.iter().skip(self.taken).map(|word| word.split_once('=').unwrap_or((word, "")))
    }

    fn value(&self, key: &str) -> Result<&'a str, String> {
        self.pairs()
            .find(|(found, _)| *found == key)
            .map(|(_, value)| value)
            .ok_or(format!("{key} is missing"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
seed 7
path rate=10Mbit/s delay=20ms queue=50 marks=0.2 loss=0.01 twice=0.02 damage=0.0000001 late=0.05/30ms
path rate=1Mbit/s delay=5ms queue=100 mtu=1280 ipv6
client preset=cmt send_buffer=64KiB
server nr_sack=off cookie_lifetime=5s
at 0s client connect addresses=2
at 20ms client send len=4000 stream=3 times=10 unordered
at 20ms path 1 from=server out=true loss=0.5 delay=1s rate=9kbit/s mtu=1300
at 30ms server send len=9 stream=0 times=1 lifetime=50ms
at 30ms server send len=9 stream=0 times=1 retransmissions=2
at 30ms server send len=9 stream=0 times=1 priority=5
at 1s server pause
at 2s replay to=server back=3
at 2s forge to=client what=abort
at 3s client primary path=1
at 4s server scheduler name=priority
at 5s server reset stream=2 direction=both
at 5s server reset direction=inbound
at 5s server reset_association
at 5s server add_streams outbound=2 inbound=0
at 5s server use_key number=2
at 5s client rekey
at 5s server restart
at 6s client remove_address path=1
at 7s client add_address path=1
at 8s server prefer_address path=0
";

    #[test]
    fn a_script_reads_back_as_printed() {
        let script: Script = TEXT.parse().expect("well-formed");
        assert_eq!(script.to_string(), TEXT);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let error = |text: &str| text.parse::<Script>().expect_err("malformed").to_string();
        assert_eq!(error("seed 1\nsead 2"), "line 2: \"sead\" is none of seed, path, client, server, at");
        assert_eq!(error("at 5 client pause").split(':').next(), Some("line 1"));
        assert!(error("client no_such=1").contains("no_such"));
        assert_eq!(error("at 5s client send len=1 times=1"), "line 1: stream is missing");
        assert_eq!(error("path lost=1"), "line 1: a path has no \"lost\"");
    }
}
