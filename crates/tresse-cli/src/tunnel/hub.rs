//! The association that connections share: takes what comes and hands it to the connection it is for.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{mpsc, oneshot};
use tresse::{Association, Payload, SendOptions, StreamId};

use super::credit::Credit;
use super::message::Word;
use crate::call::{self, breach, ended};
use crate::failure::Failure;

/// What waits to be written to a connection, and may at the most. So much may be under way on each, on either side.
pub(super) const WINDOW: usize = 1 << 20;

/// One association with its connections.
pub(super) struct Hub {
    association: Association,
    desks: Mutex<BTreeMap<StreamId, Desk>>,
}

/// Where what comes for a connection is left.
struct Desk {
    inbox: mpsc::UnboundedSender<Inward>,
    credit: Arc<Credit>,
    waiting: Arc<AtomicUsize>,
    /// Gone once the other side's last word was heard.
    last: Option<oneshot::Sender<LastWord>>,
    /// Whether the own last word was said.
    said: bool,
}

/// What comes for a connection.
pub(super) enum Inward {
    /// Bytes, to be written.
    Data(Payload),
    /// No more bytes will come.
    End,
}

/// How the other side left a connection.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum LastWord {
    /// With everything done.
    Closed,
    /// Because it broke: what still waits is worth nothing.
    Reset,
}

/// A connection's end of its desk.
pub(super) struct Place {
    pub(super) stream: StreamId,
    pub(super) inbox: mpsc::UnboundedReceiver<Inward>,
    /// What may be sent.
    pub(super) credit: Arc<Credit>,
    /// Bytes that came and were not yet written.
    pub(super) waiting: Arc<AtomicUsize>,
    pub(super) last: oneshot::Receiver<LastWord>,
}

impl Hub {
    pub(super) fn new(association: Association) -> Arc<Self> {
        Arc::new(Hub { association, desks: Mutex::default() })
    }

    pub(super) fn association(&self) -> &Association {
        &self.association
    }

    fn desks(&self) -> MutexGuard<'_, BTreeMap<StreamId, Desk>> {
        self.desks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a connection on `stream`; none while another one has it.
    pub(super) fn take_place(&self, stream: StreamId) -> Option<Place> {
        let mut desks = self.desks();
        if desks.contains_key(&stream) {
            return None;
        }
        let (sender, inbox) = mpsc::unbounded_channel();
        let (credit, waiting) = (Arc::new(Credit::new(WINDOW)), Arc::new(AtomicUsize::new(0)));
        let (farewell, last) = oneshot::channel();
        let (credit_given, waits) = (Arc::clone(&credit), Arc::clone(&waiting));
        let desk =
            Desk { inbox: sender, credit: credit_given, waiting: waits, last: Some(farewell), said: false };
        desks.insert(stream, desk);
        Some(Place { stream, inbox, credit, waiting, last })
    }

    /// A free stream of `streams`, with a place on it.
    pub(super) fn any_place(&self, streams: impl Iterator<Item = StreamId>) -> Option<Place> {
        streams.into_iter().find_map(|stream| self.take_place(stream))
    }

    /// Waits until at most `bytes` of `stream` wait for the paths.
    pub(super) async fn room_on(&self, stream: StreamId, bytes: usize) -> Result<(), Failure> {
        self.association.low_water(stream, bytes).await.map_err(|error| ended(&self.association, error))
    }

    /// Says a word on a connection's stream, once there is room for it.
    pub(super) async fn say(&self, stream: StreamId, word: Word) -> Result<(), Failure> {
        let (ppid, payload) = word.encode();
        let options = SendOptions { ppid, ..SendOptions::on(stream) };
        call::put(&self.association, options, payload).await
    }

    /// Says the own last word. The stream is free once the other side's has been heard too.
    pub(super) async fn say_last(&self, stream: StreamId, word: Word) -> Result<(), Failure> {
        self.say(stream, word).await?;
        let mut desks = self.desks();
        if let Some(desk) = desks.get_mut(&stream) {
            desk.said = true;
            if desk.last.is_none() {
                desks.remove(&stream);
            }
        }
        Ok(())
    }

    /// Hands out what comes until the association ends. `on_open` is told of each connection that begins.
    ///
    /// # Errors
    /// The association ended other than gracefully, or the peer does not keep to the protocol.
    pub(super) async fn serve(
        &self,
        mut on_open: impl FnMut(Place) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        while let Some(message) = self.association.recv().await? {
            let stream = message.stream;
            let word = Word::decode(message).map_err(|error| breach(&error))?;
            if word == Word::Open {
                let place =
                    self.take_place(stream).ok_or_else(|| breach("a connection on a stream in use"))?;
                on_open(place)?;
            } else {
                self.hand_over(stream, word)?;
            }
        }
        Ok(())
    }

    fn hand_over(&self, stream: StreamId, word: Word) -> Result<(), Failure> {
        let mut desks = self.desks();
        // Once both sides have said their last word, nothing that follows concerns anybody.
        let Some(desk) = desks.get_mut(&stream) else { return Ok(()) };
        // A connection that no longer listens has broken, and says so itself.
        match word {
            Word::Open => return Err(breach("a connection out of turn")),
            Word::Credit(bytes) => desk.credit.add(bytes as usize, WINDOW),
            Word::Data(payload) => {
                let before = desk.waiting.fetch_add(payload.len(), Ordering::Relaxed);
                if before + payload.len() > WINDOW {
                    return Err(breach("more data than it had credit for"));
                }
                let _ = desk.inbox.send(Inward::Data(payload));
            }
            Word::End => drop(desk.inbox.send(Inward::End)),
            Word::Closed | Word::Reset => {
                let word = if word == Word::Closed { LastWord::Closed } else { LastWord::Reset };
                let _ = desk.last.take().map(|last| last.send(word));
                // Here and not where the connection is carried: the next word may open another on this stream.
                if desk.said {
                    desks.remove(&stream);
                }
            }
        }
        Ok(())
    }
}
