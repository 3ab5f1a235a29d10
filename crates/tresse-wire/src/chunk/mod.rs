//! Enum of all chunks, and dispatch to the file of each kind.
//!
//! Owns the chunk header. The layouts of bodies are in the files beside this one, one for each group of related
//! chunks.

use crate::bytes::{pad, u16_at};
use crate::error::{ChunkError, Fault, TooLong};
use crate::tlv::set_length;

pub(crate) mod asconf;
pub(crate) mod auth;
pub(crate) mod cookie;
pub(crate) mod data;
pub(crate) mod dtls;
pub(crate) mod forward_tsn;
pub(crate) mod heartbeat;
pub(crate) mod init;
mod kind;
pub(crate) mod minor;
pub(crate) mod pktdrop;
pub(crate) mod reconfig;
pub(crate) mod sack;
pub(crate) mod teardown;
/// Splits the first chunk off `bytes`; returns it with its header and without padding.
#[inline]
pub(crate) fn split_chunk(bytes: &[u8]) -> Result<(ChunkKind, &[u8]), (ChunkKind, Fault)> {
    let Some(head) = bytes.first_chunk::<CHUNK_HEADER_LEN>() else {
        let kind = ChunkKind(bytes.first().copied().unwrap_or_default());
        return Err((kind, Fault::HeaderCut { available: bytes.len() }));
    };
    let (kind, len) = (ChunkKind(head[0]), u16_at::<2, _>(head));
    if usize::from(len) < CHUNK_HEADER_LEN {
        return Err((kind, Fault::LengthBelowHeader { len }));
    }
    match bytes.get(..usize::from(len)) {
        Some(chunk) => Ok((kind, chunk)),
        None => Err((kind, Fault::Cut { len, available: bytes.len() })),
    }
}

#[cfg(test)]
mod tests;

pub use kind::{ChunkKind, KindSet};

use asconf::{Asconf, AsconfAck};
use auth::Auth;
use cookie::CookieEcho;
use data::{Data, IData};
use dtls::Dtls;
use forward_tsn::{ForwardTsn, IForwardTsn};
use heartbeat::Heartbeat;
use init::Init;
use minor::{Cwr, Ecne, Pad, UnrecognisedChunk};
use pktdrop::PacketDrop;
use reconfig::Reconfig;
use sack::{NrSack, Sack};
use teardown::{Abort, ErrorChunk, Shutdown};

/// Length of a chunk's header: type, flags, length (RFC 9260 §3.2).
pub const CHUNK_HEADER_LEN: usize = 4;

/// Flag of ABORT and SHUTDOWN COMPLETE: the verification tag is reflected (RFC 9260 §3.3.7, §3.3.13).
const T_BIT: u8 = 0x01;

/// A chunk. Its parts of variable size borrow from the packet that it was read from.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum Chunk<'a> {
    /// User data.
    Data(Data<'a>),
    /// User data, with interleaving (RFC 8260).
    IData(IData<'a>),
    /// Opens an association.
    Init(Init<'a>),
    /// Answers INIT.
    InitAck(Init<'a>),
    /// Acknowledges DATA.
    Sack(Sack<'a>),
    /// Acknowledges DATA, and distinguishes data that the receiver may renege on from data that it may not.
    NrSack(NrSack<'a>),
    /// Probes a path.
    Heartbeat(Heartbeat<'a>),
    /// Answers HEARTBEAT.
    HeartbeatAck(Heartbeat<'a>),
    /// Ends the association at once.
    Abort(Abort<'a>),
    /// Reports errors.
    Error(ErrorChunk<'a>),
    /// Requests a graceful shutdown.
    Shutdown(Shutdown),
    /// Answers SHUTDOWN.
    ShutdownAck,
    /// Answers SHUTDOWN ACK.
    ShutdownComplete {
        /// T bit: the verification tag is reflected, which is the tag of the packet that is answered.
        tag_reflected: bool,
    },
    /// Returns the state cookie.
    CookieEcho(CookieEcho<'a>),
    /// Answers COOKIE ECHO.
    CookieAck,
    /// Reports congestion marks.
    Ecne(Ecne),
    /// Answers ECNE.
    Cwr(Cwr),
    /// Authenticates the chunks after it.
    Auth(Auth<'a>),
    /// All chunks of a packet, encrypted.
    Dtls(Dtls<'a>),
    /// Asks for a change of addresses.
    Asconf(Asconf<'a>),
    /// Answers ASCONF.
    AsconfAck(AsconfAck<'a>),
    /// Requests or answers a change of streams.
    Reconfig(Reconfig<'a>),
    /// Fills up a packet.
    Pad(Pad),
    /// Makes the receiver skip abandoned DATA.
    ForwardTsn(ForwardTsn<'a>),
    /// Makes the receiver skip abandoned I-DATA.
    IForwardTsn(IForwardTsn<'a>),
    /// Reports a packet that was dropped.
    PacketDrop(PacketDrop<'a>),
    /// A chunk of a type that this crate does not know.
    Unrecognised(UnrecognisedChunk<'a>),
}

impl<'a> Chunk<'a> {
    /// Reads the chunk at the start of `bytes`. The bytes after its length, padding included, are ignored.
    ///
    /// # Errors
    /// If the chunk is cut off or its body is not valid for its type; the error's offset is 0.
    pub fn parse(bytes: &'a [u8]) -> Result<Chunk<'a>, ChunkError> {
        match split_chunk(bytes) {
            Ok((kind, whole)) => Chunk::from_whole(kind, whole, 0),
            Err((kind, fault)) => Err(ChunkError { kind, offset: 0, fault }),
        }
    }

    /// Reads a chunk of type `kind` from exactly its bytes, header included, padding not. `offset` only goes into the
    /// error.
    ///
    /// The branch of each frequent type constructs the final result directly: converting one result into another would
    /// copy every chunk through memory once more.
    #[inline]
    pub(crate) fn from_whole(
        kind: ChunkKind,
        whole: &'a [u8],
        offset: usize,
    ) -> Result<Chunk<'a>, ChunkError> {
        let error = |fault| ChunkError { kind, offset, fault };
        match kind {
            ChunkKind::DATA => Data::parse(whole).map(Chunk::Data).map_err(error),
            ChunkKind::SACK => Sack::parse(whole).map(Chunk::Sack).map_err(error),
            ChunkKind::NR_SACK => NrSack::parse(whole).map(Chunk::NrSack).map_err(error),
            ChunkKind::I_DATA => IData::parse(whole).map(Chunk::IData).map_err(error),
            _ => Chunk::from_whole_control(kind, whole).map_err(error),
        }
    }

    fn from_whole_control(kind: ChunkKind, whole: &'a [u8]) -> Result<Chunk<'a>, Fault> {
        match kind {
            ChunkKind::INIT => Init::parse(whole).map(Chunk::Init),
            ChunkKind::INIT_ACK => Init::parse(whole).map(Chunk::InitAck),
            ChunkKind::HEARTBEAT => Heartbeat::parse(whole).map(Chunk::Heartbeat),
            ChunkKind::HEARTBEAT_ACK => Heartbeat::parse(whole).map(Chunk::HeartbeatAck),
            ChunkKind::ABORT => Abort::parse(whole).map(Chunk::Abort),
            ChunkKind::ERROR => ErrorChunk::parse(whole).map(Chunk::Error),
            ChunkKind::SHUTDOWN => Shutdown::parse(whole).map(Chunk::Shutdown),
            ChunkKind::SHUTDOWN_ACK => header_only(whole).map(|_| Chunk::ShutdownAck),
            ChunkKind::SHUTDOWN_COMPLETE => {
                header_only(whole).map(|flags| Chunk::ShutdownComplete { tag_reflected: flags & T_BIT != 0 })
            }
            ChunkKind::COOKIE_ECHO => CookieEcho::parse(whole).map(Chunk::CookieEcho),
            ChunkKind::COOKIE_ACK => header_only(whole).map(|_| Chunk::CookieAck),
            ChunkKind::ECNE => Ecne::parse(whole).map(Chunk::Ecne),
            ChunkKind::CWR => Cwr::parse(whole).map(Chunk::Cwr),
            ChunkKind::AUTH => Auth::parse(whole).map(Chunk::Auth),
            ChunkKind::DTLS => Dtls::parse(whole).map(Chunk::Dtls),
            ChunkKind::ASCONF => Asconf::parse(whole).map(Chunk::Asconf),
            ChunkKind::ASCONF_ACK => AsconfAck::parse(whole).map(Chunk::AsconfAck),
            ChunkKind::RECONFIG => Reconfig::parse(whole).map(Chunk::Reconfig),
            ChunkKind::PAD => Pad::parse(whole).map(Chunk::Pad),
            ChunkKind::FORWARD_TSN => ForwardTsn::parse(whole).map(Chunk::ForwardTsn),
            ChunkKind::I_FORWARD_TSN => IForwardTsn::parse(whole).map(Chunk::IForwardTsn),
            ChunkKind::PACKET_DROP => PacketDrop::parse(whole).map(Chunk::PacketDrop),
            _ => Ok(Chunk::Unrecognised(UnrecognisedChunk { kind, whole })),
        }
    }

    /// Returns the type of the chunk.
    pub fn kind(&self) -> ChunkKind {
        match self {
            Chunk::Data(_) => ChunkKind::DATA,
            Chunk::IData(_) => ChunkKind::I_DATA,
            Chunk::Init(_) => ChunkKind::INIT,
            Chunk::InitAck(_) => ChunkKind::INIT_ACK,
            Chunk::Sack(_) => ChunkKind::SACK,
            Chunk::NrSack(_) => ChunkKind::NR_SACK,
            Chunk::Heartbeat(_) => ChunkKind::HEARTBEAT,
            Chunk::HeartbeatAck(_) => ChunkKind::HEARTBEAT_ACK,
            Chunk::Abort(_) => ChunkKind::ABORT,
            Chunk::Error(_) => ChunkKind::ERROR,
            Chunk::Shutdown(_) => ChunkKind::SHUTDOWN,
            Chunk::ShutdownAck => ChunkKind::SHUTDOWN_ACK,
            Chunk::ShutdownComplete { .. } => ChunkKind::SHUTDOWN_COMPLETE,
            Chunk::CookieEcho(_) => ChunkKind::COOKIE_ECHO,
            Chunk::CookieAck => ChunkKind::COOKIE_ACK,
            Chunk::Ecne(_) => ChunkKind::ECNE,
            Chunk::Cwr(_) => ChunkKind::CWR,
            Chunk::Auth(_) => ChunkKind::AUTH,
            Chunk::Dtls(_) => ChunkKind::DTLS,
            Chunk::Asconf(_) => ChunkKind::ASCONF,
            Chunk::AsconfAck(_) => ChunkKind::ASCONF_ACK,
            Chunk::Reconfig(_) => ChunkKind::RECONFIG,
            Chunk::Pad(_) => ChunkKind::PAD,
            Chunk::ForwardTsn(_) => ChunkKind::FORWARD_TSN,
            Chunk::IForwardTsn(_) => ChunkKind::I_FORWARD_TSN,
            Chunk::PacketDrop(_) => ChunkKind::PACKET_DROP,
            Chunk::Unrecognised(chunk) => chunk.kind,
        }
    }

    /// Returns the length field of the chunk: header and value, without the final padding.
    pub fn wire_len(&self) -> usize {
        match self {
            Chunk::Data(chunk) => chunk.wire_len(),
            Chunk::IData(chunk) => chunk.wire_len(),
            Chunk::Init(chunk) | Chunk::InitAck(chunk) => chunk.wire_len(),
            Chunk::Sack(chunk) => chunk.wire_len(),
            Chunk::NrSack(chunk) => chunk.wire_len(),
            Chunk::Heartbeat(chunk) | Chunk::HeartbeatAck(chunk) => chunk.wire_len(),
            Chunk::Abort(chunk) => chunk.wire_len(),
            Chunk::Error(chunk) => chunk.wire_len(),
            Chunk::Shutdown(chunk) => chunk.wire_len(),
            Chunk::ShutdownAck | Chunk::ShutdownComplete { .. } | Chunk::CookieAck => CHUNK_HEADER_LEN,
            Chunk::CookieEcho(chunk) => chunk.wire_len(),
            Chunk::Ecne(chunk) => chunk.wire_len(),
            Chunk::Cwr(chunk) => chunk.wire_len(),
            Chunk::Auth(chunk) => chunk.wire_len(),
            Chunk::Dtls(chunk) => chunk.wire_len(),
            Chunk::Asconf(chunk) => chunk.wire_len(),
            Chunk::AsconfAck(chunk) => chunk.wire_len(),
            Chunk::Reconfig(chunk) => chunk.wire_len(),
            Chunk::Pad(chunk) => chunk.wire_len(),
            Chunk::ForwardTsn(chunk) => chunk.wire_len(),
            Chunk::IForwardTsn(chunk) => chunk.wire_len(),
            Chunk::PacketDrop(chunk) => chunk.wire_len(),
            Chunk::Unrecognised(chunk) => chunk.wire_len(),
        }
    }

    /// Appends the chunk with its final padding.
    ///
    /// # Errors
    /// If the length of the chunk exceeds 65535 bytes; then nothing is written.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), TooLong> {
        TooLong::check(self.wire_len())?;
        let start = out.len();
        self.put(out);
        pad(out, start);
        Ok(())
    }

    /// Appends the chunk without its final padding. The caller has checked that its length fits.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        match self {
            Chunk::Data(chunk) => chunk.put(out),
            Chunk::IData(chunk) => chunk.put(out),
            Chunk::Init(chunk) => chunk.put(ChunkKind::INIT, out),
            Chunk::InitAck(chunk) => chunk.put(ChunkKind::INIT_ACK, out),
            Chunk::Sack(chunk) => chunk.put(out),
            Chunk::NrSack(chunk) => chunk.put(out),
            Chunk::Heartbeat(chunk) => chunk.put(ChunkKind::HEARTBEAT, out),
            Chunk::HeartbeatAck(chunk) => chunk.put(ChunkKind::HEARTBEAT_ACK, out),
            Chunk::Abort(chunk) => chunk.put(out),
            Chunk::Error(chunk) => chunk.put(out),
            Chunk::Shutdown(chunk) => chunk.put(out),
            Chunk::ShutdownAck => put_chunk(out, ChunkKind::SHUTDOWN_ACK, 0, |_| {}),
            Chunk::ShutdownComplete { tag_reflected } => {
                put_chunk(out, ChunkKind::SHUTDOWN_COMPLETE, t_bit(*tag_reflected), |_| {});
            }
            Chunk::CookieEcho(chunk) => chunk.put(out),
            Chunk::CookieAck => put_chunk(out, ChunkKind::COOKIE_ACK, 0, |_| {}),
            Chunk::Ecne(chunk) => chunk.put(out),
            Chunk::Cwr(chunk) => chunk.put(out),
            Chunk::Auth(chunk) => chunk.put(out),
            Chunk::Dtls(chunk) => chunk.put(out),
            Chunk::Asconf(chunk) => chunk.put(out),
            Chunk::AsconfAck(chunk) => chunk.put(out),
            Chunk::Reconfig(chunk) => chunk.put(out),
            Chunk::Pad(chunk) => chunk.put(out),
            Chunk::ForwardTsn(chunk) => chunk.put(out),
            Chunk::IForwardTsn(chunk) => chunk.put(out),
            Chunk::PacketDrop(chunk) => chunk.put(out),
            Chunk::Unrecognised(chunk) => chunk.put(out),
        }
    }
}

/// Appends a chunk without its final padding: the header, then the bytes that `body` appends.
fn put_chunk(out: &mut Vec<u8>, kind: ChunkKind, flags: u8, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[kind.0, flags, 0, 0]);
    body(out);
    set_length(out, start);
}

fn t_bit(tag_reflected: bool) -> u8 {
    if tag_reflected { T_BIT } else { 0 }
}

/// Splits `chunk` into its header of `N` bytes and the rest.
#[inline]
fn head<'a, const N: usize>(
    chunk: &'a [u8],
    expected: &'static str,
) -> Result<(&'a [u8; N], &'a [u8]), Fault> {
    chunk.split_first_chunk().ok_or(Fault::Length { len: chunk.len(), expected })
}

/// Returns `chunk` as exactly `N` bytes.
fn exactly<'a, const N: usize>(chunk: &'a [u8], expected: &'static str) -> Result<&'a [u8; N], Fault> {
    chunk.try_into().map_err(|_| Fault::Length { len: chunk.len(), expected })
}

/// Returns the flags of a chunk that has only a header.
fn header_only(chunk: &[u8]) -> Result<u8, Fault> {
    exactly::<CHUNK_HEADER_LEN>(chunk, "4").map(|head| head[1])
}
