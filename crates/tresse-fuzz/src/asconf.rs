//! Target for address changes (RFC 5061): ASCONF and ASCONF ACK of any content and in any order, from both sides, from
//! known and from unknown addresses; most of them are authenticated (RFC 4895). In the end the peer answers all requests,
//! and none may stay outstanding.

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

/// Steps of a run, and rounds in which the honest peer has to be done.
const MOST_STEPS: usize = 200;
const MOST_ROUNDS: usize = 200;
/// Paths of an association, as `max_paths` has it.
const MOST_PATHS: u16 = 8;
/// The identifier of HMACs with SHA-256 (RFC 4895 §3.3).
const SHA_256: u16 = 3;
/// Offset of the HMAC in a packet: behind the common header and that of AUTH (RFC 4895 §4.1).
const FIRST_OF_HMAC: usize = 20;

pub(crate) fn target(bytes: &[u8]) {
    let mut source = Source::new(bytes);
    let mut config = AssociationConfig::preset("cmt").expect("a preset");
    let pairs = if source.byte() & 1 == 0 { "by_position" } else { "full_mesh" };
    config.set("path_pairs", pairs).expect("a switch");
    config.max_paths = MOST_PATHS;
    let mut talk = Talk::new(config);
    for _ in 0..MOST_STEPS {
        if source.is_empty() {
            break;
        }
        talk.step(&mut source);
    }
    talk.finish();
}

/// Authentication of a packet as the peer's.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Proof {
    Right,
    Wrong,
    None,
}

impl Proof {
    fn of(letters: u8) -> Self {
        match letters & 7 {
            0 => Proof::None,
            1 => Proof::Wrong,
            _ => Proof::Right,
        }
    }
}

/// An association whose peer can prove who it is.
struct Talk {
    scene: Scene,
    signer: Signer,
    /// Requests of the endpoint's application that were taken.
    taken: usize,
}

impl Talk {
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
        scene.endpoint.set_local_addresses((0..8).map(|position| pool(1, position)).collect());
        let signer = scene.signer();
        Talk { scene, signer, taken: 0 }
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

    /// The peer asks for something; what it does not prove changes nothing.
    fn request(&mut self, source: &mut Source<'_>) {
        let letters = source.byte();
        let next = self.scene.asconf.answered.map_or(PEER_TSN.0, |serial| serial.wrapping_add(1));
        let serial = if letters & 1 == 0 { next } else { next.wrapping_add(source.offset()) };
        let proof = Proof::of(source.byte());
        let raw = if letters & 8 == 0 { &[][..] } else { source.slice(80) };
        let params: Vec<Param<'_>> = (0..source.byte() % 8).map(|_| wish(source)).collect();
        let params = if letters & 8 == 0 { Params::Values(&params) } else { Params::Wire(raw) };
        let by = pool(2, source.byte());
        let mut chunks = vec![Chunk::Asconf(Asconf { serial, address: by, params })];
        if letters & 16 != 0 {
            let serial = serial.wrapping_add(1);
            chunks.push(Chunk::Asconf(Asconf { serial, address: by, params }));
        }
        let before = self.scene.asconf.changes;
        self.hear(&chunks, proof, pool(1, source.byte()), pool(2, source.byte()));
        let unchanged = self.scene.asconf.changes == before;
        assert!(proof == Proof::Right || unchanged, "a stranger changed the addresses");
    }

    /// The peer answers what was asked, or something else.
    fn answer(&mut self, source: &mut Source<'_>) {
        let letters = source.byte();
        let asked = self.scene.asconf.asked.unwrap_or(self.scene.tsn.0);
        let serial = if letters & 1 == 0 { asked } else { asked.wrapping_add(source.offset()) };
        let causes = [cause(source.byte())];
        let responses: Vec<Param<'_>> = (0..source.byte() % 8)
            .map(|_| match (source.byte() & 1, u32::from(source.byte() % 32)) {
                (0, correlation) => Param::SuccessIndication { correlation },
                (_, correlation) => Param::ErrorIndication { correlation, causes: Causes::Values(&causes) },
            })
            .collect();
        let raw = if letters & 8 == 0 { &[][..] } else { source.slice(80) };
        let params = if letters & 8 == 0 { Params::Values(&responses) } else { Params::Wire(raw) };
        let ack = Chunk::AsconfAck(AsconfAck { serial, params });
        let (before, proof) = (self.scene.asconf.outcomes, Proof::of(source.byte()));
        self.hear(&[ack], proof, pool(1, source.byte()), pool(2, source.byte()));
        let unchanged = self.scene.asconf.outcomes == before;
        assert!(proof == Proof::Right || unchanged, "a stranger answered");
    }

    /// The endpoint's application asks for something.
    fn command(&mut self, source: &mut Source<'_>) {
        let (now, what) = (self.scene.now, source.byte());
        let address = pool(if what & 8 == 0 { 1 } else { 2 }, source.byte());
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

    /// The peer answers the last heartbeat, which may be that of a new path.
    fn confirm(&mut self, source: &mut Source<'_>) {
        let body = self.scene.heartbeat.clone();
        let ack = Chunk::HeartbeatAck(Heartbeat { body: &body });
        self.hear(&[ack], Proof::Right, pool(1, source.byte()), pool(2, source.byte()));
    }

    /// The peer says that it never heard of ASCONF.
    fn refuse(&mut self) {
        let serial = self.scene.asconf.asked.unwrap_or(0);
        let chunk = [&[ChunkKind::ASCONF.0, 0, 0, 8][..], &serial.to_be_bytes()].concat();
        let causes = [Cause::UnrecognisedChunk(&chunk)];
        self.scene.hear(&[Chunk::Error(ErrorChunk { causes: Causes::Values(&causes) })]);
    }

    fn hear(&mut self, chunks: &[Chunk<'_>], proof: Proof, local: IpAddr, remote: IpAddr) {
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

    /// From now on the peer agrees to everything: then no request may stay open, unless the association is over.
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

/// Request of the peer, or bytes that are none.
fn wish(source: &mut Source<'_>) -> Param<'static> {
    let (what, correlation) = (source.byte(), u32::from(source.byte()));
    let address = pool(if what & 32 == 0 { 2 } else { 1 }, source.byte());
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

/// Addresses of a host: six of IPv4, some of them known from the set-up, one of IPv6; and what is none.
fn pool(host: u8, choice: u8) -> IpAddr {
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
