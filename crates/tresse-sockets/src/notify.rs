//! Notifications of RFC 6458 §6.1, RFC 6525 §6.1 and RFC 7829 §7.1 for events of the core, in the layout of Linux.

use tresse_proto::{CloseReason, StreamId, Streams};

use crate::layout::{Filled, STORAGE};

pub(crate) const ASSOC_CHANGE: u16 = 0x8001;
pub(crate) const PEER_ADDR_CHANGE: u16 = 0x8002;
pub(crate) const SEND_FAILED: u16 = 0x8003;
pub(crate) const REMOTE_ERROR: u16 = 0x8004;
pub(crate) const SHUTDOWN_EVENT: u16 = 0x8005;
pub(crate) const PARTIAL_DELIVERY: u16 = 0x8006;
pub(crate) const ADAPTATION: u16 = 0x8007;
pub(crate) const AUTHENTICATION: u16 = 0x8008;
pub(crate) const SENDER_DRY: u16 = 0x8009;
pub(crate) const STREAM_RESET: u16 = 0x800a;
pub(crate) const ASSOC_RESET: u16 = 0x800b;
pub(crate) const STREAM_CHANGE: u16 = 0x800c;
pub(crate) const SEND_FAILED_EVENT: u16 = 0x800d;
/// A stream has less unsent data than its mark: an extension of tresse (SCTP_TRESSE_STREAM_LOW).
pub(crate) const STREAM_LOW: u16 = 0x801f;
/// The kinds of Linux, from the first to the last; 0x8000 subscribes to `struct sctp_sndrcvinfo` with data.
pub(crate) const KINDS: std::ops::RangeInclusive<u16> = 0x8000..=0x800d;
pub(crate) const DATA_IO: u16 = 0x8000;

pub(crate) const COMM_UP: u16 = 0;
pub(crate) const COMM_LOST: u16 = 1;
pub(crate) const RESTART: u16 = 2;
pub(crate) const SHUTDOWN_COMP: u16 = 3;
pub(crate) const CANT_STR_ASSOC: u16 = 4;

pub(crate) const ADDR_AVAILABLE: i32 = 0;
pub(crate) const ADDR_UNREACHABLE: i32 = 1;
pub(crate) const ADDR_REMOVED: i32 = 2;
pub(crate) const ADDR_ADDED: i32 = 3;
pub(crate) const ADDR_MADE_PRIM: i32 = 4;
pub(crate) const ADDR_CONFIRMED: i32 = 5;
pub(crate) const ADDR_PF: i32 = 6;

pub(crate) const RESET_INCOMING: u16 = 1;
pub(crate) const RESET_OUTGOING: u16 = 2;
pub(crate) const DENIED: u16 = 4;
pub(crate) const FAILED: u16 = 8;

/// Contents of an SCTP_ASSOC_CHANGE.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Change {
    pub(crate) state: u16,
    pub(crate) error: u16,
    pub(crate) outbound: u16,
    pub(crate) inbound: u16,
}

impl Change {
    pub(crate) fn new(state: u16, outbound: u16, inbound: u16) -> Self {
        Change { state, error: 0, outbound, inbound }
    }
}

/// Returns the code of the error cause that ended an association (RFC 9260 §3.3.10). Programs get it in network byte order, as in
/// Linux.
pub(crate) fn cause_of(reason: &CloseReason) -> u16 {
    reason.code().0
}

fn head(kind: u16, flags: u16, size: usize) -> Filled {
    Filled::new(size).u16(0, kind).u16(2, flags).size(4, size)
}

/// Writes the length into a notification of variable length.
fn measured(notification: Filled) -> Vec<u8> {
    let mut bytes = notification.bytes();
    let size = u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_ne_bytes();
    bytes[4..8].copy_from_slice(&size);
    bytes
}

/// `info` lists the features for COMM_UP and RESTART, and is the ABORT chunk for COMM_LOST.
pub(crate) fn association_change(number: i32, change: Change, info: &[u8]) -> Vec<u8> {
    let filled = head(ASSOC_CHANGE, 0, 20)
        .u16(8, change.state)
        .u16(10, change.error.to_be())
        .u16(12, change.outbound)
        .u16(14, change.inbound)
        .i32(16, number);
    measured(filled.tail(info))
}

/// Returns the ABORT chunk that ended an association, or nothing if it had no error causes (RFC 6458 §6.1.1). The T bit is not
/// kept.
pub(crate) fn abort_chunk(reason: &CloseReason) -> Vec<u8> {
    let CloseReason::AbortedByPeer { causes, .. } = reason else { return Vec::new() };
    let length = u16::try_from(CHUNK_HEADER + causes.len()).unwrap_or(u16::MAX);
    if causes.is_empty() { Vec::new() } else { [&[ABORT, 0], &length.to_be_bytes(), &causes[..]].concat() }
}

/// Type, flags and length of a chunk (RFC 9260 §3.2).
const CHUNK_HEADER: usize = 4;
/// The type of ABORT.
const ABORT: u8 = 6;

pub(crate) fn shutdown(number: i32) -> Vec<u8> {
    head(SHUTDOWN_EVENT, 0, 12).i32(8, number).bytes()
}

pub(crate) fn sender_dry(number: i32) -> Vec<u8> {
    head(SENDER_DRY, 0, 12).i32(8, number).bytes()
}

/// `name` is the address in the form that the program reads.
pub(crate) fn address_change(number: i32, name: &[u8], state: i32) -> Vec<u8> {
    head(PEER_ADDR_CHANGE, 0, 148).put(8, name).i32(8 + STORAGE, state).i32(16 + STORAGE, number).bytes()
}

pub(crate) fn adaptation(number: i32, code: u32) -> Vec<u8> {
    head(ADAPTATION, 0, 16).u32(8, code).i32(12, number).bytes()
}

pub(crate) fn authentication(number: i32, key: u16, indication: u32) -> Vec<u8> {
    head(AUTHENTICATION, 0, 20).u16(8, key).u32(12, indication).i32(16, number).bytes()
}

pub(crate) fn partial_delivery_aborted(number: i32, stream: u16, ssn: u16) -> Vec<u8> {
    head(PARTIAL_DELIVERY, 0, 24)
        .u32(8, 0)
        .i32(12, number)
        .u32(16, u32::from(stream))
        .u32(20, u32::from(ssn))
        .bytes()
}

pub(crate) fn stream_reset(number: i32, flags: u16, streams: &Streams) -> Vec<u8> {
    let list: Vec<u8> = match streams {
        Streams::All => Vec::new(),
        Streams::These(streams) => streams.iter().flat_map(|stream| stream.0.to_ne_bytes()).collect(),
    };
    measured(head(STREAM_RESET, flags, 12).i32(8, number).tail(&list))
}

/// `ours` and `theirs` are the TSNs with which this side and the peer continue; 0 if nothing was reset.
pub(crate) fn association_reset(number: i32, flags: u16, ours: u32, theirs: u32) -> Vec<u8> {
    head(ASSOC_RESET, flags, 20).i32(8, number).u32(12, ours).u32(16, theirs).bytes()
}

/// `inbound` and `outbound` are the numbers of streams after the change (RFC 6525 §6.1.3).
pub(crate) fn stream_change(number: i32, flags: u16, inbound: u16, outbound: u16) -> Vec<u8> {
    head(STREAM_CHANGE, flags, 16).i32(8, number).u16(12, inbound).u16(14, outbound).bytes()
}

pub(crate) fn stream_low(number: i32, stream: u16, unsent: usize) -> Vec<u8> {
    head(STREAM_LOW, 0, 20).i32(8, number).u16(12, stream).size(16, unsent).bytes()
}

/// Returns the notification of an ERROR chunk, as in Linux: the code of its first error cause, in network byte order, and the bytes
/// after the header of that cause.
pub(crate) fn remote_error(number: i32, code: u16, causes: &[u8]) -> Vec<u8> {
    let body = causes.get(CAUSE_HEADER..).unwrap_or_default();
    measured(head(REMOTE_ERROR, 0, 16).u16(8, code.to_be()).i32(12, number).tail(body))
}

/// Code and length of an error cause (RFC 9260 §3.3.10).
const CAUSE_HEADER: usize = 4;

/// A message that was not delivered.
#[derive(Clone, Debug)]
pub(crate) struct Failed {
    /// The error cause that its association ended with; 0 for none.
    pub(crate) error: u16,
    pub(crate) stream: StreamId,
    pub(crate) ppid: u32,
    pub(crate) context: u32,
    pub(crate) flags: u16,
    /// True if any of it was sent.
    pub(crate) sent: bool,
    pub(crate) data: Vec<u8>,
}

/// Returns SCTP_SEND_FAILED_EVENT, which has a `struct sctp_sndinfo`.
pub(crate) fn send_failed_event(number: i32, failed: &Failed) -> Vec<u8> {
    let filled = head(SEND_FAILED_EVENT, u16::from(failed.sent), 32)
        .u32(8, u32::from(failed.error.to_be()))
        .u16(12, failed.stream.0)
        .u16(14, failed.flags)
        .u32(16, failed.ppid)
        .u32(20, failed.context)
        .i32(24, number)
        .i32(28, number);
    measured(filled.tail(&failed.data))
}

/// Returns the older SCTP_SEND_FAILED, which has a `struct sctp_sndrcvinfo`.
pub(crate) fn send_failed(number: i32, failed: &Failed) -> Vec<u8> {
    let filled = head(SEND_FAILED, u16::from(failed.sent), 48)
        .u32(8, u32::from(failed.error.to_be()))
        .u16(12, failed.stream.0)
        .u16(16, failed.flags)
        .u32(20, failed.ppid)
        .u32(24, failed.context)
        .i32(40, number)
        .i32(44, number);
    measured(filled.tail(&failed.data))
}
