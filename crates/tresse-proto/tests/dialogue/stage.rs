//! Plays steps: E, the clock, and what P knows of E. Owns the failure's words: every packet so far, what was
//! expected, and what came.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use bytes::Bytes;
use tresse_proto::{
    AssociationConfig, AssociationHandle, AssociationId, Connect, Datagram, Ecn, Endpoint, EndpointConfig,
    Event, Instant, Message, SendOptions, StreamId, Transmit, Tsn,
};
use tresse_wire::{Chunk, CommonHeader, Param};

use crate::notation::{self, Line, Packet, Step, When, Words};
use crate::packet::{self, Context, Lexicon, Numbers};

/// Ports of E and P.
const E_PORT: u16 = 5000;
const P_PORT: u16 = 5001;
/// P's tag and first TSN, unless an INIT says otherwise: TSNs wrap early.
const P_TAG: u32 = 0x5000_0001;
const P_TSN: Tsn = Tsn(u32::MAX - 1);

/// Tags and first TSNs of both sides.
#[derive(Copy, Clone)]
struct Names {
    e_tag: u32,
    e_tsn: Tsn,
    p_tag: u32,
    p_tsn: Tsn,
}

/// A packet that E has sent and no line has taken yet.
struct Sent {
    at: Instant,
    local: IpAddr,
    remote: IpAddr,
    tag: u32,
    ecn: Ecn,
    bytes: Bytes,
}

/// Plays a dialogue to its end.
///
/// # Errors
/// The line that did not go as written, and all that happened before it.
pub(crate) fn perform(dialogue: &str) -> Result<(), String> {
    let lines = notation::read(dialogue)?;
    let settings = lines.iter().take_while(|line| matches!(line.step, Step::Setting { .. } | Step::Paths(_)));
    let mut stage = Stage::new(settings)?;
    for line in &lines {
        stage.follow(line).map_err(|why| {
            let log = stage.log.join("\n");
            format!("{log}\nline {}, `{}`: {why}", line.number, line.text)
        })?;
    }
    let rest = stage.unexpected();
    rest.map_err(|why| format!("{}\nat the end: {why}", stage.log.join("\n")))
}

struct Stage {
    now: Instant,
    endpoint: Endpoint,
    config: AssociationConfig,
    id: Option<AssociationId>,
    paths: u8,
    names: Names,
    /// Tag and first TSN of P's last INIT.
    init: (u32, Tsn),
    /// Each with what it makes of both sides' names.
    cookies: Vec<(Vec<u8>, Names)>,
    heartbeat: Vec<u8>,
    sent: VecDeque<Sent>,
    events: VecDeque<Event>,
    log: Vec<String>,
}

impl Stage {
    fn new<'a>(settings: impl Iterator<Item = &'a Line>) -> Result<Self, String> {
        let mut config = AssociationConfig::preset("rfc9260").map_err(|error| error.to_string())?;
        let mut endpoint = EndpointConfig::listening(E_PORT);
        let mut paths = 1;
        for line in settings {
            let set = match &line.step {
                Step::Setting { endpoint: true, name, value } => endpoint.set(name, value),
                Step::Setting { name, value, .. } => config.set(name, value),
                Step::Paths(count) => {
                    paths = *count;
                    Ok(())
                }
                _ => Ok(()),
            };
            set.map_err(|error| format!("line {}: {error}", line.number))?;
        }
        let mut endpoint =
            Endpoint::new(endpoint, config.clone(), [7; 32]).map_err(|error| error.to_string())?;
        endpoint.set_local_addresses((0..paths).map(|path| address(1, path)).collect());
        Ok(Stage {
            now: Instant::ZERO,
            endpoint,
            config,
            id: None,
            paths,
            names: Names { e_tag: 0, e_tsn: Tsn(0), p_tag: P_TAG, p_tsn: P_TSN },
            init: (P_TAG, P_TSN),
            cookies: Vec::new(),
            heartbeat: Vec::new(),
            sent: VecDeque::new(),
            events: VecDeque::new(),
            log: Vec::new(),
        })
    }

    fn follow(&mut self, line: &Line) -> Result<(), String> {
        if !matches!(line.step, Step::Expect(..) | Step::Pass(_)) {
            self.unexpected()?;
        }
        match &line.step {
            Step::Setting { .. } | Step::Paths(_) => Ok(()),
            Step::Call(words) => self.call(words),
            Step::Read(words) => self.read(words),
            Step::Inject(packet) => self.inject(packet),
            Step::Expect(packet, when) => self.expect(packet, *when),
            Step::Silence(time) => {
                self.pass(*time, true);
                self.unexpected()
            }
            Step::Pass(time) => {
                self.pass(*time, false);
                self.sent.clear();
                Ok(())
            }
            Step::Event(name) => self.event(name),
            Step::State(name) => match self.association()?.state_name() {
                state if state == name => Ok(()),
                state => Err(format!("the state is {state}")),
            },
            Step::Discards(name, expected) => self.discards(name, *expected),
        }
    }

    fn association(&mut self) -> Result<AssociationHandle<'_>, String> {
        let id = self.id.ok_or("there is no association")?;
        self.endpoint.association(id).ok_or_else(|| "the association was released".to_owned())
    }

    fn call(&mut self, words: &Words) -> Result<(), String> {
        self.log.push(format!("{:>10.6} call {words}", self.now.as_secs_f64()));
        let now = self.now;
        match words.name.as_str() {
            "connect" => {
                let connect = Connect::new(
                    (0..self.paths).map(|path| address(1, path)).collect(),
                    (0..self.paths).map(|path| address(2, path)).collect(),
                    P_PORT,
                    self.config.clone(),
                );
                let id = self.endpoint.connect(now, connect).map_err(|error| error.to_string())?;
                self.id = Some(id);
            }
            "send" => {
                let stream = StreamId(words.number("stream", 0)? as u16);
                let options = SendOptions::on(stream).with(|o| o.unordered = words.has("unordered"));
                for _ in 0..words.number("times", 1)? {
                    let message = vec![b'.'; words.number("len", 10)? as usize];
                    let sent = self.association()?.send(now, options, message.into());
                    match (sent, words.has("refused")) {
                        (Ok(()), false) | (Err(_), true) => {}
                        (Ok(()), true) => return Err("it was not refused".to_owned()),
                        (Err(error), false) => return Err(error.to_string()),
                    }
                }
            }
            "shutdown" => self.association()?.shutdown(now),
            "abort" => self.association()?.abort(now, "enough"),
            "release" => {
                let id = self.id.take().ok_or("there is no association")?;
                self.endpoint.release(now, id);
            }
            name => return Err(format!("E's application cannot {name}")),
        }
        self.pump();
        Ok(())
    }

    fn read(&mut self, words: &Words) -> Result<(), String> {
        let now = self.now;
        let message = self.association()?.recv(now);
        self.pump();
        match (message, words.has("nothing")) {
            (None, true) => Ok(()),
            (None, false) => Err("there is nothing to read".to_owned()),
            (Some(message), false) if told(&message, words)? => Ok(()),
            (Some(message), _) => Err(format!(
                "stream={} ssn={} len={} was read",
                message.stream,
                message.ssn,
                message.payload.len()
            )),
        }
    }

    /// Cookies that E gave.
    fn given(&self) -> Vec<Vec<u8>> {
        self.cookies.iter().map(|(cookie, _)| cookie.clone()).collect()
    }

    fn inject(&mut self, said: &Packet) -> Result<(), String> {
        let before = self.names;
        self.learn_from_peer(said)?;
        let tag = match said.tag.as_deref() {
            Some(name) => self.tag(name)?,
            None if packet::opens(&said.chunks) => 0,
            None => self.names.e_tag,
        };
        if said.chunks.iter().any(|chunk| chunk.has("late")) {
            self.names = before;
        }
        let cookies = self.given();
        let Names { p_tag, p_tsn, e_tsn, .. } = self.names;
        let bytes = packet::build(
            &said.chunks,
            &Context {
                header: CommonHeader { source_port: P_PORT, destination_port: E_PORT, verification_tag: tag },
                numbers: Numbers { sender: p_tsn, receiver: e_tsn },
                tag: p_tag,
                cookies: &cookies,
                heartbeat: &self.heartbeat,
            },
        )?;
        self.log.push(format!("{:>10.6} < {}", self.now.as_secs_f64(), tresse_wire::dissect(&bytes)));
        let datagram = Datagram {
            local: address(1, said.path),
            remote: address(2, said.path),
            encapsulation_port: None,
            ecn: said.ecn,
            payload: bytes.into(),
        };
        self.endpoint.handle_datagram(self.now, datagram);
        self.pump();
        Ok(())
    }

    /// P's names are in its INIT ACK, or in the INIT that fetched the cookie that it echoes now.
    fn learn_from_peer(&mut self, said: &Packet) -> Result<(), String> {
        let Some(first) = said.chunks.first() else { return Ok(()) };
        let named = || -> Result<(u32, Tsn), String> {
            let tsn = Tsn(first.number("tsn", P_TSN.0.into())? as u32);
            Ok((first.number("itag", P_TAG.into())? as u32, tsn))
        };
        match first.name.as_str() {
            "INIT" => self.init = named()?,
            "INIT-ACK" => (self.names.p_tag, self.names.p_tsn) = named()?,
            "COOKIE-ECHO" => {
                let position = first.number("cookie", self.cookies.len() as u64)? as usize;
                let cookie = self.cookies.get(position.wrapping_sub(1)).ok_or("no such cookie")?;
                self.names = cookie.1;
            }
            _ => {}
        }
        Ok(())
    }

    fn tag(&self, name: &str) -> Result<u32, String> {
        match name {
            "E" => Ok(self.names.e_tag),
            "P" => Ok(self.names.p_tag),
            "init" => Ok(self.init.0),
            number => notation::number(number).map(|tag| tag as u32),
        }
    }

    fn expect(&mut self, said: &Packet, when: When) -> Result<(), String> {
        let from = self.now;
        if self.sent.is_empty() {
            self.pass(when.latest, true);
        }
        let Some(sent) = self.sent.pop_front() else { return Err("E has sent nothing".to_owned()) };
        let found = self.words_of(&sent)?;
        let came = || found.iter().map(Words::to_string).collect::<Vec<_>>().join(" | ");
        let time = sent.at.since(from);
        if time < when.earliest || time > when.latest {
            return Err(format!("after {time:?} came {}", came()));
        }
        if found.len() != said.chunks.len()
            || said.chunks.iter().zip(&found).any(|(expected, found)| !packet::fits(expected, found))
        {
            return Err(format!("came {}", came()));
        }
        let tag = match said.tag.as_deref() {
            Some(name) => self.tag(name)?,
            None if packet::opens(&said.chunks) => 0,
            None => self.names.p_tag,
        };
        if sent.tag != tag {
            return Err(format!("its tag is {:#010x}, not {tag:#010x}", sent.tag));
        }
        if sent.ecn != said.ecn {
            return Err(format!("its codepoint is {:?}, not {:?}", sent.ecn, said.ecn));
        }
        if (sent.local, sent.remote) != (address(1, said.path), address(2, said.path)) {
            return Err(format!("it went from {} to {}", sent.local, sent.remote));
        }
        Ok(())
    }

    fn words_of(&self, sent: &Sent) -> Result<Vec<Words>, String> {
        let lexicon = Lexicon {
            numbers: Numbers { sender: self.names.e_tsn, receiver: self.names.p_tsn },
            own_tag: self.names.e_tag,
            cookies: &self.given(),
        };
        Ok(packet::open(&sent.bytes)?.chunks().map(|chunk| packet::describe(&chunk, &lexicon)).collect())
    }

    fn unexpected(&self) -> Result<(), String> {
        match self.sent.front() {
            None => Ok(()),
            Some(sent) => {
                let found: Vec<String> = self.words_of(sent)?.iter().map(Words::to_string).collect();
                Err(format!("E has sent what was not expected: {}", found.join(" | ")))
            }
        }
    }

    fn event(&mut self, name: &str) -> Result<(), String> {
        let told: Vec<String> = self.events.drain(..).map(|event| format!("{event:?}")).collect();
        if told.iter().any(|event| event.starts_with(name)) {
            Ok(())
        } else {
            Err(format!("told was {told:?}"))
        }
    }

    fn discards(&mut self, name: &str, expected: u64) -> Result<(), String> {
        let now = self.now;
        let mut counted = self.endpoint.discards().named();
        if let Ok(association) = self.association()
            && let Some(stats) = association.stats(now)
        {
            counted.extend(stats.discards.named());
        }
        let found: u64 = counted.iter().filter(|(known, _)| *known == name).map(|(_, count)| count).sum();
        if !counted.iter().any(|(known, _)| *known == name) {
            return Err("there is no such counter".to_owned());
        }
        if found == expected { Ok(()) } else { Err(format!("it is {found}")) }
    }

    /// Lets time pass; when `hearing`, only until E has sent something.
    fn pass(&mut self, time: Duration, hearing: bool) {
        let end = self.now + time;
        while !hearing || self.sent.is_empty() {
            let Some(next) = self.endpoint.poll_timeout().filter(|&next| next <= end) else {
                self.now = end;
                return;
            };
            self.now = self.now.max(next);
            self.endpoint.handle_timeout(self.now);
            self.pump();
        }
    }

    /// Takes over E's packets and events.
    fn pump(&mut self) {
        let mut buffer = Vec::new();
        while let Some(transmit) = self.endpoint.poll_transmit(self.now, 1, &mut buffer) {
            let bytes = Bytes::from(std::mem::take(&mut buffer));
            self.log.push(format!("{:>10.6} > {}", self.now.as_secs_f64(), tresse_wire::dissect(&bytes)));
            self.learn_from_endpoint(&bytes);
            let tag = packet::open(&bytes).map_or(0, |packet| packet.header.verification_tag);
            let Transmit { local, remote, ecn, .. } = transmit;
            self.sent.push_back(Sent { at: self.now, local, remote, tag, ecn, bytes });
        }
        while let Some((id, event)) = self.endpoint.poll_event() {
            self.id.get_or_insert(id);
            self.events.push_back(event);
        }
    }

    fn learn_from_endpoint(&mut self, bytes: &[u8]) {
        let Ok(packet) = packet::open(bytes) else { return };
        for chunk in packet.chunks().flatten() {
            match chunk {
                Chunk::Init(init) => {
                    (self.names.e_tag, self.names.e_tsn) = (init.initiate_tag, init.initial_tsn);
                }
                Chunk::InitAck(init) => {
                    let cookie = init.params.iter().flatten().find_map(|param| match param {
                        Param::StateCookie(cookie) => Some(cookie.to_vec()),
                        _ => None,
                    });
                    let (p_tag, p_tsn) = self.init;
                    let (e_tag, e_tsn) = (init.initiate_tag, init.initial_tsn);
                    let names = Names { e_tag, e_tsn, p_tag, p_tsn };
                    self.cookies.extend(cookie.map(|cookie| (cookie, names)));
                }
                Chunk::Heartbeat(heartbeat) => self.heartbeat = heartbeat.body.to_vec(),
                _ => {}
            }
        }
    }
}

/// Whether a message is as `words` say.
fn told(message: &Message, words: &Words) -> Result<bool, String> {
    let same = |key: &str, found: u64| words.number(key, found).map(|expected| expected == found);
    Ok(same("stream", message.stream.0.into())?
        && same("ssn", message.ssn.0.into())?
        && same("len", message.payload.len() as u64)?)
}

/// Address of E (1) or P (2) on a path.
fn address(host: u8, path: u8) -> IpAddr {
    Ipv4Addr::new(10, 0, path, host).into()
}
