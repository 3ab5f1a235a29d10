//! Worked numbers: 10 Mbit/s sends 1,500 bytes in 1.2 ms.

use std::time::Duration;

use tresse_proto::Instant;

use super::*;
use crate::seed::Seed;

fn spec() -> LinkSpec {
    LinkSpec::new(10_000_000, Duration::from_millis(10))
}

fn link(spec: LinkSpec) -> Link {
    Link::new(spec, Seed(1), "link")
}

fn micros(us: u64) -> Instant {
    Instant::from_nanos(us * 1000)
}

#[test]
fn an_idle_link_adds_transmission_and_propagation() {
    let mut link = link(spec());
    assert_eq!(link.offer(micros(500), 1500), PacketFate::Arrives(micros(500 + 1200 + 10_000)));
}

#[test]
fn packets_follow_each_other_at_the_rate() {
    let mut link = link(spec());
    for k in 1..=3 {
        assert_eq!(link.offer(Instant::ZERO, 1500), PacketFate::Arrives(micros(1200 * k + 10_000)));
    }
    assert_eq!(link.waiting(Instant::ZERO), 2, "one is in transmission");
    assert_eq!(link.waiting(micros(1200)), 1);
    // Idle since 3.6 ms, with no effect on this packet.
    assert_eq!(link.offer(micros(5000), 1500), PacketFate::Arrives(micros(5000 + 1200 + 10_000)));
}

#[test]
fn a_transmitter_is_busy_for_what_it_has_sent_and_not_for_what_waits() {
    let mut link = link(spec());
    for _ in 0..3 {
        link.offer(Instant::ZERO, 1500);
    }
    let busy_at = [0, 600, 2000, 3600, 5000].map(|us| link.counters(micros(us)).busy_nanos / 1000);
    assert_eq!(busy_at, [0, 600, 2000, 3600, 3600]);
}

#[test]
fn framing_takes_time_on_the_transmitter_only() {
    let mut link = link(LinkSpec { framing: 7, ..spec() });
    assert_eq!(
        link.offer(Instant::ZERO, 1500),
        PacketFate::Arrives(Instant::from_nanos(1_205_600 + 10_000_000))
    );
    link.arrived(1500);
    assert_eq!(link.counters(micros(20_000)).arrived_bytes, 1500);
}

#[test]
fn the_queue_holds_its_limit_besides_the_packet_in_transmission() {
    let mut link = link(LinkSpec { queue: QueueLimit::Packets(2), ..spec() });
    let verdicts: Vec<PacketFate> = (0..5).map(|_| link.offer(Instant::ZERO, 1500)).collect();
    assert!(matches!(
        verdicts[..3],
        [PacketFate::Arrives(_), PacketFate::Arrives(_), PacketFate::Arrives(_)]
    ));
    assert_eq!(verdicts[3..], [PacketFate::Dropped(Cause::QueueFull); 2]);
    // At 1.2 ms the transmission of the second packet starts, and leaves room in the queue.
    assert_eq!(link.offer(micros(1200), 1500), PacketFate::Arrives(micros(4 * 1200 + 10_000)));
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
    assert_eq!(link.offer(Instant::ZERO, 1500), PacketFate::Dropped(Cause::Loss));
    assert_eq!(link.offer(Instant::ZERO, 1500), PacketFate::Dropped(Cause::Loss));
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
    assert_eq!(link.offer(Instant::ZERO, 1), PacketFate::Arrives(Instant::from_nanos(1)));
}

#[test]
fn codel_gives_its_verdicts_at_departure() {
    let discipline = Discipline::CoDel(CoDelSpec::default());
    let mut link = link(LinkSpec { discipline, queue: QueueLimit::Packets(2), ..spec() });
    let verdicts: Vec<PacketFate> = (0..4).map(|_| link.offer(Instant::ZERO, 1500)).collect();
    let full = PacketFate::Dropped(Cause::QueueFull);
    assert_eq!(verdicts, [PacketFate::Arrives(micros(11_200)), PacketFate::Waits, PacketFate::Waits, full]);
    assert_eq!((link.next_departure(), link.waiting(Instant::ZERO)), (Some(micros(1200)), 2));
    let sent = |us| Dequeued { dropped: 0, next: Some(PacketFate::Arrives(micros(us))) };
    assert_eq!(link.depart(micros(1200)), sent(12_400));
    assert_eq!(link.offer(micros(2400), 1500), PacketFate::Waits, "it has its turn behind one that waits");
    assert_eq!(link.depart(micros(2400)), sent(13_600));
    assert_eq!(link.depart(micros(3600)), sent(14_800));
    assert_eq!(link.next_departure(), None);
    assert_eq!(link.offer(micros(9000), 1500), PacketFate::Arrives(micros(20_200)), "nothing is owed");
    // One waits for 1.2 ms, one for 2.4 ms, one for 1.2 ms.
    assert_eq!(link.counters(micros(9000)).queue_packet_nanos, 4_800_000);
}

#[test]
fn codel_counts_what_it_drops() {
    let discipline = Discipline::CoDel(CoDelSpec::default());
    let mut link = link(LinkSpec { discipline, queue: QueueLimit::Packets(1000), ..spec() });
    for _ in 0..300 {
        link.offer(Instant::ZERO, 1500);
    }
    assert_eq!(link.counters(Instant::ZERO).decided, 1, "the others wait for their verdict");
    let mut dropped = 0;
    while let Some(now) = link.next_departure() {
        dropped += u64::from(link.depart(now).dropped);
    }
    // 299 packets wait, for up to 360 ms: the first drop is at 106 ms, the next ones 100, 71 and 58 ms later.
    assert_eq!((dropped, link.counters(micros(360_000)).dropped_early), (4, 4));
    assert_eq!(link.counters(micros(360_000)).inside(), 296, "none of them was reported as arrived");
}

#[test]
fn red_leaves_packets_alone_that_need_not_wait() {
    let red = RedSpec { min_threshold: 0, max_threshold: 1, ..RedSpec::default() };
    let mut link = link(LinkSpec { discipline: Discipline::Red(red), ..spec() });
    assert_eq!(link.offer(Instant::ZERO, 1500), PacketFate::Arrives(micros(11_200)));
    assert_eq!(link.offer(Instant::ZERO, 1500), PacketFate::Arrives(micros(12_400)));
    assert_eq!(
        link.offer(Instant::ZERO, 1500),
        PacketFate::Dropped(Cause::QueueFull),
        "one waits, and one may"
    );
}

#[test]
fn a_change_of_rate_moves_what_waits() {
    let slower = Change { at: Duration::from_micros(1200), rate: Some(1_000_000), ..Change::default() };
    let mut link = link(LinkSpec { changes: vec![slower], ..spec() });
    assert_eq!(link.offer(Instant::ZERO, 1500), PacketFate::Arrives(micros(1200 + 10_000)));
    assert_eq!(link.offer(Instant::ZERO, 1500), PacketFate::Arrives(micros(1200 + 12_000 + 10_000)));
    assert_eq!(link.waiting(micros(1199)), 1);
    assert_eq!(link.waiting(micros(1200)), 0);
}

#[test]
fn an_outage_takes_what_leaves_the_transmitter_during_it() {
    let change =
        |ms, outage| Change { at: Duration::from_millis(ms), outage: Some(outage), ..Change::default() };
    let mut link = link(LinkSpec { changes: vec![change(2, true), change(3, false)], ..spec() });
    let verdicts: Vec<PacketFate> = (0..3).map(|_| link.offer(Instant::ZERO, 1500)).collect();
    // They leave at 1.2, 2.4 and 3.6 ms; the packet in propagation at 2 ms arrives.
    let arrives = |us| PacketFate::Arrives(micros(us));
    assert_eq!(verdicts, [arrives(11_200), PacketFate::Dropped(Cause::Outage), arrives(13_600)]);
    assert_eq!(link.counters(micros(20_000)).dropped_outage, 1);
}

#[test]
fn a_change_of_loss_takes_the_place_of_the_model() {
    let certain =
        Change { at: Duration::from_millis(2), loss: Some(Loss::Uniform(1.0)), ..Change::default() };
    let mut link = link(LinkSpec { changes: vec![certain], ..spec() });
    assert_eq!(link.offer(Instant::ZERO, 1500), PacketFate::Arrives(micros(11_200)));
    assert_eq!(link.offer(Instant::ZERO, 1500), PacketFate::Dropped(Cause::Loss));
}

#[test]
fn mishaps_strike_at_their_rates() {
    let reordering = Some(Reordering { probability: 0.2, extra_delay: Duration::from_millis(3) });
    let impairments =
        ImpairmentSpec { bit_error_rate: 1e-5, duplication: 0.1, reordering, ..ImpairmentSpec::default() };
    let mut link = link(LinkSpec { impairments, ..spec() });
    let (mut twice, mut hit) = (0, 0);
    for k in 0..10_000 {
        let now = micros(2000 * k);
        let on_time = now + Duration::from_micros(11_200);
        let late = on_time + Duration::from_millis(3);
        match link.offer(now, 1500) {
            PacketFate::Arrives(at) => assert!(at == on_time || at == late),
            PacketFate::Altered { at, damaged, twice: doubled, marked: false } => {
                assert!(at == on_time || at == late);
                assert!(damaged || doubled);
                assert_eq!(damaged, !link.flips().is_empty());
                twice += u64::from(doubled);
                hit += u64::from(damaged);
            }
            PacketFate::Dropped(cause) => assert_eq!(cause, Cause::Damage),
            PacketFate::Altered { .. } => panic!("nothing marks"),
            PacketFate::Waits => panic!("nothing waits"),
        }
    }
    let counters = link.counters(micros(20_000_000));
    // 12,000 bits: 1,131 of 10,000 packets are damaged, with deviation 32; 160 of the bits are the header's.
    assert!((1000..1260).contains(&counters.damaged), "{counters:?}");
    assert_eq!((counters.duplicated, counters.damaged - counters.dropped_damaged), (twice, hit));
    assert!((1..50).contains(&counters.dropped_damaged), "{counters:?}");
    assert!((880..1120).contains(&counters.duplicated), "{counters:?}");
    assert!((1840..2160).contains(&counters.late), "{counters:?}");
}

#[test]
fn jitter_makes_packets_late_by_chance_and_lets_none_overtake() {
    let most = Duration::from_millis(4);
    let jitter = ImpairmentSpec { jitter: most, ..ImpairmentSpec::default() };
    let mut apart = link(LinkSpec { impairments: jitter, ..spec() });
    let mut late = Duration::ZERO;
    for k in 0..10_000 {
        let now = micros(10_000 * k);
        let PacketFate::Arrives(at) = apart.offer(now, 1500) else { panic!("nothing else goes wrong") };
        let longer = at.since(now + Duration::from_micros(11_200));
        assert!(longer < most, "{longer:?}");
        late += longer;
    }
    // Standard error of the mean is 12 microseconds.
    let mean = late / 10_000;
    assert!((Duration::from_micros(1950)..Duration::from_micros(2050)).contains(&mean), "{mean:?}");

    let mut behind = link(LinkSpec { impairments: jitter, ..spec() });
    let arrivals: Vec<PacketFate> = (0..100).map(|_| behind.offer(Instant::ZERO, 1500)).collect();
    let at = |verdict: &PacketFate| match verdict {
        PacketFate::Arrives(at) => *at,
        other => panic!("nothing else goes wrong: {other:?}"),
    };
    assert!(arrivals.is_sorted_by_key(at), "sent one behind the other, they arrive so");
    assert_eq!(behind.counters(micros(200_000)).late, 0, "late are those that others overtake");
}

#[test]
fn marked_packets_arrive_and_are_counted() {
    let discipline = Discipline::CoDel(CoDelSpec { ecn: true, ..CoDelSpec::default() });
    let mut link = link(LinkSpec { discipline, queue: QueueLimit::Packets(1000), ..spec() });
    for _ in 0..300 {
        link.offer(Instant::ZERO, LinkPacket { markable: true, ..LinkPacket::from(1500) });
    }
    let mut marked = 0;
    while let Some(now) = link.next_departure() {
        let departure = link.depart(now);
        assert_eq!(departure.dropped, 0);
        marked += u64::from(matches!(departure.next, Some(PacketFate::Altered { marked: true, .. })));
    }
    assert_eq!((marked, link.counters(micros(370_000)).marked), (4, 4), "as many as would be dropped");
}
