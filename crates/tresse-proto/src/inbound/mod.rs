//! Received data on its way to the application: reassembled, put in order, and kept until the application takes it.
//!
//! Owns the receive buffer and the receiving side of the streams. Uses indices (a message has its TSN as well, for
//! applications) and is independent of SACKs: it returns the deliverable indices and the size of the window, and the
//! association passes them on.

mod consecutive;
mod indices;
mod interleaved;
#[cfg(any(test, feature = "invariants"))]
mod invariants;
mod joined;
mod ordered;
mod partial;
mod reader;
mod skip;
mod window;

use std::collections::VecDeque;
use std::ops::Range;

use tresse_wire::Tsn;

use crate::config::AssociationConfig;
use crate::fragment::DataFormat;
use crate::interface::event::{Message, Part, Payload};
use crate::interface::reconfiguration::Streams;

use joined::{Dropped, Joined, Step, cut, whole};
use ordered::Ordered;
use partial::Starved;
use reader::Reader;
use window::Window;

pub(crate) use skip::Skipped;

/// Fragment from a DATA or I-DATA chunk; its payload is a slice of the packet.
pub(crate) use crate::fragment::Fragment as InboundData;

/// Reason for which a chunk is refused.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    /// Its stream does not exist. The TSN is acknowledged nevertheless, and an ERROR with cause 1 is sent (RFC 9260 §6.5).
    NoSuchStream,
    /// It contradicts what arrived before. The association cannot continue, and is to be aborted.
    Protocol(&'static str),
}

/// The receiving side of all streams of an association.
#[derive(Debug)]
pub(crate) struct Inbound {
    /// Number of streams.
    streams: u16,
    /// The TSN with index 0.
    origin: Tsn,
    window: Window,
    reader: Reader,
    ordered: Ordered,
    /// Messages that are complete and in order, and parts of messages that are delivered in parts; not yet taken.
    ready: VecDeque<Message>,
    /// Number of these that were already checked for messages that are not the application's.
    sifted: u32,
    /// A chunk that found no room, until another chunk is accepted.
    starved: Option<Starved>,
    /// Number of chunks dropped because their messages were abandoned.
    given_up: u64,
}

impl Inbound {
    /// Creates an empty receive buffer for `streams` streams and chunks of the kind `data_format`. `lenient` is true if the
    /// peer may abandon messages (RFC 3758).
    pub(crate) fn new(
        config: &AssociationConfig,
        streams: u16,
        data_format: DataFormat,
        lenient: bool,
    ) -> Self {
        let point = match config.partial_delivery_point.0 {
            0 => usize::MAX,
            point => point,
        };
        Inbound {
            streams,
            origin: Tsn(0),
            window: Window::new(config.receive_buffer.0, config.mtu.0),
            reader: Reader::new(data_format, point, lenient),
            ordered: Ordered::new(data_format, lenient),
            ready: VecDeque::new(),
            sifted: 0,
            starved: None,
            given_up: 0,
        }
    }

    /// Accepts the chunk with `index`, which is new and has room ([`Self::fits`]), if everything up to `cumulative` arrived
    /// before it. If `at` is given, only that range of the payload is user data. Appends to `deliverable` the indices of
    /// everything that became deliverable: of this message and of those that waited for it. A chunk of an abandoned message is
    /// acknowledged and discarded.
    ///
    /// # Errors
    /// See [`Refusal`]; the chunk is dropped.
    // Always: otherwise the chunk is copied through memory.
    #[inline(always)]
    pub(crate) fn accept(
        &mut self,
        index: u64,
        cumulative: u64,
        mut data: InboundData,
        at: Option<Range<usize>>,
        deliverable: &mut Vec<Range<u64>>,
    ) -> Result<(), Refusal> {
        if data.stream.0 >= self.streams {
            return Err(Refusal::NoSuchStream);
        }
        if data.flags.beginning() && data.flags.ending() {
            return self.accept_whole(index, data, at, deliverable);
        }
        let (header, len) = (self.header_len(), length(&data, at.as_ref()));
        if let Some(run) = self.reader.grown_by(index, &data, len) {
            self.starved = None;
            self.window.hold(header + len);
            run.append(data.payload, at, len);
            return Ok(());
        }
        cut(&mut data.payload, at);
        self.accept_fragment(index, cumulative, data, deliverable)
    }

    /// Returns whether there is room for a new chunk with `index` and `len` bytes of user data; `highest` is the highest index
    /// that has arrived.
    ///
    /// Beyond `highest` the buffer is the limit. A chunk below it fills a gap, and the data behind the gap cannot leave the
    /// buffer without it: for such chunks the limit is twice the buffer (RFC 9260 §6.2 lets a receiver drop the highest TSNs
    /// instead; this one never drops acknowledged data). An empty buffer takes any chunk.
    #[inline]
    pub(crate) fn fits(&mut self, index: u64, highest: u64, len: usize) -> bool {
        let (fills_gap, len) = (index < highest, self.header_len() + len);
        let fits = self.window.fits(len, fills_gap);
        // A chunk that fills a gap is kept on record: other data waits for it, whereas data beyond the highest index waits
        // anyway.
        if !fits && !self.starved.is_some_and(|starved| starved.fills_gap) {
            self.starved = Some(Starved { len, fills_gap });
        }
        fits
    }

    /// Returns whether the chunk that has just found no room is accepted nevertheless: it fills the first gap and nothing is
    /// ready, so the held data could wait for ever for a chunk longer than the buffer. This happens once before something is
    /// delivered, so the excess is one chunk, beside one that an empty buffer took.
    pub(crate) fn waits_for_it(&self, index: u64, cumulative: u64) -> bool {
        let fills_gap = self.starved.is_some_and(|starved| starved.fills_gap);
        index == cumulative + 1 && fills_gap && self.ready.is_empty() && self.window.has_room_for_one()
    }

    /// Counts a packet of `len` bytes that brought data to keep.
    #[inline]
    pub(crate) fn on_packet(&mut self, len: usize) {
        self.window.on_packet(len);
    }

    /// Returns whether so much is held that small chunks of large packets should be copied, to free the packets.
    #[inline]
    pub(crate) fn is_crowded(&self) -> bool {
        self.window.is_crowded()
    }

    /// Checks at the end of a packet that held fragments can still become messages, when everything up to `cumulative` has
    /// arrived or was skipped. Fragments of abandoned messages are dropped.
    ///
    /// # Errors
    /// [`Refusal::Protocol`] if the fragment before or after an incomplete message belongs to another message, and the peer may
    /// not abandon messages.
    #[inline]
    pub(crate) fn check_progress(&mut self, cumulative: u64) -> Result<(), Refusal> {
        self.ordered.note_cumulative(cumulative);
        if self.reader.is_stuck(cumulative) {
            let dropped = self.reader.check_progress(cumulative).map_err(Refusal::Protocol)?;
            self.give_up(dropped);
        }
        Ok(())
    }

    /// Number of streams.
    pub(crate) fn stream_count(&self) -> u16 {
        self.streams
    }

    /// Adds `count` streams, numbered after the present ones.
    pub(crate) fn add_streams(&mut self, count: u16) {
        self.streams = self.streams.saturating_add(count);
    }

    /// Returns whether a chunk, which has the index after the cumulative one, belongs to the message that its stream expects
    /// next.
    pub(crate) fn is_next(&self, data: &InboundData) -> bool {
        data.flags.unordered() || self.ordered.is_next(data.stream, data.mid.0)
    }

    /// Restarts streams at SSN 0, or at MID 0 in both orders (RFC 6525 §5.2.2 E3; RFC 8260 §2.3.2). Data with an index of
    /// `epoch` or more already has the new numbers. Appends to `deliverable` the indices that became deliverable.
    pub(crate) fn reset(&mut self, streams: &Streams, epoch: u64, deliverable: &mut Vec<Range<u64>>) {
        self.ordered.reset(streams, epoch, |indices, message| {
            indices.append_to(deliverable);
            self.ready.push_back(message);
        });
    }

    /// Drops incomplete messages with an index below `epoch`: the peer restarts all numbers, and has abandoned them.
    pub(crate) fn forget_unfinished(&mut self, epoch: u64) {
        let dropped = self.reader.forget(epoch);
        self.give_up(dropped);
    }

    /// Takes the next message, and releases its bytes.
    pub(crate) fn recv(&mut self) -> Option<Message> {
        // The message is only borrowed here: another move of it would cost more than the rest of the function.
        let message = self.ready.pop_front();
        if let Some(message) = &message {
            self.sifted = self.sifted.saturating_sub(1);
            self.release(message.payload.len(), message.payload.pieces().len());
            if self.ready.is_empty() && self.ready.capacity() > KEPT_WHEN_EMPTY {
                self.ready = VecDeque::new();
            }
        }
        message
    }

    /// Takes a message that is not the application's, as `is_other` determines, before the messages that became ready earlier;
    /// the order of its stream is kept. Each message is checked once.
    pub(crate) fn take_matching(&mut self, is_other: impl Fn(&Message) -> bool) -> Option<Message> {
        while let Some(message) = self.ready.get(self.sifted as usize) {
            if is_other(message) {
                let message = self.ready.remove(self.sifted as usize)?;
                self.release(message.payload.len(), message.payload.pieces().len());
                return Some(message);
            }
            self.sifted += 1;
        }
        None
    }

    /// Returns whether no data that has arrived waits for data that is missing.
    pub(crate) fn is_complete(&self) -> bool {
        let ready = self.ready.iter().flat_map(|message| message.payload.pieces());
        let ready: usize = ready.map(|piece| piece.len() + self.header_len()).sum();
        self.window.used() == ready
    }

    /// Takes over the ready messages of `old`, in the order of their streams: they outlast their association. Messages that
    /// were delivered in parts end as abandoned.
    pub(crate) fn keep_ready(&mut self, old: Inbound) {
        for message in old.ready {
            let header = self.header_len();
            message.payload.pieces().iter().for_each(|piece| self.window.hold(header + piece.len()));
            self.ready.push_back(message);
        }
        self.ready.extend(old.reader.into_open_ends());
    }

    /// Returns the number of messages and parts that wait to be taken.
    pub(crate) fn ready_count(&self) -> usize {
        self.ready.len()
    }

    /// Returns whether a message waits to be taken.
    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Returns the window to announce (a_rwnd), in bytes; 0 instead of a uselessly small one.
    pub(crate) fn window(&self) -> usize {
        self.window.announced()
    }

    /// Returns the bytes of chunks in the receive buffer: out of order, incomplete, or ready and not yet taken.
    pub(crate) fn used(&self) -> usize {
        self.window.used()
    }

    /// Returns the number of chunks dropped so far because their messages were abandoned (RFC 3758).
    pub(crate) fn given_up(&self) -> u64 {
        self.given_up
    }

    /// Accepts a chunk with a whole message, as most chunks are.
    #[inline(always)]
    fn accept_whole(
        &mut self,
        index: u64,
        mut data: InboundData,
        at: Option<Range<usize>>,
        deliverable: &mut Vec<Range<u64>>,
    ) -> Result<(), Refusal> {
        let wanted = self.reader.check_whole(index, &data, &self.ordered).map_err(Refusal::Protocol)?;
        self.starved = None;
        if !wanted {
            self.given_up += 1;
            return Ok(());
        }
        self.window.hold(self.header_len() + length(&data, at.as_ref()));
        if data.flags.unordered() || self.ordered.pass(data.stream, data.mid.0, index) {
            deliverable.push(index..index + 1);
            let tsn = self.tsn_of(index);
            self.ready.push_back(whole(tsn, data));
            // Cut in its place in the queue, which saves a move of the message.
            if let Some(Payload::Whole(payload)) = self.ready.back_mut().map(|message| &mut message.payload) {
                cut(payload, at);
            }
            return Ok(());
        }
        cut(&mut data.payload, at);
        self.deliver(Joined::whole(index, self.tsn_of(index), data), deliverable)
    }

    fn accept_fragment(
        &mut self,
        index: u64,
        cumulative: u64,
        data: InboundData,
        deliverable: &mut Vec<Range<u64>>,
    ) -> Result<(), Refusal> {
        let len = data.payload.len();
        let step = self.reader.add(index, cumulative, data, &self.ordered).map_err(Refusal::Protocol)?;
        self.starved = None;
        if !matches!(step, Step::Dropped) {
            self.window.hold(self.header_len() + len);
        }
        match step {
            Step::Complete(mut joined) => {
                joined.message.tsn = self.tsn_of(joined.indices.first());
                self.deliver(joined, deliverable)
            }
            Step::Held => Ok(()),
            Step::Part(part) => {
                self.deliver_part(part, deliverable);
                Ok(())
            }
            Step::Dropped => {
                self.given_up += 1;
                Ok(())
            }
        }
    }

    fn deliver(&mut self, mut joined: Joined, deliverable: &mut Vec<Range<u64>>) -> Result<(), Refusal> {
        if joined.message.part == Part::Last {
            self.rejoin(&mut joined.message);
        }
        if joined.message.unordered {
            joined.indices.append_to(deliverable);
            self.ready.push_back(joined.message);
            return Ok(());
        }
        let (bytes, chunks) = (joined.message.payload.len(), joined.message.payload.pieces().len());
        let placed = self.ordered.place(joined, |indices, message| {
            indices.append_to(deliverable);
            self.ready.push_back(message);
        });
        match placed {
            Ok(true) => {}
            Ok(false) => self.give_up(Dropped { bytes, chunks, ends: Vec::new() }),
            // The fault dropped the message: its bytes are released.
            Err(_) => self.release(bytes, chunks),
        }
        placed.map(drop).map_err(Refusal::Protocol)
    }

    /// Sets the TSN of index 0 of the peer's DATA.
    pub(crate) fn set_origin(&mut self, origin: Tsn) {
        self.origin = origin;
    }

    #[inline]
    fn tsn_of(&self, index: u64) -> Tsn {
        Tsn(self.origin.0.wrapping_add(index as u32))
    }

    /// Returns the bytes of a chunk before its user data.
    #[inline]
    fn header_len(&self) -> usize {
        self.ordered.data_format().header_len()
    }

    /// Releases `chunks` chunks with `len` bytes of user data together.
    #[inline]
    fn release(&mut self, len: usize, chunks: usize) {
        self.window.release(len + chunks * self.header_len(), chunks);
    }

    /// Releases chunks that will never be delivered.
    fn give_up(&mut self, dropped: Dropped) {
        if dropped.chunks == 0 && dropped.ends.is_empty() {
            return;
        }
        self.release(dropped.bytes, dropped.chunks);
        self.given_up += dropped.chunks as u64;
        self.ready.extend(dropped.ends);
    }
}

/// Returns the bytes of user data of a chunk.
#[inline]
fn length(data: &InboundData, at: Option<&Range<usize>>) -> usize {
    at.map_or(data.payload.len(), |at| at.len())
}

/// Capacity, in messages, that an empty ready queue keeps; after a longer backlog its memory is freed.
const KEPT_WHEN_EMPTY: usize = 1024;

#[cfg(test)]
mod tests;
