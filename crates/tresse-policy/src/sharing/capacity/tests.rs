use super::*;

const PACKET: usize = 1000;

fn report(acked: usize, flight: usize, rtt: Duration, return_path: u8) -> PathReport {
    PathReport { acked, flight, rtt: Some(rtt), return_path: PathId(return_path), pmdcs: PACKET }
}

/// A path that carries one packet per millisecond and adds a delay of `delay` milliseconds.
struct Link {
    capacity: Capacity,
    delay: usize,
    millis_a_packet: usize,
    /// Milliseconds by which round trips are longer, one value after the other, cyclically.
    varies: &'static [usize],
    now: Instant,
}

impl Link {
    fn new(delay: usize) -> Self {
        let capacity = Capacity::new(PACKET, Some(0));
        Link { capacity, delay, millis_a_packet: 1, varies: &[0], now: Instant::ZERO }
    }

    /// Runs rounds in which the sender uses the result of `use_of` on the estimate, in packets.
    fn run(&mut self, rounds: usize, use_of: impl Fn(usize) -> usize) {
        for round in 0..rounds {
            let flight = use_of(self.capacity.bdp() / PACKET).max(1);
            let pace = self.millis_a_packet;
            let millis = (self.delay + pace).max(flight * pace) + self.varies[round % self.varies.len()];
            let rtt = Duration::from_millis(millis as u64);
            self.now += rtt;
            let flight = flight * PACKET;
            self.capacity.on_sack(self.now, report(flight, flight, rtt, 0));
        }
    }

    fn packets(&self) -> usize {
        self.capacity.bdp() / PACKET
    }
}

#[test]
fn an_estimate_grows_until_a_queue_shows_and_stays_there() {
    let mut link = Link::new(49);
    link.run(20, |size| size);
    for _ in 0..50 {
        link.run(1, |size| size);
        assert!((50..=53).contains(&link.packets()), "{}", link.packets());
    }
    assert_eq!(link.capacity.min_rtt(), Duration::from_millis(50));
}

#[test]
fn a_path_whose_round_trips_vary_is_filled_all_the_same() {
    let mut link = Link { varies: &[4, 0, 6, 3, 7, 2, 5], ..Link::new(49) };
    link.run(100, |size| size);
    assert!((48..=70).contains(&link.packets()), "{}", link.packets());
}

#[test]
fn where_allocations_always_hold_a_longer_round_trip_is_a_queue() {
    let steady = |varies| {
        let mut link = Link { varies, capacity: Capacity::new(PACKET, None), ..Link::new(49) };
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
fn an_estimate_without_a_queue_holds_up_no_slow_start() {
    let mut link = Link::new(499);
    for round in 0..8 {
        let window = 4 << round;
        link.run(1, |size| size.min(window));
        assert!(link.packets() >= window, "{} of {window}", link.packets());
    }
}

#[test]
fn where_allocations_always_hold_an_estimate_does_not_leap() {
    let mut link = Link::new(499);
    link.capacity = Capacity::new(PACKET, None);
    link.run(3, |size| size);
    assert!(link.packets() <= INITIAL_PACKETS + 1 + 2 + 4, "{}", link.packets());
}

#[test]
fn a_path_that_a_buffer_limits_keeps_its_estimate() {
    let mut link = Link::new(49);
    link.run(20, |size| size);
    let before = link.packets();
    for _ in 0..30 {
        link.capacity.on_buffer_limited();
        link.run(1, |_| 5);
    }
    assert_eq!(link.packets(), before);
}

#[test]
fn a_path_that_a_full_buffer_keeps_just_below_its_estimate_grows_all_the_same() {
    let mut link = Link::new(49);
    link.run(2, |size| size / 2);
    let before = link.packets();
    for _ in 0..3 {
        link.capacity.on_buffer_limited();
        link.run(1, |size| size - size / 4);
    }
    assert!(link.packets() > before, "{} of {before}", link.packets());
}

#[test]
fn where_allocations_always_hold_an_estimate_never_exceeds_what_was_used() {
    let mut link = Link::new(49);
    link.capacity = Capacity::new(PACKET, None);
    link.run(2, |size| size);
    let before = link.packets();
    for _ in 0..10 {
        link.capacity.on_buffer_limited();
        link.run(1, |size| size - size / 4);
    }
    assert_eq!(link.packets(), before);
}

#[test]
fn one_round_trip_that_is_shorter_says_enough() {
    let unknown = Capacity::new(PACKET, Some(0));
    let mut capacity = Capacity { min_rtt: Duration::from_millis(60), packet_len: PACKET, ..unknown };
    capacity.on_busy();
    let now = Instant::ZERO + Duration::from_millis(300);
    capacity.on_sack(now, report(PACKET, PACKET, Duration::from_millis(7), 1));
    assert_eq!((capacity.min_rtt(), capacity.return_path), (Duration::from_millis(7), PathId(1)));
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
    assert_eq!(link.capacity.min_rtt(), Duration::from_millis(100));
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
    assert_eq!(link.capacity.min_rtt(), Duration::from_millis(50));
    assert!((10..=13).contains(&link.packets()), "{}", link.packets());
}

#[test]
fn a_low_queue_path_is_full_without_a_queue() {
    let mut link = Link::new(49);
    link.capacity.set_low_queue(true);
    link.run(30, |size| size);
    for _ in 0..50 {
        link.run(1, |size| size);
        assert!((50..=51).contains(&link.packets()), "{}", link.packets());
    }
}

#[test]
fn a_short_packet_is_no_measure_for_full_ones() {
    let mut capacity = Capacity::new(PACKET, Some(0));
    let mut now = Instant::ZERO;
    let mut ack = |capacity: &mut Capacity, bytes: usize, micros: u64| {
        now += Duration::from_millis(30);
        capacity.on_sack(now, report(bytes, 10 * PACKET, Duration::from_micros(micros), 0));
    };
    ack(&mut capacity, 100, 20_100);
    ack(&mut capacity, 100, 20_100);
    assert_eq!(capacity.min_rtt(), Duration::from_micros(20_100), "better than nothing");
    for _ in 0..4 {
        ack(&mut capacity, PACKET, 21_000);
        ack(&mut capacity, 100, 20_100);
    }
    assert_eq!(capacity.min_rtt(), Duration::from_millis(21));
}

#[test]
fn a_queue_that_goes_slowly_is_not_taken_for_a_longer_path() {
    let mut link = Link::new(49);
    link.run(20, |size| size);
    // Twice the BDP was sent at once, whatever the estimate was.
    link.run(1, |_| 100);
    link.run(20, |size| size);
    assert_eq!(link.capacity.min_rtt(), Duration::from_millis(50));
    assert!((50..=53).contains(&link.packets()), "{}", link.packets());
}

#[test]
fn round_trips_that_came_back_over_different_paths_are_not_compared() {
    let mut capacity = Capacity::new(PACKET, Some(0));
    let mut now = Instant::ZERO;
    let mut round = |capacity: &mut Capacity, sacks: &[(u64, u8)]| {
        for &(millis, path) in sacks {
            now += Duration::from_millis(50);
            capacity.on_sack(now, report(10 * PACKET, 100 * PACKET, Duration::from_millis(millis), path));
        }
    };
    round(&mut capacity, &[(50, 0); 4]);
    round(&mut capacity, &[(50, 0), (90, 1), (50, 0), (90, 1)]);
    assert_eq!(capacity.min_rtt(), Duration::from_millis(50));
    assert_eq!(capacity.suspected, None, "no queue is seen");
    round(&mut capacity, &[(90, 1); 4]);
    assert_eq!(capacity.min_rtt(), Duration::from_millis(90));
}

#[test]
fn a_queue_shows_also_where_sacks_have_returned_to_a_known_path() {
    let mut capacity = Capacity::new(PACKET, None);
    for (round, millis, path) in [(1, 50, 0), (2, 50, 0), (3, 90, 1), (4, 90, 1), (5, 70, 0), (6, 70, 0)] {
        let now = Instant::ZERO + Duration::from_millis(100 * round);
        capacity.on_sack(now, report(10 * PACKET, 10 * PACKET, Duration::from_millis(millis), path));
    }
    assert_eq!((capacity.min_rtt(), capacity.return_path), (Duration::from_millis(50), PathId(0)));
}

#[test]
fn a_longer_return_path_is_filled_once_the_shorter_one_has_failed() {
    let acked = |millis, path| report(10 * PACKET, 10 * PACKET, Duration::from_millis(millis), path);
    let mut capacity = Capacity::new(PACKET, None);
    for round in 1..=4 {
        capacity.on_sack(Instant::ZERO + Duration::from_millis(50 * round), acked(50, 0));
    }
    let before = capacity.bdp();
    for round in 1..=3 {
        let now = Instant::ZERO + Duration::from_millis(300 + 100 * round);
        capacity.on_sack(now, acked(100, 1));
    }
    assert_eq!(capacity.min_rtt(), Duration::from_millis(100));
    assert!(capacity.bdp() < before * 3 / 2, "{} of {before}", capacity.bdp());
    capacity.on_timeout_of(PathId(0));
    assert!(capacity.bdp() >= before * 2, "{} of {before}", capacity.bdp());
}
