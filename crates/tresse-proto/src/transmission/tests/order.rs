//! The ring, and the lists of what is in flight in the order of sending.

use super::*;

fn ring(count: usize) -> Ring {
    let mut ring = Ring::new();
    for _ in 0..count {
        let fragment = Fragment {
            stream: StreamId(0),
            mid: Mid(0),
            fsn: Fsn(0),
            ppid: Ppid(0),
            flags: DataFlags::default().into(),
            payload: Bytes::from_static(b"four"),
        };
        ring.push(Sent::new(&fragment, DataFormat::Data, PathId(0), Instant::ZERO), fragment);
    }
    ring
}

#[test]
fn indices_count_from_one_and_outlive_what_was_taken_out() {
    let mut ring = ring(0);
    assert_eq!((ring.cumulative(), ring.highest(), ring.is_empty()), (0, 0, true));
    ring = self::ring(3);
    assert_eq!((ring.cumulative(), ring.highest()), (0, 3));
    assert!(ring.get(0).is_none() && ring.get(1).is_some() && ring.get(4).is_none());
    ring.drop_up_to(1);
    assert_eq!((ring.cumulative(), ring.highest()), (1, 3));
    assert!(ring.get(1).is_none() && ring.get(2).is_some());
    assert_eq!(ring.iter().map(|(index, _)| index).collect::<Vec<_>>(), [2, 3]);
    assert!(ring.content(1).is_none() && ring.content(3).is_some(), "the contents keep step");
    ring.drop_up_to(0);
    assert_eq!((ring.cumulative(), ring.highest()), (1, 3), "what is gone is gone");
    ring.drop_up_to(9);
    assert_eq!((ring.cumulative(), ring.highest(), ring.is_empty()), (3, 3, true));
}

#[test]
fn a_list_gives_up_any_of_its_members() {
    for gone in 1..=5 {
        let mut ring = ring(5);
        let mut order = SendOrder::default();
        (1..=5).for_each(|index| order.append(&mut ring, index));
        order.unlink(&mut ring, gone);
        let rest: Vec<u64> = (1..=5).filter(|&index| index != gone).collect();
        assert_eq!(walk(&order, &ring), rest, "without {gone}");
        order.append(&mut ring, gone);
        assert_eq!(walk(&order, &ring).last(), Some(&gone), "back at the end");
        assert_eq!(walk(&order, &ring).len(), 5);
    }
}

#[test]
fn a_list_can_be_emptied_from_either_end_and_used_again() {
    for from_front in [true, false] {
        let mut ring = ring(3);
        let mut order = SendOrder::default();
        (1..=3).for_each(|index| order.append(&mut ring, index));
        for step in 1..=3 {
            order.unlink(&mut ring, if from_front { step } else { 4 - step });
        }
        assert_eq!(order.head(), None);
        order.append(&mut ring, 2);
        assert_eq!(walk(&order, &ring), [2]);
    }
}

#[test]
fn a_list_keeps_the_order_of_sending_whatever_the_tsns() {
    let mut ring = ring(4);
    let mut order = SendOrder::default();
    for index in [3, 1, 4, 2] {
        order.append(&mut ring, index);
    }
    assert_eq!(walk(&order, &ring), [3, 1, 4, 2]);
    assert_eq!(order.after(&ring, 2), None);
}
