//! Losses of a TCP sender, and its retransmissions. Offsets count from the SYN: data begins at 1.

use super::*;

const FULL: u64 = MSS as u64;

fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

/// A sender whose SYN was acknowledged after 100 ms, and which has sent as much as its window allows.
fn open() -> Sender {
    let mut sender = Sender::new(&TcpSpec::default());
    assert_eq!(sender.transmit(at(0), u64::MAX), Some(Outgoing { start: 0, length: 1, fin: false }));
    assert_eq!(sender.transmit(at(0), u64::MAX), None, "nothing before the SYN is acknowledged");
    sender.on_acknowledgement(at(100), 1, &[], 1 << 20);
    assert_eq!(send_all(&mut sender, at(100)).len(), 10, "the initial window");
    sender
}

fn send_all(sender: &mut Sender, now: Instant) -> Vec<Outgoing> {
    std::iter::from_fn(|| sender.transmit(now, u64::MAX >> 1)).collect()
}

fn segment(number: u64) -> u64 {
    1 + number * FULL
}

#[test]
fn a_window_leaves_and_acknowledgements_open_it() {
    let mut sender = open();
    sender.on_acknowledgement(at(200), segment(2), &[], 1 << 20);
    assert_eq!(send_all(&mut sender, at(200)).len(), 4, "two for those that left, two for slow start");
    assert_eq!(sender.due(), Some(at(1200)));
}

#[test]
fn three_segments_beyond_make_a_loss() {
    let mut sender = open();
    for seen in 2..=3 {
        sender.on_acknowledgement(at(200), 1, &[(segment(1), segment(seen))], 1 << 20);
        let sent = send_all(&mut sender, at(200));
        assert_eq!(sent.len(), 1, "limited transmit: new data for what arrived");
        assert!(sent[0].start >= segment(10));
    }
    sender.on_acknowledgement(at(200), 1, &[(segment(1), segment(4))], 1 << 20);
    assert_eq!(sender.counters.recoveries, 1);
    assert_eq!(sender.window(), 6 * FULL, "half of twelve");
    assert_eq!(send_all(&mut sender, at(200)), [], "eight are still under way");
    sender.on_acknowledgement(at(210), 1, &[(segment(1), segment(7))], 1 << 20);
    let sent = send_all(&mut sender, at(210));
    assert_eq!(
        sent[0],
        Outgoing { start: segment(0), length: FULL, fin: false },
        "what was lost comes first"
    );
    assert_eq!(sent.len(), 1, "five others are under way");
    assert_eq!(sender.due(), Some(at(1210)), "it has as long to arrive as any other");
}

#[test]
fn a_timeout_begins_with_one_segment_and_keeps_what_arrived() {
    let mut sender = open();
    sender.on_acknowledgement(at(200), 1, &[(segment(8), segment(10))], 1 << 20);
    let _ = send_all(&mut sender, at(200));
    sender.on_timeout(at(1200));
    assert_eq!(sender.window(), FULL);
    assert_eq!(send_all(&mut sender, at(1200)), [Outgoing { start: 1, length: FULL, fin: false }]);
    sender.on_acknowledgement(at(1300), segment(8), &[(segment(8), segment(10))], 1 << 20);
    let sent = send_all(&mut sender, at(1300));
    assert!(sent.iter().all(|outgoing| outgoing.start >= segment(10)), "eight and nine arrived: {sent:?}");
}

/// The first segment and its retransmission are lost, and for ten round trips everything beyond arrives.
#[test]
fn a_timeout_within_a_recovery_halves_the_window_before_it() {
    let mut sender = open();
    let mut arrived = 1;
    for round in 2..12 {
        let sent = (sender.next() - 1) / FULL;
        while arrived < sent {
            arrived += 1;
            sender.on_acknowledgement(at(100 * round), 1, &[(segment(1), segment(arrived))], 1 << 20);
            let _ = send_all(&mut sender, at(100 * round));
        }
    }
    assert_eq!((sender.counters.recoveries, sender.window()), (1, 6 * FULL), "half of twelve");
    assert!(sender.next() > segment(40), "several windows");

    sender.on_timeout(at(1310));
    for acknowledged in 0..11 {
        assert_eq!(sender.window(), FULL * (1 + acknowledged).min(6), "slow start ends at half of twelve");
        let _ = send_all(&mut sender, at(1320));
        sender.on_acknowledgement(at(1320), segment(acknowledged + 1), &[], 1 << 20);
    }
}

#[test]
fn data_ends_with_a_fin() {
    let mut sender = Sender::new(&TcpSpec::default());
    sender.end_after(2000);
    let _ = sender.transmit(at(0), 2000);
    sender.on_acknowledgement(at(100), 1, &[], 1 << 20);
    let sent: Vec<_> = std::iter::from_fn(|| sender.transmit(at(100), 2000)).collect();
    let last = Outgoing { start: segment(1), length: 541, fin: true };
    assert_eq!(sent, [Outgoing { start: 1, length: FULL, fin: false }, last]);
    sender.on_acknowledgement(at(200), 2002, &[], 1 << 20);
    assert!(sender.is_done() && sender.due().is_none());
}

#[test]
fn the_peers_window_is_respected() {
    let mut sender = Sender::new(&TcpSpec::default());
    let _ = sender.transmit(at(0), 0);
    sender.on_acknowledgement(at(100), 1, &[], 3000);
    assert_eq!(send_all(&mut sender, at(100)).len(), 2);
}
