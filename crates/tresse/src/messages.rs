//! Messages of an association as a `Stream` and a `Sink` of the crate `futures`.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_core::{FusedStream, Stream};
use futures_sink::Sink;
use tresse_proto::{Message, SendError, SendOptions};

use crate::association::Association;
use crate::error::{Ended, TryRecvError};
use crate::waiting::BoxFuture;

/// The messages of an association, both ways; [`Association::messages`] makes one.
///
/// The stream ends when the peer has ended the association gracefully, and after an error. Closing the sink shuts the association down
/// and waits for the end, so the stream has to be read meanwhile: `StreamExt::split` separates the two. A message that the sink has
/// accepted is sent, also if this value is dropped before there is room for it.
///
/// ```no_run
/// # async fn echo(association: tresse::Association) -> Result<(), Box<dyn std::error::Error>> {
/// use futures_util::{SinkExt, StreamExt};
/// use tresse::SendOptions;
///
/// let (mut sink, mut messages) = association.messages().split();
/// while let Some(message) = messages.next().await {
///     let message = message?;
///     sink.send((SendOptions::on(message.stream), message.payload.into_bytes())).await?;
/// }
/// # Ok(())
/// # }
/// ```
pub struct Messages {
    association: Association,
    receiving: Option<BoxFuture<Result<Option<Message>, Ended>>>,
    over: bool,
    sending: Option<BoxFuture<Result<(), SendError>>>,
    room: Option<BoxFuture<()>>,
    closing: Option<BoxFuture<Result<(), Ended>>>,
}

impl Association {
    /// Returns the messages as a `Stream` of received messages and a `Sink` for messages to send.
    pub fn messages(&self) -> Messages {
        Messages::new(self.clone())
    }
}

impl Messages {
    pub(crate) fn new(association: Association) -> Self {
        Messages { association, receiving: None, over: false, sending: None, room: None, closing: None }
    }

    /// Returns the association.
    pub fn association(&self) -> &Association {
        &self.association
    }

    /// Returns the next message, as [`Association::recv`].
    pub(crate) fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Message>, Ended>> {
        if self.receiving.is_none() {
            match self.association.try_recv() {
                Ok(message) => return Poll::Ready(Ok(Some(message))),
                Err(TryRecvError::Finished) => return Poll::Ready(Ok(None)),
                Err(TryRecvError::Ended(ended)) => return Poll::Ready(Err(ended)),
                Err(TryRecvError::Empty) => {}
            }
        }
        let association = &self.association;
        let receiving = self.receiving.get_or_insert_with(|| {
            let association = association.clone();
            Box::pin(async move { association.recv().await })
        });
        let outcome = ready!(receiving.as_mut().poll(cx));
        self.receiving = None;
        Poll::Ready(outcome)
    }

    /// Queues a message, or keeps it until there is room; until then [`Messages::poll_sent`] is pending.
    pub(crate) fn begin_send(&mut self, options: SendOptions, data: Bytes) -> Result<(), SendError> {
        match self.association.try_send(options, data.clone()) {
            Err(SendError::Full { .. }) => {
                let association = self.association.clone();
                self.sending = Some(Box::pin(async move { association.send(options, data).await }));
                Ok(())
            }
            outcome => outcome,
        }
    }

    /// Ready when a message is queued. No copy of it is kept while there is no room.
    pub(crate) fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        options: SendOptions,
        data: &[u8],
    ) -> Poll<Result<(), SendError>> {
        if let Some(room) = &mut self.room {
            ready!(room.as_mut().poll(cx));
            self.room = None;
        }
        loop {
            match self.association.try_send(options, Bytes::copy_from_slice(data)) {
                Err(SendError::Full { .. }) => {}
                outcome => {
                    self.room = None;
                    return Poll::Ready(outcome);
                }
            }
            if self.room.is_some() {
                return Poll::Pending;
            }
            // There may have been room before this call began to wait, so it tries once more.
            let mut room = self.association.more_room();
            if room.as_mut().poll(cx).is_pending() {
                self.room = Some(room);
            }
        }
    }

    /// Ready when no message waits for room.
    pub(crate) fn poll_sent(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        let Some(sending) = &mut self.sending else { return Poll::Ready(Ok(())) };
        let outcome = ready!(sending.as_mut().poll(cx));
        self.sending = None;
        Poll::Ready(outcome)
    }

    /// Ready when everything was delivered and the association is shut down.
    pub(crate) fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Ended>> {
        let association = &self.association;
        let closing = self.closing.get_or_insert_with(|| {
            let association = association.clone();
            Box::pin(async move { association.shutdown().await })
        });
        let outcome = ready!(closing.as_mut().poll(cx));
        // A later call has the same result: the association keeps the reason for its end.
        self.closing = None;
        Poll::Ready(outcome)
    }
}

impl Stream for Messages {
    type Item = Result<Message, Ended>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.over {
            return Poll::Ready(None);
        }
        let next = ready!(self.poll_recv(cx)).transpose();
        self.over = !matches!(next, Some(Ok(_)));
        Poll::Ready(next)
    }
}

impl FusedStream for Messages {
    fn is_terminated(&self) -> bool {
        self.over
    }
}

impl Sink<(SendOptions, Bytes)> for Messages {
    type Error = SendError;

    fn poll_ready(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        self.poll_sent(cx)
    }

    fn start_send(mut self: Pin<&mut Self>, (options, data): (SendOptions, Bytes)) -> Result<(), SendError> {
        self.begin_send(options, data)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        self.poll_sent(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        ready!(self.poll_sent(cx))?;
        self.poll_shutdown(cx).map_err(|_| SendError::NotOpen { state: "CLOSED" })
    }
}

impl Drop for Messages {
    /// Sends the accepted message: otherwise the association would end as if no message were missing.
    fn drop(&mut self) {
        if let (Some(sending), Some(runtime)) = (self.sending.take(), self.association.runtime()) {
            runtime.spawn(sending);
        }
    }
}

impl fmt::Debug for Messages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Messages").field("association", &self.association).field("over", &self.over).finish()
    }
}
