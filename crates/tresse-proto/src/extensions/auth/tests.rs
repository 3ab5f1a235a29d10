//! Keys and HMACs against values that were computed independently, and the chunks that pass `screen`.

use std::sync::Arc;

use tresse_wire::{ChecksumRule, CommonHeader, List, Packet, PacketWriter, Param, Params, Seal};

use super::*;
use crate::config::{AssociationConfig, AuthHash, ChunkList};
use crate::interface::error::KeyError;

fn offer(config: &AssociationConfig, random: [u8; RANDOM_LEN]) -> OwnOffer {
    OwnOffer::new(Arc::new(AuthTemplate::new(config).expect("authentication is on")), random)
}

fn own(required: &[ChunkKind], hash: AuthHash, random: u8) -> OwnOffer {
    let config = AssociationConfig {
        authenticated_chunks: ChunkList(required.iter().copied().collect()),
        authentication_hash: hash,
        dynamic_addresses: false,
        ..AssociationConfig::default()
    };
    offer(&config, [random; RANDOM_LEN])
}

fn read<'a>(params: impl Iterator<Item = Param<'a>>) -> Result<Option<PeerOffer>, BadRandom> {
    let mut noted = OfferParams::default();
    for param in params {
        noted.note(param)?;
    }
    Ok(noted.offer())
}

fn peer(offer: &OwnOffer) -> PeerOffer {
    read(offer.params()).expect("32 random bytes").expect("an offer")
}

/// Both ends of an association. The first requires authentication of `one`, the second of `other`.
fn ends(one: &[ChunkKind], other: &[ChunkKind]) -> (Auth, Auth) {
    let (one, other) = (own(one, AuthHash::Sha256, 3), own(other, AuthHash::Sha256, 4));
    (Auth::new(one.clone(), peer(&other), None), Auth::new(other, peer(&one), None))
}

/// Returns a packet of `sender` with these chunks.
fn packet(sender: &mut Auth, chunks: &[Chunk<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let header = CommonHeader { source_port: 1, destination_port: 2, verification_tag: 3 };
    let mut writer = PacketWriter::new(&mut bytes, header, 1000);
    if let Some(guard) = sender.guard() {
        writer = writer.guarded(*guard);
    }
    for chunk in chunks {
        writer.push(chunk).expect("room");
    }
    if let Some(covered) = writer.authenticated() {
        let hmac = sender.sign(covered);
        writer.fill_hmac(hmac.bytes());
    }
    writer.finish(Seal::Zero);
    bytes
}

/// Returns the result of `screen` for each chunk.
fn screened(receiver: &mut Auth, bytes: &[u8]) -> Vec<(ChunkKind, Result<(), Refusal>)> {
    let mut chunks = Packet::parse(bytes, ChecksumRule::Trust).expect("a packet").chunks();
    let (mut gate, mut outcomes) = (AuthState::default(), Vec::new());
    loop {
        let covered = chunks.remaining();
        let Some(chunk) = chunks.next() else { return outcomes };
        let kind = chunk.as_ref().map_or_else(|error| error.kind, Chunk::kind);
        outcomes.push((kind, receiver.screen(&mut gate, &chunk, covered)));
    }
}

/// From Python: `hmac.new(secret + smaller + larger, auth_with_zeros + cookie_ack, hash)`, where `smaller` is
/// 80020024 FF FE … E0, 80040006 0001 and `larger` 80020024 00 01 … 1F, 80030005 00, 80040008 0003 0001.
#[test]
fn hmacs_are_those_of_a_worked_example() {
    let random = std::array::from_fn(|place| place as u8);
    let config = AssociationConfig {
        authenticated_chunks: ChunkList([ChunkKind::DATA].into_iter().collect()),
        dynamic_addresses: false,
        ..AssociationConfig::default()
    };
    let own = offer(&config, random);
    let peer_random = random.map(|byte| 0xFF - byte);
    let secret = b"a secret that both sides know";
    for (key, hash, id, expected) in [
        (0, Hash::Sha1, 1, "83cacc659092712cf79a9d77af5ea2c5fadcb096"),
        (0, Hash::Sha256, 3, "497832ad52a9a8738807758f186e624760375889417893cb4b404bf05a9bd18c"),
        (7, Hash::Sha1, 1, "1982bd87afba8012c0d65a2bffd9d83e538bf9d1"),
        (7, Hash::Sha256, 3, "a23b579e483bd9c7b30fe4b2b94c352439ce0451851852ad009054e4167e487f"),
    ] {
        let params = [Param::HmacAlgorithms(List::Values(&[1])), Param::Random(&peer_random)];
        let peer = read(params.iter().copied()).expect("32 random bytes").expect("an offer");
        let mut auth = Auth::new(own.clone(), peer.clone(), None);
        auth.change_keys(|keys| keys.set(7, secret));
        auth.change_keys(|keys| keys.activate(key)).expect("it exists");
        // The example's peer prefers SHA-1; the other hash has the same key.
        auth.hash = hash;
        let mut covered = vec![15, 0, 0, 8 + hash.len() as u8, 0, key as u8, 0, id];
        covered.resize(8 + hash.len(), 0);
        covered.extend([11, 0, 0, 4]);
        let digest: String = auth.sign(&covered).bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(digest, expected, "key {key}, {hash:?}");
    }
}

#[test]
fn what_one_side_signs_the_other_believes_until_a_bit_changes() {
    let (mut client, mut server) = ends(&[], &[ChunkKind::COOKIE_ACK]);
    let bytes = packet(&mut client, &[Chunk::ShutdownAck, Chunk::CookieAck, Chunk::ShutdownAck]);
    let kinds = [ChunkKind::SHUTDOWN_ACK, ChunkKind::AUTH, ChunkKind::COOKIE_ACK, ChunkKind::SHUTDOWN_ACK];
    assert_eq!(screened(&mut server, &bytes), kinds.map(|kind| (kind, Ok(()))));
    // The HMAC covers all from AUTH on: key and hash numbers, the HMAC itself (as zeros), and the chunks behind it.
    for position in (12 + 4 + 4) * 8..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[position / 8] ^= 1 << (position % 8);
        let outcomes = screened(&mut server, &damaged);
        assert!(matches!(outcomes[1].1, Err(Refusal::BadAuth | Refusal::UnsupportedHash(_))), "{position}");
    }
}

#[test]
fn chunks_that_need_authentication_do_not_pass_without() {
    let (mut client, mut server) = ends(&[], &[ChunkKind::COOKIE_ACK, ChunkKind::ASCONF]);
    let (mut bare, _) = ends(&[], &[]);
    let bytes = packet(&mut bare, &[Chunk::ShutdownAck, Chunk::CookieAck]);
    let refused = Err(Refusal::Unauthenticated);
    let outcomes = [(ChunkKind::SHUTDOWN_ACK, Ok(())), (ChunkKind::COOKIE_ACK, refused)];
    assert_eq!(screened(&mut server, &bytes), outcomes);
    // The receiver does not require authentication of this chunk.
    assert_eq!(packet(&mut client, &[Chunk::ShutdownAck]), packet(&mut bare, &[Chunk::ShutdownAck]));
    let params = Params::Values(&[]);
    let asconf = tresse_wire::Asconf { serial: 1, address: [10, 0, 0, 1].into(), params };
    let bytes = packet(&mut bare, &[Chunk::Asconf(asconf)]);
    assert_eq!(screened(&mut server, &bytes)[0].1, Err(Refusal::UnauthenticatedPacket));
}

#[test]
fn a_second_auth_in_a_packet_ends_it() {
    let (mut client, mut server) = ends(&[], &[ChunkKind::COOKIE_ACK]);
    let one = packet(&mut client, &[Chunk::CookieAck]);
    let hmac = &one[20..52];
    let second = Chunk::Auth(tresse_wire::Auth { key_id: 0, hmac_id: 3, hmac });
    let two = packet(&mut client, &[Chunk::CookieAck, second]);
    assert_eq!(screened(&mut server, &two)[2], (ChunkKind::AUTH, Err(Refusal::BadAuth)));
}

#[test]
fn keys_are_told_apart_by_number_and_both_sides_need_them() {
    let (mut client, mut server) = ends(&[], &[ChunkKind::COOKIE_ACK]);
    let believed = |client: &mut Auth, server: &mut Auth| {
        let bytes = packet(client, &[Chunk::CookieAck]);
        screened(server, &bytes)[0].1
    };
    assert_eq!(believed(&mut client, &mut server), Ok(()));
    assert!(matches!(client.change_keys(|keys| keys.activate(5)), Err(KeyError::Unknown { number: 5, .. })));
    client.change_keys(|keys| keys.set(5, b"five"));
    client.change_keys(|keys| keys.activate(5)).expect("it exists");
    assert_eq!(believed(&mut client, &mut server), Err(Refusal::BadAuth), "the server has no such key");
    server.change_keys(|keys| keys.set(5, b"another"));
    assert_eq!(believed(&mut client, &mut server), Err(Refusal::BadAuth), "not the same secret");
    server.change_keys(|keys| keys.set(5, b"five"));
    assert_eq!((believed(&mut client, &mut server), server.peer_key()), (Ok(()), 5));
    // Packets in flight with the old key are accepted until that key is removed.
    client.change_keys(|keys| keys.activate(0)).expect("it exists");
    assert_eq!(believed(&mut client, &mut server), Ok(()));
    server.change_keys(|keys| keys.activate(5)).expect("it exists");
    server.change_keys(|keys| keys.remove(0)).expect("not the active one");
    assert_eq!(believed(&mut client, &mut server), Err(Refusal::BadAuth));
    assert_eq!(server.change_keys(|keys| keys.remove(5)), Err(KeyError::Active { number: 5 }));
    let error = server.change_keys(|keys| keys.activate(0)).expect_err("it was removed");
    assert_eq!(error.to_string(), "there is no shared key 0; there are 5");
}

#[test]
fn the_peers_first_hash_is_used_and_one_in_common_is_enough() {
    let hashes = |hashes: &[u16]| {
        let params = [Param::Random(&[0; 32]), Param::HmacAlgorithms(List::Values(hashes))];
        read(params.iter().copied()).expect("32 random bytes").map(|offer| offer.hash())
    };
    assert_eq!(hashes(&[3, 1]), Some(Hash::Sha256));
    assert_eq!(hashes(&[2, 1, 3]), Some(Hash::Sha1));
    assert_eq!(hashes(&[2, 4]), None);
    assert_eq!(hashes(&[]), None);
    assert_eq!(peer(&own(&[], AuthHash::Sha1, 1)).hash(), Hash::Sha1);
}

#[test]
fn an_offer_needs_a_random_number_of_32_bytes_and_hashes() {
    let hashes = Param::HmacAlgorithms(List::Values(&[1]));
    let read = |params: &[Param<'_>]| read(params.iter().copied()).map(|offer| offer.is_some());
    assert_eq!(read(&[Param::Random(&[1; 32]), hashes]), Ok(true));
    assert_eq!(read(&[Param::Random(&[1; 31]), hashes]), Err(BadRandom));
    assert_eq!(read(&[Param::Random(&[1; 32])]), Ok(false));
    assert_eq!(read(&[hashes]), Ok(false));
    let many = [0; 600];
    assert_eq!(read(&[Param::Random(&[1; 32]), Param::Chunks(&many), hashes]), Ok(false), "too long to keep");
}

#[test]
fn types_that_cannot_be_authenticated_are_not_taken_from_a_list() {
    let chunks = [1, 2, 14, 15, 0, 0, 193];
    let params = [Param::Random(&[1; 32]), Param::Chunks(&chunks), Param::HmacAlgorithms(List::Values(&[1]))];
    let offer = read(params.iter().copied()).expect("32 random bytes").expect("an offer");
    assert_eq!(offer.required().iter().collect::<Vec<_>>(), [ChunkKind::DATA, ChunkKind::ASCONF]);
    assert_eq!(PeerOffer::from_vector(offer.vector().into()), Some(offer.clone()), "as a cookie keeps it");
    for len in 0..offer_len() {
        assert_eq!(PeerOffer::from_vector(vec![0x80; len].into()), None, "{len}");
    }
}

fn offer_len() -> usize {
    peer(&own(&[], AuthHash::Sha256, 0)).vector().len()
}

#[test]
fn vectors_are_ordered_as_numbers() {
    use std::cmp::Ordering::{Equal, Greater, Less};
    assert_eq!(offer::order(&[2, 0], &[1, 0, 0]), Less);
    assert_eq!(offer::order(&[2, 1], &[2, 0]), Greater);
    assert_eq!(offer::order(&[0, 2, 1], &[2, 1]), Greater, "of equal numbers the shorter one is first");
    assert_eq!(offer::order(&[0, 0, 1], &[2, 1]), Less);
    assert_eq!(offer::order(&[7], &[7]), Equal);
}

#[test]
fn an_association_with_the_null_key_alone_costs_little() {
    let (client, _) = ends(&[], &[ChunkKind::ASCONF, ChunkKind::ASCONF_ACK]);
    let bytes = size_of::<Auth>() + client.peer.len();
    assert!(bytes <= 180, "{bytes}");
    assert!(client.shared.is_none() && client.ready.is_none());
}
