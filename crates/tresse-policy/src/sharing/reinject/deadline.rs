//! Deadline-based reinjection: the head-of-line chunk is reinjected as late as the buffers allow, on a path that delivers
//! it sooner.
//!
//! It optimises throughput of ordered data over paths of different rate, delay or loss with short buffers, with the
//! fewest repeated chunks. Unlike with [chunk rescheduling](super::chunk_rescheduling), chunks of a slow path that is
//! on time are not reinjected as long as the buffers have room for the data that all paths send meanwhile, so its
//! window can grow. It is a disadvantage if round trips vary by more than their estimate.

use std::time::Duration;

use crate::path::PathId;
use crate::sharing::view::{HeadOfLine, PathSample};

/// Decision to reinject the head-of-line chunk.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Reinjection {
    /// The path on which the chunk is reinjected.
    pub to: PathId,
    /// True if the chunk is overdue on its own path, and so counts as lost.
    pub overdue: bool,
}

/// Upper bound on the data that all usable paths send until a chunk that is reinjected now is acknowledged. If the
/// buffers have room for that, [`choose`] reinjects nothing. The check is made for each packet, and usually there is
/// room: without this bound a simulation of two paths takes 6 to 8 % more instructions.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct SentBound {
    /// Longest time until the acknowledgement, with retransmissions, as a multiple of the shortest round-trip time.
    round_trips: f64,
}

impl SentBound {
    /// Computes the bound for paths with these smoothed round-trip times and loss rates (0 to 1). A path without a
    /// measurement is omitted.
    pub fn of(paths: impl Iterator<Item = (Option<Duration>, f64)>) -> Self {
        let (mut shortest, mut longest, mut most_lost) = (f64::INFINITY, 0.0_f64, 0.0_f64);
        for (srtt, loss) in paths.filter_map(|(srtt, loss)| Some((srtt?.as_secs_f64(), loss))) {
            (shortest, longest, most_lost) = (shortest.min(srtt), longest.max(srtt), most_lost.max(loss));
        }
        let expected = longest * (1.0 + 2.0 * most_lost.clamp(0.0, 1.0));
        SentBound { round_trips: expected / shortest.max(f64::MIN_POSITIVE) }
    }

    /// Returns the bound in bytes, with `flight` bytes in flight now on all paths together.
    pub fn bytes(&self, flight: usize) -> usize {
        // Rounded up: one more than the integer part.
        ((flight as f64 * self.round_trips) as usize).saturating_add(1)
    }
}

/// Returns the reinjection of `head` that is due now: on the usable path with room, not in fast recovery, that is
/// likely to deliver it first. `headroom` is the number of bytes that can be sent before a buffer is full. A chunk
/// moves to a faster path, or when it is overdue. An overdue chunk may leave on a slower path only after the time by
/// which this path takes longer than the fastest one, which may have room by then.
pub fn choose(head: &HeadOfLine, usable: &[PathSample], headroom: usize) -> Option<Reinjection> {
    let carrier = carrier(head, usable);
    let overdue = carrier.is_none_or(|path| head.age >= due(path));
    let left = carrier.and_then(|path| path.srtt).unwrap_or_default().saturating_sub(head.age);
    let has_turn = |path| turns(head, usable)(path).is_some_and(|age| head.age >= age);
    usable
        .iter()
        .filter(|path| path.room > 0 && !path.recovering)
        .filter_map(|path| path.srtt.map(|srtt| (expected(path, srtt), path)))
        .filter(|&(expected, path)| if overdue { has_turn(path) } else { expected < left })
        .filter(|&(expected, _)| headroom < sent_within(expected, usable))
        .map(|(expected, path)| (expected, path.id))
        .min()
        .map(|(_, to)| Reinjection { to, overdue })
}

/// Returns the age at which `head` may be reinjected on one more path than now; `None` if it may be on all.
pub fn next_turn(head: &HeadOfLine, usable: &[PathSample]) -> Option<Duration> {
    usable.iter().filter_map(turns(head, usable)).filter(|&age| age > head.age).min()
}

/// Returns the ages at which `head` may be reinjected on each path once it is overdue; `None` for a path without a measurement.
fn turns(head: &HeadOfLine, usable: &[PathSample]) -> impl Fn(&PathSample) -> Option<Duration> {
    let times = |path: &PathSample| path.srtt.map(|srtt| expected(path, srtt));
    let soonest = usable.iter().filter_map(times).min();
    let due = carrier(head, usable).map_or(Duration::ZERO, due);
    move |path| due.checked_add(times(path)? - soonest?)
}

/// Returns the path that carries `head`, if it is in use.
fn carrier<'a>(head: &HeadOfLine, usable: &'a [PathSample]) -> Option<&'a PathSample> {
    usable.iter().find(|path| path.id == head.path)
}

/// Returns the time after the sending of a chunk at which its acknowledgement over `path` is overdue.
fn due(path: &PathSample) -> Duration {
    path.srtt.map_or(Duration::MAX, |srtt| srtt + path.rttvar.max(srtt / OVERDUE_PART))
}

/// Returns the expected time until the acknowledgement of a chunk sent now: a loss costs two round trips more.
fn expected(path: &PathSample, srtt: Duration) -> Duration {
    if path.loss == 0.0 { srtt } else { srtt + (srtt * 2).mul_f64(path.loss.clamp(0.0, 1.0)) }
}

/// Returns the bytes that all paths send in `time`, if each keeps as many in flight.
fn sent_within(time: Duration, paths: &[PathSample]) -> usize {
    let sent = |path: &PathSample| {
        let srtt = path.srtt.unwrap_or(time).as_secs_f64().max(f64::MIN_POSITIVE);
        path.flight as f64 * time.as_secs_f64() / srtt
    };
    paths.iter().map(sent).sum::<f64>() as usize
}

/// Part of a round trip by which an acknowledgement must be late to be overdue, unless the RTT variation is more.
const OVERDUE_PART: u32 = 4;

#[cfg(test)]
mod tests {
    use super::super::tests::{full, head, unmeasured, with_srtt};
    use super::*;

    fn busy(id: u8, millis: u64) -> PathSample {
        PathSample { flight: 10_000, ..with_srtt(id, millis) }
    }

    fn to(path: u8, overdue: bool) -> Option<Reinjection> {
        Some(Reinjection { to: PathId(path), overdue })
    }

    #[test]
    fn a_chunk_on_its_way_is_reinjected_only_where_it_comes_sooner_and_when_the_buffers_run_out() {
        let paths = [busy(0, 20), busy(1, 200)];
        // In 20 ms the first path sends 10,000 bytes and the second 1,000.
        assert_eq!(choose(&head(1, 100), &paths, 10_999), to(0, false));
        assert_eq!(choose(&head(1, 100), &paths, 11_000), None, "the buffers have room");
        assert_eq!(choose(&head(1, 190), &paths, 0), None, "it will be there before");
        assert_eq!(choose(&head(0, 0), &paths, 0), None, "no path is faster");
    }

    #[test]
    fn nothing_is_reinjected_where_the_buffers_hold_what_all_paths_send_at_most() {
        let lossy = PathSample { loss: 0.3, ..busy(1, 70) };
        let paths = [busy(0, 20), lossy, unmeasured(2)];
        let bound = SentBound::of(paths.iter().map(|path| (path.srtt, path.loss)));
        // 20,000 bytes for each of the 5.6 shortest round trips that the longest one takes with its losses.
        assert_eq!(bound.bytes(20_000), 112_001);
        for path in 0..3 {
            for millis in 0..500 {
                assert_eq!(choose(&head(path, millis), &paths, bound.bytes(20_000)), None);
            }
        }
        assert_eq!(SentBound::of([(None, 0.5)].into_iter()).bytes(20_000), 1);
    }

    #[test]
    fn an_overdue_chunk_is_reinjected_on_any_path_that_loses_little() {
        let paths = [busy(0, 20), busy(1, 200)];
        assert_eq!(choose(&head(1, 249), &paths, 0), None, "a quarter of a round trip late at most");
        assert_eq!(choose(&head(1, 250), &paths, 0), to(0, true));
        assert_eq!(choose(&head(0, 25), &paths[..1], 0), to(0, true), "its own, if there is no other");
        let lossy = PathSample { loss: 0.3, ..busy(0, 20) };
        assert_eq!(choose(&head(0, 25), &[lossy, busy(1, 22)], 0), to(1, true));
        assert_eq!(choose(&head(2, 0), &paths, 0), to(0, true), "its path is in use no more");
    }

    #[test]
    fn an_overdue_chunk_waits_for_a_fast_path_as_long_as_a_slow_one_would_take_longer() {
        let recovering = PathSample { recovering: true, ..busy(0, 20) };
        let paths = [recovering, busy(1, 200)];
        assert_eq!(choose(&head(0, 25), &paths, 0), None);
        assert_eq!(choose(&head(0, 204), &paths, 0), None);
        assert_eq!(choose(&head(0, 205), &paths, 0), to(1, true));
        let turn = |millis| next_turn(&head(0, millis), &paths).map(|age| age.as_millis());
        assert_eq!((turn(0), turn(25), turn(205)), (Some(25), Some(205), None));
        assert_eq!(choose(&head(0, 25), &[busy(0, 20), busy(1, 200)], 0), to(0, true), "it has room");
    }

    #[test]
    fn a_chunk_that_is_not_late_has_its_turn_when_it_is_overdue() {
        for rttvar in [0, 7] {
            let own = PathSample { rttvar: Duration::from_millis(rttvar), ..busy(0, 20) };
            let overdue = Duration::from_millis(20 + rttvar.max(5));
            assert_eq!(next_turn(&head(0, 3), &[own, busy(1, 20)]), Some(overdue));
        }
    }

    #[test]
    fn a_chunk_that_has_gone_to_the_fastest_path_stays_there() {
        let paths = [busy(0, 20), busy(1, 20), busy(2, 20)];
        for path in 0..3 {
            assert_eq!(choose(&head(path, 0), &paths, 0), None);
        }
    }

    #[test]
    fn a_full_unmeasured_or_recovering_path_reinjects_nothing() {
        for other in [full(busy(0, 20)), unmeasured(0), PathSample { recovering: true, ..busy(0, 20) }] {
            assert_eq!(choose(&head(1, 10), &[other, busy(1, 200)], 0), None);
        }
        let unknown = [busy(0, 20), unmeasured(1)];
        assert_eq!(choose(&head(1, 10), &unknown, 0), None, "nobody knows how slow path 1 is");
    }
}
