//! Authenticated packets made by hand, with the keys that a handshake without shared keys agrees on (RFC 4895 §6.1).

use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use tresse_wire::{Chunk, ChunkKind, CommonHeader, Guard, PacketWriter, Param, Seal};

use super::Flight;

const HMAC_SHA256: u16 = 3;
const HMAC_LEN: u16 = 32;

/// Bytes that ASCONF and ASCONF-ACK among `chunks` are believed with; `wire` has the handshake.
pub fn forge(wire: &[Flight], header: CommonHeader, chunks: &[Chunk<'_>]) -> Bytes {
    let kinds = [ChunkKind::ASCONF, ChunkKind::ASCONF_ACK].into_iter().collect();
    let mut bytes = Vec::new();
    let guard = Guard::new(kinds, 0, HMAC_SHA256, HMAC_LEN);
    let mut writer = PacketWriter::new(&mut bytes, header, 65_535).guarded(guard);
    for chunk in chunks {
        writer.push(chunk).expect("room in a packet");
    }
    if let Some(covered) = writer.authenticated() {
        let mut mac = Hmac::<Sha256>::new_from_slice(&key(wire)).expect("a key of any length");
        mac.update(covered);
        writer.fill_hmac(&mac.finalize().into_bytes());
    }
    writer.finish(Seal::Crc32c);
    bytes.into()
}

/// The key vectors of both sides, the smaller number first. Neither begins with a zero.
fn key(wire: &[Flight]) -> Vec<u8> {
    let vector = |kind| {
        let flight = wire.iter().rev().find(|flight| flight.carries(kind)).expect("a handshake");
        vector_of(&flight.chunks()[0])
    };
    let mut vectors = [vector(ChunkKind::INIT), vector(ChunkKind::INIT_ACK)];
    vectors.sort_by_key(|vector| (vector.len(), vector.clone()));
    vectors.concat()
}

/// RANDOM, CHUNKS and HMAC-ALGO of one side as it sent them.
fn vector_of(chunk: &Chunk<'_>) -> Vec<u8> {
    let (Chunk::Init(init) | Chunk::InitAck(init)) = chunk else { panic!("no offer") };
    let params: Vec<Param<'_>> = init.params.iter().flatten().collect();
    let kinds: [fn(&Param<'_>) -> bool; 3] = [
        |param| matches!(param, Param::Random(_)),
        |param| matches!(param, Param::Chunks(_)),
        |param| matches!(param, Param::HmacAlgorithms(_)),
    ];
    let mut vector = Vec::new();
    for is_wanted in kinds {
        let param = params.iter().find(|param| is_wanted(param)).expect("an offer");
        param.write(&mut vector).expect("it came in a chunk");
    }
    vector
}
