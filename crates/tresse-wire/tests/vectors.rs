//! Packets worked out by hand from the field tables of the RFCs, byte by byte; written and read.

use tresse_wire::*;

/// CRC32c a bit at a time, straight from its polynomial (RFC 9260 appendix A): shares nothing with the
/// crate's.
fn slow_crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ if crc & 1 == 1 { 0x82F6_3B78 } else { 0 })
    })
}

const HEADER: CommonHeader =
    CommonHeader { source_port: 5_000, destination_port: 9_899, verification_tag: 0x1122_3344 };

/// The common header of [`HEADER`], with the checksum of `chunks` filled in by the slow way.
fn packet(chunks: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x13, 0x88, 0x26, 0xAB, 0x11, 0x22, 0x33, 0x44, 0, 0, 0, 0];
    bytes.extend_from_slice(chunks);
    let crc = slow_crc32c(&bytes);
    bytes[8..12].copy_from_slice(&[crc as u8, (crc >> 8) as u8, (crc >> 16) as u8, (crc >> 24) as u8]);
    bytes
}

/// Checks that the chunks are written as these bytes, and that the bytes are read as these chunks.
#[track_caller]
fn check(chunks: &[Chunk<'_>], expected: &[u8]) {
    let expected = packet(expected);
    let mut written = Vec::new();
    let mut writer = PacketWriter::new(&mut written, HEADER, 1_452);
    for chunk in chunks {
        writer.push(chunk).expect("room for the chunk");
    }
    assert_eq!(writer.finish(Seal::Crc32c), expected.len());
    assert_eq!(written, expected);

    let packet = Packet::parse(&expected, ChecksumRule::Verify).expect("a valid packet");
    assert_eq!(packet.header, HEADER);
    let read: Vec<_> = packet.chunks().map(|chunk| chunk.expect("a valid chunk")).collect();
    assert_eq!(read, chunks);
}

#[test]
fn check_value_of_crc32c() {
    assert_eq!(slow_crc32c(b"123456789"), 0xE306_9283);
    assert_eq!(checksum(b"123456789"), 0xE306_9283);
}

/// RFC 3720 appendix B.4: 32 bytes of zeros and 32 bytes of ones.
#[test]
fn crc32c_examples_of_iscsi() {
    assert_eq!(checksum(&[0; 32]), 0x8A91_36AA);
    let mut ones = [0xFF; 32];
    // Bytes 8 to 11 are the checksum field and count as zero.
    let whole = slow_crc32c(&ones);
    assert_eq!(whole, 0x62A8_AB43);
    ones[8..12].fill(0);
    assert_eq!(checksum(&ones), slow_crc32c(&ones));
}

#[test]
fn a_sealed_packet_has_its_least_significant_byte_first() {
    let mut bytes = packet(&[11, 0, 0, 4]);
    let stored = [bytes[8], bytes[9], bytes[10], bytes[11]];
    assert_eq!(u32::from_le_bytes(stored), checksum(&bytes));
    bytes[8..12].fill(0);
    seal(&mut bytes);
    assert_eq!(bytes[8..12], stored);
}

#[test]
fn init_with_parameters() {
    let params = [
        Param::Address("192.0.2.7".parse().expect("an address")),
        Param::SupportedAddressTypes(List::Values(&[5, 6])),
        Param::SupportedExtensions(&[0xC0, 0x10, 0x40]),
        Param::ForwardTsnSupported,
        Param::HmacAlgorithms(List::Values(&[3])),
    ];
    let init = Init {
        initiate_tag: 0xA1A2_A3A4,
        a_rwnd: 0x0001_0000,
        outbound_streams: 16,
        inbound_streams: 0xFFFF,
        initial_tsn: Tsn(0xB1B2_B3B4),
        params: Params::Values(&params),
    };
    #[rustfmt::skip]
    check(&[Chunk::Init(init)], &[
        1, 0, 0, 54,                                 // type, flags, length: 20 + 8 + 8 + 8 + 4 + 6
        0xA1, 0xA2, 0xA3, 0xA4,                      // initiate tag
        0, 1, 0, 0,                                  // a_rwnd
        0, 16, 0xFF, 0xFF,                           // outbound, inbound streams
        0xB1, 0xB2, 0xB3, 0xB4,                      // initial TSN
        0, 5, 0, 8, 192, 0, 2, 7,                    // IPv4 address
        0, 12, 0, 8, 0, 5, 0, 6,                     // supported address types
        0x80, 8, 0, 7, 0xC0, 0x10, 0x40, 0,          // supported extensions, one byte of padding
        0xC0, 0, 0, 4,                               // forward TSN supported
        0x80, 4, 0, 6, 0, 3, 0, 0,                   // HMACs; the padding belongs to the chunk
    ]);
}

#[test]
fn init_ack_with_cookie() {
    let params = [
        Param::StateCookie(&[1, 2, 3, 4, 5]),
        Param::UnrecognisedParameter(&[0xC0, 0x77, 0, 5, 9]),
        Param::EcnCapable,
    ];
    let init = Init {
        initiate_tag: 1,
        a_rwnd: 1_500,
        outbound_streams: 1,
        inbound_streams: 1,
        initial_tsn: Tsn(2),
        params: Params::Values(&params),
    };
    #[rustfmt::skip]
    check(&[Chunk::InitAck(init)], &[
        2, 0, 0, 48,                                 // 20 + 12 + 12 + 4
        0, 0, 0, 1, 0, 0, 5, 0xDC, 0, 1, 0, 1, 0, 0, 0, 2,
        0, 7, 0, 9, 1, 2, 3, 4, 5, 0, 0, 0,          // state cookie, three bytes of padding
        0, 8, 0, 9, 0xC0, 0x77, 0, 5, 9, 0, 0, 0,    // unrecognised parameter, header included
        0x80, 0, 0, 4,                               // ECN capable
    ]);
}

#[test]
fn cookie_echo_with_data() {
    let data = Data {
        tsn: Tsn(0x0102_0304),
        stream: StreamId(0x0506),
        ssn: Ssn(0x0708),
        ppid: Ppid(0x090A_0B0C),
        flags: DataFlags { immediate: true, ..DataFlags::WHOLE },
        payload: b"hello",
    };
    let unordered = Data {
        flags: DataFlags { unordered: true, beginning: true, ..DataFlags::default() },
        payload: b"x",
        ..data
    };
    #[rustfmt::skip]
    check(
        &[Chunk::CookieEcho(CookieEcho { cookie: &[7, 8, 9] }), Chunk::Data(data), Chunk::Data(unordered)],
        &[
            10, 0, 0, 7, 7, 8, 9, 0,                 // cookie, one byte of padding
            0, 0x0B, 0, 21, 1, 2, 3, 4,              // I, B, E; TSN
            5, 6, 7, 8, 9, 0x0A, 0x0B, 0x0C,         // stream, SSN, PPID
            b'h', b'e', b'l', b'l', b'o', 0, 0, 0,
            0, 0x06, 0, 17, 1, 2, 3, 4,              // U, B
            5, 6, 7, 8, 9, 0x0A, 0x0B, 0x0C,
            b'x', 0, 0, 0,
        ],
    );
}

#[test]
fn reports() {
    let gaps = [GapBlock { start: 2, end: 3 }, GapBlock { start: 0x0105, end: 0x0106 }];
    let sack = Sack {
        flags: Sack::dac_flags(2),
        cumulative_tsn: Tsn(0x0A00_0001),
        a_rwnd: 0x0002_0000,
        gaps: List::Values(&gaps),
        duplicates: List::Values(&[Tsn(0x0A00_0000)]),
    };
    let nr_sack = NrSack {
        flags: 0,
        cumulative_tsn: Tsn(0x0A00_0001),
        a_rwnd: 0x0002_0000,
        renegable: List::Values(&gaps[..1]),
        non_renegable: List::Values(&gaps[1..]),
        duplicates: List::default(),
    };
    #[rustfmt::skip]
    check(&[Chunk::Sack(sack), Chunk::NrSack(nr_sack)], &[
        3, 0x80, 0, 28,                              // count 2 in bits 7 and 6; 16 + 2 · 4 + 4
        0x0A, 0, 0, 1, 0, 2, 0, 0,                   // cumulative TSN, a_rwnd
        0, 2, 0, 1,                                  // gap blocks, duplicates
        0, 2, 0, 3, 1, 5, 1, 6,
        0x0A, 0, 0, 0,
        16, 0, 0, 28,                                // 20 + 4 + 4
        0x0A, 0, 0, 1, 0, 2, 0, 0,
        0, 1, 0, 1, 0, 0, 0, 0,                      // renegable, non-renegable, duplicates, reserved
        0, 2, 0, 3,
        1, 5, 1, 6,
    ]);
}

#[test]
fn interleaving() {
    let first = IData {
        tsn: Tsn(1),
        stream: StreamId(2),
        mid: Mid(3),
        ppid_or_fsn: PpidOrFsn::Ppid(Ppid(4)),
        flags: DataFlags { beginning: true, ..DataFlags::default() },
        payload: b"abcd",
    };
    let second = IData {
        tsn: Tsn(2),
        ppid_or_fsn: PpidOrFsn::Fsn(Fsn(1)),
        flags: DataFlags { ending: true, ..DataFlags::default() },
        ..first
    };
    let forward = IForwardTsn {
        cumulative_tsn: Tsn(9),
        messages: List::Values(&[SkippedMessage { stream: StreamId(2), unordered: true, mid: Mid(3) }]),
    };
    #[rustfmt::skip]
    check(&[Chunk::IData(first), Chunk::IData(second), Chunk::IForwardTsn(forward)], &[
        64, 2, 0, 24, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0, 3, 0, 0, 0, 4, b'a', b'b', b'c', b'd',
        64, 1, 0, 24, 0, 0, 0, 2, 0, 2, 0, 0, 0, 0, 0, 3, 0, 0, 0, 1, b'a', b'b', b'c', b'd',
        194, 0, 0, 16, 0, 0, 0, 9, 0, 2, 0, 1, 0, 0, 0, 3,
    ]);
    assert_eq!((first.fsn(), second.fsn()), (Fsn(0), Fsn(1)));
}

#[test]
fn abort_and_error_with_causes() {
    let abort = Abort {
        tag_reflected: true,
        causes: Causes::Values(&[
            Cause::MissingParameters(List::Values(&[7])),
            Cause::ProtocolViolation(b"bad"),
        ]),
    };
    let error = ErrorChunk {
        causes: Causes::Values(&[Cause::UnsupportedHmac(4), Cause::InvalidStream(StreamId(5))]),
    };
    #[rustfmt::skip]
    check(&[Chunk::Error(error), Chunk::Abort(abort)], &[
        9, 0, 0, 20,
        0x01, 0x05, 0, 6, 0, 4, 0, 0,                // unsupported HMAC identifier, two bytes of padding
        0, 1, 0, 8, 0, 5, 0, 0,                      // invalid stream identifier, reserved
        6, 1, 0, 23,
        0, 2, 0, 10, 0, 0, 0, 1, 0, 7, 0, 0,         // missing mandatory parameter: one, state cookie
        0, 13, 0, 7, b'b', b'a', b'd', 0,            // protocol violation; the padding belongs to the chunk
    ]);
}

#[test]
fn stream_reset_and_its_answer() {
    let request = [
        Param::OutgoingReset { request: 1, response: 2, last_tsn: Tsn(3), streams: List::Values(&[4]) },
        Param::IncomingReset { request: 5, streams: List::default() },
    ];
    let answer = [
        Param::ReconfigResponse { response: 1, result: 6, next_tsns: None },
        Param::AddIncomingStreams { request: 7, count: 8 },
    ];
    #[rustfmt::skip]
    check(
        &[
            Chunk::Reconfig(Reconfig { params: Params::Values(&request) }),
            Chunk::Reconfig(Reconfig { params: Params::Values(&answer) }),
        ],
        &[
            130, 0, 0, 32,
            0, 13, 0, 18, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 4, 0, 0,
            0, 14, 0, 8, 0, 0, 0, 5,
            130, 0, 0, 28,
            0, 16, 0, 12, 0, 0, 0, 1, 0, 0, 0, 6,
            0, 18, 0, 12, 0, 0, 0, 7, 0, 8, 0, 0,
        ],
    );
}

#[test]
fn address_change_and_its_answer() {
    let address = "192.0.2.7".parse().expect("an address");
    let request = [Param::AddAddress { correlation: 9, address: "::1".parse().expect("an address") }];
    let answer = [Param::ErrorIndication {
        correlation: 9,
        causes: Causes::Values(&[Cause::ResourceShortage(&[0xC0, 1, 0, 8, 0, 0, 0, 9])]),
    }];
    #[rustfmt::skip]
    check(
        &[
            Chunk::Asconf(Asconf { serial: 3, address, params: Params::Values(&request) }),
            Chunk::AsconfAck(AsconfAck { serial: 3, params: Params::Values(&answer) }),
        ],
        &[
            193, 0, 0, 44, 0, 0, 0, 3,
            0, 5, 0, 8, 192, 0, 2, 7,
            0xC0, 1, 0, 28, 0, 0, 0, 9, 0, 6, 0, 20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
            128, 0, 0, 28, 0, 0, 0, 3,
            0xC0, 3, 0, 20, 0, 0, 0, 9, 0, 0xA1, 0, 12, 0xC0, 1, 0, 8, 0, 0, 0, 9,
        ],
    );
}

#[test]
fn the_small_chunks() {
    let mut body = Vec::new();
    heartbeat_info_tlv(&[1, 2, 3], &mut body);
    let beat = Heartbeat { body: &body };
    assert_eq!(beat.info(), Some(&[1, 2, 3][..]));
    let drop = PacketDrop {
        middlebox: true,
        bad_checksum: false,
        truncated: true,
        bandwidth: 1,
        queue_size: 2,
        truncated_len: 3,
        packet: &[4],
    };
    #[rustfmt::skip]
    check(
        &[
            Chunk::Heartbeat(beat),
            Chunk::Ecne(Ecne { lowest_tsn: Tsn(1), marked_packets: None }),
            Chunk::Ecne(Ecne { lowest_tsn: Tsn(1), marked_packets: Some(2) }),
            Chunk::Cwr(Cwr { lowest_tsn: Tsn(3) }),
            Chunk::Shutdown(Shutdown { cumulative_tsn: Tsn(4) }),
            Chunk::ForwardTsn(ForwardTsn {
                cumulative_tsn: Tsn(5),
                streams: List::Values(&[SkippedStream { stream: StreamId(6), ssn: Ssn(7) }]),
            }),
            Chunk::Auth(Auth { key_id: 8, hmac_id: 1, hmac: &[9; 4] }),
            Chunk::Pad(Pad { len: 1 }),
            Chunk::PacketDrop(drop),
            Chunk::ShutdownComplete { tag_reflected: true },
        ],
        &[
            4, 0, 0, 11, 0, 1, 0, 7, 1, 2, 3, 0,
            12, 0, 0, 8, 0, 0, 0, 1,
            12, 0, 0, 12, 0, 0, 0, 1, 0, 0, 0, 2,
            13, 0, 0, 8, 0, 0, 0, 3,
            7, 0, 0, 8, 0, 0, 0, 4,
            192, 0, 0, 12, 0, 0, 0, 5, 0, 6, 0, 7,
            15, 0, 0, 12, 0, 8, 0, 1, 9, 9, 9, 9,
            132, 0, 0, 5, 0, 0, 0, 0,
            129, 5, 0, 17, 0, 0, 0, 1, 0, 0, 0, 2, 0, 3, 0, 0, 4, 0, 0, 0,
            14, 1, 0, 4,
        ],
    );
}
