//! Errors of reading, with their position, and of writing, where the space is too small.
//!
//! Owns the errors of this crate. The core decides the consequence: it discards the chunk, or answers with ERROR or
//! ABORT.

use crate::cause_code::CauseCode;
use crate::chunk::ChunkKind;
use crate::param::ParamKind;
use crate::serial::Tsn;

/// Reason for which a packet was refused as a whole.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PacketError {
    /// Shorter than the common header.
    #[error("packet of {len} bytes is too short: the SCTP common header takes 12")]
    Truncated {
        /// Length of the packet.
        len: usize,
    },
    /// A port is 0, which RFC 9260 §3.1 reserves.
    #[error("port 0 in {source_port} > {destination_port}: ports are 1 to 65535")]
    PortZero {
        /// Source port of the packet.
        source_port: u16,
        /// Destination port of the packet.
        destination_port: u16,
    },
    /// The CRC32c does not match the packet.
    #[error("checksum {stored:#010x} in the packet, but its CRC32c is {computed:#010x}")]
    BadChecksum {
        /// Value in the packet.
        stored: u32,
        /// Value that results from the packet's bytes.
        computed: u32,
    },
}

/// Defect of a chunk, a parameter or an error cause.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Fault {
    /// Fewer bytes are left than a header takes. The rest cannot be read.
    #[error("{available} bytes left, a header takes 4")]
    HeaderCut {
        /// Bytes left.
        available: usize,
    },
    /// The length field is less than the length of its own header. The rest cannot be read.
    #[error("length {len}, at least 4 is needed")]
    LengthBelowHeader {
        /// The length field.
        len: u16,
    },
    /// The length field exceeds the bytes that are left. The rest cannot be read.
    #[error("length {len}, but only {available} bytes are left")]
    Cut {
        /// The length field.
        len: u16,
        /// Bytes left, header included.
        available: usize,
    },
    /// The length is not valid for the type.
    #[error("length {len}, expected {expected}")]
    Length {
        /// The length found, header included.
        len: usize,
        /// The valid lengths.
        expected: &'static str,
    },
    /// A count in the body contradicts the length.
    #[error("counts inside ask for {counted} bytes, the length is {len}")]
    Count {
        /// The length found, header included.
        len: usize,
        /// The length that the counts require.
        counted: u64,
    },
    /// The address parameter that is required here is missing or damaged.
    #[error("no valid IPv4 or IPv6 address parameter where one belongs")]
    Address,
    /// A DATA or I-DATA chunk without payload. The receiver answers with ABORT and cause 9 (RFC 9260 §3.3.1).
    #[error("no user data in the chunk with TSN {tsn}")]
    NoUserData {
        /// The chunk's TSN.
        tsn: Tsn,
    },
}

impl Fault {
    /// Returns whether the position of the next item is unknown, so that reading ends here.
    pub const fn ends_reading(self) -> bool {
        matches!(self, Fault::HeaderCut { .. } | Fault::LengthBelowHeader { .. } | Fault::Cut { .. })
    }
}

/// A chunk that could not be read.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{kind} chunk at offset {offset}: {fault}")]
pub struct ChunkError {
    /// Type of the chunk.
    pub kind: ChunkKind,
    /// Start of the chunk, in bytes from the start of the packet (of the slice, for a lone chunk).
    pub offset: usize,
    /// Defect of the chunk.
    pub fault: Fault,
}

impl ChunkError {
    /// Returns the TSN, if the fault is a DATA or I-DATA chunk without payload.
    pub const fn no_user_data(&self) -> Option<Tsn> {
        match self.fault {
            Fault::NoUserData { tsn } => Some(tsn),
            _ => None,
        }
    }
}

/// A parameter or an error cause that could not be read.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{kind} at offset {offset}: {fault}")]
pub struct TlvError<K> {
    /// Type of the parameter or code of the cause; 0 if the type could not be read either.
    pub kind: K,
    /// Offset of the item, in bytes from the start of its list.
    pub offset: usize,
    /// Defect of the item.
    pub fault: Fault,
}

/// A parameter that could not be read.
pub type ParamError = TlvError<ParamKind>;

/// An error cause that could not be read.
pub type CauseError = TlvError<CauseCode>;

/// The chunk does not fit in the rest of the packet; nothing was written.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{needed} bytes needed, the packet has room for {room}")]
pub struct NoRoom {
    /// Bytes the chunk takes with its padding.
    pub needed: usize,
    /// Bytes the packet has left.
    pub room: usize,
}

/// The value does not fit a 16-bit length field; nothing was written.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{len} bytes with the header, a length field ends at 65535")]
pub struct TooLong {
    /// Bytes the value takes, header included.
    pub len: usize,
}

impl TooLong {
    /// Refuses a length beyond 16 bits.
    pub(crate) fn check(len: usize) -> Result<(), TooLong> {
        if len > usize::from(u16::MAX) { Err(TooLong { len }) } else { Ok(()) }
    }
}
