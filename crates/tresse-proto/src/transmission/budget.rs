//! New data that a path may send now: bounded by its window, the peer's window and the split buffers.

use tresse_policy::PathId;
use tresse_policy::sharing::reinject::chunk_rescheduling::{EarlyArrivals, Threshold};

use super::{PathLoad, Transmission};
use crate::config::{BufferPolicy, BufferSplit, ChunkRescheduling, EqualParts, PeerWindowTest, SplitCounts};
use crate::interface::stats::Limit;

/// Verdict on one packet of new data for a path.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// The packet may leave, with at most this many bytes of chunks: the peer can accept these.
    Go(usize),
    /// The packet has to wait, for this reason.
    Wait(Limit),
}

impl Transmission {
    /// Returns the verdict on one packet of new data on `path`. `cwnd` is the path's congestion window and `chunk` the size of
    /// its largest chunk, in bytes; `paths` is the number of all paths.
    ///
    /// The congestion window is a gate: a packet may exceed it by less than one full chunk (RFC 9260 §6.1 B). An allocation by
    /// demand only keeps queues short, so `urgent` data may exceed it.
    pub(crate) fn verdict(
        &self,
        path: PathId,
        cwnd: usize,
        chunk: usize,
        paths: usize,
        urgent: impl Fn() -> bool,
    ) -> Verdict {
        let Some(load) = self.outstanding.load(path) else { return Verdict::Wait(Limit::Path) };
        if self.fills(path, cwnd) {
            // Duplicates fill the window: if a buffer would block new data without them, the buffer is the limit.
            let copied = self.copies.flight_on(path);
            if copied == 0 {
                return Verdict::Wait(Limit::CongestionWindow);
            }
            let without_copies = load.flight - copied;
            return match self.buffers(path, load, chunk, paths, urgent) {
                full @ Verdict::Wait(_) if without_copies < cwnd => full,
                _ => Verdict::Wait(Limit::CongestionWindow),
            };
        }
        let copies_first = self.copies.is_of_everything() && self.next_copy(path).is_some();
        if !load.lost.is_empty() || self.outstanding.assigned_on(path) > 0 || copies_first {
            // Lost chunks leave first (RFC 9260 §6.1 C), then chunks with lower TSNs.
            return Verdict::Wait(Limit::CongestionWindow);
        }
        self.buffers(path, load, chunk, paths, urgent)
    }

    /// Returns whether the bytes in flight fill a congestion window of `cwnd` bytes on `path`: then no new data may leave
    /// there, whatever the rest of the [`verdict`](Self::verdict). If no chunk of the ring is in flight, duplicates that await
    /// an acknowledgement of their path do not block new data.
    #[inline]
    pub(crate) fn fills(&self, path: PathId, cwnd: usize) -> bool {
        self.outstanding.flight > 0 && self.outstanding.flight_on(path) >= cwnd
    }

    /// Returns the verdict on a packet of new data that is to wait for the window of `path`, where at most `most` bytes may
    /// wait. The other parameters are those of [`verdict`](Self::verdict).
    pub(crate) fn verdict_ahead(&self, path: PathId, most: usize, chunk: usize, paths: usize) -> Verdict {
        let Some(load) = self.outstanding.load(path) else { return Verdict::Wait(Limit::Path) };
        if self.outstanding.assigned_on(path) + chunk > most {
            return Verdict::Wait(Limit::CongestionWindow);
        }
        // This applies whatever `peer_window_test` is: chunks that leave later have higher TSNs, and if the peer accepted those
        // in the room for a waiting chunk, it could never accept that chunk.
        if self.outstanding.flight + self.outstanding.assigned() > 0 && self.room_at_peer() < chunk {
            return Verdict::Wait(Limit::ReceiveBuffer);
        }
        self.buffers(path, load, chunk, paths, || false)
    }

    /// Bytes that the peer can accept beyond those in flight and those assigned to paths.
    #[inline]
    pub(crate) fn room_at_peer(&self) -> usize {
        self.peer_window().saturating_sub(self.outstanding.assigned())
    }

    /// Verdict of the buffers of both sides.
    #[inline]
    fn buffers(
        &self,
        path: PathId,
        load: &PathLoad,
        chunk: usize,
        paths: usize,
        urgent: impl Fn() -> bool,
    ) -> Verdict {
        if let Some(limit) = load.suspended_by(self.rules.buffers) {
            return Verdict::Wait(limit);
        }
        let window = self.room_at_peer();
        if self.outstanding.flight + self.outstanding.assigned() == 0 {
            // RFC 9260 §6.1 A: one chunk may be in flight whatever window the peer advertised. The caller checks whether others
            // may follow in the same packet.
            return if window < chunk && self.abandoned_probe().is_some() {
                Verdict::Wait(Limit::ReceiveBuffer)
            } else {
                Verdict::Go(window.max(chunk))
            };
        }
        // The room that is reserved for assigned chunks must not be used up.
        let test = if self.outstanding.assigned() > 0 {
            PeerWindowTest::Packet
        } else {
            self.rules.peer_window_test
        };
        let (full, window) = match test {
            // Room for less than a full chunk is not worth a packet while an acknowledgement is outstanding (the sender's half
            // of silly window avoidance, RFC 1122 §4.2.3.4).
            PeerWindowTest::Packet => (window < chunk, window),
            PeerWindowTest::Sack if self.window_full => (load.flight > 0, chunk),
            PeerWindowTest::Sack => (false, window.max(chunk)),
        };
        if full {
            return Verdict::Wait(Limit::ReceiveBuffer);
        }
        let blocked = match self.rules.buffers {
            BufferPolicy::None => None,
            BufferPolicy::Equal(parts) => self.exceeds_part(parts, path, load, chunk, paths),
            BufferPolicy::Adaptive { always: false, parts, .. } if load.allocation().is_none() => {
                self.exceeds_part(parts, path, load, chunk, paths)
            }
            BufferPolicy::Adaptive { .. } => self.allocation_used_up(path, load).filter(|_| !urgent()),
        };
        match blocked {
            Some(limit) => Verdict::Wait(limit),
            None => Verdict::Go(window),
        }
    }

    /// Returns the buffer, if any, of which the path has used up its equal part (buffer splitting, GLOBECOM 2010 paper, §IV).
    fn exceeds_part(
        &self,
        parts: EqualParts,
        path: PathId,
        load: &PathLoad,
        chunk: usize,
        paths: usize,
    ) -> Option<Limit> {
        let bytes = match parts.counts {
            SplitCounts::Queued => load.queued,
            SplitCounts::Outstanding => self.owned_by(path, load),
        };
        // Computed for every packet: a division would cost more than all the rest.
        let exceeds = |bytes: usize, buffer: usize| bytes.saturating_mul(paths.max(1)) > buffer;
        let booked = if parts.overbook { bytes } else { bytes + chunk };
        let sender = matches!(parts.buffers, BufferSplit::Sender | BufferSplit::Both);
        let receiver = matches!(parts.buffers, BufferSplit::Receiver | BufferSplit::Both);
        // A path that owns nothing of the buffer may always send one packet: a part smaller than a packet must not stop the
        // path.
        if bytes == 0 {
            return None;
        }
        if receiver && exceeds(booked, self.peer_window() + self.outstanding.flight) {
            return Some(Limit::ReceiveBuffer);
        }
        if sender && exceeds(bytes + chunk, self.rules.send_buffer) {
            return Some(Limit::SendBuffer);
        }
        None
    }

    /// Bytes of a buffer that a path owns: in flight or assigned. Duplicates own none.
    fn owned_by(&self, path: PathId, load: &PathLoad) -> usize {
        load.flight - self.copies.flight_on(path) + self.outstanding.assigned_on(path)
    }

    /// The buffer that is allocated to the paths, in bytes and by name: the smaller of the split buffers; `None` if none is
    /// split.
    pub(crate) fn shared_buffer(&self) -> Option<(usize, Limit)> {
        let (send, receive) = (self.rules.send_buffer, self.announced().max(self.outstanding.flight));
        match self.rules.buffers.split() {
            BufferSplit::None => None,
            BufferSplit::Sender => Some((send, Limit::SendBuffer)),
            BufferSplit::Receiver => Some((receive, Limit::ReceiveBuffer)),
            BufferSplit::Both if receive < send => Some((receive, Limit::ReceiveBuffer)),
            BufferSplit::Both => Some((send, Limit::SendBuffer)),
        }
    }

    /// Bytes of consecutive data that both buffers can hold: the size of the smaller one.
    pub(crate) fn whole_buffer(&self) -> usize {
        self.rules.send_buffer.min(self.widest as usize)
    }

    /// Sets the bytes that each path may own, by position, of the buffer named by `limit`. Other paths have no allocation.
    pub(crate) fn allocate(&mut self, allocation: &[usize], limit: Limit) {
        for (position, load) in self.outstanding.loads.iter_mut().enumerate() {
            let bytes = allocation.get(position).copied();
            (load.allocated, load.allocated_of) = (bytes.unwrap_or_default(), bytes.map(|_| limit));
        }
    }

    /// Ends the suspension of all paths until the buffers are allocated again; returns whether a path was suspended.
    pub(crate) fn resume_paths(&mut self) -> bool {
        let any = self.outstanding.loads.iter().any(|load| load.suspended_by(self.rules.buffers).is_some());
        for load in &mut self.outstanding.loads {
            load.allocated = load.allocated.max(1);
        }
        any
    }

    /// Returns the buffer of which a path has used up its allocation, if any. The allocation is compared with the bytes in
    /// flight and assigned, whatever the path blocks at the peer. Like the congestion window it is a gate: a packet may exceed
    /// it, so that rounding costs no path a packet. A path with nothing in flight may always send one packet, unless it is
    /// suspended.
    fn allocation_used_up(&self, path: PathId, load: &PathLoad) -> Option<Limit> {
        let (bytes, limit) = load.allocation()?;
        let owned = self.owned_by(path, load);
        (owned > 0 && owned >= bytes).then_some(limit)
    }

    /// Bytes that may still be sent before one of the buffers is full.
    pub(crate) fn headroom(&self) -> usize {
        let kept: usize = self.outstanding.loads.iter().map(|load| load.queued).sum();
        self.peer_window().min(self.rules.send_buffer.saturating_sub(kept))
    }

    /// Returns whether a chunk of `len` bytes gets the I bit (RFC 7053 §4.2), where a full chunk has `full` bytes. The buffers
    /// are full, so no chunk follows it, and the peer would delay its SACK for a second packet. With many packets in flight the
    /// bit is not needed, unless early arrivals hold the buffers: the SACKs for those packets let other chunks follow.
    pub(crate) fn wants_report(&self, len: usize, full: usize) -> bool {
        self.rules.immediate_sack_when_full
            && self.headroom() < len + full
            && (self.outstanding.flight <= FEW_PACKETS * full || self.outstanding.held_early() > 0)
    }

    /// Returns whether early arrivals of `path` hold more of a buffer than the threshold in the settings: of one that the rule
    /// for reinjection names, or of the path's part of it if buffers are split between `paths` paths.
    pub(crate) fn fills_buffer_early(&self, path: PathId, paths: usize) -> bool {
        let Some(load) = self.outstanding.load(path) else { return false };
        let early = EarlyArrivals {
            kept: self.kept(path, load),
            promised: load.promised,
            send_buffer: self.rules.send_buffer,
            receive_buffer: self.peer_window()
                + self.outstanding.held.saturating_sub(self.outstanding.assigned()),
        };
        let parts = if self.rules.buffers == BufferPolicy::None { 1 } else { paths };
        let threshold = Threshold { percent: self.rules.rescheduling_threshold, parts };
        match self.rules.chunk_rescheduling {
            ChunkRescheduling::Off | ChunkRescheduling::ByDeadline => false,
            ChunkRescheduling::Sender => early.fill_sender(threshold),
            ChunkRescheduling::Receiver => early.fill_receiver(threshold),
            ChunkRescheduling::Both => early.fill_sender(threshold) || early.fill_receiver(threshold),
        }
    }

    /// Bytes of `path` that arrived before a chunk with a lower TSN, as far as reported; lost chunks that wait for `path` count
    /// too.
    pub(crate) fn early_on(&self, path: PathId) -> usize {
        self.outstanding.load(path).map_or(0, |load| self.kept(path, load) + load.promised)
    }

    /// Bytes that the sender keeps although they are neither in flight nor assigned: acknowledged by gap ack blocks, or lost.
    fn kept(&self, path: PathId, load: &PathLoad) -> usize {
        (load.queued + self.copies.flight_on(path))
            .saturating_sub(load.flight + self.outstanding.assigned_on(path))
    }
}

/// Number of full packets in flight up to which the last one may be a single packet: the peer acknowledges every second one.
const FEW_PACKETS: usize = 2;
