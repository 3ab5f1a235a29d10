//! Withdrawn messages: the messages, the time, and the schedulers after it.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::interface::reliability::Reliability;

const SCHEDULERS: [&str; 6] =
    ["first_come", "round_robin", "round_robin_packet", "priority", "fair_bandwidth", "weighted_fair"];

impl Bench {
    fn forwarding(config: &AssociationConfig) -> Self {
        let mut bench = Bench::new(1, config);
        bench.out.set_forwards(true);
        bench
    }

    /// Queues a message of `len` bytes with this reliability.
    fn offer(&mut self, now: Instant, stream: u16, number: u8, len: usize, reliability: Reliability) {
        let options =
            SendOptions { reliability, context: number.into(), ..SendOptions::on(StreamId(stream)) };
        self.out.push(now, options, content(stream, number, len)).expect("room");
    }

    /// Withdraws the messages that are expired at `now`; returns context, unsent bytes, and whether the message was begun.
    fn expire(&mut self, now: Instant) -> Vec<(u64, usize, bool)> {
        let expired = std::iter::from_fn(|| self.out.withdraw_expired(now));
        expired.map(|gone| (gone.terms.context, gone.rest.len(), gone.begun)).collect()
    }
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn lifetime(millis: u64) -> Reliability {
    Reliability::Lifetime(Duration::from_millis(millis))
}

#[test]
fn messages_expire_in_the_order_of_their_lifetimes_wherever_they_wait() {
    let mut bench = Bench::forwarding(&config());
    for (number, (stream, millis)) in [(1, 30), (1, 10), (2, 20), (1, 10)].into_iter().enumerate() {
        bench.offer(at(0), stream, number as u8, 100, lifetime(millis));
    }
    bench.offer(at(0), 1, 4, 100, Reliability::Full);
    assert_eq!(bench.out.next_expiry(), Some(at(10)));
    assert_eq!(bench.expire(at(9)), []);
    assert_eq!(bench.expire(at(25)), [(1, 100, false), (3, 100, false), (2, 100, false)]);
    assert_eq!(bench.out.next_expiry(), Some(at(30)));
    assert_eq!(bench.bytes(), (500, 200), "in the buffer until released");
    assert_eq!(bench.drain(0), [1, 1]);
    assert_eq!(bench.out.next_expiry(), None, "what was sent is another room's");
}

#[test]
fn the_rest_of_a_begun_message_expires_only_when_what_was_sent_can_be_given_up() {
    for forwards in [true, false] {
        let mut bench = Bench::new(1, &config());
        bench.out.set_forwards(forwards);
        bench.offer(at(0), 1, 0, 4000, lifetime(10));
        bench.offer(at(0), 1, 1, 100, lifetime(50));
        let cut = bench.out.take(PathId(0), &&view(0), FULL, FULL, usize::MAX).expect("a piece");
        assert_eq!((shape(&cut.fragment), cut.terms.is_some()), ((true, false, FULL, 0), forwards));
        let expired = bench.expire(at(20));
        if forwards {
            assert_eq!(expired, [(0, 4000 - FULL, true)]);
            let next = bench.take(0).expect("the next message");
            assert_eq!(shape(&next), (true, true, 100, 1), "the number is used up");
        } else {
            assert_eq!(expired, []);
            assert_eq!(bench.drain(0).len(), 3, "begun is to be finished");
        }
    }
}

#[test]
fn the_lowest_priority_goes_first_and_of_equals_the_oldest() {
    let mut bench = Bench::forwarding(&config());
    for (number, priority) in [7, 9, 3, 9, 7].into_iter().enumerate() {
        bench.offer(at(0), number as u16, number as u8, 100, Reliability::Priority(priority));
    }
    bench.offer(at(0), 1, 5, 100, Reliability::Full);
    assert_eq!(bench.out.evictable(7, usize::MAX), 400);
    assert_eq!(bench.out.evictable(8, usize::MAX), 200);
    let order: Vec<u64> = std::iter::from_fn(|| bench.out.evict(7)).map(|gone| gone.terms.context).collect();
    assert_eq!(order, [1, 3, 0, 4]);
    assert_eq!(bench.drain(0), [2, 1]);
}

#[derive(Clone, Debug)]
enum Step {
    Offer(u16, usize, Reliability),
    Take { room: usize },
    Expire,
    Evict(u32),
}

fn any_step() -> impl Strategy<Value = Step> {
    let policy = prop_oneof![
        Just(Reliability::Full),
        (0u64..40).prop_map(lifetime),
        (0u32..4).prop_map(Reliability::Priority),
        Just(Reliability::Retransmissions(1)),
    ];
    let len = prop_oneof![1usize..300, 1000usize..8000];
    prop_oneof![
        6 => (0u16..5, len, policy).prop_map(|(stream, len, policy)| Step::Offer(stream, len, policy)),
        8 => (0usize..=FULL).prop_map(|room| Step::Take { room }),
        1 => Just(Step::Expire),
        1 => (0u32..4).prop_map(Step::Evict),
    ]
}

proptest! {
    /// Messages are withdrawn at any time, with every scheduler: the others leave whole and in the order of their stream, every
    /// message leaves or is withdrawn once, and the schedulers' counts stay right.
    #[test]
    fn schedulers_go_on_over_the_holes(
        scheduler in 0..SCHEDULERS.len(),
        steps in prop::collection::vec(any_step(), 1..150),
    ) {
        let config = AssociationConfig {
            send_buffer: Size(1 << 21),
            stream_scheduler: SCHEDULERS[scheduler].to_owned(),
            ..config()
        };
        let mut bench = Bench::forwarding(&config);
        // Numbers of the waiting messages, by stream.
        let mut waiting: BTreeMap<u16, Vec<u64>> = BTreeMap::new();
        let mut begun = None;
        let (mut unsent, mut next_ssn) = (0, BTreeMap::<u16, u16>::new());
        for (number, step) in steps.into_iter().enumerate() {
            let now = at(number as u64);
            let mut gone = Vec::new();
            match step {
                Step::Offer(stream, len, policy) => {
                    bench.offer(now, stream, number as u8, len, policy);
                    waiting.entry(stream).or_default().push(number as u64);
                    unsent += len;
                }
                Step::Take { room } => {
                    if let Some(piece) = bench.cut(0, room, usize::MAX) {
                        bench.out.on_packet_end(PathId(0));
                        unsent -= piece.payload.len();
                        let stream = piece.stream.0;
                        let first = waiting[&stream][0];
                        prop_assert_eq!(piece.flags.beginning(), begun.is_none());
                        prop_assert!(begun.is_none_or(|begun| begun == (stream, first)));
                        prop_assert_eq!(piece.payload[0], first as u8 ^ (stream as u8) << 4);
                        prop_assert_eq!(piece.ssn().0, next_ssn.get(&stream).copied().unwrap_or(0));
                        begun = (!piece.flags.ending()).then_some((stream, first));
                        if piece.flags.ending() {
                            waiting.entry(stream).or_default().remove(0);
                            *next_ssn.entry(stream).or_default() += 1;
                        }
                    }
                }
                Step::Expire => gone = std::iter::from_fn(|| bench.out.withdraw_expired(now)).collect(),
                Step::Evict(priority) => gone.extend(bench.out.evict(priority)),
            }
            for gone in gone {
                let (stream, context) = (gone.terms.stream.0, gone.terms.context);
                let position = waiting[&stream].iter().position(|&number| number as u8 == context as u8);
                let position = position.expect("it waited");
                let number = waiting.entry(stream).or_default().remove(position);
                prop_assert_eq!(gone.begun, begun == Some((stream, number)));
                if gone.begun {
                    begun = None;
                    *next_ssn.entry(stream).or_default() += 1;
                } else {
                    prop_assert_eq!(gone.rest.len(), gone.terms.bytes);
                }
                unsent -= gone.rest.len();
            }
            prop_assert_eq!(bench.bytes().1, unsent);
            prop_assert_eq!(bench.out.has_data_for(PathId(0)), unsent > 0);
        }
        while let Some(piece) = bench.take(0) {
            unsent -= piece.payload.len();
        }
        prop_assert_eq!((unsent, bench.out.is_empty(), bench.out.failures.count()), (0, true, 0));
    }
}
