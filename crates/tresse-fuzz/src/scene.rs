//! Endpoint under test, and its peer's knowledge of it, which suffices to set up an association and to violate every
//! rule afterwards. Owns the checks that are made after every step.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use bytes::Bytes;
use tresse_proto::protection::Agreed;
use tresse_proto::{
    AssociationConfig, AssociationHandle, AssociationId, Datagram, Ecn, Endpoint, EndpointConfig, Event,
    Instant, Tsn,
};
use tresse_wire::{
    ChecksumRule, Chunk, ChunkKind, CommonHeader, CookieEcho, Init, Packet, PacketWriter, Param, Params, Seal,
};

use crate::signer::Signer;

/// Ports of the endpoint and of its peer.
const PORT: u16 = 5000;
const PEER_PORT: u16 = 5001;
/// The peer's tag and first TSN.
const PEER_TAG: u32 = 0x5000_0001;
pub(crate) const PEER_TSN: Tsn = Tsn(u32::MAX - 1);
/// Most packets and timers at one instant.
const MOST_STEPS: usize = 2_000;
/// Bytes in each buffer of the endpoint.
pub(crate) const BUFFER: usize = 64 * 1024;

pub(crate) struct Scene {
    pub(crate) now: Instant,
    pub(crate) endpoint: Endpoint,
    id: Option<AssociationId>,
    tag: u32,
    /// First TSN of the endpoint.
    pub(crate) tsn: Tsn,
    /// Highest TSN that the endpoint has sent.
    pub(crate) highest: Tsn,
    cookie: Vec<u8>,
    /// Parameters of the endpoint's last HEARTBEAT.
    pub(crate) heartbeat: Vec<u8>,
    /// The last packet that the endpoint sent.
    pub(crate) sent: Vec<u8>,
    /// The last packet that the peer sent.
    last: Bytes,
    /// The packets with the peer's INIT and with the INIT ACK of the association.
    handshake: [Vec<u8>; 2],
    pub(crate) asconf: AsconfNews,
    /// The agreement of both sides on keys.
    pub(crate) agreed: Option<Agreed>,
    /// All packets that the endpoint sent, for the targets that read them.
    pub(crate) all_sent: Vec<Vec<u8>>,
}

/// Address requests so far.
#[derive(Default)]
pub(crate) struct AsconfNews {
    /// Serial number of the endpoint's last request.
    pub(crate) asked: Option<u32>,
    /// Serial number of the peer's request that the endpoint answered last.
    pub(crate) answered: Option<u32>,
    /// Number of results of the endpoint's own requests that its application received.
    pub(crate) outcomes: usize,
    /// Number of changes of the peer's addresses that the endpoint's application received.
    pub(crate) changes: usize,
}

impl Scene {
    /// Returns a listening endpoint with two addresses.
    pub(crate) fn new(mut config: AssociationConfig) -> Self {
        (config.send_buffer.0, config.receive_buffer.0) = (BUFFER, BUFFER);
        let settings = EndpointConfig::listening(PORT);
        let mut endpoint = Endpoint::new(settings, config, [7; 32]).expect("the settings are consistent");
        endpoint.set_local_addresses(vec![address(1, 0), address(1, 1)]);
        Scene {
            now: Instant::ZERO,
            endpoint,
            id: None,
            tag: 0,
            tsn: Tsn(0),
            highest: Tsn(0),
            cookie: Vec::new(),
            heartbeat: Vec::new(),
            sent: Vec::new(),
            last: Bytes::new(),
            handshake: Default::default(),
            asconf: AsconfNews::default(),
            agreed: None,
            all_sent: Vec::new(),
        }
    }

    /// Returns an endpoint with an association that knows the peer's two addresses; `params` are further parameters of the peer's INIT.
    pub(crate) fn established(config: AssociationConfig, params: &[Param<'_>]) -> Self {
        let mut scene = Scene::new(config);
        scene.send_init(params);
        let cookie = scene.cookie().to_vec();
        scene.hear(&[Chunk::CookieEcho(CookieEcho { cookie: &cookie })]);
        scene
    }

    /// Returns the chunk types for the Supported Extensions of a peer: all extensions that need no other parameter,
    /// with or without interleaving.
    pub(crate) fn extensions(interleaving: bool) -> Vec<u8> {
        let mut kinds =
            vec![ChunkKind::FORWARD_TSN, ChunkKind::RECONFIG, ChunkKind::NR_SACK, ChunkKind::PACKET_DROP];
        if interleaving {
            kinds.extend([ChunkKind::I_DATA, ChunkKind::I_FORWARD_TSN]);
        }
        kinds.into_iter().map(|kind| kind.0).collect()
    }

    pub(crate) fn send_init(&mut self, params: &[Param<'_>]) {
        let mut all = vec![Param::Address(address(2, 0)), Param::Address(address(2, 1))];
        all.extend(params);
        let init = Init {
            initiate_tag: PEER_TAG,
            a_rwnd: 100_000,
            outbound_streams: 10,
            inbound_streams: 10,
            initial_tsn: PEER_TSN,
            params: Params::Values(&all),
        };
        let packet = packet(0, &[Chunk::Init(init)]);
        if self.id.is_none() {
            self.handshake[0] = packet.to_vec();
        }
        self.hear_packet(0, packet);
    }

    /// Returns the signer of the peer's packets; both sides must have offered authentication.
    pub(crate) fn signer(&self) -> Signer {
        let said = self.handshake.each_ref().map(|packet| {
            let packet = Packet::parse(packet, ChecksumRule::Verify).expect("a packet of the handshake");
            packet.chunks().next().expect("a chunk").expect("that can be read")
        });
        let [Chunk::Init(init), Chunk::InitAck(init_ack)] = said else { panic!("no handshake") };
        Signer::between(&init, &init_ack)
    }

    /// Returns the common header of the peer's packets of the association.
    pub(crate) fn header(&self) -> CommonHeader {
        header(self.tag)
    }

    /// Returns the cookie of the endpoint's last INIT ACK.
    pub(crate) fn cookie(&self) -> &[u8] {
        &self.cookie
    }

    pub(crate) fn association(&mut self) -> Option<AssociationHandle<'_>> {
        self.id.and_then(|id| self.endpoint.association(id))
    }

    /// Delivers a packet of the association with these chunks.
    pub(crate) fn hear(&mut self, chunks: &[Chunk<'_>]) {
        let packet = self.packet(chunks);
        self.hear_packet(0, packet);
    }

    /// Returns a packet of the association from the peer.
    pub(crate) fn packet(&self, chunks: &[Chunk<'_>]) -> Bytes {
        packet(self.tag, chunks)
    }

    /// Delivers a packet of the association with these bytes as chunks.
    pub(crate) fn hear_bytes(&mut self, path: u8, chunks: &[u8]) {
        let mut packet = packet(self.tag, &[]).to_vec();
        packet.extend_from_slice(chunks);
        tresse_wire::seal(&mut packet);
        self.hear_packet(path, packet.into());
    }

    /// Delivers the last packet again.
    pub(crate) fn hear_again(&mut self, path: u8) {
        let packet = self.last.clone();
        self.hear_packet(path, packet);
    }

    pub(crate) fn hear_packet(&mut self, path: u8, packet: Bytes) {
        self.hear_between(address(1, path % 2), address(2, path % 2), packet);
    }

    /// Delivers a packet from any address to an address of the endpoint.
    pub(crate) fn hear_between(&mut self, local: IpAddr, remote: IpAddr, packet: Bytes) {
        self.last = packet.clone();
        let datagram =
            Datagram { local, remote, encapsulation_port: None, ecn: Ecn::NotEct, payload: packet };
        self.endpoint.handle_datagram(self.now, datagram);
        self.settle();
    }

    /// Advances the time; timers that become due expire.
    pub(crate) fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(next) = self.endpoint.poll_timeout().filter(|&next| next <= end) {
            self.now = self.now.max(next);
            self.settle();
        }
        self.now = end;
    }

    /// Checks the properties that hold after every step: the endpoint stops sending, its packets can be read, and its
    /// modules are consistent.
    pub(crate) fn settle(&mut self) {
        let mut steps = 0;
        self.send_all(&mut steps);
        while self.endpoint.poll_timeout().is_some_and(|due| due <= self.now) {
            steps += 1;
            assert!(steps < MOST_STEPS, "there is no end of what happens at one instant");
            self.endpoint.handle_timeout(self.now);
            self.send_all(&mut steps);
        }
        while let Some((id, event)) = self.endpoint.poll_event() {
            self.id.get_or_insert(id);
            match event {
                Event::OwnAddress { .. } => self.asconf.outcomes += 1,
                Event::ProtectionAgreed(agreed) => self.agreed = Some(*agreed),
                Event::PeerAddress { .. } => self.asconf.changes += 1,
                _ => {}
            }
        }
        if let Err(what) = self.endpoint.check_invariants(self.now) {
            panic!("{what}");
        }
    }

    fn send_all(&mut self, steps: &mut usize) {
        let mut buffer = Vec::new();
        while self.endpoint.poll_transmit(self.now, 1, &mut buffer).is_some() {
            *steps += 1;
            assert!(*steps < MOST_STEPS, "there is no end of what happens at one instant");
            self.learn(&buffer);
            buffer.clear();
        }
    }

    fn learn(&mut self, packet: &[u8]) {
        self.sent.clear();
        self.sent.extend_from_slice(packet);
        if self.all_sent.len() < MOST_STEPS {
            self.all_sent.push(packet.to_vec());
        }
        let packet = Packet::parse(packet, ChecksumRule::Verify).expect("a packet that can be read");
        for chunk in packet.chunks() {
            match chunk.expect("a chunk that can be read") {
                Chunk::InitAck(init) => {
                    let cookie = init.params.iter().flatten().find_map(|param| match param {
                        Param::StateCookie(cookie) => Some(cookie.to_vec()),
                        _ => None,
                    });
                    self.cookie = cookie.expect("an INIT ACK has a cookie");
                    if self.id.is_none() {
                        self.handshake[1].clone_from(&self.sent);
                        (self.tag, self.tsn) = (init.initiate_tag, init.initial_tsn);
                        self.highest = Tsn(self.tsn.0.wrapping_sub(1));
                    }
                }
                Chunk::Heartbeat(heartbeat) => self.heartbeat = heartbeat.body.to_vec(),
                Chunk::Data(data) => self.reached(data.tsn),
                Chunk::IData(data) => self.reached(data.tsn),
                Chunk::Asconf(asconf) => self.asconf.asked = Some(asconf.serial),
                Chunk::AsconfAck(ack) => self.asconf.answered = Some(ack.serial),
                _ => {}
            }
        }
    }

    fn reached(&mut self, tsn: Tsn) {
        if (tsn.0.wrapping_sub(self.highest.0) as i32) > 0 {
            self.highest = tsn;
        }
    }
}

/// Returns a packet of the peer with its checksum.
fn packet(tag: u32, chunks: &[Chunk<'_>]) -> Bytes {
    let mut bytes = Vec::new();
    let mut writer = PacketWriter::new(&mut bytes, header(tag), 65_535);
    for chunk in chunks {
        if writer.push(chunk).is_err() {
            break;
        }
    }
    writer.finish(Seal::Crc32c);
    bytes.into()
}

fn header(verification_tag: u32) -> CommonHeader {
    CommonHeader { source_port: PEER_PORT, destination_port: PORT, verification_tag }
}

/// Returns the address of the endpoint (1) or of its peer (2) on a path.
pub(crate) fn address(host: u8, path: u8) -> IpAddr {
    Ipv4Addr::new(10, 0, path, host).into()
}
