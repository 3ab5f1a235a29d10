//! An endpoint that is attacked, and what its attacker can know of it: tags, TSNs, cookies. Owns how packets are fed, and
//! what is counted meanwhile.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use bytes::Bytes;
use tresse_proto::protection::{Agreed, Epoch, METHOD_PRE_SHARED, Role};
use tresse_proto::{
    AssociationConfig, AssociationId, Datagram, Ecn, Endpoint, EndpointConfig, Instant, SendOptions,
    StreamId, Tsn,
};
use tresse_wire::{
    ChecksumRule, Chunk, ChunkKind, CommonHeader, CookieEcho, Init, List, Packet, PacketWriter, Param,
    Params, Seal,
};

use crate::keys::make_keys;
use crate::signer::Signer;

/// Ports of the victim and of its peers.
const PORT: u16 = 5000;
pub(crate) const PEER_PORT: u16 = 5001;
pub(crate) const PEER_TAG: u32 = 7;
/// The peer's first TSN.
pub(crate) const PEER_TSN: Tsn = Tsn(1);
/// Bytes in each of the victim's buffers.
pub(crate) const BUFFER: usize = 128 * 1024;
/// Bytes of chunks that a packet of 1500 bytes has room for.
pub(crate) const ROOM: usize = 1468;

/// What was counted while packets were fed.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Count {
    pub(crate) packets: usize,
    pub(crate) bytes: usize,
    /// Packets with which the victim answered, and their bytes.
    pub(crate) answers: usize,
    pub(crate) answered: usize,
}

pub(crate) struct Victim {
    pub(crate) now: Instant,
    pub(crate) endpoint: Endpoint,
    pub(crate) id: Option<AssociationId>,
    /// Associations that it has told of.
    associations: BTreeSet<AssociationId>,
    /// Messages that its application has taken.
    pub(crate) received: usize,
    /// Whether its application takes what arrives.
    pub(crate) reads: bool,
    tag: u32,
    /// Its first TSN.
    pub(crate) tsn: Tsn,
    cookie: Vec<u8>,
    /// Its answer to the last INIT.
    init_ack: Vec<u8>,
    buffer: Vec<u8>,
    /// By how much the clock goes on with each packet.
    pub(crate) pause: Duration,
}

impl Victim {
    /// A server that listens.
    pub(crate) fn listening() -> Self {
        let mut config = AssociationConfig::default();
        (config.send_buffer.0, config.receive_buffer.0) = (BUFFER, BUFFER);
        Self::with(config)
    }

    pub(crate) fn with(config: AssociationConfig) -> Self {
        let settings = EndpointConfig::listening(PORT);
        let mut endpoint = Endpoint::new(settings, config, [7; 32]).expect("sound settings");
        endpoint.set_local_addresses(vec![local()]);
        Victim {
            now: Instant::ZERO,
            endpoint,
            id: None,
            associations: BTreeSet::new(),
            received: 0,
            reads: true,
            tag: 0,
            tsn: Tsn(0),
            cookie: Vec::new(),
            init_ack: Vec::new(),
            buffer: Vec::with_capacity(2 * ROOM),
            pause: Duration::from_micros(10),
        }
    }

    /// One with an association whose peer has all extensions.
    pub(crate) fn established() -> Self {
        Self::listening().connected(&[])
    }

    /// With an association; `extensions` says what the peer can beside the usual ones.
    pub(crate) fn connected(mut self, extensions: &[ChunkKind]) -> Self {
        let kinds = [ChunkKind::FORWARD_TSN, ChunkKind::RECONFIG, ChunkKind::NR_SACK];
        let kinds: Vec<u8> = kinds.iter().chain(extensions).map(|kind| kind.0).collect();
        let params = [Param::SupportedExtensions(&kinds), Param::ForwardTsnSupported];
        self.connect(&init(PEER_TAG, &params));
        self
    }

    /// With an association whose peer authenticates, and what signs for that peer.
    pub(crate) fn authenticated() -> (Self, Signer) {
        let kinds = [ChunkKind::AUTH.0, ChunkKind::ASCONF.0, ChunkKind::ASCONF_ACK.0];
        let params = [
            Param::Random(&[3; 32]),
            Param::Chunks(&[ChunkKind::ASCONF.0, ChunkKind::ASCONF_ACK.0]),
            Param::HmacAlgorithms(List::Values(&[3, 1])),
            Param::SupportedExtensions(&kinds),
        ];
        let mut victim = Self::listening();
        let init = init(PEER_TAG, &params);
        victim.connect(&init);
        let said = [&init[..], &victim.init_ack].map(|packet| {
            let packet = Packet::parse(packet, ChecksumRule::Trust).expect("a packet");
            packet.chunks().next().expect("a chunk").expect("a sound one")
        });
        let [Chunk::Init(init), Chunk::InitAck(init_ack)] = said else { panic!("no handshake") };
        let signer = Signer::between(&init, &init_ack);
        (victim, signer)
    }

    /// Its association takes nothing but records from now on, with keys that no peer has.
    pub(crate) fn encrypt(&mut self) {
        let none = || Box::from(&[][..]);
        let agreed = Agreed {
            role: Role::Server,
            method: METHOD_PRE_SHARED,
            own_parameter: none(),
            peer_parameter: none(),
        };
        let (now, epoch) = (self.now, Epoch::FIRST);
        let mut association = self.endpoint.association(self.id.expect("set up")).expect("open");
        let receive = make_keys(&agreed, agreed.receives(), epoch);
        association.install_receive_keys(epoch, receive).expect("the first");
        let send = make_keys(&agreed, agreed.sends(), epoch);
        association.install_send_keys(now, epoch, send).expect("the first");
        association.require_protection().expect("keys are there");
    }

    pub(crate) fn connect(&mut self, init: &Bytes) {
        self.feed(init, peer(0));
        let echo = self.cookie_echo();
        self.feed(&echo, peer(0));
        assert!(self.id.is_some(), "set up");
    }

    /// The COOKIE ECHO for the cookie that it gave last.
    pub(crate) fn cookie_echo(&self) -> Bytes {
        self.packet(&[Chunk::CookieEcho(CookieEcho { cookie: &self.cookie })])
    }

    /// A packet of the association.
    pub(crate) fn packet(&self, chunks: &[Chunk<'_>]) -> Bytes {
        packet(self.tag, chunks)
    }

    /// What its packets begin with.
    pub(crate) fn header(&self) -> CommonHeader {
        header(self.tag)
    }

    /// A packet as the victim would have sent it.
    pub(crate) fn packet_sent(&self, chunks: &[Chunk<'_>]) -> Bytes {
        sealed(
            CommonHeader { source_port: PORT, destination_port: PEER_PORT, verification_tag: PEER_TAG },
            chunks,
        )
    }

    /// A packet of the association with as many chunks of these bytes, one after another, as there is room for.
    pub(crate) fn packet_full_of(&self, chunk: impl Fn(usize) -> Vec<u8>) -> Bytes {
        let mut bytes = self.packet(&[]).to_vec();
        for number in 0.. {
            let next = chunk(number);
            if bytes.len() + next.len() > ROOM + 12 {
                break;
            }
            bytes.extend(next);
        }
        tresse_wire::seal(&mut bytes);
        bytes.into()
    }

    /// Its application sends so many messages of so many bytes, or as many as there is room for.
    pub(crate) fn send(&mut self, count: usize, len: usize) {
        let (now, id) = (self.now, self.id.expect("set up"));
        for _ in 0..count {
            let mut association = self.endpoint.association(id).expect("there");
            let options = SendOptions::on(StreamId(0));
            if association.send(now, options, vec![0; len].into()).is_err() {
                break;
            }
        }
        self.settle();
    }

    /// Feeds packets one after another.
    pub(crate) fn suffer(&mut self, packets: &[(Bytes, IpAddr)]) -> Count {
        let mut count = Count::default();
        for (packet, from) in packets {
            let (answers, answered) = self.feed(packet, *from);
            count.packets += 1;
            count.bytes += packet.len();
            count.answers += answers;
            count.answered += answered;
        }
        count
    }

    /// One packet arrives; counts the answers and their bytes.
    pub(crate) fn feed(&mut self, packet: &Bytes, from: IpAddr) -> (usize, usize) {
        self.now += self.pause;
        let datagram = Datagram {
            local: local(),
            remote: from,
            encapsulation_port: None,
            ecn: Ecn::NotEct,
            // As a driver does it: what is kept of a packet keeps all of its memory.
            payload: Bytes::copy_from_slice(packet),
        };
        self.endpoint.handle_datagram(self.now, datagram);
        self.settle()
    }

    fn settle(&mut self) -> (usize, usize) {
        if self.endpoint.poll_timeout().is_some_and(|due| due <= self.now) {
            self.endpoint.handle_timeout(self.now);
        }
        let (mut answers, mut answered) = (0, 0);
        while self.endpoint.poll_transmit(self.now, 1, &mut self.buffer).is_some() {
            answers += 1;
            answered += self.buffer.len();
            self.learn();
            self.buffer.clear();
        }
        while let Some((id, _)) = self.endpoint.poll_event() {
            self.id.get_or_insert(id);
            self.associations.insert(id);
        }
        if self.reads
            && let Some(mut association) = self.id.and_then(|id| self.endpoint.association(id))
        {
            while association.recv(self.now).is_some() {
                self.received += 1;
            }
        }
        (answers, answered)
    }

    /// How many associations it has told of beside this one.
    pub(crate) fn others_than(&self, known: Option<AssociationId>) -> usize {
        self.associations.iter().filter(|&&id| Some(id) != known).count()
    }

    /// Bytes that its application has given it and that were not acknowledged for good.
    pub(crate) fn unacknowledged(&mut self) -> usize {
        let id = self.id.expect("set up");
        self.endpoint.association(id).expect("there").send_queue().used
    }

    /// Takes a cookie out of what was sent.
    fn learn(&mut self) {
        if self.buffer.get(12) != Some(&ChunkKind::INIT_ACK.0) || self.id.is_some() {
            return;
        }
        self.init_ack.clone_from(&self.buffer);
        let packet = Packet::parse(&self.buffer, ChecksumRule::Trust).expect("a packet");
        for chunk in packet.chunks() {
            let Ok(Chunk::InitAck(init)) = chunk else { continue };
            (self.tag, self.tsn) = (init.initiate_tag, init.initial_tsn);
            for param in init.params.iter().flatten() {
                if let Param::StateCookie(cookie) = param {
                    self.cookie.clear();
                    self.cookie.extend_from_slice(cookie);
                }
            }
        }
    }
}

/// An INIT with this tag.
pub(crate) fn init(tag: u32, params: &[Param<'_>]) -> Bytes {
    let init = Init {
        initiate_tag: tag,
        a_rwnd: BUFFER as u32,
        outbound_streams: u16::MAX,
        inbound_streams: u16::MAX,
        initial_tsn: PEER_TSN,
        params: Params::Values(params),
    };
    packet(0, &[Chunk::Init(init)])
}

/// A sealed packet for the victim.
pub(crate) fn packet(tag: u32, chunks: &[Chunk<'_>]) -> Bytes {
    sealed(header(tag), chunks)
}

fn header(verification_tag: u32) -> CommonHeader {
    CommonHeader { source_port: PEER_PORT, destination_port: PORT, verification_tag }
}

fn sealed(header: CommonHeader, chunks: &[Chunk<'_>]) -> Bytes {
    let mut bytes = Vec::new();
    let mut writer = PacketWriter::new(&mut bytes, header, 65_535);
    for chunk in chunks {
        writer.push(chunk).expect("room");
    }
    writer.finish(Seal::Crc32c);
    bytes.into()
}

fn local() -> IpAddr {
    Ipv4Addr::new(10, 0, 0, 1).into()
}

/// The address of a peer.
pub(crate) fn peer(number: usize) -> IpAddr {
    Ipv4Addr::from(0x0a01_0000 + number as u32).into()
}
