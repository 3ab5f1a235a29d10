//! Working memory of drivers: one for each thread, used by the driver that runs there.
//!
//! So an idle endpoint needs no such memory.

use std::cell::Cell;

use tresse_proto::Datagram;

use super::batch::Batch;
use super::buffers::Buffers;

/// Buffers of a round of a driver, for receiving and sending.
pub(crate) struct DriverBuffers {
    /// Memory for a batch from one socket.
    pub(crate) buffers: Buffers,
    /// Arrived packets.
    pub(crate) inbox: Vec<Datagram>,
    /// Packets to send.
    pub(crate) batch: Batch,
}

thread_local! {
    static ROOM: Cell<Option<Box<DriverBuffers>>> = const { Cell::new(None) };
}

/// Runs `work` with the buffers of this thread.
pub(crate) fn with_room<T>(work: impl FnOnce(&mut DriverBuffers) -> T) -> T {
    let fresh =
        || Box::new(DriverBuffers { buffers: Buffers::new(), inbox: Vec::new(), batch: Batch::default() });
    // A driver within a driver, or at the end of its thread, gets buffers of its own.
    let mut room = ROOM.try_with(Cell::take).ok().flatten().unwrap_or_else(fresh);
    let outcome = work(&mut room);
    room.inbox.clear();
    let _ = ROOM.try_with(|place| place.set(Some(room)));
    outcome
}
