//! A flow of datagrams and its stream: unordered messages with partial reliability in both directions, until the flow is idle.

use std::pin::pin;
use std::sync::Weak;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tresse::{Ended, Reliability, SendError, SendOptions};

use super::connection::hear_last;
use super::flow_listener::{Ends, FlowListener};
use super::hub::{ConnectionHandle, Hub, Inbound};
use super::message::{LONGEST_DATAGRAM, StreamMessage};
use crate::call::ended;
use crate::failure::Failure;

/// Socket of a flow at this host.
pub(super) enum FlowSocket {
    /// A socket of its own, connected to the destination.
    Own(UdpSocket),
    /// A socket that many flows share. The datagrams between `ends` come through the queue. The flow does not keep the socket: its port
    /// is free as soon as the entry is closed.
    Shared { flow_listener: Weak<FlowListener>, ends: Ends, queue: mpsc::Receiver<Bytes> },
}

impl FlowSocket {
    async fn next(&mut self, buffer: &mut Vec<u8>) -> Option<Bytes> {
        match self {
            FlowSocket::Own(socket) => loop {
                buffer.resize(LONGEST_DATAGRAM, 0);
                match socket.recv(buffer).await {
                    Ok(length) => return Some(Bytes::copy_from_slice(&buffer[..length])),
                    // An ICMP error about an earlier datagram, or a shortage of resources: both are temporary.
                    Err(_) => tokio::task::yield_now().await,
                }
            },
            FlowSocket::Shared { queue, .. } => queue.recv().await,
        }
    }

    /// Sends a datagram. A datagram that the system refuses is lost, as it would be in the network.
    async fn put(&self, datagram: &[u8]) {
        let _ = match self {
            FlowSocket::Own(socket) => socket.send(datagram).await,
            FlowSocket::Shared { flow_listener, ends, .. } => match flow_listener.upgrade() {
                Some(flow_listener) => flow_listener.send(datagram, *ends).await,
                None => return,
            },
        };
    }
}

/// Carries datagrams until there was none for the idle time, the other side ends the flow, or another connection needs the stream permit.
///
/// `reliable` is true if the first datagrams are sent ordered and reliably: until the other side has answered, none may overtake the
/// opening.
///
/// # Errors
/// The association ended.
pub(super) async fn carry(
    hub: &Hub,
    mut place: ConnectionHandle,
    mut outlet: FlowSocket,
    limits: Limits,
    mut reliable: bool,
) -> Result<(), Failure> {
    let mut buffer = Vec::new();
    let mut quiet_since = Instant::now();
    // Only a flow that this side opened holds a stream permit here.
    let own = place.holds_turn().then(|| hub.turns().flow());
    let unwanted = async {
        match &own {
            Some(flow) => flow.unwanted().await,
            None => std::future::pending().await,
        }
    };
    let mut unwanted = pin!(unwanted);
    let heard = loop {
        tokio::select! {
            inward = place.inbox.recv() => {
                reliable = false;
                let Some(inward) = inward else { break false };
                quiet_since = Instant::now();
                own.as_ref().inspect(|flow| flow.is_used());
                if let Inbound::Datagram(payload) = inward {
                    place.waiting.fetch_sub(payload.len(), Ordering::Relaxed);
                    outlet.put(&payload).await;
                }
            }
            datagram = outlet.next(&mut buffer) => {
                let Some(datagram) = datagram else { break false };
                quiet_since = Instant::now();
                own.as_ref().inspect(|flow| flow.is_used());
                send(hub, &place, datagram, limits, reliable)?;
            }
            _ = &mut place.last => break true,
            () = sleep_until(quiet_since + limits.idle) => break false,
            () = &mut unwanted => break false,
            reason = hub.association().closed() => return Err(Ended(reason).into()),
        }
    };
    hub.say_last(place.stream, StreamMessage::Closed).await?;
    if heard { Ok(()) } else { hear_last(hub, place).await }
}

/// Queues a datagram. If there is no room, the datagram is dropped now, instead of arriving late.
fn send(
    hub: &Hub,
    place: &ConnectionHandle,
    datagram: Bytes,
    limits: Limits,
    reliable: bool,
) -> Result<(), Failure> {
    let association = hub.association();
    let dropped = || {
        hub.counts().datagrams_dropped.fetch_add(1, Ordering::Relaxed);
    };
    if association.unsent_on(place.stream) > MOST_WAITING {
        dropped();
        return Ok(());
    }
    let (ppid, payload) = StreamMessage::Datagram(place.tag, datagram).encode();
    let reliability = if reliable { Reliability::Full } else { Reliability::Lifetime(limits.lifetime) };
    let options = SendOptions::on(place.stream).with(|o| {
        o.ppid = ppid;
        o.unordered = !reliable;
        o.reliability = reliability;
    });
    match association.try_send(options, payload) {
        Err(SendError::Full { .. }) => dropped(),
        Err(error @ SendError::NotOpen { .. }) => return Err(ended(association, error)),
        // For example, a datagram that is too long for a message.
        Err(_) => dropped(),
        Ok(()) => {}
    }
    Ok(())
}

/// Lifetimes of flows and datagrams.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Limits {
    /// Time without datagrams after which a flow ends.
    pub(super) idle: Duration,
    /// Time after which a datagram is abandoned.
    pub(super) lifetime: Duration,
}

/// Most unsent bytes of a flow: 70 ms at 30 Mbit/s.
const MOST_WAITING: usize = 256 * 1024;
