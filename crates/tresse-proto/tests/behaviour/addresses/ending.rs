//! A shutdown while a request is on its way: SHUTDOWN ACK leaves from an address that the peer still has (RFC 5061 §5.1.1
//! C4, §5.3 F4; RFC 9260 §9.2).

use super::*;

use tresse_proto::CloseReason;

/// The client has asked for the removal of the only address that is confirmed, when SHUTDOWN arrives: SHUTDOWN ACK leaves
/// from there, and comes when the server has forgotten that address. The answer to the request takes as long as `answer`
/// says, and SHUTDOWN arrives once.
fn shut_down_while_the_confirmed_address_leaves(answer: Option<Duration>) -> Pair {
    let mut pair = pair(1);
    pair.network = Box::new(|flight| {
        let new = [flight.transmit.local, flight.transmit.remote].contains(&address(1, 1));
        (!new || !flight.carries(ChunkKind::HEARTBEAT)).then_some(ms(10))
    });
    let now = pair.now;
    pair.client().add_address(now, address(1, 1)).expect("a new address");
    pair.run_for(ms(100));
    let mut told = false;
    pair.network = Box::new(move |flight| {
        if flight.carries(ChunkKind::ASCONF_ACK) {
            return answer;
        }
        let again = flight.carries(ChunkKind::SHUTDOWN) && std::mem::replace(&mut told, true);
        (!again).then_some(ms(10))
    });
    let now = pair.now;
    pair.client().remove_address(now, address(1, 0)).expect("one of two");
    pair.server().shutdown(now);
    pair
}

fn sources_of_shutdown_acks(pair: &Pair) -> Vec<IpAddr> {
    let sent = with_kind(pair, true, ChunkKind::SHUTDOWN_ACK);
    sent.iter().map(|flight| flight.transmit.local).collect()
}

#[test]
fn an_answer_counts_after_shutdown_ack_has_left() {
    let mut pair = shut_down_while_the_confirmed_address_leaves(Some(ms(100)));
    pair.run_for(ms(150));
    assert_eq!(sources_of_shutdown_acks(&pair), [address(1, 0)], "the answer was still on its way");
    let removed = (address(1, 0), AddressChange::Remove, AddressOutcome::Done);
    assert_eq!(told(&pair).last(), Some(&removed));
    pair.run_for(Duration::from_secs(1));
    assert_eq!(sources_of_shutdown_acks(&pair), [0, 1].map(|path| address(1, path)));
    for side in [&pair.client, &pair.server] {
        assert_eq!(side.events.last(), Some(&Event::Closed(CloseReason::Graceful)));
    }
}

#[test]
fn shutdown_ack_goes_again_from_an_address_that_stays_when_the_answer_is_lost() {
    let mut pair = shut_down_while_the_confirmed_address_leaves(None);
    pair.run_for(Duration::from_secs(1));
    assert_eq!(sources_of_shutdown_acks(&pair), [0, 1].map(|path| address(1, path)));
    for side in [&pair.client, &pair.server] {
        assert_eq!(side.events.last(), Some(&Event::Closed(CloseReason::Graceful)));
    }
}
