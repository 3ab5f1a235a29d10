//! The state machine of RFC 9260 §4, as a table: what each event brings about in each state.
//!
//! An entry names the chunks that leave at once, and the state after `>` where it changes.

use std::time::Duration;

use bytes::Bytes;
use tresse_proto::{AssociationConfig, EndpointConfig, Ppid, SendOptions, Ssn, StreamId, Tsn};
use tresse_wire::{
    Abort, Cause, Causes, Chunk, ChunkKind, Data, DataFlags, ErrorChunk, Heartbeat, List, Param, Sack,
    Shutdown,
};

use crate::common::{PORT, Pair, content, echo, init, packet};

/// The states, in the order of the table: CLOSED, COOKIE-WAIT, COOKIE-ECHOED, ESTABLISHED, SHUTDOWN-PENDING,
/// SHUTDOWN-SENT, SHUTDOWN-RECEIVED, SHUTDOWN-ACK-SENT.
const STATES: [&str; 8] = ["C", "CW", "CE", "E", "SP", "SS", "SR", "SA"];

#[rustfmt::skip]
const TABLE: [(&str, [&str; 8]); 24] = [
    // Event                 C                     CW                  CE                    E                   SP                           SS                      SR                    SA
    ("INIT",                ["INIT-ACK",           "INIT-ACK",         "INIT-ACK",           "INIT-ACK",         "INIT-ACK",                  "INIT-ACK",             "INIT-ACK",           "SHUTDOWN-ACK"]),
    ("INIT elsewhere",      ["INIT-ACK",           "INIT-ACK",         "ABORT",              "ABORT",            "ABORT",                     "ABORT",                "ABORT",              "SHUTDOWN-ACK"]),
    ("INIT ACK",            ["ABORT",              "COOKIE-ECHO >CE",  "",                   "",                 "",                          "",                     "",                   ""]),
    ("COOKIE ECHO",         ["COOKIE-ACK >E",      "COOKIE-ACK >E",    "COOKIE-ACK >E",      "COOKIE-ACK",       "COOKIE-ACK+SHUTDOWN >SS",   "COOKIE-ACK+SHUTDOWN",  "COOKIE-ACK >E",      "ERROR+SHUTDOWN-ACK"]),
    ("COOKIE ACK",          ["",                   "",                 ">E",                 "",                 "",                          "",                     "",                   ""]),
    ("ERROR stale",         ["",                   "",                 "INIT >CW",           "",                 "",                          "",                     "",                   ""]),
    ("DATA",                ["ABORT",              "",                 "",                   "SACK",             "SACK",                      "SHUTDOWN+SACK",        "",                   ""]),
    ("SACK, of nothing",     ["ABORT",              "",                 "",                   "",                 "",                          "",                     "",                   ""]),
    ("SACK, of all",         ["ABORT",              "",                 "",                   "ABORT >C",         "SHUTDOWN >SS",              "",                     "SHUTDOWN-ACK >SA",   ""]),
    ("HEARTBEAT",           ["ABORT",              "",                 "HEARTBEAT-ACK",      "HEARTBEAT-ACK",    "HEARTBEAT-ACK",             "HEARTBEAT-ACK",        "HEARTBEAT-ACK",      ""]),
    ("HEARTBEAT ACK",       ["ABORT",              "",                 "",                   "",                 "",                          "",                     "",                   ""]),
    ("SHUTDOWN",            ["ABORT",              "",                 "",                   "SHUTDOWN-ACK >SA", ">SR",                       "SHUTDOWN-ACK >SA",     "",                   "SHUTDOWN-ACK"]),
    ("SHUTDOWN of all",     ["ABORT",              "",                 "",                   "ABORT >C",         "SHUTDOWN-ACK >SA",          "SHUTDOWN-ACK >SA",     "SHUTDOWN-ACK >SA",   "SHUTDOWN-ACK"]),
    ("SHUTDOWN ACK",        ["SHUTDOWN-COMPLETE",  "SHUTDOWN-COMPLETE","SHUTDOWN-COMPLETE",  "",                 "",                          "SHUTDOWN-COMPLETE >C", "",                   "SHUTDOWN-COMPLETE >C"]),
    ("SHUTDOWN COMPLETE",   ["",                   "",                 "",                   "",                 "",                          "",                     "",                   ">C"]),
    ("SHUTDOWN COMPLETE T", ["",                   "",                 "",                   "",                 "",                          "",                     "",                   ">C"]),
    ("ABORT",               ["",                   ">C",               ">C",                 ">C",               ">C",                        ">C",                   ">C",                 ">C"]),
    ("ABORT T",             ["",                   "",                 ">C",                 ">C",               ">C",                        ">C",                   ">C",                 ">C"]),
    ("unknown, report",     ["ABORT",              "",                 "",                   "ERROR",            "ERROR",                     "ERROR",                "ERROR",              "ERROR"]),
    ("user sends",          ["",                   "",                 "",                   "DATA",             "",                          "",                     "",                   ""]),
    ("user SHUTDOWN",       ["",                   ">C",               "ABORT >C",           "SHUTDOWN >SS",     "",                          "",                     "",                   ""]),
    ("user ABORT",          ["",                   ">C",               "ABORT >C",           "ABORT >C",         "ABORT >C",                  "ABORT >C",             "ABORT >C",           "ABORT >C"]),
    ("timer",               ["",                   "INIT",             "COOKIE-ECHO",        "",                 "DATA",                      "SHUTDOWN",             "DATA",               "SHUTDOWN-ACK"]),
    ("time",                ["",                   ">C",               ">C",                 "",                 ">C",                        ">C",                   ">C",                 ">C"]),
];

/// Chunks that ask for nothing, and those that a peer may only send once both sides have agreed on them, which these
/// have not: as bytes, and what comes of them.
#[rustfmt::skip]
const OTHERS: [(&str, &str, [&str; 8]); 15] = [
    // Chunk           Bytes                                            C        CW  CE  E        SP       SS       SR       SA
    ("ERROR",         "09000004",                                     ["ABORT", "", "", "",      "",      "",      "",      ""]),
    ("ECNE",          "0c00000800000001",                             ["ABORT", "", "", "",      "",      "",      "",      ""]),
    ("CWR",           "0d00000800000001",                             ["ABORT", "", "", "",      "",      "",      "",      ""]),
    ("AUTH",          "0f00000c0000000100000000",                     ["",      "", "", "",      "",      "",      "",      ""]),
    ("NR-SACK",       "100000140000000000010000000000000000",         ["ABORT", "", "", "",      "",      "",      "",      ""]),
    ("I-DATA",        "40030015000000010000000000000000000000002e",   ["ABORT", "", "", "ABORT >C", "ABORT >C", "ABORT >C", "ABORT >C", "ABORT >C"]),
    ("DTLS",          "4100000d002b00000000000000000000",             ["",      "", "", "",      "",      "",      "",      ""]),
    ("ASCONF-ACK",    "8000000800000001",                             ["ABORT", "", "", "",      "",      "",      "",      ""]),
    ("PKTDROP",       "8100001000001000000000000000",                 ["ABORT", "", "", "",      "",      "",      "",      ""]),
    ("RE-CONFIG",     "82000004",                                     ["ABORT", "", "", "",      "",      "",      "",      ""]),
    ("PAD",           "8400000800000000",                             ["ABORT", "", "", "",      "",      "",      "",      ""]),
    ("FORWARD-TSN",   "c000000800000001",                             ["ABORT", "", "", "ERROR", "ERROR", "ERROR", "ERROR", "ERROR"]),
    ("ASCONF",        "c10000100000000100050008 0a000001",            ["ABORT", "", "", "",      "",      "",      "",      ""]),
    ("I-FORWARD-TSN", "c200000800000001",                             ["ABORT", "", "", "ERROR", "ERROR", "ERROR", "ERROR", "ERROR"]),
    ("unknown",       "3f000004",                                     ["ABORT", "", "", "",      "",      "",      "",      ""]),
];

/// Tag of an INIT of the peer, as it is while both sides set up, and in its next life.
const INIT_TAG: u32 = 0x0bad_cafe;

/// The client in one of the states, its packets lost from now on.
struct Stage {
    pair: Pair,
    /// Its tag and that of the server, as far as they are known.
    own: u32,
    peer: u32,
    /// First TSNs.
    own_tsn: Tsn,
    peer_tsn: Tsn,
    /// A COOKIE ECHO for the cookie that an INIT of the server has fetched.
    echo: Option<Bytes>,
}

impl Stage {
    fn new(state: &str) -> Self {
        let mut config = AssociationConfig::preset("rfc9260").expect("a preset");
        config.heartbeat_interval = Duration::from_secs(3600);
        let endpoint = |port| EndpointConfig::listening(port);
        let pair = Pair::between(1, (&config, endpoint(4000)), (&config, endpoint(PORT)), 1);
        let mut stage = Stage { pair, own: 0, peer: 0, own_tsn: Tsn(0), peer_tsn: Tsn(0), echo: None };
        stage.set_up(state);
        stage.shut_down(state);
        assert_eq!(stage.state(), state);
        stage
    }

    fn set_up(&mut self, state: &str) {
        let pair = &mut self.pair;
        if state == "CW" {
            pair.network = Box::new(|_| None);
        }
        if state == "CE" {
            pair.network = Box::new(|flight| (!flight.carries(ChunkKind::COOKIE_ECHO)).then_some(DELAY));
        }
        if state != "C" {
            pair.connect();
            pair.run_for(Duration::from_millis(100));
        }
        for flight in &pair.wire {
            match flight.chunks()[0] {
                Chunk::Init(init) => (self.own, self.own_tsn) = (init.initiate_tag, init.initial_tsn),
                Chunk::InitAck(init) => (self.peer, self.peer_tsn) = (init.initiate_tag, init.initial_tsn),
                _ => {}
            }
        }
        pair.network = Box::new(|_| None);
        let answer = self.answer_to_init(&[]);
        self.echo = Some(echo(&answer));
    }

    fn shut_down(&mut self, state: &str) {
        let now = self.pair.now;
        if ["SP", "SR"].contains(&state) {
            self.pair.send(0, 1, 100);
        }
        if ["SP", "SS"].contains(&state) {
            self.pair.client().shutdown(now);
            self.pair.pump();
        }
        if ["SR", "SA"].contains(&state) {
            self.inject(self.own, &Chunk::Shutdown(Shutdown { cumulative_tsn: self.before_own() }));
        }
    }

    fn before_own(&self) -> Tsn {
        Tsn(self.own_tsn.0.wrapping_sub(1))
    }

    fn inject(&mut self, tag: u32, chunk: &Chunk<'_>) {
        self.pair.inject(false, 0, packet(PORT, 4000, tag, std::slice::from_ref(chunk)));
    }

    /// The packet with which the client answers an INIT of the server's address.
    fn answer_to_init(&mut self, params: &[Param<'_>]) -> Bytes {
        self.inject(0, &Chunk::Init(init(INIT_TAG, params)));
        self.pair.wire.last().expect("an answer").bytes.clone()
    }

    fn state(&mut self) -> &'static str {
        let Some(id) = self.pair.client.id else { return "C" };
        let name = self.pair.client.endpoint.association(id).expect("not released").state_name();
        let names = [
            "CLOSED",
            "COOKIE-WAIT",
            "COOKIE-ECHOED",
            "ESTABLISHED",
            "SHUTDOWN-PENDING",
            "SHUTDOWN-SENT",
            "SHUTDOWN-RECEIVED",
            "SHUTDOWN-ACK-SENT",
        ];
        STATES[names.iter().position(|known| *known == name).expect("a known state")]
    }

    /// Lets `event` happen; answers the entry of the table.
    fn outcome(&mut self, event: &str) -> String {
        self.outcome_of(|stage| stage.happen(event), event == "time")
    }

    /// What `happens` brings about; `silent` leaves out what is sent.
    fn outcome_of(&mut self, happens: impl FnOnce(&mut Self), silent: bool) -> String {
        let (before, state) = (self.pair.wire.len(), self.state());
        happens(self);
        let sent: Vec<String> = self
            .pair
            .sent_since(before)
            .iter()
            .filter(|flight| flight.to_server)
            .flat_map(|flight| flight.kinds())
            .map(|kind| kind.name().expect("a known kind").replace(' ', "-"))
            .collect();
        let sent = if silent { String::new() } else { sent.join("+") };
        let after = self.state();
        let change = if after == state { String::new() } else { format!(">{after}") };
        [sent, change].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
    }

    fn happen(&mut self, event: &str) {
        let own = if self.own == 0 { 0xabcd } else { self.own };
        let now = self.pair.now;
        let (gaps, duplicates) = (List::Values(&[][..]), List::Values(&[][..]));
        let sack = |cumulative_tsn| {
            Chunk::Sack(Sack { flags: 0, cumulative_tsn, a_rwnd: 100_000, gaps, duplicates })
        };
        let abort = |tag_reflected| Chunk::Abort(Abort { tag_reflected, causes: Causes::Values(&[]) });
        let body = [0, 1, 0, 8, 1, 2, 3, 4];
        let cookie = [Param::StateCookie(b"cookie")];
        let stale = [Cause::StaleCookie { micros: 5 }];
        let elsewhere = [Param::Address("10.9.9.9".parse().expect("an address"))];
        let (own_tsn, before_own) = (self.own_tsn, self.before_own());
        match event {
            "INIT" => self.inject(0, &Chunk::Init(init(INIT_TAG, &[]))),
            "INIT elsewhere" => self.inject(0, &Chunk::Init(init(INIT_TAG, &elsewhere))),
            "INIT ACK" => self.inject(own, &Chunk::InitAck(init(7, &cookie))),
            "COOKIE ECHO" => {
                let echo = self.echo.clone().expect("fetched");
                self.pair.inject(false, 0, echo);
            }
            "COOKIE ACK" => self.inject(own, &Chunk::CookieAck),
            "ERROR stale" => self.inject(own, &Chunk::Error(ErrorChunk { causes: Causes::Values(&stale) })),
            "DATA" => self.inject(own, &data(self.peer_tsn)),
            "SACK, of nothing" => self.inject(own, &sack(before_own)),
            "SACK, of all" => self.inject(own, &sack(own_tsn)),
            "HEARTBEAT" => self.inject(own, &Chunk::Heartbeat(Heartbeat { body: &body })),
            "HEARTBEAT ACK" => self.inject(own, &Chunk::HeartbeatAck(Heartbeat { body: &body })),
            "SHUTDOWN" => self.inject(own, &Chunk::Shutdown(Shutdown { cumulative_tsn: before_own })),
            "SHUTDOWN of all" => self.inject(own, &Chunk::Shutdown(Shutdown { cumulative_tsn: own_tsn })),
            "SHUTDOWN ACK" => self.inject(own, &Chunk::ShutdownAck),
            "SHUTDOWN COMPLETE" => self.inject(own, &Chunk::ShutdownComplete { tag_reflected: false }),
            "SHUTDOWN COMPLETE T" => {
                self.inject(self.peer, &Chunk::ShutdownComplete { tag_reflected: true });
            }
            "ABORT" => self.inject(own, &abort(false)),
            "ABORT T" => self.inject(self.peer, &abort(true)),
            "unknown, report" => {
                let unknown = Chunk::parse(&[0x7e, 0, 0, 8, 1, 2, 3, 4]).expect("any type can be read");
                self.inject(own, &unknown);
            }
            "timer" => {
                let before = self.pair.wire.len();
                for _ in 0..60 {
                    if self.pair.wire.len() == before {
                        self.pair.run_for(Duration::from_millis(50));
                    }
                }
            }
            "time" => self.pair.run_for(Duration::from_secs(8000)),
            _ => self.command(event, now),
        }
    }

    /// A packet with a chunk of these bytes, in hexadecimal.
    fn bytes(&mut self, digits: &str) {
        let digits: Vec<u32> = digits.chars().filter_map(|digit| digit.to_digit(16)).collect();
        let chunk: Vec<u8> = digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect();
        let own = if self.own == 0 { 0xabcd } else { self.own };
        let mut packet = packet(PORT, 4000, own, &[]).to_vec();
        packet.extend(chunk);
        packet.resize(packet.len().next_multiple_of(4), 0);
        tresse_wire::seal(&mut packet);
        self.pair.inject(false, 0, packet.into());
    }

    /// What the application does; without an association there is nothing that it could.
    fn command(&mut self, event: &str, now: tresse_proto::Instant) {
        if self.pair.client.id.is_none() {
            return;
        }
        let mut association = self.pair.client();
        match event {
            "user sends" => {
                association.send(now, SendOptions::default(), content(0, 9, 100)).unwrap_or_default();
            }
            "user SHUTDOWN" => association.shutdown(now),
            "user ABORT" => association.abort(now, "enough"),
            _ => panic!("no event is called {event}"),
        }
        self.pair.pump();
    }
}

const DELAY: Duration = Duration::from_millis(10);

fn data(tsn: Tsn) -> Chunk<'static> {
    Chunk::Data(Data {
        tsn,
        stream: StreamId(0),
        ssn: Ssn(0),
        ppid: Ppid(0),
        flags: DataFlags { beginning: true, ending: true, ..DataFlags::default() },
        payload: b"data",
    })
}

#[test]
fn every_event_does_what_it_should_in_every_state() {
    let mut wrong = Vec::new();
    for (event, expected) in TABLE {
        for (state, expected) in STATES.into_iter().zip(expected) {
            let found = Stage::new(state).outcome(event);
            if found != expected {
                wrong.push(format!("{event} in {state}: expected \"{expected}\", found \"{found}\""));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn chunks_that_were_not_agreed_on_do_what_they_should_in_every_state() {
    let mut wrong = Vec::new();
    for (name, bytes, expected) in OTHERS {
        for (state, expected) in STATES.into_iter().zip(expected) {
            let found = Stage::new(state).outcome_of(|stage| stage.bytes(bytes), false);
            if found != expected {
                wrong.push(format!("{name} in {state}: expected \"{expected}\", found \"{found}\""));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn the_tables_leave_no_chunk_out() {
    let rows = TABLE.iter().map(|row| row.0).chain(OTHERS.iter().map(|row| row.0)).collect::<Vec<_>>();
    for kind in ChunkKind::ALL {
        let name = kind.name().expect("a known kind");
        assert!(rows.iter().any(|row| row.split(',').next() == Some(name)), "{name}");
    }
}
