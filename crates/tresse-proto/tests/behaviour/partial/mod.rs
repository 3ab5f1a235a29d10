//! Messages that need not arrive (RFC 3758, RFC 7496): what both sides know in the end.

mod forward;
mod policies;

use std::time::Duration;

use tresse_proto::{AssociationConfig, Event, Reliability, SendError, SendOptions, StreamId};
use tresse_wire::{Chunk, ChunkKind, Tsn};

use crate::common::{Dice, Flight, Pair, content};

/// What most messages of these tests carry: one to a packet.
pub(super) const LEN: usize = 1000;

pub(super) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Windows so large that whatever is queued leaves at once.
pub(super) fn config(settings: &[(&str, &str)]) -> AssociationConfig {
    let mut config = AssociationConfig::default();
    let at_once = [("initial_window", "200KiB"), ("max_burst", "0"), ("mtu_discovery", "false")];
    for (name, value) in at_once.iter().chain(settings) {
        config.set(name, value).expect("a sound setting");
    }
    config
}

pub(super) fn established(settings: &[(&str, &str)]) -> Pair {
    Pair::established(1, &config(settings))
}

/// Queues a message at the client; its number is its context.
pub(super) fn offer(pair: &mut Pair, options: SendOptions, number: u32, len: usize) -> Result<(), SendError> {
    let now = pair.now;
    let options = options.with(|o| o.context = number.into());
    let outcome = pair.client().send(now, options, content(options.stream.0, number, len));
    pair.pump();
    outcome
}

pub(super) fn on(stream: u16, reliability: Reliability) -> SendOptions {
    SendOptions::on(StreamId(stream)).with(|o| o.reliability = reliability)
}

/// What the client was told to have given up: number and whether some of it was sent.
pub(super) fn abandoned(pair: &mut Pair) -> Vec<(u64, bool)> {
    pair.pump();
    let told = pair.client.events.iter().filter_map(|event| match event {
        Event::Abandoned { context, sent, .. } => Some((*context, *sent)),
        _ => None,
    });
    told.collect()
}

/// Loses packets to the server with DATA, by their number from now on.
pub(super) fn lose_data(pair: &mut Pair, positions: &[usize]) {
    let (positions, mut position) = (positions.to_vec(), 0);
    pair.network = Box::new(move |flight| {
        let counts = flight.to_server && flight.has_data();
        position += usize::from(counts);
        (!counts || !positions.contains(&(position - 1))).then_some(ms(10))
    });
}

/// How often each TSN was sent to the server.
pub(super) fn copies(flights: &[Flight]) -> Vec<(Tsn, usize)> {
    let mut copies: Vec<(Tsn, usize)> = Vec::new();
    for chunk in flights.iter().filter(|flight| flight.to_server).flat_map(Flight::chunks) {
        if let Chunk::Data(data) = chunk {
            match copies.iter_mut().find(|(tsn, _)| *tsn == data.tsn) {
                Some((_, count)) => *count += 1,
                None => copies.push((data.tsn, 1)),
            }
        }
    }
    copies
}

pub(super) fn forwards(flights: &[Flight]) -> usize {
    flights.iter().filter(|flight| flight.to_server && flight.carries(ChunkKind::FORWARD_TSN)).count()
}

/// Nothing is left of what was sent, and no timer but those of heartbeats runs.
pub(super) fn assert_at_rest(pair: &mut Pair) {
    let now = pair.now;
    let stats = pair.client().stats(now).expect("established");
    assert_eq!((stats.send_buffer_used, stats.unsent, stats.flight), (0, 0, 0), "{}", pair.log.join("\n"));
    let own = pair.server().stats(now).expect("established");
    assert_eq!(own.receive_buffer_used, 0);
    let timeouts = |pair: &mut Pair| -> u64 {
        let now = pair.now;
        pair.client().path_stats(now).iter().map(|path| path.timeouts).sum()
    };
    let (before, packets) = (timeouts(pair), pair.wire.len());
    pair.run_for(Duration::from_secs(20));
    assert_eq!(timeouts(pair), before, "T3 ran on for nothing\n{}", pair.log.join("\n"));
    assert!(!pair.sent_since(packets).iter().any(|flight| flight.has_data()));
}

/// Random messages under every policy, over networks that lose up to a fifth of all packets. A message is
/// delivered once and in the order of its stream, or reported as given up once. Both only when it was sent:
/// then its acknowledgement was under way or lost when it was given up.
#[test]
fn every_message_is_delivered_once_or_reported_as_given_up() {
    for seed in 0..40 {
        let mut dice = Dice::new(seed);
        let paths = 1 + dice.below(2) as u8;
        let interleaving = if seed % 2 == 0 { "true" } else { "false" };
        let config = config(&[
            ("interleaving", interleaving),
            ("stream_scheduler", "round_robin"),
            ("send_buffer", "60000B"),
            ("receive_buffer", "30000B"),
            ("heartbeat_interval", "1s"),
            ("association_max_retrans", "100"),
            ("path_max_retrans", "100"),
            ("rto_max", "2s"),
        ]);
        let mut pair = Pair::with_seed(paths, &config, seed as u8).settled();
        let (loss, mut network) = (dice.below(20) as f64 / 100.0, Dice::new(seed + 1000));
        pair.network = Box::new(move |_| {
            let delay = 10 + network.below(5);
            (!network.hits(loss)).then_some(ms(delay))
        });
        let mut accepted = Vec::new();
        for number in 0..150 {
            let reliability = match dice.below(4) {
                0 => Reliability::Full,
                1 => Reliability::Lifetime(ms(dice.below(300))),
                2 => Reliability::Retransmissions(dice.below(3) as u32),
                _ => Reliability::Priority(dice.below(4) as u32),
            };
            let stream = dice.below(4) as u16;
            let options = on(stream, reliability).with(|o| o.unordered = stream == 3);
            let len = if dice.hits(0.2) { 3000 + dice.below(9000) } else { 10 + dice.below(1400) };
            if offer(&mut pair, options, number, len as usize).is_ok() {
                accepted.push((number, stream, reliability));
            }
            pair.run_for(ms(dice.below(20)));
        }
        pair.run_for(Duration::from_secs(120));
        let told = abandoned(&mut pair);
        for &(number, stream, reliability) in &accepted {
            let reports = told.iter().filter(|&&(gone, _)| gone == u64::from(number)).collect::<Vec<_>>();
            let copies = pair.server.numbers_on(stream).iter().filter(|&&came| came == number).count();
            let sent = reports.first().is_some_and(|&&(_, sent)| sent);
            assert!(copies <= 1 && reports.len() <= 1, "seed {seed}: message {number} twice");
            assert!(copies + reports.len() == 1 || sent, "seed {seed}: message {number} {reliability:?}");
            assert!(reports.is_empty() || reliability != Reliability::Full);
        }
        for stream in 0..3 {
            assert!(pair.server.numbers_on(stream).is_sorted(), "seed {seed}: order of stream {stream}");
        }
        assert_at_rest(&mut pair);
    }
}
