//! Working memory of drivers: one for each thread, lent to the driver that runs there.
//!
//! So an idle endpoint keeps none of it.

use std::cell::Cell;

use tresse_proto::Datagram;

use super::batch::Batch;
use super::buffers::Buffers;

/// Buffers that a round of a driver receives into, and sends from.
pub(crate) struct DriverBuffers {
    /// Room for a batch from one socket.
    pub(crate) buffers: Buffers,
    /// Packets that arrived.
    pub(crate) inbox: Vec<Datagram>,
    /// Packets that leave.
    pub(crate) batch: Batch,
}

thread_local! {
    static ROOM: Cell<Option<Box<DriverBuffers>>> = const { Cell::new(None) };
}

/// Runs `work` with the room of this thread.
pub(crate) fn with_room<T>(work: impl FnOnce(&mut DriverBuffers) -> T) -> T {
    let fresh =
        || Box::new(DriverBuffers { buffers: Buffers::new(), inbox: Vec::new(), batch: Batch::default() });
    // A driver within a driver, or one that runs while its thread ends, has one of its own.
    let mut room = ROOM.try_with(Cell::take).ok().flatten().unwrap_or_else(fresh);
    let outcome = work(&mut room);
    room.inbox.clear();
    let _ = ROOM.try_with(|place| place.set(Some(room)));
    outcome
}
