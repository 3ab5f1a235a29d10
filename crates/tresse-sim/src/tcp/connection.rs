//! One end of a connection: both halves, and the conversion of 32-bit numbers on the wire.
//!
//! Both ends begin with number 0, so that a number is the same at both ends, modulo 2^32. Each half ends by itself: an
//! end that has nothing to send never sends a FIN, and is removed when the data of the other end is complete.

use tresse_proto::Instant;

use super::TcpSpec;
use super::receiver::Receiver;
use super::segment::{Segment, WINDOW_SHIFT};
use super::sender::{Outgoing, Sender};

/// One end of a connection.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
    own_port: u16,
    peer_port: u16,
    window: u16,
    /// True if the peer's SYN has arrived, so that there is something to acknowledge.
    met: bool,
    /// Bytes that the application has passed so far.
    payload: u64,
    reset: bool,
}

impl Connection {
    /// An end that has a SYN to send: at once if it opens the connection, else with the acknowledgement of the peer's
    /// SYN.
    pub(super) fn new(spec: &TcpSpec, own_port: u16, peer_port: u16) -> Self {
        Connection {
            sender: Sender::new(spec),
            receiver: Receiver::default(),
            own_port,
            peer_port,
            window: (spec.receive_window >> WINDOW_SHIFT).min(u64::from(u16::MAX)) as u16,
            met: false,
            payload: 0,
            reset: false,
        }
    }

    /// Takes more bytes from the application.
    pub(super) fn hand_over(&mut self, bytes: u64) {
        self.payload = self.payload.saturating_add(bytes);
    }

    /// Ends the application's data. If they were without end, the bytes that have not been sent yet are discarded.
    pub(super) fn finish(&mut self) {
        if self.payload >= ENDLESS {
            self.payload = self.sender.next().saturating_sub(1);
        }
        self.sender.end_after(self.payload);
    }

    /// Returns whether the application has ended its data.
    pub(super) fn is_finished(&self) -> bool {
        self.sender.is_ending()
    }

    /// Returns whether the peer has reset the connection, because it does not know it.
    pub(super) fn is_reset(&self) -> bool {
        self.reset
    }

    /// Returns the time of this end's next timer.
    pub(super) fn due(&self) -> Option<Instant> {
        [self.sender.due(), self.receiver.due()].into_iter().flatten().min()
    }

    /// Takes a segment.
    pub(super) fn on_segment(&mut self, now: Instant, segment: &Segment) {
        if segment.reset {
            self.reset = true;
            return;
        }
        if !self.met && !segment.syn {
            return;
        }
        self.met = true;
        if let Some(acknowledged) = segment.acknowledged {
            let (from, to) = (self.sender.acknowledged(), self.sender.next());
            let cumulative = widen(acknowledged, from);
            if cumulative <= to {
                let blocks: Vec<(u64, u64)> = segment
                    .blocks
                    .iter()
                    .map(|(start, end)| (widen(*start, cumulative), widen(*end, cumulative)))
                    .filter(|(start, end)| cumulative < *start && start < end && *end <= to)
                    .collect();
                let window = u64::from(segment.window) << WINDOW_SHIFT;
                self.sender.on_acknowledgement(now, cumulative.max(from), &blocks, window);
            }
        }
        let next = self.receiver.next();
        let start = widen(segment.sequence, next);
        let length = u64::from(segment.length) + u64::from(segment.syn) + u64::from(segment.fin);
        if start + length <= next + (u64::from(self.window) << WINDOW_SHIFT) {
            self.receiver.on_segment(now, start, length, segment.fin);
        }
    }

    /// Handles the retransmission timer if it is due.
    pub(super) fn on_time(&mut self, now: Instant) {
        if self.sender.due().is_some_and(|at| at <= now) {
            self.sender.on_timeout(now);
        }
    }

    /// Returns the next segment that is to be sent now, if there is one.
    pub(super) fn transmit(&mut self, now: Instant) -> Option<Segment> {
        if let Some(outgoing) = self.sender.transmit(now, self.payload) {
            return Some(self.segment(outgoing));
        }
        self.receiver.due().filter(|at| self.met && *at <= now)?;
        Some(self.segment(Outgoing { start: self.sender.next(), length: 0, fin: false }))
    }

    fn segment(&mut self, outgoing: Outgoing) -> Segment {
        let Outgoing { start, length, fin } = outgoing;
        let syn = start == 0 && length > 0;
        self.receiver.on_acknowledged();
        Segment {
            source_port: self.own_port,
            destination_port: self.peer_port,
            sequence: start as u32,
            acknowledged: self.met.then_some(self.receiver.next() as u32),
            syn,
            fin,
            reset: false,
            // Never more than a full segment, because the sender cuts them.
            length: (length - u64::from(syn) - u64::from(fin)) as u16,
            window: self.window,
            blocks: self.receiver.beyond().iter().map(|(start, end)| (*start as u32, *end as u32)).collect(),
        }
    }
}

/// Bytes of an application that sends without end: more than any run carries.
pub(super) const ENDLESS: u64 = u64::MAX / 4;

/// Returns the number near `near` whose lower 32 bits are `wire`; 0 if it would be negative.
fn widen(wire: u32, near: u64) -> u64 {
    let distance = i64::from(wire.wrapping_sub(near as u32) as i32);
    near.saturating_add_signed(distance)
}

#[cfg(test)]
mod tests;
