//! SCTP packets: conversion from bytes to chunks and back, without state.
//!
//! Owns every format of RFC 9260 and of the extensions that tresse supports: chunks, parameters, error causes, CRC32c.
//! Reading any bytes returns a value or an error and never panics; written values read back unchanged. Independent of
//! the state of any association: `tresse-proto` checks verification tags, TSNs, and which chunks are acceptable in a
//! state.
//!
//! A packet is read in place: [`Packet::parse`] checks the common header and the checksum, [`Packet::chunks`] iterates
//! over the chunks, and all parts of variable size borrow from the packet. [`PacketWriter`] writes a packet: it appends
//! chunks to a buffer as long as they fit, and then stores the checksum.

mod bytes;
mod cause;
mod cause_code;
mod checksum;
mod chunk;
mod dissect;
mod error;
mod list;
mod packet;
mod param;
mod quote;
mod serial;
mod tlv;
mod unrecognised;
mod writer;

pub use cause::{Cause, Causes};
pub use cause_code::CauseCode;
pub use checksum::{COMMON_HEADER_LEN, checksum, seal, seal_zeroed};
pub use chunk::asconf::{Asconf, AsconfAck};
pub use chunk::auth::{AUTH_HEADER_LEN, Auth};
pub use chunk::cookie::CookieEcho;
pub use chunk::data::{DATA_HEADER_LEN, Data, DataFlags, I_DATA_HEADER_LEN, IData, PpidOrFsn};
pub use chunk::dtls::{
    Dtls, LARGEST_RECORD_TEXT, RECORD_HEADER_LEN, RECORD_OVERHEAD, RECORD_TAG_LEN, RecordPlace,
};
pub use chunk::forward_tsn::{ForwardTsn, IForwardTsn, SkippedMessage, SkippedStream};
pub use chunk::heartbeat::{Heartbeat, heartbeat_info_tlv};
pub use chunk::init::{INIT_HEADER_LEN, Init};
pub use chunk::minor::{Cwr, Ecne, Pad, UnrecognisedChunk};
pub use chunk::pktdrop::{PACKET_DROP_HEADER_LEN, PacketDrop};
pub use chunk::reconfig::Reconfig;
pub use chunk::sack::{GapBlock, NR_SACK_HEADER_LEN, NrSack, SACK_HEADER_LEN, Sack};
pub use chunk::teardown::{Abort, ErrorChunk, Shutdown};
pub use chunk::{CHUNK_HEADER_LEN, Chunk, ChunkKind, KindSet};
pub use dissect::{dissect, dissect_chunk};
pub use error::{CauseError, ChunkError, Fault, NoRoom, PacketError, ParamError, TlvError, TooLong};
pub use list::{List, ListItem, ListIter};
pub use packet::{ChecksumRule, Chunks, CommonHeader, Packet};
pub use param::{KeyRoles, Param, ParamKind, Params, UnrecognisedParam};
pub use quote::{QuotedChunk, quoted_chunks};
pub use serial::{Fsn, Mid, Ppid, Ssn, StreamId, Tsn};
pub use tlv::{Tlv, TlvItem, TlvIter, Tlvs};
pub use unrecognised::UnrecognisedAction;
pub use writer::{Guard, PacketWriter, Seal};
