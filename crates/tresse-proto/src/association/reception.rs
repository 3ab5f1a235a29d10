//! The receiving side of an association: what has arrived by TSN (`receiver`) and by stream (`inbound`), kept consistent.
//!
//! `receiver` may report data as non-renegable once `inbound` can deliver it: each step here passes the result of one to the
//! other. Independent of chunk types, states and extensions: the association handles those.

use std::ops::Range;

use tresse_policy::{Instant, PathId};
use tresse_wire::Tsn;

use crate::collections::LazyBox;
use crate::config::AssociationConfig;
use crate::extensions::ecn;
use crate::extensions::reconfig::{Reconfig, SetAsideChunk};
use crate::inbound::{Inbound, InboundData, Refusal, Skipped};
use crate::interface::event::{Message, Part};
use crate::interface::reconfiguration::Streams;
use crate::receiver::Receiver;

/// The receiving side of an association.
pub(crate) struct Reception {
    pub(crate) receiver: Receiver,
    pub(super) inbound: Inbound,
    /// Indices that became deliverable in the current step.
    deliverable: LazyBox<Vec<Range<u64>>>,
    messages: u64,
    bytes: u64,
}

impl Reception {
    pub(super) fn new(receiver: Receiver, inbound: Inbound) -> Self {
        let mut reception =
            Reception { receiver, inbound, deliverable: LazyBox::default(), messages: 0, bytes: 0 };
        reception.inbound.set_origin(reception.receiver.origin());
        reception
    }

    /// Replaces the receiver, because the peer has another initial TSN. It has received and sent nothing yet.
    pub(super) fn begin_again(&mut self, receiver: Receiver) {
        self.receiver = receiver;
        self.inbound.set_origin(self.receiver.origin());
    }

    /// Number of messages and bytes that the application has read.
    pub(super) fn taken(&self) -> (u64, u64) {
        (self.messages, self.bytes)
    }

    /// Returns whether any DATA of the peer has arrived.
    pub(super) fn has_begun(&self) -> bool {
        self.receiver.cumulative() > 0 || self.receiver.has_gaps()
    }

    /// Returns whether new DATA with this index and `len` bytes of user data can be accepted.
    #[inline]
    pub(super) fn takes(&mut self, index: u64, len: usize) -> bool {
        self.fits(index, len) || self.inbound.waits_for_it(index, self.receiver.cumulative())
    }

    /// Returns whether the receive buffer has room for `len` bytes with this index.
    #[inline]
    pub(super) fn fits(&mut self, index: u64, len: usize) -> bool {
        self.inbound.fits(index, self.receiver.highest(), len)
    }

    /// Returns `data`, which has `len` bytes of user data, unless it must wait for a reset of its stream: then it is not
    /// acknowledged, and the peer retransmits it.
    #[inline]
    pub(super) fn admit(
        &mut self,
        reconfig: &mut Reconfig,
        index: u64,
        data: InboundData,
        at: Option<&Range<usize>>,
        len: usize,
    ) -> Option<InboundData> {
        let (arrived, room) = (self.receiver.cumulative(), self.inbound.window());
        let chunk = SetAsideChunk { data, at: at.cloned(), len };
        reconfig.admit(index, chunk, arrived, room, |data| self.inbound.is_next(data))
    }

    /// Index and TSN of the lowest chunk of user data in `packet` that has arrived, now or before.
    #[cold]
    pub(super) fn lowest_of(&self, packet: &[u8]) -> Option<(u64, Tsn)> {
        let highest = self.receiver.highest();
        ecn::lowest_of(packet, |tsn| {
            self.receiver.index_near(tsn).filter(|index| (1..=highest).contains(index))
        })
    }

    /// Accepts new DATA for which there is room. If the stream does not exist, only the TSN is recorded.
    ///
    /// # Errors
    /// The stream does not exist, or the peer violated the protocol.
    #[inline(always)]
    pub(super) fn accept(
        &mut self,
        index: u64,
        content: InboundData,
        at: Option<Range<usize>>,
    ) -> Result<(), Refusal> {
        let deliverable = &mut *self.deliverable;
        deliverable.clear();
        match self.inbound.accept(index, self.receiver.cumulative(), content, at, deliverable) {
            Ok(_) => {
                self.receiver.record(index);
                self.mark_deliverable();
                Ok(())
            }
            Err(Refusal::NoSuchStream) => {
                // The TSN is acknowledged, and its data is discarded (RFC 9260 §6.5).
                self.receiver.record(index);
                self.receiver.mark_deliverable(index..index + 1);
                Err(Refusal::NoSuchStream)
            }
            Err(fault) => Err(fault),
        }
    }

    /// Marks what became deliverable as non-renegable.
    // `always`: called for every chunk, and in most cases with one index.
    #[inline(always)]
    fn mark_deliverable(&mut self) {
        for range in self.deliverable.iter() {
            self.receiver.mark_deliverable(range.clone());
        }
    }

    /// Handles the end of a packet with DATA. With `immediate`, a SACK is due at once if the window has no room for another
    /// packet: the peer then sends none that the SACK could wait for (compare RFC 7053).
    pub(super) fn on_packet_end(&mut self, immediate: bool) {
        self.deliver_partially();
        if immediate && self.receiver.leaves_no_packet(self.inbound.window()) {
            self.receiver.demand();
        }
    }

    /// Delivers parts of a message if the receive buffer would otherwise stay full for ever.
    #[inline]
    pub(super) fn deliver_partially(&mut self) {
        if self.inbound.is_starved() {
            self.hand_out_parts();
        }
    }

    #[cold]
    fn hand_out_parts(&mut self) {
        self.deliverable.clear();
        let (cumulative, gaps) = (self.receiver.cumulative(), self.receiver.has_gaps());
        self.inbound.deliver_partially(cumulative, gaps, &mut self.deliverable);
        self.mark_deliverable();
    }

    /// Handles a message that the application has read. Returns whether the larger window is worth a SACK of its own.
    #[inline]
    pub(super) fn on_taken(&mut self, message: &Message, buffer: usize) -> bool {
        self.messages += u64::from(matches!(message.part, Part::Whole | Part::Last));
        self.bytes += message.payload.len() as u64;
        self.deliver_partially();
        self.receiver.wants_window_update(self.inbound.window(), buffer)
    }

    /// Handles messages that the peer abandoned: those in `skipped`, and all missing chunks up to the index `up_to`.
    ///
    /// # Errors
    /// The messages contradict data that arrived before.
    pub(super) fn skip(&mut self, up_to: u64, skipped: impl Iterator<Item = Skipped>) -> Result<(), Refusal> {
        self.deliverable.clear();
        let outcome = self.inbound.skip(up_to, skipped, &mut self.deliverable);
        self.mark_deliverable();
        outcome
    }

    /// Handles a reset of these streams: from the index `epoch` on, their message numbers begin anew.
    pub(super) fn reset(&mut self, streams: &Streams, epoch: u64) {
        self.deliverable.clear();
        self.inbound.reset(streams, epoch, &mut self.deliverable);
        self.mark_deliverable();
        self.deliverable.clear();
    }

    /// Handles a reset of all streams from the index `epoch` on, and drops incomplete messages before it.
    pub(super) fn forget_all(&mut self, epoch: u64) {
        self.inbound.forget_unfinished(epoch);
        self.reset(&Streams::All, epoch);
    }

    /// Handles a reset of the peer's TSNs: the next one is `next`, and no TSN before it is expected any more (RFC 6525 §5.2.4).
    pub(super) fn renumber(&mut self, next: Tsn) {
        self.receiver.renumber(next);
        self.inbound.set_origin(self.receiver.origin());
        self.forget_all(self.receiver.cumulative() + 1);
    }

    /// Delays SACKs by these settings from the next packet on.
    pub(super) fn adjust(&mut self, config: &AssociationConfig) {
        self.receiver.set_delay(config);
    }

    /// Handles the timers of SACKs. `is_heard` returns whether a path can still carry a SACK. If a SACK left on another path than
    /// its data came over, and nothing arrives on that path any more, the SACK is repeated elsewhere: the window of the peer may
    /// be used up, and then no other packet would cause a SACK before T3 of the peer expires.
    pub(super) fn on_time(&mut self, now: Instant, is_heard: impl Fn(PathId) -> bool) {
        if let Some(path) = self.receiver.pop_watched(now)
            && !is_heard(path)
        {
            self.receiver.demand_elsewhere();
        }
        self.receiver.on_time(now);
    }
}
