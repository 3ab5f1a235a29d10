//! Target for DTLS records: records with any content to an endpoint that requires encryption, from attackers without
//! keys and from a peer that has keys and sends any chunks. A record that fails to decrypt changes nothing and is not
//! answered, a replayed record is not decrypted again, and the endpoint uses no record number twice.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use tresse_proto::AssociationConfig;
use tresse_proto::config::{Encryption, KeyManagement, KeyRole};
use tresse_proto::protection::{Agreed, Epoch, METHOD_PRE_SHARED, RecordKeys};
use tresse_wire::{ChecksumRule, Chunk, Chunks, Dtls, KeyRoles, Packet, Param};

use crate::cipher::make_keys;
use crate::sacks;
use crate::scene::Scene;
use crate::source::Source;

/// Most steps of a run.
const MOST_STEPS: usize = 200;

/// The peer's side of the record layer.
struct Peer {
    agreed: Agreed,
    /// The epoch with which the endpoint encrypts.
    epoch: Epoch,
    /// Keys that decrypt the endpoint's records by epoch, and the lowest number that its next record may have.
    opens: BTreeMap<Epoch, (RecordKeys, u64)>,
    /// Keys that encrypt by epoch, and the highest number that was used.
    seals: BTreeMap<Epoch, (RecordKeys, u64)>,
}

pub(crate) fn target(bytes: &[u8]) {
    let mut source = Source::new(bytes);
    let settings = source.byte();
    let config = AssociationConfig::default().with(|c| {
        c.encryption = Encryption::Require;
        c.key_management = KeyManagement::PreShared;
        c.key_role = if settings & 1 == 0 { KeyRole::Client } else { KeyRole::Server };
        c.key_drain = Duration::from_millis(settings.into());
        c.interleaving = settings & 2 != 0;
    });
    let flags = if settings & 1 == 0 { KeyRoles::SERVER } else { KeyRoles::CLIENT };
    let offer = Param::DtlsKeyManagement { tie_breaker: 1, flags, methods: &[METHOD_PRE_SHARED] };
    let extensions = Scene::extensions(settings & 2 != 0);
    let mut scene = Scene::established(
        config,
        &[Param::SupportedExtensions(&extensions), Param::ForwardTsnSupported, offer],
    );
    let agreed = scene.agreed.clone().expect("both offer it");
    let mut peer = Peer { agreed, epoch: Epoch(2), opens: BTreeMap::new(), seals: BTreeMap::new() };
    peer.change_keys(&mut scene);
    scene.association().expect("open").require_protection().expect("keys are there");
    scene.settle();
    peer.read(&mut scene);
    for _ in 0..MOST_STEPS {
        if source.is_empty() || scene.association().is_none_or(|association| !association.is_established()) {
            break;
        }
        step(&mut scene, &mut peer, &mut source);
        peer.read(&mut scene);
    }
}

fn step(scene: &mut Scene, peer: &mut Peer, source: &mut Source<'_>) {
    let kind = source.byte();
    let path = kind >> 3;
    match kind % 8 {
        0 => sacks::send(scene, source),
        1 => scene.pass(Duration::from_millis(source.short().into())),
        2 => {
            let content = source.slice(200);
            is_ignored(scene, |scene| scene.hear_bytes(path, &chunk_of(0, content)));
        }
        3 => {
            // An INIT for a restart is answered, but it changes nothing either.
            let before = opened(scene);
            scene.hear_bytes(path, source.slice(200));
            assert_eq!(opened(scene), before);
        }
        4 => peer.change_keys(scene),
        5 => {
            let before = opened(scene);
            scene.hear_again(path);
            // The last packet is replayed twice. The first replay may be decrypted, if its keys were installed only
            // after its first arrival.
            let first = opened(scene);
            assert!(first <= before + 1);
            scene.hear_again(path);
            assert_eq!(opened(scene), first, "a record was opened twice");
        }
        _ => {
            let Some(mut packet) = peer.seal(scene, source) else { return };
            if kind % 8 == 6 {
                scene.hear_packet(path, packet.into());
                return;
            }
            // Flips a bit of the record.
            let position = 17 + usize::from(source.short()) % (packet.len() - 20);
            let bit = 1 << (source.byte() % 8);
            packet[position] ^= bit;
            tresse_wire::seal(&mut packet);
            let padding = packet.len() - 3 <= position;
            let before = opened(scene);
            scene.hear_packet(path, packet.into());
            assert!(padding || opened(scene) == before, "a record was changed, and opened");
        }
    }
}

/// Returns the number of records that the endpoint has decrypted with its present keys.
fn opened(scene: &mut Scene) -> u64 {
    let stats = scene.association().and_then(|mut association| association.protection_stats());
    stats.unwrap_or_default().epochs.iter().map(|(_, stats)| stats.opened).sum()
}

/// Checks that a packet is neither accepted nor answered.
fn is_ignored(scene: &mut Scene, hear: impl FnOnce(&mut Scene)) {
    let (before, sent) = (opened(scene), scene.all_sent.len());
    hear(scene);
    assert_eq!(opened(scene), before, "something was opened that was sealed with no key");
    assert_eq!(scene.all_sent.len(), sent, "an answer to a stranger");
}

/// Returns a DTLS chunk with this record, padded.
fn chunk_of(flags: u8, record: &[u8]) -> Vec<u8> {
    let mut chunk = vec![0x41, flags];
    chunk.extend((5 + record.len() as u16).to_be_bytes());
    chunk.push(0);
    chunk.extend_from_slice(record);
    chunk.resize(chunk.len().next_multiple_of(4), 0);
    chunk
}

fn nonce(iv: &[u8; 12], number: u64) -> [u8; 12] {
    let mut nonce = *iv;
    nonce[4..].iter_mut().zip(number.to_be_bytes()).for_each(|(byte, part)| *byte ^= part);
    nonce
}

/// Returns the two bytes that mask the record number.
fn mask(keys: &mut RecordKeys, behind: &[u8]) -> [u8; 2] {
    let mut sample = [0; 16];
    sample.iter_mut().zip(behind).for_each(|(byte, from)| *byte = *from);
    keys.layer.mask(&sample)
}

impl Peer {
    /// Makes the endpoint change to the next keys, if that is possible.
    fn change_keys(&mut self, scene: &mut Scene) {
        let next = Epoch(self.epoch.0 + 1);
        let (agreed, now) = (self.agreed.clone(), scene.now);
        let Some(mut association) = scene.association() else { return };
        let receive = make_keys(&agreed, agreed.receives(), next);
        if association.install_receive_keys(next, receive).is_err() {
            return;
        }
        let send = make_keys(&agreed, agreed.sends(), next);
        association.install_send_keys(now, next, send).expect("their turn, as receiving keys are there");
        self.epoch = next;
        self.opens.insert(next, (make_keys(&agreed, agreed.sends(), next), 0));
        self.seals.insert(next, (make_keys(&agreed, agreed.receives(), next), 0));
        scene.settle();
    }

    /// Returns a packet with chunks of any content, encrypted with the present or earlier keys; its record number is near the next one.
    fn seal(&mut self, scene: &Scene, source: &mut Source<'_>) -> Option<Vec<u8>> {
        let back = u64::from(source.byte() % 4).saturating_sub(1);
        let epoch = Epoch(self.epoch.0.checked_sub(back)?);
        let (keys, highest) = self.seals.get_mut(&epoch)?;
        let offset = i64::from(source.offset() as i32);
        let number = highest.checked_add_signed(offset + 9)?;
        *highest = number.max(*highest);
        let mut text = source.slice(200).to_vec();
        text.push(0x17);
        let header = Dtls::record_header(epoch.0, number);
        let mut tag = [0; 16];
        keys.layer.seal(&nonce(&keys.iv, number), &header, &mut text, &mut tag).expect("any text");
        text.extend(tag);
        let [high, low] = mask(keys, &text);
        let record = [&[header[0], header[1] ^ high, header[2] ^ low][..], &text].concat();
        let mut packet = scene.packet(&[]).to_vec();
        packet.extend(chunk_of(0, &record));
        tresse_wire::seal(&mut packet);
        Some(packet)
    }

    /// Reads the packets that the endpoint has sent. All but INIT ACK must be records, each with its own number and
    /// with chunks inside.
    fn read(&mut self, scene: &mut Scene) {
        for packet in std::mem::take(&mut scene.all_sent) {
            let whole = Packet::parse(&packet, ChecksumRule::Verify).expect("a packet that can be read");
            match whole.chunks().next() {
                Some(Ok(Chunk::Dtls(record))) => self.open(&record),
                Some(Ok(Chunk::InitAck(_))) => {}
                // Chunks in the clear are allowed before the first keys; later only an ABORT that reflects a wrong tag is allowed.
                Some(Ok(_)) if self.opens.values().all(|(_, next)| *next == 0) => {}
                Some(Ok(Chunk::Abort(abort))) if abort.tag_reflected => {}
                other => panic!("{other:?} in the clear"),
            }
        }
    }

    fn open(&mut self, record: &Dtls<'_>) {
        let bits = u64::from(record.epoch_bits().expect("a record of the one kind"));
        let (_, (keys, next)) =
            self.opens.iter_mut().rev().find(|(epoch, _)| epoch.0 & 3 == bits).expect("an epoch with keys");
        let (header, text, tag) = record.parts().expect("a record of the one kind");
        let [high, low] = mask(keys, &[text, &tag[..]].concat());
        let header = [header[0], header[1] ^ high, header[2] ^ low];
        // The first number from the expected one on with these bits; a number that was used before would not decrypt.
        let low = u16::from_be_bytes([header[1], header[2]]);
        let number = *next + u64::from(low.wrapping_sub(*next as u16));
        let mut text = text.to_vec();
        keys.layer.open(&nonce(&keys.iv, number), &header, &mut text, tag).expect("its keys and its number");
        *next = number + 1;
        let chunks = Bytes::copy_from_slice(Dtls::chunks_in(&text).expect("content of SCTP"));
        let head = [&[0; 12][..], &chunks].concat();
        for chunk in Chunks::of(&head) {
            chunk.expect("a chunk that can be read");
        }
    }
}
