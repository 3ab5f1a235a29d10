//! One TCP connection and its stream: carries bytes, ends and failures in both directions.

use std::pin::pin;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::{BufMut, BytesMut};
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tresse::{Ended, Payload};

use super::hub::{ConnectionEnd, ConnectionHandle, Hub, Inbound, WINDOW};
use super::message::StreamMessage;
use super::opening::Refusal;
use crate::call::breach;
use crate::failure::Failure;

/// Carries a connection until both sides have sent their final message (`Closed` or `Reset`).
///
/// # Errors
/// The association ended. A TCP connection that breaks is no error here, but is reported to the other side.
pub(super) async fn carry(hub: &Hub, mut place: ConnectionHandle, mut tcp: TcpStream) -> Result<(), Failure> {
    // Small writes are sent at once (without Nagle's algorithm). If that fails, the connection is only slower.
    let _ = tcp.set_nodelay(true);
    // Without keepalives, the connection of a host that is gone would hold its stream as long as this side sends nothing.
    let _ = SockRef::from(&tcp)
        .set_tcp_keepalive(&TcpKeepalive::new().with_time(IDLE).with_interval(BETWEEN_PROBES));
    // Until both directions have ended, closing is a reset, which the program does not take for the end of the data. It is set now,
    // because the system closes the sockets of a process that is killed.
    let _ = tcp.set_zero_linger();
    let mut heard = None;
    let relayed = relay(hub, &mut place, &mut tcp, &mut heard).await;
    if relayed.is_ok() {
        // The program may still have to receive the last data.
        let _ = SockRef::from(&tcp).set_linger(None);
    }
    drop(tcp);
    match relayed {
        Err(Stop::Association(failure)) => return Err(failure),
        Err(Stop::Broke) => hub.say_last(place.stream, StreamMessage::Reset(Refusal::Broke)).await?,
        Ok(()) | Err(Stop::Heard) => hub.say_last(place.stream, StreamMessage::Closed).await?,
    }
    if heard.is_none() { hear_last(hub, place).await } else { Ok(()) }
}

/// Rejects a connection that cannot be made.
///
/// # Errors
/// The association ended.
pub(super) async fn turn_away(hub: &Hub, place: ConnectionHandle, why: Refusal) -> Result<(), Failure> {
    hub.say_last(place.stream, StreamMessage::Reset(why)).await?;
    hear_last(hub, place).await
}

/// Waits until the destination has accepted the connection. If the connection was rejected, closes the stream and returns the reason.
///
/// # Errors
/// The association ended.
pub(super) async fn accepted(
    hub: &Hub,
    mut place: ConnectionHandle,
) -> Result<Result<ConnectionHandle, Refusal>, Failure> {
    tokio::select! {
        biased;
        inward = place.inbox.recv() => match inward {
            Some(Inbound::Ready) => Ok(Ok(place)),
            _ => Err(breach("bytes of a connection that was not made")),
        },
        word = &mut place.last => {
            let why = match word {
                Ok(ConnectionEnd::Reset(why)) => why,
                _ => Refusal::Broke,
            };
            hub.say_last(place.stream, StreamMessage::Closed).await?;
            Ok(Err(why))
        }
        reason = hub.association().closed() => Err(Ended(reason).into()),
    }
}

/// Waits for the final message of the other side. Fails if the association ends.
pub(super) async fn hear_last(hub: &Hub, place: ConnectionHandle) -> Result<(), Failure> {
    tokio::select! {
        _ = place.last => Ok(()),
        reason = hub.association().closed() => Err(Ended(reason).into()),
    }
}

/// Reason for which a connection stops before both directions have ended.
enum Stop {
    /// The TCP connection broke.
    Broke,
    /// The connection of the other side broke.
    Heard,
    Association(Failure),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Stop::Association(failure)
    }
}

/// Carries both directions to their ends. `heard` is set to the final message of the other side if that arrives meanwhile.
async fn relay(
    hub: &Hub,
    place: &mut ConnectionHandle,
    tcp: &mut TcpStream,
    heard: &mut Option<ConnectionEnd>,
) -> Result<(), Stop> {
    let ConnectionHandle { stream, inbox, credit, waiting, last, .. } = place;
    let (mut reading, mut writing) = tcp.split();
    let outward = async {
        let mut buffer = BytesMut::new();
        loop {
            let allowance = credit.some().await.min(PIECE);
            // Data that must wait for the paths is left to the program, because all connections share the send buffer.
            hub.room_on(*stream, LOW_WATER).await?;
            buffer.reserve(PIECE);
            let read =
                reading.read_buf(&mut (&mut buffer).limit(allowance)).await.map_err(|_| Stop::Broke)?;
            if read == 0 {
                return Ok::<_, Stop>(hub.say(*stream, StreamMessage::End).await?);
            }
            credit.spend(read);
            hub.say(*stream, StreamMessage::Data(Payload::Whole(buffer.split().freeze()))).await?;
        }
    };
    let inward = async {
        let mut taken = 0;
        loop {
            let payload = match inbox.recv().await {
                Some(Inbound::Data(payload)) => payload,
                Some(Inbound::Ready | Inbound::Datagram(_)) => continue,
                Some(Inbound::End) | None => break,
            };
            for piece in payload.pieces() {
                writing.write_all(piece).await.map_err(|_| Stop::Broke)?;
            }
            waiting.fetch_sub(payload.len(), Ordering::Relaxed);
            taken += payload.len();
            if taken >= WINDOW / 4 {
                hub.say(*stream, StreamMessage::Credit(taken as u32)).await?;
                taken = 0;
            }
        }
        // Fails if the program has closed the connection already.
        let _ = writing.shutdown().await;
        Ok::<_, Stop>(())
    };
    let mut both = pin!(async { tokio::try_join!(outward, inward).map(|((), ())| ()) });
    loop {
        tokio::select! {
            outcome = &mut both => return outcome,
            word = &mut *last, if heard.is_none() => {
                let word = word.unwrap_or(ConnectionEnd::Reset(Refusal::Broke));
                *heard = Some(word);
                if word != ConnectionEnd::Closed {
                    return Err(Stop::Heard);
                }
            }
            reason = hub.association().closed() => {
                return Err(Stop::Association(Ended(reason).into()));
            }
        }
    }
}

/// Time without data after which a keepalive probe is sent (RFC 9293 section 3.8.4).
const IDLE: Duration = Duration::from_secs(60);
/// Interval between keepalive probes. The system determines their number.
const BETWEEN_PROBES: Duration = Duration::from_secs(10);
/// Most bytes of one message.
const PIECE: usize = 16 * 1024;
/// Unsent bytes of a connection up to which more is read.
const LOW_WATER: usize = 64 * 1024;
