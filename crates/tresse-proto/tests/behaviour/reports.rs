//! SACKs: when they leave, on which path, and their contents (RFC 9260 §6.2, §6.7; CMT's delayed ack).

use std::time::Duration;

use tresse_proto::config::{LossDetection, NrSack, SackPath};
use tresse_proto::{AssociationConfig, Instant, Ppid, Ssn, StreamId, Tsn};
use tresse_wire::{Chunk, ChunkKind, Data, DataFlags};

use crate::common::{Flight, Pair, content};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn plain() -> AssociationConfig {
    AssociationConfig::preset("rfc9260").expect("a preset")
}

fn is_report(flight: &Flight) -> bool {
    [ChunkKind::SACK, ChunkKind::NR_SACK].iter().any(|&kind| flight.carries(kind))
}

/// No heartbeats between, whose answers would be heard.
fn measured_once() -> AssociationConfig {
    AssociationConfig::default().with(|c| c.sack_path_probes = Duration::ZERO)
}

/// Injects DATA into the server by hand: after `settled`, the client has sent none of its own, and hears of no report.
struct Source {
    pair: Pair,
    first: Tsn,
    started: Instant,
}

impl Source {
    fn new(paths: u8, config: &AssociationConfig) -> Self {
        let mut pair = Pair::established(paths, config);
        pair.network = Box::new(|flight| (flight.to_server || !is_report(flight)).then_some(ms(10)));
        let first = pair.wire[0].chunks().into_iter().find_map(|chunk| match chunk {
            Chunk::Init(init) => Some(init.initial_tsn),
            _ => None,
        });
        let started = pair.now;
        let mut source = Source { pair, first: first.expect("INIT comes first"), started };
        // The first DATA ever is acknowledged at once; what follows shows the rules.
        let before = source.pair.wire.len();
        source.data(0, &[0]);
        assert_eq!(source.sacks_since(before).len(), 1);
        source
    }

    /// A packet with unordered one-chunk messages, numbered from the initial TSN on.
    fn data(&mut self, path: u8, numbers: &[u32]) {
        self.data_with(
            path,
            numbers,
            DataFlags { beginning: true, ending: true, unordered: true, immediate: false },
        );
    }

    fn data_with(&mut self, path: u8, numbers: &[u32], flags: DataFlags) {
        let chunks: Vec<Chunk<'_>> = numbers
            .iter()
            .map(|&number| {
                Chunk::Data(Data {
                    tsn: self.first.advance(number),
                    stream: StreamId(0),
                    ssn: Ssn(0),
                    ppid: Ppid(0),
                    flags,
                    payload: b"data",
                })
            })
            .collect();
        let packet = self.pair.packet(true, &chunks);
        self.pair.inject(true, path, packet);
    }

    /// Reports of the server since `from` packets: time since the start in ms, path, and the text.
    fn sacks_since(&self, from: usize) -> Vec<(u64, u8, String)> {
        self.pair
            .sent_since(from)
            .iter()
            .filter(|flight| !flight.to_server && is_report(flight))
            .map(|flight| {
                let at = (flight.sent - self.started).as_millis() as u64;
                (at, flight.path(), flight.dissect())
            })
            .collect()
    }

    /// How many reports these packets cause at once, and how many after 200 ms.
    fn reports(&mut self, packets: &[&[u32]]) -> (usize, usize) {
        let before = self.pair.wire.len();
        for numbers in packets {
            self.data(0, numbers);
        }
        let at_once = self.sacks_since(before).len();
        self.pair.run_for(ms(250));
        (at_once, self.sacks_since(before).len())
    }
}

#[test]
fn every_second_packet_is_acknowledged_and_a_lone_one_after_the_delay() {
    for config in [plain(), AssociationConfig::default()] {
        let mut source = Source::new(1, &config);
        assert_eq!(source.reports(&[&[1], &[2]]), (1, 1));
        assert_eq!(source.reports(&[&[3, 4, 5], &[6], &[7], &[8]]), (2, 2), "packets count, not chunks");
        let (before, at) = (source.pair.wire.len(), source.pair.now);
        source.data(0, &[9]);
        source.pair.run_for(ms(1000));
        let sacks = source.sacks_since(before);
        assert_eq!(sacks.len(), 1);
        assert_eq!(sacks[0].0, (at - source.started).as_millis() as u64 + 200);
    }
}

#[test]
fn the_frequency_and_the_delay_are_switches() {
    let config = plain().with(|c| c.sack_frequency = 1);
    assert_eq!(Source::new(1, &config).reports(&[&[1], &[2], &[3]]), (3, 3));
    let config = plain().with(|c| {
        c.sack_frequency = 4;
        c.sack_delay = ms(50);
    });
    let mut source = Source::new(1, &config);
    assert_eq!(source.reports(&[&[1], &[2], &[3], &[4], &[5]]), (1, 2));
}

#[test]
fn gaps_hurry_a_report_unless_delayed_acks_are_on() {
    let mut source = Source::new(1, &plain());
    assert_eq!(source.reports(&[&[2]]), (1, 1), "1 is missing");
    assert_eq!(source.reports(&[&[3]]), (1, 1), "and still is");
    assert_eq!(source.reports(&[&[1]]), (1, 1), "the gap is filled");
    assert_eq!(source.reports(&[&[4]]), (0, 1));

    let mut source = Source::new(2, &AssociationConfig::default());
    source.data(1, &[1]);
    source.pair.run_for(ms(250));
    assert_eq!(source.reports(&[&[3]]), (0, 1));
    assert_eq!(source.reports(&[&[4], &[6]]), (1, 1));
}

#[test]
fn duplicates_and_the_i_bit_hurry_a_report() {
    for config in [plain(), AssociationConfig::default()] {
        let mut source = Source::new(1, &config);
        let before = source.pair.wire.len();
        source.data(0, &[0]);
        let sacks = source.sacks_since(before);
        assert_eq!(sacks.len(), 1);
        assert!(sacks[0].2.ends_with(&format!("dups {}", source.first)), "{}", sacks[0].2);
        let before = source.pair.wire.len();
        let flags = DataFlags { beginning: true, ending: true, unordered: true, immediate: true };
        source.data_with(0, &[1], flags);
        assert_eq!(source.sacks_since(before).len(), 1, "RFC 7053");
    }
}

#[test]
fn a_report_says_how_many_packets_it_stands_for_under_dac() {
    let mut source = Source::new(2, &AssociationConfig::default());
    let before = source.pair.wire.len();
    source.data(1, &[1, 2, 3]);
    source.data(0, &[5]);
    source.data(0, &[7]);
    source.pair.run_for(ms(300));
    let flags: Vec<bool> =
        source.sacks_since(before).iter().map(|sack| sack.2.contains("flags 0x80")).collect();
    assert_eq!(flags, [true, false], "two packets, then one");
    let mut source = Source::new(1, &plain());
    let before = source.pair.wire.len();
    source.data(0, &[1]);
    source.data(0, &[2]);
    assert!(source.sacks_since(before).iter().all(|sack| !sack.2.contains("flags")));
}

#[test]
fn nr_sack_says_what_is_promised() {
    let said = |nr_sack| {
        let mut source = Source::new(1, &AssociationConfig::default().with(|c| c.nr_sack = nr_sack));
        let before = source.pair.wire.len();
        // 3 and 4 can be delivered; of the fragmented message only a middle piece is there.
        source.data(0, &[2, 3]);
        source.data_with(0, &[6], DataFlags { unordered: true, ..DataFlags::default() });
        source.sacks_since(before).pop().expect("two packets").2
    };
    assert!(
        said(NrSack::Everything).contains("nr-gaps 2-3,6-6") && !said(NrSack::Everything).contains(" r-gaps")
    );
    assert!(said(NrSack::Delivered).contains(" r-gaps 6-6 nr-gaps 2-3"), "{}", said(NrSack::Delivered));
    assert!(said(NrSack::Off).contains("SACK cum") && said(NrSack::Off).contains(" gaps 2-3,6-6"));
    assert!(!said(NrSack::Off).contains("NR-SACK"));
}

/// A report of all 300 blocks would be nearly as long as a full packet, one for every two that come.
#[test]
fn a_report_of_many_promised_blocks_stays_short_and_tells_what_came_last() {
    let mut source = Source::new(1, &AssociationConfig::default());
    let evens: Vec<u32> = (1..=300).map(|half| 2 * half).collect();
    for pair in evens.chunks(2) {
        source.data(0, &pair[..1]);
        source.data(0, &pair[1..]);
    }
    let before = source.pair.wire.len();
    source.data(0, &[401]);
    source.data(0, &[602]);
    let reports = source.pair.wire[before..].iter().flat_map(|flight| flight.chunks());
    let blocks = reports.filter_map(|chunk| match chunk {
        Chunk::NrSack(report) => {
            Some(report.non_renegable.iter().map(|block| (block.start, block.end)).collect())
        }
        _ => None,
    });
    let blocks: Vec<(u16, u16)> = blocks.last().expect("two packets");
    assert_eq!(blocks.len(), 64);
    assert_eq!((blocks[0], blocks[31], blocks[63]), ((2, 2), (64, 64), (602, 602)));
    assert!(blocks.contains(&(400, 402)), "what was filled in the middle: {blocks:?}");
}

#[test]
fn nr_sack_needs_both_sides() {
    let off = AssociationConfig::default().with(|c| c.nr_sack = NrSack::Off);
    for (client, server) in [(off.clone(), AssociationConfig::default()), (AssociationConfig::default(), off)]
    {
        let mut pair = Pair::unlike(1, &client, &server, 1).settled();
        for number in 0..20 {
            pair.send(0, number, 1000);
        }
        pair.run_until(Duration::from_secs(10), |pair| pair.server.received.len() == 20);
        assert!(!pair.wire.iter().any(|flight| flight.carries(ChunkKind::NR_SACK)));
    }
}

#[test]
fn reports_take_the_path_that_the_switch_names() {
    let path_of_report = |sack_path, sources: &[u8]| {
        let mut source = Source::new(3, &AssociationConfig::default().with(|c| c.sack_path = sack_path));
        let before = source.pair.wire.len();
        for (number, &path) in (1..).zip(sources) {
            source.data(path, &[number]);
        }
        source.sacks_since(before)[0].1
    };
    assert_eq!(path_of_report(SackPath::LastData, &[1, 2]), 2);
    assert_eq!(path_of_report(SackPath::FirstData, &[1, 2]), 1);
    assert_eq!(path_of_report(SackPath::Primary, &[1, 2]), 0);
    // Path 0 carried the first report of all: 1 and 2 have carried none.
    assert_eq!(path_of_report(SackPath::RoundRobin, &[0, 1]), 1);
    assert_eq!(path_of_report(SackPath::RoundRobin, &[2, 0]), 2);
}

#[test]
fn reports_take_the_fastest_path_as_long_as_something_arrives_there() {
    let config = measured_once().with(|c| c.sack_path = SackPath::Fastest);
    let mut source = Source::new(3, &config);
    // Heartbeats that were wanted for it have measured every path; they are all alike, so the first is taken.
    source.pair.run_for(ms(500));
    let path_of_report = |source: &mut Source, path, number, pause| {
        let before = source.pair.wire.len();
        source.data(path, &[number]);
        source.pair.run_for(pause);
        source.sacks_since(before).first().map(|sack| sack.1)
    };
    // Two packets make a report; a round trip takes 20 ms on every path.
    path_of_report(&mut source, 0, 1, ms(250));
    path_of_report(&mut source, 0, 2, ms(10));
    assert_eq!(path_of_report(&mut source, 2, 3, ms(10)), Some(0), "something arrived there just now");
    assert_eq!(path_of_report(&mut source, 2, 4, ms(41)), Some(2), "nothing did for two round trips");
}

#[test]
fn a_report_is_repeated_when_the_path_that_it_took_falls_silent() {
    let config = measured_once().with(|c| {
        c.sack_path = SackPath::Fastest;
        c.sack_frequency = 1;
    });
    let mut source = Source::new(2, &config);
    source.pair.run_for(ms(500));
    source.data(0, &[1]);
    source.pair.run_for(ms(10));
    let before = source.pair.wire.len();
    source.data(1, &[2]);
    source.pair.run_for(ms(39));
    let paths = |source: &Source| source.sacks_since(before).iter().map(|sack| sack.1).collect::<Vec<_>>();
    assert_eq!(paths(&source), [0]);
    source.pair.run_for(ms(10));
    assert_eq!(paths(&source), [0, 1], "nothing came over path 0 for two round trips");
    source.pair.run_for(ms(200));
    assert_eq!(paths(&source), [0, 1], "it went where its data had come from: that settles it");

    let before = source.pair.wire.len();
    source.data(0, &[3]);
    source.pair.run_for(ms(1));
    source.data(1, &[4]);
    source.pair.run_for(ms(20));
    source.data(0, &[5]);
    source.pair.run_for(ms(200));
    let paths: Vec<u8> = source.sacks_since(before).iter().map(|sack| sack.1).collect();
    assert_eq!(paths, [0, 0, 0], "path 0 was heard again");
}

#[test]
fn a_report_on_data_of_several_paths_is_repeated_over_each_of_them_once() {
    let config = measured_once().with(|c| {
        c.sack_path = SackPath::Fastest;
        c.sack_frequency = 2;
    });
    let mut source = Source::new(3, &config);
    source.pair.run_for(ms(500));
    source.data(0, &[1]);
    source.pair.run_for(ms(250));
    let before = source.pair.wire.len();
    source.data(0, &[2]);
    source.data(1, &[3]);
    source.pair.run_for(Duration::from_secs(20));
    let paths: Vec<u8> = source.sacks_since(before).iter().map(|sack| sack.1).collect();
    assert_eq!(paths, [0, 1], "however long nothing is heard");
}

#[test]
fn reports_leave_a_path_whose_round_trip_has_grown() {
    let config = AssociationConfig::default().with(|c| c.sack_path = SackPath::Fastest);
    let mut pair = Pair::new(2, &config).settled();
    let go = |pair: &mut Pair, millis: [u64; 2], messages: u32| {
        pair.network = Box::new(move |flight| Some(ms(millis[usize::from(flight.path())])));
        let before = pair.wire.len();
        for number in 0..messages {
            pair.send(0, number, 1000);
            pair.run_for(ms(2));
        }
        let reports = pair.sent_since(before).iter().filter(|flight| flight.carries(ChunkKind::NR_SACK));
        reports.map(|flight| flight.path()).collect::<Vec<_>>()
    };
    let first = go(&mut pair, [10, 20], 500);
    assert!(first[first.len() / 2..].iter().all(|&path| path == 0), "{first:?}");
    let then = go(&mut pair, [75, 20], 1000);
    assert!(then[then.len() / 2..].iter().all(|&path| path == 1), "{then:?}");
}

#[test]
fn a_pending_report_rides_with_data() {
    // Who goes by time asks for a report on what ends all there is to send.
    let config = AssociationConfig::default().with(|c| c.loss_detection = LossDetection::Rfc9260);
    let mut pair = Pair::established(1, &config);
    let mut echo = 0;
    pair.send(0, 0, 100);
    pair.run_for(ms(11));
    let before = pair.wire.len();
    for _ in 0..10 {
        // The other side answers each message with one of its own, before any delay is over.
        echo += 1;
        let now = pair.now;
        let options = tresse_proto::SendOptions::on(StreamId(0));
        pair.server().send(now, options, content(0, echo, 100)).expect("room");
        pair.run_for(ms(11));
        pair.send(0, echo, 100);
        pair.run_for(ms(11));
    }
    let packets: Vec<_> = pair.sent_since(before).iter().map(|flight| flight.kinds()).collect();
    // The first message of the other side is acknowledged at once, as every first one is.
    assert!(packets[3..].iter().all(|kinds| *kinds == [ChunkKind::NR_SACK, ChunkKind::DATA]), "{packets:?}");
}

#[test]
fn data_without_payload_or_of_a_foreign_stream() {
    let config = AssociationConfig::default().with(|c| c.inbound_streams = 3);
    let mut source = Source::new(1, &config);
    let (before, tsn) = (source.pair.wire.len(), source.first.advance(1));
    let flags = DataFlags { beginning: true, ending: true, ..DataFlags::default() };
    let foreign = Data { tsn, stream: StreamId(3), ssn: Ssn(0), ppid: Ppid(0), flags, payload: b"data" };
    let packet = source.pair.packet(true, &[Chunk::Data(foreign)]);
    source.pair.inject(true, 0, packet);
    source.pair.run_for(ms(250));
    let lines: Vec<String> = source.pair.sent_since(before).iter().map(|flight| flight.dissect()).collect();
    assert!(lines.iter().any(|line| line.contains("ERROR [Invalid Stream Identifier 3]")), "{lines:?}");
    assert!(lines.iter().any(|line| line.contains(&format!("cum {tsn}"))), "acknowledged: {lines:?}");
    let now = source.pair.now;
    let stats = source.pair.server().stats(now).expect("open");
    assert_eq!((stats.discards.no_such_stream, source.pair.server.received.len()), (1, 1));

    // DATA of length 16 ends the association (RFC 9260 §6.2).
    let mut empty = source.pair.packet(true, &[Chunk::Data(foreign)]).to_vec();
    empty.truncate(12 + 16);
    empty[15] = 16;
    tresse_wire::seal(&mut empty);
    let before = source.pair.wire.len();
    source.pair.inject(true, 0, empty.into());
    let lines: Vec<String> = source.pair.sent_since(before).iter().map(|flight| flight.dissect()).collect();
    assert!(lines[0].contains("ABORT") && lines[0].contains("No User Data"), "{lines:?}");
}
