//! Set-up, shutdown and abort.

use tresse::{Association, CloseReason, Ended};

use crate::meeting::{Meeting, Plan};
use crate::messages::{STREAMS, send};
use crate::peer::Stack;

pub(super) async fn opened_and_shut_down_here(stack: Stack) {
    let mut meeting = Plan::new(stack).call().await;
    let Meeting { association, peer, .. } = &mut meeting;
    assert_streams(association);
    assert_eq!(association.shutdown().await, Ok(()));
    peer.says("received 0 0 0").await;
    peer.says("ended graceful").await;
}

/// As many streams as both asked for; a peer may offer more in its own direction.
fn assert_streams(association: &Association) {
    let (outbound, inbound) = association.streams();
    assert!(outbound == STREAMS && inbound >= STREAMS, "{outbound} out, {inbound} in");
}

pub(super) async fn opened_and_shut_down_there(stack: Stack) {
    let mut meeting = Plan::new(stack).answer().await;
    let Meeting { association, peer, .. } = &mut meeting;
    assert_streams(association);
    peer.tell("shutdown");
    assert_eq!(association.recv().await, Ok(None));
    assert_eq!(association.closed().await, CloseReason::Graceful);
    peer.says("received 0 0 0").await;
    peer.says("ended graceful").await;
}

pub(super) async fn aborted_here(stack: Stack) {
    let mut meeting = Plan::new(stack).call().await;
    let Meeting { association, peer, .. } = &mut meeting;
    send(association, 0..3).await;
    association.abort("enough");
    // Some of the messages may have come before.
    let line = peer.says_something_like("received ").await;
    assert!(line.ends_with(" 0"), "a message was wrong: {line}");
    peer.says("ended aborted").await;
}

pub(super) async fn aborted_there(stack: Stack) {
    let meeting = Plan::new(stack).answer().await;
    let Meeting { association, peer, .. } = &meeting;
    peer.tell("abort");
    let end = association.recv().await;
    assert!(matches!(end, Err(Ended(CloseReason::AbortedByPeer { .. }))), "{end:?}");
}
