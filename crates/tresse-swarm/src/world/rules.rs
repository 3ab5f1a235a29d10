//! Rules that must hold after every event, as far as they can be checked from outside the core.
//!
//! Consistency between modules is checked inside the core (`Endpoint::check_invariants`).

use tresse_proto::config::Encryption;
use tresse_proto::{AssociationStats, CloseReason, Instant, PathStats};
use tresse_wire::DATA_HEADER_LEN;

use super::session::{Ending, Session, Windows};
use super::station::Station;

/// A violated rule: its name, and a description of the violation.
pub(super) type Broken = (&'static str, String);

/// Checks a host that has done everything that it could at `now`.
pub(super) fn check(station: &mut Station, now: Instant) -> Result<(), Broken> {
    station.endpoint.check_invariants(now).map_err(|what| ("modules agree", what))?;
    let due = station.endpoint.poll_timeout();
    if due.is_some_and(|at| at <= now) {
        return Err(("time goes on", format!("a deadline of {due:?} is still due")));
    }
    station.waits = false;
    for (&id, session) in &station.sessions {
        let Some(association) = station.endpoint.association(id) else { continue };
        // Messages may wait at the peer until the set-up has ended.
        if session.closed.is_none() && (!session.established || association.send_queue().used > 0) {
            station.waits = true;
        }
        let Some(stats) = association.stats(now) else { continue };
        let paths = association.path_stats(now);
        let config = association.config();
        // Messages of the key management, of one byte each, do not count towards the limit.
        let key_messages = if config.encryption == Encryption::Off { 0 } else { MOST_KEY_MESSAGES };
        let limits = Limits {
            send_buffer: config.send_buffer.0 + key_messages,
            receive_buffer: config.receive_buffer.0,
        };
        numbers(session, &stats, &paths, &limits)?;
        if session.closed.is_none() {
            station.waits |=
                stats.send_buffer_used > 0 || stats.receive_buffer_used > 0 || session.unanswered > 0;
            life(session, &stats, due)?;
        }
    }
    Ok(())
}

/// Most messages of the key management that wait at a time if the keys exist already: that this side can decrypt, a
/// request for new keys, and those of the previous change that are not acknowledged yet.
const MOST_KEY_MESSAGES: usize = 4;

struct Limits {
    send_buffer: usize,
    receive_buffer: usize,
}

/// Largest packet that a host of any script sends, in bytes.
const LARGEST_MTU: usize = 9000;

/// Checks that counters agree with each other and with the application's, and that buffers stay within their sizes.
fn numbers(
    session: &Session,
    stats: &AssociationStats,
    paths: &[PathStats],
    limits: &Limits,
) -> Result<(), Broken> {
    rule("messages are counted", stats.messages_sent == session.accepted, || {
        format!("{} messages were accepted, {} are counted", session.accepted, stats.messages_sent)
    })?;
    rule("messages are counted", stats.messages_received == session.delivered, || {
        format!("{} messages came out, {} are counted", session.delivered, stats.messages_received)
    })?;
    let flight: usize = paths.iter().map(|path| path.flight - path.copied).sum();
    rule("flight is the sum of the paths", flight == stats.flight, || {
        format!("{} bytes are in flight, but {flight} on the paths together", stats.flight)
    })?;
    rule("the send buffer is kept to", stats.send_buffer_used <= limits.send_buffer, || {
        format!("{} of {} bytes", stats.send_buffer_used, limits.send_buffer)
    })?;
    rule("the send buffer holds what is queued", stats.unsent <= stats.send_buffer_used, || {
        format!("{} bytes unsent, {} in the buffer", stats.unsent, stats.send_buffer_used)
    })?;
    // Chunks that fill a gap may extend the buffer to twice its size. An empty buffer accepts a chunk of any length,
    // and then the chunk before that one too; the peer chooses the lengths.
    let most = (2 * limits.receive_buffer + LARGEST_MTU).max(2 * LARGEST_MTU);
    rule("the receive buffer is kept to", stats.receive_buffer_used <= most, || {
        format!("{} bytes, at most {most} may be held", stats.receive_buffer_used)
    })?;
    for path in paths {
        rule("windows keep within their limits", path.cwnd >= 1, || {
            format!("the window of path {} is {}", path.id, path.cwnd)
        })?;
        rule("flight is held in the send buffer", path.flight <= path.queued + path.copied, || {
            let PathStats { id, flight, copied, queued, .. } = path;
            format!("path {id}: {flight} bytes in flight, {queued} queued, {copied} of copies")
        })?;
    }
    Ok(())
}

/// Checks that an association that waits for something has a running timer.
fn life(session: &Session, stats: &AssociationStats, due: Option<Instant>) -> Result<(), Broken> {
    let waits = stats.send_buffer_used > 0 || session.ending != Ending::None || !session.established;
    rule("no timer is lost", !waits || due.is_some(), || {
        format!("nothing is due although {} bytes wait in {}", stats.send_buffer_used, stats.state)
    })
}

/// Checks the packets of one poll: new data must fit in the windows.
pub(super) fn check_sending(before: &Windows, after: &Windows) -> Result<(), Broken> {
    let (mut chunks, mut bytes) = (0, 0);
    let (mut flight_before, mut flight_after) = (0, 0);
    for ((old, path), &silent) in before.paths.iter().zip(&after.paths).zip(&before.silent) {
        // RFC 9260 §7.2.3.
        let any = path.chunks_sent + path.chunks_resent > old.chunks_sent + old.chunks_resent;
        let alone = path.flight - path.copied <= before.mtu;
        rule("after T3 one packet is in flight", !(silent && any) || alone, || {
            format!("path {}: {} bytes", path.id, path.flight - path.copied)
        })?;
        let sent = path.chunks_sent - old.chunks_sent;
        // Bytes in flight include chunk headers. The header of I-DATA is longer than that of DATA, so for I-DATA this is slightly too low.
        let new = path.bytes_sent - old.bytes_sent + sent * DATA_HEADER_LEN as u64;
        let flight = path.flight - path.copied;
        rule("new data keeps to the window", new == 0 || flight < old.cwnd + before.mtu, || {
            format!("path {}: {new} new bytes make {flight} in flight with a window of {}", path.id, old.cwnd)
        })?;
        chunks += sent;
        bytes += new;
        flight_before += old.flight - old.copied;
        flight_after += flight;
    }
    // RFC 9260 §6.1 A: one chunk may exceed the peer's window, as a probe of whether it has opened. §6.2.1 C: chunks
    // that were marked for retransmission in the meantime have increased it.
    let marked = (flight_before as u64 + bytes).saturating_sub(flight_after as u64);
    let Some(room) = before.peer else { return Ok(()) };
    let window = room as u64 + marked;
    rule("new data keeps to the peer's window", chunks <= 1 || bytes <= window, || {
        format!("{chunks} new chunks of {bytes} bytes into a window of {window}")
    })
}

/// Timers that can expire before the answer for which they wait could arrive over a path with full queues.
#[derive(Copy, Clone)]
pub(super) struct Haste {
    /// True for timers that wait for an answer.
    pub(super) answers: bool,
    /// True for the timer that guards a whole shutdown (RFC 9260 §9.2).
    pub(super) shutdown: bool,
    /// True if a sender may overrun the peer's window (`peer_window_test=sack`; RFC 9260 §6.1 A forbids it), which also
    /// affects the guard timer. A receiver without room drops the data even on good links, and T3 retransmits it, each
    /// time after up to RTO.Max. That RTO.Max may be longer than the other host's T5.
    pub(super) overrun: bool,
}

/// Checks that the end of an association has a reason. `impairments` is the number of packets that the network lost or
/// altered so far, `restarts` the number of restarts of hosts.
///
/// From `calm` on, the links are repaired and nothing waits, so associations that are still open end gracefully. With
/// timers in `haste`, an association may fail at any time. So may an association that is `orphaned`: its peer has ended
/// it or lost its state, and packets about that did not arrive.
pub(super) fn check_end(
    session: &Session,
    impairments: u64,
    restarts: u32,
    calm: Option<Instant>,
    haste: Haste,
    orphaned: bool,
) -> Result<(), Broken> {
    let Some((at, reason)) = &session.closed else { return Ok(()) };
    let was_calm = calm.is_some_and(|calm| calm < *at);
    // The host has sent nothing since then, so its errors are from before.
    let silent = calm.is_none_or(|calm| session.last_sent.is_none_or(|sent| sent < calm));
    let right = match reason {
        CloseReason::Graceful | CloseReason::AbortedByPeer { .. } => true,
        CloseReason::Aborted => session.ending != Ending::None,
        CloseReason::PathsLost | CloseReason::ShutdownTimeout if orphaned => true,
        CloseReason::ShutdownTimeout => haste.shutdown || haste.overrun || !was_calm,
        // T5 expired, and nothing arrived since the last SHUTDOWN.
        CloseReason::PathsLost if haste.overrun && session.ending == Ending::Shutdown => true,
        // A restarted host has a new cookie key, so it discards its earlier cookies.
        CloseReason::SetupTimeout if restarts > 0 => true,
        CloseReason::SetupTimeout | CloseReason::PathsLost => {
            haste.answers || ((!was_calm || silent) && impairments > 0)
        }
        _ => false,
    };
    rule("ends have a reason", right, || {
        format!("{reason:?} at {:.6} s although nothing happened", at.as_secs_f64())
    })
}

fn rule(name: &'static str, holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), Broken> {
    if holds { Ok(()) } else { Err((name, otherwise())) }
}
