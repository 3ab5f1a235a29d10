//! Tests of chunks with impossible lengths, and of the small functions of the chunk types.

use super::*;
use crate::serial::{Fsn, Tsn};
use crate::{DataFlags, IData, List, PpidOrFsn};

/// Returns a chunk of this type and total length whose body is zero.
fn zeros(kind: ChunkKind, len: u8) -> Vec<u8> {
    let mut bytes = vec![0; usize::from(len)];
    bytes[..4].copy_from_slice(&[kind.0, 0, 0, len]);
    bytes
}

#[track_caller]
fn refused(kind: ChunkKind, lengths: &[u8]) {
    for len in lengths {
        let bytes = zeros(kind, *len);
        let outcome = Chunk::parse(&bytes);
        assert!(outcome.is_err_and(|error| error.kind == kind), "{kind} of {len} bytes: {outcome:?}");
    }
}

#[track_caller]
fn accepted(kind: ChunkKind, lengths: &[u8]) {
    for len in lengths {
        let bytes = zeros(kind, *len);
        let outcome = Chunk::parse(&bytes);
        assert_eq!(outcome.map(|chunk| chunk.kind()), Ok(kind), "{len} bytes");
    }
}

#[test]
fn fixed_lengths() {
    for kind in [ChunkKind::SHUTDOWN_ACK, ChunkKind::SHUTDOWN_COMPLETE, ChunkKind::COOKIE_ACK] {
        accepted(kind, &[4]);
        refused(kind, &[5, 8]);
    }
    for kind in [ChunkKind::SHUTDOWN, ChunkKind::CWR] {
        accepted(kind, &[8]);
        refused(kind, &[4, 7, 9, 12]);
    }
    accepted(ChunkKind::ECNE, &[8, 12]);
    refused(ChunkKind::ECNE, &[4, 9, 11, 16]);
}

#[test]
fn least_lengths() {
    for (kind, least) in [
        (ChunkKind::DATA, 17),
        (ChunkKind::I_DATA, 21),
        (ChunkKind::INIT, 20),
        (ChunkKind::INIT_ACK, 20),
        (ChunkKind::SACK, 16),
        (ChunkKind::NR_SACK, 20),
        (ChunkKind::AUTH, 8),
        (ChunkKind::ASCONF_ACK, 8),
        (ChunkKind::PACKET_DROP, 16),
        (ChunkKind::FORWARD_TSN, 8),
        (ChunkKind::I_FORWARD_TSN, 8),
        (ChunkKind::DTLS, 5),
    ] {
        accepted(kind, &[least]);
        refused(kind, &[least - 1, 4]);
    }
    for kind in
        [ChunkKind::HEARTBEAT, ChunkKind::ABORT, ChunkKind::ERROR, ChunkKind::COOKIE_ECHO, ChunkKind::PAD]
    {
        accepted(kind, &[4, 5, 40]);
    }
}

#[test]
fn lists_fill_their_chunk() {
    refused(ChunkKind::SACK, &[17, 20]);
    refused(ChunkKind::NR_SACK, &[21, 24]);
    refused(ChunkKind::FORWARD_TSN, &[10]);
    accepted(ChunkKind::FORWARD_TSN, &[12, 16]);
    refused(ChunkKind::I_FORWARD_TSN, &[12]);
    accepted(ChunkKind::I_FORWARD_TSN, &[16]);

    let mut sack = zeros(ChunkKind::SACK, 20);
    sack[13] = 2;
    let error = Chunk::parse(&sack).unwrap_err();
    assert_eq!(error.fault, Fault::Count { len: 20, counted: 24 });
    sack[13] = 1;
    assert!(Chunk::parse(&sack).is_ok());
    (sack[12], sack[14]) = (0xFF, 0xFF);
    assert!(Chunk::parse(&sack).is_err(), "the largest counts do not overflow");
}

#[test]
fn an_asconf_needs_its_address() {
    refused(ChunkKind::ASCONF, &[4, 8, 12, 16, 28]);
    let mut asconf = zeros(ChunkKind::ASCONF, 16);
    asconf[8..12].copy_from_slice(&[0, 5, 0, 8]);
    assert!(Chunk::parse(&asconf).is_ok());
    asconf[11] = 12;
    assert_eq!(Chunk::parse(&asconf).unwrap_err().fault, Fault::Address);
}

#[test]
fn data_without_payload_names_its_tsn() {
    for (kind, len) in [(ChunkKind::DATA, 16), (ChunkKind::I_DATA, 20)] {
        let mut bytes = zeros(kind, len);
        bytes[7] = 9;
        let error = Chunk::parse(&bytes).unwrap_err();
        assert_eq!(error.no_user_data(), Some(Tsn(9)));
        assert!(!error.fault.ends_reading());
    }
}

#[test]
fn the_word_of_i_data_depends_on_the_b_bit() {
    let mut bytes = zeros(ChunkKind::I_DATA, 24);
    bytes[19] = 5;
    for (flags, expected) in
        [(0, PpidOrFsn::Fsn(Fsn(5))), (1, PpidOrFsn::Fsn(Fsn(5))), (2, PpidOrFsn::Ppid(crate::Ppid(5)))]
    {
        bytes[1] = flags;
        let Ok(Chunk::IData(IData { ppid_or_fsn, .. })) = Chunk::parse(&bytes) else {
            panic!("valid I-DATA")
        };
        assert_eq!(ppid_or_fsn, expected);
    }
}

#[test]
fn data_flags_stand_where_the_rfc_has_them() {
    let none = DataFlags::default();
    assert_eq!(DataFlags { ending: true, ..none }.to_byte(), 0x01);
    assert_eq!(DataFlags { beginning: true, ..none }.to_byte(), 0x02);
    assert_eq!(DataFlags { unordered: true, ..none }.to_byte(), 0x04);
    assert_eq!(DataFlags { immediate: true, ..none }.to_byte(), 0x08);
    for byte in 0..=u8::MAX {
        assert_eq!(DataFlags::from_byte(byte).to_byte(), byte & 0x0F);
    }
}

#[test]
fn the_delayed_ack_count_saturates_at_three() {
    let flags: Vec<_> = [0, 1, 2, 3, 4, u32::MAX].iter().map(|count| Sack::dac_flags(*count)).collect();
    assert_eq!(flags, [0x00, 0x40, 0x80, 0xC0, 0xC0, 0xC0]);
    let count = |flags| {
        let (gaps, duplicates) = (List::default(), List::default());
        Sack { flags, cumulative_tsn: Tsn(0), a_rwnd: 0, gaps, duplicates }.dac_count()
    };
    assert_eq!([0x00, 0x3F, 0x40, 0x80, 0xFF].map(count), [1, 1, 1, 2, 3]);
}

#[test]
fn packet_drop_flags_stand_where_the_draft_has_them() {
    let mut bytes = zeros(ChunkKind::PACKET_DROP, 16);
    for (flags, expected) in
        [(0x01, [true, false, false]), (0x02, [false, true, false]), (0x04, [false, false, true])]
    {
        bytes[1] = flags;
        let Ok(Chunk::PacketDrop(drop)) = Chunk::parse(&bytes) else { panic!("a valid PKTDROP") };
        assert_eq!([drop.middlebox, drop.bad_checksum, drop.truncated], expected);
    }
}

#[test]
fn entries_that_fit_a_report() {
    assert_eq!([0, 16, 19, 20, 1_440].map(Sack::entries_in), [0, 0, 0, 1, 356]);
    assert_eq!([0, 20, 23, 24, 1_440].map(NrSack::entries_in), [0, 0, 0, 1, 355]);
}

#[test]
fn heartbeat_info_is_found_behind_other_parameters() {
    let body = [0xC0, 0x77, 0, 5, 1, 0, 0, 0, 0, 1, 0, 6, 7, 8];
    assert_eq!(Heartbeat { body: &body }.info(), Some(&[7, 8][..]));
    assert_eq!(Heartbeat { body: &body[..8] }.info(), None);
    assert_eq!(Heartbeat { body: &[0, 1, 0, 99] }.info(), None);
    let mut longest = Vec::new();
    heartbeat::heartbeat_info_tlv(&[0; 70_000], &mut longest);
    assert_eq!((longest.len(), &longest[..4]), (65_535, &[0, 1, 0xFF, 0xFF][..]));
}

#[test]
fn a_record_is_of_the_one_kind_that_is_used() {
    let record = |first: u8, len: usize| {
        let mut record = vec![0x55; len];
        record[0] = first;
        record
    };
    for (first, epoch) in
        [(0x28, Some(0)), (0x2B, Some(3)), (0x2C, None), (0x38, None), (0x08, None), (0xFF, None)]
    {
        let record = record(first, 20);
        let dtls = Dtls { restart: false, record: &record };
        assert_eq!(dtls.epoch_bits(), epoch, "{first:#04x}");
        assert_eq!(dtls.parts().is_some(), epoch.is_some());
    }
    let shortest = record(0x28, 20);
    let parts = Dtls { restart: false, record: &shortest }.parts();
    assert_eq!(parts.map(|(header, text, tag)| (header[0], text.len(), tag.len())), Some((0x28, 1, 16)));
    assert_eq!(Dtls { restart: false, record: &shortest[..19] }.parts(), None);
    assert_eq!(Dtls { restart: false, record: &[] }.parts(), None);
}

#[test]
fn what_is_in_a_record_ends_with_its_content_type() {
    for (text, chunks) in [
        (&[11, 0, 0, 4, 23][..], Some(&[11, 0, 0, 4][..])),
        (&[11, 0, 0, 4, 23, 0, 0, 0], Some(&[11, 0, 0, 4])),
        (&[23], Some(&[])),
        (&[11, 0, 0, 4, 22], None),
        (&[0, 0], None),
        (&[], None),
    ] {
        assert_eq!(Dtls::chunks_in(text), chunks, "{text:?}");
    }
}

#[test]
fn names_of_types() {
    assert_eq!(ChunkKind::I_FORWARD_TSN.to_string(), "I-FORWARD-TSN");
    assert_eq!(ChunkKind(63).to_string(), "type 63");
    assert_eq!(ChunkKind(63).name(), None);
}

#[test]
fn an_unrecognised_chunk_is_always_well_formed() {
    for whole in [&[][..], &[200], &[200, 5, 0, 99, 1, 2]] {
        let chunk = Chunk::Unrecognised(UnrecognisedChunk { kind: ChunkKind(200), whole });
        let mut out = Vec::new();
        chunk.write(&mut out).expect("short");
        let read = Chunk::parse(&out).expect("a valid chunk");
        assert_eq!((read.kind(), read.wire_len()), (ChunkKind(200), chunk.wire_len()));
    }
}
