//! Changes of a link at times known in advance: its rate, its delay, its losses, and outages.
//!
//! Because the times are known in advance, the link can still decide on each packet at once: a packet in transmission when the rate
//! changes continues at the new rate. Delay, loss and outage are those of the time when the last bit leaves the transmitter. Independent
//! of the queue: the link passes the time at which the transmission of a packet begins.

use std::time::Duration;

use tresse_proto::Instant;

use super::BIT_NANOS_PER_BYTE;
use super::impair::Loss;

/// Change of a link at one time; a field that is `None` stays as it was.
#[derive(Copy, Clone, PartialEq, Debug, Default)]
pub struct Change {
    /// Time of the change.
    pub at: Duration,
    /// Bits per second; at least 1.
    pub rate: Option<u64>,
    /// Propagation delay.
    pub delay: Option<Duration>,
    /// Loss model.
    pub loss: Option<Loss>,
    /// True if every packet is lost.
    pub outage: Option<bool>,
    /// The largest IP packet that the link carries.
    pub mtu: Option<u32>,
}

/// State of a link after the changes so far.
#[derive(Debug)]
pub(super) struct Dynamics {
    /// Future changes in the order of their times, the next one last.
    to_come: Vec<Change>,
    pub(super) rate: u64,
    pub(super) delay: Duration,
    pub(super) outage: bool,
    /// The new loss model, if it has changed.
    pub(super) new_loss: Option<Loss>,
    /// Arrival time of the latest packet that arrived in order.
    latest: Instant,
}

impl Dynamics {
    pub(super) fn new(changes: &[Change], rate: u64, delay: Duration) -> Self {
        let mut to_come = changes.to_vec();
        to_come.sort_by_key(|change| change.at);
        to_come.reverse();
        Dynamics { to_come, rate, delay, outage: false, new_loss: None, latest: Instant::ZERO }
    }

    /// Returns the time at which the last bit of a packet leaves. Its first bit leaves at `starts`, and it has `bytes`
    /// bytes. `starts` never decreases from call to call.
    pub(super) fn transmit(&mut self, starts: Instant, bytes: u64) -> Instant {
        let mut work = bytes.saturating_mul(BIT_NANOS_PER_BYTE);
        let mut at = starts;
        loop {
            let done = at + Duration::from_nanos(work.div_ceil(self.rate.max(1)));
            let Some(next) = self.to_come.last() else { return done };
            let changes_at = Instant::ZERO + next.at;
            if changes_at > done {
                return done;
            }
            let passed = changes_at.since(at).as_nanos() as u64;
            work = work.saturating_sub(passed.saturating_mul(self.rate));
            at = at.max(changes_at);
            self.apply_next();
        }
    }

    /// Returns the arrival time of a packet whose last bit left at `left`: never before a packet that was sent earlier and is in order.
    /// After the delay has become shorter, packets arrive together until the shorter delay has caught up.
    pub(super) fn arrival(&mut self, left: Instant) -> Instant {
        self.latest = self.latest.max(left + self.delay);
        self.latest
    }

    fn apply_next(&mut self) {
        let Some(change) = self.to_come.pop() else { return };
        self.rate = change.rate.unwrap_or(self.rate);
        self.delay = change.delay.unwrap_or(self.delay);
        self.outage = change.outage.unwrap_or(self.outage);
        self.new_loss = change.loss.or(self.new_loss);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn at(millis: u64) -> Instant {
        Instant::ZERO + ms(millis)
    }

    /// 1,000 bytes take 8 ms at 1 Mbit/s.
    fn dynamics(changes: &[Change]) -> Dynamics {
        Dynamics::new(changes, 1_000_000, ms(10))
    }

    #[test]
    fn a_packet_under_way_goes_on_at_the_new_rate() {
        let change = |at, rate| Change { at: ms(at), rate: Some(rate), ..Change::default() };
        let mut dynamics = dynamics(&[change(2, 500_000), change(6, 2_000_000)]);
        // 2,000 bits in 2 ms, 2,000 in 4 ms, 4,000 in 2 ms.
        assert_eq!(dynamics.transmit(at(0), 1000), at(8));
        assert_eq!(dynamics.transmit(at(8), 1000), at(12));
    }

    #[test]
    fn changes_while_idle_take_effect_and_owe_nothing() {
        let change = Change { at: ms(50), rate: Some(8_000_000), delay: Some(ms(3)), ..Change::default() };
        let mut dynamics = dynamics(&[change]);
        assert_eq!(dynamics.transmit(at(0), 1000), at(8));
        assert_eq!(dynamics.arrival(at(8)), at(18));
        assert_eq!(dynamics.transmit(at(100), 1000), at(101));
        assert_eq!(dynamics.arrival(at(101)), at(104));
    }

    #[test]
    fn nobody_overtakes_when_the_delay_shrinks() {
        let change = Change { at: ms(9), delay: Some(ms(1)), ..Change::default() };
        let mut dynamics = dynamics(&[change]);
        let arrivals = [0, 8, 16, 24].map(|starts| {
            let left = dynamics.transmit(at(starts), 1000);
            dynamics.arrival(left)
        });
        // They leave at 8, 16, 24 and 32 ms. The second would arrive at 17 ms, 1 ms before the first.
        assert_eq!(arrivals, [at(18), at(18), at(25), at(33)]);
    }

    #[test]
    fn changes_come_in_order_of_time_however_they_are_listed() {
        let change = |at, outage| Change { at: ms(at), outage: Some(outage), ..Change::default() };
        let mut dynamics = dynamics(&[change(20, false), change(10, true)]);
        let states = [0, 8, 16].map(|starts| {
            dynamics.transmit(at(starts), 1000);
            dynamics.outage
        });
        assert_eq!(states, [false, true, false], "leaving at 8, 16 and 24");
    }

    #[test]
    fn of_two_changes_at_one_time_the_later_in_the_list_stands() {
        let change = |outage| Change { at: ms(10), outage: Some(outage), ..Change::default() };
        let mut dynamics = dynamics(&[change(true), change(false)]);
        dynamics.transmit(at(16), 1000);
        assert!(!dynamics.outage);
    }
}
