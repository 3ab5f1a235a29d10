//! I-DATA instead of DATA (RFC 8260).

use super::reliability::{give_up_here, give_up_there};
use super::{DATA, I_DATA, I_FORWARD_TSN, converse, listen};
use crate::meeting::Plan;
use crate::peer::Stack;

fn interleaving(stack: Stack) -> Plan {
    Plan::new(stack).telling(&["interleaving"]).with("interleaving", "true")
}

pub(super) async fn interleaved(stack: Stack) {
    let mut meeting = interleaving(stack).echoing().call().await;
    converse(&mut meeting).await;
    meeting.assert_spoke(I_DATA, DATA);
}

pub(super) async fn interleaved_over_a_rough_path(stack: Stack) {
    let mut meeting = interleaving(stack).answer().await;
    meeting.relay.roughen();
    listen(&mut meeting).await;
    assert!(meeting.chunks()[1].contains(&I_DATA) && !meeting.chunks()[1].contains(&DATA));
}

pub(super) async fn not_interleaved(stack: Stack) {
    for plan in [Plan::new(stack).with("interleaving", "true"), Plan::new(stack).telling(&["interleaving"])] {
        let mut meeting = plan.echoing().call().await;
        converse(&mut meeting).await;
        meeting.assert_spoke(DATA, I_DATA);
    }
}

pub(super) async fn interleaved_and_given_up_here(stack: Stack) {
    let mut meeting = interleaving(stack).call().await;
    give_up_here(&mut meeting, |_| true).await;
    assert!(meeting.chunks()[0].contains(&I_FORWARD_TSN), "the peer was told of what was given up");
}

pub(super) async fn interleaved_and_given_up_in_order_here(stack: Stack) {
    let mut meeting = interleaving(stack).call().await;
    give_up_here(&mut meeting, |options| !options.unordered).await;
    assert!(meeting.chunks()[0].contains(&I_FORWARD_TSN), "the peer was told of what was given up");
}

pub(super) async fn interleaved_and_given_up_there(stack: Stack) {
    let mut meeting = interleaving(stack).answer().await;
    give_up_there(&mut meeting).await;
    assert!(meeting.chunks()[1].contains(&I_FORWARD_TSN), "the peer told of what was given up");
}
