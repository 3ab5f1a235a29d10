//! The worked examples of docs/schedulers.md, in associations. What they are for is what they are tested for.

use std::time::Duration;

use tresse_proto::StreamId;
use tresse_proto::schedule::StreamSchedulerFactory;

use crate::common::{Pair, by_reports};
use crate::packets::{Chunks, observed_with, queue};

#[path = "../../../../examples/schedulers/earliest_deadline.rs"]
#[expect(unreachable_pub, reason = "it is written as an application would have it")]
mod earliest_deadline;
#[path = "../../../../examples/schedulers/one_by_one.rs"]
#[expect(unreachable_pub, reason = "it is written as an application would have it")]
mod one_by_one;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A pair that uses a scheduler of its own, and what leaves it.
fn observed(
    factory: StreamSchedulerFactory,
    config: &str,
) -> (Pair, std::rc::Rc<std::cell::RefCell<Vec<Chunks>>>) {
    // Every message here fits a packet, whatever its path carries.
    let settings = by_reports().with(|c| c.mtu_discovery = false);
    let (mut pair, seen) = observed_with(1, &settings);
    pair.client.endpoint.schedulers().register_stream_scheduler("example", factory).expect("a new name");
    pair.client().set_stream_scheduler("example", config).expect("registered");
    (pair, seen)
}

fn order(seen: &[Chunks]) -> Vec<u16> {
    seen.iter().flatten().map(|&(stream, _)| stream).collect()
}

#[test]
fn one_by_one_finishes_a_stream_before_the_next() {
    let (mut pair, seen) = observed(one_by_one::factory(), "");
    queue(&mut pair, &[4, 2, 7], 30, 1_000);
    pair.run_until(Duration::from_secs(60), |pair| pair.server.received.len() == 90);
    let mut turns = order(&seen.borrow());
    turns.dedup();
    assert_eq!(turns, [4, 2, 7]);
    let refused = pair.client().set_stream_scheduler("example", "x").expect_err("no configuration");
    assert!(refused.to_string().ends_with("\"x\": no configuration is accepted"), "{refused}");
}

#[test]
fn one_by_one_takes_over_in_the_middle_of_a_message_and_hands_over_again() {
    let (mut pair, _) = observed(one_by_one::factory(), "");
    pair.client().set_stream_scheduler("round_robin", "").expect("built in");
    queue(&mut pair, &[0, 1, 2], 20, 9_000);
    pair.pump();
    pair.client().set_stream_scheduler("example", "").expect("registered");
    pair.run_for(ms(30));
    pair.client().set_stream_scheduler("priority", "").expect("built in");
    crate::packets::finish(&mut pair, &[0, 1, 2], 20);
}

/// The order of two messages on each of the streams 0 and 1, those of 1 given later by this, when 0 may take 300 ms and
/// 1 100 ms. Stream 2 has no deadline and fills the window before them.
fn order_of_deadlines(later: Duration) -> Vec<u16> {
    let (mut pair, seen) = observed(earliest_deadline::factory(), "0=300,1=100");
    let mut observe = std::mem::replace(&mut pair.network, Box::new(|_| None));
    // Nothing more leaves until a round trip of 600 ms is over.
    pair.network = Box::new(move |flight| observe(flight).map(|_| ms(300)));
    queue(&mut pair, &[2], 40, 1_400);
    pair.pump();
    let before = seen.borrow().len();
    queue(&mut pair, &[0], 2, 1_400);
    pair.run_for(later);
    queue(&mut pair, &[1], 2, 1_400);
    pair.run_until(Duration::from_secs(60), |pair| pair.server.received.len() == 44);
    order(&seen.borrow()[before..])
}

#[test]
fn earliest_deadline_goes_by_when_messages_were_given() {
    assert_eq!(order_of_deadlines(ms(100))[..5], [1, 1, 0, 0, 2], "due after 300 and 200 ms");
    assert_eq!(order_of_deadlines(ms(250))[..5], [0, 0, 1, 1, 2], "due after 300 and 350 ms");
}

#[test]
fn patience_is_set_and_read_at_any_time() {
    let (mut pair, seen) = observed(earliest_deadline::factory(), "");
    assert_eq!(pair.client().stream_value(StreamId(1)), None);
    queue(&mut pair, &[0, 1], 100, 1_400);
    pair.run_for(ms(25));
    let before = seen.borrow().len();
    pair.client().set_stream_value(StreamId(1), 50).expect("milliseconds");
    assert_eq!(pair.client().stream_value(StreamId(1)), Some(50));
    pair.run_until(Duration::from_secs(60), |pair| pair.server.received.len() == 200);
    let order = order(&seen.borrow()[before..]);
    let last = order.iter().rposition(|&stream| stream == 1).expect("some were left");
    assert!(order[..=last].iter().all(|&stream| stream == 1), "{order:?}");
    let refused = pair.client().set_stream_scheduler("example", "0=20,now").expect_err("no pair");
    assert!(refused.to_string().contains("\"now\" is not a stream and its milliseconds"), "{refused}");
}
