//! A packet between the two endpoints: what is asked of it, and how to make one by hand.

use std::net::IpAddr;

use bytes::Bytes;
use tresse_proto::{Instant, Transmit, Tsn};
use tresse_wire::{
    ChecksumRule, Chunk, ChunkKind, CommonHeader, CookieEcho, Init, Packet, PacketWriter, Param, Params, Seal,
};

/// A packet on its way.
#[derive(Clone, Debug)]
pub struct Flight {
    /// Its number, from 0, counting both directions.
    pub number: u64,
    /// From the client to the server.
    pub to_server: bool,
    pub sent: Instant,
    pub transmit: Transmit,
    pub bytes: Bytes,
}

impl Flight {
    /// The path position, by the addresses that `address` gives.
    pub fn path(&self) -> u8 {
        match self.transmit.local {
            IpAddr::V4(v4) => v4.octets()[2],
            IpAddr::V6(_) => 0,
        }
    }

    /// One line on its content.
    pub fn dissect(&self) -> String {
        tresse_wire::dissect(&self.bytes)
    }

    /// Whether it carries user data.
    pub fn has_data(&self) -> bool {
        self.kinds().into_iter().any(is_data)
    }

    /// Whether its checksum is there, and right.
    pub fn has_checksum(&self) -> bool {
        Packet::parse(&self.bytes, ChecksumRule::Verify).is_ok()
    }

    /// Its chunks; all can be read, as `Pair` has checked.
    pub fn chunks(&self) -> Vec<Chunk<'_>> {
        let packet = Packet::parse(&self.bytes, ChecksumRule::AcceptZero).expect("a sound packet");
        packet.chunks().map(|chunk| chunk.expect("a sound chunk")).collect()
    }

    /// The types of its chunks.
    pub fn kinds(&self) -> Vec<ChunkKind> {
        self.chunks().iter().map(Chunk::kind).collect()
    }

    pub fn carries(&self, kind: ChunkKind) -> bool {
        self.kinds().contains(&kind)
    }

    /// What holds of every packet that leaves an endpoint: it can be read to its end, and fits the MTU unless
    /// it belongs to the set-up, whose chunks cannot be cut. It may lack a checksum only where that was wanted.
    pub fn check(&self, mtu: usize, may_lack_checksum: bool) {
        assert!(may_lack_checksum || self.has_checksum(), "{}", self.dissect());
        let kinds = self.kinds();
        assert!(!kinds.is_empty(), "a packet without a chunk");
        let setting_up = [ChunkKind::INIT, ChunkKind::INIT_ACK, ChunkKind::COOKIE_ECHO].contains(&kinds[0]);
        let headers = if self.transmit.local.is_ipv4() { 20 } else { 40 };
        let udp = if self.transmit.encapsulation_port.is_some() { 8 } else { 0 };
        assert!(setting_up || self.bytes.len() + headers + udp <= mtu, "{}", self.dissect());
        // Bundling of RFC 9260 §6.10: these travel alone, and DATA comes after every control chunk.
        let alone = [ChunkKind::INIT, ChunkKind::INIT_ACK, ChunkKind::SHUTDOWN_COMPLETE];
        assert!(kinds.len() == 1 || !kinds.iter().any(|kind| alone.contains(kind)), "{}", self.dissect());
        let data = kinds.iter().skip_while(|&&kind| !is_data(kind));
        assert!(data.clone().all(|&kind| is_data(kind)), "{}", self.dissect());
        let ending = [ChunkKind::ABORT, ChunkKind::SHUTDOWN, ChunkKind::SHUTDOWN_ACK];
        assert!(data.count() == 0 || !kinds.iter().any(|kind| ending.contains(kind)), "{}", self.dissect());
    }
}

/// Whether chunks of this kind carry user data.
fn is_data(kind: ChunkKind) -> bool {
    kind == ChunkKind::DATA || kind == ChunkKind::I_DATA
}

/// A sealed packet.
pub fn packet(source_port: u16, destination_port: u16, verification_tag: u32, chunks: &[Chunk<'_>]) -> Bytes {
    let header = CommonHeader { source_port, destination_port, verification_tag };
    let mut bytes = Vec::new();
    let mut writer = PacketWriter::new(&mut bytes, header, 65_535);
    for chunk in chunks {
        writer.push(chunk).expect("room in a packet");
    }
    writer.finish(Seal::Crc32c);
    bytes.into()
}

/// An INIT, or what an INIT ACK has in common with one.
pub fn init<'a>(tag: u32, params: &'a [Param<'a>]) -> Init<'a> {
    Init {
        initiate_tag: tag,
        a_rwnd: 100_000,
        outbound_streams: 10,
        inbound_streams: 10,
        initial_tsn: Tsn(1),
        params: Params::Values(params),
    }
}

/// The COOKIE ECHO that answers an INIT ACK.
pub fn echo(init_ack: &Bytes) -> Bytes {
    let answer = Packet::parse(init_ack, ChecksumRule::Verify).expect("a packet");
    let Some(Ok(Chunk::InitAck(init))) = answer.chunks().next() else { panic!("no INIT ACK") };
    let cookie = init.params.iter().flatten().find_map(|param| match param {
        Param::StateCookie(cookie) => Some(cookie),
        _ => None,
    });
    let echo = Chunk::CookieEcho(CookieEcho { cookie: cookie.expect("a cookie") });
    packet(answer.header.destination_port, answer.header.source_port, init.initiate_tag, &[echo])
}
