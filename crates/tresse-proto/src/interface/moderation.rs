//! Moderation of a driver's wake-ups: for each packet that arrives, or by time.

use std::time::Duration;

use tresse_policy::Instant;

/// Interrupt moderation for a driver on real sockets: decides whether each packet wakes the driver, or a timer lets the driver
/// poll its sockets.
///
/// At 100 Mbit/s a full packet arrives every 120 µs, and waking a thread costs more than processing the packet. So a driver that
/// has received bulk data for a second polls about once in a millisecond, as network interfaces do that moderate their
/// interrupts. A packet then waits for two milliseconds at most. That is short beside the round trip of a bulk transfer, but long
/// beside that of a request. So polling ends when packets become short or few, when data is sent, too, and when less data arrives
/// than before: then the sender waits for an answer.
///
/// A driver calls [`on_round`](Self::on_round) for each batch, and [`next_poll`](Self::next_poll) when nothing is left to do. If
/// that returns an instant, the driver sleeps until then, without waiting for its sockets.
#[derive(Debug)]
pub struct Moderation {
    /// Start of the interval of `load`.
    since: Instant,
    load: DriverLoad,
    /// Smallest receive buffer in this interval, in bytes.
    receive_buffer: usize,
    /// Counter of intervals with bulk data, up to [`STEADY`]; other intervals halve or reset it.
    steady: u32,
    /// Received bytes per second, smoothed.
    rate: f64,
    /// The value of `rate` when packets last woke the driver.
    woken_rate: f64,
    /// True if the sockets were polled in this interval.
    polled: bool,
    /// True if packets have arrived since the last decision.
    received: bool,
    /// Instant of the next poll; `None` if packets wake the driver.
    due: Option<Instant>,
}

/// Packets that a driver has received and sent.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct DriverLoad {
    /// Packets received.
    pub packets: usize,
    /// Bytes of the received packets.
    pub bytes: usize,
    /// Bytes of the sent packets.
    pub sent: usize,
}

impl Default for Moderation {
    fn default() -> Self {
        Moderation::new()
    }
}

impl Moderation {
    /// Creates the state in which each packet wakes the driver.
    pub fn new() -> Self {
        Moderation {
            since: Instant::ZERO,
            load: DriverLoad::default(),
            receive_buffer: usize::MAX,
            steady: 0,
            rate: 0.0,
            woken_rate: 0.0,
            polled: false,
            received: false,
            due: None,
        }
    }

    /// Counts one round of the driver; its associations have at least `receive_buffer` bytes of receive buffer each.
    pub fn on_round(&mut self, round: DriverLoad, receive_buffer: usize) {
        self.load.packets += round.packets;
        self.load.bytes += round.bytes;
        self.load.sent += round.sent;
        self.receive_buffer = self.receive_buffer.min(receive_buffer);
        self.received |= round.packets > 0;
    }

    /// Returns the instant of the next poll; `None` if packets are to wake the driver. To be called when all received packets are
    /// processed. Until the instant has passed, further calls return the same.
    pub fn next_poll(&mut self, now: Instant) -> Option<Instant> {
        if let Some(due) = self.due.filter(|&due| now < due) {
            return Some(due);
        }
        let elapsed = now.since(self.since);
        if elapsed >= INTERVAL {
            self.on_interval(elapsed);
            (self.since, self.load, self.receive_buffer) = (now, DriverLoad::default(), usize::MAX);
            self.polled = false;
        }
        self.due = None;
        let polls = self.steady == STEADY && self.received;
        self.received = false;
        if polls { Some(self.poll_after(now)) } else { None }
    }

    fn on_interval(&mut self, elapsed: Duration) {
        let rate = self.load.bytes as f64 / elapsed.as_secs_f64();
        self.rate += (rate - self.rate) * RATE_GAIN;
        if !self.polled {
            self.woken_rate = self.rate;
        }
        if elapsed >= LONGEST_PAUSE || self.rate < LEAST_RATE * self.woken_rate {
            self.steady = 0;
        } else if elapsed < 2 * INTERVAL {
            // A longer interval means that the sender paused, or that this host was late.
            let bulk = self.load.is_bulk(elapsed, self.receive_buffer);
            self.steady = if bulk { STEADY.min(self.steady + 1) } else { self.steady / 2 };
        }
    }

    /// Sets the next poll, for a driver that cannot register its sockets now; returns its instant.
    pub fn poll_after(&mut self, now: Instant) -> Instant {
        self.polled = true;
        *self.due.insert(now + PAUSE)
    }

    /// Returns whether it is time to poll the sockets; true once for each poll.
    pub fn is_due(&mut self, now: Instant) -> bool {
        self.due.take_if(|due| now >= *due).is_some()
    }
}

impl DriverLoad {
    fn is_bulk(self, elapsed: Duration, receive_buffer: usize) -> bool {
        let per_ms = |count: usize| count as f64 / (elapsed.as_secs_f64() * 1e3);
        PACKETS_PER_MS.contains(&per_ms(self.packets))
            && per_ms(self.bytes) * BUFFER_PARTS <= receive_buffer as f64
            && self.bytes >= FULL_PACKET * self.packets
            && self.bytes >= RECEIVED_PER_SENT * self.sent
    }
}

/// Interval over which load is measured.
const INTERVAL: Duration = Duration::from_millis(4);
/// Pause without packets after which the measurement begins again.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);
/// Intervals of bulk data before the first poll: a second. All packets of a poll get one SACK, and in slow start the window grows
/// once for each SACK (RFC 9260 §7.2.1), so polling would slow down its growth.
const STEADY: u32 = 250;
/// Part of the rate before polling, below which the sender seems to wait for the polls.
const LEAST_RATE: f64 = 0.75;
/// Weight of one interval in the rate.
const RATE_GAIN: f64 = 1.0 / 16.0;
/// Time between polls, for drivers with exact timers. Timers of tokio round up to whole milliseconds.
const PAUSE: Duration = Duration::from_micros(500);
/// Packet rates at which polling pays. A poll must find several packets, and the packets of two milliseconds must fit a socket's
/// default buffer on Linux: 212,992 bytes, of which a full packet takes up to 4,352. At higher rates a wake-up finds several
/// packets, too.
const PACKETS_PER_MS: std::ops::Range<f64> = 2.0..24.0;
/// The data of a millisecond must fit this fraction (1/32) of the receive buffer: with a window only a few times as large, the
/// sender would wait for the polls.
const BUFFER_PARTS: f64 = 32.0;
/// Minimum mean size of packets in bulk data, in bytes.
const FULL_PACKET: usize = 1000;
/// Received bytes for each sent byte, if only acknowledgements are sent.
const RECEIVED_PER_SENT: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: DriverLoad = DriverLoad { packets: 1, bytes: 1436, sent: 28 };
    const BUFFER: usize = 1 << 20;

    /// A driver with a round of a given load at equal intervals.
    struct Driven {
        moderation: Moderation,
        now: Instant,
        polls: usize,
    }

    impl Driven {
        fn new() -> Self {
            Driven { moderation: Moderation::new(), now: Instant::ZERO, polls: 0 }
        }

        /// Returns the number of polls in `millis`.
        fn run(&mut self, millis: u64, gap_us: u64, load: DriverLoad, receive_buffer: usize) -> usize {
            let before = self.polls;
            for _ in 0..millis * 1000 / gap_us {
                self.now += Duration::from_micros(gap_us);
                self.moderation.on_round(load, receive_buffer);
                self.polls += usize::from(self.moderation.is_due(self.now));
                self.moderation.next_poll(self.now);
            }
            self.polls - before
        }
    }

    #[test]
    fn bulk_data_is_polled_for_after_a_second() {
        let mut driven = Driven::new();
        assert_eq!(driven.run(990, 120, FULL, BUFFER), 0);
        assert!((1500..2000).contains(&driven.run(1000, 120, FULL, BUFFER)));
    }

    #[test]
    fn what_is_no_bulk_data_wakes_the_driver() {
        let polls = |gap_us, load, receive_buffer| Driven::new().run(2000, gap_us, load, receive_buffer);
        assert_eq!(polls(600, FULL, BUFFER), 0, "few packets");
        assert_eq!(polls(10, FULL, BUFFER), 0, "so many that the system joins them");
        assert_eq!(polls(120, DriverLoad { bytes: 300, ..FULL }, BUFFER), 0, "short packets");
        assert_eq!(polls(120, DriverLoad { sent: 300, ..FULL }, BUFFER), 0, "data in both directions");
        assert_eq!(polls(120, FULL, 256 << 10), 0, "a short buffer");
    }

    #[test]
    fn the_least_buffer_of_an_interval_counts() {
        let mut driven = Driven::new();
        for _ in 0..2000 {
            driven.run(1, 250, FULL, BUFFER);
            driven.moderation.on_round(DriverLoad::default(), 64 << 10);
        }
        assert_eq!(driven.polls, 0);
    }

    #[test]
    fn polling_ends_where_less_arrives_by_it() {
        let mut driven = Driven::new();
        driven.run(1000, 120, FULL, BUFFER);
        assert!(driven.run(500, 120, FULL, BUFFER) > 500);
        // This is still bulk data by itself.
        driven.run(200, 200, FULL, BUFFER);
        assert_eq!(driven.run(800, 200, FULL, BUFFER), 0);
    }

    #[test]
    fn after_a_pause_a_second_of_bulk_data_has_to_come_again() {
        let mut driven = Driven::new();
        assert!(driven.run(1500, 120, FULL, BUFFER) > 500);
        driven.now += Duration::from_millis(20);
        assert!(driven.run(100, 120, FULL, BUFFER) > 50, "a short one changes nothing");
        driven.now += LONGEST_PAUSE;
        assert!(driven.run(900, 120, FULL, BUFFER) < 2);
    }

    #[test]
    fn a_poll_that_finds_nothing_is_the_last() {
        let mut driven = Driven::new();
        while driven.moderation.due.is_none() {
            driven.run(1, 120, FULL, BUFFER);
        }
        let (mut moderation, now) = (driven.moderation, driven.now);
        let due = moderation.next_poll(now).expect("it is set");
        assert!(now < due && !moderation.is_due(now), "a command does not put it off");
        assert!(moderation.is_due(due));
        moderation.on_round(FULL, BUFFER);
        let next = moderation.next_poll(due).expect("a packet had come");
        assert_eq!(moderation.next_poll(next), None);
    }
}
