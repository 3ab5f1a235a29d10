//! Sending half of a connection: data in flight, losses, and the segments to send now.
//!
//! It has loss recovery with selective acknowledgements (RFC 6675), timeouts (RFC 6298 §5), and thereby limited
//! transmit (RFC 3042). Numbers are offsets from its own SYN, which has number 0. Independent of ports and of the
//! format of segments.

use std::collections::VecDeque;

use tresse_proto::Instant;

use super::TcpSpec;
use super::reno::Reno;
use super::rtt::RoundTrip;
use super::segment::MSS;

/// Segment to send: the numbers `[start, start + length)`, SYN and FIN included.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Outgoing {
    pub(super) start: u64,
    pub(super) length: u64,
    pub(super) fin: bool,
}

/// Sending side of a connection.
#[derive(Clone, Debug)]
pub(super) struct Sender {
    /// Segments that are not acknowledged cumulatively yet, in order.
    sent: VecDeque<Sent>,
    /// Number before which everything is acknowledged.
    acknowledged: u64,
    /// The next number to be used.
    next: u64,
    /// The number of the FIN, once the application has ended its data.
    end: Option<u64>,
    /// Estimated bytes in flight ("pipe" in RFC 6675).
    flight: u64,
    /// The highest number that was acknowledged selectively.
    highest: u64,
    /// The present recovery, to which losses up to its end belong.
    recovery: Option<Recovery>,
    window: Reno,
    round_trip: RoundTrip,
    peer_window: u64,
    timer: Option<Instant>,
    pub(super) counters: Counters,
}

/// Counters of a sender.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counters {
    /// Segments with data sent, retransmissions included.
    pub(crate) sent: u64,
    /// Retransmitted segments among these.
    pub(crate) resent: u64,
    /// Expirations of the retransmission timer.
    pub(crate) timeouts: u64,
    /// Windows halved because selective acknowledgements showed a loss.
    pub(crate) recoveries: u64,
}

impl Counters {
    /// Returns the sums of both.
    pub(super) fn plus(self, other: Self) -> Self {
        Counters {
            sent: self.sent + other.sent,
            resent: self.resent + other.resent,
            timeouts: self.timeouts + other.timeouts,
            recoveries: self.recoveries + other.recoveries,
        }
    }

    /// Returns the counts since `earlier`.
    pub(super) fn since(self, earlier: Self) -> Self {
        Counters {
            sent: self.sent - earlier.sent,
            resent: self.resent - earlier.resent,
            timeouts: self.timeouts - earlier.timeouts,
            recoveries: self.recoveries - earlier.recoveries,
        }
    }
}

#[derive(Copy, Clone, Debug)]
struct Sent {
    start: u64,
    length: u64,
    at: Instant,
    fate: SegmentState,
    again: bool,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum SegmentState {
    UnderWay,
    Arrived,
    Lost,
}

#[derive(Copy, Clone, Debug)]
struct Recovery {
    until: u64,
    by_timeout: bool,
}

impl Sender {
    /// A sender with a SYN to send.
    pub(super) fn new(spec: &TcpSpec) -> Self {
        Sender {
            sent: VecDeque::new(),
            acknowledged: 0,
            next: 0,
            end: None,
            flight: 0,
            highest: 0,
            recovery: None,
            window: Reno::new(spec.initial_window),
            round_trip: RoundTrip::new(spec.rto_min),
            peer_window: 0,
            timer: None,
            counters: Counters::default(),
        }
    }

    /// Ends the data after `bytes` bytes in total; a FIN follows.
    pub(super) fn end_after(&mut self, bytes: u64) {
        self.end = Some(1 + bytes);
    }

    /// Returns whether the application has ended its data.
    pub(super) fn is_ending(&self) -> bool {
        self.end.is_some()
    }

    /// Returns whether the SYN was acknowledged.
    pub(super) fn is_open(&self) -> bool {
        self.acknowledged > 0
    }

    /// Returns whether the FIN was acknowledged.
    pub(super) fn is_done(&self) -> bool {
        self.end.is_some_and(|end| self.acknowledged > end)
    }

    /// Returns the next number to be used.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Returns the number before which everything is acknowledged.
    pub(super) fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Returns the time at which the retransmission timer expires, if it runs.
    pub(super) fn due(&self) -> Option<Instant> {
        self.timer
    }

    /// Returns the congestion window, in bytes.
    #[cfg(test)]
    pub(super) fn window(&self) -> u64 {
        self.window.window()
    }

    /// Takes an acknowledgement of everything before `cumulative`, and of the blocks beyond. The caller has checked
    /// that `cumulative` is in `acknowledged..=next`.
    pub(super) fn on_acknowledgement(
        &mut self,
        now: Instant,
        cumulative: u64,
        blocks: &[(u64, u64)],
        peer_window: u64,
    ) {
        self.peer_window = peer_window;
        let was_full = self.flight + u64::from(MSS) > self.window.window();
        let before = self.acknowledged;
        let mut sample = None;
        while let Some(first) = self.sent.front().copied()
            && first.start + first.length <= cumulative
        {
            self.sent.pop_front();
            self.leaves_flight(first);
            if !first.again && first.fate != SegmentState::Arrived {
                sample = Some(now.since(first.at));
            }
        }
        self.acknowledged = cumulative.max(before);
        let newly = self.mark_arrived(now, blocks, &mut sample);
        if let Some(sample) = sample {
            self.round_trip.on_sample(sample);
        }
        if newly || self.recovery.is_some() {
            self.mark_lost();
        }
        self.follow_recovery();
        let progress = self.acknowledged - before;
        if progress > 0 {
            if was_full && self.recovery.is_none_or(|recovery| recovery.by_timeout) {
                self.window.on_acknowledged(progress);
            }
            self.timer = (!self.sent.is_empty()).then(|| now + self.round_trip.timeout());
        }
    }

    /// The retransmission timer expired: every segment that was not acknowledged selectively counts as lost.
    pub(super) fn on_timeout(&mut self, now: Instant) {
        self.counters.timeouts += 1;
        let again = self.recovery.is_some_and(|recovery| recovery.by_timeout);
        if self.is_open() && !again {
            // FlightSize includes selectively acknowledged data. If a retransmission is lost, new data continues to be
            // sent until the timer expires, and FlightSize grows to several windows. RFC 5681 §3.1 bounds ssthresh by
            // half of it; half of the window before the loss is the other bound.
            let whole = self.window.window() * if self.recovery.is_some() { 2 } else { 1 };
            self.window.on_timeout((self.next - self.acknowledged).min(whole));
        } else {
            self.window.restart();
        }
        for segment in &mut self.sent {
            if segment.fate == SegmentState::UnderWay {
                segment.fate = SegmentState::Lost;
                self.flight -= segment.length;
            }
        }
        self.recovery = Some(Recovery { until: self.next, by_timeout: true });
        self.round_trip.back_off();
        self.timer = Some(now + self.round_trip.timeout());
    }

    /// Returns the next segment, if window and application allow one: first lost data, then new data. `payload` is the
    /// number of bytes that the application has passed so far.
    pub(super) fn transmit(&mut self, now: Instant, payload: u64) -> Option<Outgoing> {
        let room = self.window.window().saturating_sub(self.flight);
        let outgoing = self.next_lost(now, room).or_else(|| self.next_new(now, payload, room))?;
        self.flight += outgoing.length;
        if self.timer.is_none() {
            self.timer = Some(now + self.round_trip.timeout());
        }
        self.counters.sent += 1;
        Some(outgoing)
    }

    fn next_lost(&mut self, now: Instant, room: u64) -> Option<Outgoing> {
        self.recovery?;
        let idle = self.flight == 0;
        let segment = self.sent.iter_mut().find(|segment| segment.fate == SegmentState::Lost)?;
        if segment.length > room && !idle {
            return None;
        }
        (segment.fate, segment.again, segment.at) = (SegmentState::UnderWay, true, now);
        if segment.start == self.acknowledged {
            // The retransmission of the first outstanding segment gets a whole timeout.
            self.timer = Some(now + self.round_trip.timeout());
        }
        self.counters.resent += 1;
        let fin = self.end.is_some_and(|end| segment.start + segment.length > end);
        Some(Outgoing { start: segment.start, length: segment.length, fin })
    }

    fn next_new(&mut self, now: Instant, payload: u64, room: u64) -> Option<Outgoing> {
        let outgoing = if self.next == 0 {
            Outgoing { start: 0, length: 1, fin: false }
        } else {
            if !self.is_open() {
                return None;
            }
            // Whole segments, unless the application has no more data; there is no Nagle algorithm.
            let data_end = 1 + self.end.map_or(payload, |end| (end - 1).min(payload));
            let data = data_end.saturating_sub(self.next).min(u64::from(MSS));
            let fin = self.end == Some(self.next + data);
            let length = data + u64::from(fin);
            let offered = (self.acknowledged + self.peer_window).saturating_sub(self.next);
            if length == 0 || data > room || data > offered {
                return None;
            }
            Outgoing { start: self.next, length, fin }
        };
        self.next += outgoing.length;
        let Outgoing { start, length, .. } = outgoing;
        self.sent.push_back(Sent { start, length, at: now, fate: SegmentState::UnderWay, again: false });
        Some(outgoing)
    }

    /// Marks the segments in the blocks as arrived; returns whether any of them is newly acknowledged.
    fn mark_arrived(
        &mut self,
        now: Instant,
        blocks: &[(u64, u64)],
        sample: &mut Option<std::time::Duration>,
    ) -> bool {
        let mut news = false;
        for &(start, end) in blocks {
            let from = self.sent.partition_point(|segment| segment.start < start);
            for position in from..self.sent.len() {
                let segment = self.sent[position];
                if segment.start + segment.length > end {
                    break;
                }
                if segment.fate == SegmentState::Arrived {
                    continue;
                }
                self.leaves_flight(segment);
                self.sent[position].fate = SegmentState::Arrived;
                self.highest = self.highest.max(segment.start + segment.length);
                if !segment.again {
                    *sample = Some(now.since(segment.at));
                }
                news = true;
            }
        }
        news
    }

    /// Marks a segment lost if more than two full segments beyond it have arrived (RFC 6675 §4, `IsLost`). As in the
    /// RFC, lost retransmissions are left to the timer.
    fn mark_lost(&mut self) {
        let mut arrived_beyond = 0;
        for segment in self.sent.iter_mut().rev() {
            match segment.fate {
                SegmentState::Arrived => arrived_beyond += segment.length,
                SegmentState::UnderWay if !segment.again && arrived_beyond > 2 * u64::from(MSS) => {
                    segment.fate = SegmentState::Lost;
                    self.flight -= segment.length;
                }
                _ => {}
            }
        }
    }

    /// Ends a recovery that has reached its end, and begins a new one for losses beyond it.
    fn follow_recovery(&mut self) {
        if self.recovery.is_some_and(|recovery| self.acknowledged >= recovery.until) {
            self.recovery = None;
        }
        let lost = || self.sent.iter().any(|segment| segment.fate == SegmentState::Lost);
        if self.recovery.is_none() && self.highest > self.acknowledged && lost() {
            self.window.on_loss(self.next - self.acknowledged);
            self.counters.recoveries += 1;
            self.recovery = Some(Recovery { until: self.next, by_timeout: false });
        }
    }

    fn leaves_flight(&mut self, segment: Sent) {
        if segment.fate == SegmentState::UnderWay {
            self.flight -= segment.length;
        }
    }
}

#[cfg(test)]
mod tests;
