//! One example of every chunk, parameter and error cause, each valid in the chunk and packet it stands in.
//!
//! Shared by the tests that show them to another implementation. A test compares them with the tables of
//! types, so that a new type cannot be left out.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use tresse_wire::*;

pub(crate) const V4: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
pub(crate) const V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));

/// HEARTBEAT body: a Heartbeat Info parameter of 12 bytes of content.
const HEARTBEAT_BODY: &[u8] = &[0, 1, 0, 16, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
/// An IPv4 Address parameter.
const ADDRESS_TLV: &[u8] = &[0, 5, 0, 8, 192, 0, 2, 9];
/// A Delete IP Address parameter around [`ADDRESS_TLV`].
const DELETE_TLV: &[u8] = &[0xC0, 2, 0, 16, 0, 0, 0, 1, 0, 5, 0, 8, 192, 0, 2, 9];
/// A parameter and a chunk of types that nobody has registered.
const UNKNOWN_TLV: &[u8] = &[0xFF, 0x00, 0, 8, 1, 2, 3, 4];
const UNKNOWN_CHUNK: &[u8] = &[0xFE, 0, 0, 8, 1, 2, 3, 4];
/// A packet with COOKIE ACK, from port 32001 to port 32002.
const PACKET: &[u8] = &[0x7D, 1, 0x7D, 2, 0, 0, 0, 9, 0x16, 0xB2, 0xD6, 0x95, 11, 0, 0, 4];

/// COOKIE ACK in a record of epoch 3, under the keys of the Linux test program.
const DTLS_RECORD: &[u8] = &[
    0x2B, 0x6F, 0xB7, 0x70, 0x21, 0x1D, 0x58, 0x2F, 0xA4, 0x8E, 0xDF, 0x37, 0xFB, 0x2B, 0x31, 0xB2, 0x1B,
    0xF8, 0x8D, 0xE3, 0x6E, 0x37, 0x2A, 0x64,
];

/// Parameters of INIT.
pub(crate) const INIT_PARAMS: &[Param<'static>] = &[
    Param::Address(V4),
    Param::Address(V6),
    Param::CookiePreservative(5_000),
    Param::SupportedAddressTypes(List::Values(&[5, 6])),
    Param::EcnCapable,
    Param::ZeroChecksumAcceptable(1),
    Param::Random(&[0x5A; 32]),
    Param::Chunks(&[0xC1, 0x80]),
    Param::HmacAlgorithms(List::Values(&[3, 1])),
    Param::Padding(&[0; 5]),
    Param::DtlsKeyManagement { tie_breaker: 0x1234_5678, flags: 3, methods: &[192, 0] },
    Param::SupportedExtensions(&[0x40, 0x0F, 0x10, 0x80, 0x82, 0xC0, 0xC1, 0xC2]),
    Param::ForwardTsnSupported,
    Param::AdaptationIndication(7),
    Param::SetPrimary { correlation: 1, address: V4 },
];

/// Parameters that only INIT ACK carries, or that nobody sends any longer.
pub(crate) const INIT_ACK_PARAMS: &[Param<'static>] = &[
    Param::StateCookie(&[0xC0; 61]),
    Param::UnrecognisedParameter(UNKNOWN_TLV),
    Param::SupportedExtensions(&[0x40, 0xC2]),
];

pub(crate) const HOST_NAME: &[Param<'static>] = &[Param::HostName(b"host.example\0")];

const UNKNOWN_PARAM: &[Param<'static>] =
    &[Param::Unrecognised(UnrecognisedParam { kind: ParamKind(0xFF00), whole: UNKNOWN_TLV })];

pub(crate) const ASCONF_PARAMS: &[Param<'static>] = &[
    Param::AddAddress { correlation: 1, address: V6 },
    Param::DeleteAddress { correlation: 2, address: V4 },
    Param::SetPrimary { correlation: 3, address: V6 },
];

pub(crate) const ASCONF_ACK_PARAMS: &[Param<'static>] = &[
    Param::SuccessIndication { correlation: 1 },
    Param::ErrorIndication {
        correlation: 2,
        causes: Causes::Values(&[Cause::DeleteLastAddress(DELETE_TLV)]),
    },
    Param::ErrorIndication { correlation: 3, causes: Causes::Values(&[Cause::ResourceShortage(DELETE_TLV)]) },
];

/// RE-CONFIG parameters in the sets that RFC 6525 §3.1 allows.
pub(crate) const RECONFIG_PARAMS: &[&[Param<'static>]] = &[
    &[Param::OutgoingReset { request: 7, response: 6, last_tsn: Tsn(99), streams: List::Values(&[1, 2, 3]) }],
    &[Param::IncomingReset { request: 8, streams: List::Values(&[4, 5]) }],
    &[
        Param::OutgoingReset { request: 7, response: 6, last_tsn: Tsn(99), streams: List::Values(&[1]) },
        Param::IncomingReset { request: 8, streams: List::Values(&[]) },
    ],
    &[Param::SsnTsnReset { request: 9 }],
    &[
        Param::AddOutgoingStreams { request: 10, count: 5 },
        Param::AddIncomingStreams { request: 11, count: 6 },
    ],
    &[Param::ReconfigResponse { response: 9, result: 1, next_tsns: Some((Tsn(1_000), Tsn(2_000))) }],
    &[
        Param::ReconfigResponse { response: 10, result: 2, next_tsns: None },
        Param::ReconfigResponse { response: 11, result: 6, next_tsns: None },
    ],
];

pub(crate) const CAUSES: &[Cause<'static>] = &[
    Cause::InvalidStream(StreamId(9)),
    Cause::MissingParameters(List::Values(&[7])),
    Cause::StaleCookie { micros: 123_456 },
    Cause::OutOfResource,
    Cause::UnresolvableAddress(ADDRESS_TLV),
    Cause::UnrecognisedChunk(UNKNOWN_CHUNK),
    Cause::InvalidParameter,
    Cause::UnrecognisedParameters(UNKNOWN_TLV),
    Cause::NoUserData(Tsn(77)),
    Cause::CookieWhileShuttingDown,
    Cause::RestartWithNewAddresses(ADDRESS_TLV),
    Cause::UserAbort(b"good night"),
    Cause::ProtocolViolation(b"DATA after I-DATA"),
    Cause::RestartWithNewEncapsulationPort { current: 9_899, new: 9_900 },
    Cause::MissingDtlsChunk,
    Cause::NoCommonKeyManagement,
    Cause::TieBreakerCollision,
    Cause::IncompatibleKeyRoles,
    Cause::DeleteLastAddress(DELETE_TLV),
    Cause::ResourceShortage(DELETE_TLV),
    Cause::DeleteSourceAddress(DELETE_TLV),
    Cause::IllegalAsconfAck,
    Cause::NoAuthorisation(DELETE_TLV),
    Cause::UnsupportedHmac(2),
    Cause::Unrecognised { code: 0x0777, whole: &[7, 0x77, 0, 7, 1, 2, 3] },
];

pub(crate) const INIT: Init<'static> = Init {
    initiate_tag: 0x0102_0304,
    a_rwnd: 131_072,
    outbound_streams: 10,
    inbound_streams: 2_048,
    initial_tsn: Tsn(0x0A0B_0C0D),
    params: Params::Values(INIT_PARAMS),
};

const DATA: Data<'static> = Data {
    tsn: Tsn(100),
    stream: StreamId(3),
    ssn: Ssn(7),
    ppid: Ppid(0),
    flags: DataFlags::WHOLE,
    payload: b"tresse",
};

/// What dissectors do not know yet, or never will.
const YOUNG: [Chunk<'static>; 2] = [
    Chunk::Dtls(Dtls { restart: false, record: DTLS_RECORD }),
    Chunk::Unrecognised(UnrecognisedChunk { kind: ChunkKind(0xFE), whole: UNKNOWN_CHUNK }),
];

/// Examples of every chunk; some types more than once.
pub(crate) fn chunks() -> Vec<Chunk<'static>> {
    let i_data = IData {
        tsn: Tsn(100),
        stream: StreamId(3),
        mid: Mid(8),
        ppid_or_fsn: PpidOrFsn::Ppid(Ppid(0)),
        flags: DataFlags::WHOLE,
        payload: b"braid",
    };
    let last = DataFlags { ending: true, unordered: true, immediate: true, ..DataFlags::default() };
    let gaps = List::Values(&[GapBlock { start: 2, end: 3 }, GapBlock { start: 7, end: 9 }]);
    let mut chunks = vec![
        Chunk::Data(DATA),
        Chunk::Data(Data { flags: DataFlags { beginning: false, ..last }, ..DATA }),
        Chunk::Init(INIT),
        Chunk::Init(Init { params: Params::Values(HOST_NAME), ..INIT }),
        Chunk::Init(Init { params: Params::Values(UNKNOWN_PARAM), ..INIT }),
        Chunk::InitAck(Init { params: Params::Values(INIT_ACK_PARAMS), ..INIT }),
        Chunk::Sack(Sack {
            flags: 0,
            cumulative_tsn: Tsn(99),
            a_rwnd: 65_536,
            gaps,
            duplicates: List::Values(&[Tsn(98), Tsn(98)]),
        }),
        Chunk::Heartbeat(Heartbeat { body: HEARTBEAT_BODY }),
        Chunk::HeartbeatAck(Heartbeat { body: HEARTBEAT_BODY }),
        Chunk::Abort(Abort { tag_reflected: false, causes: Causes::default() }),
        Chunk::Abort(Abort { tag_reflected: true, causes: Causes::Values(&CAUSES[11..12]) }),
        Chunk::Shutdown(Shutdown { cumulative_tsn: Tsn(99) }),
        Chunk::ShutdownAck,
        Chunk::Error(ErrorChunk { causes: Causes::Values(CAUSES) }),
        Chunk::CookieEcho(CookieEcho { cookie: &[0xC0; 61] }),
        Chunk::CookieAck,
        Chunk::Ecne(Ecne { lowest_tsn: Tsn(100), marked_packets: None }),
        Chunk::Cwr(Cwr { lowest_tsn: Tsn(100) }),
        Chunk::ShutdownComplete { tag_reflected: false },
        Chunk::ShutdownComplete { tag_reflected: true },
        Chunk::Auth(Auth { key_id: 0, hmac_id: 1, hmac: &[0xA5; 20] }),
        Chunk::Auth(Auth { key_id: 5, hmac_id: 3, hmac: &[0xA5; 32] }),
        Chunk::NrSack(NrSack {
            flags: 0,
            cumulative_tsn: Tsn(99),
            a_rwnd: 65_536,
            renegable: gaps,
            non_renegable: List::Values(&[GapBlock { start: 5, end: 5 }]),
            duplicates: List::Values(&[Tsn(98)]),
        }),
        Chunk::IData(i_data),
        Chunk::IData(IData { flags: last, ppid_or_fsn: PpidOrFsn::Fsn(Fsn(1)), ..i_data }),
        Chunk::Asconf(Asconf { serial: 5, address: V4, params: Params::Values(ASCONF_PARAMS) }),
        Chunk::AsconfAck(AsconfAck { serial: 5, params: Params::Values(ASCONF_ACK_PARAMS) }),
        Chunk::PacketDrop(PacketDrop {
            middlebox: false,
            bad_checksum: false,
            truncated: false,
            bandwidth: 131_072,
            queue_size: 1_024,
            truncated_len: 0,
            packet: PACKET,
        }),
        Chunk::Pad(Pad { len: 9 }),
        Chunk::ForwardTsn(ForwardTsn {
            cumulative_tsn: Tsn(120),
            streams: List::Values(&[SkippedStream { stream: StreamId(3), ssn: Ssn(9) }]),
        }),
        Chunk::IForwardTsn(IForwardTsn {
            cumulative_tsn: Tsn(120),
            messages: List::Values(&[
                SkippedMessage { stream: StreamId(3), unordered: false, mid: Mid(9) },
                SkippedMessage { stream: StreamId(3), unordered: true, mid: Mid(4) },
            ]),
        }),
    ];
    chunks.extend(YOUNG);
    chunks.extend(
        RECONFIG_PARAMS.iter().map(|params| Chunk::Reconfig(Reconfig { params: Params::Values(params) })),
    );
    chunks
}
