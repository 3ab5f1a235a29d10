//! The receiving side of an association: what has arrived by TSN (`receiver`) and by stream (`inbound`), kept in step.
//!
//! Data that `inbound` can deliver, `receiver` may report as non-renegable; each step here passes the result of one to the
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
    /// TSNs that became deliverable with the step at hand.
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

    /// The peer, which has received nothing and sent nothing yet, numbers its DATA for this receiver.
    pub(super) fn begin_again(&mut self, receiver: Receiver) {
        self.receiver = receiver;
        self.inbound.set_origin(self.receiver.origin());
    }

    /// Messages and bytes that the application has taken.
    pub(super) fn taken(&self) -> (u64, u64) {
        (self.messages, self.bytes)
    }

    /// Returns whether anything of the peer has arrived.
    pub(super) fn has_begun(&self) -> bool {
        self.receiver.cumulative() > 0 || self.receiver.has_gaps()
    }

    /// Returns whether new DATA with this index and `len` bytes of user data can be taken.
    #[inline]
    pub(super) fn takes(&mut self, index: u64, len: usize) -> bool {
        self.fits(index, len) || self.inbound.waits_for_it(index, self.receiver.cumulative())
    }

    /// Returns whether the receive buffer has room for `len` bytes with this index.
    #[inline]
    pub(super) fn fits(&mut self, index: u64, len: usize) -> bool {
        self.inbound.fits(index, self.receiver.highest(), len)
    }

    /// DATA with `len` bytes of user data, unless it comes before its stream was reset: not acknowledged, it comes again.
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

    /// Of the data in `packet` the lowest that has arrived, now or before: its index and its TSN.
    #[cold]
    pub(super) fn lowest_of(&self, packet: &[u8]) -> Option<(u64, Tsn)> {
        let highest = self.receiver.highest();
        ecn::lowest_of(packet, |tsn| {
            self.receiver.index_near(tsn).filter(|index| (1..=highest).contains(index))
        })
    }

    /// Takes new DATA for which there is room; of a stream that does not exist, its TSN only.
    ///
    /// # Errors
    /// Why there is nothing to deliver.
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
                // The TSN is acknowledged and its data thrown away (RFC 9260 §6.5).
                self.receiver.record(index);
                self.receiver.mark_deliverable(index..index + 1);
                Err(Refusal::NoSuchStream)
            }
            Err(fault) => Err(fault),
        }
    }

    /// Reports what became deliverable as safe for good.
    // Always: asked for every chunk, and nearly always of one index.
    #[inline(always)]
    fn mark_deliverable(&mut self) {
        for range in self.deliverable.iter() {
            self.receiver.mark_deliverable(range.clone());
        }
    }

    /// The end of a packet with DATA. With `immediate`, a full window is reported at once: without room the peer
    /// sends no second packet, so the SACK must not wait for one (compare RFC 7053).
    pub(super) fn on_packet_end(&mut self, immediate: bool) {
        self.deliver_partially();
        if immediate && self.receiver.leaves_no_packet(self.inbound.window()) {
            self.receiver.demand();
        }
    }

    /// Hands out parts of a message where the receive buffer would stay full for ever.
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

    /// The application has taken a message. Whether the window that this opens is worth a report of its own.
    #[inline]
    pub(super) fn on_taken(&mut self, message: &Message, buffer: usize) -> bool {
        self.messages += u64::from(matches!(message.part, Part::Whole | Part::Last));
        self.bytes += message.payload.len() as u64;
        self.deliver_partially();
        self.receiver.wants_window_update(self.inbound.window(), buffer)
    }

    /// The peer gave up what is `skipped`, with all up to the index `up_to`.
    ///
    /// # Errors
    /// What contradicts what arrived before.
    pub(super) fn skip(&mut self, up_to: u64, skipped: impl Iterator<Item = Skipped>) -> Result<(), Refusal> {
        self.deliverable.clear();
        let outcome = self.inbound.skip(up_to, skipped, &mut self.deliverable);
        self.mark_deliverable();
        outcome
    }

    /// The peer begins anew with index `epoch` on these streams.
    pub(super) fn reset(&mut self, streams: &Streams, epoch: u64) {
        self.deliverable.clear();
        self.inbound.reset(streams, epoch, &mut self.deliverable);
        self.mark_deliverable();
        self.deliverable.clear();
    }

    /// The peer begins anew with index `epoch` on all streams.
    pub(super) fn forget_all(&mut self, epoch: u64) {
        self.inbound.forget_unfinished(epoch);
        self.reset(&Streams::All, epoch);
    }

    /// Numbers the peer's DATA anew from `next` on (RFC 6525 §5.2.4); nothing before it is waited for.
    pub(super) fn renumber(&mut self, next: Tsn) {
        self.receiver.renumber(next);
        self.inbound.set_origin(self.receiver.origin());
        self.forget_all(self.receiver.cumulative() + 1);
    }

    /// Delays reports by these settings from the next packet on.
    pub(super) fn adjust(&mut self, config: &AssociationConfig) {
        self.receiver.set_delay(config);
    }

    /// Lets happen what is due. `is_heard` says whether a path can still carry a report: one that took another way than its
    /// data is repeated where that way has fallen silent, for with a window used up nothing else would follow that could bring
    /// one, until T3 of the peer.
    pub(super) fn on_time(&mut self, now: Instant, is_heard: impl Fn(PathId) -> bool) {
        if let Some(path) = self.receiver.pop_watched(now)
            && !is_heard(path)
        {
            self.receiver.demand_elsewhere();
        }
        self.receiver.on_time(now);
    }
}
