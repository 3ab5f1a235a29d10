//! Delays of sporadic messages where packets are lost: nothing follows that would show a loss.

use tresse_sim::Scenario;

use crate::common::checked;

/// A path of 50 ms there and back that loses a packet in a hundred, and a message of a packet four times a second.
const PATH: &str = r#"
preset = "cmt"
seed = 7
settle = "2s"
measure = "500s"
[traffic]
[[traffic.sporadic]]
stream = 0
gap = "250ms"
size = "1KiB"
[[path]]
rate = "100Mbit/s"
delay = "25ms"
loss = 0.01
queue = "100 packets"
"#;

fn p99_ms(overrides: &[(&str, &str)]) -> f64 {
    let mut scenario = Scenario::from_toml(PATH, "late").unwrap_or_else(|error| panic!("{error}"));
    scenario.set_all(overrides.iter().copied()).unwrap_or_else(|error| panic!("{error}"));
    let outcome = checked(&scenario);
    let delays = outcome.streams[0].delay_ms.as_ref().expect("messages came");
    delays.p99
}

#[test]
fn a_lone_message_that_is_lost_goes_again_within_two_round_trips() {
    for seed in ["7", "8", "9"] {
        let [probed, waited] = ["rack", "rfc9260"]
            .map(|detection| p99_ms(&[("seed", seed), ("transport.loss_detection", detection)]));
        assert!(probed <= 150.0 && waited > 250.0, "{probed} ms, and {waited} ms without a probe");
    }
}
