//! Packets to words and back. Knows the formats as `tresse_wire` has them; TSNs are counted from 1.

use tresse_wire::{
    Abort, Cause, Causes, ChecksumRule, Chunk, ChunkError, CommonHeader, CookieEcho, Cwr, Data, DataFlags,
    Ecne, ErrorChunk, ForwardTsn, Fsn, GapBlock, Heartbeat, IData, Init, List, Mid, NrSack, PacketWriter,
    Param, Params, Ppid, PpidOrFsn, Reconfig, Sack, Seal, Shutdown, SkippedStream, Ssn, StreamId, Tsn,
};

use crate::notation::Words;

/// What a SACK names when it must say nothing of them, and so on: absent from an expectation means absent.
const STRICT: [&str; 5] = ["gaps", "dups", "causes", "T", "nr-gaps"];

/// First TSNs of the sender and of the receiver of a packet.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Numbers {
    pub(crate) sender: Tsn,
    pub(crate) receiver: Tsn,
}

/// The TSN that is the `number`th, from 1.
fn tsn(first: Tsn, number: u64) -> Tsn {
    Tsn(first.0.wrapping_add(number as u32).wrapping_sub(1))
}

/// Its number; 0 is the one before the first.
fn ordinal(first: Tsn, tsn: Tsn) -> i32 {
    tsn.0.wrapping_sub(first.0).wrapping_add(1) as i32
}

/// Whether a chunk is as `expected`.
pub(crate) fn fits(expected: &Words, found: &Words) -> bool {
    let absent = |key: &&str| !expected.has(key) && found.has(key);
    expected.name == found.name
        && expected.fields.iter().all(|(key, value)| found.field(key) == Some(value))
        && !STRICT.iter().any(absent)
}

/// What it takes to name what a packet of E has in it.
pub(crate) struct Lexicon<'a> {
    pub(crate) numbers: Numbers,
    /// E's tag in the association.
    pub(crate) own_tag: u32,
    pub(crate) cookies: &'a [Vec<u8>],
}

/// Says what a chunk of E has in it.
pub(crate) fn describe(chunk: &Result<Chunk<'_>, ChunkError>, lexicon: &Lexicon<'_>) -> Words {
    let numbers = lexicon.numbers;
    let chunk = match chunk {
        Ok(chunk) => chunk,
        Err(error) => return Words::new(&format!("({error})")),
    };
    let mut words = Words::new(&chunk.kind().name().unwrap_or("UNKNOWN").replace(' ', "-"));
    match chunk {
        Chunk::Data(data) => {
            words.put("tsn", ordinal(numbers.sender, data.tsn));
            words.put("stream", data.stream);
            words.put("ssn", data.ssn);
            words.put("flags", flags(data.flags));
            words.put("len", data.payload.len());
        }
        Chunk::Init(init) | Chunk::InitAck(init) => {
            words.put("itag", if init.initiate_tag == lexicon.own_tag { "E" } else { "new" });
            describe_init(init, &mut words);
        }
        Chunk::Sack(sack) => {
            words.put("cum", ordinal(numbers.receiver, sack.cumulative_tsn));
            words.put("rwnd", sack.a_rwnd);
            words.put("flags", format!("{:#04x}", sack.flags));
            put_gaps("gaps", &sack.gaps, ordinal(numbers.receiver, sack.cumulative_tsn), &mut words);
            put_list("dups", sack.duplicates.iter().map(|tsn| ordinal(numbers.receiver, tsn)), &mut words);
        }
        Chunk::NrSack(sack) => {
            let cumulative = ordinal(numbers.receiver, sack.cumulative_tsn);
            words.put("cum", cumulative);
            words.put("flags", format!("{:#04x}", sack.flags));
            put_gaps("gaps", &sack.renegable, cumulative, &mut words);
            put_gaps("nr-gaps", &sack.non_renegable, cumulative, &mut words);
        }
        Chunk::Heartbeat(heartbeat) | Chunk::HeartbeatAck(heartbeat) => {
            if let Some(info) = heartbeat.info().and_then(|info| std::str::from_utf8(info).ok()) {
                words.put("info", info);
            }
        }
        Chunk::Pad(_) => words.put("len", chunk.wire_len()),
        Chunk::Abort(abort) => {
            if abort.tag_reflected {
                words.put("T", "");
            }
            words.put("len", chunk.wire_len());
            put_causes(&abort.causes, numbers.receiver, &mut words);
        }
        Chunk::Error(error) => {
            words.put("len", chunk.wire_len());
            put_causes(&error.causes, numbers.receiver, &mut words);
        }
        Chunk::Shutdown(shutdown) => words.put("cum", ordinal(numbers.receiver, shutdown.cumulative_tsn)),
        Chunk::ShutdownComplete { tag_reflected: true } => words.put("T", ""),
        Chunk::CookieEcho(echo) => {
            // A cookie that E did not give is the one that P did.
            let position = lexicon.cookies.iter().position(|cookie| cookie == echo.cookie);
            words.put("cookie", position.map_or("P".to_owned(), |position| (position + 1).to_string()));
        }
        Chunk::Ecne(ecne) => {
            words.put("tsn", ordinal(numbers.receiver, ecne.lowest_tsn));
            words.put("packets", ecne.marked_packets.unwrap_or(0));
        }
        Chunk::Cwr(cwr) => words.put("tsn", ordinal(numbers.sender, cwr.lowest_tsn)),
        Chunk::ForwardTsn(forward) => words.put("cum", ordinal(numbers.sender, forward.cumulative_tsn)),
        _ => {}
    }
    words
}

fn describe_init(init: &Init<'_>, words: &mut Words) {
    words.put("streams", format!("{},{}", init.outbound_streams, init.inbound_streams));
    words.put("rwnd", init.a_rwnd);
    let addresses = init.params.iter().flatten().filter_map(|param| match param {
        Param::Address(address) => Some(address),
        _ => None,
    });
    put_list("addresses", addresses, words);
    let unrecognised = init.params.iter().flatten().filter_map(|param| match param {
        Param::UnrecognisedParameter(whole) => Some(format!("{:02x}{:02x}", whole[0], whole[1])),
        _ => None,
    });
    put_list("unrecognised", unrecognised, words);
    for param in init.params.iter().flatten() {
        match param {
            Param::CookiePreservative(by) => words.put("preservative", by),
            Param::EcnCapable => words.put("ecn", ""),
            _ => {}
        }
    }
}

fn flags(flags: DataFlags) -> String {
    let letters =
        [(flags.immediate, 'I'), (flags.unordered, 'U'), (flags.beginning, 'B'), (flags.ending, 'E')];
    letters.iter().filter(|(set, _)| *set).map(|(_, letter)| letter).collect()
}

fn put_list(key: &str, items: impl Iterator<Item = impl ToString>, words: &mut Words) {
    let items: Vec<String> = items.map(|item| item.to_string()).collect();
    if !items.is_empty() {
        words.put(key, items.join(","));
    }
}

fn put_gaps(key: &str, gaps: &List<'_, GapBlock>, cumulative: i32, words: &mut Words) {
    let at = |offset: u16| cumulative + i32::from(offset);
    put_list(key, gaps.iter().map(|gap| format!("{}-{}", at(gap.start), at(gap.end))), words);
}

fn put_causes(causes: &Causes<'_>, first: Tsn, words: &mut Words) {
    put_list("causes", causes.iter().flatten().map(|cause| cause.code().0), words);
    for cause in causes.iter().flatten() {
        match cause {
            Cause::InvalidStream(stream) => words.put("stream", stream),
            Cause::NoUserData(tsn) => words.put("tsn", ordinal(first, tsn)),
            // Words of a line have no blanks.
            Cause::ProtocolViolation(text) => {
                words.put("why", String::from_utf8_lossy(text).replace(' ', "-"));
            }
            _ => {}
        }
    }
}

/// What P needs to know to put a packet together.
pub(crate) struct Context<'a> {
    pub(crate) header: CommonHeader,
    pub(crate) numbers: Numbers,
    /// P's tag and first TSN.
    pub(crate) tag: u32,
    pub(crate) cookies: &'a [Vec<u8>],
    /// What E's last HEARTBEAT had in it.
    pub(crate) heartbeat: &'a [u8],
}

/// A packet of P.
///
/// # Errors
/// A chunk that cannot be written, and why.
pub(crate) fn build(chunks: &[Words], context: &Context<'_>) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let writer = PacketWriter::new(&mut bytes, context.header, 65_535);
    writer.finish(Seal::Zero);
    for words in chunks {
        bytes.extend(chunk_bytes(words, context)?);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
    }
    tresse_wire::seal(&mut bytes);
    Ok(bytes)
}

fn chunk_bytes(words: &Words, context: &Context<'_>) -> Result<Vec<u8>, String> {
    let Numbers { sender, receiver } = context.numbers;
    let number = |key: &str, default: u64| words.number(key, default);
    let written = |chunk: &Chunk<'_>| {
        let mut bytes = Vec::new();
        let mut writer = PacketWriter::new(&mut bytes, context.header, 65_535);
        let pushed = writer.push(chunk);
        writer.finish(Seal::Zero);
        pushed.map_err(|error| error.to_string()).map(|()| bytes.split_off(12))
    };
    let reflected = words.has("T");
    match words.name.as_str() {
        "DATA" | "I-DATA" => data_bytes(words, sender, &written),
        "INIT" | "INIT-ACK" => init_bytes(words, context, &written),
        "SACK" | "NR-SACK" => sack_bytes(words, receiver, &written),
        "HEARTBEAT" => {
            let body = heartbeat_body(words.field("info").unwrap_or("hello"));
            written(&Chunk::Heartbeat(Heartbeat { body: &body }))
        }
        "HEARTBEAT-ACK" => {
            let body = words.field("info").map_or_else(|| context.heartbeat.to_vec(), heartbeat_body);
            written(&Chunk::HeartbeatAck(Heartbeat { body: &body }))
        }
        "ABORT" => written(&Chunk::Abort(Abort { tag_reflected: reflected, causes: Causes::Values(&[]) })),
        "ERROR" => {
            let causes: Vec<_> = match words.field("stale") {
                Some(_) => vec![Cause::StaleCookie { micros: number("stale", 0)? as u32 }],
                None => Vec::new(),
            };
            written(&Chunk::Error(ErrorChunk { causes: Causes::Values(&causes) }))
        }
        "SHUTDOWN" => {
            written(&Chunk::Shutdown(Shutdown { cumulative_tsn: tsn(receiver, number("cum", 0)?) }))
        }
        "SHUTDOWN-ACK" => written(&Chunk::ShutdownAck),
        "SHUTDOWN-COMPLETE" => written(&Chunk::ShutdownComplete { tag_reflected: reflected }),
        "COOKIE-ECHO" => {
            let position = number("cookie", context.cookies.len() as u64)? as usize;
            let mut cookie = context.cookies.get(position.wrapping_sub(1)).ok_or("no such cookie")?.clone();
            if words.has("changed") {
                cookie[9] ^= 1;
            }
            written(&Chunk::CookieEcho(CookieEcho { cookie: &cookie }))
        }
        "COOKIE-ACK" => written(&Chunk::CookieAck),
        "ECNE" => {
            written(&Chunk::Ecne(Ecne { lowest_tsn: tsn(receiver, number("tsn", 1)?), marked_packets: None }))
        }
        "CWR" => written(&Chunk::Cwr(Cwr { lowest_tsn: tsn(sender, number("tsn", 1)?) })),
        "FORWARD-TSN" => forward_bytes(words, sender, &written),
        "RE-CONFIG" => written(&Chunk::Reconfig(Reconfig { params: Params::Values(&[]) })),
        "BYTES" => words.fields.iter().try_fold(Vec::new(), |mut bytes, (digits, _)| {
            bytes.extend(hex(digits)?);
            Ok(bytes)
        }),
        name => Err(format!("P cannot send a `{name}`")),
    }
}

fn data_bytes(
    words: &Words,
    first: Tsn,
    written: &dyn Fn(&Chunk<'_>) -> Result<Vec<u8>, String>,
) -> Result<Vec<u8>, String> {
    let number = |key: &str, default: u64| words.number(key, default);
    let letters = words.field("flags").unwrap_or("BE");
    let flags = DataFlags {
        beginning: letters.contains('B'),
        ending: letters.contains('E'),
        unordered: letters.contains('U'),
        immediate: letters.contains('I'),
    };
    let stream = StreamId(number("stream", 0)? as u16);
    let payload = vec![b'.'; number("len", 10)? as usize];
    let count = number("tsn", 1)?;
    let tsn = tsn(first, count);
    written(&if words.name == "DATA" {
        let ssn = Ssn(number("ssn", count - 1)? as u16);
        Chunk::Data(Data { tsn, stream, ssn, ppid: Ppid(0), flags, payload: &payload })
    } else {
        let (mid, fsn) = (Mid(number("mid", 0)? as u32), Fsn(number("fsn", 0)? as u32));
        let ppid_or_fsn = if flags.beginning { PpidOrFsn::Ppid(Ppid(0)) } else { PpidOrFsn::Fsn(fsn) };
        Chunk::IData(IData { tsn, stream, mid, ppid_or_fsn, flags, payload: &payload })
    })
}

fn forward_bytes(
    words: &Words,
    sender: Tsn,
    written: &dyn Fn(&Chunk<'_>) -> Result<Vec<u8>, String>,
) -> Result<Vec<u8>, String> {
    let mut skipped = Vec::new();
    for skip in words.field("skip").into_iter().flat_map(|list| list.split(',')) {
        let (stream, ssn) = skip.split_once(':').ok_or("skip=STREAM:SSN")?;
        let part = |text: &str| crate::notation::number(text).map(|number| number as u16);
        skipped.push(SkippedStream { stream: StreamId(part(stream)?), ssn: Ssn(part(ssn)?) });
    }
    written(&Chunk::ForwardTsn(ForwardTsn {
        cumulative_tsn: tsn(sender, words.number("cum", 1)?),
        streams: List::Values(&skipped),
    }))
}

fn init_bytes(
    words: &Words,
    context: &Context<'_>,
    written: &dyn Fn(&Chunk<'_>) -> Result<Vec<u8>, String>,
) -> Result<Vec<u8>, String> {
    let (outbound, inbound) =
        words.field("streams").unwrap_or("10,10").split_once(',').ok_or("streams=OUT,IN")?;
    let cookie = vec![b'c'; words.number("cookie-len", 32)? as usize];
    let raw = hex(words.field("params").unwrap_or_default())?;
    let mut params = Vec::new();
    for address in words.field("addresses").into_iter().flat_map(|list| list.split(',')) {
        params.push(Param::Address(address.parse().map_err(|_| format!("`{address}` is no address"))?));
    }
    let foreign = Params::Wire(&raw);
    params.extend(foreign.iter().flatten());
    let is_ack = words.name == "INIT-ACK";
    if is_ack && !words.has("no-cookie") {
        params.push(Param::StateCookie(&cookie));
    }
    let count = |text: &str| text.parse().map_err(|_| format!("`{text}` is no number of streams"));
    let init = Init {
        initiate_tag: words.number("itag", context.tag.into())? as u32,
        a_rwnd: words.number("rwnd", 100_000)? as u32,
        outbound_streams: count(outbound)?,
        inbound_streams: count(inbound)?,
        initial_tsn: Tsn(words.number("tsn", context.numbers.sender.0.into())? as u32),
        params: Params::Values(&params),
    };
    written(&if is_ack { Chunk::InitAck(init) } else { Chunk::Init(init) })
}

fn sack_bytes(
    words: &Words,
    first: Tsn,
    written: &dyn Fn(&Chunk<'_>) -> Result<Vec<u8>, String>,
) -> Result<Vec<u8>, String> {
    let cumulative = words.number("cum", 0)?;
    let mut gaps = Vec::new();
    for block in words.field("gaps").into_iter().flat_map(|list| list.split(',')) {
        let (start, end) = block.split_once('-').ok_or("gaps=FIRST-LAST")?;
        let offset =
            |text: &str| crate::notation::number(text).map(|at| (at.wrapping_sub(cumulative)) as u16);
        gaps.push(GapBlock { start: offset(start)?, end: offset(end)? });
    }
    let (gaps, duplicates) = (List::Values(gaps.as_slice()), List::Values(&[]));
    let a_rwnd = words.number("rwnd", 100_000)? as u32;
    let cumulative_tsn = tsn(first, cumulative);
    written(&if words.name == "SACK" {
        Chunk::Sack(Sack { flags: 0, cumulative_tsn, a_rwnd, gaps, duplicates })
    } else {
        let none = List::Values(&[]);
        Chunk::NrSack(NrSack {
            flags: 0,
            cumulative_tsn,
            a_rwnd,
            renegable: none,
            non_renegable: gaps,
            duplicates,
        })
    })
}

/// A HEARTBEAT's body with this text as its information.
fn heartbeat_body(info: &str) -> Vec<u8> {
    let mut body = Vec::new();
    tresse_wire::heartbeat_info_tlv(info.as_bytes(), &mut body);
    body
}

fn hex(digits: &str) -> Result<Vec<u8>, String> {
    let pairs = digits.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap_or_default());
    pairs
        .map(|pair| u8::from_str_radix(pair, 16).map_err(|_| format!("`{digits}` is not hexadecimal")))
        .collect()
}

/// Header and chunks of a packet of E.
pub(crate) fn open(bytes: &[u8]) -> Result<tresse_wire::Packet<'_>, String> {
    tresse_wire::Packet::parse(bytes, ChecksumRule::Verify).map_err(|error| error.to_string())
}

/// Whether packets with this chunk carry tag 0.
pub(crate) fn opens(chunks: &[Words]) -> bool {
    chunks.iter().any(|chunk| chunk.name == "INIT")
}
