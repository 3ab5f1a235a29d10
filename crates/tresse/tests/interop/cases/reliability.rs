//! Messages that need not arrive (RFC 3758, RFC 7496).

use std::time::Duration;

use tresse::{CloseReason, Reliability, SendOptions};

use super::FORWARD_TSN;
use crate::meeting::{Meeting, Plan};
use crate::messages::{Ledger, MESSAGES, content, options};
use crate::peer::Stack;

pub(super) async fn given_up_here(stack: Stack) {
    let mut meeting = Plan::new(stack).call().await;
    give_up_here(&mut meeting, |_| true).await;
    assert!(meeting.chunks()[0].contains(&FORWARD_TSN), "the peer was told of what was given up");
}

pub(super) async fn given_up_there(stack: Stack) {
    let mut meeting = Plan::new(stack).answer().await;
    give_up_there(&mut meeting).await;
    assert!(meeting.chunks()[1].contains(&FORWARD_TSN), "the peer told of what was given up");
}

/// Three of five of `such` messages need not arrive: one may go again never, one once, one for a while only.
pub(super) async fn give_up_here(meeting: &mut Meeting, such: fn(&SendOptions) -> bool) {
    let Meeting { association, peer, relay, .. } = meeting;
    relay.roughen();
    for number in 0..MESSAGES {
        let reliability = match number % 5 {
            1 => Reliability::Retransmissions(0),
            2 => Reliability::Retransmissions(1),
            3 => Reliability::Lifetime(Duration::from_millis(30)),
            _ => Reliability::Full,
        };
        let mut options = options(number);
        if such(&options) {
            options.reliability = reliability;
        }
        association.send(options, content(number)).await.expect("the association takes it");
    }
    relay.smoothen();
    while association.send_queue().used > 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let given_up = association.stats().abandoned;
    assert_eq!(association.shutdown().await, Ok(()));
    let line = peer.says_something_like("received ").await;
    let [came, _, wrong] = numbers(&line);
    let total = given_up.total();
    assert!(given_up.retransmissions.sent > 0, "{given_up:?}");
    assert!(
        came + total.sent + total.unsent >= u64::from(MESSAGES),
        "{line}: more are missing than {total:?}"
    );
    assert!(came <= u64::from(MESSAGES) - total.unsent, "{line}: more came than were sent: {total:?}");
    assert_eq!(wrong, 0, "{line}");
    peer.says("ended graceful").await;
}

/// The three numbers of a line "received MESSAGES BYTES WRONG".
fn numbers(line: &str) -> [u64; 3] {
    let numbers: Vec<u64> = line.split(' ').skip(1).filter_map(|word| word.parse().ok()).collect();
    numbers.try_into().unwrap_or_else(|_| panic!("no three numbers: {line}"))
}

/// Every second message of the peer is sent only once; the others have to come.
pub(super) async fn give_up_there(meeting: &mut Meeting) {
    let Meeting { association, peer, relay, .. } = meeting;
    relay.roughen();
    peer.tell(&format!("generate {MESSAGES} retransmissions 0"));
    let mut ledger = Ledger::default();
    let generating = async {
        peer.says(&format!("generated {MESSAGES}")).await;
        relay.smoothen();
    };
    // dcsctp ends an association although chunks that were reported missing have not been sent again
    // (against RFC 9260 §9.2): no stack is asked to end it before what has to come is there.
    tokio::join!(ledger.take_these(association, (0..MESSAGES).step_by(2)), generating);
    peer.tell("shutdown");
    ledger.take_all(association).await;
    let came = ledger.numbers();
    assert!(
        (0..MESSAGES).step_by(2).all(|number| came.contains(&number)),
        "not all that had to came: {came:?}"
    );
    assert!(came.len() < MESSAGES as usize, "nothing was given up");
    assert_eq!(association.closed().await, CloseReason::Graceful);
    peer.says("received 0 0 0").await;
    peer.says("ended graceful").await;
}
