//! The file transfer protocol: files over one association, one after the other.
//!
//! ```text
//! sender                                    receiver
//!   stream 0   Announce: id, size, name  →
//!              ←  Accept: the ranges that it has   (or Verdict: refused, and why)
//!   streams 1… Data: offset, bytes       →
//!   stream 0   Finish: size, digest      →
//!              ←  Verdict: stored, or why not
//!   stream 0   Announce, for each further file …
//!   shutdown                             →
//! ```
//!
//! Data is sent in pieces with their offsets, unordered and on the streams in turn. So no piece waits for another one on any path, while
//! stream maps and schedulers still have several streams. The digest is BLAKE3 over the whole file.
//!
//! The receiver writes to `NAME.part-ID`, and gives the file its name only when the digest matches. The identifier depends on all that
//! the sender knows of the file without reading it: name, size, time of change. When the same identifier is announced again, the receiver
//! resumes a transfer that broke off. If the receiver already has a file of the same name and length, nothing is sent, and the digest
//! shows whether it is the same file.

pub(crate) mod files;
pub(crate) mod message;
pub(crate) mod name;
pub(crate) mod partial;
pub(crate) mod ranges;
pub(crate) mod source;

use tresse::{Association, Joiner, Message, Ppid};

use crate::failure::Failure;

/// Payload protocol identifier of control messages: "trs0".
pub(crate) const CONTROL: Ppid = Ppid(0x7472_7330);
/// Payload protocol identifier of data: "trs1".
pub(crate) const DATA: Ppid = Ppid(0x7472_7331);
/// Bytes of the file in one data message.
pub(crate) const PIECE: usize = 64 * 1024;
/// Bytes before these: the offset, big-endian.
pub(crate) const DATA_HEADER: usize = 8;
/// Streams of data, if as many were negotiated.
pub(crate) const DATA_STREAMS: u16 = 8;
/// Most bytes of incomplete messages: with a peer that follows the protocol, one on each stream is delivered in parts.
const MOST_HELD: usize = (1 + DATA_STREAMS as usize) * 2 * PIECE;
/// Most pieces that wait between the disk and the transport, on either side.
pub(crate) const QUEUE: usize = 32;

/// Waits for the next complete message, which may be longer than the receive buffer; `None` at the end of the association.
///
/// If the future is dropped, nothing is lost: `joiner` keeps the parts that have arrived.
///
/// # Errors
/// The association ended, or the peer sent a message that is longer than any of the protocol.
pub(crate) async fn whole_message(
    association: &Association,
    joiner: &mut Joiner,
) -> Result<Option<Message>, Failure> {
    while let Some(part) = association.recv().await? {
        if let Some(message) = joiner.join(part) {
            return Ok(Some(message));
        }
        if joiner.held() > MOST_HELD {
            return Err(Failure::running("the peer sent a message longer than any of the protocol"));
        }
    }
    Ok(None)
}
