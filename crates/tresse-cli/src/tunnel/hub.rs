//! The association that connections share, and the dispatch of its messages to the connections.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
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

/// Most bytes that may wait to be written to a connection. So much may be under way on each, on either side.
pub(super) const WINDOW: usize = 1 << 20;

/// One association with its connections.
pub(super) struct Hub {
    association: Association,
    side: Side,
    queues: Mutex<BTreeMap<StreamId, ConnectionQueue>>,
    /// One for each stream that this side may open.
    turns: StreamPermits,
    counts: Counts,
}

/// Side that opened the association. The client opens connections on odd streams and the server on even ones, so that they
/// never take the same.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Side {
    Client,
    Server,
}

/// Counters so far.
#[derive(Default)]
pub(super) struct Counts {
    /// Connections and flows that began.
    pub(super) opened: AtomicU64,
    /// Of these, those that came to nothing.
    pub(super) refused: AtomicU64,
    /// Datagrams that were not sent or not handed on: nobody had room for them.
    pub(super) datagrams_dropped: AtomicU64,
}

/// Queue of what comes for a connection.
struct ConnectionQueue {
    kind: Kind,
    tag: u16,
    inbox: mpsc::UnboundedSender<Inbound>,
    credit: Arc<Credit>,
    waiting: Arc<AtomicUsize>,
    /// Gone once the other side's last word was heard.
    last: Option<oneshot::Sender<ConnectionEnd>>,
    /// True once the own last word was said.
    said: bool,
}

/// Data or news for a connection.
pub(super) enum Inbound {
    /// The destination has accepted it.
    Ready,
    /// Bytes, to be written.
    Data(Payload),
    /// A datagram.
    Datagram(Bytes),
    /// No more bytes will come.
    End,
}

/// End of a connection at the other side.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum ConnectionEnd {
    /// With everything done.
    Closed,
    /// Because it broke, or never was: what still waits is worth nothing.
    Reset(Refusal),
}

/// A connection's end of its queue.
pub(super) struct ConnectionHandle {
    pub(super) stream: StreamId,
    pub(super) tag: u16,
    pub(super) inbox: mpsc::UnboundedReceiver<Inbound>,
    /// Bytes that may be sent.
    pub(super) credit: Arc<Credit>,
    /// Bytes that came and were not yet written.
    pub(super) waiting: Arc<AtomicUsize>,
    pub(super) last: oneshot::Receiver<ConnectionEnd>,
    /// Of those who open streams; given back when the connection is over.
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
    /// Something about the tunnel as a whole.
    Control(Control),
}

impl Hub {
    /// A hub of this side, which opens so many connections and flows at a time.
    pub(super) fn new(association: Association, side: Side, connections: u16) -> Arc<Self> {
        let (out, back) = association.streams();
        let streams = usize::from(out.min(back));
        // Stream 0 is nobody's.
        let own = if side == Side::Client { streams / 2 } else { streams.saturating_sub(1) / 2 };
        Arc::new(Hub {
            association,
            side,
            queues: Mutex::default(),
            turns: StreamPermits::new(own, connections.into()),
            counts: Counts::default(),
        })
    }

    pub(super) fn association(&self) -> &Association {
        &self.association
    }

    pub(super) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Connections and flows that are open now.
    pub(super) fn open(&self) -> usize {
        self.queues().len()
    }

    fn queues(&self) -> MutexGuard<'_, BTreeMap<StreamId, ConnectionQueue>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The right to open streams.
    pub(super) fn turns(&self) -> &StreamPermits {
        &self.turns
    }

    /// Begins a connection on a stream of its own.
    pub(super) async fn open_with(
        &self,
        turn: StreamPermit,
        mut opening: Opening,
    ) -> Result<ConnectionHandle, Failure> {
        let first = if self.side == Side::Client { 1 } else { 2 };
        let streams = self.association.streams();
        let count = streams.0.min(streams.1);
        opening.tag = self.counts.opened.load(Ordering::Relaxed) as u16;
        let mut own = (first..count).step_by(2).map(StreamId);
        let place = own.find_map(|stream| self.take_place(stream, &opening));
        let mut place =
            place.ok_or_else(|| Failure::running("no stream is free although a connection has ended"))?;
        place.turn = Some(turn);
        self.say(place.stream, StreamMessage::Open(opening)).await?;
        Ok(place)
    }

    /// A place for a connection on `stream`; none while another one has it.
    fn take_place(&self, stream: StreamId, opening: &Opening) -> Option<ConnectionHandle> {
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
        self.counts.opened.fetch_add(1, Ordering::Relaxed);
        // A stream of which nobody was told yet exists, and a class changes no scheduler's configuration here.
        let _ = self.association.set_stream_class(stream, opening.class);
        Some(ConnectionHandle { stream, tag: opening.tag, inbox, credit, waiting, last, turn: None })
    }

    /// Waits until at most `bytes` of `stream` wait for the paths.
    pub(super) async fn room_on(&self, stream: StreamId, bytes: usize) -> Result<(), Failure> {
        self.association.low_water(stream, bytes).await.map_err(|error| ended(&self.association, error))
    }

    /// Says a word on a connection's stream, once there is room for it.
    pub(super) async fn say(&self, stream: StreamId, word: StreamMessage) -> Result<(), Failure> {
        let (ppid, payload) = word.encode();
        let options = SendOptions::on(stream).with(|o| o.ppid = ppid);
        call::put(&self.association, options, payload).await
    }

    /// Says something about the tunnel as a whole.
    pub(super) async fn tell(&self, control: Control) -> Result<(), Failure> {
        self.say(StreamId(0), StreamMessage::Control(control)).await
    }

    /// Says the own last word. The stream is free once the other side's has been heard too.
    pub(super) async fn say_last(&self, stream: StreamId, word: StreamMessage) -> Result<(), Failure> {
        if matches!(word, StreamMessage::Reset(_)) {
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

    /// Hands out what comes until the association ends. `on_request` is told of what the other side begins.
    ///
    /// # Errors
    /// The association ended other than gracefully, or the peer does not keep to the protocol.
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
                    let place = self.take_place(stream, &opening);
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
        // Once both sides have said their last word, nothing that follows concerns anybody.
        let Some(queue) = queues.get_mut(&stream) else { return Ok(()) };
        // A connection that no longer listens has broken, and says so itself.
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
                // A late one of the stream's last flow is nobody's; one that nobody takes in time is lost, as in any queue.
                let room = queue.waiting.load(Ordering::Relaxed) + payload.len() <= WINDOW;
                if tag == queue.tag && room {
                    queue.waiting.fetch_add(payload.len(), Ordering::Relaxed);
                    let _ = queue.inbox.send(Inbound::Datagram(payload));
                } else if tag == queue.tag {
                    self.counts.datagrams_dropped.fetch_add(1, Ordering::Relaxed);
                }
            }
            // Datagrams are unordered: one of a flow that has ended may come into a connection.
            StreamMessage::Datagram(..) => {}
            StreamMessage::Data(_) => return Err(breach("bytes for datagrams")),
            StreamMessage::End => drop(queue.inbox.send(Inbound::End)),
            StreamMessage::Closed | StreamMessage::Reset(_) => {
                let word = match word {
                    StreamMessage::Reset(why) => ConnectionEnd::Reset(why),
                    _ => ConnectionEnd::Closed,
                };
                let _ = queue.last.take().map(|last| last.send(word));
                // Here and not where the connection is carried: the next word may open another on this stream.
                if queue.said {
                    queues.remove(&stream);
                }
            }
        }
        Ok(())
    }
}
