//! The cases: what is done, and what either side has to find.

use std::pin::Pin;

use tresse::{Association, CloseReason, Ended, Event, PathState};

use crate::meeting::{Meeting, Plan};
use crate::messages::{Ledger, MESSAGES, STREAMS, bytes, send};
use crate::peer::{Need, Stack};

/// One row of the matrix.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) needs: &'static [Need],
    pub(crate) run: fn(Stack) -> Running,
}

pub(crate) type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A row: its name, what it needs, and the function that plays it.
macro_rules! cases {
    ($($name:literal, [$($need:ident),*], $run:ident;)*) => {
        &[$(Case { name: $name, needs: &[$(Need::$need),*], run: |stack| Box::pin($run(stack)) }),*]
    };
}

pub(crate) const CASES: &[Case] = cases! {
    "set-up by tresse, shutdown by tresse", [], opened_and_shut_down_here;
    "set-up by the peer, shutdown by the peer", [], opened_and_shut_down_there;
    "abort by tresse", [], aborted_here;
    "abort by the peer", [Abort], aborted_there;
    "10 MB there and back, 16 streams, ordered and unordered", [], echoed;
    "10 MB from the peer, which opened the association", [], generated;
    "10 MB there and back, 1 % lost, 2 % reordered", [], echoed_over_a_rough_path;
    "10 MB from the peer, 1 % lost, 2 % reordered", [], generated_over_a_rough_path;
    "NR-SACK", [NrSack], reported_by_nr_sack;
    "two paths, one at a time", [MultiHoming], on_two_paths;
    "CMT on both sides", [MultiHoming, Cmt, NrSack], on_two_paths_at_once;
    "CMT on both sides, 1 % lost, 2 % reordered", [MultiHoming, Cmt, NrSack], on_two_rough_paths_at_once;
    "the path in use dies in mid-transfer, tresse sends", [MultiHoming], a_path_dies_while_tresse_sends;
    "the path in use dies in mid-transfer, the peer sends", [MultiHoming], a_path_dies_while_the_peer_sends;
};

async fn opened_and_shut_down_here(stack: Stack) {
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

async fn opened_and_shut_down_there(stack: Stack) {
    let mut meeting = Plan::new(stack).answer().await;
    let Meeting { association, peer, .. } = &mut meeting;
    assert_streams(association);
    peer.tell("shutdown");
    assert_eq!(association.recv().await, Ok(None));
    assert_eq!(association.closed().await, CloseReason::Graceful);
    peer.says("received 0 0 0").await;
    peer.says("ended graceful").await;
}

async fn aborted_here(stack: Stack) {
    let mut meeting = Plan::new(stack).call().await;
    let Meeting { association, peer, .. } = &mut meeting;
    send(association, 3).await;
    association.abort("enough");
    // Some of the messages may have come before.
    let line = peer.says_something_like("received ").await;
    assert!(line.ends_with(" 0"), "a message was wrong: {line}");
    peer.says("ended aborted").await;
}

async fn aborted_there(stack: Stack) {
    let meeting = Plan::new(stack).answer().await;
    let Meeting { association, peer, .. } = &meeting;
    peer.tell("abort");
    let end = association.recv().await;
    assert!(matches!(end, Err(Ended(CloseReason::AbortedByPeer { .. }))), "{end:?}");
}

/// Everything there and back, then a graceful end; both sides have counted.
///
/// The end is not disturbed: programs that leave with their last packet cannot repeat it.
async fn converse(meeting: &mut Meeting) {
    let Meeting { association, peer, relay, .. } = meeting;
    let mut ledger = Ledger::default();
    tokio::join!(send(association, MESSAGES), ledger.take(association, MESSAGES));
    ledger.assert_complete(MESSAGES);
    relay.smoothen();
    assert_eq!(association.shutdown().await, Ok(()));
    peer.says(&format!("received {MESSAGES} {} 0", bytes(MESSAGES))).await;
    peer.says("ended graceful").await;
}

/// Everything from the peer, which then ends it, undisturbed again.
async fn listen(meeting: &mut Meeting) {
    let Meeting { association, peer, relay, .. } = meeting;
    peer.tell(&format!("generate {MESSAGES}"));
    let mut ledger = Ledger::default();
    ledger.take(association, MESSAGES).await;
    ledger.assert_complete(MESSAGES);
    peer.says(&format!("generated {MESSAGES}")).await;
    relay.smoothen();
    peer.tell("shutdown");
    assert_eq!(association.recv().await, Ok(None));
    assert_eq!(association.closed().await, CloseReason::Graceful);
    peer.says("received 0 0 0").await;
    peer.says("ended graceful").await;
}

async fn echoed(stack: Stack) {
    converse(&mut Plan::new(stack).echoing().call().await).await;
}

async fn generated(stack: Stack) {
    listen(&mut Plan::new(stack).answer().await).await;
}

async fn echoed_over_a_rough_path(stack: Stack) {
    let mut meeting = Plan::new(stack).echoing().call().await;
    meeting.relay.roughen();
    converse(&mut meeting).await;
}

async fn generated_over_a_rough_path(stack: Stack) {
    let mut meeting = Plan::new(stack).answer().await;
    meeting.relay.roughen();
    listen(&mut meeting).await;
}

async fn reported_by_nr_sack(stack: Stack) {
    let plan = || Plan::new(stack).telling(&["nr_sack"]).with("nr_sack", "everything");
    let mut echo = plan().echoing().call().await;
    converse(&mut echo).await;
    echo.assert_spoke(NR_SACK, SACK);
    let mut without = Plan::new(stack).echoing().with("nr_sack", "everything").call().await;
    converse(&mut without).await;
    without.assert_spoke(SACK, NR_SACK);
}

async fn on_two_paths(stack: Stack) {
    let mut meeting = Plan::new(stack).on_two_paths().echoing().with("concurrent", "off").call().await;
    assert_eq!(meeting.association.path_stats().len(), 2);
    confirmed(&meeting).await;
    converse(&mut meeting).await;
}

/// Waits until both paths have answered a heartbeat.
async fn confirmed(meeting: &Meeting) {
    while meeting.association.path_stats().iter().any(|path| path.state != PathState::Active) {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

fn cmt(stack: Stack) -> Plan {
    Plan::new(stack).on_two_paths().echoing().telling(&["nr_sack", "cmt"])
}

async fn on_two_paths_at_once(stack: Stack) {
    let mut meeting = cmt(stack).call().await;
    confirmed(&meeting).await;
    converse(&mut meeting).await;
    // Heartbeats alone, as on a path that waits for the other one to fail, are a hundredth of this.
    for path in [0, 1] {
        let carried = meeting.relay.carried(path);
        assert!(carried.iter().all(|&sent| sent > 500_000), "path {path} carried {carried:?} bytes");
    }
    meeting.assert_spoke(NR_SACK, SACK);
}

async fn on_two_rough_paths_at_once(stack: Stack) {
    let mut meeting = cmt(stack).call().await;
    meeting.relay.roughen();
    converse(&mut meeting).await;
}

async fn a_path_dies_while_tresse_sends(stack: Stack) {
    let mut meeting = Plan::new(stack).on_two_paths().echoing().with("concurrent", "off").call().await;
    confirmed(&meeting).await;
    let mut events = meeting.association.events();
    meeting.relay.cut_after(0, 3_000_000);
    converse(&mut meeting).await;
    let inactive = |event: &Event| matches!(event, Event::PathChanged { path, state: PathState::Inactive } if path.index() == 0);
    let mut seen = false;
    while let Some(event) = events.next().await {
        seen |= inactive(&event);
    }
    assert!(seen, "the application is told which path died");
}

async fn a_path_dies_while_the_peer_sends(stack: Stack) {
    let mut meeting = Plan::new(stack).on_two_paths().answer().await;
    confirmed(&meeting).await;
    meeting.relay.cut_after(0, 3_000_000);
    listen(&mut meeting).await;
}

/// Chunk types (RFC 9260 §3.2; NR-SACK: draft-tuexen-tsvwg-sctp-multipath §4).
const SACK: u8 = 3;
const NR_SACK: u8 = 16;
