//! Retransmission policies: the path of lost chunks.

use std::time::Duration;

use tresse_proto::config::RetransmitPath;
use tresse_proto::{AssociationConfig, PathId};
use tresse_wire::Chunk;

use crate::common::{Flight, Pair, by_reports};

/// TSNs of the DATA in a packet.
fn tsns(flight: &Flight) -> Vec<u32> {
    let data = flight.chunks().into_iter().filter_map(|chunk| match chunk {
        Chunk::Data(data) => Some(data.tsn.0),
        Chunk::IData(data) => Some(data.tsn.0),
        _ => None,
    });
    data.collect()
}

/// Sends messages over two paths, loses what `loses` says, and answers on which paths the first lost TSN
/// went, in order.
fn journey(
    config: &AssociationConfig,
    prepare: impl FnOnce(&mut Pair),
    mut loses: impl FnMut(&Flight) -> bool + 'static,
) -> Vec<u8> {
    let mut pair = Pair::established(2, config);
    prepare(&mut pair);
    let from = pair.wire.len();
    pair.network = Box::new(move |flight| (!loses(flight)).then_some(Duration::from_millis(10)));
    for number in 0..40 {
        pair.send(0, number, 1200);
    }
    pair.run_until(Duration::from_secs(60), |pair| pair.server.received.len() == 40);
    assert_eq!(pair.server.numbers_on(0), (0..40).collect::<Vec<_>>());
    let sent = pair.sent_since(from);
    let lost = sent
        .iter()
        .flat_map(tsns)
        .find(|&tsn| sent.iter().filter(|flight| tsns(flight).contains(&tsn)).count() > 1);
    let lost = lost.expect("something was sent again");
    sent.iter().filter(|flight| tsns(flight).contains(&lost)).map(Flight::path).collect()
}

/// Loses the first packet with DATA on path 1.
fn first_on_path_1() -> impl FnMut(&Flight) -> bool + 'static {
    let mut done = false;
    move |flight| {
        let hit = !done && flight.to_server && flight.path() == 1 && !tsns(flight).is_empty();
        done |= hit;
        hit
    }
}

fn with(fast: RetransmitPath, timeout: RetransmitPath) -> AssociationConfig {
    by_reports().with(|c| {
        c.fast_retransmit_path = fast;
        c.timeout_retransmit_path = timeout;
    })
}

#[test]
fn what_is_reported_missing_goes_where_the_policy_says() {
    let know_path_1 = |pair: &mut Pair| {
        pair.client().set_loss_rate(PathId(0), Some(0.1));
        pair.client().set_loss_rate(PathId(1), Some(0.01));
    };
    // The window and the threshold of path 1 have just been cut for this very loss.
    for (policy, expected) in [
        (RetransmitPath::Same, 1),
        (RetransmitPath::Alternate, 0),
        (RetransmitPath::Cwnd, 0),
        (RetransmitPath::Ssthresh, 0),
        (RetransmitPath::LossRate, 1),
    ] {
        let config = with(policy, RetransmitPath::Alternate);
        assert_eq!(journey(&config, know_path_1, first_on_path_1()), [1, expected], "{policy:?}");
    }
}

#[test]
fn what_timed_out_goes_where_the_policy_says() {
    // Path 1 is silent for nine tenths of a second, so that nothing on it is reported missing by later data.
    let silence = || {
        let mut first = None;
        move |flight: &Flight| {
            let on_path_1 = flight.to_server && flight.path() == 1;
            if on_path_1 && !tsns(flight).is_empty() {
                first.get_or_insert(flight.sent);
            }
            on_path_1 && first.is_some_and(|first| flight.sent < first + Duration::from_millis(900))
        }
    };
    for (policy, expected) in [
        (RetransmitPath::Same, 1),
        (RetransmitPath::Alternate, 0),
        (RetransmitPath::Asap, 0),
        (RetransmitPath::Cwnd, 0),
        (RetransmitPath::Ssthresh, 0),
    ] {
        // A path that is potentially failed would not be used again, whatever the policy.
        let config = with(RetransmitPath::Same, policy).with(|c| c.potentially_failed = false);
        assert_eq!(journey(&config, |_| {}, silence()), [1, expected], "{policy:?}");
    }
}
