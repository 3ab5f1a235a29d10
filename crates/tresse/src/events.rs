//! Stream of the events of an association, for the application.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use tokio::sync::broadcast::{Receiver, error::RecvError};
use tresse_proto::Event;

use crate::waiting::BoxFuture;

/// Result of a wait, and the receiver for the next wait.
type WaitResult = (Result<Event, RecvError>, Receiver<Event>);

/// Events of an association, from [`Association::events`](crate::Association::events); also a `Stream`.
///
/// ```no_run
/// # async fn watch(association: tresse::Association) {
/// use tresse::{Event, Lagged};
///
/// let mut events = association.events();
/// while let Some(event) = events.next().await {
///     match event {
///         Ok(Event::PathChanged { path, state }) => println!("path {} is {state:?}", path.0),
///         Ok(Event::Closed(reason)) => println!("the end: {reason:?}"),
///         Ok(_) => {}
///         Err(Lagged(missed)) => println!("{missed} events were missed"),
///     }
/// }
/// # }
/// ```
pub struct Events {
    /// `None` while `waiting` has the receiver.
    receiver: Option<Receiver<Event>>,
    waiting: Option<BoxFuture<WaitResult>>,
}

/// Number of events that a slow listener missed: 64 are kept. The statistics of the association show its present state.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0} events were missed")]
pub struct Lagged(pub u64);

impl Events {
    pub(crate) fn new(receiver: Receiver<Event>) -> Self {
        Events { receiver: Some(receiver), waiting: None }
    }

    /// Returns the next event, or the number of events missed before it; `None` after the association has ended.
    /// Dropping the future loses no event.
    pub async fn next(&mut self) -> Option<Result<Event, Lagged>> {
        std::future::poll_fn(|cx| self.poll(cx)).await
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Event, Lagged>>> {
        if let Some(mut receiver) = self.receiver.take() {
            self.waiting = Some(Box::pin(async move { (receiver.recv().await, receiver) }));
        }
        let Some(waiting) = &mut self.waiting else { return Poll::Ready(None) };
        let (outcome, receiver) = ready!(waiting.as_mut().poll(cx));
        (self.receiver, self.waiting) = (Some(receiver), None);
        Poll::Ready(match outcome {
            Ok(event) => Some(Ok(event)),
            Err(RecvError::Lagged(missed)) => Some(Err(Lagged(missed))),
            Err(RecvError::Closed) => None,
        })
    }
}

impl Stream for Events {
    type Item = Result<Event, Lagged>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll(cx)
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waiting = self.receiver.as_ref().map(Receiver::len);
        f.debug_struct("Events").field("waiting", &waiting).finish()
    }
}
