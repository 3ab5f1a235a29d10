//! Shares of saturated streams, message by message into packets, without an association around them.

use std::time::Duration;

use proptest::prelude::*;
use tresse_proto::config::Size;
use tresse_proto::schedule::{Backlog, Built, Queued, Taken};
use tresse_proto::{AssociationConfig, Instant, PathId, PathView, Registry, SendOptions, StreamId};
use tresse_wire::Chunk;

use crate::common::{Dice, Pair, content};

/// User data and chunk headers that a packet holds.
const PACKET: usize = 1452;
const CHUNK_HEADER: usize = 16;
const LONGEST: usize = PACKET - CHUNK_HEADER;
/// A fragment that does not end its message has as many bytes, or waits for the next packet.
const LEAST: usize = 256;
/// Fairness is measured over every window of this many packets.
const WINDOW: usize = 1_000;

/// Streams that always have another message; what is left of the first of each.
struct Saturated {
    heads: Vec<usize>,
}

/// What a packet takes of a message that is longer than a packet holds.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Messages {
    /// There are none.
    Short,
    /// Fragments, until the message is over.
    Long,
    /// Fragments, and another stream may follow each.
    Interleaved,
}

impl Backlog for Saturated {
    fn unsent_bytes(&self, stream: StreamId) -> usize {
        2 * self.head_bytes(stream)
    }
    fn messages(&self, stream: StreamId) -> usize {
        if self.head_bytes(stream) > 0 { 2 } else { 0 }
    }
    fn head_bytes(&self, stream: StreamId) -> usize {
        self.heads.get(usize::from(stream.0)).copied().unwrap_or(0)
    }
}

fn build(name: &str, config: &str) -> Built {
    Registry::default().build_stream_scheduler(name, config).expect("built in")
}

fn path() -> PathView {
    let mut path = PathView::new(PathId(0));
    (path.primary, path.open) = (true, true);
    (path.cwnd, path.ssthresh, path.room) = (100_000, 100_000, 100_000);
    path
}

/// Fills `count` packets with messages whose lengths `length` draws for their stream; bytes of each stream
/// in each packet.
fn packets(
    scheduler: &mut Built,
    streams: usize,
    count: usize,
    length: impl FnMut(usize) -> usize,
) -> Vec<Vec<usize>> {
    packets_of(Messages::Short, scheduler, streams, count, length)
}

/// The same with messages of any length.
fn packets_of(
    messages: Messages,
    scheduler: &mut Built,
    streams: usize,
    count: usize,
    mut length: impl FnMut(usize) -> usize,
) -> Vec<Vec<usize>> {
    let mut backlog = Saturated { heads: (0..streams).map(&mut length).collect() };
    let queue = |scheduler: &mut Built, stream: usize, bytes, was_idle| {
        let mut queued = Queued::new(StreamId(stream as u16), bytes, Instant::ZERO);
        queued.was_idle = was_idle;
        scheduler.on_queued(queued);
    };
    for (stream, &bytes) in backlog.heads.iter().enumerate() {
        queue(scheduler, stream, bytes, true);
    }
    // The message that has to be finished first, and the one that each stream is in the middle of.
    let (mut begun, mut middle) = (None, vec![false; streams]);
    let mut filled = vec![vec![0; streams]; count];
    for packet in &mut filled {
        let mut room = PACKET;
        while let Some(stream) = begun.or_else(|| scheduler.next(&path(), &backlog)) {
            let position = usize::from(stream.0);
            let left = backlog.heads[position];
            let cut = messages != Messages::Short && (left > LONGEST || middle[position]);
            let bytes = if cut { left.min(room.saturating_sub(CHUNK_HEADER)) } else { left };
            if bytes + CHUNK_HEADER > room || (bytes < left && bytes < LEAST) {
                break;
            }
            room -= (bytes + CHUNK_HEADER).next_multiple_of(4).min(room);
            packet[position] += bytes;
            backlog.heads[position] -= bytes;
            let message_done = bytes == left;
            middle[position] = !message_done;
            if message_done {
                backlog.heads[position] = length(position);
                queue(scheduler, position, backlog.heads[position], false);
            }
            let turn_over = message_done || messages == Messages::Interleaved;
            begun = (!turn_over).then_some(stream);
            let mut taken = Taken::new(stream, bytes);
            (taken.message_done, taken.turn_over) = (message_done, turn_over);
            scheduler.on_taken(taken);
        }
        scheduler.on_packet_end();
    }
    filled
}

/// The largest difference, over all windows, between what a stream got and what its weight entitles it to:
/// for each stream in bytes, and as a part of its due.
fn deviations(packets: &[Vec<usize>], weights: &[u16]) -> Vec<(f64, f64)> {
    let whole: f64 = weights.iter().copied().map(f64::from).sum();
    let mut worst = vec![(0.0_f64, 0.0_f64); weights.len()];
    let mut got = vec![0; weights.len()];
    for (end, packet) in packets.iter().enumerate() {
        for (sum, bytes) in got.iter_mut().zip(packet) {
            *sum += bytes;
        }
        if end + 1 < WINDOW {
            continue;
        }
        let total = got.iter().sum::<usize>() as f64;
        for ((&sum, &weight), worst) in got.iter().zip(weights).zip(&mut worst) {
            let due = total * f64::from(weight) / whole;
            let off = (sum as f64 - due).abs();
            *worst = (worst.0.max(off), worst.1.max(off / due));
        }
        for (sum, bytes) in got.iter_mut().zip(&packets[end + 1 - WINDOW]) {
            *sum -= bytes;
        }
    }
    worst
}

fn config_of(weights: &[u16]) -> String {
    let pairs: Vec<String> =
        weights.iter().enumerate().map(|(stream, weight)| format!("{stream}={weight}")).collect();
    pairs.join(",")
}

/// How the lengths of a stream's messages come about.
fn lengths(kind: u8, stream: usize, dice: &mut Dice) -> usize {
    match kind {
        0 => 1 + dice.below(LONGEST as u64) as usize,
        1 => LONGEST,
        2 if stream.is_multiple_of(2) => LONGEST,
        2 => 40 + stream,
        _ => [64, 300, 1_000, LONGEST][dice.below(4) as usize],
    }
}

/// Within 1 % of its due in any window; where 1 % of the due is less than the `grain`, within that: what is sent before
/// and after a window's edge cannot be cut finer than messages, so two of them have to be allowed.
fn check(packets: &[Vec<usize>], weights: &[u16], grain: usize) -> Result<(), TestCaseError> {
    for (stream, (bytes, part)) in deviations(packets, weights).into_iter().enumerate() {
        prop_assert!(
            part <= 0.01 || bytes <= grain as f64,
            "stream {stream} of {weights:?}: off by {bytes} bytes, {:.3} % of its due",
            100.0 * part
        );
    }
    Ok(())
}

/// Of messages of up to `longest` bytes. Their fragments count where they are interleaved: two, and what the order of
/// starts and of ends does not tell apart, 128 bytes each at both edges of a window. Else it is messages: two, and a
/// third, since the order tells ends of long messages not apart at all.
fn grain(messages: Messages, longest: usize) -> usize {
    match messages {
        Messages::Short | Messages::Interleaved => 2 * (LONGEST + 2 * 128),
        Messages::Long => 3 * longest,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn weighted_fair_keeps_to_its_weights_over_any_1000_packets(
        weights in prop::collection::vec(prop_oneof![1..=8_u16, 1..=u16::MAX], 2..24),
        kind in 0..4_u8,
        seed in any::<u64>(),
    ) {
        let mut dice = Dice::new(seed);
        let mut scheduler = build("weighted_fair", &config_of(&weights));
        let packets = packets(&mut scheduler, weights.len(), 3 * WINDOW, |stream| lengths(kind, stream, &mut dice));
        check(&packets, &weights, grain(Messages::Short, LONGEST))?;
    }

    #[test]
    fn weights_hold_over_any_1000_packets_of_fragments(
        weights in prop::collection::vec(prop_oneof![1..=8_u16, 1..=u16::MAX], 2..24),
        interleaved in any::<bool>(),
        longest in LONGEST..40_000,
        seed in any::<u64>(),
    ) {
        let mut dice = Dice::new(seed);
        let mut scheduler = build("weighted_fair", &config_of(&weights));
        let messages = if interleaved { Messages::Interleaved } else { Messages::Long };
        let packets = packets_of(messages, &mut scheduler, weights.len(), 3 * WINDOW, |stream| {
            // Every other stream has short messages beside the long ones.
            let most = if stream.is_multiple_of(2) { longest } else { LONGEST };
            1 + dice.below(most as u64) as usize
        });
        check(&packets, &weights, grain(messages, longest))?;
    }

    #[test]
    fn fair_bandwidth_gives_equal_bytes_over_any_1000_packets(
        streams in 2..40_usize,
        kind in 0..4_u8,
        seed in any::<u64>(),
    ) {
        let mut dice = Dice::new(seed);
        let mut scheduler = build("fair_bandwidth", "");
        let packets = packets(&mut scheduler, streams, 3 * WINDOW, |stream| lengths(kind, stream, &mut dice));
        check(&packets, &vec![1; streams], 2 * LONGEST)?;
    }
}

#[test]
fn streams_with_a_fifth_or_more_are_within_one_percent_without_exception() {
    for weights in [&[1, 1][..], &[1, 2], &[2, 2, 1], &[1, 1, 1, 1, 1], &[10_000, 20_000, 15_000]] {
        for kind in 0..4 {
            let mut dice = Dice::new(u64::from(kind) + 1);
            let mut scheduler = build("weighted_fair", &config_of(weights));
            let packets =
                packets(&mut scheduler, weights.len(), 5 * WINDOW, |stream| lengths(kind, stream, &mut dice));
            let worst = deviations(&packets, weights);
            assert!(worst.iter().all(|&(_, part)| part <= 0.01), "{weights:?}, lengths {kind}: {worst:?}");
        }
    }
}

#[test]
fn who_waits_for_long_messages_of_others_has_its_share_of_every_1000_packets() {
    let unlike = [6, 1, 33_556, 58_302, 6, 1, 38_012, 3, 25_820, 4];
    for (scheduler, weights) in [("weighted_fair", &unlike[..]), ("fair_bandwidth", &[1; 4])] {
        for seed in 0..20 {
            let mut dice = Dice::new(seed);
            let config = if scheduler == "fair_bandwidth" { String::new() } else { config_of(weights) };
            let mut scheduler = build(scheduler, &config);
            let packets = packets_of(Messages::Long, &mut scheduler, weights.len(), 3 * WINDOW, |stream| {
                let most = if stream.is_multiple_of(2) { 35_000 } else { LONGEST };
                1 + dice.below(most as u64) as usize
            });
            check(&packets, weights, grain(Messages::Long, 35_000)).expect("shares");
        }
    }
}

/// Two streams of long messages are far ahead, one each; a third one of short messages is behind. Light streams wait for all of
/// them.
#[test]
fn who_is_behind_is_served_before_light_streams_though_others_are_far_ahead() {
    let unlike = [34_582, 1, 4, 20, 2, 2, 1, 1, 32_768, 1, 1, 1, 1, 1, 1, 1, 5, 47_591, 1];
    for seed in (0..20).chain([679_282_329_006_379_503]) {
        let mut dice = Dice::new(seed);
        let mut scheduler = build("weighted_fair", &config_of(&unlike));
        let packets = packets_of(Messages::Long, &mut scheduler, unlike.len(), 3 * WINDOW, |stream| {
            let most = if stream.is_multiple_of(2) { 30_052 } else { LONGEST };
            1 + dice.below(most as u64) as usize
        });
        check(&packets, &unlike, grain(Messages::Long, 30_052)).expect("shares");
    }
}

/// What waits on each stream of an association, bytes.
const BACKLOG: usize = 64 * 1024;

/// Bytes of each stream in each packet of an association over two paths, all of whose streams have data all the time.
fn packets_on_the_wire(weights: &[u16], interleaving: bool, longest: usize, count: usize) -> Vec<Vec<usize>> {
    let config = AssociationConfig::default().with(|c| {
        c.stream_scheduler = "weighted_fair".to_owned();
        c.stream_scheduler_config = config_of(weights);
        c.interleaving = interleaving;
        c.mtu_discovery = false;
        c.send_buffer = Size(1 << 20);
        // No more than that leaves at once, so that no stream runs out of data.
        c.receive_buffer = Size(BACKLOG);
    });
    let (mut pair, mut dice) = (Pair::established(2, &config), Dice::new(11));
    let mut filled = Vec::new();
    for number in 0.. {
        let (now, before) = (pair.now, pair.wire.len());
        for stream in (0..weights.len() as u16).map(StreamId) {
            while pair.client().unsent_on(stream) < BACKLOG {
                let message = content(stream.0, number, 4 + dice.below(longest as u64 - 4) as usize);
                pair.client().send(now, SendOptions::on(stream), message).expect("room");
            }
        }
        pair.run_for(Duration::from_millis(1));
        for flight in pair.sent_since(before).iter().filter(|flight| flight.to_server && flight.has_data()) {
            let mut bytes = vec![0; weights.len()];
            for chunk in flight.chunks() {
                match chunk {
                    Chunk::Data(data) => bytes[usize::from(data.stream.0)] += data.payload.len(),
                    Chunk::IData(data) => bytes[usize::from(data.stream.0)] += data.payload.len(),
                    _ => {}
                }
            }
            filled.push(bytes);
        }
        if filled.len() >= count {
            break;
        }
    }
    filled
}

#[test]
fn weights_hold_over_any_1000_packets_of_an_association() {
    for (interleaving, longest) in [(true, 9_000), (true, 1_000), (false, 9_000), (false, 1_000)] {
        let packets = packets_on_the_wire(&[5, 3, 2], interleaving, longest, 3 * WINDOW);
        let messages = if interleaving { Messages::Interleaved } else { Messages::Long };
        check(&packets, &[5, 3, 2], grain(messages, longest)).expect("shares");
    }
}

#[test]
fn light_streams_do_not_leave_in_rows_beside_a_heavy_one() {
    let weights: Vec<u16> = std::iter::once(1_000).chain(std::iter::repeat_n(1, 100)).collect();
    let mut scheduler = build("weighted_fair", &config_of(&weights));
    let packets = packets(&mut scheduler, weights.len(), 4 * WINDOW, |_| LONGEST);
    let (_, heavy) = deviations(&packets, &weights)[0];
    assert!(heavy <= 0.01, "off by {:.2} %", 100.0 * heavy);
    let heavy: Vec<bool> = packets.iter().map(|packet| packet[0] > 0).collect();
    assert!(heavy.windows(2).all(|row| row.contains(&true)), "two light ones in a row");
}

#[test]
fn a_stream_that_paused_gets_no_arrears() {
    let mut scheduler = build("fair_bandwidth", "");
    // Stream 0 alone for 500 packets, then stream 1 joins.
    packets(&mut scheduler, 1, 500, |_| LONGEST);
    let backlog = Saturated { heads: vec![LONGEST; 2] };
    let mut queued = Queued::new(StreamId(1), LONGEST, Instant::ZERO);
    queued.was_idle = true;
    scheduler.on_queued(queued);
    let order: Vec<u16> = (0..20)
        .filter_map(|_| {
            let stream = scheduler.next(&path(), &backlog)?;
            scheduler.on_taken(Taken::new(stream, LONGEST));
            Some(stream.0)
        })
        .collect();
    assert!(order.windows(3).all(|three| three.contains(&0) && three.contains(&1)), "{order:?}");
}

#[test]
fn round_robin_packet_fills_each_packet_from_one_stream_in_turn() {
    let mut dice = Dice::new(7);
    let mut scheduler = build("round_robin_packet", "");
    for (number, packet) in
        packets(&mut scheduler, 5, 100, |_| 1 + dice.below(700) as usize).iter().enumerate()
    {
        let streams: Vec<usize> = (0..5).filter(|&stream| packet[stream] > 0).collect();
        assert_eq!(streams, [number % 5]);
        assert!(packet[number % 5] + CHUNK_HEADER > PACKET / 3, "packet {number} was left nearly empty");
    }
}
