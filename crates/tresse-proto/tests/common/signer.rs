//! Authenticated packets made by hand, with the key that a handshake without shared keys agrees on (RFC 4895 §6.1) and
//! SHA-256. Knows of a handshake only what both sides said in it.

use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use tresse_wire::{Chunk, ChunkKind, CommonHeader, Guard, Init, PacketWriter, Param, Seal};

const HMAC_SHA256: u16 = 3;
const HMAC_LEN: u16 = 32;

/// Signs for either side of an association.
#[derive(Clone)]
pub struct Signer {
    /// Has taken in the association's key.
    mac: Hmac<Sha256>,
}

impl Signer {
    /// Between the sides that said this; both have to offer authentication.
    pub fn between(init: &Init<'_>, init_ack: &Init<'_>) -> Self {
        // The smaller number first; neither begins with a zero.
        let mut vectors = [vector_of(init), vector_of(init_ack)];
        vectors.sort_by_key(|vector| (vector.len(), vector.clone()));
        Signer { mac: Hmac::new_from_slice(&vectors.concat()).expect("a key of any length") }
    }

    /// A packet in which ASCONF and ASCONF-ACK among `chunks` are believed.
    pub fn packet(&self, header: CommonHeader, chunks: &[Chunk<'_>]) -> Bytes {
        let kinds = [ChunkKind::ASCONF, ChunkKind::ASCONF_ACK].into_iter().collect();
        let mut bytes = Vec::new();
        let guard = Guard::new(kinds, 0, HMAC_SHA256, HMAC_LEN);
        let mut writer = PacketWriter::new(&mut bytes, header, 65_535).guarded(guard);
        for chunk in chunks {
            writer.push(chunk).expect("room in a packet");
        }
        if let Some(covered) = writer.authenticated() {
            let mut mac = self.mac.clone();
            mac.update(covered);
            writer.fill_hmac(&mac.finalize().into_bytes());
        }
        writer.finish(Seal::Crc32c);
        bytes.into()
    }
}

/// RANDOM, CHUNKS and HMAC-ALGO of one side as it sent them.
fn vector_of(init: &Init<'_>) -> Vec<u8> {
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
