//! Packets out of the blue (OOTB, RFC 9260 §8.4), which belong to no association, and the answers to them.

use tresse_wire::{
    Abort, COMMON_HEADER_LEN, Cause, CauseCode, Causes, Chunk, CommonHeader, ErrorChunk, Packet,
    PacketWriter, Seal,
};

use super::reply_header;

/// Returns the answer to an out-of-the-blue packet; `None` if none is to be sent.
pub(super) fn answer(packet: &Packet<'_>, seal: Seal) -> Option<Vec<u8>> {
    let mut first = true;
    let mut reply = Reply::Abort;
    for chunk in packet.chunks().flatten() {
        match chunk {
            // Authenticated or not: the chunks behind AUTH determine the answer (RFC 4895 §6.3).
            Chunk::Auth(_) => continue,
            Chunk::Abort(_) | Chunk::ShutdownComplete { .. } => return None,
            Chunk::CookieAck if first => return None,
            Chunk::Error(error) if says_stale_cookie(&error) => return None,
            Chunk::ShutdownAck if first => reply = Reply::ShutdownComplete,
            // An INIT to a port without a listener: the ABORT carries the peer's initiate tag, as there is no tag of this side.
            Chunk::Init(init) if first && packet.header.verification_tag == 0 => {
                reply = Reply::Refusal(init.initiate_tag);
            }
            _ => {}
        }
        first = false;
    }
    if first {
        return None;
    }
    let header = reply_header(packet);
    Some(match reply {
        Reply::Abort => {
            single(header, &Chunk::Abort(Abort { tag_reflected: true, causes: Causes::Values(&[]) }), seal)
        }
        Reply::Refusal(0) => return None,
        Reply::Refusal(verification_tag) => {
            let abort = Chunk::Abort(Abort { tag_reflected: false, causes: Causes::Values(&[]) });
            single(CommonHeader { verification_tag, ..header }, &abort, seal)
        }
        Reply::ShutdownComplete => single(header, &Chunk::ShutdownComplete { tag_reflected: true }, seal),
    })
}

/// Returns whether an ERROR chunk reports a stale cookie.
pub(super) fn says_stale_cookie(error: &ErrorChunk<'_>) -> bool {
    error.causes.iter().flatten().any(|cause| cause.code() == CauseCode::STALE_COOKIE)
}

enum Reply {
    Abort,
    /// ABORT to an INIT, with its initiate tag.
    Refusal(u32),
    ShutdownComplete,
}

/// Returns a packet with an ABORT, to a peer whose tag is known or reflected.
pub(super) fn abort(header: CommonHeader, tag_reflected: bool, cause: Cause<'_>, seal: Seal) -> Vec<u8> {
    single(header, &Chunk::Abort(Abort { tag_reflected, causes: Causes::Values(&[cause]) }), seal)
}

/// Returns a packet with one chunk.
pub(super) fn single(header: CommonHeader, chunk: &Chunk<'_>, seal: Seal) -> Vec<u8> {
    // Allocated exactly: most of these packets answer packets out of the blue, and must be cheap.
    let mut buffer = Vec::new();
    let len = COMMON_HEADER_LEN + chunk.wire_len().next_multiple_of(4);
    let mut writer = PacketWriter::new(&mut buffer, header, len);
    if writer.push(chunk).is_err() {
        writer.discard();
        return Vec::new();
    }
    writer.finish(seal);
    buffer
}
