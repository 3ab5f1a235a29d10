//! One TCP connection and its stream: bytes from each to the other, ends and breaks too.

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

/// Carries a connection until both sides have said their last word.
///
/// # Errors
/// The association ended. A TCP connection that breaks is no error here: the other side is told.
pub(super) async fn carry(hub: &Hub, mut place: ConnectionHandle, mut tcp: TcpStream) -> Result<(), Failure> {
    // What a program writes at once travels at once; where this cannot be had it is only slower.
    let _ = tcp.set_nodelay(true);
    // A host that is gone says nothing: its connection would hold its stream for as long as nobody sends anything.
    let _ = SockRef::from(&tcp)
        .set_tcp_keepalive(&TcpKeepalive::new().with_time(IDLE).with_interval(BETWEEN_PROBES));
    let mut heard = None;
    let relayed = relay(hub, &mut place, &mut tcp, &mut heard).await;
    if relayed.is_err() {
        // Its program must not take this for the end of the data.
        let _ = tcp.set_zero_linger();
    }
    drop(tcp);
    match relayed {
        Err(Stop::Association(failure)) => return Err(failure),
        Err(Stop::Broke) => hub.say_last(place.stream, StreamMessage::Reset(Refusal::Broke)).await?,
        Ok(()) | Err(Stop::Heard) => hub.say_last(place.stream, StreamMessage::Closed).await?,
    }
    if heard.is_none() { hear_last(hub, place).await } else { Ok(()) }
}

/// Turns away a connection that cannot be made.
///
/// # Errors
/// The association ended.
pub(super) async fn turn_away(hub: &Hub, place: ConnectionHandle, why: Refusal) -> Result<(), Failure> {
    hub.say_last(place.stream, StreamMessage::Reset(why)).await?;
    hear_last(hub, place).await
}

/// Waits until the destination has accepted the connection; answers why not, having ended it then.
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

/// Waits for the other side's last word.
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
    /// The other side's connection did.
    Heard,
    Association(Failure),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Stop::Association(failure)
    }
}

/// Both directions to their ends; `heard` has the other side's last word if that comes meanwhile.
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
            // What waits for the paths waits in its program, not here: the send buffer belongs to all connections.
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
        // Its program may have gone, having heard enough.
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

/// Time without data after which the other host of a TCP connection is asked whether it is there (RFC 9293 section 3.8.4).
const IDLE: Duration = Duration::from_secs(60);
/// Interval at which it is asked again. The system decides how often.
const BETWEEN_PROBES: Duration = Duration::from_secs(10);
/// Bytes of one message at the most.
const PIECE: usize = 16 * 1024;
/// Bytes of a connection that may wait for the paths before more is read.
const LOW_WATER: usize = 64 * 1024;
