//! More than one path: the other one after a failure, or all at once (CMT).

use std::time::Duration;

use tresse::{Event, PathState};

use super::{NR_SACK, SACK, await_event, converse, exchange, listen, part};
use crate::meeting::{Meeting, Plan};
use crate::peer::Stack;

pub(super) async fn on_two_paths(stack: Stack) {
    let mut meeting = Plan::new(stack).on_two_paths().echoing().with("concurrent", "off").call().await;
    assert_eq!(meeting.association.path_stats().len(), 2);
    confirmed(&meeting).await;
    converse(&mut meeting).await;
}

pub(super) async fn without_a_list_in_init(stack: Stack) {
    let mut meeting = silent(stack).echoing().call().await;
    confirmed_from_one_address(&meeting).await;
    converse(&mut meeting).await;
}

pub(super) async fn without_a_list_in_init_ack(stack: Stack) {
    let mut meeting = silent(stack).answer().await;
    confirmed_from_one_address(&meeting).await;
    listen(&mut meeting).await;
}

/// tresse has two addresses and lists neither, as behind a NAT; the peer has two and lists them.
fn silent(stack: Stack) -> Plan {
    Plan::new(stack).on_two_paths().directly().with("concurrent", "off").with("list_addresses", "off")
}

/// Waits until tresse reaches both addresses of the peer, from the only one of its own that the peer can know.
async fn confirmed_from_one_address(meeting: &Meeting) {
    confirmed(meeting).await;
    let (first, _) = meeting.own_addresses();
    let paths = meeting.association.path_stats();
    assert!(paths.len() == 2 && paths.iter().all(|path| path.local == first), "{paths:?}");
}

/// Waits until both paths have answered a heartbeat.
async fn confirmed(meeting: &Meeting) {
    while meeting.association.path_stats().iter().any(|path| path.state != PathState::Active) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// No path of ours rests: on a busy machine one may cost the other more than it brings.
fn cmt(stack: Stack) -> Plan {
    Plan::new(stack).on_two_paths().echoing().telling(&["nr_sack", "cmt"]).with("path_suspension", "false")
}

pub(super) async fn on_two_paths_at_once(stack: Stack) {
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

pub(super) async fn on_two_rough_paths_at_once(stack: Stack) {
    let mut meeting = cmt(stack).call().await;
    meeting.relay.roughen();
    converse(&mut meeting).await;
}

pub(super) async fn a_path_dies_while_tresse_sends(stack: Stack) {
    let mut meeting = Plan::new(stack).on_two_paths().echoing().with("concurrent", "off").call().await;
    confirmed(&meeting).await;
    let mut events = meeting.association.events();
    meeting.relay.cut_after(0, 3_000_000);
    exchange(&meeting).await;
    // The transfer may end before the path has missed as many answers as it may: heartbeats miss the others.
    await_event(
        &mut events,
        |event| matches!(event, Event::PathChanged { path, state: PathState::Inactive } if path.index() == 0),
    )
    .await;
    part(&mut meeting).await;
}

pub(super) async fn a_path_dies_while_the_peer_sends(stack: Stack) {
    let mut meeting = Plan::new(stack).on_two_paths().answer().await;
    confirmed(&meeting).await;
    meeting.relay.cut_after(0, 3_000_000);
    listen(&mut meeting).await;
}
