//! Handle of an association during its set-up, for messages that are sent before the set-up has ended.
//!
//! The core decides when they leave.

use bytes::Bytes;
use tresse_proto::{SendError, SendOptions};

use crate::association::Association;
use crate::error::ConnectError;
use crate::events::Events;

/// A set-up that [`Endpoint::begin`](crate::Endpoint::begin) has started.
///
/// Its messages leave with the third packet of the set-up (COOKIE ECHO), as far as they fit, and so arrive one round
/// trip earlier than messages that are sent after the set-up; the others follow after it. The peer may deliver such a
/// message in two associations, if the association that it created for the first copy of that packet has ended before
/// the next copy arrives (RFC 9260 §5.1.5). So requests that must not be executed twice should be sent after the
/// set-up.
///
/// Dropping this value cancels the association and its messages.
#[must_use = "dropping it cancels the association"]
#[derive(Debug)]
pub struct Connecting {
    association: Association,
}

impl Connecting {
    pub(crate) fn new(association: Association) -> Self {
        Connecting { association }
    }

    /// Queues a message, waiting for room in the send buffer, and, if the setting `data_with_cookie` is off, for the
    /// end of the set-up.
    ///
    /// The number of streams is not negotiated yet. A message for a stream that the peer does not accept is abandoned,
    /// with [`Event::Abandoned`](crate::Event::Abandoned). If the future is dropped, nothing is queued.
    ///
    /// # Errors
    /// A message that can never be queued, or a set-up that has failed ([`Connecting::established`] returns the reason).
    pub async fn send(&self, options: SendOptions, data: impl Into<Bytes>) -> Result<(), SendError> {
        let data = data.into();
        match self.association.send(options, data.clone()).await {
            Err(SendError::NotOpen { .. }) if self.association.settled().await.is_ok() => {
                self.association.send(options, data).await
            }
            outcome => outcome,
        }
    }

    /// Queues a message if there is room for it now.
    ///
    /// # Errors
    /// As [`Connecting::send`]; [`SendError::Full`]; and [`SendError::NotOpen`] if the setting `data_with_cookie` is
    /// off.
    pub fn try_send(&self, options: SendOptions, data: impl Into<Bytes>) -> Result<(), SendError> {
        self.association.try_send(options, data)
    }

    /// Returns the events of the association from now on, as [`Association::events`]; there may be events on messages
    /// among them.
    pub fn events(&self) -> Events {
        self.association.events()
    }

    /// Waits until the association is set up. Dropping the future cancels the association.
    ///
    /// # Errors
    /// A peer that refuses, does not answer, or does not authenticate.
    pub async fn established(self) -> Result<Association, ConnectError> {
        match self.association.settled().await {
            Ok(()) => Ok(self.association),
            #[cfg(feature = "encryption")]
            Err(ended) => Err(self.association.security_fault().map_or(ended.into(), ConnectError::from)),
            #[cfg(not(feature = "encryption"))]
            Err(ended) => Err(ended.into()),
        }
    }
}
