//! Two endpoints, a queue of packets between them, and a clock that jumps to whatever comes next.

#![allow(dead_code, unused_imports, unreachable_pub, reason = "every test file uses its own part of this")]

mod flight;
mod keys;
mod signer;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use bytes::Bytes;
use tresse_proto::config::LossDetection;
use tresse_proto::{
    AssociationConfig, AssociationHandle, AssociationId, CloseReason, Connect, Datagram, Ecn, Endpoint,
    EndpointConfig, Event, Instant, Joiner, Message, PathState, PathStats, SendOptions, StreamId, Transmit,
};
use tresse_wire::{Chunk, ChunkKind, CommonHeader};

pub use flight::{Flight, echo, init, packet};
pub use keys::{Keys, Records, Sealer, new_keys};
use signer::Signer;

/// The server's SCTP port.
pub const PORT: u16 = 5001;

/// What happens to a packet: `None` drops it, else it arrives after this time.
pub type Network = Box<dyn FnMut(&Flight) -> Option<Duration>>;

/// What somebody on the path makes of a packet; `None` leaves it.
pub type Tamper = Box<dyn Fn(&Flight) -> Option<Bytes>>;

/// What translators on the way make of the ends of a packet, which goes to the server or comes from there.
pub type Translators = Box<dyn Fn(bool, &mut Transmit)>;

/// Address of a host (1 client, 2 server) on a path.
pub fn address(host: u8, path: u8) -> IpAddr {
    Ipv4Addr::new(10, 0, path, host).into()
}

/// Losses and timeouts as RFC 9260 has them (§7.2.4, §16), and the rest by default.
pub fn by_reports() -> AssociationConfig {
    AssociationConfig::default().with(|c| {
        c.loss_detection = LossDetection::Rfc9260;
        c.rto_min = Duration::from_secs(1);
        c.association_max_retrans = 10;
        c.path_max_retrans = 5;
    })
}

/// One of the two ends, with what its application saw.
pub struct Side {
    pub endpoint: Endpoint,
    pub id: Option<AssociationId>,
    pub events: Vec<Event>,
    pub received: Vec<Message>,
    /// Whether messages are read as they come.
    pub reads: bool,
    /// The key management, for associations that agree on keys which both ends have.
    pub keys: Keys,
    /// Whether that does what events ask of it.
    pub manages_keys: bool,
}

/// A client and a server.
pub struct Pair {
    pub now: Instant,
    pub client: Side,
    pub server: Side,
    pub network: Network,
    /// Whether somebody on the path changes packets.
    pub tamper: Option<Tamper>,
    /// Address translators, if there are any.
    pub translate: Option<Translators>,
    /// Which packets get a congestion mark, of those that may be marked.
    pub congested: Box<dyn FnMut(&Flight) -> bool>,
    /// Whether a packet may be larger than the MTU.
    pub may_fragment: bool,
    /// Every packet sent, lost ones included.
    pub wire: Vec<Flight>,
    flights: BTreeMap<(Instant, u64), Flight>,
    paths: u8,
    /// The client's settings.
    pub config: AssociationConfig,
    /// A line a packet, for failures.
    pub log: Vec<String>,
}

impl Pair {
    /// Over `paths` disjoint paths of 10 ms each way, nothing sent yet.
    pub fn new(paths: u8, config: &AssociationConfig) -> Self {
        Self::with_seed(paths, config, 1)
    }

    pub fn with_seed(paths: u8, config: &AssociationConfig, seed: u8) -> Self {
        Self::unlike(paths, config, config, seed)
    }

    /// With settings of its own for each side.
    pub fn unlike(paths: u8, config: &AssociationConfig, server: &AssociationConfig, seed: u8) -> Self {
        Self::between(
            paths,
            (config, EndpointConfig::default()),
            (server, EndpointConfig::listening(PORT)),
            seed,
        )
    }

    /// Both sides have ports of their own, and the server opens an association, too; the first chunk `lost` is lost.
    pub fn crossing(paths: u8, lost: Option<ChunkKind>, seed: u8) -> Self {
        Pair::crossing_with(paths, lost, seed, &AssociationConfig::default())
    }

    /// The same with these settings on both sides.
    pub fn crossing_with(paths: u8, lost: Option<ChunkKind>, seed: u8, config: &AssociationConfig) -> Self {
        const CLIENT_PORT: u16 = 4000;
        let config = config.clone();
        let fixed = |port| EndpointConfig::default().with(|c| c.port = port);
        let mut pair = Pair::between(paths, (&config, fixed(CLIENT_PORT)), (&config, fixed(PORT)), seed);
        if let Some(kind) = lost {
            pair.lose(kind, 1);
        }
        let back = Connect::new(
            (0..paths).map(|path| address(2, path)).collect(),
            (0..paths).map(|path| address(1, path)).collect(),
            CLIENT_PORT,
            config,
        );
        pair.server.id = Some(pair.server.endpoint.connect(pair.now, back).expect("a sound request"));
        pair
    }

    /// With settings of its own for each side's association and endpoint.
    pub fn between(
        paths: u8,
        client: (&AssociationConfig, EndpointConfig),
        server: (&AssociationConfig, EndpointConfig),
        seed: u8,
    ) -> Self {
        let config = client.0.clone();
        let side = |(config, endpoint_config): (&AssociationConfig, EndpointConfig), host: u8| {
            let mut endpoint = Endpoint::new(endpoint_config, config.clone(), [seed ^ (host << 4); 32])
                .expect("the settings are consistent");
            endpoint.set_local_addresses((0..paths).map(|path| address(host, path)).collect());
            Side::new(endpoint)
        };
        Pair {
            now: Instant::ZERO,
            client: side(client, 1),
            server: side(server, 2),
            network: Box::new(|_| Some(Duration::from_millis(10))),
            tamper: None,
            translate: None,
            congested: Box::new(|_| false),
            may_fragment: false,
            wire: Vec::new(),
            flights: BTreeMap::new(),
            paths,
            config,
            log: Vec::new(),
        }
    }

    /// Starts the set-up from the client.
    pub fn connect(&mut self) {
        let connect = Connect::new(
            (0..self.paths).map(|path| address(1, path)).collect(),
            (0..self.paths).map(|path| address(2, path)).collect(),
            PORT,
            self.config.clone(),
        );
        self.client.id = Some(self.client.endpoint.connect(self.now, connect).expect("a sound request"));
    }

    /// A pair with an association, all paths confirmed.
    pub fn established(paths: u8, config: &AssociationConfig) -> Self {
        Self::new(paths, config).settled()
    }

    /// Connects and waits until all paths are confirmed, then forgets the events so far.
    pub fn settled(self) -> Self {
        let mut pair = self;
        pair.connect();
        pair.run_for(Duration::from_millis(500));
        // Paths that the handshake did not use are probed one in an RTO.
        pair.run_until(Duration::from_secs(30), |pair| {
            let now = pair.now;
            let paths = [pair.client().path_stats(now), pair.server().path_stats(now)].concat();
            paths.iter().all(|path| path.state == PathState::Active)
        });
        assert!(pair.client().is_established(), "client: {:?}\n{}", pair.client.events, pair.log.join("\n"));
        assert!(pair.server().is_established(), "server: {:?}\n{}", pair.server.events, pair.log.join("\n"));
        pair.client.events.clear();
        pair.server.events.clear();
        pair
    }

    /// The client's process dies without a word and starts again, on the same port.
    pub fn restart_client(&mut self) {
        let config = EndpointConfig::default().with(|c| c.port = self.client.endpoint.port());
        let endpoint = Endpoint::new(config, self.config.clone(), [0xee; 32]).expect("sound settings");
        self.client = Side::new(endpoint);
    }

    pub fn client(&mut self) -> AssociationHandle<'_> {
        let id = self.client.id.expect("connected");
        self.client.endpoint.association(id).expect("not released")
    }

    pub fn server(&mut self) -> AssociationHandle<'_> {
        let id = self.server.id.expect("accepted");
        self.server.endpoint.association(id).expect("not released")
    }

    /// Queues a message of `len` bytes at the client; its bytes name stream and number.
    pub fn send(&mut self, stream: u16, number: u32, len: usize) {
        let now = self.now;
        let sent = self.client().send(now, SendOptions::on(StreamId(stream)), content(stream, number, len));
        sent.expect("room in the send buffer");
        self.pump();
    }

    /// Keeps the client's send buffer full for so long: messages of `len` bytes on `streams` streams in turn.
    /// The first has this number; answers with the one that would have been next.
    pub fn saturate(&mut self, streams: u16, number: u32, len: usize, duration: Duration) -> u32 {
        let end = self.now + duration;
        let mut number = number;
        while self.now < end {
            let now = self.now;
            loop {
                let stream = number as u16 % streams;
                let message = content(stream, number, len);
                if self.client().send(now, SendOptions::on(StreamId(stream)), message).is_err() {
                    break;
                }
                number += 1;
            }
            self.run_for(Duration::from_millis(10));
        }
        number
    }

    /// What the client tells of one of its paths.
    pub fn path(&mut self, position: usize) -> PathStats {
        let now = self.now;
        self.client().path_stats(now).swap_remove(position)
    }

    /// Lets everything happen until `duration` has passed.
    pub fn run_for(&mut self, duration: Duration) {
        let end = self.now + duration;
        self.pump();
        while let Some(next) = self.next_instant().filter(|&next| next <= end) {
            self.now = self.now.max(next);
            self.step();
        }
        self.now = end;
    }

    /// Lets everything happen until `done`, but no longer than `limit`.
    pub fn run_until(&mut self, limit: Duration, mut done: impl FnMut(&mut Pair) -> bool) {
        let end = self.now + limit;
        self.pump();
        while !done(self) {
            let next = self.next_instant().filter(|&next| next <= end);
            let Some(next) = next else {
                panic!("not done after {limit:?}\n{}", self.log.join("\n"));
            };
            self.now = self.now.max(next);
            self.step();
        }
    }

    /// Packets sent since `from` of them were.
    pub fn sent_since(&self, from: usize) -> &[Flight] {
        &self.wire[from..]
    }

    /// Lets the first `count` packets with a chunk of `kind` get lost, and all others arrive after 10 ms.
    pub fn lose(&mut self, kind: ChunkKind, count: usize) {
        let mut left = count;
        self.network = Box::new(move |flight| {
            let hit = left > 0 && flight.carries(kind);
            left -= usize::from(hit);
            (!hit).then_some(Duration::from_millis(10))
        });
    }

    /// The verification tag of packets in this direction, as the handshake agreed on it.
    pub fn tag(&self, to_server: bool) -> u32 {
        let tags = self.wire.iter().rev().flat_map(Flight::chunks).filter_map(|chunk| match chunk {
            Chunk::Init(init) => Some((false, init.initiate_tag)),
            Chunk::InitAck(init) => Some((true, init.initiate_tag)),
            _ => None,
        });
        tags.filter(|&(of_server, _)| of_server == to_server).map(|(_, tag)| tag).next().expect("a handshake")
    }

    /// A packet of the association with these chunks.
    pub fn packet(&self, to_server: bool, chunks: &[Chunk<'_>]) -> Bytes {
        self.packet_with_tag(to_server, self.tag(to_server), chunks)
    }

    pub fn packet_with_tag(&self, to_server: bool, tag: u32, chunks: &[Chunk<'_>]) -> Bytes {
        let (client, server) = (self.client.endpoint.port(), self.server.endpoint.port());
        if to_server { packet(client, server, tag, chunks) } else { packet(server, client, tag, chunks) }
    }

    /// A packet of the association with these chunks, authenticated as far as they need it.
    pub fn authenticated_packet(&self, to_server: bool, chunks: &[Chunk<'_>]) -> Bytes {
        let (client, server) = (self.client.endpoint.port(), self.server.endpoint.port());
        let (source_port, destination_port) = if to_server { (client, server) } else { (server, client) };
        let header = CommonHeader { source_port, destination_port, verification_tag: self.tag(to_server) };
        let said = |kind| {
            let flight = self.wire.iter().rev().find(|flight| flight.carries(kind)).expect("a handshake");
            flight.chunks().into_iter().next()
        };
        let (Some(Chunk::Init(init)), Some(Chunk::InitAck(init_ack))) =
            (said(ChunkKind::INIT), said(ChunkKind::INIT_ACK))
        else {
            panic!("no offers")
        };
        Signer::between(&init, &init_ack).packet(header, chunks)
    }

    /// Hands in a packet as if it had come from the network.
    pub fn inject(&mut self, to_server: bool, path: u8, bytes: Bytes) {
        let (from, to) = if to_server { (1, 2) } else { (2, 1) };
        let datagram = Datagram {
            local: address(to, path),
            remote: address(from, path),
            encapsulation_port: None,
            ecn: Ecn::NotEct,
            payload: bytes,
        };
        let side = if to_server { &mut self.server } else { &mut self.client };
        side.endpoint.handle_datagram(self.now, datagram);
        self.pump();
    }

    fn next_instant(&mut self) -> Option<Instant> {
        let flight = self.flights.first_key_value().map(|(&(at, _), _)| at);
        [flight, self.client.endpoint.poll_timeout(), self.server.endpoint.poll_timeout()]
            .into_iter()
            .flatten()
            .min()
    }

    fn step(&mut self) {
        while let Some(entry) = self.flights.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let flight = entry.remove();
            self.log.push(format!(
                "{:>10.6} {} {}",
                self.now.as_secs_f64(),
                direction(&flight),
                flight.dissect()
            ));
            let datagram = Datagram {
                local: flight.transmit.remote,
                remote: flight.transmit.local,
                encapsulation_port: flight.transmit.encapsulation_port,
                ecn: flight.transmit.ecn,
                payload: flight.bytes,
            };
            let side = if flight.to_server { &mut self.server } else { &mut self.client };
            side.endpoint.handle_datagram(self.now, datagram);
            self.pump();
        }
        self.client.endpoint.handle_timeout(self.now);
        self.server.endpoint.handle_timeout(self.now);
        self.pump();
    }

    /// The contract loop of both ends: events, then packets until there are none.
    pub fn pump(&mut self) {
        for to_server in [true, false] {
            let side = if to_server { &mut self.client } else { &mut self.server };
            side.read_events(self.now);
            let mut buffer = Vec::new();
            while let Some(transmit) = side.endpoint.poll_transmit(self.now, 1, &mut buffer) {
                let bytes = Bytes::from(std::mem::take(&mut buffer));
                assert_eq!(bytes.len(), transmit.size);
                let number = self.wire.len() as u64;
                let mut flight = Flight { number, to_server, sent: self.now, transmit, bytes };
                let mtu = if self.may_fragment { usize::MAX } else { self.config.mtu.0 };
                flight.check(mtu, self.config.zero_checksum);
                self.wire.push(flight.clone());
                if transmit.ecn == Ecn::Ect0 && (self.congested)(&flight) {
                    flight.transmit.ecn = Ecn::Ce;
                }
                if let Some(changed) = self.tamper.as_ref().and_then(|tamper| tamper(&flight)) {
                    flight.bytes = changed;
                }
                if let Some(translate) = &self.translate {
                    translate(to_server, &mut flight.transmit);
                }
                match (self.network)(&flight) {
                    Some(delay) => {
                        self.flights.insert((self.now + delay, flight.number), flight);
                    }
                    None => {
                        let line = format!(
                            "{:>10.6} {} LOST {}",
                            self.now.as_secs_f64(),
                            direction(&flight),
                            flight.dissect()
                        );
                        self.log.push(line);
                    }
                }
                side.read_events(self.now);
            }
        }
    }
}

impl Side {
    fn new(endpoint: Endpoint) -> Self {
        let keys = new_keys();
        Side {
            endpoint,
            id: None,
            events: Vec::new(),
            received: Vec::new(),
            reads: true,
            keys,
            manages_keys: true,
        }
    }

    fn read_events(&mut self, now: Instant) {
        while let Some((id, event)) = self.endpoint.poll_event() {
            self.id.get_or_insert(id);
            if self.manages_keys
                && let Some(mut association) = self.endpoint.association(id)
            {
                // Of an association that has ended since, nothing more comes.
                self.keys.on_event(now, &mut association, &event).ok();
            }
            self.events.push(event);
        }
        if let Some(mut association) =
            self.id.filter(|_| self.reads).and_then(|id| self.endpoint.association(id))
        {
            while let Some(message) = association.recv(now) {
                self.received.push(message);
            }
        }
    }

    /// Numbers of the messages received on `stream`, in order; checks their content.
    pub fn numbers_on(&self, stream: u16) -> Vec<u32> {
        let mut joiner = Joiner::default();
        let on_stream = self.received.iter().filter(|message| message.stream.0 == stream);
        on_stream
            .filter_map(|message| {
                let bytes = joiner.join(message.clone())?.payload.into_bytes();
                let number = u32::from_be_bytes(bytes[..4].try_into().expect("a number"));
                assert_eq!(bytes, content(stream, number, bytes.len()), "content of message {number}");
                Some(number)
            })
            .collect()
    }
}

/// Why the peer ended the association, in words, if that was the last event.
pub fn aborted_for(events: &[Event]) -> Option<&str> {
    match events.last()? {
        Event::Closed(CloseReason::AbortedByPeer { cause, .. }) => Some(cause),
        _ => None,
    }
}

/// Two paths that take so many milliseconds each; `gone` loses everything.
pub fn unlike_paths(delays: [u64; 2], gone: Option<u8>) -> Network {
    Box::new(move |flight| {
        let delay = Duration::from_millis(delays[usize::from(flight.path())]);
        (gone != Some(flight.path())).then_some(delay)
    })
}

/// Bytes that depend on stream, number and position.
pub fn content(stream: u16, number: u32, len: usize) -> Bytes {
    let mut bytes = number.to_be_bytes().to_vec();
    bytes.extend((4..len).map(|position| (position as u32 * 31 + number * 7 + u32::from(stream)) as u8));
    bytes.truncate(len.max(4));
    bytes.into()
}

fn direction(flight: &Flight) -> String {
    let arrow = if flight.to_server { "->" } else { "<-" };
    format!("path {} {arrow}", flight.path())
}

/// A small deterministic generator for networks (xorshift).
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// True with probability `share`.
    pub fn hits(&mut self, share: f64) -> bool {
        (self.below(1_000_000) as f64) < share * 1e6
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}
