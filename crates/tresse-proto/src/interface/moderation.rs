//! Moderation of a driver's wake-ups: for each packet that arrives, or by time.

use std::time::Duration;

use tresse_policy::Instant;

/// Decides whether a driver on real sockets is to be woken for each packet, or to look at its sockets by time.
///
/// At 100 Mbit/s a full packet arrives every 120 µs, and to wake a thread for it costs more than everything else that is
/// done with it. So a driver that receives bulk data looks about once in a millisecond, as network interfaces do that
/// moderate their interrupts. A packet then waits for two milliseconds at most. That is little beside the round trip of a
/// bulk transfer and much beside that of a request, so it is not done where packets are short or few, nor where data
/// leaves too.
#[derive(Debug)]
pub struct Moderation {
    /// Start of the interval that `load` is counted in.
    since: Instant,
    load: DriverLoad,
    /// The last interval had bulk data.
    bulk: bool,
    /// Packets have arrived since it was last decided.
    heard: bool,
    /// Instant of the next look, where sockets are looked at by time.
    look: Option<Instant>,
}

/// Packets that a driver has received and sent.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct DriverLoad {
    /// Packets that arrived.
    pub packets: usize,
    /// Bytes of them.
    pub bytes: usize,
    /// Bytes of the packets that left.
    pub sent: usize,
}

impl Default for Moderation {
    fn default() -> Self {
        Moderation::new()
    }
}

impl Moderation {
    /// Each packet is to wake the driver.
    pub fn new() -> Self {
        Moderation {
            since: Instant::ZERO,
            load: DriverLoad::default(),
            bulk: false,
            heard: false,
            look: None,
        }
    }

    /// Counts one round of the driver.
    pub fn on_round(&mut self, round: DriverLoad) {
        self.load.packets += round.packets;
        self.load.bytes += round.bytes;
        self.load.sent += round.sent;
        self.heard |= round.packets > 0;
    }

    /// Instant of the next look; `None` where each packet is to wake the driver. Asked when everything that arrived is
    /// processed, in an endpoint whose associations have this receive buffer, in bytes.
    pub fn next_look(&mut self, now: Instant, receive_buffer: usize) -> Option<Instant> {
        if self.look.is_some() {
            return self.look;
        }
        let elapsed = now.since(self.since);
        if elapsed >= INTERVAL {
            // An interval that is much longer had a pause in it.
            self.bulk = elapsed < 2 * INTERVAL && self.load.is_bulk(elapsed, receive_buffer);
            (self.since, self.load) = (now, DriverLoad::default());
        }
        self.bulk &= self.heard;
        self.heard = false;
        if self.bulk { Some(self.look_after(now)) } else { None }
    }

    /// Sets a look for a driver whose sockets cannot be watched now; answers its instant.
    pub fn look_after(&mut self, now: Instant) -> Instant {
        *self.look.insert(now + PAUSE)
    }

    /// Returns whether it is time to look at the sockets; once for each look.
    pub fn is_due(&mut self, now: Instant) -> bool {
        self.look.take_if(|at| now >= *at).is_some()
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

/// Time over which load is measured.
const INTERVAL: Duration = Duration::from_millis(4);
/// Time from one look to the next. The timer of the runtime rounds up to whole milliseconds.
const PAUSE: Duration = Duration::from_micros(500);
/// Rates at which a look finds several packets, and two milliseconds bring no more than a socket holds by default on Linux:
/// 212,992 bytes, of which a full packet takes up to 4,352. At higher rates a wake-up finds several packets, too.
const PACKETS_PER_MS: std::ops::Range<f64> = 2.0..24.0;
/// Parts of the receive buffer of which one holds all that arrives in a millisecond: a sender whose window is only a few
/// times as large would wait for the looks.
const BUFFER_PARTS: f64 = 32.0;
/// Mean size of packets that are mostly full, in bytes.
const FULL_PACKET: usize = 1000;
/// Bytes received for each byte that is sent, where only acknowledgements are.
const RECEIVED_PER_SENT: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: DriverLoad = DriverLoad { packets: 1, bytes: 1436, sent: 28 };
    const BUFFER: usize = 1 << 20;

    /// Looks in 100 ms in which there is one round of `load` each `gap`.
    fn looks(gap_us: u64, load: DriverLoad, receive_buffer: usize) -> usize {
        let (mut moderation, mut looks) = (Moderation::new(), 0);
        for at in (0..100_000).step_by(gap_us as usize) {
            let now = Instant::ZERO + Duration::from_micros(at);
            moderation.on_round(load);
            looks += usize::from(moderation.is_due(now));
            moderation.next_look(now, receive_buffer);
        }
        looks
    }

    #[test]
    fn bulk_data_is_looked_for_by_time() {
        assert!((100..200).contains(&looks(120, FULL, BUFFER)));
        assert_eq!(looks(600, FULL, BUFFER), 0, "few packets");
        assert_eq!(looks(10, FULL, BUFFER), 0, "so many that the system joins them");
        assert_eq!(looks(120, DriverLoad { bytes: 300, ..FULL }, BUFFER), 0, "short packets");
        assert_eq!(looks(120, DriverLoad { sent: 300, ..FULL }, BUFFER), 0, "data in both directions");
        assert_eq!(looks(120, FULL, 128 << 10), 0, "a short buffer");
    }

    #[test]
    fn a_look_that_finds_nothing_is_the_last() {
        let (mut moderation, mut now) = (Moderation::new(), Instant::ZERO);
        let look = loop {
            moderation.on_round(FULL);
            now += Duration::from_micros(120);
            if let Some(look) = moderation.next_look(now, BUFFER) {
                break look;
            }
        };
        let between = now + PAUSE / 2;
        assert_eq!(moderation.next_look(between, BUFFER), Some(look), "a command does not put it off");
        assert!(!moderation.is_due(between) && moderation.is_due(look));
        moderation.on_round(FULL);
        let next = moderation.next_look(look, BUFFER).expect("a packet had come");
        assert!(moderation.is_due(next));
        assert_eq!(moderation.next_look(next, BUFFER), None);
    }
}
