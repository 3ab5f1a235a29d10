//! Random values of everything that can be written, one strategy for each type of chunk, parameter and cause.
//!
//! What a value borrows is leaked: the values stay simple, and a test process is short.

use std::net::IpAddr;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::strategy::Union;
use tresse_wire::*;

type Boxed<T> = BoxedStrategy<T>;

fn leak<T>(items: Vec<T>) -> &'static [T] {
    Box::leak(items.into_boxed_slice())
}

fn bytes(len: impl Into<proptest::collection::SizeRange>) -> impl Strategy<Value = &'static [u8]> {
    vec(any::<u8>(), len).prop_map(leak)
}

fn list<T: ListItem + 'static>(item: impl Strategy<Value = T>) -> impl Strategy<Value = List<'static, T>> {
    vec(item, 0..9).prop_map(|items| List::Values(leak(items)))
}

fn tsn() -> impl Strategy<Value = Tsn> {
    any::<u32>().prop_map(Tsn)
}

fn stream() -> impl Strategy<Value = StreamId> {
    any::<u16>().prop_map(StreamId)
}

/// Every type of cause, in the order of [`CauseCode::ALL`], then an unknown one.
pub(crate) fn causes() -> Vec<Boxed<Cause<'static>>> {
    let constant = |cause| Just(cause).boxed();
    let raw = |cause: fn(&'static [u8]) -> Cause<'static>| bytes(0..40).prop_map(cause).boxed();
    let unknown = any::<u16>()
        .prop_filter("a code without a meaning", |code| !CauseCode::ALL.contains(&CauseCode(*code)))
        .prop_flat_map(|code| tlv(code).prop_map(move |whole| Cause::Unrecognised { code, whole }));
    vec![
        stream().prop_map(Cause::InvalidStream).boxed(),
        list(any::<u16>()).prop_map(Cause::MissingParameters).boxed(),
        any::<u32>().prop_map(|micros| Cause::StaleCookie { micros }).boxed(),
        constant(Cause::OutOfResource),
        raw(Cause::UnresolvableAddress),
        raw(Cause::UnrecognisedChunk),
        constant(Cause::InvalidParameter),
        raw(Cause::UnrecognisedParameters),
        tsn().prop_map(Cause::NoUserData).boxed(),
        constant(Cause::CookieWhileShuttingDown),
        raw(Cause::RestartWithNewAddresses),
        raw(Cause::UserAbort),
        raw(Cause::ProtocolViolation),
        any::<(u16, u16)>()
            .prop_map(|(current, new)| Cause::RestartWithNewEncapsulationPort { current, new })
            .boxed(),
        constant(Cause::MissingDtlsChunk),
        constant(Cause::NoCommonKeyManagement),
        constant(Cause::TieBreakerCollision),
        constant(Cause::IncompatibleKeyRoles),
        raw(Cause::DeleteLastAddress),
        raw(Cause::ResourceShortage),
        raw(Cause::DeleteSourceAddress),
        constant(Cause::IllegalAsconfAck),
        raw(Cause::NoAuthorisation),
        any::<u16>().prop_map(Cause::UnsupportedHmac).boxed(),
        unknown.boxed(),
    ]
}

/// A parameter or cause of this type as it would stand in a packet.
fn tlv(kind: u16) -> impl Strategy<Value = &'static [u8]> {
    vec(any::<u8>(), 0..20).prop_map(move |value| {
        let len = (4 + value.len()) as u16;
        leak([&kind.to_be_bytes()[..], &len.to_be_bytes(), &value].concat())
    })
}

fn cause_list() -> impl Strategy<Value = Causes<'static>> {
    vec(Union::new(causes()), 0..5).prop_map(|causes| Causes::Values(leak(causes)))
}

/// Every type of parameter, then an unknown one.
pub(crate) fn params() -> Vec<Boxed<Param<'static>>> {
    let raw = |param: fn(&'static [u8]) -> Param<'static>| bytes(0..40).prop_map(param).boxed();
    let word = |param: fn(u32) -> Param<'static>| any::<u32>().prop_map(param).boxed();
    let unknown = any::<u16>()
        .prop_map(ParamKind)
        .prop_filter("a type without a meaning", |kind| !ParamKind::ALL.contains(kind))
        .prop_flat_map(|kind| {
            tlv(kind.0).prop_map(move |whole| Param::Unrecognised(UnrecognisedParam { kind, whole }))
        });
    let mut all = vec![
        raw(Param::HeartbeatInfo),
        any::<[u8; 4]>().prop_map(|octets| Param::Address(IpAddr::from(octets))).boxed(),
        any::<[u8; 16]>().prop_map(|octets| Param::Address(IpAddr::from(octets))).boxed(),
        raw(Param::StateCookie),
        raw(Param::UnrecognisedParameter),
        word(Param::CookiePreservative),
        raw(Param::HostName),
        list(any::<u16>()).prop_map(Param::SupportedAddressTypes).boxed(),
        Just(Param::EcnCapable).boxed(),
        word(Param::ZeroChecksumAcceptable),
        raw(Param::Random),
        raw(Param::Chunks),
        list(any::<u16>()).prop_map(Param::HmacAlgorithms).boxed(),
        raw(Param::Padding),
        (any::<u32>(), any::<u8>(), bytes(1..10))
            .prop_map(|(tie_breaker, flags, methods)| Param::DtlsKeyManagement {
                tie_breaker,
                flags,
                methods,
            })
            .boxed(),
        raw(Param::SupportedExtensions),
        Just(Param::ForwardTsnSupported).boxed(),
        word(Param::AdaptationIndication),
        unknown.boxed(),
    ];
    all.extend(asconf_params());
    all.extend(reconfig_params());
    all
}

fn asconf_params() -> Vec<Boxed<Param<'static>>> {
    let change = |param: fn((u32, IpAddr)) -> Param<'static>| any::<(u32, IpAddr)>().prop_map(param).boxed();
    vec![
        change(|(correlation, address)| Param::AddAddress { correlation, address }),
        change(|(correlation, address)| Param::DeleteAddress { correlation, address }),
        change(|(correlation, address)| Param::SetPrimary { correlation, address }),
        (any::<u32>(), cause_list())
            .prop_map(|(correlation, causes)| Param::ErrorIndication { correlation, causes })
            .boxed(),
        any::<u32>().prop_map(|correlation| Param::SuccessIndication { correlation }).boxed(),
    ]
}

fn reconfig_params() -> Vec<Boxed<Param<'static>>> {
    vec![
        (any::<u32>(), any::<u32>(), tsn(), list(any::<u16>()))
            .prop_map(|(request, response, last_tsn, streams)| Param::OutgoingReset {
                request,
                response,
                last_tsn,
                streams,
            })
            .boxed(),
        (any::<u32>(), list(any::<u16>()))
            .prop_map(|(request, streams)| Param::IncomingReset { request, streams })
            .boxed(),
        any::<u32>().prop_map(|request| Param::SsnTsnReset { request }).boxed(),
        (any::<u32>(), any::<u32>(), option::of((tsn(), tsn())))
            .prop_map(|(response, result, next_tsns)| Param::ReconfigResponse { response, result, next_tsns })
            .boxed(),
        any::<(u32, u16)>().prop_map(|(request, count)| Param::AddOutgoingStreams { request, count }).boxed(),
        any::<(u32, u16)>().prop_map(|(request, count)| Param::AddIncomingStreams { request, count }).boxed(),
    ]
}

fn param_list() -> impl Strategy<Value = Params<'static>> {
    vec(Union::new(params()), 0..6).prop_map(|params| Params::Values(leak(params)))
}

/// Every type of chunk, then an unknown one.
pub(crate) fn chunks() -> Vec<Boxed<Chunk<'static>>> {
    let mut all = data_chunks();
    all.extend(report_chunks());
    all.extend(association_chunks());
    all.extend(extension_chunks());
    all
}

/// Any chunk.
pub(crate) fn chunk() -> Boxed<Chunk<'static>> {
    Union::new(chunks()).boxed()
}

fn flags() -> impl Strategy<Value = DataFlags> {
    any::<[bool; 4]>().prop_map(|[beginning, ending, unordered, immediate]| DataFlags {
        beginning,
        ending,
        unordered,
        immediate,
    })
}

fn data_chunks() -> Vec<Boxed<Chunk<'static>>> {
    let data = (tsn(), stream(), any::<u16>(), any::<u32>(), flags(), bytes(1..100)).prop_map(
        |(tsn, stream, ssn, ppid, flags, payload)| {
            Chunk::Data(Data { tsn, stream, ssn: Ssn(ssn), ppid: Ppid(ppid), flags, payload })
        },
    );
    let i_data = (tsn(), stream(), any::<u32>(), any::<u32>(), flags(), bytes(1..100)).prop_map(
        |(tsn, stream, mid, word, flags, payload)| {
            let ppid_or_fsn =
                if flags.beginning { PpidOrFsn::Ppid(Ppid(word)) } else { PpidOrFsn::Fsn(Fsn(word)) };
            Chunk::IData(IData { tsn, stream, mid: Mid(mid), ppid_or_fsn, flags, payload })
        },
    );
    let streams =
        list((stream(), any::<u16>()).prop_map(|(stream, ssn)| SkippedStream { stream, ssn: Ssn(ssn) }));
    let messages =
        list((stream(), any::<bool>(), any::<u32>()).prop_map(|(stream, unordered, mid)| SkippedMessage {
            stream,
            unordered,
            mid: Mid(mid),
        }));
    vec![
        data.boxed(),
        i_data.boxed(),
        (tsn(), streams)
            .prop_map(|(cumulative_tsn, streams)| Chunk::ForwardTsn(ForwardTsn { cumulative_tsn, streams }))
            .boxed(),
        (tsn(), messages)
            .prop_map(|(cumulative_tsn, messages)| {
                Chunk::IForwardTsn(IForwardTsn { cumulative_tsn, messages })
            })
            .boxed(),
    ]
}

fn report_chunks() -> Vec<Boxed<Chunk<'static>>> {
    let gaps = || list(any::<(u16, u16)>().prop_map(|(start, end)| GapBlock { start, end }));
    let sack = (any::<u8>(), tsn(), any::<u32>(), gaps(), list(tsn())).prop_map(
        |(flags, cumulative_tsn, a_rwnd, gaps, duplicates)| {
            Chunk::Sack(Sack { flags, cumulative_tsn, a_rwnd, gaps, duplicates })
        },
    );
    let nr_sack = (any::<u8>(), tsn(), any::<u32>(), gaps(), gaps(), list(tsn())).prop_map(
        |(flags, cumulative_tsn, a_rwnd, renegable, non_renegable, duplicates)| {
            Chunk::NrSack(NrSack { flags, cumulative_tsn, a_rwnd, renegable, non_renegable, duplicates })
        },
    );
    let drop = (any::<[bool; 3]>(), any::<u32>(), any::<u32>(), any::<u16>(), bytes(0..60)).prop_map(
        |([middlebox, bad_checksum, truncated], bandwidth, queue_size, truncated_len, packet)| {
            Chunk::PacketDrop(PacketDrop {
                middlebox,
                bad_checksum,
                truncated,
                bandwidth,
                queue_size,
                truncated_len,
                packet,
            })
        },
    );
    let ecne = (tsn(), option::of(any::<u32>()))
        .prop_map(|(lowest_tsn, marked_packets)| Chunk::Ecne(Ecne { lowest_tsn, marked_packets }));
    vec![
        sack.boxed(),
        nr_sack.boxed(),
        drop.boxed(),
        ecne.boxed(),
        tsn().prop_map(|lowest_tsn| Chunk::Cwr(Cwr { lowest_tsn })).boxed(),
    ]
}

fn init() -> impl Strategy<Value = Init<'static>> {
    (any::<u32>(), any::<u32>(), any::<u16>(), any::<u16>(), tsn(), param_list()).prop_map(
        |(initiate_tag, a_rwnd, outbound_streams, inbound_streams, initial_tsn, params)| Init {
            initiate_tag,
            a_rwnd,
            outbound_streams,
            inbound_streams,
            initial_tsn,
            params,
        },
    )
}

fn association_chunks() -> Vec<Boxed<Chunk<'static>>> {
    vec![
        init().prop_map(Chunk::Init).boxed(),
        init().prop_map(Chunk::InitAck).boxed(),
        bytes(0..60).prop_map(|cookie| Chunk::CookieEcho(CookieEcho { cookie })).boxed(),
        Just(Chunk::CookieAck).boxed(),
        bytes(0..60).prop_map(|body| Chunk::Heartbeat(Heartbeat { body })).boxed(),
        bytes(0..60).prop_map(|body| Chunk::HeartbeatAck(Heartbeat { body })).boxed(),
        (any::<bool>(), cause_list())
            .prop_map(|(tag_reflected, causes)| Chunk::Abort(Abort { tag_reflected, causes }))
            .boxed(),
        cause_list().prop_map(|causes| Chunk::Error(ErrorChunk { causes })).boxed(),
        tsn().prop_map(|cumulative_tsn| Chunk::Shutdown(Shutdown { cumulative_tsn })).boxed(),
        Just(Chunk::ShutdownAck).boxed(),
        any::<bool>().prop_map(|tag_reflected| Chunk::ShutdownComplete { tag_reflected }).boxed(),
    ]
}

fn extension_chunks() -> Vec<Boxed<Chunk<'static>>> {
    let unknown = any::<u8>()
        .prop_map(ChunkKind)
        .prop_filter("a type without a meaning", |kind| !ChunkKind::ALL.contains(kind));
    let unknown = (unknown, any::<u8>(), vec(any::<u8>(), 0..40)).prop_map(|(kind, flags, value)| {
        let [high, low] = (4 + value.len() as u16).to_be_bytes();
        let whole = leak([&[kind.0, flags, high, low][..], &value].concat());
        Chunk::Unrecognised(UnrecognisedChunk { kind, whole })
    });
    vec![
        (any::<u16>(), any::<u16>(), bytes(0..40))
            .prop_map(|(key_id, hmac_id, hmac)| Chunk::Auth(Auth { key_id, hmac_id, hmac }))
            .boxed(),
        (any::<bool>(), bytes(0..60))
            .prop_map(|(restart, record)| Chunk::Dtls(Dtls { restart, record }))
            .boxed(),
        (any::<u32>(), any::<IpAddr>(), param_list())
            .prop_map(|(serial, address, params)| Chunk::Asconf(Asconf { serial, address, params }))
            .boxed(),
        (any::<u32>(), param_list())
            .prop_map(|(serial, params)| Chunk::AsconfAck(AsconfAck { serial, params }))
            .boxed(),
        param_list().prop_map(|params| Chunk::Reconfig(Reconfig { params })).boxed(),
        (0..100u16).prop_map(|len| Chunk::Pad(Pad { len })).boxed(),
        unknown.boxed(),
    ]
}

/// A packet's bytes and the chunks in it.
pub(crate) fn packet() -> Boxed<(CommonHeader, Vec<Chunk<'static>>, Vec<u8>)> {
    (1..=u16::MAX, 1..=u16::MAX, any::<u32>(), vec(chunk(), 0..8))
        .prop_map(|(source_port, destination_port, verification_tag, chunks)| {
            let header = CommonHeader { source_port, destination_port, verification_tag };
            let mut buf = Vec::new();
            let mut writer = PacketWriter::new(&mut buf, header, 65_535);
            for chunk in &chunks {
                writer.push(chunk).expect("eight small chunks fit");
            }
            writer.finish(Seal::Crc32c);
            (header, chunks, buf)
        })
        .boxed()
}
