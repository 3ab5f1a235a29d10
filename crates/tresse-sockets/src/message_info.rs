//! Parameters of messages: those that a call to send has, and those that a call to receive returns, in the layout of Linux.

use std::io::IoSliceMut;

use rustix::io::Errno;

use crate::layout::{Fields, Filled};
use crate::settings::{PR_MASK, older_policy};

/// Parameters of a message that a call has; defaults apply to the others.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SendInfo {
    /// Destination: names without gaps.
    pub name: Vec<u8>,
    /// The association ID.
    pub number: Option<i32>,
    /// Stream, flags, payload protocol identifier and context (`struct sctp_sndinfo`).
    pub fields: Option<SendFields>,
    /// Policy and value (`struct sctp_prinfo`).
    pub policy: Option<(u16, u32)>,
    /// `struct sctp_initmsg` of an association that this message sets up.
    pub init: Vec<u8>,
}

/// The fields of `struct sctp_sndinfo`.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct SendFields {
    /// The stream.
    pub stream: u16,
    /// `SCTP_UNORDERED` and similar flags.
    pub flags: u16,
    /// Payload protocol identifier; sent unchanged.
    pub ppid: u32,
    /// Context that is returned if the message fails.
    pub context: u32,
}

impl SendInfo {
    /// Returns the parameters for the fields of `struct sctp_sndrcvinfo`, without the association ID.
    pub(crate) fn of_fields(fields: SendFields, lifetime: u32) -> Self {
        // Also full reliability is a choice of the message: the default policy is for messages without this structure.
        let policy = Some((older_policy(fields.flags, lifetime), lifetime));
        SendInfo { fields: Some(fields), policy, ..SendInfo::default() }
    }

    /// Reads `struct sctp_sndrcvinfo`.
    ///
    /// # Errors
    /// `INVAL` for a truncated structure.
    pub fn of_sndrcv(bytes: &[u8]) -> Result<Self, Errno> {
        let (lifetime, number) = (bytes.u32_at(16)?, bytes.i32_at(28)?);
        let fields = SendFields {
            stream: bytes.u16_at(0)?,
            flags: bytes.u16_at(4)?,
            ppid: bytes.u32_at(8)?,
            context: bytes.u32_at(12)?,
        };
        let number = Some(number).filter(|&number| number != 0);
        Ok(SendInfo { number, ..SendInfo::of_fields(fields, lifetime) })
    }

    /// Reads `struct sctp_sndinfo`.
    ///
    /// # Errors
    /// `INVAL` for a truncated structure.
    pub fn of_sndinfo(bytes: &[u8]) -> Result<Self, Errno> {
        let fields = SendFields {
            stream: bytes.u16_at(0)?,
            flags: bytes.u16_at(2)?,
            ppid: bytes.u32_at(4)?,
            context: bytes.u32_at(8)?,
        };
        let number = bytes.i32_at(12)?;
        Ok(SendInfo {
            number: Some(number).filter(|&number| number != 0),
            fields: Some(fields),
            ..SendInfo::default()
        })
    }
}

/// Result of a call to receive.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Received {
    /// Number of bytes written to the buffers.
    pub bytes: usize,
    /// MSG_EOR, MSG_NOTIFICATION, MSG_CTRUNC.
    pub flags: i32,
    /// Source of the message: `struct sockaddr_in` or `sockaddr_in6`.
    pub name: Vec<u8>,
    /// Information on a message, not on a notification.
    pub info: Option<ReceiveInfo>,
    /// Information on the next message, if SCTP_RECVNXTINFO is on.
    pub next: Option<NextInfo>,
    /// True if the program wants `info` as SCTP_RCVINFO.
    pub wants_info: bool,
    /// True if the program wants `info` as SCTP_SNDRCV.
    pub wants_old_info: bool,
}

/// Information on a message that arrived (RFC 6458 §5.3.5).
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct ReceiveInfo {
    /// Stream of the message.
    pub stream: u16,
    /// Stream sequence number.
    pub ssn: u16,
    /// `SCTP_UNORDERED`, `SCTP_NOTIFICATION`.
    pub flags: u16,
    /// Payload protocol identifier, in the byte order in which the peer sent it.
    pub ppid: u32,
    /// TSN of its first chunk; 0 if it is not known.
    pub tsn: u32,
    /// The cumulative TSN when the message was delivered; 0 if it is not known.
    pub cumulative_tsn: u32,
    /// Value that the program set for all received messages (SCTP_CONTEXT).
    pub context: u32,
    /// The association ID.
    pub number: i32,
}

impl ReceiveInfo {
    /// `struct sctp_rcvinfo`.
    pub fn bytes(&self) -> Vec<u8> {
        Filled::new(28)
            .u16(0, self.stream)
            .u16(2, self.ssn)
            .u16(4, self.flags)
            .u32(8, self.ppid)
            .u32(12, self.tsn)
            .u32(16, self.cumulative_tsn)
            .u32(20, self.context)
            .i32(24, self.number)
            .bytes()
    }

    /// `struct sctp_sndrcvinfo`.
    pub(crate) fn older_bytes(&self) -> Vec<u8> {
        Filled::new(32)
            .u16(0, self.stream)
            .u16(2, self.ssn)
            .u16(4, self.flags)
            .u32(8, self.ppid)
            .u32(12, self.context)
            .u32(20, self.tsn)
            .u32(24, self.cumulative_tsn)
            .i32(28, self.number)
            .bytes()
    }
}

/// Information on the next message (RFC 6458 §5.3.6).
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct NextInfo {
    /// Stream of the message.
    pub stream: u16,
    /// `SCTP_UNORDERED`, `SCTP_NOTIFICATION`.
    pub flags: u16,
    /// Payload protocol identifier.
    pub ppid: u32,
    /// Bytes of the message that have arrived.
    pub length: u32,
    /// The association ID.
    pub number: i32,
}

impl NextInfo {
    /// `struct sctp_nxtinfo`.
    pub fn bytes(&self) -> Vec<u8> {
        Filled::new(16)
            .u16(0, self.stream)
            .u16(2, self.flags)
            .u32(4, self.ppid)
            .u32(8, self.length)
            .i32(12, self.number)
            .bytes()
    }
}

/// Copies `from` into the buffers; returns the number of bytes that fit.
pub(crate) fn scatter<'a>(into: &mut [IoSliceMut<'_>], from: impl Iterator<Item = &'a [u8]>) -> usize {
    let (mut buffer, mut place, mut copied) = (0, 0, 0);
    for mut piece in from {
        while !piece.is_empty() {
            let Some(room) = into.get_mut(buffer) else { return copied };
            let count = piece.len().min(room.len() - place);
            room[place..place + count].copy_from_slice(&piece[..count]);
            piece = &piece[count..];
            copied += count;
            place += count;
            if place == room.len() {
                (buffer, place) = (buffer + 1, 0);
            }
        }
    }
    copied
}

pub(crate) const UNORDERED: u16 = 1;
pub(crate) const ADDR_OVER: u16 = 2;
/// The peer is to send the SACK for the end of the message at once (RFC 7053 §7).
pub(crate) const SACK_IMMEDIATELY: u16 = 8;
pub(crate) const ABORT: u16 = 4;
pub(crate) const SEND_ALL: u16 = 0x40;
pub(crate) const EOF: u16 = 0x200;
/// SCTP_EOR of `tresse_sctp.h`: this is the end of a message (RFC 6458 §8.1.26).
pub(crate) const EOR: u16 = 0x2000;
/// Flags that a message may have.
pub(crate) const KNOWN: u16 =
    UNORDERED | ADDR_OVER | ABORT | SACK_IMMEDIATELY | PR_MASK | SEND_ALL | EOF | EOR;
