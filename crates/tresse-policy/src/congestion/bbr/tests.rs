//! One flow over a path with one queue, packet by packet.

use std::collections::VecDeque;

use super::*;
use crate::congestion::delivery::Delivery;

const PACKET: usize = 1000;

/// A path that transmits a packet in `service`; the SACK for it arrives `rtt` later.
struct Net {
    service: Duration,
    rtt: Duration,
    /// One packet in so many is lost.
    loses: Option<u64>,
    now: Instant,
    /// Time at which the transmitter has sent all packets that wait.
    busy_until: Instant,
    /// Arrivals of SACKs, with the sending times of their packets, and whether these were lost.
    flying: VecDeque<(Instant, Instant, bool)>,
    sent: u64,
    may_send: Instant,
    window: PathWindow,
    bbr: Bbr,
    delivery: Delivery,
    delivered: u64,
    longest: Duration,
}

impl Net {
    fn new(packets_per_second: u32, rtt_ms: u64) -> Self {
        let mut bbr = Bbr::default();
        let window = PathWindow {
            path: PathId(0),
            cwnd: 10 * PACKET,
            ssthresh: Sizes::LARGEST,
            packet: PACKET,
            srtt: None,
            min_rtt: None,
            usable: true,
            recovering: false,
        };
        bbr.on_path_added(&window);
        Net {
            service: Duration::from_secs(1) / packets_per_second,
            rtt: Duration::from_millis(rtt_ms),
            loses: None,
            now: Instant::ZERO,
            busy_until: Instant::ZERO,
            flying: VecDeque::new(),
            sent: 0,
            may_send: Instant::ZERO,
            window,
            bbr,
            delivery: Delivery::default(),
            delivered: 0,
            longest: Duration::ZERO,
        }
    }

    fn flight(&self) -> usize {
        self.flying.len() * PACKET
    }

    /// Sends as much as window and pacing rate allow until `time` has passed. Returns the packets delivered per second.
    fn run(&mut self, time: Duration) -> f64 {
        let (end, before) = (self.now + time, self.delivered);
        self.longest = Duration::ZERO;
        while self.now < end {
            while self.flight() < self.window.cwnd && self.may_send <= self.now {
                self.send();
            }
            let sack = self.flying.front().map_or(end, |(at, ..)| *at);
            let pace = if self.flight() < self.window.cwnd { self.may_send } else { end };
            self.now = self.now.max(sack.min(pace).min(end));
            while self.flying.front().is_some_and(|(at, ..)| *at <= self.now) {
                self.take_sack();
            }
        }
        (self.delivered - before) as f64 / time.as_secs_f64()
    }

    /// Sends nothing until `time` has passed.
    fn pause(&mut self, time: Duration) {
        self.now += time;
        while !self.flying.is_empty() {
            self.take_sack();
        }
        let windows = [self.window];
        let situation = Situation { now: self.now, path: PathId(0), windows: &windows };
        self.window.cwnd = self.bbr.on_idle(&situation).map_or(self.window.cwnd, |sizes| sizes.cwnd);
    }

    fn send(&mut self) {
        self.sent += 1;
        self.busy_until = self.busy_until.max(self.now) + self.service;
        let lost = self.loses.is_some_and(|each| self.sent.is_multiple_of(each));
        self.flying.push_back((self.busy_until + self.rtt, self.now, lost));
        if let Some(rate) = self.bbr.pacing_rate(PathId(0)) {
            let pause = Duration::from_secs_f64(PACKET as f64 / rate.get() as f64);
            self.may_send = self.may_send.max(self.now) + pause;
        }
    }

    fn take_sack(&mut self) {
        let flight_before = self.flight();
        let held = self.may_send > self.now;
        let Some((at, sent_at, is_lost)) = self.flying.pop_front() else { return };
        let (acked, lost) = if is_lost { (0, PACKET) } else { (PACKET, 0) };
        let rtt = (!is_lost).then(|| at.since(sent_at));
        self.delivery.on_sack(at, (acked, lost), rtt, self.flying.is_empty());
        if is_lost {
            return;
        }
        self.delivered += 1;
        self.longest = self.longest.max(at.since(sent_at));
        self.window.srtt = rtt;
        let ack = Ack {
            bytes: acked,
            flight_before,
            flight_after: self.flight(),
            may_grow: true,
            fully_used: held || flight_before >= self.window.cwnd,
            lost: self.delivery.take_lost(),
            rtt,
            rate: self.delivery.rate(),
        };
        let windows = [self.window];
        let situation = Situation { now: at, path: PathId(0), windows: &windows };
        let sizes = self.bbr.on_ack(&situation, &ack);
        (self.window.cwnd, self.window.ssthresh) = (sizes.cwnd, sizes.ssthresh);
    }
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn it_finds_the_bandwidth_and_leaves_no_queue() {
    let mut net = Net::new(1000, 50);
    net.run(SECOND);
    let carried = net.run(10 * SECOND);
    assert!(carried > 930.0, "{carried} of 1000 packets a second");
    // A probe queues a quarter of the BDP for a round trip.
    assert!(net.longest < Duration::from_millis(75), "{:?}", net.longest);
}

#[test]
fn startup_ends_when_the_path_is_full() {
    let mut net = Net::new(1000, 50);
    net.run(SECOND);
    let model = &net.bbr.models[0];
    assert!(model.is_full && model.phase != Phase::Startup, "{model:?}");
    let bandwidth = model.bandwidth_seen();
    assert!((900e3..1100e3).contains(&bandwidth), "{bandwidth} bytes a second");
}

#[test]
fn losses_by_chance_cost_little() {
    let mut net = Net::new(1000, 50);
    net.loses = Some(100);
    net.run(2 * SECOND);
    let carried = net.run(20 * SECOND);
    assert!(carried > 750.0, "{carried} of 990 packets a second");
}

#[test]
fn more_bandwidth_is_found_by_probes_and_less_by_the_next_cycles() {
    let mut net = Net::new(1000, 50);
    net.run(3 * SECOND);
    net.service /= 3;
    net.run(15 * SECOND);
    let carried = net.run(5 * SECOND);
    assert!(carried > 2500.0, "{carried} of 3000 packets a second");
    net.service *= 6;
    net.run(15 * SECOND);
    let carried = net.run(5 * SECOND);
    assert!(carried > 450.0, "{carried} of 500 packets a second");
    assert!(net.longest < Duration::from_millis(100), "{:?}", net.longest);
}

#[test]
fn a_longer_route_is_believed_in_time() {
    let mut net = Net::new(1000, 20);
    net.run(3 * SECOND);
    net.rtt = Duration::from_millis(100);
    net.run(15 * SECOND);
    assert!(net.bbr.models[0].min_rtt.is_some_and(|(rtt, _)| rtt >= Duration::from_millis(100)));
    let carried = net.run(5 * SECOND);
    assert!(carried > 900.0, "{carried} of 1000 packets a second");
}

#[test]
fn the_shortest_round_trip_is_looked_for_where_none_was_as_short_for_five_seconds() {
    let mut net = Net::new(1000, 50);
    net.run(3 * SECOND);
    // From now on all round trips are longer than those before.
    net.rtt = Duration::from_millis(52);
    let (mut probing, mut least) = (Vec::new(), usize::MAX);
    for millis in 0..8_000 {
        net.run(Duration::from_millis(1));
        if net.bbr.models[0].phase == Phase::ProbeRtt {
            probing.push(millis);
            least = least.min(net.window.cwnd);
        }
    }
    let (first, last) = (probing[0], probing[probing.len() - 1]);
    assert!((4_500..5_500).contains(&first), "it begins after {first} ms");
    assert!((200..500).contains(&(last - first)), "it takes {} ms", last - first);
    assert!(least <= 30 * PACKET, "{least} bytes, of 50,000 that fill the path");
    assert!(net.run(2 * SECOND) > 900.0, "and then the path is full again");
}

#[test]
fn a_path_that_was_idle_needs_no_probe_of_the_round_trip() {
    let mut net = Net::new(1000, 50);
    net.run(3 * SECOND);
    net.rtt = Duration::from_millis(52);
    net.pause(8 * SECOND);
    let began = net.now;
    net.run(Duration::from_millis(100));
    // From now on all round trips are longer than the first.
    net.rtt = Duration::from_millis(54);
    while net.bbr.models[0].phase != Phase::ProbeRtt {
        net.run(Duration::from_millis(1));
        assert!(net.now.since(began) < 6 * SECOND, "one is due five seconds later");
    }
    assert!(net.now.since(began) > 5 * SECOND, "after {:?}", net.now.since(began));
}

#[test]
fn a_timeout_leaves_one_packet_and_a_spurious_one_nothing() {
    let mut net = Net::new(1000, 50);
    net.run(2 * SECOND);
    let before = Sizes { cwnd: net.window.cwnd, ssthresh: net.window.ssthresh };
    let windows = [net.window];
    let situation = Situation { now: net.now, path: PathId(0), windows: &windows };
    let cut = net.bbr.on_timeout(&situation).expect("an answer");
    assert_eq!(cut.cwnd, PACKET);
    let windows = [PathWindow { cwnd: cut.cwnd, ..net.window }];
    let situation = Situation { windows: &windows, ..situation };
    assert_eq!(net.bbr.on_spurious(&situation, before).cwnd, before.cwnd);
    assert_eq!(net.bbr.on_idle(&situation).map(|sizes| sizes.cwnd), Some(PACKET));
    net.window.cwnd = cut.cwnd;
    assert!(net.run(2 * SECOND) > 700.0, "it comes back");
}

/// The window grows from a packet by the bytes acknowledged until the losses are repaired (§5.6.4.4).
#[test]
fn the_window_before_a_timeout_returns_with_what_was_first_sent_after_it() {
    let mut net = Net::new(1000, 50);
    net.run(2 * SECOND);
    let before = net.window.cwnd;
    let at = |millis| net.now + Duration::from_millis(millis);
    let mut window = net.window;
    let windows = [window];
    let situation = Situation { now: at(0), path: PathId(0), windows: &windows };
    window.cwnd = net.bbr.on_timeout(&situation).expect("an answer").cwnd;
    let mut cwnds = Vec::new();
    // The first two SACKs acknowledge a retransmission and a late packet.
    for (millis, rtt) in [(50, None), (51, Some(500)), (100, None), (150, Some(51))] {
        let rtt = rtt.map(Duration::from_millis);
        let ack = Ack { flight_before: window.cwnd, rtt, ..Ack::new(PACKET) };
        let windows = [window];
        let situation = Situation { now: at(millis), path: PathId(0), windows: &windows };
        window.cwnd = net.bbr.on_ack(&situation, &ack).cwnd;
        cwnds.push(window.cwnd);
    }
    assert_eq!(cwnds[..3], [4 * PACKET, 5 * PACKET, 6 * PACKET]);
    assert!(cwnds[3] >= before, "{} of {before} bytes", cwnds[3]);
}

#[test]
fn paths_have_models_of_their_own() {
    let mut bbr = Bbr::default();
    let net = Net::new(1000, 50);
    let windows = [net.window, PathWindow { path: PathId(1), ..net.window }];
    let ack = Ack {
        bytes: 10 * PACKET,
        flight_before: 10 * PACKET,
        flight_after: 0,
        may_grow: true,
        fully_used: true,
        lost: 0,
        rtt: Some(Duration::from_millis(50)),
        rate: 200_000,
    };
    let situation = Situation { now: Instant::ZERO + SECOND, path: PathId(1), windows: &windows };
    bbr.on_ack(&situation, &ack);
    assert_eq!(bbr.pacing_rate(PathId(0)), None);
    let rate = bbr.pacing_rate(PathId(1)).expect("known").get() as f64;
    assert!((rate / (2.77 * 0.99 * 200_000.0) - 1.0).abs() < 1e-3, "{rate}");
}
