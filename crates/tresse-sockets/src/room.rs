//! Waiting for room in the send buffer of one association. What the descriptor shows is not enough for that: the descriptor of a
//! one-to-many socket is writable once no association is blocked, and a peer that does not read would hold up messages to others.
//!
//! Owns the pipe of an association that is blocked. Whoever waits has its reading end, also a forked process; it comes to its end
//! when the association is blocked no more.

use std::io::{PipeReader, PipeWriter, pipe};
use std::sync::Arc;

use rustix::io::Errno;
use tresse_proto::AssociationId;

use crate::association::SocketAssociation;
use crate::engine::State;
use crate::numbers::Private;

/// The pipe.
pub(crate) struct Room {
    told: Arc<Private<PipeReader>>,
    /// Held while there is no room.
    _tells: Private<PipeWriter>,
}

impl SocketAssociation {
    /// A message was refused for want of room.
    pub(crate) fn block(&mut self) {
        self.blocked = true;
    }

    /// There is room again, or will never be any: calls that wait are made again.
    pub(crate) fn unblock(&mut self) {
        self.blocked = false;
        self.room = None;
    }
}

impl State {
    /// A descriptor that comes to its end once this association, or one of those of the socket that have no room, has some or has
    /// ended. `None` if it has already.
    ///
    /// # Errors
    /// No descriptor is left.
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
            // They exist only while a call waits, and moving their numbers away costs more than the rest of the wait.
            entry.room = Some(Room { told: Arc::new(Private::new(told)), _tells: Private::new(tells) });
        }
        Ok(entry.room.as_ref().map(|room| Arc::clone(&room.told)))
    }
}
