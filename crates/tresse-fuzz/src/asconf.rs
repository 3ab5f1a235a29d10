//! Target for address changes (RFC 5061): ASCONF and ASCONF-ACK with any content and in any order, from both sides,
//! from known and unknown addresses; most are authenticated (RFC 4895). At the end the peer answers all requests, and
//! none may stay outstanding.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use tresse_proto::AssociationConfig;
use tresse_wire::{
    Asconf, AsconfAck, Cause, Causes, Chunk, ChunkKind, ErrorChunk, Heartbeat, List, Param, Params,
};

use crate::sacks::{acknowledge, send};
use crate::scene::{PEER_TSN, Scene, address};
use crate::signer::Signer;
use crate::source::Source;

/// Most steps of a run, and most rounds until the peer at the end must have answered all requests.
const MOST_STEPS: usize = 200;
const MOST_ROUNDS: usize = 200;
/// Most paths of an association, for `max_paths`.
const MOST_PATHS: u16 = 8;
/// The identifier of HMACs with SHA-256 (RFC 4895 §3.3).
const SHA_256: u16 = 3;
/// Offset of the HMAC in a packet: after the common header and the header of AUTH (RFC 4895 §4.1).
const FIRST_OF_HMAC: usize = 20;

pub(crate) fn target(bytes: &[u8]) {
    let mut source = Source::new(bytes);
    let mut config = AssociationConfig::preset("cmt").expect("a preset");
    let pairs = if source.byte() & 1 == 0 { "by_position" } else { "full_mesh" };
    config.set("path_pairs", pairs).expect("a switch");
    config.max_paths = MOST_PATHS;
    let mut run = Run::new(config);
    for _ in 0..MOST_STEPS {
        if source.is_empty() {
            break;
        }
        run.step(&mut source);
    }
    run.finish();
}

/// Authentication of a packet by the peer's key.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Proof {
    Right,
    Wrong,
    None,
}

impl Proof {
    fn of(bits: u8) -> Self {
        match bits & 7 {
            0 => Proof::None,
            1 => Proof::Wrong,
            _ => Proof::Right,
        }
    }
}

/// An association with a peer that can authenticate its packets.
struct Run {
    scene: Scene,
    signer: Signer,
    /// Number of requests of the endpoint's application that were accepted.
    taken: usize,
}

impl Run {
    fn new(config: AssociationConfig) -> Self {
        let mut kinds = Scene::extensions(false);
        kinds.extend([ChunkKind::AUTH.0, ChunkKind::ASCONF.0, ChunkKind::ASCONF_ACK.0]);
        let params = [
            Param::SupportedExtensions(&kinds),
            Param::Random(&[3; 32]),
            Param::Chunks(&[ChunkKind::ASCONF.0, ChunkKind::ASCONF_ACK.0]),
            Param::HmacAlgorithms(List::Values(&[SHA_256])),
        ];
        let mut scene = Scene::established(config, &params);
        scene.endpoint.set_local_addresses((0..8).map(|position| choose_address(1, position)).collect());
        let signer = scene.signer();
        Run { scene, signer, taken: 0 }
    }

    fn step(&mut self, source: &mut Source<'_>) {
        match source.byte() % 16 {
            0..=5 => self.request(source),
            6 | 7 => self.answer(source),
            8..=10 => self.command(source),
            11 => self.scene.pass(Duration::from_millis(source.short().into())),
            12 => send(&mut self.scene, source),
            13 => acknowledge(&mut self.scene, source),
            14 => self.confirm(source),
            _ => self.refuse(),
        }
        let now = self.scene.now;
        if let Some(association) = self.scene.association()
            && association.is_established()
        {
            let paths = association.path_stats(now).len();
            assert!((1..=usize::from(MOST_PATHS)).contains(&paths), "{paths} paths");
        }
        assert!(self.scene.asconf.outcomes <= self.taken, "a request was answered twice");
    }

    /// The peer sends requests; those that are not authenticated correctly change nothing.
    fn request(&mut self, source: &mut Source<'_>) {
        let bits = source.byte();
        let next = self.scene.asconf.answered.map_or(PEER_TSN.0, |serial| serial.wrapping_add(1));
        let serial = if bits & 1 == 0 { next } else { next.wrapping_add(source.offset()) };
        let proof = Proof::of(source.byte());
        let raw = if bits & 8 == 0 { &[][..] } else { source.slice(80) };
        let params: Vec<Param<'_>> = (0..source.byte() % 8).map(|_| request_param(source)).collect();
        let params = if bits & 8 == 0 { Params::Values(&params) } else { Params::Wire(raw) };
        let by = choose_address(2, source.byte());
        let mut chunks = vec![Chunk::Asconf(Asconf { serial, address: by, params })];
        if bits & 16 != 0 {
            let serial = serial.wrapping_add(1);
            chunks.push(Chunk::Asconf(Asconf { serial, address: by, params }));
        }
        let before = self.scene.asconf.changes;
        self.deliver(&chunks, proof, choose_address(1, source.byte()), choose_address(2, source.byte()));
        let unchanged = self.scene.asconf.changes == before;
        assert!(proof == Proof::Right || unchanged, "a stranger changed the addresses");
    }

    /// The peer answers the outstanding request, or another one.
    fn answer(&mut self, source: &mut Source<'_>) {
        let bits = source.byte();
        let asked = self.scene.asconf.asked.unwrap_or(self.scene.tsn.0);
        let serial = if bits & 1 == 0 { asked } else { asked.wrapping_add(source.offset()) };
        let causes = [cause(source.byte())];
        let responses: Vec<Param<'_>> = (0..source.byte() % 8)
            .map(|_| match (source.byte() & 1, u32::from(source.byte() % 32)) {
                (0, correlation) => Param::SuccessIndication { correlation },
                (_, correlation) => Param::ErrorIndication { correlation, causes: Causes::Values(&causes) },
            })
            .collect();
        let raw = if bits & 8 == 0 { &[][..] } else { source.slice(80) };
        let params = if bits & 8 == 0 { Params::Values(&responses) } else { Params::Wire(raw) };
        let ack = Chunk::AsconfAck(AsconfAck { serial, params });
        let (before, proof) = (self.scene.asconf.outcomes, Proof::of(source.byte()));
        self.deliver(&[ack], proof, choose_address(1, source.byte()), choose_address(2, source.byte()));
        let unchanged = self.scene.asconf.outcomes == before;
        assert!(proof == Proof::Right || unchanged, "a stranger answered");
    }

    /// The endpoint's application requests a change.
    fn command(&mut self, source: &mut Source<'_>) {
        let (now, what) = (self.scene.now, source.byte());
        let address = choose_address(if what & 8 == 0 { 1 } else { 2 }, source.byte());
        if let Some(mut association) = self.scene.association() {
            let taken = match what % 3 {
                0 => association.add_address(now, address),
                1 => association.remove_address(now, address),
                _ => association.set_peer_primary(now, address),
            };
            self.taken += usize::from(taken.is_ok());
        }
        self.scene.settle();
    }

    /// The peer answers the last HEARTBEAT, which may belong to a new path.
    fn confirm(&mut self, source: &mut Source<'_>) {
        let body = self.scene.heartbeat.clone();
        let ack = Chunk::HeartbeatAck(Heartbeat { body: &body });
        self.deliver(
            &[ack],
            Proof::Right,
            choose_address(1, source.byte()),
            choose_address(2, source.byte()),
        );
    }

    /// The peer reports ASCONF as an unrecognised chunk type.
    fn refuse(&mut self) {
        let serial = self.scene.asconf.asked.unwrap_or(0);
        let chunk = [&[ChunkKind::ASCONF.0, 0, 0, 8][..], &serial.to_be_bytes()].concat();
        let causes = [Cause::UnrecognisedChunk(&chunk)];
        self.scene.hear(&[Chunk::Error(ErrorChunk { causes: Causes::Values(&causes) })]);
    }

    fn deliver(&mut self, chunks: &[Chunk<'_>], proof: Proof, local: IpAddr, remote: IpAddr) {
        let mut packet = match proof {
            Proof::None => self.scene.packet(chunks),
            Proof::Right | Proof::Wrong => self.signer.packet(self.scene.header(), chunks),
        };
        if proof == Proof::Wrong {
            let mut bytes = packet.to_vec();
            if let Some(byte) = bytes.get_mut(FIRST_OF_HMAC) {
                *byte ^= 1;
            }
            tresse_wire::seal(&mut bytes);
            packet = bytes.into();
        }
        self.scene.hear_between(local, remote, packet);
    }

    /// From now on the peer accepts all requests: then none may stay outstanding, unless the association has ended.
    fn finish(&mut self) {
        for _ in 0..MOST_ROUNDS {
            let established =
                self.scene.association().is_some_and(|association| association.is_established());
            if !established || self.scene.asconf.outcomes == self.taken {
                return;
            }
            if let Some(serial) = self.scene.asconf.asked {
                let ack = Chunk::AsconfAck(AsconfAck { serial, params: Params::Values(&[]) });
                let packet = self.signer.packet(self.scene.header(), &[ack]);
                self.scene.hear_packet(0, packet);
            }
            self.scene.pass(Duration::from_secs(1));
        }
        let open = self.taken - self.scene.asconf.outcomes;
        panic!("everything was agreed to again and again, and {open} requests are still open");
    }
}

/// Returns a request of the peer, or a parameter that is not a request.
fn request_param(source: &mut Source<'_>) -> Param<'static> {
    let (what, correlation) = (source.byte(), u32::from(source.byte()));
    let address = choose_address(if what & 32 == 0 { 2 } else { 1 }, source.byte());
    match what % 8 {
        0..=2 => Param::AddAddress { correlation, address },
        3 | 4 => Param::DeleteAddress { correlation, address },
        5 | 6 => Param::SetPrimary { correlation, address },
        _ => Param::SuccessIndication { correlation },
    }
}

fn cause(what: u8) -> Cause<'static> {
    match what % 5 {
        0 => Cause::ResourceShortage(&[]),
        1 => Cause::DeleteLastAddress(&[]),
        2 => Cause::DeleteSourceAddress(&[]),
        3 => Cause::UnresolvableAddress(&[]),
        _ => Cause::UnrecognisedParameters(&[0xc0, 1, 0, 4]),
    }
}

/// Returns an address of a host: one of six IPv4 addresses, some of them known from the set-up, an IPv6 address, or an
/// address that no host can have.
fn choose_address(host: u8, choice: u8) -> IpAddr {
    match choice % 12 {
        position @ 0..6 => address(host, position),
        6 => Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, host.into()).into(),
        7 => Ipv4Addr::LOCALHOST.into(),
        8 => Ipv4Addr::UNSPECIFIED.into(),
        9 => Ipv6Addr::UNSPECIFIED.into(),
        10 => Ipv4Addr::BROADCAST.into(),
        _ => address(host, 200),
    }
}
