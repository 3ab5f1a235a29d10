//! A flow of datagrams and its stream: partially reliable, unordered messages both ways, until neither side has any.

use std::pin::pin;
use std::sync::Arc;
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
use super::message::StreamMessage;
use crate::call::ended;
use crate::failure::Failure;

/// A flow's end at this host.
pub(super) enum FlowSocket {
    /// A socket of its own, connected to the destination.
    Own(UdpSocket),
    /// One that many flows share; what came between `ends` comes through the queue.
    Shared { flow_listener: Arc<FlowListener>, ends: Ends, queue: mpsc::Receiver<Bytes> },
}

impl FlowSocket {
    async fn next(&mut self, buffer: &mut Vec<u8>) -> Option<Bytes> {
        match self {
            FlowSocket::Own(socket) => loop {
                buffer.resize(LONGEST_DATAGRAM, 0);
                match socket.recv(buffer).await {
                    Ok(length) => return Some(Bytes::copy_from_slice(&buffer[..length])),
                    // What ICMP said of an earlier one, or a shortage; either passes.
                    Err(_) => tokio::task::yield_now().await,
                }
            },
            FlowSocket::Shared { queue, .. } => queue.recv().await,
        }
    }

    /// Sends one; what the socket has no room for is lost, as it would be in the network.
    async fn put(&self, datagram: &[u8]) {
        let _ = match self {
            FlowSocket::Own(socket) => socket.send(datagram).await,
            FlowSocket::Shared { flow_listener, ends, .. } => flow_listener.send(datagram, *ends).await,
        };
    }
}

/// Carries datagrams until `idle` has passed without any, the other side ends the flow, or somebody else waits for its turn.
///
/// `reliable` says whether the first are sent in order and until they arrive: as long as the other side has not answered, none may
/// overtake the opening.
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
    // Of those that this side has begun: what the other side began holds no turn here.
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

/// Queues one. What finds no room is lost here and now, rather than late.
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
        // One that is too long for a message, if there is such a one.
        Err(_) => dropped(),
        Ok(()) => {}
    }
    Ok(())
}

/// Lifetimes of flows and datagrams.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Limits {
    /// A flow without datagrams ends after this.
    pub(super) idle: Duration,
    /// A datagram is given up after this.
    pub(super) lifetime: Duration,
}

/// Of UDP over IPv4 and IPv6 without jumbograms.
pub(super) const LONGEST_DATAGRAM: usize = 65_535;
/// Bytes of a flow that may wait for the paths: 70 ms at 30 Mbit/s.
const MOST_WAITING: usize = 256 * 1024;
