//! Messages queued, cut, mapped and scheduled in any order: every message leaves whole, once and in the order of its stream,
//! and the sums agree.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Push(u16, usize),
    Take { path: u8, room: usize, allowance: usize },
    Release(usize),
    Schedule(&'static str),
    Map(Vec<u16>),
    Usable(u8, bool),
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0u16..5, prop_oneof![1usize..300, 1000usize..8000]).prop_map(|(stream, len)| Step::Push(stream, len)),
        12 => (0u8..3, 0usize..=FULL, 0usize..6000)
            .prop_map(|(path, room, allowance)| Step::Take { path, room, allowance }),
        2 => (0usize..3000).prop_map(Step::Release),
        1 => prop_oneof![Just("first_come"), Just("round_robin"), Just("nonsense")].prop_map(Step::Schedule),
        1 => prop::collection::vec(0u16..6, 0..4).prop_map(Step::Map),
        1 => (0u8..4, any::<bool>()).prop_map(|(path, usable)| Step::Usable(path, usable)),
    ]
}

/// Fragments that left, reassembled as by a receiver.
#[derive(Default)]
struct Sent {
    open: Option<(StreamId, Vec<u8>)>,
    next_ssn: BTreeMap<u16, u16>,
    messages: BTreeMap<u16, Vec<Bytes>>,
}

impl Sent {
    fn take(&mut self, piece: &Fragment) {
        let stream = piece.stream;
        let (begun_on, mut bytes) = self.open.take().unwrap_or((stream, Vec::new()));
        assert_eq!(begun_on, stream, "fragments of one message follow each other");
        assert_eq!(piece.flags.beginning(), bytes.is_empty());
        let ssn = self.next_ssn.entry(stream.0).or_default();
        assert_eq!(piece.ssn().0, *ssn);
        bytes.extend_from_slice(&piece.payload);
        if piece.flags.ending() {
            *ssn += 1;
            self.messages.entry(stream.0).or_default().push(bytes.into());
        } else {
            self.open = Some((stream, bytes));
        }
    }
}

proptest! {
    #[test]
    fn every_message_leaves_whole_once_and_in_order(steps in prop::collection::vec(any_step(), 1..150)) {
        let mut bench = Bench::new(3, &AssociationConfig { send_buffer: Size(1 << 20), ..config() });
        let mut sent = Sent::default();
        let mut queued: BTreeMap<u16, Vec<Bytes>> = BTreeMap::new();
        let (mut pushed, mut left) = (0, 0);
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Push(stream, len) => {
                    bench.push(stream, number as u8, len).expect("room");
                    queued.entry(stream).or_default().push(content(stream, number as u8, len));
                    pushed += len;
                }
                Step::Take { path, room, allowance } => {
                    let piece = bench.cut(path, room, allowance);
                    if let Some(piece) = piece {
                        prop_assert!(piece.payload.len() <= room.min(allowance) && !piece.payload.is_empty());
                        left += piece.payload.len();
                        sent.take(&piece);
                        bench.out.on_packet_end(PathId(path));
                    }
                }
                Step::Release(bytes) => {
                    bench.out.buffer.release(bytes);
                }
                Step::Schedule(name) => {
                    let _ = bench.set_scheduler(name);
                }
                Step::Map(table) => {
                    bench.set_map(if table.is_empty() { StreamMap::Any } else { StreamMap::Fixed(table) });
                }
                Step::Usable(path, usable) => bench.out.set_usable(PathId(path), usable),
            }
            let by_stream: usize = (0..5).map(|stream| bench.out.unsent_on(StreamId(stream))).sum();
            prop_assert_eq!((bench.bytes().1, by_stream), (pushed - left, pushed - left));
            let served = (0..3).any(|path| bench.out.has_data_for(PathId(path)));
            prop_assert_eq!(served, pushed > left, "what waits can leave on some path");
        }
        while let Some(piece) = (0..3).find_map(|path| bench.take(path)) {
            sent.take(&piece);
        }
        prop_assert!(bench.out.is_empty() && sent.open.is_none());
        prop_assert_eq!(sent.messages, queued);
    }
}
