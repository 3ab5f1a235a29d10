//! Records against the published vector, by two implementations that share no code; accepted and rejected packets.

use aes::Aes128;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use aes_gcm::Aes128Gcm;
use aes_gcm::aead::AeadInOut;
use tresse_wire::{CommonHeader, Seal, dissect};

use super::number::closest;
use super::*;
use crate::interface::protection::{EpochStats, METHOD_PRE_SHARED, RecordFault, RecordLayer, Role, Suite};

mod by_hand;

/// Suite 0x1301, with the keys of the Linux test program.
const KEY: [u8; 16] = 0x0011_2233_4455_6677_8899_aabb_ccdd_eeff_u128.to_be_bytes();
const NUMBER_KEY: [u8; 16] = 0xa1b2_c3d4_e5f6_0718_293a_4b5c_6d7e_8f90_u128.to_be_bytes();
const IV: [u8; 12] = [0xde, 0xad, 0xbe, 0xef, 0xca, 0xfe, 0xba, 0xbe, 0x12, 0x34, 0x56, 0x78];

/// COOKIE ACK with epoch 3 and number 0, and with epoch 4 and number 65,538.
const FIRST: &str = "4100001d002b6fb770211d582fa48edf37fb2b31b21bf88de36e372a64000000";
const SECOND: &str = "4100001d002866775d816c74edebd7419668afc0520f597c8396b9cd65000000";

/// AES-128-GCM of the crate `aes-gcm`.
struct Gcm(Aes128Gcm, Aes128);

impl RecordLayer for Gcm {
    fn seal(
        &mut self,
        nonce: &[u8; 12],
        header: &[u8; 3],
        text: &mut [u8],
        tag: &mut [u8; 16],
    ) -> Result<(), RecordFault> {
        let sealed = self.0.encrypt_inout_detached(&(*nonce).into(), header, text.into());
        *tag = sealed.map_err(|_| RecordFault)?.into();
        Ok(())
    }

    fn open(
        &mut self,
        nonce: &[u8; 12],
        header: &[u8; 3],
        text: &mut [u8],
        tag: &[u8; 16],
    ) -> Result<(), RecordFault> {
        let opened = self.0.decrypt_inout_detached(&(*nonce).into(), header, text.into(), &(*tag).into());
        opened.map_err(|_| RecordFault)
    }

    fn mask(&mut self, sample: &[u8; 16]) -> [u8; 2] {
        let mut block: Array<u8, _> = (*sample).into();
        self.1.encrypt_block(&mut block);
        [block[0], block[1]]
    }
}

fn keys() -> RecordKeys {
    let layer = Box::new(Gcm(Aes128Gcm::new(&KEY.into()), Aes128::new(&NUMBER_KEY.into())));
    RecordKeys { suite: Suite::Aes128Gcm, iv: IV, layer }
}

fn agreed() -> Agreed {
    let none = || Box::from(&[][..]);
    Agreed { role: Role::Client, method: METHOD_PRE_SHARED, own_parameter: none(), peer_parameter: none() }
}

fn protection() -> Protection {
    Protection::new(agreed(), &AssociationConfig::default())
}

/// Protection with sending and receiving keys of the first epoch, which are the same.
fn keyed() -> Protection {
    let mut protection = protection();
    protection.install_receive(Epoch::FIRST, keys()).expect("the first");
    protection.install_send(Epoch::FIRST, keys()).expect("the first");
    protection
}

const HEADER: CommonHeader = CommonHeader { source_port: 1, destination_port: 2, verification_tag: 3 };

/// Returns a packet that `protection` sends with these chunks, in the clear if it has no keys.
fn packet(protection: &mut Protection, chunks: &[Chunk<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = PacketWriter::new(&mut bytes, HEADER, 1_452);
    protection.prepare(&mut writer);
    for chunk in chunks {
        writer.push(chunk).expect("room");
    }
    protection.seal(&mut writer).expect("a fresh key");
    writer.finish(Seal::Crc32c);
    bytes
}

fn admit(protection: &mut Protection, path: usize, packet: &[u8]) -> (Admission, Bytes) {
    let mut bytes = Bytes::copy_from_slice(packet);
    (protection.admit(path, &mut bytes, &mut OpenedPackets::default()), bytes)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the statistics of the newest receiving keys.
fn stats(protection: &Protection) -> EpochStats {
    protection.stats().epochs.last().expect("keys").1
}

/// Returns a packet with COOKIE ACK whose record has this number, encrypted by `by_hand`.
fn numbered(epoch: u64, number: u64) -> Vec<u8> {
    let mut bytes = vec![0, 1, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0];
    bytes.extend(by_hand::seal(&KEY, &NUMBER_KEY, &IV, epoch, number, &[11, 0, 0, 4]));
    bytes
}

/// The layout of draft-ietf-tsvwg-sctp-dtls-chunk, in both directions: the core with a published cipher and `by_hand` write the
/// same bytes, and each reads those of the other.
#[test]
fn two_ends_that_share_no_code_agree_with_the_vector() {
    assert_eq!(hex(&packet(&mut keyed(), &[Chunk::CookieAck])[12..]), FIRST);
    assert_eq!(hex(&numbered(3, 0)[12..]), FIRST);
    assert_eq!(hex(&numbered(4, 65_538)[12..]), SECOND);

    let (admission, opened) = admit(&mut keyed(), 0, &numbered(3, 0));
    assert_eq!((admission, &opened[12..]), (Admission::Taken, &[11, 0, 0, 4][..]));
    assert_eq!(opened[..8], [0, 1, 0, 2, 0, 0, 0, 3]);
    for len in [4, 8, 20, 1_000] {
        let pad = Chunk::Pad(tresse_wire::Pad { len: len - 4 });
        let sealed = packet(&mut keyed(), &[pad]);
        let opened = by_hand::open(&KEY, &NUMBER_KEY, &IV, 3, 0, &sealed[12..]).expect("a right tag");
        assert_eq!((opened.len(), opened[0]), (usize::from(len), ChunkKind::PAD.0));
    }
    let mut wrong = numbered(3, 0);
    wrong[20] ^= 1;
    assert_eq!(by_hand::open(&KEY, &NUMBER_KEY, &IV, 3, 0, &wrong[12..]), None);
}

#[test]
fn the_second_vector_opens_with_the_keys_of_its_epoch() {
    let mut protection = keyed();
    protection.install_receive(Epoch(4), keys()).expect("the next");
    // The number must be within reach of the numbers before.
    for number in [30_000, 60_000, 65_538] {
        assert_eq!(admit(&mut protection, 0, &numbered(4, number)).0, Admission::Taken, "{number}");
    }
    assert_eq!(stats(&protection).opened, 3);
}

#[test]
fn a_record_shows_in_one_line() {
    let line = dissect(&packet(&mut keyed(), &[Chunk::CookieAck]));
    assert_eq!(line, "1 > 2 tag 0x00000003: DTLS epoch bits 3, 24 bytes");
}

#[test]
fn every_bit_matters_but_those_that_nothing_reads() {
    let sealed = packet(&mut keyed(), &[Chunk::CookieAck]);
    for bit in 0..sealed.len() * 8 {
        let mut forged = sealed.clone();
        forged[bit / 8] ^= 1 << (bit % 8);
        let (byte, in_byte) = (bit / 8, bit % 8);
        // The endpoint checks the common header. No receiver checks the unused flags, the byte before the record, or the padding.
        let unread = byte < 12 || (byte == 13 && in_byte != 0) || byte == 16 || byte >= sealed.len() - 3;
        let mut receiver = keyed();
        receiver.require(true).expect("keys are there");
        let admission = admit(&mut receiver, 0, &forged).0;
        assert_eq!(admission == Admission::Taken, unread, "bit {in_byte} of byte {byte}");
        // After all these, the genuine record is still accepted.
        let expected = if unread { Admission::Unopened } else { Admission::Taken };
        assert_eq!(admit(&mut receiver, 0, &sealed).0, expected);
    }
}

#[test]
fn no_record_opens_twice() {
    let mut receiver = keyed();
    for number in [0, 3, 1, 2] {
        assert_eq!(admit(&mut receiver, 0, &numbered(3, number)).0, Admission::Taken);
    }
    for number in [0, 1, 2, 3] {
        assert_eq!(admit(&mut receiver, 0, &numbered(3, number)).0, Admission::Unopened);
    }
    assert_eq!(stats(&receiver), EpochStats { opened: 4, replayed: 4, ..EpochStats::default() });
}

/// A path with a long delay delivers a record that was sent long before others.
#[test]
fn records_that_are_far_behind_open() {
    for distance in [30_000_u64, 40_000, 70_000, 140_000, 268_000, 500_000] {
        let mut receiver = keyed();
        let mut highest = 0;
        let mut arrive = |receiver: &mut Protection, until: u64| {
            while highest < until {
                highest = (highest + 20_000).min(until);
                assert_eq!(admit(receiver, 0, &numbered(3, highest)).0, Admission::Taken);
            }
        };
        arrive(&mut receiver, 1_000_000);
        let mut taken = 0;
        for step in 1..=60 {
            let now = 1_000_000 + step * 20_000;
            arrive(&mut receiver, now);
            taken +=
                u64::from(admit(&mut receiver, 1, &numbered(3, now - distance - 7)).0 == Admission::Taken);
        }
        assert_eq!(taken, 60, "{distance}");
        let far = stats(&receiver).far_behind;
        assert_eq!(far, if distance > 32_768 { taken } else { 0 }, "{distance}");
    }
}

#[test]
fn forgeries_cost_many_tries_only_at_first() {
    let mut receiver = keyed();
    for number in (0..2_000_000).step_by(20_000) {
        admit(&mut receiver, 0, &numbered(3, number));
    }
    let mut forged = numbered(3, 7);
    forged[21] ^= 1;
    for _ in 0..100 {
        assert_eq!(admit(&mut receiver, 0, &forged).0, Admission::Unopened);
    }
    let tries = receiver.receive[0].tries_failed();
    assert!((100..=100 + 8 * 9).contains(&tries), "{tries} tries");
    assert_eq!(stats(&receiver).failed, 100);
}

#[test]
fn what_is_no_record_of_this_association_is_dropped() {
    let sealed = packet(&mut keyed(), &[Chunk::CookieAck]);
    let with = |change: fn(&mut Vec<u8>)| {
        let mut bytes = sealed.clone();
        change(&mut bytes);
        bytes
    };
    for (what, bytes) in [
        ("for a restart", with(|bytes| bytes[13] = 1)),
        ("an epoch without keys", with(|bytes| bytes[17] = 0x28)),
        ("a connection id", with(|bytes| bytes[17] |= 0x10)),
        ("another chunk behind it", with(|bytes| bytes.extend([11, 0, 0, 4]))),
        ("without its padding", with(|bytes| bytes.truncate(bytes.len() - 3))),
        ("cut", with(|bytes| bytes.truncate(24))),
        ("no record at all", with(|bytes| bytes[14..16].copy_from_slice(&[0, 5]))),
    ] {
        assert_eq!(admit(&mut keyed(), 0, &bytes).0, Admission::Unopened, "{what}");
    }
    assert_eq!(admit(&mut protection(), 0, &sealed).0, Admission::Unopened, "no keys yet");
}

#[test]
fn what_may_come_in_the_clear_ends_with_the_requirement() {
    let data = |stream, ppid, unordered| {
        Chunk::Data(tresse_wire::Data {
            tsn: tresse_wire::Tsn(1),
            stream: StreamId(stream),
            ssn: tresse_wire::Ssn(0),
            ppid: Ppid(ppid),
            flags: DataFlags { unordered, ..DataFlags::WHOLE },
            payload: b"x",
        })
    };
    let forward = Chunk::ForwardTsn(tresse_wire::ForwardTsn {
        cumulative_tsn: tresse_wire::Tsn(9),
        streams: tresse_wire::List::Values(&[]),
    });
    for (chunk, fit) in [
        (Chunk::CookieAck, true),
        (Chunk::ShutdownAck, true),
        (data(0, 4242, false), true),
        (data(0, 4243, false), true),
        (data(0, 4243, true), false),
        (data(1, 4242, false), false),
        (data(0, 0, false), false),
        (forward, false),
    ] {
        let clear = packet(&mut protection(), &[chunk]);
        let expected = if fit { Admission::Taken } else { Admission::Unprotected };
        let mut receiver = keyed();
        assert_eq!(admit(&mut receiver, 0, &clear).0, expected, "{chunk:?}");
        assert_eq!(receiver.require(true), Ok(true));
        assert_eq!(admit(&mut receiver, 0, &clear).0, Admission::Unprotected, "{chunk:?}");
    }
}

#[test]
fn keys_change_in_order_and_drain() {
    let mut protection = protection();
    let now = Instant::ZERO;
    assert!(protection.install_send(Epoch::FIRST, keys()).is_err(), "receiving keys come first");
    assert_eq!(protection.require(true), Err(ProtectionError::KeysMissing));
    assert!(protection.install_receive(Epoch(4), keys()).is_err(), "epoch 3 comes first");
    protection.install_receive(Epoch(3), keys()).expect("the first");
    assert!(protection.install_receive(Epoch(3), keys()).is_err());
    protection.install_send(Epoch(3), keys()).expect("the first");
    assert!(protection.destroy_receive(Epoch(3)).is_err(), "they are in use");

    protection.install_receive(Epoch(4), keys()).expect("the next");
    assert!(protection.install_receive(Epoch(5), keys()).is_err(), "two at a time");
    assert!(protection.destroy_receive(Epoch(3)).is_err(), "the peer sends with them");
    protection.destroy_receive(Epoch(4)).expect("an exchange that came to nothing");
    protection.install_receive(Epoch(4), keys()).expect("another try");
    protection.install_send(Epoch(4), keys()).expect("the next");
    assert!(!protection.begins_to_drain(), "the peer may not know yet that it can send with them");
    assert_eq!(admit(&mut protection, 0, &numbered(4, 0)).0, Admission::Taken);
    assert!(protection.begins_to_drain());
    protection.drain(now, std::iter::once(Duration::from_secs(3)));
    assert!(!protection.begins_to_drain(), "once");
    let end = now + Duration::from_secs(120);
    assert_eq!(protection.drained_at, Some(end));
    assert_eq!(admit(&mut protection, 0, &numbered(3, 0)).0, Admission::Taken, "late, and not too late");
    assert_eq!(protection.on_time(end), Some(Epoch(3)));
    assert_eq!((protection.drained_at, protection.on_time(end)), (None, None));
    assert_eq!(admit(&mut protection, 0, &numbered(3, 1)).0, Admission::Unopened);
    assert_eq!(protection.destroy_receive(Epoch(3)), Err(ProtectionError::NoSuchKeys { epoch: Epoch(3) }));
}

#[test]
fn keys_serve_up_to_their_limits() {
    let limits = KeyLimits { rekey_bytes: 320, most_blocks: 40, most_failures: 2 };
    let mut protection = keyed().limited(limits);
    // The 5 bytes are one block, the header and lengths under the tag another.
    for _ in 0..9 {
        packet(&mut protection, &[Chunk::CookieAck]);
        assert_eq!(protection.pop_limit(), None);
    }
    packet(&mut protection, &[Chunk::CookieAck]);
    assert_eq!(protection.pop_limit(), Some(Event::KeysNearLimit { epoch: Epoch(3) }));
    assert_eq!(protection.pop_limit(), None, "told once");
    for _ in 0..10 {
        packet(&mut protection, &[Chunk::CookieAck]);
    }
    let mut bytes = Vec::new();
    let mut writer = PacketWriter::new(&mut bytes, HEADER, 1_452);
    protection.prepare(&mut writer);
    writer.push(&Chunk::CookieAck).expect("room");
    assert_eq!(protection.seal(&mut writer), Err(SealFault::Spent));

    let mut forged = numbered(3, 0);
    forged[21] ^= 1;
    let mut receiver = keyed().limited(limits);
    for _ in 0..2 {
        admit(&mut receiver, 0, &forged);
    }
    assert!(!receiver.is_spent());
    admit(&mut receiver, 0, &forged);
    assert!(receiver.is_spent());
}

#[test]
fn the_limits_are_those_of_the_standards() {
    let limits = KeyLimits::new(100_000);
    assert_eq!(limits.rekey_bytes, 100_000_000_000);
    // 2^24.5 records of 16 KiB (RFC 9147 §4.5.3) are 2^34.5 blocks.
    assert!(limits.most_blocks <= 23_726_566 * 1024 && limits.rekey_bytes / 16 < limits.most_blocks);
    assert_eq!(limits.most_failures, 1 << 36);
}

#[test]
fn what_came_in_the_clear_and_cannot_be_the_peers_is_noticed() {
    let came = |order: &[(u64, bool)], complete: bool| {
        let mut protection = keyed();
        for &(index, protected) in order {
            protection.protected = protected;
            protection.on_data(index);
        }
        protection.require(complete).expect("keys are there")
    };
    assert!(came(&[(1, false), (2, false), (3, true)], true));
    assert!(came(&[(2, false), (3, true), (1, false), (4, true)], false));
    assert!(!came(&[(1, false), (5, false), (3, true)], true), "in the clear, and beyond what is protected");
    assert!(!came(&[(1, false), (3, false)], false), "something in the clear waits for what never came");
    assert!(came(&[(1, true)], false));
}

#[test]
fn key_messages_are_joined_up_to_their_limit() {
    let mut protection = protection();
    assert_eq!(protection.join(b"one", false), Ok(None));
    assert_eq!(protection.join(b"two", true), Ok(Some(Bytes::from_static(b"onetwo"))));
    assert_eq!(protection.join(&[0; 65_535], false), Ok(None));
    assert!(protection.join(&[0], true).is_err());
}

#[test]
fn numbers_of_the_vector_are_found() {
    assert_eq!(closest(2, 65_000), 65_538);
}
