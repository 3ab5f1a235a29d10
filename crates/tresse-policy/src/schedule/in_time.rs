//! Rescheduling at the last moment that is early enough: the chunk that everything waits for goes again on another
//! path, when it would come sooner there and the buffers would run out before.
//!
//! Optimises throughput of ordered data over paths of unlike rate, delay or loss with short buffers, at the least
//! price in repeated data. Unlike the rule of `reschedule`, a slow path that is on time is left alone as long as the
//! buffers bear it, and so can grow its window. It loses where round trips vary by more than their estimate.

use std::time::Duration;

use super::path::PathView;
use super::reschedule::HeadOfLine;
use crate::path::PathId;
use crate::time::nanos;

/// What is to become of the chunk that everything waits for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Repeat {
    /// The path that it goes again on.
    pub to: PathId,
    /// It is overdue on its own: as good as lost.
    pub overdue: bool,
}

/// Which of `usable` repeats `head`: the one with room, not busy repairing losses, that is likely to bring it first.
/// `headroom` is how many bytes can be sent before a buffer is full. It changes its path at most once at a time: to a
/// faster one, or when it is overdue. A path that takes longer than the fastest one has to wait for as much longer:
/// that one may have room by then.
pub fn choose(head: &HeadOfLine, usable: &[PathView], headroom: usize) -> Option<Repeat> {
    let carrier = carrier(head, usable);
    let overdue = carrier.is_none_or(|path| head.age >= patience(path));
    let left = carrier.and_then(|path| path.srtt).unwrap_or_default().saturating_sub(head.age);
    let turn = turns(head, usable);
    let has_turn = |path| turn(path).is_some_and(|age| head.age >= age);
    usable
        .iter()
        .filter(|path| path.room > 0 && !path.recovering)
        .filter_map(|path| path.srtt.map(|srtt| (expected(path, srtt), path)))
        .filter(|&(expected, path)| if overdue { has_turn(path) } else { expected < left })
        .filter(|&(expected, _)| headroom < sent_within(expected, usable))
        .map(|(expected, path)| (expected, path.id))
        .min()
        .map(|(_, to)| Repeat { to, overdue })
}

/// How the usable paths look together, by the worst of each. That is enough to tell that nothing is to be repeated where
/// the buffers hold more than all paths send before a repetition would be answered: mostly they do, and it is asked at
/// every chance to send.
#[derive(Copy, Clone, Debug)]
pub struct Outlook {
    /// Round trips, in nanoseconds.
    shortest: u64,
    longest: u64,
    loss: f64,
    flight: usize,
}

impl Outlook {
    /// Of no path yet.
    pub const NONE: Outlook = Outlook { shortest: u64::MAX, longest: 0, loss: 0.0, flight: 0 };

    /// With one path more, on which `flight` bytes are in flight.
    pub fn with(self, srtt: Option<Duration>, loss: f64, flight: usize) -> Self {
        let srtt = srtt.map(nanos);
        Outlook {
            shortest: self.shortest.min(srtt.unwrap_or(u64::MAX)),
            longest: self.longest.max(srtt.unwrap_or_default()),
            loss: self.loss.max(loss),
            flight: self.flight + flight,
        }
    }

    /// Whether [`choose`] finds nothing to repeat with so much `headroom`.
    pub fn is_borne_by(&self, headroom: usize) -> bool {
        // A little longer, and more, than for each by itself, however that is rounded.
        let answered = self.longest as f64 * (1.0 + 2.0 * self.loss.clamp(0.0, 1.0)) + 1.0;
        1.001 * self.flight as f64 * answered < headroom as f64 * self.shortest as f64
    }
}

/// Whether [`choose`] finds nothing to repeat because a path in use has `head` under way, is not late with it by its
/// round-trip time `srtt` with the variation `rttvar`, and will have brought it before any of the paths with round-trip
/// times `all` could.
pub fn is_left_alone(
    head: &HeadOfLine,
    (srtt, rttvar): (Duration, Duration),
    mut all: impl Iterator<Item = Duration>,
) -> bool {
    head.age < overdue_after(srtt, rttvar) && {
        let left = srtt.saturating_sub(head.age);
        all.all(|srtt| srtt >= left)
    }
}

/// How long after its sending a chunk is overdue on a path with these round-trip times. As long as it is not, that is its
/// [next turn](next_turn).
pub fn overdue_after(srtt: Duration, rttvar: Duration) -> Duration {
    srtt + rttvar.max(srtt / 4)
}

/// The age at which `head` may go again on one more path than now; `None` when it may on all.
pub fn next_turn(head: &HeadOfLine, usable: &[PathView]) -> Option<Duration> {
    usable.iter().filter_map(turns(head, usable)).filter(|&age| age > head.age).min()
}

/// The ages at which `head` may go again on each path, not being in time; `None` as long as nothing is known of that.
fn turns(head: &HeadOfLine, usable: &[PathView]) -> impl Fn(&PathView) -> Option<Duration> {
    let times = |path: &PathView| path.srtt.map(|srtt| expected(path, srtt));
    let soonest = usable.iter().filter_map(times).min();
    let patience = carrier(head, usable).map_or(Duration::ZERO, patience);
    move |path| patience.checked_add(times(path)? - soonest?)
}

/// The path that has `head` under way, if it is in use.
fn carrier<'a>(head: &HeadOfLine, usable: &'a [PathView]) -> Option<&'a PathView> {
    usable.iter().find(|path| path.id == head.path)
}

/// How long after its sending an acknowledgement over `path` is overdue.
fn patience(path: &PathView) -> Duration {
    path.srtt.map_or(Duration::MAX, |srtt| overdue_after(srtt, path.rttvar))
}

/// When the acknowledgement may be expected of a chunk sent now: a loss costs two round trips more.
fn expected(path: &PathView, srtt: Duration) -> Duration {
    if path.loss == 0.0 { srtt } else { srtt + (srtt * 2).mul_f64(path.loss.clamp(0.0, 1.0)) }
}

/// Bytes that all paths send in `time`, if each keeps as many in flight.
fn sent_within(time: Duration, paths: &[PathView]) -> usize {
    let sent = |path: &PathView| {
        let srtt = path.srtt.unwrap_or(time).as_secs_f64().max(f64::MIN_POSITIVE);
        path.flight as f64 * time.as_secs_f64() / srtt
    };
    paths.iter().map(sent).sum::<f64>() as usize
}

#[cfg(test)]
mod tests {
    use super::super::path::tests::{full, view, with_srtt};
    use super::*;

    fn head(path: u8, millis: u64) -> HeadOfLine {
        HeadOfLine { index: 7, path: PathId(path), bytes: 1000, age: Duration::from_millis(millis) }
    }

    fn busy(id: u8, millis: u64) -> PathView {
        PathView { flight: 10_000, ..with_srtt(id, millis) }
    }

    fn to(path: u8, overdue: bool) -> Option<Repeat> {
        Some(Repeat { to: PathId(path), overdue })
    }

    #[test]
    fn a_chunk_on_its_way_is_repeated_only_where_it_comes_sooner_and_when_the_buffers_run_out() {
        let paths = [busy(0, 20), busy(1, 200)];
        // In 20 ms the one path sends 10,000 bytes and the other 1,000.
        assert_eq!(choose(&head(1, 100), &paths, 10_999), to(0, false));
        assert_eq!(choose(&head(1, 100), &paths, 11_000), None, "the buffers bear it");
        assert_eq!(choose(&head(1, 190), &paths, 0), None, "it will be there before");
        assert_eq!(choose(&head(0, 0), &paths, 0), None, "no path is faster");
    }

    #[test]
    fn an_overdue_chunk_is_repeated_on_any_path_that_loses_little() {
        let paths = [busy(0, 20), busy(1, 200)];
        assert_eq!(choose(&head(1, 249), &paths, 0), None, "a quarter of a round trip late at most");
        assert_eq!(choose(&head(1, 250), &paths, 0), to(0, true));
        assert_eq!(choose(&head(0, 25), &paths[..1], 0), to(0, true), "its own, if there is no other");
        let lossy = PathView { loss: 0.3, ..busy(0, 20) };
        assert_eq!(choose(&head(0, 25), &[lossy, busy(1, 22)], 0), to(1, true));
        assert_eq!(choose(&head(2, 0), &paths, 0), to(0, true), "its path is in use no more");
    }

    #[test]
    fn an_overdue_chunk_waits_for_a_fast_path_as_long_as_a_slow_one_would_take_longer() {
        let recovering = PathView { recovering: true, ..busy(0, 20) };
        let paths = [recovering, busy(1, 200)];
        assert_eq!(choose(&head(0, 25), &paths, 0), None);
        assert_eq!(choose(&head(0, 204), &paths, 0), None);
        assert_eq!(choose(&head(0, 205), &paths, 0), to(1, true));
        let turn = |millis| next_turn(&head(0, millis), &paths).map(|age| age.as_millis());
        assert_eq!((turn(0), turn(25), turn(205)), (Some(25), Some(205), None));
        assert_eq!(choose(&head(0, 25), &[busy(0, 20), busy(1, 200)], 0), to(0, true), "it has room");
    }

    #[test]
    fn what_the_paths_together_never_fill_lets_none_of_them_repeat_anything() {
        let (mut borne, mut repeated) = (0, 0);
        let times = [None, Some(0), Some(1), Some(20), Some(150)];
        let all = times.iter().flat_map(|&one| times.iter().map(move |&other| (one, other)));
        for ((one, other), loss) in all.flat_map(|pair| [(pair, 0.0), (pair, 0.013), (pair, 1.0)]) {
            let path = |id: u8, millis: Option<u64>, flight| {
                let srtt = millis.map(Duration::from_millis);
                PathView { srtt, flight, loss: loss / f64::from(id + 1), ..view(id) }
            };
            let paths = [path(0, one, 9_973), path(1, other, 10_007)];
            let together = |paths: &[PathView]| {
                paths.iter().fold(Outlook::NONE, |all, path| all.with(path.srtt, path.loss, path.flight))
            };
            let asked = (0..200_000).step_by(997).flat_map(|room| [(0, room), (30, room), (1_000, room)]);
            for (age, headroom) in asked {
                let choice = choose(&head(1, age), &paths, headroom);
                let bears = together(&paths).is_borne_by(headroom);
                assert!(choice.is_none() || !bears, "{paths:?} {headroom}");
                (borne, repeated) = (borne + u32::from(bears), repeated + u32::from(choice.is_some()));
            }
        }
        assert!(borne > 0 && repeated > 0, "{borne} {repeated}");
    }

    #[test]
    fn a_chunk_that_is_left_alone_is_repeated_nowhere_and_has_its_turn_when_it_is_overdue() {
        let mut left_alone = 0;
        let times = [None, Some(4), Some(20), Some(21), Some(150)];
        for (other, rttvar) in times.into_iter().flat_map(|other| [(other, 0), (other, 7)]) {
            let rttvar = Duration::from_millis(rttvar);
            let own = PathView { rttvar, ..busy(0, 20) };
            let paths = [own, PathView { srtt: other.map(Duration::from_millis), ..busy(1, 20) }];
            for age in 0..30 {
                let head = head(0, age);
                let round_trip = (Duration::from_millis(20), rttvar);
                let overdue = overdue_after(round_trip.0, rttvar);
                if is_left_alone(&head, round_trip, paths.iter().filter_map(|path| path.srtt)) {
                    assert_eq!(choose(&head, &paths, 0), None, "{paths:?} {age}");
                    left_alone += 1;
                }
                assert!(head.age >= overdue || next_turn(&head, &paths) == Some(overdue), "{paths:?} {age}");
            }
        }
        assert!(left_alone > 0);
    }

    #[test]
    fn a_chunk_that_has_gone_to_the_fastest_path_stays_there() {
        let paths = [busy(0, 20), busy(1, 20), busy(2, 20)];
        for path in 0..3 {
            assert_eq!(choose(&head(path, 0), &paths, 0), None);
        }
    }

    #[test]
    fn a_full_unmeasured_or_recovering_path_repeats_nothing() {
        for other in [full(busy(0, 20)), view(0), PathView { recovering: true, ..busy(0, 20) }] {
            assert_eq!(choose(&head(1, 10), &[other, busy(1, 200)], 0), None);
        }
        assert_eq!(choose(&head(1, 10), &[busy(0, 20), view(1)], 0), None, "nobody knows how slow path 1 is");
    }
}
