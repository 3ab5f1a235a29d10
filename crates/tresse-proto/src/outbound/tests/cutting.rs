//! Fragmentation, numbering and accounting of messages.

use tresse_wire::{Mid, Ppid};

use super::*;

#[test]
fn a_message_that_fits_leaves_whole() {
    let mut bench = Bench::new(1, &config());
    for (number, len) in [1, 700, FULL].into_iter().enumerate() {
        bench.push(3, number as u8, len).expect("room");
        let fragment = bench.take(0).expect("a message waits");
        assert_eq!(shape(&fragment), (true, true, len, number as u16));
        assert_eq!((fragment.stream, fragment.payload), (StreamId(3), content(3, number as u8, len)));
    }
    assert!(bench.take(0).is_none() && bench.out.is_empty());
}

#[test]
fn a_long_message_is_cut_into_full_chunks_of_one_ssn() {
    let cut = |len: usize| {
        let mut bench = Bench::new(1, &config());
        bench.push(0, 0, len).expect("room");
        bench.push(0, 1, 1).expect("room");
        let pieces: Vec<_> = std::iter::from_fn(|| bench.take(0)).map(|piece| shape(&piece)).collect();
        pieces
    };
    assert_eq!(cut(FULL + 1), [(true, false, FULL, 0), (false, true, 1, 0), (true, true, 1, 1)]);
    assert_eq!(cut(2 * FULL), [(true, false, FULL, 0), (false, true, FULL, 0), (true, true, 1, 1)]);
    let pieces = cut(3 * FULL + 7);
    assert_eq!(
        pieces,
        [
            (true, false, FULL, 0),
            (false, false, FULL, 0),
            (false, false, FULL, 0),
            (false, true, 7, 0),
            (true, true, 1, 1)
        ]
    );
}

#[test]
fn room_left_in_a_packet_is_filled_where_that_is_worth_a_chunk() {
    let taken = |len: usize, room: usize| {
        let mut bench = Bench::new(1, &config());
        bench.push(0, 0, len).expect("room");
        bench.cut(0, room, usize::MAX).map(|piece| piece.payload.len())
    };
    assert_eq!(taken(500, 500), Some(500));
    assert_eq!(taken(FULL, FULL - 1), None, "a packet of its own takes it whole");
    assert_eq!(taken(FULL + 1, 900), Some(900), "it is cut anyway");
    assert_eq!(taken(FULL + 1, SMALLEST_PIECE), Some(SMALLEST_PIECE));
    assert_eq!(taken(FULL + 1, SMALLEST_PIECE - 1), None);
    assert_eq!(taken(FULL + 1, 0), None);
    assert_eq!(taken(1, 0), None);
}

#[test]
fn nothing_larger_than_the_peer_can_take_is_cut() {
    let mut bench = Bench::new(1, &config());
    bench.push(0, 0, 1000).expect("room");
    bench.push(0, 1, 5000).expect("room");
    assert!(bench.cut(0, FULL, 999).is_none());
    assert_eq!(bench.bytes(), (6000, 6000), "nothing was cut");
    assert_eq!(bench.cut(0, FULL, 1000).map(|piece| shape(&piece)), Some((true, true, 1000, 0)));
    assert!(bench.cut(0, FULL, FULL - 1).is_none(), "no runt of a long message either");
}

#[test]
fn unordered_messages_use_up_no_ssn() {
    let mut bench = Bench::new(1, &config());
    for unordered in [false, true, true, false] {
        let options = SendOptions { ppid: Ppid(7), unordered, ..SendOptions::on(StreamId(1)) };
        bench.out.push(Instant::ZERO, options, content(1, 0, 10)).expect("room");
    }
    let seen: Vec<_> = std::iter::from_fn(|| bench.take(0))
        .map(|piece| (piece.flags.unordered(), piece.ssn().0, piece.ppid.0))
        .collect();
    assert_eq!([seen[0], seen[3]], [(false, 0, 7), (false, 1, 7)]);
    assert!(seen[1].0 && seen[2].0);
}

#[test]
fn interleaved_messages_of_a_stream_follow_each_other() {
    let mut bench = Bench::carrying(
        DataFormat::IData,
        &AssociationConfig { stream_scheduler: "round_robin".to_owned(), ..config() },
    );
    for (stream, unordered) in [(0, false), (0, true), (0, false), (1, false)] {
        let options = SendOptions { unordered, ..SendOptions::on(StreamId(stream)) };
        bench.out.push(Instant::ZERO, options, content(stream, 0, FULL + 1)).expect("room");
    }
    let pieces: Vec<_> = std::iter::from_fn(|| bench.take(0))
        .map(|piece| (piece.stream.0, piece.flags.unordered(), piece.mid.0, piece.fsn.0))
        .collect();
    let first = [(0, false, 0, 0), (1, false, 0, 0), (0, false, 0, 1), (1, false, 0, 1)];
    assert_eq!(pieces[..4], first, "streams take turns at every fragment");
    let rest = [(0, true, 0, 0), (0, true, 0, 1), (0, false, 1, 0), (0, false, 1, 1)];
    assert_eq!(pieces[4..], rest, "ordered and unordered messages are numbered apart");
}

#[test]
fn ssns_of_a_stream_wrap_around() {
    let mut bench = Bench::new(1, &config());
    let mut last = 0;
    for _ in 0..=u32::from(u16::MAX) + 2 {
        bench.push(0, 0, 1).expect("room");
        last = bench.take(0).expect("a message waits").ssn().0;
        bench.out.buffer.release(1);
    }
    assert_eq!(last, 1);
}

#[test]
fn what_cannot_be_queued_is_refused_and_changes_nothing() {
    let mut bench = Bench::new(1, &AssociationConfig { send_buffer: Size(1000), ..config() });
    assert_eq!(bench.push(10, 0, 1), Err(SendError::NoSuchStream { stream: StreamId(10), count: 10 }));
    assert_eq!(bench.push(0, 0, 0), Err(SendError::Empty));
    assert_eq!(bench.push(0, 0, 1001), Err(SendError::TooLong { len: 1001, limit: 1000 }));
    assert_eq!(bench.bytes(), (0, 0));
    assert!(!bench.out.buffer.is_full(), "none of these is for lack of room");
    bench.push(0, 0, 1000).expect("the buffer holds exactly this");
    assert_eq!(bench.push(0, 0, 1), Err(SendError::Full { free: 0 }));
    assert!(bench.out.buffer.is_full());
    assert_eq!(bench.out.buffer.messages(), 1);
}

#[test]
fn the_send_buffer_is_freed_by_release_not_by_sending() {
    let mut bench = Bench::new(1, &AssociationConfig { send_buffer: Size(4000), ..config() });
    bench.push(2, 0, 3000).expect("room");
    bench.push(5, 0, 500).expect("room");
    assert_eq!((bench.bytes(), bench.out.buffer.info().limit), ((3500, 3500), 4000));
    bench.take(0).expect("a piece");
    assert_eq!(bench.bytes(), (3500, 3500 - FULL));
    assert_eq!(
        [2, 5, 6].map(|stream| bench.out.unsent_on(StreamId(stream))),
        [3000 - FULL, 500, 0],
        "by stream"
    );
    assert!(!bench.out.buffer.release(100), "nobody was refused");
    assert_eq!(bench.push(0, 0, 601), Err(SendError::Full { free: 600 }));
    assert!(!bench.out.buffer.release(0), "nothing was freed");
    assert!(bench.out.buffer.release(1), "the application is owed a word");
    assert!(!bench.out.buffer.release(1), "and gets it once");
    assert_eq!(bench.bytes().0, 3398);
}

#[test]
fn ordered_and_unordered_messages_have_numbers_of_their_own_that_wrap() {
    for data_format in [DataFormat::Data, DataFormat::IData] {
        let mut bench = Bench::carrying(data_format, &config());
        bench.out.begin_at(Mid(u32::MAX));
        let mut sent = |unordered: bool, len: usize| {
            let options = SendOptions { unordered, ..SendOptions::on(StreamId(3)) };
            bench.out.push(Instant::ZERO, options, content(3, 0, len)).expect("room");
            let pieces = std::iter::from_fn(|| bench.take(0));
            pieces.map(|piece| (piece.mid.0, piece.ssn().0)).collect::<Vec<_>>()
        };
        assert_eq!(sent(false, 10), [(u32::MAX, u16::MAX)]);
        assert_eq!(sent(false, FULL + 1), [(0, 0), (0, 0)], "all pieces of a message");
        assert_eq!(sent(true, FULL + 1), [(u32::MAX, u16::MAX); 2]);
        assert_eq!(sent(true, 10), [(0, 0)]);
        assert_eq!(sent(false, 10), [(1, 1)]);
    }
}
