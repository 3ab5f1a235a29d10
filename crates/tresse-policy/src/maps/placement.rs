//! The adaptive stream map: it selects the paths on which a stream's next data may leave, by the head-of-line blocking
//! that this causes at the peer.
//!
//! It optimises throughput and delay if buffers are short and streams are ordered. While a stream's data is in flight
//! on a slow path, its later data on faster paths waits at the peer. So faster paths take all data that they can send.
//! A slower path joins if the receive buffer has room for the data that would wait. A stream that sends little stays on
//! one path (docs/adaptive.md). A table made by hand is better if the streams' rates are known and constant.

use std::time::Duration;

use crate::choices::StreamClass;
use crate::path::PathId;
use crate::time::Instant;

/// A path as stream placement sees it.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct PathForecast {
    /// Round-trip time without a queue; zero before the first measurement.
    pub rtt: Duration,
    /// Recent round-trip time, queueing delay included.
    pub lately: Duration,
    /// Bytes of the peer's buffer that remain beside the data in flight on faster paths. Data in flight on this path
    /// needs them, and data that waits for it.
    pub slack: usize,
    /// Bytes in flight.
    pub flight: usize,
    /// Least bytes in flight with which the path is worth using.
    pub foothold: usize,
    /// True if the path carries new data.
    pub usable: bool,
}

/// Recent history of a stream.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct StreamHistory {
    /// The path to which the stream belongs.
    pub home: PathId,
    /// Time by which everything sent so far, on any path, will have arrived.
    until: Instant,
    /// Bytes that the stream sent on each path, by position.
    meters: Vec<Meter>,
}

/// Decaying sum of bytes.
#[derive(Copy, Clone, PartialEq, Debug, Default)]
struct Meter {
    level: f64,
    at: Instant,
}

/// Data that a stream has to send.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Demand {
    /// Its class.
    pub class: StreamClass,
    /// Bytes of user data that wait to be sent.
    pub unsent: usize,
}

/// Decision on a stream that a path could serve.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Placing {
    /// The path takes the stream's next data; the stream stays on its path.
    Take,
    /// The path takes the stream's next data; the stream belongs to this path from now on.
    Adopt,
    /// The stream belongs to the named path from now on; this path takes nothing of it.
    Cede(PathId),
    /// The path takes nothing of the stream now.
    Leave,
}

impl StreamHistory {
    /// Takes `bytes` bytes of the stream that are sent on `path`.
    pub fn on_sent(&mut self, now: Instant, path: PathId, bytes: usize, forecasts: &[PathForecast]) {
        let rtt = forecasts.get(path.index()).map_or(Duration::ZERO, |forecast| forecast.rtt);
        self.until = self.until.max(now + rtt);
        if self.meters.len() < forecasts.len() {
            self.meters.resize(forecasts.len(), Meter::default());
        }
        if let Some(meter) = self.meters.get_mut(path.index()) {
            meter.add(now, bytes);
        }
    }

    /// Moves the stream to `home`. If that path is slower, the stream's measured rates are discarded: data that it sent
    /// on faster paths arrives before data that now leaves on the slower one, and other streams may fill the faster
    /// paths from now on.
    pub fn move_to(&mut self, home: PathId, forecasts: &[PathForecast]) {
        let rtt = |path: PathId| forecasts.get(path.index()).map_or(Duration::ZERO, |forecast| forecast.rtt);
        if is_slower(rtt(home), rtt(self.home)) {
            self.meters.clear();
        }
        self.home = home;
    }

    /// Moves a stream that has data again after it had none: to the fastest path if its data stays in order there, or,
    /// for a latency-critical stream, to the path with the shortest recent round trip.
    pub fn begin_anew(&mut self, now: Instant, class: StreamClass, forecasts: &[PathForecast]) {
        let best =
            if class == StreamClass::Latency { soonest(self.home, forecasts) } else { fastest(forecasts) };
        if let Some(path) = best
            && self.keeps_order(now, forecasts[path.index()].rtt)
        {
            self.home = path;
        }
    }

    /// Returns whether data sent now on a path with this round trip arrives after all data that the stream sent before.
    fn keeps_order(&self, now: Instant, rtt: Duration) -> bool {
        now + rtt + rtt / JITTER >= self.until
    }

    /// Returns the bytes that would wait at the peer while data of the stream is in flight on the path `here`: the data
    /// that the stream sends meanwhile on faster paths.
    fn waiting(&self, now: Instant, here: &PathForecast, forecasts: &[PathForecast]) -> usize {
        let bytes = self.meters.iter().zip(forecasts).map(|(meter, faster)| {
            let ahead = here.lately.saturating_sub(faster.rtt);
            let slower = faster.usable && is_slower(here.rtt, faster.rtt);
            if slower { meter.rate(now) * ahead.as_secs_f64() } else { 0.0 }
        });
        bytes.sum::<f64>() as usize
    }
}

/// Decides whether `path` takes data of the stream with the history `track`, which has `demand`. `packet` is the largest
/// IP packet of the path in bytes: an upper bound of the user data in a full packet.
pub fn place(
    now: Instant,
    path: PathId,
    track: &StreamHistory,
    demand: Demand,
    packet: usize,
    forecasts: &[PathForecast],
) -> Placing {
    let of = |path: PathId| forecasts.get(path.index()).copied().unwrap_or_default();
    let (here, home) = (of(path), of(track.home));
    let heavy = demand.unsent >= HEAVY_PACKETS * packet;
    let waiting = || track.waiting(now, &here, forecasts);
    let fits = |flight: usize| waiting() + flight + packet <= here.slack;
    let affordable = || fits(here.flight.max(here.foothold));
    if demand.class == StreamClass::Latency && home.usable {
        return place_urgent(now, path, track, heavy && affordable(), forecasts);
    }
    if track.home == path {
        let fastest = fastest(forecasts).filter(|&fastest| is_slower(here.rtt, of(fastest).rtt));
        return match fastest {
            Some(_) if affordable() => Placing::Take,
            // The path has too much in flight for now. A heavy stream continues on other paths.
            Some(_) if heavy && fits(here.foothold) => Placing::Leave,
            Some(fastest) => Placing::Cede(fastest),
            None => Placing::Take,
        };
    }
    if !home.usable {
        return Placing::Adopt;
    }
    if is_slower(here.rtt, home.rtt) {
        return if heavy && affordable() { Placing::Adopt } else { Placing::Leave };
    }
    if track.keeps_order(now, here.rtt) {
        Placing::Adopt
    } else if heavy {
        Placing::Take
    } else {
        Placing::Leave
    }
}

/// Decides the same for a latency-critical stream. It waits for the path that delivers first, and moves when another path becomes the
/// first. If there is so much data that this path cannot carry it (`much`), other paths take data, too.
fn place_urgent(
    now: Instant,
    path: PathId,
    track: &StreamHistory,
    much: bool,
    forecasts: &[PathForecast],
) -> Placing {
    let Some(best) = soonest(track.home, forecasts) else { return Placing::Take };
    let safe = || track.keeps_order(now, forecasts[best.index()].rtt);
    if track.home == best {
        return if path == best || much { Placing::Take } else { Placing::Leave };
    }
    match (track.home == path, best == path) {
        (true, _) if safe() => Placing::Cede(best),
        (_, true) if safe() => Placing::Adopt,
        (true, _) => Placing::Take,
        _ if much => Placing::Take,
        _ => Placing::Leave,
    }
}

/// Returns the usable path with the shortest round trip; a path without a measurement comes last.
fn fastest(forecasts: &[PathForecast]) -> Option<PathId> {
    least(forecasts, |forecast| forecast.rtt)
}

/// Returns the usable path that lately delivered first, queues included; `home` unless another path is clearly faster.
fn soonest(home: PathId, forecasts: &[PathForecast]) -> Option<PathId> {
    let best = least(forecasts, |forecast| forecast.lately)?;
    let (now, then) = (forecasts.get(home.index()), forecasts[best.index()].lately);
    let stays = now.is_some_and(|now| now.usable && now.lately <= then + then / JITTER);
    Some(if stays { home } else { best })
}

fn least(forecasts: &[PathForecast], rtt: impl Fn(&PathForecast) -> Duration) -> Option<PathId> {
    let usable = forecasts.iter().enumerate().filter(|(_, forecast)| forecast.usable);
    let best = usable.min_by_key(|(_, forecast)| (forecast.rtt.is_zero(), rtt(forecast)));
    best.map(|(position, _)| PathId(position as u8))
}

/// Returns whether a round trip is so much longer than another that its data arrives late.
fn is_slower(rtt: Duration, than: Duration) -> bool {
    rtt > than + than / ALIKE
}

impl Meter {
    fn add(&mut self, now: Instant, bytes: usize) {
        self.level = self.decayed(now) + bytes as f64;
        self.at = now;
    }

    /// Returns the rate in bytes per second.
    fn rate(&self, now: Instant) -> f64 {
        self.decayed(now) / MEMORY.as_secs_f64()
    }

    fn decayed(&self, now: Instant) -> f64 {
        let memory = MEMORY.as_secs_f64();
        self.level * memory / (memory + now.since(self.at).as_secs_f64())
    }
}

/// Time over which a stream's rate is measured.
const MEMORY: Duration = Duration::from_millis(250);
/// Number of full packets that a stream must have waiting to be heavy: several paths may carry a heavy stream.
const HEAVY_PACKETS: usize = 2;
/// Round trips that differ by less than this part of the shorter one count as alike.
const ALIKE: u32 = 8;
/// Part of a round trip by which delays may vary when the order is to be kept.
const JITTER: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: usize = 1000;
    const FAST: PathId = PathId(0);
    const SLOW: PathId = PathId(1);

    fn forecasts(slow_millis: u64, slack: usize) -> [PathForecast; 2] {
        [(20, 0), (slow_millis, slack)].map(|(millis, slack)| {
            let rtt = Duration::from_millis(millis);
            PathForecast { rtt, lately: rtt, slack, flight: 0, foothold: 4 * PACKET, usable: true }
        })
    }

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// A stream that has sent a packet every millisecond on the fast path for a second.
    fn busy(forecasts: &[PathForecast]) -> StreamHistory {
        let mut track = StreamHistory::default();
        for millis in 0..1000 {
            track.on_sent(at(millis), FAST, PACKET, forecasts);
        }
        track
    }

    fn placed(
        track: &StreamHistory,
        millis: u64,
        path: PathId,
        unsent: usize,
        forecasts: &[PathForecast],
    ) -> Placing {
        placed_as(StreamClass::Bulk, track, millis, path, unsent, forecasts)
    }

    fn placed_as(
        class: StreamClass,
        track: &StreamHistory,
        millis: u64,
        path: PathId,
        unsent: usize,
        forecasts: &[PathForecast],
    ) -> Placing {
        place(at(millis), path, track, Demand { class, unsent }, PACKET, forecasts)
    }

    #[test]
    fn a_slower_path_joins_in_when_the_peer_can_hold_what_it_makes_wait() {
        // 80 ms later, at about a packet a millisecond: some 80 packets wait.
        let (tight, wide) = (forecasts(100, 60 * PACKET), forecasts(100, 100 * PACKET));
        assert_eq!(placed(&busy(&tight), 1000, SLOW, 10 * PACKET, &tight), Placing::Leave);
        assert_eq!(placed(&busy(&wide), 1000, SLOW, 10 * PACKET, &wide), Placing::Adopt);
        let home = StreamHistory { home: SLOW, ..busy(&tight) };
        assert_eq!(placed(&home, 1000, SLOW, 10 * PACKET, &tight), Placing::Cede(FAST));
        assert_eq!(placed(&home, 1000, SLOW, 10 * PACKET, &wide), Placing::Take);
    }

    #[test]
    fn a_slower_path_waits_when_the_peer_can_hold_no_more_than_is_under_way_there() {
        let mut paths = forecasts(100, 100 * PACKET);
        let mut home = StreamHistory { home: SLOW, ..busy(&paths) };
        home.on_sent(at(999), SLOW, PACKET, &paths);
        paths[1].flight = 30 * PACKET;
        assert_eq!(placed(&home, 1000, SLOW, 10 * PACKET, &paths), Placing::Leave);
        assert_eq!(placed(&home, 1000, FAST, 10 * PACKET, &paths), Placing::Take, "there it goes on");
        paths[1].flight = 10 * PACKET;
        assert_eq!(placed(&home, 1000, SLOW, 10 * PACKET, &paths), Placing::Take);
    }

    #[test]
    fn what_a_stream_sent_before_it_moved_to_a_slower_path_is_not_held_against_it() {
        let paths = forecasts(100, 90 * PACKET);
        let mut track = busy(&paths);
        track.move_to(SLOW, &paths);
        assert_eq!(track.waiting(at(1000), &paths[1], &paths), 0);
        for millis in 1000..2000 {
            track.on_sent(at(millis), FAST, PACKET, &paths);
        }
        assert!(track.waiting(at(2000), &paths[1], &paths) > 60 * PACKET, "what it sends since is");
        let before = track.clone();
        track.move_to(FAST, &paths);
        assert_eq!(track.meters, before.meters, "and remembered there");
    }

    #[test]
    fn a_light_stream_stays_on_one_path_until_its_order_is_safe() {
        let paths = forecasts(100, 100 * PACKET);
        let mut light = StreamHistory { home: SLOW, ..StreamHistory::default() };
        light.on_sent(at(1000), SLOW, 100, &paths);
        assert_eq!(placed(&light, 1010, FAST, 100, &paths), Placing::Leave, "it would overtake");
        assert_eq!(placed(&light, 1081, FAST, 100, &paths), Placing::Adopt);
        let mut fast = StreamHistory::default();
        fast.on_sent(at(1000), FAST, 100, &paths);
        assert_eq!(placed(&fast, 1001, SLOW, 100, &paths), Placing::Leave, "nothing is won there");
    }

    #[test]
    fn a_faster_path_takes_what_it_can_of_a_heavy_stream() {
        let paths = forecasts(100, 100 * PACKET);
        let mut heavy = StreamHistory { home: SLOW, ..StreamHistory::default() };
        heavy.on_sent(at(1000), SLOW, PACKET, &paths);
        assert_eq!(placed(&heavy, 1001, FAST, 10 * PACKET, &paths), Placing::Take);
        assert_eq!(heavy.home, SLOW);
    }

    #[test]
    fn alike_paths_share_heavy_streams_whatever_the_buffer() {
        let paths = forecasts(21, 0);
        assert_eq!(placed(&busy(&paths), 1000, SLOW, 10 * PACKET, &paths), Placing::Adopt);
    }

    #[test]
    fn the_streams_of_a_path_that_cannot_be_used_are_adopted() {
        let mut paths = forecasts(100, 0);
        paths[0].usable = false;
        assert_eq!(placed(&busy(&paths), 1000, SLOW, 100, &paths), Placing::Adopt);
        assert_eq!(fastest(&paths), Some(SLOW));
    }

    /// A latency-critical stream that belongs to the fast path.
    fn urgent(millis: u64, path: PathId, unsent: usize, forecasts: &[PathForecast]) -> Placing {
        placed_as(StreamClass::Latency, &StreamHistory::default(), millis, path, unsent, forecasts)
    }

    #[test]
    fn a_latency_critical_stream_waits_for_the_path_that_delivers_first() {
        let paths = forecasts(100, 0);
        assert_eq!(urgent(1000, FAST, 100, &paths), Placing::Take);
        assert_eq!(urgent(1000, SLOW, 100, &paths), Placing::Leave);
        assert_eq!(urgent(1000, SLOW, 10 * PACKET, &paths), Placing::Leave, "the peer could not hold it");
        let wide = forecasts(100, 100 * PACKET);
        assert_eq!(urgent(1000, SLOW, 10 * PACKET, &wide), Placing::Take, "more than one path carries");
    }

    #[test]
    fn a_latency_critical_stream_leaves_a_path_with_a_queue_when_its_order_is_safe() {
        let mut paths = forecasts(40, 0);
        paths[0].lately = Duration::from_millis(41);
        assert_eq!(urgent(1000, FAST, 100, &paths), Placing::Take, "hardly faster there");
        paths[0].lately = Duration::from_millis(60);
        assert_eq!(urgent(1000, FAST, 100, &paths), Placing::Cede(SLOW));
        assert_eq!(urgent(1000, SLOW, 100, &paths), Placing::Adopt);
        let mut track = StreamHistory { home: SLOW, ..StreamHistory::default() };
        track.on_sent(at(1000), SLOW, 100, &paths);
        paths[0].lately = Duration::from_millis(20);
        let back = |millis, path| placed_as(StreamClass::Latency, &track, millis, path, 100, &paths);
        assert_eq!(back(1001, SLOW), Placing::Take, "there it comes behind what was sent before");
        assert_eq!(back(1001, FAST), Placing::Leave);
        assert_eq!(back(1021, SLOW), Placing::Cede(FAST));
        track.begin_anew(at(1021), StreamClass::Latency, &paths);
        assert_eq!(track.home, FAST);
    }

    #[test]
    fn a_latency_critical_stream_goes_on_without_its_path() {
        let mut paths = forecasts(100, 0);
        paths[0].usable = false;
        assert_eq!(urgent(1000, SLOW, 100, &paths), Placing::Adopt);
    }
}
