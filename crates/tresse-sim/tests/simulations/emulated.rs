//! The same scenario simulated and emulated: endpoints from outside meet the paths that a simulation has, although
//! whoever drives them only looks once a millisecond.

use std::time::Duration;

use tresse_proto::Instant;
use tresse_sim::{Emulation, End, RunOptions, Scenario, run};

use crate::outside::Flow;

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

#[test]
fn emulated_paths_carry_what_simulated_ones_do() {
    let scenario = Scenario::from_toml(SCENARIO, "both").expect("a good scenario");
    let simulated = run(&scenario, RunOptions::default()).expect("it runs");
    let mut emulation = Emulation::new(&scenario, None).expect("no capture");
    let mut flow = Flow::new(&scenario.resolved().sender, 0..2, 0);
    let (mut now, mut settled) = (Instant::ZERO, 0);
    let (settle, end) = (Instant::ZERO + Duration::from_secs(2), Instant::ZERO + Duration::from_secs(22));
    let mut before = Vec::new();
    while now < end {
        now += TICK;
        while let Some(delivery) = emulation.poll(now) {
            flow.take(now, delivery);
        }
        flow.act(now, &mut emulation);
        if now == settle {
            settled = flow.received;
            before = emulation.counters(now);
        }
    }
    let emulated_mbps = (flow.received - settled) as f64 * 8e-6 / 20.0;
    let ratio = emulated_mbps / simulated.throughput_mbps;
    assert!((0.9..1.1).contains(&ratio), "{emulated_mbps} Mbit/s, {} simulated", simulated.throughput_mbps);
    let after = emulation.counters(now);
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
