//! How many bytes in flight fill a path, found out by what acknowledgements tell.
//!
//! More than that waits in a queue of the network, where it holds buffer and carries nothing more. Only an
//! estimate for whoever shares out buffers: no protocol rule depends on it, and congestion windows go their own way.
//! docs/adaptive.md has the model.

use std::time::Duration;

use tresse_policy::{Instant, PathId};

use super::response::Response;
use super::width::Width;
use super::wobble::Wobble;

/// The pipe of one path. Bytes are user data.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Pipe {
    /// The round trip without a queue of our own; zero before the first measurement.
    base: Duration,
    /// The path that acknowledgements took which `base` was measured by: others are not compared with it.
    via: PathId,
    /// The same of the way that acknowledgements took before.
    formerly: Option<(Duration, PathId)>,
    /// What the way that they take now makes of what was known to fill the path.
    stretched: usize,
    /// What fills the path, as far as is known.
    size: usize,
    /// The step by which it grows next, in packets; doubles as long as no queue shows.
    step: usize,
    /// No queue has shown yet, and slow start is not to be held up: it grows as fast as a window there.
    fresh: bool,
    /// Shares hold always: what the path claims and does not use, another one does without.
    frugal: bool,
    round: Option<Round>,
    /// What the path itself varies by.
    wobble: Wobble,
    response: Response,
    doubt: Option<Doubt>,
    /// No queue at all is wanted: somebody waits for what lies behind it.
    calm: bool,
    /// The size has changed: what acknowledgements tell of it comes a round later.
    changed: bool,
    /// User data of the packets whose round trips count.
    length: usize,
    width: Width,
    /// Bytes acknowledged so far.
    pub(super) acked: u64,
}

/// What an acknowledgement comes with.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Acked {
    /// Bytes that it acknowledged.
    pub(super) bytes: usize,
    /// Bytes that were in flight.
    pub(super) flight: usize,
    /// Bytes acknowledged on the path since its capacity is estimated.
    pub(super) total: u64,
    /// The shortest round trip of what was newly acknowledged and sent once.
    pub(super) rtt: Option<Duration>,
    /// The path it came over.
    pub(super) via: PathId,
    /// A full DATA chunk.
    pub(super) pmdcs: usize,
}

/// What was seen since a round began. It lasts a round trip.
#[derive(Copy, Clone, PartialEq, Debug)]
struct Round {
    since: Instant,
    /// Bytes acknowledged until then.
    before: u64,
    /// The shortest round trip. The first packet of a burst has it: only a queue that stands is longer for all.
    shortest: Option<Duration>,
    /// The same of acknowledgements that came over another path than `Pipe::via`, and which.
    elsewhere: Option<(Duration, PathId)>,
    /// Most bytes in flight.
    peak: usize,
    /// A buffer kept the path from sending.
    kept: bool,
}

/// A queue that does not go although the flight shrinks may be none.
#[derive(Copy, Clone, PartialEq, Debug)]
struct Doubt {
    /// The shortest round trip, the most in flight and the size when it was first seen.
    rtt: Duration,
    peak: usize,
    size: usize,
}

impl Pipe {
    /// Of a path that had `before` bytes under way before anything was known of it, where shares hold only while a
    /// buffer is short: slow start went on without them. `None` where they hold always, to keep queues short: a leap
    /// would be a queue.
    pub(super) fn new(pmdcs: usize, before: Option<usize>) -> Self {
        Pipe {
            base: Duration::ZERO,
            via: PathId::default(),
            formerly: None,
            stretched: 0,
            size: Pipe::first_size(pmdcs, before),
            step: 1,
            fresh: before.is_some(),
            frugal: before.is_none(),
            round: None,
            wobble: Wobble::default(),
            response: Response::default(),
            doubt: None,
            calm: false,
            changed: false,
            length: 0,
            width: Width::new(),
            acked: 0,
        }
    }

    /// What a path is taken to hold before anything is known of it; `before` as for [`new`](Self::new).
    pub(super) fn first_size(pmdcs: usize, before: Option<usize>) -> usize {
        (FIRST_PACKETS * pmdcs).max(before.unwrap_or(0)).min(LARGEST)
    }

    /// Whether the path is to be filled without a queue. That takes a steady path; elsewhere it costs throughput.
    pub(super) fn set_calm(&mut self, calm: bool) {
        self.calm = calm;
    }

    /// The round trip without a queue; zero when not yet known.
    pub(super) fn base(&self) -> Duration {
        self.base
    }

    /// What fills the path.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// What the path holds without a queue, if it is less than it claims: a buffer that keeps it silent keeps the claim
    /// from being measured.
    pub(super) fn width(&self) -> usize {
        self.width.bytes().min(self.size)
    }

    /// A packet with data was sent, one of at most `pmdcs`, and `flight` bytes are in flight now.
    pub(super) fn on_sent(&mut self, now: Instant, flight: usize, pmdcs: usize) {
        self.width.on_sent(now, flight, pmdcs);
    }

    /// Data is sent although nothing was in flight: idleness tells nothing of the rate.
    pub(super) fn on_busy(&mut self) {
        self.round = None;
    }

    /// A buffer keeps the path from sending: that it is not full says nothing of what it could use.
    pub(super) fn on_kept(&mut self) {
        if let Some(round) = &mut self.round {
            round.kept = true;
        }
    }

    /// T3 of `path` has expired. Where acknowledgements came back over it until lately, this one holds at once what the
    /// longer way back makes of it. Before, what was sent beyond would only have been kept by the peer, for what was lost
    /// there.
    pub(super) fn on_timeout_of(&mut self, path: PathId) {
        if self.formerly.is_some_and(|(_, via)| via == path) {
            self.size = self.size.max(self.stretched);
        }
        self.stretched = 0;
    }

    /// Bytes of the path were acknowledged.
    pub(super) fn on_acked(&mut self, now: Instant, mut what: Acked) {
        self.weigh_length(&mut what);
        if let Some(rtt) = what.rtt.filter(|&rtt| rtt < self.base) {
            // However little was under way, and so before any round is over.
            self.turn_to(what.via, rtt);
        }
        self.width.on_acked(now, &what, self.base, self.size);
        let round = self.round.get_or_insert_with(|| Round::new(now, what.total));
        round.see(&what, self.via);
        let over = round.shortest.or(round.elsewhere.map(|(rtt, _)| rtt)).filter(|rtt| !rtt.is_zero());
        let elapsed = now - round.since;
        if let Some(rtt) = over
            && elapsed >= rtt
        {
            let rate = (what.total - round.before) as f64 / elapsed.as_secs_f64();
            let over = std::mem::replace(round, Round::new(now, what.total));
            self.on_round(&over, rate, rtt, what.pmdcs.max(1));
        }
    }

    /// Acknowledgements come over `via` from now on, where one took `rtt`. What a queue adds to that shows where the way
    /// was known before. Nothing is remembered where shares hold only while a buffer is short: queues stand there
    /// otherwise, and whatever was seen then may have had one.
    fn turn_to(&mut self, via: PathId, rtt: Duration) {
        let known = self.formerly.filter(|&(_, formerly)| formerly == via && formerly != self.via);
        if self.frugal && via != self.via && !self.base.is_zero() {
            (self.formerly, self.stretched) = (Some((self.base, self.via)), 0);
        }
        self.via = via;
        self.base = known.map_or(rtt, |(base, _)| base.min(rtt));
    }

    /// Short packets are faster: seen beside their round trips, full ones would seem to queue. Only those that are about
    /// as long as the longest count.
    fn weigh_length(&mut self, what: &mut Acked) {
        let len = what.bytes.min(what.pmdcs);
        if what.rtt.is_none() {
            return;
        }
        if len + len / ALIKE < self.length {
            what.rtt = None;
        } else if len > self.length + self.length / ALIKE {
            self.length = len;
            self.base = Duration::ZERO;
            (self.formerly, self.stretched) = (None, 0);
            self.round = None;
        }
    }

    /// A round is over in which `rate` bytes a second were acknowledged, after `rtt` at least.
    fn on_round(&mut self, round: &Round, rate: f64, rtt: Duration, pmdcs: usize) {
        if let (None, Some((_, via))) = (round.shortest, round.elsewhere) {
            // Acknowledgements have changed their way for good.
            let before = self.base;
            self.turn_to(via, rtt);
            self.stretched = if before.is_zero() { 0 } else { stretched(self.size, before, self.base) };
        }
        if self.base.is_zero() || rtt < self.base {
            self.base = rtt;
        }
        self.wobble.on_round(rtt, round.peak);
        self.response.on_round(round.peak, rate);
        if std::mem::take(&mut self.changed) {
            // This round tells of what was sent before.
            return;
        }
        let longer = (rtt - self.base).saturating_sub(self.allowance());
        let queue = if self.carries_more() { 0.0 } else { rate * longer.as_secs_f64() / pmdcs as f64 };
        if queue > if self.calm { CALM_QUEUED } else { MOST_QUEUED } {
            if !self.wonder(round.peak, rate, rtt) {
                self.shrink(round, queue, pmdcs);
            }
        } else {
            self.doubt = None;
            self.settle(round, queue, pmdcs);
        }
    }

    /// How much longer than the base a round trip may be without a queue. Where shares hold always, to keep queues short, a
    /// queue of as much as the path varies by would be one too long.
    fn allowance(&self) -> Duration {
        if self.frugal { Duration::ZERO } else { self.wobble.allowance().min(self.base / MOST_VARIED) }
    }

    /// Whether the path varies so much that its round trips tell of no queue, while more in flight still brings more.
    fn carries_more(&self) -> bool {
        self.allowance() > self.base / VARIES && self.response.is_seen()
    }

    /// Takes away what waited in a queue of `queue` packets, but for one, or whole packets of it if none is wanted.
    fn shrink(&mut self, round: &Round, queue: f64, pmdcs: usize) {
        self.fresh = false;
        let packets = if self.calm { queue.floor() } else { queue - 1.0 };
        let excess = (packets * pmdcs as f64) as usize;
        let least = (round.peak / 4 * 3).max(SMALLEST_PACKETS * pmdcs);
        self.size = self.size.min(round.peak.saturating_sub(excess).max(least));
        self.step = 1;
        self.changed = true;
    }

    /// What stays although the flight has shrunk is no queue of ours: the path itself has become longer. Answers whether
    /// that is so.
    fn wonder(&mut self, peak: usize, rate: f64, rtt: Duration) -> bool {
        let now = Doubt { rtt, peak, size: self.size };
        let doubt = *self.doubt.get_or_insert(now);
        if rtt > doubt.rtt + doubt.rtt / ALIKE as u32 {
            // A queue that still grows.
            self.doubt = Some(now);
            return false;
        }
        if peak > doubt.peak / 4 * 3 {
            return false;
        }
        // A queue shortens by as much as the flight.
        let expected = (doubt.peak - peak) as f64 / rate.max(1.0);
        if rtt.as_secs_f64() + expected / 2.0 <= doubt.rtt.as_secs_f64() {
            self.doubt = Some(now);
            return false;
        }
        self.size = stretched(self.size.max(doubt.size), self.base, rtt);
        self.base = rtt;
        (self.formerly, self.stretched) = (None, 0);
        self.doubt = None;
        true
    }

    fn settle(&mut self, round: &Round, queue: f64, pmdcs: usize) {
        let used = round.peak + pmdcs;
        let least = if self.calm { CALM_IDLE } else { LEAST_QUEUED };
        if self.fresh && round.kept && used < self.size {
            // It grew to twice as much, and a buffer does not let it show that it can use that.
            self.fresh = false;
            self.size = used;
        }
        self.fresh &= queue <= least;
        // A buffer that is full leaves less than a packet to each.
        let enough = if round.kept && !self.frugal { self.size / 3 * 2 } else { self.size };
        let grows = used >= enough && queue <= least;
        if grows && self.fresh {
            // Whether it is used shows at once, and more than a window in slow start is never sent.
            self.size = (2 * self.size).min(LARGEST);
        } else if grows {
            self.size = (self.size + self.step * pmdcs).min(LARGEST);
            self.step = (self.step * 2).min(self.size / pmdcs).max(1);
            self.changed = true;
        } else {
            self.step = 1;
        }
        if used < self.size && !round.kept && !grows {
            // What is not used may go to others.
            self.size -= (self.size - used) / 4;
        }
    }
}

/// What `size` becomes where a round trip takes `rtt` in place of `base`: the same rate for longer is more in flight.
fn stretched(size: usize, base: Duration, rtt: Duration) -> usize {
    ((size as f64 * rtt.div_duration_f64(base)) as usize).min(LARGEST)
}

impl Round {
    fn new(since: Instant, before: u64) -> Self {
        Round { since, before, shortest: None, elsewhere: None, peak: 0, kept: false }
    }

    fn see(&mut self, what: &Acked, via: PathId) {
        self.peak = self.peak.max(what.flight);
        let Some(rtt) = what.rtt else { return };
        if what.via == via {
            self.shortest = Some(self.shortest.map_or(rtt, |shortest| shortest.min(rtt)));
        } else if self.elsewhere.is_none_or(|(shortest, _)| rtt < shortest) {
            self.elsewhere = Some((rtt, what.via));
        }
    }
}

/// A pipe not yet measured holds this many full packets.
const FIRST_PACKETS: usize = 10;
/// No pipe is taken to be smaller: one packet on its way, and one that its acknowledgement lets out.
const SMALLEST_PACKETS: usize = 2;
/// With a longer queue than this, in packets, the path holds more than it needs.
const MOST_QUEUED: f64 = 2.5;
/// With a shorter one it may not be full.
const LEAST_QUEUED: f64 = 0.75;
/// The same two when no queue is wanted: the whole packets in flight that fill a path keep less than one waiting.
const CALM_QUEUED: f64 = 1.1;
const CALM_IDLE: f64 = 0.25;
/// A path is not taken to vary by more than this part of its round trip: where each packet takes long, packets of ours make
/// it vary by more.
const MOST_VARIED: u32 = 4;
/// One that varies by more than this part is asked what more in flight brings. On a steady path round trips know better.
const VARIES: u32 = 16;
/// Packets whose lengths differ by less than this part of the shorter one count as alike.
const ALIKE: usize = 8;
/// No buffer is larger.
const LARGEST: usize = 1 << 30;

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: usize = 1000;

    /// A path that carries one packet a millisecond and takes `delay` milliseconds otherwise.
    struct Link {
        pipe: Pipe,
        delay: usize,
        millis_a_packet: usize,
        /// By how many milliseconds round trips are longer, one after the other, and again.
        varies: &'static [usize],
        now: Instant,
        total: u64,
    }

    impl Link {
        fn new(delay: usize) -> Self {
            let pipe = Pipe::new(PACKET, Some(0));
            Link { pipe, delay, millis_a_packet: 1, varies: &[0], now: Instant::ZERO, total: 0 }
        }

        /// Rounds in which the sender uses what `use_of` makes of the pipe, in packets.
        fn run(&mut self, rounds: usize, use_of: impl Fn(usize) -> usize) {
            for round in 0..rounds {
                let flight = use_of(self.pipe.size() / PACKET).max(1);
                let pace = self.millis_a_packet;
                let millis = (self.delay + pace).max(flight * pace) + self.varies[round % self.varies.len()];
                let rtt = Duration::from_millis(millis as u64);
                self.now += rtt;
                self.total += (flight * PACKET) as u64;
                let flight = flight * PACKET;
                let (total, via) = (self.total, PathId(0));
                self.pipe.on_acked(
                    self.now,
                    Acked { bytes: flight, flight, total, rtt: Some(rtt), via, pmdcs: PACKET },
                );
            }
        }

        fn packets(&self) -> usize {
            self.pipe.size() / PACKET
        }
    }

    #[test]
    fn a_pipe_grows_until_a_queue_shows_and_stays_there() {
        let mut link = Link::new(49);
        link.run(20, |size| size);
        for _ in 0..50 {
            link.run(1, |size| size);
            assert!((50..=53).contains(&link.packets()), "{}", link.packets());
        }
        assert_eq!(link.pipe.base(), Duration::from_millis(50));
    }

    #[test]
    fn a_path_whose_round_trips_vary_is_filled_all_the_same() {
        let mut link = Link { varies: &[4, 0, 6, 3, 7, 2, 5], ..Link::new(49) };
        link.run(100, |size| size);
        assert!((48..=70).contains(&link.packets()), "{}", link.packets());
    }

    #[test]
    fn where_shares_always_hold_a_longer_round_trip_is_a_queue() {
        let steady = |varies| {
            let mut link = Link { varies, pipe: Pipe::new(PACKET, None), ..Link::new(49) };
            link.run(100, |size| size);
            link.packets()
        };
        let (varying, steady) = (steady(&[4, 0, 6, 3, 7, 2, 5]), steady(&[0]));
        assert!(varying < steady, "{varying} of {steady}");
    }

    #[test]
    fn what_is_not_used_is_given_back() {
        let mut link = Link::new(49);
        link.run(20, |size| size);
        link.run(30, |_| 5);
        assert!(link.packets() <= 7, "{}", link.packets());
    }

    #[test]
    fn a_pipe_without_a_queue_holds_up_no_slow_start() {
        let mut link = Link::new(499);
        for round in 0..8 {
            let window = 4 << round;
            link.run(1, |size| size.min(window));
            assert!(link.packets() >= window, "{} of {window}", link.packets());
        }
    }

    #[test]
    fn where_shares_always_hold_a_pipe_does_not_leap() {
        let mut link = Link::new(499);
        link.pipe = Pipe::new(PACKET, None);
        link.run(3, |size| size);
        assert!(link.packets() <= FIRST_PACKETS + 1 + 2 + 4, "{}", link.packets());
    }

    #[test]
    fn a_path_kept_by_a_buffer_keeps_its_claim() {
        let mut link = Link::new(49);
        link.run(20, |size| size);
        let before = link.packets();
        for _ in 0..30 {
            link.pipe.on_kept();
            link.run(1, |_| 5);
        }
        assert_eq!(link.packets(), before);
    }

    #[test]
    fn a_leap_that_a_buffer_keeps_from_being_used_is_taken_back() {
        let mut link = Link::new(499);
        link.run(4, |size| size);
        let (leapt, used) = (link.packets(), link.packets() / 2);
        link.pipe.on_kept();
        link.run(1, |_| used);
        assert!((used..used + 3).contains(&link.packets()), "{} after {leapt}", link.packets());
    }

    #[test]
    fn a_path_that_a_full_buffer_keeps_just_below_its_claim_grows_all_the_same() {
        let mut link = Link::new(49);
        link.run(2, |size| size / 2);
        let before = link.packets();
        for _ in 0..3 {
            link.pipe.on_kept();
            link.run(1, |size| size - size / 4);
        }
        assert!(link.packets() > before, "{} of {before}", link.packets());
    }

    #[test]
    fn where_shares_always_hold_a_path_claims_nothing_more_than_it_used() {
        let mut link = Link::new(49);
        link.pipe = Pipe::new(PACKET, None);
        link.run(2, |size| size);
        let before = link.packets();
        for _ in 0..10 {
            link.pipe.on_kept();
            link.run(1, |size| size - size / 4);
        }
        assert_eq!(link.packets(), before);
    }

    #[test]
    fn one_round_trip_that_is_shorter_says_enough() {
        let known = Pipe { base: Duration::from_millis(60), length: PACKET, ..Pipe::new(PACKET, Some(0)) };
        let mut pipe = known;
        let what = Acked {
            bytes: PACKET,
            flight: PACKET,
            total: 1000,
            rtt: Some(Duration::from_millis(7)),
            via: PathId(1),
            pmdcs: PACKET,
        };
        pipe.on_busy();
        pipe.on_acked(Instant::ZERO + Duration::from_millis(300), what);
        assert_eq!((pipe.base(), pipe.via), (Duration::from_millis(7), PathId(1)));
    }

    #[test]
    fn a_path_that_becomes_slower_or_faster_is_followed() {
        let mut link = Link::new(49);
        link.run(20, |size| size);
        link.millis_a_packet = 2;
        link.run(20, |size| size);
        assert!((25..=28).contains(&link.packets()), "{}", link.packets());
        link.millis_a_packet = 1;
        link.run(20, |size| size);
        assert!((50..=53).contains(&link.packets()), "{}", link.packets());
    }

    #[test]
    fn a_path_that_becomes_longer_is_followed() {
        let mut link = Link::new(19);
        link.run(20, |size| size);
        link.delay = 99;
        link.run(30, |size| size);
        assert_eq!(link.pipe.base(), Duration::from_millis(100));
        assert!((95..=103).contains(&link.packets()), "{}", link.packets());
    }

    #[test]
    fn a_longer_path_holds_at_once_what_its_rate_fills() {
        let mut link = Link::new(19);
        link.run(20, |size| size);
        link.delay = 99;
        link.run(6, |size| size);
        assert!(link.packets() >= 95, "{}", link.packets());
    }

    #[test]
    fn a_queue_that_grows_while_the_flight_shrinks_is_no_longer_path() {
        let mut link = Link::new(49);
        link.run(20, |size| size);
        for (rounds, pace) in [(1, 2), (1, 3), (1, 5), (20, 5)] {
            link.millis_a_packet = pace;
            link.run(rounds, |size| size);
        }
        assert_eq!(link.pipe.base(), Duration::from_millis(50));
        assert!((10..=13).contains(&link.packets()), "{}", link.packets());
    }

    #[test]
    fn a_calm_pipe_is_full_without_a_queue() {
        let mut link = Link::new(49);
        link.pipe.set_calm(true);
        link.run(30, |size| size);
        for _ in 0..50 {
            link.run(1, |size| size);
            assert!((50..=51).contains(&link.packets()), "{}", link.packets());
        }
    }

    #[test]
    fn a_short_packet_is_no_measure_for_full_ones() {
        let mut pipe = Pipe::new(PACKET, Some(0));
        let (mut now, mut total) = (Instant::ZERO, 0);
        let mut ack = |pipe: &mut Pipe, bytes: usize, micros: u64| {
            now += Duration::from_millis(30);
            total += bytes as u64;
            let rtt = Some(Duration::from_micros(micros));
            let via = PathId(0);
            let flight = 10 * PACKET;
            pipe.on_acked(now, Acked { bytes, flight, total, rtt, via, pmdcs: PACKET });
        };
        ack(&mut pipe, 100, 20_100);
        ack(&mut pipe, 100, 20_100);
        assert_eq!(pipe.base(), Duration::from_micros(20_100), "better than nothing");
        for _ in 0..4 {
            ack(&mut pipe, PACKET, 21_000);
            ack(&mut pipe, 100, 20_100);
        }
        assert_eq!(pipe.base(), Duration::from_millis(21));
    }

    #[test]
    fn a_queue_that_goes_slowly_is_not_taken_for_a_longer_path() {
        let mut link = Link::new(49);
        link.run(20, |size| size);
        // Twice what fits was sent at once, whatever the pipe said.
        link.run(1, |_| 100);
        link.run(20, |size| size);
        assert_eq!(link.pipe.base(), Duration::from_millis(50));
        assert!((50..=53).contains(&link.packets()), "{}", link.packets());
    }

    #[test]
    fn round_trips_that_came_back_over_different_paths_are_not_compared() {
        let mut pipe = Pipe::new(PACKET, Some(0));
        let (mut now, mut total) = (Instant::ZERO, 0);
        let mut round = |pipe: &mut Pipe, ways: &[(u64, u8)]| {
            for &(millis, via) in ways {
                now += Duration::from_millis(50);
                total += 10_000;
                let rtt = Some(Duration::from_millis(millis));
                pipe.on_acked(
                    now,
                    Acked { bytes: PACKET, flight: 100_000, total, rtt, via: PathId(via), pmdcs: PACKET },
                );
            }
        };
        round(&mut pipe, &[(50, 0); 4]);
        round(&mut pipe, &[(50, 0), (90, 1), (50, 0), (90, 1)]);
        assert_eq!(pipe.base(), Duration::from_millis(50));
        assert_eq!(pipe.doubt, None, "no queue is seen");
        round(&mut pipe, &[(90, 1); 4]);
        assert_eq!(pipe.base(), Duration::from_millis(90));
    }

    #[test]
    fn a_queue_shows_also_where_acknowledgements_have_returned_to_a_way_that_is_known() {
        let mut pipe = Pipe::new(PACKET, None);
        for (round, millis, via) in [(1, 50, 0), (2, 50, 0), (3, 90, 1), (4, 90, 1), (5, 70, 0), (6, 70, 0)] {
            let now = Instant::ZERO + Duration::from_millis(100 * round);
            let rtt = Some(Duration::from_millis(millis));
            let (flight, total) = (10 * PACKET, 10_000 * round);
            pipe.on_acked(now, Acked { bytes: PACKET, flight, total, rtt, via: PathId(via), pmdcs: PACKET });
        }
        assert_eq!((pipe.base(), pipe.via), (Duration::from_millis(50), PathId(0)));
    }

    #[test]
    fn a_longer_way_back_is_filled_once_the_shorter_one_has_failed() {
        let acked = |millis: u64, total: u64, via: u8| {
            let rtt = Some(Duration::from_millis(millis));
            Acked { bytes: PACKET, flight: 10 * PACKET, total, rtt, via: PathId(via), pmdcs: PACKET }
        };
        let mut pipe = Pipe::new(PACKET, None);
        for round in 1..=4 {
            pipe.on_acked(Instant::ZERO + Duration::from_millis(50 * round), acked(50, 10_000 * round, 0));
        }
        let before = pipe.size();
        for round in 1..=3 {
            let now = Instant::ZERO + Duration::from_millis(300 + 100 * round);
            pipe.on_acked(now, acked(100, 40_000 + 10_000 * round, 1));
        }
        assert_eq!(pipe.base(), Duration::from_millis(100));
        assert!(pipe.size() < before * 3 / 2, "{} of {before}", pipe.size());
        pipe.on_timeout_of(PathId(0));
        assert!(pipe.size() >= before * 2, "{} of {before}", pipe.size());
    }
}
