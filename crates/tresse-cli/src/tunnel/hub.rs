//! The association that connections share, and the dispatch of its messages to the connections.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU16, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use tresse::{Association, Payload, SendOptions, StreamId};

use super::control::Control;
use super::credit::Credit;
use super::message::StreamMessage;
use super::opening::{Kind, Opening, Refusal};
use super::parts::{Parts, Reassembled};
use super::turns::{StreamPermit, StreamPermits};
use crate::call::{self, breach, ended};
use crate::failure::Failure;

/// Flow control window of a connection, for each direction: most bytes that may be under way or wait to be written.
pub(super) const WINDOW: usize = 1 << 20;

/// One association with its connections.
pub(super) struct Hub {
    association: Association,
    side: Side,
    queues: Mutex<BTreeMap<StreamId, ConnectionQueue>>,
    /// Permits for the streams that this side may open.
    turns: StreamPermits,
    /// Tag of the next stream that this side opens.
    next_tag: AtomicU16,
    counts: Counts,
}

/// Side of the association, which the client opened. The client opens connections on odd streams and the server on even ones, so that
/// they never use the same stream.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Side {
    Client,
    Server,
}

/// Counters of a hub. Lanes of a TUN device are no connections.
#[derive(Default)]
pub(super) struct Counts {
    /// Connections and flows that began.
    pub(super) opened: AtomicU64,
    /// Connections that broke or were refused at this side.
    pub(super) refused: AtomicU64,
    /// Datagrams of flows and packets of TUN devices that were dropped because a buffer had no room, before sending or after receiving.
    pub(super) datagrams_dropped: AtomicU64,
}

/// Entry of a connection, with the queue of its inbound data.
struct ConnectionQueue {
    kind: Kind,
    tag: u16,
    inbox: mpsc::UnboundedSender<Inbound>,
    credit: Arc<Credit>,
    waiting: Arc<AtomicUsize>,
    /// `None` once the final message of the other side has arrived.
    last: Option<oneshot::Sender<ConnectionEnd>>,
    /// True once this side has sent its final message.
    said: bool,
}

/// Inbound data or event of a connection.
pub(super) enum Inbound {
    /// The destination has accepted the connection.
    Ready,
    /// Bytes to be written.
    Data(Payload),
    /// A datagram.
    Datagram(Bytes),
    /// No more bytes will come.
    End,
}

/// End of a connection at the other side.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum ConnectionEnd {
    /// The connection ended regularly.
    Closed,
    /// The connection broke, or was never made: data that still waits is worthless.
    Reset(Refusal),
}

/// The connection's handle, with the receiving end of its queue.
pub(super) struct ConnectionHandle {
    pub(super) stream: StreamId,
    pub(super) tag: u16,
    pub(super) inbox: mpsc::UnboundedReceiver<Inbound>,
    /// Bytes that may be sent.
    pub(super) credit: Arc<Credit>,
    /// Bytes that have arrived, and have not been written yet.
    pub(super) waiting: Arc<AtomicUsize>,
    pub(super) last: oneshot::Receiver<ConnectionEnd>,
    /// Permit of the side that opened the stream, which is released when the connection is over.
    turn: Option<StreamPermit>,
}

impl ConnectionHandle {
    /// Returns whether this side opened the stream.
    pub(super) fn holds_turn(&self) -> bool {
        self.turn.is_some()
    }
}

/// Request of the other side.
pub(super) enum Request {
    /// A connection or a flow.
    Open(ConnectionHandle, Opening),
    /// A control message.
    Control(Control),
}

impl Hub {
    /// Creates the hub of this side, which opens at most `connections` connections and flows at a time.
    pub(super) fn new(association: Association, side: Side, connections: u16) -> Arc<Self> {
        let (out, back) = association.streams();
        let streams = usize::from(out.min(back));
        // Stream 0 is for control messages.
        let own = if side == Side::Client { streams / 2 } else { streams.saturating_sub(1) / 2 };
        Arc::new(Hub {
            association,
            side,
            queues: Mutex::default(),
            turns: StreamPermits::new(own, connections.into()),
            next_tag: AtomicU16::new(0),
            counts: Counts::default(),
        })
    }

    pub(super) fn association(&self) -> &Association {
        &self.association
    }

    pub(super) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Returns the number of connections and flows that are open now, without lanes.
    pub(super) fn open(&self) -> usize {
        self.queues().values().filter(|queue| queue.kind != Kind::Packets).count()
    }

    fn queues(&self) -> MutexGuard<'_, BTreeMap<StreamId, ConnectionQueue>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the permits to open streams.
    pub(super) fn turns(&self) -> &StreamPermits {
        &self.turns
    }

    /// Opens a connection on a stream of its own.
    pub(super) async fn open_with(
        &self,
        turn: StreamPermit,
        mut opening: Opening,
    ) -> Result<ConnectionHandle, Failure> {
        let first = if self.side == Side::Client { 1 } else { 2 };
        let streams = self.association.streams();
        let count = streams.0.min(streams.1);
        opening.tag = self.next_tag.fetch_add(1, Ordering::Relaxed);
        let mut own = (first..count).step_by(2).map(StreamId);
        let place = own.find_map(|stream| self.register(stream, &opening));
        let mut place =
            place.ok_or_else(|| Failure::running("no stream is free although a connection has ended"))?;
        place.turn = Some(turn);
        self.say(place.stream, StreamMessage::Open(opening)).await?;
        Ok(place)
    }

    /// Registers a connection on `stream`, and returns its handle; `None` if the stream is in use.
    fn register(&self, stream: StreamId, opening: &Opening) -> Option<ConnectionHandle> {
        let mut queues = self.queues();
        if queues.contains_key(&stream) {
            return None;
        }
        let (sender, inbox) = mpsc::unbounded_channel();
        let (credit, waiting) = (Arc::new(Credit::new(WINDOW)), Arc::new(AtomicUsize::new(0)));
        let (farewell, last) = oneshot::channel();
        let queue = ConnectionQueue {
            kind: opening.kind,
            tag: opening.tag,
            inbox: sender,
            credit: Arc::clone(&credit),
            waiting: Arc::clone(&waiting),
            last: Some(farewell),
            said: false,
        };
        queues.insert(stream, queue);
        if opening.kind != Kind::Packets {
            self.counts.opened.fetch_add(1, Ordering::Relaxed);
        }
        // Cannot fail: the stream was negotiated, and a class does not change the configuration of the scheduler here.
        let _ = self.association.set_stream_class(stream, opening.class);
        Some(ConnectionHandle { stream, tag: opening.tag, inbox, credit, waiting, last, turn: None })
    }

    /// Waits until at most `bytes` of `stream` are unsent.
    pub(super) async fn room_on(&self, stream: StreamId, bytes: usize) -> Result<(), Failure> {
        self.association.low_water(stream, bytes).await.map_err(|error| ended(&self.association, error))
    }

    /// Sends a message on a connection's stream, once there is room for it.
    pub(super) async fn say(&self, stream: StreamId, word: StreamMessage) -> Result<(), Failure> {
        let (ppid, payload) = word.encode();
        let options = SendOptions::on(stream).with(|o| o.ppid = ppid);
        call::put(&self.association, options, payload).await
    }

    /// Sends a control message.
    pub(super) async fn tell(&self, control: Control) -> Result<(), Failure> {
        self.say(StreamId(0), StreamMessage::Control(control)).await
    }

    /// Sends the final message of this side. The stream is free once that of the other side has arrived, too.
    pub(super) async fn say_last(&self, stream: StreamId, word: StreamMessage) -> Result<(), Failure> {
        let is_lane = self.queues().get(&stream).is_some_and(|queue| queue.kind == Kind::Packets);
        if matches!(word, StreamMessage::Reset(_)) && !is_lane {
            self.counts.refused.fetch_add(1, Ordering::Relaxed);
        }
        self.say(stream, word).await?;
        let mut queues = self.queues();
        if let Some(queue) = queues.get_mut(&stream) {
            queue.said = true;
            if queue.last.is_none() {
                queues.remove(&stream);
            }
        }
        Ok(())
    }

    /// Dispatches inbound messages until the association ends. `on_request` is called for the requests of the other side.
    ///
    /// # Errors
    /// The association ended other than gracefully, or the peer violates the protocol.
    pub(super) async fn serve(
        &self,
        mut on_request: impl FnMut(Request) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut parts = Parts::default();
        while let Some(part) = self.association.recv().await? {
            let stream = part.stream;
            let message = match parts.take(part).map_err(|error| breach(&error))? {
                Reassembled::Message(message) => message,
                Reassembled::Nothing => continue,
                Reassembled::Dropped => {
                    self.counts.datagrams_dropped.fetch_add(1, Ordering::Relaxed);
                    continue;
                }
            };
            match StreamMessage::decode(message).map_err(|error| breach(&error))? {
                StreamMessage::Control(control) => on_request(Request::Control(control))?,
                StreamMessage::Open(opening) => {
                    if stream.0 == 0 || (stream.0 % 2 == 1) == (self.side == Side::Client) {
                        return Err(breach("a connection on a stream that is not its own"));
                    }
                    let place = self.register(stream, &opening);
                    let place = place.ok_or_else(|| breach("a connection on a stream in use"))?;
                    on_request(Request::Open(place, opening))?;
                }
                word => self.hand_over(stream, word)?,
            }
        }
        Ok(())
    }

    fn hand_over(&self, stream: StreamId, word: StreamMessage) -> Result<(), Failure> {
        let mut queues = self.queues();
        // Messages that follow the final messages of both sides are ignored.
        let Some(queue) = queues.get_mut(&stream) else { return Ok(()) };
        // If the receiving end of the queue is gone, the connection has broken and sends its own final message.
        match word {
            StreamMessage::Open(_) | StreamMessage::Control(_) => {
                return Err(breach("a connection out of turn"));
            }
            StreamMessage::Ready => drop(queue.inbox.send(Inbound::Ready)),
            StreamMessage::Credit(bytes) => queue.credit.add(bytes as usize, WINDOW),
            StreamMessage::Data(payload) if queue.kind == Kind::Tcp => {
                let before = queue.waiting.fetch_add(payload.len(), Ordering::Relaxed);
                if before + payload.len() > WINDOW {
                    return Err(breach("more data than it had credit for"));
                }
                let _ = queue.inbox.send(Inbound::Data(payload));
            }
            StreamMessage::Datagram(tag, payload) if queue.kind != Kind::Tcp => {
                // A late datagram of an earlier flow on the stream is ignored. A datagram is dropped if the queue is full.
                let room = queue.waiting.load(Ordering::Relaxed) + payload.len() <= WINDOW;
                if tag == queue.tag && room {
                    queue.waiting.fetch_add(payload.len(), Ordering::Relaxed);
                    let _ = queue.inbox.send(Inbound::Datagram(payload));
                } else if tag == queue.tag {
                    self.counts.datagrams_dropped.fetch_add(1, Ordering::Relaxed);
                }
            }
            // Datagrams are unordered: one of an ended flow may arrive on the stream of a connection.
            StreamMessage::Datagram(..) => {}
            StreamMessage::Data(_) => return Err(breach("bytes for datagrams")),
            StreamMessage::End => drop(queue.inbox.send(Inbound::End)),
            StreamMessage::Closed | StreamMessage::Reset(_) => {
                let word = match word {
                    StreamMessage::Reset(why) => ConnectionEnd::Reset(why),
                    _ => ConnectionEnd::Closed,
                };
                let _ = queue.last.take().map(|last| last.send(word));
                // The stream becomes free here, not in the task of the connection: the next message may open another connection on it.
                if queue.said {
                    queues.remove(&stream);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tresse::config::StreamClass;

    use super::super::connection::{accepted, turn_away};
    use super::super::loopback::endpoints;
    use super::super::opening::Destination;
    use super::*;

    #[tokio::test]
    async fn lanes_are_no_connections() {
        let (listening, calling, peer) = endpoints();
        let (called, answered) = tokio::join!(calling.connect(peer), listening.accept());
        let client = Hub::new(called.expect("it answers"), Side::Client, 2);
        let server = Hub::new(answered.expect("it runs"), Side::Server, 2);
        let (sender, mut requests) = mpsc::unbounded_channel();
        tokio::spawn({
            let (client, server) = (Arc::clone(&client), Arc::clone(&server));
            async move {
                let asked = |request| {
                    let _ = sender.send(request);
                    Ok(())
                };
                tokio::join!(client.serve(|_| Ok(())), server.serve(asked))
            }
        });
        let counted = |hub: &Hub| {
            let [opened, refused] = [&hub.counts.opened, &hub.counts.refused];
            (hub.open(), opened.load(Ordering::Relaxed), refused.load(Ordering::Relaxed))
        };
        let kinds = [Kind::Packets, Kind::Tcp, Kind::Udp];
        for (kind, count) in kinds.into_iter().zip(0..) {
            let opening = Opening { kind, class: StreamClass::Bulk, tag: 0, to: Destination::Default };
            let place = client.open_with(client.turns().next().await, opening).await.expect("a stream");
            let Some(Request::Open(asked, _)) = requests.recv().await else { panic!("an opening") };
            assert_eq!(u64::from(asked.tag), count, "late datagrams are told from those of other streams");
            let opens = usize::from(kind != Kind::Packets);
            assert_eq!([client.open(), server.open()], [opens; 2], "{kind:?}");
            let (turned, refused) =
                tokio::join!(turn_away(&server, asked, Refusal::Forbidden), accepted(&client, place));
            assert!(turned.is_ok() && matches!(refused, Ok(Err(Refusal::Forbidden))), "{kind:?}");
            assert_eq!((counted(&client), counted(&server)), ((0, count, 0), (0, count, count)), "{kind:?}");
        }
    }
}
