//! Waiting for room in the send buffer of one association. The readiness of the descriptor does not suffice: the descriptor of a
//! one-to-many socket is writable only if no association is blocked, so a peer that does not read would delay messages to others.
//!
//! Owns the pipe of a blocked association. Calls that wait have its read end, also in a forked process; its write end is closed
//! when the association is no longer blocked.

use std::io::{PipeReader, PipeWriter, pipe};
use std::sync::Arc;

use rustix::io::Errno;
use tresse_proto::AssociationId;

use crate::association::SocketAssociation;
use crate::engine::State;
use crate::numbers::Private;

/// The pipe of a blocked association.
pub(crate) struct Room {
    told: Arc<Private<PipeReader>>,
    /// Write end, held while there is no room.
    _tells: Private<PipeWriter>,
}

impl SocketAssociation {
    /// Notes that a message was refused for lack of room.
    pub(crate) fn block(&mut self) {
        self.blocked = true;
    }

    /// Wakes the calls that wait: there is room again, or there will never be any.
    pub(crate) fn unblock(&mut self) {
        self.blocked = false;
        self.room = None;
    }
}

impl State {
    /// Returns the read end of a pipe whose write end is closed when an association has room, or has ended: this association, or
    /// any blocked one of the socket. `None` if it is not blocked.
    ///
    /// # Errors
    /// No number for a descriptor is free.
    pub(crate) fn room(
        &mut self,
        key: u64,
        id: Option<AssociationId>,
    ) -> Result<Option<Arc<Private<PipeReader>>>, Errno> {
        let entry = match id {
            Some(id) => self.associations.get_mut(&id),
            None => self.associations.values_mut().find(|entry| entry.owner == key && entry.blocked),
        };
        let Some(entry) = entry.filter(|entry| entry.blocked) else { return Ok(None) };
        if entry.room.is_none() {
            let (told, tells) =
                pipe().map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::MFILE))?;
            // These descriptors exist only while a call waits: moving them to high numbers would cost more than the rest of the
            // wait.
            entry.room = Some(Room { told: Arc::new(Private::new(told)), _tells: Private::new(tells) });
        }
        Ok(entry.room.as_ref().map(|room| Arc::clone(&room.told)))
    }
}
