//! The same scenario simulated and emulated: endpoints from outside meet the paths that a simulation has, although
//! whoever drives them only looks once a millisecond.

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use tresse_proto::{
    AssociationId, Connect, Datagram, Endpoint, EndpointConfig, Event, Instant, SendOptions, StreamId,
};
use tresse_sim::{Emulation, End, RunOptions, Scenario, run};

const SCENARIO: &str = r#"
settle = "2s"
measure = "20s"
start_jitter = "0s"
[transport]
send_buffer = "256KiB"
receive_buffer = "256KiB"
[[path]]
rate = "4Mbit/s"
delay = "20ms"
loss = "1%"
reverse = { loss = 0 }
[[path]]
rate = "2Mbit/s"
delay = "5ms"
"#;

/// How often the driver looks.
const TICK: Duration = Duration::from_millis(1);
const MESSAGE: &[u8] = &[7; 1452];

/// Two endpoints, and the network between them.
struct Outside {
    ends: [Endpoint; 2],
    emulation: Emulation<'static>,
    association: AssociationId,
    open: bool,
    received: u64,
}

fn address(end: usize, path: usize) -> IpAddr {
    [192, 0, 2, (10 * path + end) as u8].into()
}

fn addresses(end: usize) -> Vec<IpAddr> {
    (0..2).map(|path| address(end, path)).collect()
}

impl Outside {
    fn new(scenario: &Scenario) -> Self {
        let resolved = scenario.resolved();
        let endpoint = |listen, port| {
            let config = EndpointConfig { port, listen, ..EndpointConfig::default() };
            Endpoint::new(config, resolved.sender.clone(), [port as u8; 32]).expect("good settings")
        };
        let mut ends = [endpoint(false, 1), endpoint(true, 2)];
        ends[1].set_local_addresses(addresses(1));
        let connect = Connect {
            local: addresses(0),
            remote: addresses(1),
            remote_port: 2,
            encapsulation_port: None,
            config: resolved.sender.clone(),
        };
        let association = ends[0].connect(Instant::ZERO, connect).expect("good addresses");
        let emulation = Emulation::new(scenario, None).expect("no capture");
        Outside { ends, emulation, association, open: false, received: 0 }
    }

    /// One look at everything.
    fn look(&mut self, now: Instant) {
        while let Some(delivery) = self.emulation.poll(now) {
            let end = usize::from(delivery.to == End::Receiver);
            let datagram = Datagram {
                local: address(end, delivery.path),
                remote: address(1 - end, delivery.path),
                encapsulation_port: None,
                ecn: tresse_proto::Ecn::NotEct,
                payload: delivery.payload,
            };
            self.ends[end].handle_datagram(now, datagram);
        }
        for end in 0..2 {
            if self.ends[end].poll_timeout().is_some_and(|at| at <= now) {
                self.ends[end].handle_timeout(now);
            }
            while let Some((id, event)) = self.ends[end].poll_event() {
                self.open |= end == 0 && matches!(event, Event::Established { .. });
                let mut association = self.ends[end].association(id).expect("it is told of");
                while let Some(message) = association.recv(now) {
                    self.received += message.payload.len() as u64;
                }
            }
        }
        if self.open {
            let mut association = self.ends[0].association(self.association).expect("it lives");
            let message = || Bytes::from_static(MESSAGE);
            while association.send(now, SendOptions::on(StreamId(0)), message()).is_ok() {}
        }
        for end in 0..2 {
            let from = [End::Sender, End::Receiver][end];
            let mut packet = Vec::new();
            while let Some(transmit) = self.ends[end].poll_transmit(now, 1, &mut packet) {
                let path = (0..2).find(|path| address(1 - end, *path) == transmit.remote).expect("a path");
                self.emulation.offer(now, path, from, std::mem::take(&mut packet).into());
            }
        }
    }
}

#[test]
fn emulated_paths_carry_what_simulated_ones_do() {
    let scenario = Scenario::from_toml(SCENARIO, "both").expect("a good scenario");
    let simulated = run(&scenario, RunOptions::default()).expect("it runs");
    let mut outside = Outside::new(&scenario);
    let (mut now, mut settled) = (Instant::ZERO, 0);
    let (settle, end) = (Instant::ZERO + Duration::from_secs(2), Instant::ZERO + Duration::from_secs(22));
    let mut before = Vec::new();
    while now < end {
        now += TICK;
        outside.look(now);
        if now == settle {
            settled = outside.received;
            before = outside.emulation.counters(now);
        }
    }
    let emulated_mbps = (outside.received - settled) as f64 * 8e-6 / 20.0;
    let ratio = emulated_mbps / simulated.throughput_mbps;
    assert!((0.9..1.1).contains(&ratio), "{emulated_mbps} Mbit/s, {} simulated", simulated.throughput_mbps);
    let after = outside.emulation.counters(now);
    for (path, (after, before)) in after.iter().zip(&before).enumerate() {
        let forward = after.0.since(&before.0);
        let loss = forward.dropped() as f64 / forward.offered as f64;
        let expected = simulated.paths[path].loss;
        // Some thousand packets on either path.
        assert!((loss - expected).abs() < 0.01, "path {path}: {loss} were lost, {expected} simulated");
        let wire = forward.arrived_bytes as f64 * 8e-6 / 20.0;
        let expected = simulated.paths[path].wire_mbps;
        assert!((0.85..1.15).contains(&(wire / expected)), "path {path}: {wire}, {expected} simulated");
    }
}

#[test]
fn a_late_look_takes_everything_in_its_order() {
    let scenario = Scenario::from_toml(SCENARIO, "late").expect("a good scenario");
    let mut emulation = Emulation::new(&scenario, None).expect("no capture");
    for number in 0..3u8 {
        emulation.offer(Instant::ZERO, 1, End::Sender, vec![number; 1000].into());
        emulation.offer(Instant::ZERO, 1, End::Receiver, vec![100 + number; 500].into());
    }
    emulation.offer(Instant::ZERO, 9, End::Sender, vec![0].into());
    let late = Instant::ZERO + Duration::from_secs(1);
    let seen: Vec<(End, u8)> =
        std::iter::from_fn(|| emulation.poll(late)).map(|found| (found.to, found.payload[0])).collect();
    // 1,020 bytes take 4.08 ms, 520 bytes 2.08 ms: times, not the order of sending, decide.
    let (there, back) = (End::Receiver, End::Sender);
    assert_eq!(seen, [(back, 100), (there, 0), (back, 101), (back, 102), (there, 1), (there, 2)]);
    assert_eq!(emulation.next_deadline(), None);
}
