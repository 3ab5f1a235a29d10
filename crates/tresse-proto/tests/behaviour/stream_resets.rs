//! Streams begin anew at SSN 0 while the association runs (RFC 6525 §5.1.2, §5.1.3, §5.2.2, §5.2.3).

use std::collections::BTreeSet;
use std::time::Duration;

use tresse_proto::{
    AssociationConfig, Direction, Event, Ppid, Reconfiguration, ReconfigurationError, ReconfigurationOutcome,
    Reliability, SendOptions, Ssn, StreamId, Streams,
};
use tresse_wire::{Chunk, ChunkKind, Data, DataFlags, List, Param, Params, Reconfig, Tsn};

use crate::common::{Dice, Pair, by_reports, content};

const PERFORMED: ReconfigurationOutcome = ReconfigurationOutcome::Performed;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn streams(numbers: &[u16]) -> Streams {
    Streams::These(numbers.iter().copied().map(StreamId).collect())
}

fn reset(pair: &mut Pair, which: Streams, direction: Direction) {
    let now = pair.now;
    pair.client().reset_streams(now, which, direction).expect("free to ask");
    pair.pump();
}

/// Sends a message on `stream` in each direction, and waits for both.
fn exchange(pair: &mut Pair, stream: u16, number: u32) {
    let (now, options) = (pair.now, SendOptions::on(StreamId(stream)));
    pair.client().send(now, options, content(stream, number, 100)).expect("room");
    pair.server().send(now, options, content(stream, number, 100)).expect("room");
    pair.run_for(ms(300));
}

/// SSNs of what a side received on `stream`.
fn ssns(pair: &Pair, at_server: bool, stream: u16) -> Vec<u16> {
    let side = if at_server { &pair.server } else { &pair.client };
    side.received.iter().filter(|message| message.stream.0 == stream).map(|message| message.ssn.0).collect()
}

fn reconfigured(request: Reconfiguration, outcome: ReconfigurationOutcome) -> Event {
    Event::Reconfigured { request, outcome }
}

/// The parameters of every RE-CONFIG sent since `from`, with their direction.
fn reconfigs(pair: &Pair, from: usize) -> Vec<(bool, Vec<u16>)> {
    let mut found = Vec::new();
    for flight in pair.sent_since(from) {
        for chunk in flight.chunks() {
            if let Chunk::Reconfig(reconfig) = chunk {
                let kinds = reconfig.params.iter().map(|param| param.expect("a sound parameter").kind().0);
                found.push((flight.to_server, kinds.collect()));
            }
        }
    }
    found
}

/// What the server answers to RE-CONFIG with these parameters, or what else it says.
fn answers(pair: &mut Pair, params: &[Param<'_>]) -> Vec<(u32, u32)> {
    let before = pair.wire.len();
    let packet = pair.packet(true, &[Chunk::Reconfig(Reconfig { params: Params::Values(params) })]);
    pair.inject(true, 0, packet);
    let mut found = Vec::new();
    for flight in pair.sent_since(before).iter().filter(|flight| !flight.to_server) {
        for chunk in flight.chunks() {
            let Chunk::Reconfig(reconfig) = chunk else { continue };
            found.extend(reconfig.params.iter().flatten().filter_map(|param| match param {
                Param::ReconfigResponse { response, result, .. } => Some((response, result)),
                _ => None,
            }));
        }
    }
    found
}

/// The client's initial TSN, which numbers its first request too.
fn first_number(pair: &Pair) -> u32 {
    let init = pair.wire[0].chunks().into_iter().find_map(|chunk| match chunk {
        Chunk::Init(init) => Some(init.initial_tsn.0),
        _ => None,
    });
    init.expect("INIT comes first")
}

#[test]
fn outbound_streams_begin_anew_in_two_packets() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    for number in 0..3 {
        exchange(&mut pair, 1, number);
        exchange(&mut pair, 2, number);
    }
    let before = pair.wire.len();
    reset(&mut pair, streams(&[1]), Direction::Outbound);
    pair.run_for(ms(300));
    assert_eq!(reconfigs(&pair, before), [(true, vec![13]), (false, vec![16])]);
    assert!(pair.sent_since(before)[1].carries(ChunkKind::NR_SACK), "a SACK goes with every answer");
    let request = Reconfiguration::ResetOutbound(streams(&[1]));
    let told = pair.client.events.iter().filter(|event| !matches!(event, Event::Readable)).cloned();
    let expected = [Event::OutboundReset(streams(&[1])), reconfigured(request, PERFORMED)];
    assert_eq!(told.collect::<Vec<_>>(), expected);
    assert!(pair.server.events.contains(&Event::InboundReset(streams(&[1]))));
    exchange(&mut pair, 1, 3);
    exchange(&mut pair, 2, 3);
    assert_eq!(ssns(&pair, true, 1), [0, 1, 2, 0]);
    assert_eq!(ssns(&pair, true, 2), [0, 1, 2, 3], "not asked for");
    assert_eq!(ssns(&pair, false, 1), [0, 1, 2, 3], "the other direction goes on");
}

#[test]
fn inbound_streams_begin_anew_at_the_request_of_the_peer() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    exchange(&mut pair, 1, 0);
    let before = pair.wire.len();
    reset(&mut pair, streams(&[1]), Direction::Inbound);
    pair.run_for(ms(300));
    assert_eq!(reconfigs(&pair, before), [(true, vec![14]), (false, vec![13]), (true, vec![16])]);
    let request = Reconfiguration::ResetInbound(streams(&[1]));
    assert!(pair.client.events.contains(&reconfigured(request, PERFORMED)));
    assert!(pair.client.events.contains(&Event::InboundReset(streams(&[1]))));
    assert!(pair.server.events.contains(&Event::OutboundReset(streams(&[1]))));
    exchange(&mut pair, 1, 1);
    assert_eq!(ssns(&pair, true, 1), [0, 1]);
    assert_eq!(ssns(&pair, false, 1), [0, 0]);
}

#[test]
fn both_directions_and_all_streams_begin_anew_at_once() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    for stream in 0..10 {
        exchange(&mut pair, stream, 0);
    }
    let before = pair.wire.len();
    reset(&mut pair, Streams::All, Direction::Both);
    pair.run_for(ms(300));
    assert_eq!(reconfigs(&pair, before)[0], (true, vec![13, 14]));
    for stream in 0..10 {
        exchange(&mut pair, stream, 1);
        assert_eq!([ssns(&pair, true, stream), ssns(&pair, false, stream)], [[0, 0], [0, 0]]);
    }
}

#[test]
fn what_is_queued_before_is_sent_first_and_what_is_queued_after_waits() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    for number in 0..5 {
        pair.send(1, number, 60_000);
    }
    pair.send(2, 0, 1000);
    reset(&mut pair, streams(&[1]), Direction::Outbound);
    for number in 5..8 {
        pair.send(1, number, 1000);
        pair.send(2, number, 1000);
    }
    assert!(pair.client().unsent_on(StreamId(1)) > 3000, "what waits counts as unsent");
    pair.run_for(Duration::from_secs(5));
    assert_eq!(pair.server.numbers_on(1), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(ssns(&pair, true, 1), [0, 1, 2, 3, 4, 0, 1, 2]);
    assert_eq!(ssns(&pair, true, 2), [0, 1, 2, 3]);
    let seven_of_2 =
        pair.server.received.iter().position(|message| message.stream.0 == 2 && message.ssn.0 == 3);
    let five_of_1 =
        pair.server.received.iter().rposition(|message| message.stream.0 == 1 && message.ssn.0 == 0);
    assert!(seven_of_2 < five_of_1, "other streams do not wait");
}

#[test]
fn each_packet_may_be_lost() {
    for direction in [Direction::Outbound, Direction::Inbound, Direction::Both] {
        for losses in 1..4 {
            let mut pair = Pair::established(2, &AssociationConfig::default());
            exchange(&mut pair, 3, 0);
            pair.lose(ChunkKind::RECONFIG, losses);
            reset(&mut pair, streams(&[3]), direction);
            pair.send(3, 1, 500);
            pair.run_for(Duration::from_secs(30));
            exchange(&mut pair, 3, 2);
            let (outbound, inbound) = match direction {
                Direction::Outbound => (vec![0, 0, 1], vec![0, 1]),
                Direction::Inbound => (vec![0, 1, 2], vec![0, 0]),
                Direction::Both => (vec![0, 0, 1], vec![0, 0]),
            };
            assert_eq!(ssns(&pair, true, 3), outbound, "{direction:?}, {losses} lost");
            assert_eq!(ssns(&pair, false, 3), inbound, "{direction:?}, {losses} lost");
            let told = pair.client.events.iter().filter(|event| matches!(event, Event::Reconfigured { .. }));
            assert_eq!(told.count(), if direction == Direction::Both { 2 } else { 1 });
        }
    }
}

#[test]
fn resets_in_mid_transfer_lose_and_reorder_nothing() {
    for seed in 0..12 {
        let mut pair = Pair::established(2, &AssociationConfig::default());
        let mut dice = Dice::new(seed);
        pair.network = Box::new(move |_| (!dice.hits(0.08)).then(|| ms(5 + dice.below(30))));
        let mut sent = [0_u32; 3];
        for round in 0..40_u32 {
            for stream in 0..3_u16 {
                let (number, len) = (sent[usize::from(stream)], 400 + 900 * u32::from(stream) as usize);
                pair.send(stream, number, len);
                sent[usize::from(stream)] += 1;
            }
            if round % 10 == 5 {
                let now = pair.now;
                let which = if round == 25 { Streams::All } else { streams(&[1, 2]) };
                // Busy is an answer, too: the reset before is not over.
                pair.client().reset_streams(now, which, Direction::Both).ok();
                pair.pump();
            }
            pair.run_for(ms(40));
        }
        pair.run_until(Duration::from_secs(120), |pair| pair.server.received.len() == 120);
        for stream in 0..3 {
            assert_eq!(pair.server.numbers_on(stream), (0..40).collect::<Vec<_>>(), "seed {seed}");
        }
        assert!(
            ssns(&pair, true, 1).iter().filter(|&&ssn| ssn == 0).count() > 1,
            "seed {seed}: some were reset"
        );
    }
}

#[test]
fn both_sides_may_ask_at_the_same_time() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    exchange(&mut pair, 1, 0);
    exchange(&mut pair, 2, 0);
    let now = pair.now;
    pair.client().reset_streams(now, streams(&[1]), Direction::Both).expect("free to ask");
    pair.server().reset_streams(now, streams(&[1]), Direction::Both).expect("free to ask");
    pair.run_for(ms(500));
    for side in [&pair.client, &pair.server] {
        let outcomes: Vec<_> = side
            .events
            .iter()
            .filter_map(|event| match event {
                Event::Reconfigured { outcome, .. } => Some(*outcome),
                _ => None,
            })
            .collect();
        assert_eq!(outcomes, [PERFORMED, PERFORMED], "{}", pair.log.join("\n"));
    }
    exchange(&mut pair, 1, 1);
    assert_eq!([ssns(&pair, true, 1), ssns(&pair, false, 1)], [[0, 0], [0, 0]]);

    // Of two requests that would wait for each other, both fail.
    let now = pair.now;
    pair.client().reset_streams(now, streams(&[2]), Direction::Inbound).expect("free to ask");
    pair.server().reset_streams(now, streams(&[2]), Direction::Inbound).expect("free to ask");
    pair.run_for(Duration::from_secs(10));
    let failed = ReconfigurationOutcome::Failed("the peer has a request of its own under way");
    let request = Reconfiguration::ResetInbound(streams(&[2]));
    for side in [&pair.client, &pair.server] {
        assert_eq!(side.events.last(), Some(&reconfigured(request.clone(), failed)));
    }
}

#[test]
fn a_request_that_the_peer_may_not_make_is_denied() {
    let deny = AssociationConfig::default().with(|c| c.accept_stream_resets = false);
    let mut pair = Pair::unlike(1, &AssociationConfig::default(), &deny, 1).settled();
    exchange(&mut pair, 1, 0);
    reset(&mut pair, streams(&[1]), Direction::Both);
    pair.send(1, 1, 100);
    pair.run_for(ms(500));
    for request in
        [Reconfiguration::ResetOutbound(streams(&[1])), Reconfiguration::ResetInbound(streams(&[1]))]
    {
        assert!(pair.client.events.contains(&reconfigured(request, ReconfigurationOutcome::Denied)));
    }
    exchange(&mut pair, 1, 2);
    assert_eq!([ssns(&pair, true, 1), ssns(&pair, false, 1)], [vec![0, 1, 2], vec![0, 1]]);

    // What it asks for itself it accepts, of course.
    let now = pair.now;
    pair.server().reset_streams(now, streams(&[1]), Direction::Inbound).expect("free to ask");
    pair.run_for(ms(500));
    exchange(&mut pair, 1, 3);
    assert_eq!(ssns(&pair, true, 1), [0, 1, 2, 0]);
}

#[test]
fn without_negotiation_nothing_is_asked() {
    let without = AssociationConfig::default().with(|c| c.stream_reconfiguration = false);
    let mut pair = Pair::unlike(1, &AssociationConfig::default(), &without, 1).settled();
    let now = pair.now;
    let refused = Err(ReconfigurationError::NotNegotiated);
    assert_eq!(pair.client().reset_streams(now, Streams::All, Direction::Outbound), refused);
    assert_eq!(pair.client().reset_association(now), refused);
    assert_eq!(pair.client().add_streams(now, 1, 1), refused);
    let number = first_number(&pair);
    assert_eq!(answers(&mut pair, &[Param::SsnTsnReset { request: number }]), []);
    assert_eq!(pair.server().stats(now).expect("open").discards.unexpected_chunk, 1);
}

#[test]
fn what_cannot_be_asked_is_refused_with_a_reason() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    let now = pair.now;
    let mut ask = |which, direction| pair.client().reset_streams(now, which, direction);
    let refused = ask(streams(&[3, 10]), Direction::Outbound).expect_err("ten streams");
    assert_eq!(refused.to_string(), "stream 10 does not exist: there are 10 in that direction");
    let refused = ask(Streams::These(BTreeSet::new()), Direction::Outbound).expect_err("no stream");
    assert_eq!(refused.to_string(), "0 streams were named: 1 to 120 are possible at a time, or all");
    let many = Streams::These((0..121).map(StreamId).collect());
    assert!(matches!(
        ask(many, Direction::Inbound),
        Err(ReconfigurationError::Count { count: 121, most: 120 })
    ));
    assert_eq!(ask(streams(&[3]), Direction::Outbound), Ok(()));
    assert_eq!(ask(streams(&[4]), Direction::Outbound), Err(ReconfigurationError::Busy));
    pair.run_for(ms(100));
    pair.client().shutdown(now);
    let refused = pair.client().reset_streams(now, streams(&[3]), Direction::Outbound).expect_err("too late");
    assert!(matches!(refused, ReconfigurationError::NotOpen { .. }));
}

#[test]
fn a_shutdown_waits_for_what_waits_for_a_reset() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    pair.lose(ChunkKind::RECONFIG, 1);
    pair.send(1, 0, 3000);
    reset(&mut pair, streams(&[1]), Direction::Outbound);
    pair.send(1, 1, 3000);
    let now = pair.now;
    pair.client().shutdown(now);
    pair.run_for(Duration::from_secs(10));
    assert_eq!(pair.server.numbers_on(1), [0, 1]);
    assert_eq!(pair.client().state_name(), "CLOSED");
}

#[test]
fn a_peer_that_never_answers_ends_the_association_after_the_configured_timeouts() {
    let config = by_reports().with(|c| c.association_max_retrans = 4);
    let mut pair = Pair::established(2, &config);
    pair.network = Box::new(|flight| (!flight.carries(ChunkKind::RECONFIG)).then_some(ms(10)));
    let before = pair.wire.len();
    reset(&mut pair, Streams::All, Direction::Outbound);
    pair.run_for(Duration::from_secs(120));
    let requests = pair.sent_since(before).iter().filter(|flight| flight.carries(ChunkKind::RECONFIG));
    let (paths, times): (Vec<_>, Vec<_>) = requests.map(|flight| (flight.path(), flight.sent)).unzip();
    assert_eq!(paths, [0, 1, 0, 1, 0], "in turn over the paths, however well they answer heartbeats");
    let waits: Vec<u64> = times.windows(2).map(|pair| (pair[1] - pair[0]).as_secs()).collect();
    assert_eq!(waits, [1, 2, 4, 8]);
    assert!(matches!(pair.client.events.last(), Some(Event::Closed(_))));
}

#[test]
fn a_reset_waits_for_what_was_sent_before_it() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    let first = first_number(&pair);
    let data = |pair: &mut Pair, tsn: u32, number: u32| {
        let payload = content(1, number, 100);
        let data = Data {
            tsn: Tsn(tsn),
            stream: StreamId(1),
            ssn: Ssn(0),
            ppid: Ppid(0),
            flags: DataFlags::WHOLE,
            payload: &payload,
        };
        let packet = pair.packet(true, &[Chunk::Data(data)]);
        pair.inject(true, 0, packet);
    };
    let reset = [Param::OutgoingReset {
        request: first,
        response: 0,
        last_tsn: Tsn(first),
        streams: List::Values(&[1]),
    }];
    assert_eq!(answers(&mut pair, &reset), [(first, 6)]);
    assert_eq!(answers(&mut pair, &reset), [(first, 6)], "asked again");
    // The new life of the stream has to wait until the old one is complete.
    data(&mut pair, first.wrapping_add(1), 1);
    let now = pair.now;
    assert_eq!(pair.server().stats(now).expect("open").discards.before_reset, 1);
    let before = pair.wire.len();
    data(&mut pair, first, 0);
    assert_eq!(reconfigs(&pair, before), [(false, vec![16])], "told without being asked again");
    assert!(pair.server.events.contains(&Event::InboundReset(streams(&[1]))));
    assert_eq!(answers(&mut pair, &reset), [(first, 1)]);
    data(&mut pair, first.wrapping_add(1), 1);
    assert_eq!((pair.server.numbers_on(1), ssns(&pair, true, 1)), (vec![0, 1], vec![0, 0]));
}

#[test]
fn requests_are_answered_by_their_numbers() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    exchange(&mut pair, 1, 0);
    let first = first_number(&pair);
    let last_tsn = Tsn(first);
    let reset =
        |request, list| Param::OutgoingReset { request, response: 0, last_tsn, streams: List::Values(list) };
    let next = first.wrapping_add(1);
    assert_eq!(answers(&mut pair, &[reset(next, &[1])]), [(next, 5)], "not its turn");
    assert_eq!(answers(&mut pair, &[reset(first, &[9])]), [(first, 1)], "the last of its streams");
    assert_eq!(answers(&mut pair, &[reset(first, &[1])]), [(first, 1)], "again: not done again");
    assert_eq!(
        answers(&mut pair, &[Param::IncomingReset { request: next, streams: List::Values(&[10]) }]),
        [(next, 3)]
    );
    assert_eq!(answers(&mut pair, &[reset(first, &[1])]), [(first, 1)], "remembered still");
    let now = pair.now;
    let before = pair.server().stats(now).expect("open").discards.malformed_chunk;
    let both = [reset(first, &[1]), Param::SsnTsnReset { request: first }];
    assert_eq!(answers(&mut pair, &both), [], "these may not stand together");
    assert_eq!(answers(&mut pair, &[]), []);
    assert_eq!(pair.server().stats(now).expect("open").discards.malformed_chunk, before + 2);
    assert_eq!(
        answers(&mut pair, &[Param::ReconfigResponse { response: 7, result: 1, next_tsns: None }]),
        [],
        "nothing was asked"
    );
    assert_eq!(pair.server().stats(now).expect("open").discards.stray_reconfiguration, 1);
}

#[test]
fn what_waits_for_a_reset_may_expire() {
    let mut pair = Pair::established(1, &AssociationConfig::default());
    pair.send(1, 0, 100);
    pair.run_for(ms(100));
    pair.lose(ChunkKind::RECONFIG, 1);
    reset(&mut pair, streams(&[1]), Direction::Outbound);
    let now = pair.now;
    for (number, reliability) in
        [(1, Reliability::Full), (2, Reliability::Lifetime(ms(200))), (3, Reliability::Lifetime(ms(5000)))]
    {
        let options = SendOptions::on(StreamId(1)).with(|o| o.reliability = reliability);
        pair.client().send(now, options, content(1, number, 100)).expect("room");
    }
    pair.run_for(Duration::from_secs(5));
    assert_eq!((pair.server.numbers_on(1), ssns(&pair, true, 1)), (vec![0, 1, 3], vec![0, 0, 1]));
    let gone =
        pair.client.events.iter().filter(|event| matches!(event, Event::Abandoned { sent: false, .. }));
    assert_eq!((gone.count(), pair.client().send_queue().used), (1, 0));
}
