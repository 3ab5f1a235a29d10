//! Description of a packet in one line of text, for traces, the command line and failing tests.
//!
//! Owns the wording. Any bytes give a line, whose length is at most proportional to theirs; no payload is shown. Needs
//! no state of the association, so captured packets can be described.

use std::fmt::{self, Display, Formatter};

use crate::bytes::u16_at;
use crate::cause::{Cause, Causes};
use crate::checksum::checksum;
use crate::chunk::data::{Data, DataFlags, IData, PpidOrFsn};
use crate::chunk::pktdrop::PacketDrop;
use crate::chunk::sack::GapBlock;
use crate::chunk::{Chunk, ChunkKind};
use crate::list::{List, ListItem};
use crate::packet::{ChecksumRule, Packet};
use crate::param::{KeyRoles, Param, Params};

/// Chunks of a packet, parameters of a chunk or entries of a list that are shown; the rest is only counted.
const SHOWN: usize = 32;

/// Describes a whole packet, from its common header on, in one line.
///
/// ```
/// use tresse_wire::{Chunk, CommonHeader, PacketWriter, Seal, dissect};
///
/// let header = CommonHeader { source_port: 5000, destination_port: 5001, verification_tag: 7 };
/// let mut buf = Vec::new();
/// let mut packet = PacketWriter::new(&mut buf, header, 1_452);
/// packet.push(&Chunk::CookieAck)?;
/// packet.finish(Seal::Crc32c);
/// assert_eq!(dissect(&buf), "5000 > 5001 tag 0x00000007: COOKIE ACK");
/// # Ok::<(), tresse_wire::NoRoom>(())
/// ```
pub fn dissect(packet: &[u8]) -> String {
    match Packet::parse(packet, ChecksumRule::Trust) {
        Ok(packet) => PacketLine(packet).to_string(),
        Err(error) => format!("not an SCTP packet: {error}"),
    }
}

/// Describes a single chunk in one line.
pub fn dissect_chunk(chunk: &Chunk<'_>) -> String {
    ChunkText(chunk).to_string()
}

struct PacketLine<'a>(Packet<'a>);

impl Display for PacketLine<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Packet { header, checksum: stored, .. } = self.0;
        let (from, to, tag) = (header.source_port, header.destination_port, header.verification_tag);
        write!(f, "{from} > {to} tag {tag:#010x}")?;
        let computed = checksum(self.0.bytes());
        if computed != stored {
            match stored {
                0 => write!(f, " without checksum")?,
                _ => write!(f, " bad checksum {stored:#010x}, CRC32c is {computed:#010x}")?,
            }
        }
        let mut chunks = self.0.chunks();
        for (i, chunk) in chunks.by_ref().take(SHOWN).enumerate() {
            f.write_str(if i == 0 { ": " } else { " | " })?;
            match chunk {
                Ok(chunk) => ChunkText(&chunk).fmt(f)?,
                Err(error) => write!(f, "bad {error}")?,
            }
        }
        match chunks.remaining().len() {
            0 => Ok(()),
            rest => write!(f, " | … {rest} bytes of more chunks"),
        }
    }
}

struct ChunkText<'a>(&'a Chunk<'a>);

impl Display for ChunkText<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.kind().fmt(f)?;
        match self.0 {
            Chunk::Data(data) => put_data(data, f),
            Chunk::IData(data) => put_i_data(data, f),
            Chunk::Init(init) | Chunk::InitAck(init) => {
                let (tag, rwnd, tsn) = (init.initiate_tag, init.a_rwnd, init.initial_tsn);
                let (out, inbound) = (init.outbound_streams, init.inbound_streams);
                write!(f, " tag {tag:#010x} rwnd {rwnd} streams {out} out {inbound} in tsn {tsn}")?;
                put_params(&init.params, f)
            }
            Chunk::Sack(sack) => {
                write!(f, " cum {} rwnd {}", sack.cumulative_tsn, sack.a_rwnd)?;
                put_dac(sack.flags, f)?;
                put_gaps(" gaps", &sack.gaps, f)?;
                put_list(" dups", &sack.duplicates, f)
            }
            Chunk::NrSack(sack) => {
                write!(f, " cum {} rwnd {}", sack.cumulative_tsn, sack.a_rwnd)?;
                put_dac(sack.flags, f)?;
                put_gaps(" r-gaps", &sack.renegable, f)?;
                put_gaps(" nr-gaps", &sack.non_renegable, f)?;
                put_list(" dups", &sack.duplicates, f)
            }
            Chunk::Heartbeat(beat) | Chunk::HeartbeatAck(beat) => match beat.info() {
                Some(info) => write!(f, " info {} bytes", info.len()),
                None => write!(f, " without info, {} bytes", beat.body.len()),
            },
            Chunk::Abort(abort) => {
                put_t_bit(abort.tag_reflected, f)?;
                put_causes(&abort.causes, f)
            }
            Chunk::Error(error) => put_causes(&error.causes, f),
            Chunk::Shutdown(shutdown) => write!(f, " cum {}", shutdown.cumulative_tsn),
            Chunk::ShutdownComplete { tag_reflected } => put_t_bit(*tag_reflected, f),
            Chunk::ShutdownAck | Chunk::CookieAck => Ok(()),
            Chunk::CookieEcho(echo) => write!(f, " {} bytes", echo.cookie.len()),
            Chunk::Ecne(ecne) => match ecne.marked_packets {
                None => write!(f, " tsn {}", ecne.lowest_tsn),
                Some(marked) => write!(f, " tsn {} marked {marked}", ecne.lowest_tsn),
            },
            Chunk::Cwr(cwr) => write!(f, " tsn {}", cwr.lowest_tsn),
            Chunk::Auth(auth) => {
                write!(f, " key {} hmac id {} of {} bytes", auth.key_id, auth.hmac_id, auth.hmac.len())
            }
            Chunk::Dtls(dtls) => match dtls.epoch_bits() {
                Some(epoch) => {
                    let restart = if dtls.restart { " R" } else { "" };
                    write!(f, "{restart} epoch bits {epoch}, {} bytes", dtls.record.len())
                }
                None => write!(f, " with an unknown record, {} bytes", dtls.record.len()),
            },
            Chunk::Asconf(asconf) => {
                write!(f, " serial {} address {}", asconf.serial, asconf.address)?;
                put_params(&asconf.params, f)
            }
            Chunk::AsconfAck(ack) => {
                write!(f, " serial {}", ack.serial)?;
                put_params(&ack.params, f)
            }
            Chunk::Reconfig(reconfig) => put_params(&reconfig.params, f),
            Chunk::Pad(pad) => write!(f, " {} bytes", pad.len),
            Chunk::ForwardTsn(forward) => {
                write!(f, " cum {}", forward.cumulative_tsn)?;
                put_items(" skip", &forward.streams, f, |skip, f| write!(f, "{}:{}", skip.stream, skip.ssn))
            }
            Chunk::IForwardTsn(forward) => {
                write!(f, " cum {}", forward.cumulative_tsn)?;
                put_items(" skip", &forward.messages, f, |skip, f| {
                    write!(f, "{}:{}{}", skip.stream, skip.mid, if skip.unordered { "U" } else { "" })
                })
            }
            Chunk::PacketDrop(drop) => put_drop(drop, f),
            Chunk::Unrecognised(chunk) => write!(f, " unrecognised, {} bytes", chunk.whole.len()),
        }
    }
}

fn put_data(data: &Data<'_>, f: &mut Formatter<'_>) -> fmt::Result {
    write!(f, " tsn {} stream {} ssn {} ppid {} ", data.tsn, data.stream, data.ssn, data.ppid)?;
    put_flags(data.flags, f)?;
    write!(f, "{} bytes", data.payload.len())
}

fn put_i_data(data: &IData<'_>, f: &mut Formatter<'_>) -> fmt::Result {
    write!(f, " tsn {} stream {} mid {} ", data.tsn, data.stream, data.mid)?;
    match data.ppid_or_fsn {
        PpidOrFsn::Ppid(ppid) => write!(f, "ppid {ppid} ")?,
        PpidOrFsn::Fsn(fsn) => write!(f, "fsn {fsn} ")?,
    }
    put_flags(data.flags, f)?;
    write!(f, "{} bytes", data.payload.len())
}

fn put_flags(flags: DataFlags, f: &mut Formatter<'_>) -> fmt::Result {
    let letters =
        [(flags.immediate, "I"), (flags.unordered, "U"), (flags.beginning, "B"), (flags.ending, "E")];
    for (_, letter) in letters.iter().filter(|(set, _)| *set) {
        f.write_str(letter)?;
    }
    if letters.iter().any(|(set, _)| *set) { f.write_str(" ") } else { Ok(()) }
}

fn put_drop(drop: &PacketDrop<'_>, f: &mut Formatter<'_>) -> fmt::Result {
    let flags = [
        (drop.middlebox, " middlebox"),
        (drop.bad_checksum, " bad-checksum"),
        (drop.truncated, " truncated"),
    ];
    for (_, word) in flags.iter().filter(|(set, _)| *set) {
        f.write_str(word)?;
    }
    write!(f, " bandwidth {} queue {} packet {} bytes", drop.bandwidth, drop.queue_size, drop.packet.len())?;
    if drop.truncated { write!(f, " of {}", drop.truncated_len) } else { Ok(()) }
}

fn put_dac(flags: u8, f: &mut Formatter<'_>) -> fmt::Result {
    if flags == 0 { Ok(()) } else { write!(f, " flags {flags:#04x}") }
}

fn put_t_bit(reflected: bool, f: &mut Formatter<'_>) -> fmt::Result {
    if reflected { f.write_str(" T") } else { Ok(()) }
}

fn put_gaps(label: &str, gaps: &List<'_, GapBlock>, f: &mut Formatter<'_>) -> fmt::Result {
    put_items(label, gaps, f, |gap, f| write!(f, "{}-{}", gap.start, gap.end))
}

fn put_list<T: ListItem + Display>(label: &str, list: &List<'_, T>, f: &mut Formatter<'_>) -> fmt::Result {
    put_items(label, list, f, |item, f| Display::fmt(&item, f))
}

/// Writes the items after `label`, separated by commas; nothing for an empty list.
fn put_items<T: ListItem>(
    label: &str,
    list: &List<'_, T>,
    f: &mut Formatter<'_>,
    item: impl Fn(T, &mut Formatter<'_>) -> fmt::Result,
) -> fmt::Result {
    for (i, value) in list.iter().take(SHOWN).enumerate() {
        f.write_str(if i == 0 { label } else { "," })?;
        f.write_str(if i == 0 { " " } else { "" })?;
        item(value, f)?;
    }
    match list.len().saturating_sub(SHOWN) {
        0 => Ok(()),
        more => write!(f, ",… {more} more"),
    }
}

fn put_params(params: &Params<'_>, f: &mut Formatter<'_>) -> fmt::Result {
    put_bracketed(params.iter(), f, |param, f| match param {
        Ok(param) => put_param(&param, f),
        Err(error) => write!(f, "bad {error}"),
    })
}

fn put_causes(causes: &Causes<'_>, f: &mut Formatter<'_>) -> fmt::Result {
    put_bracketed(causes.iter(), f, |cause, f| match cause {
        Ok(cause) => put_cause(&cause, f),
        Err(error) => write!(f, "bad {error}"),
    })
}

fn put_bracketed<I: Iterator>(
    mut items: I,
    f: &mut Formatter<'_>,
    put: impl Fn(I::Item, &mut Formatter<'_>) -> fmt::Result,
) -> fmt::Result {
    let mut shown = false;
    for item in items.by_ref().take(SHOWN) {
        f.write_str(if shown { ", " } else { " [" })?;
        put(item, f)?;
        shown = true;
    }
    if items.next().is_some() {
        f.write_str(", …")?;
    }
    if shown { f.write_str("]") } else { Ok(()) }
}

fn put_param(param: &Param<'_>, f: &mut Formatter<'_>) -> fmt::Result {
    match param.kind().name() {
        Some(name) => f.write_str(name)?,
        None => write!(f, "unrecognised {}", param.kind())?,
    }
    match param {
        Param::HeartbeatInfo(bytes)
        | Param::StateCookie(bytes)
        | Param::HostName(bytes)
        | Param::Random(bytes)
        | Param::Padding(bytes) => write!(f, " {} bytes", bytes.len()),
        Param::UnrecognisedParameter(whole) => put_inner_type(whole, f),
        Param::Address(address) => write!(f, " {address}"),
        Param::CookiePreservative(millis) => write!(f, " {millis} ms"),
        Param::SupportedAddressTypes(types) => put_list("", types, f),
        Param::HmacAlgorithms(ids) => put_list("", ids, f),
        Param::Chunks(types) | Param::SupportedExtensions(types) => {
            for (i, kind) in types.iter().take(SHOWN).enumerate() {
                f.write_str(if i == 0 { " " } else { "+" })?;
                ChunkKind(*kind).fmt(f)?;
            }
            Ok(())
        }
        Param::DtlsKeyManagement { tie_breaker, flags, methods } => {
            write!(f, " tie breaker {tie_breaker:#010x}")?;
            for (role, letter) in
                [(KeyRoles::CLIENT, " C"), (KeyRoles::SERVER, " S"), (KeyRoles::RESTART, " R")]
            {
                f.write_str(if flags & role != 0 { letter } else { "" })?;
            }
            for (i, method) in methods.iter().take(SHOWN).enumerate() {
                write!(f, "{}{method}", if i == 0 { " methods " } else { "," })?;
            }
            Ok(())
        }
        Param::EcnCapable | Param::ForwardTsnSupported => Ok(()),
        Param::ZeroChecksumAcceptable(method) => write!(f, " method {method}"),
        Param::AdaptationIndication(layer) => write!(f, " {layer:#010x}"),
        Param::AddAddress { correlation, address }
        | Param::DeleteAddress { correlation, address }
        | Param::SetPrimary { correlation, address } => write!(f, " {address} id {correlation}"),
        Param::ErrorIndication { correlation, causes } => {
            write!(f, " id {correlation}")?;
            put_causes(causes, f)
        }
        Param::SuccessIndication { correlation } => write!(f, " id {correlation}"),
        Param::OutgoingReset { request, response, last_tsn, streams } => {
            write!(f, " {request} answering {response} last tsn {last_tsn}")?;
            put_list(" streams", streams, f)
        }
        Param::IncomingReset { request, streams } => {
            write!(f, " {request}")?;
            put_list(" streams", streams, f)
        }
        Param::SsnTsnReset { request } => write!(f, " {request}"),
        Param::ReconfigResponse { response, result, next_tsns } => {
            write!(f, " to {response} result {result}")?;
            match next_tsns {
                Some((sender, receiver)) => write!(f, " next tsns {sender} and {receiver}"),
                None => Ok(()),
            }
        }
        Param::AddOutgoingStreams { request, count } | Param::AddIncomingStreams { request, count } => {
            write!(f, " {request} count {count}")
        }
        Param::Unrecognised(param) => write!(f, " {} bytes", param.whole.len()),
    }
}

fn put_cause(cause: &Cause<'_>, f: &mut Formatter<'_>) -> fmt::Result {
    match cause.code().name() {
        Some(name) => f.write_str(name)?,
        None => write!(f, "unrecognised {}", cause.code())?,
    }
    match cause {
        Cause::InvalidStream(stream) => write!(f, " {stream}"),
        Cause::MissingParameters(types) => put_list("", types, f),
        Cause::StaleCookie { micros } => write!(f, " by {micros} us"),
        Cause::OutOfResource
        | Cause::InvalidParameter
        | Cause::CookieWhileShuttingDown
        | Cause::MissingDtlsChunk
        | Cause::NoCommonKeyManagement
        | Cause::TieBreakerCollision
        | Cause::IncompatibleKeyRoles
        | Cause::IllegalAsconfAck => Ok(()),
        Cause::UnrecognisedChunk(whole) => match whole.first() {
            Some(kind) => write!(f, " {}", ChunkKind(*kind)),
            None => Ok(()),
        },
        Cause::NoUserData(tsn) => write!(f, " tsn {tsn}"),
        Cause::UserAbort(reason) | Cause::ProtocolViolation(reason) => write!(f, " {} bytes", reason.len()),
        Cause::RestartWithNewEncapsulationPort { current, new } => write!(f, " {current} to {new}"),
        Cause::UnresolvableAddress(whole)
        | Cause::UnrecognisedParameters(whole)
        | Cause::RestartWithNewAddresses(whole)
        | Cause::DeleteLastAddress(whole)
        | Cause::ResourceShortage(whole)
        | Cause::DeleteSourceAddress(whole)
        | Cause::NoAuthorisation(whole) => put_inner_type(whole, f),
        Cause::UnsupportedHmac(id) => write!(f, " {id}"),
        Cause::Unrecognised { whole, .. } => write!(f, " {} bytes", whole.len()),
    }
}

/// Writes the type of the parameter that another parameter or a cause carries.
fn put_inner_type(whole: &[u8], f: &mut Formatter<'_>) -> fmt::Result {
    match whole.first_chunk::<2>() {
        Some(head) => write!(f, " of type {:#06x}", u16_at::<0, _>(head)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a packet from port 1 to port 2 with these bytes as chunks and no checksum.
    fn packet(chunks: &[u8]) -> Vec<u8> {
        [&[0, 1, 0, 2, 0, 0, 0, 0xAB, 0, 0, 0, 0], chunks].concat()
    }

    #[test]
    fn a_line_says_what_is_in_the_packet() {
        let chunks = [
            &[0, 0x0F, 0, 18, 0, 0, 0, 5, 0, 1, 0, 2, 0, 0, 0, 3, b'h', b'i', 0, 0][..],
            &[3, 0x80, 0, 24, 0, 0, 0, 9, 0, 0, 1, 0, 0, 1, 0, 1, 0, 2, 0, 4, 0, 0, 0, 8],
            &[9, 0, 0, 16, 0, 1, 0, 8, 0, 7, 0, 0, 0x0F, 1, 0, 4],
            &[7, 0, 0, 4],
        ];
        assert_eq!(
            dissect(&packet(&chunks.concat())),
            "1 > 2 tag 0x000000ab without checksum: \
             DATA tsn 5 stream 1 ssn 2 ppid 3 IUBE 2 bytes | \
             SACK cum 9 rwnd 256 flags 0x80 gaps 2-4 dups 8 | \
             ERROR [Invalid Stream Identifier 7, unrecognised cause code 0x0f01 4 bytes] | \
             bad SHUTDOWN chunk at offset 72: length 4, expected 8"
        );
    }

    #[test]
    fn a_wrong_checksum_shows() {
        let mut bytes = packet(&[11, 0, 0, 4]);
        crate::seal(&mut bytes);
        assert_eq!(dissect(&bytes), "1 > 2 tag 0x000000ab: COOKIE ACK");
        bytes[8] ^= 1;
        assert!(dissect(&bytes).starts_with("1 > 2 tag 0x000000ab bad checksum "), "{}", dissect(&bytes));
    }

    #[test]
    fn what_is_not_a_packet_gives_a_line_too() {
        assert_eq!(
            dissect(&[1, 2, 3]),
            "not an SCTP packet: packet of 3 bytes is too short: the SCTP common header takes 12"
        );
        assert_eq!(dissect(&[0; 12]), "not an SCTP packet: port 0 in 0 > 0: ports are 1 to 65535");
    }

    #[test]
    fn long_packets_and_lists_are_cut() {
        let line = dissect(&packet(&[11, 0, 0, 4].repeat(40)));
        assert_eq!(line.matches("COOKIE ACK").count(), SHOWN);
        assert!(line.ends_with(" | … 32 bytes of more chunks"), "{line}");

        let forward = [&[192, 0, 0, 8 + 4 * 34, 0, 0, 0, 1][..], &[0; 4 * 34]].concat();
        assert!(dissect(&packet(&forward)).ends_with(",… 2 more"));

        let causes = [&[9, 0, 0, 4 + 4 * 33][..], &[0, 4, 0, 4].repeat(33)].concat();
        assert!(dissect(&packet(&causes)).ends_with("Out of Resource, …]"));
    }
}
