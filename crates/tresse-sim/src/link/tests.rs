//! Worked numbers: 10 Mbit/s sends 1,500 bytes in 1.2 ms.

use std::time::Duration;

use tresse_proto::Instant;

use super::*;
use crate::seed::Seed;

fn spec() -> LinkSpec {
    LinkSpec {
        rate: 10_000_000,
        delay: Duration::from_millis(10),
        queue: QueueLimit::Packets(100),
        loss: Loss::None,
        framing: 0,
    }
}

fn link(spec: LinkSpec) -> Link {
    Link::new(spec, Seed(1).generator("link"))
}

fn micros(us: u64) -> Instant {
    Instant::from_nanos(us * 1000)
}

#[test]
fn an_idle_link_adds_transmission_and_propagation() {
    let mut link = link(spec());
    assert_eq!(link.offer(micros(500), 1500), Verdict::Arrives(micros(500 + 1200 + 10_000)));
}

#[test]
fn packets_follow_each_other_at_the_rate() {
    let mut link = link(spec());
    for k in 1..=3 {
        assert_eq!(link.offer(Instant::ZERO, 1500), Verdict::Arrives(micros(1200 * k + 10_000)));
    }
    assert_eq!(link.waiting(Instant::ZERO), 2, "one is in transmission");
    assert_eq!(link.waiting(micros(1200)), 1);
    // Idle since 3.6 ms: nothing is owed.
    assert_eq!(link.offer(micros(5000), 1500), Verdict::Arrives(micros(5000 + 1200 + 10_000)));
}

#[test]
fn framing_takes_time_on_the_transmitter_only() {
    let mut link = link(LinkSpec { framing: 7, ..spec() });
    assert_eq!(
        link.offer(Instant::ZERO, 1500),
        Verdict::Arrives(Instant::from_nanos(1_205_600 + 10_000_000))
    );
    link.arrived(1500);
    assert_eq!(link.counters(micros(20_000)).arrived_bytes, 1500);
}

#[test]
fn the_queue_holds_its_limit_besides_the_packet_in_transmission() {
    let mut link = link(LinkSpec { queue: QueueLimit::Packets(2), ..spec() });
    let verdicts: Vec<Verdict> = (0..5).map(|_| link.offer(Instant::ZERO, 1500)).collect();
    assert!(matches!(verdicts[..3], [Verdict::Arrives(_), Verdict::Arrives(_), Verdict::Arrives(_)]));
    assert_eq!(verdicts[3..], [Verdict::Dropped(Cause::QueueFull); 2]);
    // At 1.2 ms the second packet's transmission starts, and its place is free.
    assert_eq!(link.offer(micros(1200), 1500), Verdict::Arrives(micros(4 * 1200 + 10_000)));
    assert_eq!(link.counters(micros(1200)).dropped(), 2);
}

#[test]
fn the_mean_queue_is_what_waited_over_time() {
    let mut link = link(spec());
    for _ in 0..4 {
        link.offer(Instant::ZERO, 1500);
    }
    // Three wait for 1.2 ms, two for 1.2 ms, one for 1.2 ms.
    assert_eq!(link.counters(micros(10_000)).queue_packet_nanos, 6 * 1_200_000);
    assert_eq!(link.take_longest_queue(micros(10_000)), 3);
    assert_eq!(link.take_longest_queue(micros(10_000)), 0);
}

#[test]
fn lost_packets_have_used_the_transmitter() {
    let mut link = link(LinkSpec { loss: Loss::Uniform(1.0), ..spec() });
    assert_eq!(link.offer(Instant::ZERO, 1500), Verdict::Dropped(Cause::Loss));
    assert_eq!(link.offer(Instant::ZERO, 1500), Verdict::Dropped(Cause::Loss));
    assert_eq!(link.waiting(Instant::ZERO), 1);
}

#[test]
fn uniform_loss_strikes_at_its_rate() {
    let mut link = link(LinkSpec { loss: Loss::Uniform(0.1), rate: 1_000_000_000_000, ..spec() });
    for k in 0..10_000 {
        link.offer(micros(k), 1500);
    }
    let lost = link.counters(micros(10_000)).dropped_loss;
    // Binomial: 1,000 expected, standard deviation 30.
    assert!((880..1120).contains(&lost), "{lost}");
}

#[test]
fn a_fast_link_still_takes_time() {
    let mut link = link(LinkSpec { rate: u64::MAX, delay: Duration::ZERO, ..spec() });
    assert_eq!(link.offer(Instant::ZERO, 1), Verdict::Arrives(Instant::from_nanos(1)));
}
