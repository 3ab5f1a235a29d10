//! For each path scheduler the case that it is for, and what another one makes of it; each loses elsewhere.

use tresse_sim::{Outcome, Scenario};

use crate::common::checked;

/// A fast path, and a second one that tests make slow. No buffer is split, nothing is rescheduled, bursts and losses are
/// those of RFC 9260, and SACKs are delayed and take the paths in turn: what data meets is the scheduler's doing.
const PATHS: &str = r#"
preset = "cmt"
settle = "2s"
measure = "10s"
[transport]
buffer_split = "none"
chunk_rescheduling = "off"
immediate_sack_when_full = false
sack_path = "round_robin"
congestion_control = "rfc9260"
max_burst = 4
pacing = false
loss_detection = "rfc9260"
[[path]]
rate = "10Mbit/s"
delay = "5ms"
queue = "50 packets"
[[path]]
rate = "10Mbit/s"
delay = "5ms"
queue = "50 packets"
"#;

/// A message now and then, and nothing else.
const BURSTS: &str = "[traffic]\n[[traffic.sporadic]]\nstream = 0\ngap = \"1s\"\nsize = \"1kB\"\n";

fn outcome(text: &str, scheduler: &str, overrides: &[(&str, &str)]) -> Outcome {
    let mut scenario = Scenario::from_toml(text, "schedulers").unwrap_or_else(|error| panic!("{error}"));
    let chosen = [("transport.path_scheduler", scheduler)];
    scenario.set_all([&chosen[..], overrides].concat()).unwrap_or_else(|error| panic!("{error}"));
    checked(&scenario)
}

fn mbps(scheduler: &str, overrides: &[(&str, &str)]) -> f64 {
    outcome(PATHS, scheduler, overrides).throughput_mbps
}

/// In a minute instead of ten seconds.
fn long_mbps(scheduler: &str, overrides: &[(&str, &str)]) -> f64 {
    mbps(scheduler, &[&[("measure", "60s")][..], overrides].concat())
}

/// The mean delay of bursts, in milliseconds.
fn delay_ms(scheduler: &str, overrides: &[(&str, &str)]) -> f64 {
    let long = [("measure", "60s")];
    let outcome = outcome(&format!("{PATHS}{BURSTS}"), scheduler, &[&long[..], overrides].concat());
    outcome.streams[0].delay_ms.as_ref().expect("messages came").mean
}

#[test]
fn round_robin_uses_like_paths_evenly_where_a_short_send_buffer_lets_in_order_use_one() {
    let short = [("transport.send_buffer", "24KiB")];
    let [even, one] = ["round_robin", "in_order"].map(|scheduler| outcome(PATHS, scheduler, &short));
    let shares = |outcome: &Outcome| [0, 1].map(|path| outcome.paths[path].throughput_mbps);
    let ([first, second], [taken, left]) = (shares(&even), shares(&one));
    assert!((first / second - 1.0).abs() < 0.05, "{first} and {second}");
    assert!(even.throughput_mbps > 1.5 * one.throughput_mbps, "{} and {}", first + second, taken + left);
    // That may be what is wanted, where the second path costs money.
    assert!(taken > 9.0 && left < 0.1, "{taken} and {left}");
}

#[test]
fn most_room_fills_paths_of_unlike_rate_where_taking_turns_waits_for_the_slow_one() {
    let unlike = [("transport.send_buffer", "48KiB"), ("path.1.rate", "2Mbit/s")];
    let [room, turns] = ["most_room", "round_robin"].map(|scheduler| mbps(scheduler, &unlike));
    assert!(room > 2.0 * turns && room > 11.0, "{room}, in turn {turns}");
}

#[test]
fn lowest_rtt_delivers_short_messages_soonest() {
    let unlike = [("path.1.delay", "60ms")];
    let [fast, turns] = ["lowest_rtt", "round_robin"].map(|scheduler| delay_ms(scheduler, &unlike));
    assert!(fast < 0.5 * turns, "{fast} ms, in turn {turns}");
}

#[test]
fn ecf_ends_a_burst_sooner_by_leaving_its_tail_to_the_fast_path() {
    let unlike = [("path.1.rate", "1Mbit/s"), ("path.1.delay", "60ms"), ("traffic.sporadic.0.size", "300kB")];
    let [earliest, lowest] = ["ecf", "lowest_rtt"].map(|scheduler| delay_ms(scheduler, &unlike));
    assert!(earliest < 0.8 * lowest, "{earliest} ms, lowest_rtt {lowest}");
    // With a backlog that never ends it is the same as lowest_rtt.
    let like = [("path.1.delay", "60ms"), ("transport.receive_buffer", "128KiB")];
    assert_eq!(mbps("ecf", &like), mbps("lowest_rtt", &like));
}

#[test]
fn blest_keeps_a_slow_path_from_filling_a_short_receive_buffer_and_may_leave_it_idle() {
    let short = ("transport.receive_buffer", "160KiB");
    let late = ("path.1.delay", "60ms");
    let slow = [short, late, ("path.1.rate", "1Mbit/s")];
    let [estimate, lowest, turns] =
        ["blest", "lowest_rtt", "round_robin"].map(|scheduler| mbps(scheduler, &slow));
    assert!(estimate > 9.0 && estimate > 1.8 * lowest.max(turns), "{estimate}, {lowest}, {turns}");
    // Where the buffer would do for both it still expects the worst.
    let [estimate, turns] = ["blest", "round_robin"].map(|scheduler| mbps(scheduler, &[short, late]));
    assert!(estimate < 0.7 * turns, "{estimate}, {turns}");
}

/// A slow path that is late and thin, and a receive buffer that is short for both.
const THIN: [(&str, &str); 3] =
    [("path.1.delay", "60ms"), ("path.1.rate", "1Mbit/s"), ("transport.receive_buffer", "160KiB")];

#[test]
fn otias_keeps_a_thin_slow_path_from_filling_a_short_receive_buffer_and_ends_a_burst_later() {
    let [planned, lowest, turns] =
        ["otias", "lowest_rtt", "round_robin"].map(|scheduler| long_mbps(scheduler, &THIN));
    assert!(planned > 1.7 * lowest.max(turns), "{planned}, {lowest}, {turns}");
    // What was left to a path stays there, also when the other has room at the end.
    let burst = [("path.1.delay", "60ms"), ("traffic.sporadic.0.size", "300kB")];
    let [planned, lowest] = ["otias", "lowest_rtt"].map(|scheduler| delay_ms(scheduler, &burst));
    assert!(planned > 1.1 * lowest, "{planned} ms, lowest_rtt {lowest}");
}

#[test]
fn daps_uses_both_paths_with_the_shortest_receive_buffer_and_idles_with_a_large_one() {
    let [late, short, large] = [
        ("path.1.delay", "60ms"),
        ("transport.receive_buffer", "64KiB"),
        ("transport.receive_buffer", "1MiB"),
    ];
    let [planned, lowest, turns] =
        ["daps", "lowest_rtt", "round_robin"].map(|scheduler| mbps(scheduler, &[late, short]));
    assert!(planned > 10.0 && lowest < 9.8 && turns < 5.0, "{planned}, {lowest}, {turns}");
    // The slow path waits for the plan.
    let [planned, lowest] = ["daps", "lowest_rtt"].map(|scheduler| mbps(scheduler, &[late, large]));
    assert!(planned < 0.93 * lowest, "{planned}, {lowest}");
}

#[test]
fn stms_keeps_a_thin_slow_path_in_step_and_uses_less_of_one_beside_losses() {
    let [planned, lowest, turns] =
        ["stms", "lowest_rtt", "round_robin"].map(|scheduler| mbps(scheduler, &THIN));
    assert!(planned > 2.0 * lowest.max(turns), "{planned}, {lowest}, {turns}");
    // Where losses fall decides more than the scheduler does in ten seconds; in a minute it is 4 to 10 %.
    let [planned, lowest] = ["stms", "lowest_rtt"].map(|scheduler| {
        let seeds = ["1", "2", "3"].map(|seed| {
            let lossy = [
                ("seed", seed),
                ("path.1.delay", "60ms"),
                ("path.0.loss", "0.01"),
                ("transport.receive_buffer", "160KiB"),
            ];
            long_mbps(scheduler, &lossy)
        });
        seeds.iter().sum::<f64>()
    });
    assert!(planned < 0.98 * lowest, "{planned}, {lowest}");
}

#[test]
fn redundant_delivers_beside_losses_as_if_there_were_none_and_carries_what_one_path_does() {
    // Messages that wait for no other: a packet now and then, and each path loses one in twenty.
    let thin = format!(
        "{PATHS}[traffic]\nordered = false\n[[traffic.sporadic]]\nstream = 0\ngap = \"20ms\"\nsize = \"500B\"\n"
    );
    let late = [("measure", "60s"), ("path.0.delay", "20ms"), ("path.1.delay", "20ms")];
    let p99 = |scheduler: &str, overrides: &[(&str, &str)]| {
        let outcome = outcome(&thin, scheduler, &[&late[..], overrides].concat());
        outcome.streams[0].delay_ms.as_ref().expect("messages came").p99
    };
    let lossy = [("path.0.loss", "5%"), ("path.1.loss", "5%")];
    let (all, one, without) = (p99("redundant", &lossy), p99("lowest_rtt", &lossy), p99("lowest_rtt", &[]));
    assert!(
        all < 1.1 * without && one > 2.0 * without,
        "{all} ms, {one} on one path, {without} without losses"
    );
    // What it costs: the second path adds nothing.
    let [all, each] = ["redundant", "lowest_rtt"].map(|scheduler| mbps(scheduler, &[]));
    assert!((0.45..0.55).contains(&(all / each)), "{all} Mbit/s, {each} without copies");
}

#[test]
fn redundant_goes_at_the_pace_of_the_fast_path_beside_a_slow_one() {
    let slow = [("path.1.rate", "1Mbit/s"), ("path.1.delay", "60ms")];
    let with = outcome(PATHS, "redundant", &slow);
    assert!(with.throughput_mbps > 8.5, "{}", with.throughput_mbps);
    assert_eq!([0, 1].map(|path| with.paths[path].timeouts), [0, 0]);
}
