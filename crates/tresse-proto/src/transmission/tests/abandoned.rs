//! Abandoned messages: what they release, what they leave, and what the peer is told.

use std::sync::Arc;

use tresse_wire::{ChecksumRule, Chunk, CommonHeader, Packet, PacketWriter, Seal};

use super::*;
use crate::fragment::DataFormat;
use crate::interface::event::SendOptions;
use crate::interface::reliability::{DeliveryTerms, Reliability};

const ONCE: Reliability = Reliability::Retransmissions(0);
const HEADER: CommonHeader = CommonHeader { source_port: 1, destination_port: 2, verification_tag: 3 };

/// A FORWARD TSN: its cumulative TSN, and stream, U bit and number of every entry.
pub(super) type Told = (u32, Vec<(u16, bool, u32)>);

/// A fragment of the message `number`; `shape` names its flags B, E and U.
fn fragment(stream: u16, number: u64, shape: &str) -> Fragment {
    let flags = DataFlags {
        beginning: shape.contains('B'),
        ending: shape.contains('E'),
        unordered: shape.contains('U'),
        immediate: false,
    };
    Fragment {
        stream: StreamId(stream),
        mid: Mid(number as u32),
        fsn: Fsn(0),
        ppid: Ppid(0),
        flags: flags.into(),
        payload: Bytes::from(vec![0; DATA]),
    }
}

/// The terms of the message `number` of DATA bytes.
fn terms(now: Instant, number: u64, reliability: Reliability) -> Arc<DeliveryTerms> {
    let options = SendOptions { reliability, ..SendOptions::default() };
    options.terms(now, number, DATA, true).expect("a policy")
}

impl Bench {
    /// Sends a fragment of the message `number`; `shape` has B, E and U where these bits are set.
    pub(super) fn offer(
        &mut self,
        path: u8,
        stream: u16,
        number: u64,
        shape: &str,
        reliability: Reliability,
    ) -> u64 {
        let fragment = fragment(stream, number, shape);
        let tsn = self.sent.outstanding.number(&fragment).tsn;
        self.sent.record(self.now, fragment, Some(terms(self.now, number, reliability)), PathId(path));
        self.check();
        tsn.0.into()
    }

    /// Assigns the message `number`, whole.
    pub(super) fn offer_ahead(&mut self, path: u8, number: u64, reliability: Reliability) -> u64 {
        let fragment = fragment(path.into(), number, "BE");
        self.sent.assign(self.now, fragment, Some(terms(self.now, number, reliability)), PathId(path));
        self.check();
        self.sent.outstanding.ring.highest()
    }

    /// Gives up whatever is due; returns the numbers.
    pub(super) fn give_up(&mut self) -> Vec<u64> {
        let mut numbers = Vec::new();
        while let Some(terms) = self.sent.next_condemned(self.now) {
            self.sent.abandon(&terms, false, &mut Vec::new());
            self.check();
            numbers.push(terms.number);
        }
        self.sent.advance();
        numbers
    }

    pub(super) fn forward_in(&mut self, path: u8, room: usize) -> Option<Told> {
        let mut bytes = Vec::new();
        let mut writer = PacketWriter::new(&mut bytes, HEADER, room);
        if !self.sent.write_forward(self.now, PathId(path), &mut writer) {
            return None;
        }
        writer.finish(Seal::Crc32c);
        let packet = Packet::parse(&bytes, ChecksumRule::Verify).expect("a packet");
        match packet.chunks().next() {
            Some(Ok(Chunk::ForwardTsn(told))) => {
                let list = told.streams.iter().map(|skipped| (skipped.stream.0, false, skipped.ssn.0.into()));
                Some((told.cumulative_tsn.0, list.collect()))
            }
            Some(Ok(Chunk::IForwardTsn(told))) => {
                let list =
                    told.messages.iter().map(|skipped| (skipped.stream.0, skipped.unordered, skipped.mid.0));
                Some((told.cumulative_tsn.0, list.collect()))
            }
            other => panic!("no FORWARD TSN: {other:?}"),
        }
    }

    fn forward(&mut self) -> Option<Told> {
        self.forward_in(0, 1500)
    }
}

#[test]
fn a_chunk_that_the_peer_reneged_has_not_been_retransmitted() {
    let mut bench = Bench::new(1, &plain());
    for number in 1..=2 {
        bench.offer(0, 0, number, "BE", Reliability::Retransmissions(1));
    }
    bench.hear(0, 0, &[(2, 2)], &[], 1).expect("sound");
    bench.hear(0, 0, &[], &[], 1).expect("sound");
    bench.time_out(0, 0);
    assert_eq!((bench.give_up(), bench.lost(0)), (vec![], vec![1, 2]));
    bench.resend_all(0);
    bench.time_out(0, 0);
    assert_eq!(bench.give_up(), [1, 2]);
}

#[test]
fn what_is_given_up_counts_as_acknowledged_but_moves_no_window() {
    let mut bench = Bench::new(1, &plain());
    for number in 1..=4 {
        bench.offer(0, 0, number, "BE", ONCE);
    }
    for last in 2..=4 {
        bench.sack(0, 0, &[(2, last)]);
    }
    assert!(bench.ack(0).is_some_and(|ack| ack.lost), "the loss is told to congestion control");
    assert_eq!(bench.give_up(), [1]);
    assert_eq!((bench.flight(0), bench.queued(0), bench.lost(0)), (0, 3 * LEN, vec![]));
    assert_eq!(bench.forward(), Some((1, vec![(0, false, 1)])));
    bench.sack(0, 4, &[]);
    assert!(bench.ack(0).is_none(), "nothing that a window could grow by");
    assert_eq!(bench.report.released, 3 * DATA);
    assert!(bench.sent.outstanding.is_empty() && bench.sent.forward_path().is_none());
}

#[test]
fn every_chunk_of_a_message_goes_with_the_one_that_was_lost() {
    let mut bench = Bench::new(2, &plain());
    bench.offer(0, 0, 1, "B", ONCE);
    bench.offer(1, 0, 1, "", ONCE);
    bench.offer(0, 0, 1, "E", ONCE);
    bench.offer(0, 0, 2, "BE", ONCE);
    bench.sack(0, 0, &[(3, 3)]);
    bench.time_out(1, 1);
    assert_eq!(bench.give_up(), [1]);
    assert_eq!((bench.flight(0), bench.flight(1)), (LEN, 0), "the other message flies on");
    assert_eq!(bench.forward(), Some((3, vec![(0, false, 1)])));
    assert!(bench.give_up().is_empty());
}

#[test]
fn a_message_among_others_goes_whole_and_alone() {
    let mut bench = Bench::new(1, &cmt());
    for (number, shape) in [(1, "B"), (2, "B"), (1, "")] {
        bench.offer(0, number as u16, number, shape, ONCE);
    }
    bench.send(0, LEN);
    for (number, shape) in [(2, ""), (1, "E"), (2, "E")] {
        bench.offer(0, number as u16, number, shape, ONCE);
    }
    bench.sack(0, 1, &[]);
    let mut pieces = Vec::new();
    for (number, count) in [(1, 2), (2, 3)] {
        let freed = bench.sent.abandon(&terms(bench.now, number, ONCE), false, &mut pieces);
        assert_eq!((freed, pieces.len()), (count * DATA, count), "message {number}");
        bench.check();
        pieces.clear();
    }
    assert_eq!(bench.flight(0), LEN, "what has to arrive");
    bench.offer(0, 3, 3, "BE", ONCE);
    assert_eq!(bench.sent.abandon(&terms(bench.now, 3, ONCE), false, &mut pieces), DATA, "after a gap");
}

#[test]
fn the_ack_point_stops_at_the_first_chunk_that_was_not_given_up() {
    // The example of RFC 3758 §3.5 C2, with 103 as TSN 2.
    let mut bench = Bench::new(1, &plain());
    for (number, reliability) in
        [(1, ONCE), (2, ONCE), (3, ONCE), (4, Reliability::Retransmissions(5)), (5, ONCE)]
    {
        bench.offer(0, 0, number, "BE", reliability);
    }
    bench.sack(0, 1, &[(4, 4)]);
    bench.time_out(0, 0);
    assert_eq!(bench.give_up(), [2, 3]);
    assert_eq!(bench.forward(), Some((3, vec![(0, false, 3)])));
    assert_eq!(bench.lost(0), [4]);
    assert!(bench.forward().is_none(), "told once");
}

#[test]
fn a_gap_block_for_what_was_given_up_can_come_and_go() {
    let mut bench = Bench::new(1, &plain());
    for number in 1..=4 {
        bench.offer(0, 0, number, "BE", ONCE);
    }
    bench.sack(0, 0, &[(4, 4)]);
    bench.time_out(0, 0);
    assert_eq!(bench.give_up(), [1, 2, 3]);
    bench.sack(0, 0, &[(2, 4)]);
    bench.nr_sack(0, 0, &[(4, 4)], &[]);
    assert_eq!(bench.flight(0), 0, "nobody misses it");
    bench.sack(0, 4, &[]);
    assert!(bench.sent.outstanding.is_empty());
}

#[test]
fn each_stream_is_named_once_and_unordered_messages_only_by_i_forward_tsn() {
    for (data_format, expected) in [
        (DataFormat::Data, vec![(2, false, 3), (7, false, 4)]),
        (DataFormat::IData, vec![(2, false, 3), (7, false, 4), (7, true, 5)]),
    ] {
        let mut bench = Bench::new(1, &plain());
        bench.sent.outstanding.data_format = data_format;
        for (stream, number, shape) in [(7, 1, "BE"), (2, 2, "BE"), (2, 3, "BE"), (7, 4, "BE"), (7, 5, "BEU")]
        {
            bench.offer(0, stream, number, shape, ONCE);
        }
        bench.time_out(0, 0);
        assert_eq!(bench.give_up().len(), 5);
        assert_eq!(bench.forward_in(0, 1500), Some((5, expected)));
    }
}

#[test]
fn a_list_that_does_not_fit_keeps_the_peer_back_until_it_is_there() {
    let mut bench = Bench::new(1, &plain());
    for number in 1..=5 {
        bench.offer(0, number as u16, number, "BE", ONCE);
    }
    bench.time_out(0, 0);
    bench.give_up();
    // Common header, chunk header and cumulative TSN, two streams.
    let told = bench.forward_in(0, 12 + 8 + 2 * 4);
    assert_eq!(told, Some((2, vec![(1, false, 1), (2, false, 2)])));
    bench.sent.advance();
    assert!(!bench.sent.forward_is_due());
    bench.sack(0, 2, &[]);
    bench.sent.advance();
    assert_eq!(bench.forward(), Some((5, vec![(3, false, 3), (4, false, 4), (5, false, 5)])));
}

#[test]
fn the_end_of_a_message_cut_short_takes_a_tsn() {
    for acknowledged in [false, true] {
        let mut bench = Bench::new(1, &plain());
        bench.offer(0, 3, 1, "B", ONCE);
        bench.offer(0, 3, 1, "", ONCE);
        if acknowledged {
            bench.sack(0, 2, &[]);
        }
        let freed = bench.sent.abandon(&terms(bench.now, 1, ONCE), true, &mut Vec::new());
        bench.check();
        bench.sent.advance();
        assert_eq!(freed, if acknowledged { 0 } else { 2 * DATA });
        assert_eq!(bench.send(0, LEN), 4);
        assert_eq!(bench.forward(), Some((3, vec![(3, false, 1)])), "even if all that was sent has arrived");
    }
}

#[test]
fn a_forward_is_told_again_after_a_pause_or_a_timeout() {
    let mut bench = Bench::new(2, &plain());
    bench.offer(0, 0, 1, "BE", ONCE);
    bench.time_out(0, 0);
    bench.give_up();
    assert!(bench.forward_in(1, 1500).is_some());
    assert_eq!(bench.sent.forward_path(), Some(PathId(1)));
    let pause = Duration::from_millis(50);
    bench.wait(49);
    bench.sent.repeat_forward(bench.now, pause);
    assert!(!bench.sent.forward_is_due(), "the SACK may be older than what it should answer");
    bench.wait(1);
    bench.sent.repeat_forward(bench.now, pause);
    assert!(bench.forward_in(1, 1500).is_some());
    bench.time_out(0, 0);
    assert!(!bench.sent.forward_is_due(), "T3 of another path");
    bench.time_out(1, 0);
    assert!(bench.sent.forward_is_due());
    assert_eq!(bench.sent.forward().and_then(Forward::avoids), Some(PathId(1)));
}

#[test]
fn evictions_go_by_priority_then_by_age_and_spare_what_has_arrived() {
    let mut bench = Bench::new(1, &cmt());
    for (number, priority) in [(1, 5), (2, 9), (3, 9), (4, 2), (5, 9)] {
        bench.offer(0, 0, number, "BE", Reliability::Priority(priority));
    }
    bench.nr_sack(0, 0, &[(2, 2)], &[(5, 5)]);
    assert_eq!(bench.sent.evictable(3, usize::MAX), 2 * DATA);
    assert_eq!(bench.sent.evictable(3, 1), DATA, "counts no further than it has to");
    let mut order = Vec::new();
    while let Some(terms) = bench.sent.next_eviction(3) {
        bench.sent.abandon(&terms, false, &mut Vec::new());
        bench.check();
        order.push(terms.number);
    }
    assert_eq!(order, [3, 1]);
}

#[test]
fn a_lifetime_is_over_for_lost_chunks_only() {
    let mut bench = Bench::new(2, &plain());
    let lifetime = Reliability::Lifetime(Duration::from_millis(100));
    bench.offer(0, 0, 1, "BE", lifetime);
    bench.offer(1, 0, 2, "BE", lifetime);
    bench.time_out(0, 0);
    assert!(bench.give_up().is_empty(), "in time");
    bench.wait(99);
    assert!(bench.give_up().is_empty());
    bench.wait(1);
    assert_eq!(bench.give_up(), [1], "what flies may still arrive");
    bench.time_out(1, 1);
    assert_eq!(bench.give_up(), [2]);
}

/// A peer compares message numbers by serial number arithmetic: one FORWARD TSN passes fewer than half of them.
#[test]
fn a_forward_tsn_passes_fewer_than_half_of_the_numbers_of_a_stream() {
    const MANY: u64 = 40_000;
    let mut bench = Bench::new(1, &plain());
    let first = fragment(3, 65_000, "BE");
    for number in 0..MANY {
        let fragment = Fragment {
            mid: Mid((65_000 + number) as u32),
            payload: Bytes::from_static(&[0]),
            ..first.clone()
        };
        bench.sent.record(bench.now, fragment, Some(terms(bench.now, number, ONCE)), PathId(0));
    }
    bench.sent.on_timeout(PathId(0), PathId(0));
    while let Some(terms) = bench.sent.next_condemned(bench.now) {
        bench.sent.abandon(&terms, false, &mut Vec::new());
    }
    bench.sent.advance();
    let ssn = |count: u32| vec![(3, false, (65_000 + count - 1) & 0xffff)];
    assert_eq!(bench.forward(), Some((32_768, ssn(32_768))));
    assert_eq!(bench.forward(), None, "the peer has to acknowledge it first");
    bench.hear(0, 32_768, &[], &[], 1).expect("sound");
    bench.sent.advance();
    assert_eq!(bench.forward(), Some((MANY as u32, ssn(MANY as u32))));
}
