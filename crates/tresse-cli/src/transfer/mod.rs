//! The file transfer protocol: files over one association, one after the other.
//!
//! ```text
//! sender                                    receiver
//!   stream 0   Announce: id, size, name  →
//!              ←  Accept: the ranges that are already here   (or Verdict: refused, and why)
//!   streams 1… Data: offset, bytes       →
//!   stream 0   Finish: size, digest      →
//!              ←  Verdict: stored, or why not
//!   stream 0   Announce, for each further file …
//!   shutdown                             →
//! ```
//!
//! Data is cut into pieces that say where they belong, sent unordered and spread over the streams in
//! turn, so that no piece waits for another, whichever path it takes; stream maps and schedulers
//! still have streams to act on. The digest is BLAKE3 over the whole file.
//!
//! The receiver writes to `NAME.part-ID` and gives the file its name only when the digest fits. The id
//! names the file's content as far as the sender knows it without reading (name, size, time of
//! change); a transfer that broke off goes on where it was when the same id is announced again, and of a file that is here
//! already with the same length nothing is sent: the digest says whether it is the same.

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
/// Bytes in front of them: the offset, big-endian.
pub(crate) const DATA_HEADER: usize = 8;
/// Streams that data is spread over, where as many were negotiated.
pub(crate) const DATA_STREAMS: u16 = 8;
/// More than this never waits for the end of a message, of those that come in parts: one on each stream.
const MOST_HELD: usize = (1 + DATA_STREAMS as usize) * 2 * PIECE;
/// Pieces that may wait between the disk and the transport, on either side.
pub(crate) const QUEUE: usize = 32;

/// The next message as a whole, also when it is too long for the receive buffer; `None` at the end.
///
/// Giving up the future loses nothing: `joiner` keeps what is here.
///
/// # Errors
/// The association ended, or the peer sends messages that are longer than any of the protocol.
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
