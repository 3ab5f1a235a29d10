//! Streams that begin anew (RFC 6525).

use tresse::{Direction, Event, StreamId};

use super::{HALF, await_event};
use crate::meeting::{Meeting, Plan};
use crate::messages::{Ledger, bytes, send};
use crate::peer::Stack;

/// Messages before and after the reset come once and in order, although they have the same SSNs.
pub(super) async fn reset_here(stack: Stack) {
    let mut meeting = Plan::new(stack).echoing().call().await;
    let Meeting { association, peer, .. } = &mut meeting;
    let mut events = association.events();
    let mut ledger = Ledger::default();
    tokio::join!(send(association, 0..HALF), ledger.take(association, HALF));
    association.reset_streams(RESET, Direction::Outbound).expect("both sides can");
    let begins_anew =
        |event: &Event| matches!(event, Event::OutboundReset(streams) if streams.contains(RESET));
    await_event(&mut events, begins_anew).await;
    peer.says(&format!("reset in {}", RESET.0)).await;
    tokio::join!(send(association, HALF..2 * HALF), ledger.take(association, HALF));
    ledger.assert_complete(2 * HALF);
    assert_eq!(association.shutdown().await, Ok(()));
    peer.says(&format!("received {} {} 0", 2 * HALF, bytes(2 * HALF))).await;
    peer.says("ended graceful").await;
}

pub(super) async fn reset_there(stack: Stack) {
    let mut meeting = Plan::new(stack).answer().await;
    let Meeting { association, peer, .. } = &mut meeting;
    let mut events = association.events();
    let mut ledger = Ledger::default();
    peer.tell(&format!("generate {HALF}"));
    peer.says(&format!("generated {HALF}")).await;
    ledger.take(association, HALF).await;
    peer.tell(&format!("reset {}", RESET.0));
    let begins_anew =
        |event: &Event| matches!(event, Event::InboundReset(streams) if streams.contains(RESET));
    await_event(&mut events, begins_anew).await;
    association.reset_streams(RESET, Direction::Outbound).expect("both sides can");
    peer.says(&format!("reset in {}", RESET.0)).await;
    peer.tell(&format!("generate {HALF}"));
    ledger.take(association, HALF).await;
    ledger.assert_complete(2 * HALF);
    peer.says(&format!("generated {HALF}")).await;
    peer.tell("shutdown");
    assert_eq!(association.recv().await, Ok(None));
    peer.says("received 0 0 0").await;
    peer.says("ended graceful").await;
}

/// The stream that is reset.
const RESET: StreamId = StreamId(3);
