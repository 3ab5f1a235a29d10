//! The table of an endpoint's associations, by slot and generation.

use std::sync::Arc;

use crate::association::{Association, Settings, Setup};
use crate::interface::association_id::AssociationId;
use crate::interface::undelivered::Undelivered;

/// Index of an association in the table of its endpoint.
pub(super) type Slot = u32;

/// Occupant of a slot.
pub(super) enum Occupant {
    /// Set up by this side; not established yet.
    Setup(Box<Setup>),
    /// Established, shutting down or closed.
    Open(Box<Association>),
    /// A set-up that failed, until the application releases it.
    Failed(Failed),
}

/// Rest of a set-up that failed.
pub(super) struct Failed {
    pub(super) settings: Arc<Settings>,
    /// Messages that the application had queued on it.
    pub(super) undelivered: Vec<Undelivered>,
}

impl Failed {
    pub(super) fn new(settings: &Arc<Settings>) -> Self {
        Failed { settings: Arc::clone(settings), undelivered: Vec::new() }
    }
}

#[derive(Default)]
struct Entry {
    generation: u32,
    occupant: Option<Occupant>,
    /// The slot is in the endpoint's ready queue. Its entry stays there when the occupant is gone.
    queued: bool,
}

/// The table. A free slot is used again with a new generation.
#[derive(Default)]
pub(super) struct Slots {
    entries: Vec<Entry>,
    free: Vec<Slot>,
}

impl Slots {
    /// Returns the number of associations in the table.
    pub(super) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Returns the highest slot that was ever in use, plus one.
    #[cfg(feature = "invariants")]
    pub(super) fn end(&self) -> Slot {
        self.entries.len() as Slot
    }

    pub(super) fn insert(&mut self, occupant: Occupant) -> Slot {
        let slot = self.reserve();
        self.replace(slot, occupant);
        slot
    }

    /// Allocates an empty slot, which the caller fills.
    pub(super) fn reserve(&mut self) -> Slot {
        self.free.pop().unwrap_or_else(|| {
            self.entries.push(Entry::default());
            (self.entries.len() - 1) as Slot
        })
    }

    pub(super) fn replace(&mut self, slot: Slot, occupant: Occupant) {
        if let Some(entry) = self.entries.get_mut(slot as usize) {
            entry.occupant = Some(occupant);
        }
    }

    /// Empties a slot, which the caller fills again.
    pub(super) fn take(&mut self, slot: Slot) -> Option<Occupant> {
        self.entries.get_mut(slot as usize)?.occupant.take()
    }

    pub(super) fn remove(&mut self, slot: Slot) {
        if let Some(entry) = self.entries.get_mut(slot as usize)
            && entry.occupant.take().is_some()
        {
            entry.generation = entry.generation.wrapping_add(1);
            self.free.push(slot);
        }
    }

    pub(super) fn get_mut(&mut self, slot: Slot) -> Option<&mut Occupant> {
        self.entries.get_mut(slot as usize)?.occupant.as_mut()
    }

    /// Returns the occupant of a slot and its identifier.
    pub(super) fn named_mut(&mut self, slot: Slot) -> Option<(AssociationId, &mut Occupant)> {
        let entry = self.entries.get_mut(slot as usize)?;
        Some((AssociationId { slot, generation: entry.generation }, entry.occupant.as_mut()?))
    }

    pub(super) fn get(&self, slot: Slot) -> Option<&Occupant> {
        self.entries.get(slot as usize)?.occupant.as_ref()
    }

    pub(super) fn id(&self, slot: Slot) -> AssociationId {
        let generation = self.entries.get(slot as usize).map_or(0, |entry| entry.generation);
        AssociationId { slot, generation }
    }

    pub(super) fn find(&self, id: AssociationId) -> Option<Slot> {
        let entry = self.entries.get(id.slot as usize)?;
        (entry.generation == id.generation && entry.occupant.is_some()).then_some(id.slot)
    }

    /// Sets whether the slot is in the ready queue; returns whether that changed.
    pub(super) fn set_queued(&mut self, slot: Slot, queued: bool) -> bool {
        match self.entries.get_mut(slot as usize) {
            Some(entry) => std::mem::replace(&mut entry.queued, queued) != queued,
            None => false,
        }
    }
}
