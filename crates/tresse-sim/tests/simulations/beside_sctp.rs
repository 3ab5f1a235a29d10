//! Share that an association over two paths leaves to one of RFC 9260, over a single path, at a bottleneck: both
//! are endpoints of the core, on an emulated network.

use std::time::Duration;

use tresse_proto::{AssociationConfig, Instant};
use tresse_sim::{Emulation, Scenario};

use crate::fairness::{COUPLED, UNCOUPLED};
use crate::outside::Flow;

/// The third path is the rival's, and has the links of the first. RED, so that who gets which drop does not depend on who
/// comes in bursts.
const NETWORK: &str = r#"
[[path]]
rate = "10Mbit/s"
delay = "20ms"
queue = "200 packets"
discipline = "red"
red = { min_threshold = 10, max_threshold = 60, max_probability = 0.1, uniform_drops = true }
[[path]]
SECOND
[[path]]
shares = 0
"#;
/// The second path crosses the same bottleneck.
const COMMON: &str = "shares = 0";
/// The second path has links of its own.
const FREE: &str = r#"
rate = "10Mbit/s"
delay = "20ms"
queue = "200 packets"
discipline = "red"
red = { min_threshold = 10, max_threshold = 60, max_probability = 0.1, uniform_drops = true }
"#;

const SETTLE: Duration = Duration::from_secs(10);
const MEASURE: Duration = Duration::from_secs(40);
/// The rates of the first two alone are up to 0.2 Mbit/s from these.
const SEEDS: std::ops::RangeInclusive<u8> = 1..=6;

/// Throughput of the association and of its rival, in Mbit/s, in the mean over [`SEEDS`].
fn rates(second: &str, controller: &str) -> (f64, f64) {
    let mut sum = (0.0, 0.0);
    for seed in SEEDS {
        let mut scenario = Scenario::from_toml(&NETWORK.replace("SECOND", second), "beside").expect("sound");
        scenario.set("seed", &seed.to_string()).expect("a seed");
        let mut network = Emulation::new(&scenario, None).expect("no capture");
        let mut ours = AssociationConfig::preset("cmt").expect("a preset");
        ours.set("congestion_control", controller).expect("a controller");
        let rival = AssociationConfig::preset("rfc9260").expect("a preset");
        let mut flows = [Flow::new(&ours, 0..2, seed), Flow::new(&rival, 2..3, seed)];
        let (mut now, mut settled) = (Instant::ZERO, None);
        while now < Instant::ZERO + SETTLE + MEASURE {
            while let Some(delivery) = network.poll(now) {
                flows[usize::from(delivery.path >= 2)].take(now, delivery);
            }
            flows.iter_mut().for_each(|flow| flow.act(now, &mut network));
            if settled.is_none() && now >= Instant::ZERO + SETTLE {
                settled = Some([flows[0].received, flows[1].received]);
            }
            let next = flows.iter().filter_map(Flow::deadline).chain(network.next_deadline()).min();
            now = next.expect("there is always something to do").max(now);
        }
        let before = settled.expect("it settled");
        let rate = |flow: usize| (flows[flow].received - before[flow]) as f64 * 8e-6 / MEASURE.as_secs_f64();
        let part = 1.0 / SEEDS.count() as f64;
        sum = (sum.0 + rate(0) * part, sum.1 + rate(1) * part);
    }
    sum
}

#[test]
fn beside_one_association_of_rfc_9260_coupled_paths_take_half_of_a_bottleneck_and_others_two_thirds() {
    let share = |controller| {
        let (ours, rival) = rates(COMMON, controller);
        assert!(ours + rival > 8.0, "{controller} leaves the link idle: {ours} and {rival}");
        ours / (ours + rival)
    };
    let [uncoupled, cubic] = UNCOUPLED.map(share);
    assert!((0.58..0.75).contains(&uncoupled), "two of three flows: {uncoupled}");
    assert!((0.58..0.75).contains(&cubic), "two of three flows: {cubic}");
    for controller in COUPLED {
        let coupled = share(controller);
        assert!(coupled < uncoupled - 0.05, "{controller}: {coupled}, uncoupled {uncoupled}");
        assert!((0.4..0.6).contains(&coupled), "one of two flows: {controller} takes {coupled}");
    }
}

#[test]
fn coupled_paths_leave_a_link_to_an_association_that_has_no_other() {
    let left = |controller| {
        let (ours, rival) = rates(FREE, controller);
        assert!(ours > 0.9 * 9.68, "{controller}: no less than over the free path alone: {ours}");
        rival
    };
    let uncoupled = left("rfc9260");
    assert!((3.9..5.8).contains(&uncoupled), "half of the link is left: {uncoupled}");
    for controller in COUPLED {
        let rival = left(controller);
        assert!(rival > uncoupled + 1.0, "{controller}: {rival} is left, uncoupled {uncoupled}");
    }
}
