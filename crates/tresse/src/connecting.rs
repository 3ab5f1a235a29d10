//! An association that is not set up yet, as the application holds it: messages that shall not wait for the set-up.
//!
//! Knows nothing of how they leave; the core does.

use bytes::Bytes;
use tresse_proto::{SendError, SendOptions};

use crate::association::Association;
use crate::error::ConnectError;
use crate::events::Events;

/// A set-up under way, which [`Endpoint::begin`](crate::Endpoint::begin) began.
///
/// What it is given leaves with the third packet of the set-up, as far as it fits there, and so arrives a round trip
/// earlier than what is sent once the set-up has ended; the rest follows then. The peer may see such a message in two
/// associations, if the one that it made for the first copy of that packet has died before the next copy came
/// (RFC 9260 §5.1.5): what must not be done twice is better sent later.
///
/// Dropping it gives up the association, and with it what it was given.
#[derive(Debug)]
pub struct Connecting {
    association: Association,
}

impl Connecting {
    pub(crate) fn new(association: Association) -> Self {
        Connecting { association }
    }

    /// Queues a message, waiting for room in the send buffer; and for the end of the set-up, where the setting
    /// `data_with_cookie` is off.
    ///
    /// How many streams there will be is not known yet: a message for one that the peer does not agree to is given
    /// up, and told of by [`Event::Abandoned`](crate::Event::Abandoned). Giving up the future queues nothing.
    ///
    /// # Errors
    /// A message that can never be queued, or a set-up that has failed: [`Connecting::established`] says why.
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
    /// As [`Connecting::send`]; [`SendError::Full`]; and [`SendError::NotOpen`] where the setting `data_with_cookie` is
    /// off.
    pub fn try_send(&self, options: SendOptions, data: impl Into<Bytes>) -> Result<(), SendError> {
        self.association.try_send(options, data)
    }

    /// Events of the association from now on, as [`Association::events`] tells them: what becomes of messages may be
    /// among them.
    pub fn events(&self) -> Events {
        self.association.events()
    }

    /// Waits until the association is set up. Giving up the future gives up the association.
    ///
    /// # Errors
    /// A peer that refuses or does not answer, or does not prove who it is.
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
