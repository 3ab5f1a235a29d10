//! One side crashes and comes back from the same addresses and ports (RFC 9260 §5.2).

use tresse::Event;

use super::{HALF, await_event, listen};
use crate::meeting::{Meeting, Plan};
use crate::messages::{Ledger, bytes, send};
use crate::peer::Stack;

/// The peer notices, and the new association carries as the old one did.
pub(super) async fn restarted_here(stack: Stack) {
    let mut meeting = Plan::new(stack).echoing().call().await;
    let mut before = Ledger::default();
    tokio::join!(send(&meeting.association, 0..HALF), before.take(&meeting.association, HALF));
    meeting.restart_tresse().await;
    let Meeting { association, peer, .. } = &mut meeting;
    peer.says("restarted").await;
    let mut ledger = Ledger::default();
    tokio::join!(send(association, 0..HALF), ledger.take(association, HALF));
    ledger.assert_complete(HALF);
    assert_eq!(association.shutdown().await, Ok(()));
    peer.says(&format!("received {} {} 0", 2 * HALF, 2 * bytes(HALF))).await;
    peer.says("ended graceful").await;
}

pub(super) async fn restarted_there(stack: Stack) {
    let mut meeting = Plan::new(stack).answer().await;
    let mut events = meeting.association.events();
    meeting.peer.tell(&format!("generate {HALF}"));
    Ledger::default().take(&meeting.association, HALF).await;
    meeting.restart_peer().await;
    await_event(&mut events, |event| matches!(event, Event::Restarted { .. })).await;
    listen(&mut meeting).await;
}
