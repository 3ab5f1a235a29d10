//! Ten megabytes of messages of all lengths, or one, on many streams, one way or there and back.

use super::{CWR, ECNE, HALF, NR_SACK, SACK, converse, listen, listen_to};
use crate::meeting::Plan;
use crate::peer::Stack;

pub(super) async fn echoed(stack: Stack) {
    converse(&mut Plan::new(stack).echoing().call().await).await;
}

pub(super) async fn generated(stack: Stack) {
    listen(&mut Plan::new(stack).answer().await).await;
}

pub(super) async fn echoed_over_a_rough_path(stack: Stack) {
    let mut meeting = Plan::new(stack).echoing().call().await;
    meeting.relay.roughen();
    converse(&mut meeting).await;
}

pub(super) async fn generated_over_a_rough_path(stack: Stack) {
    let mut meeting = Plan::new(stack).answer().await;
    meeting.relay.roughen();
    listen(&mut meeting).await;
}

pub(super) async fn generated_under_congestion(stack: Stack) {
    // The peer's window falls to one packet, which should not wait for a second one to be acknowledged; so each packet
    // takes a round trip, and there are not many.
    let mut meeting = Plan::new(stack).telling(&["ecn"]).with("sack_frequency", "1").answer().await;
    meeting.relay.congest();
    listen_to(&mut meeting, HALF).await;
    let [ours, theirs] = meeting.chunks();
    assert!(ours.contains(&ECNE) && theirs.contains(&CWR), "tresse: {ours:?}, the peer: {theirs:?}");
    assert!(meeting.association.path_stats().iter().any(|path| path.marks > 0));
}

pub(super) async fn reported_by_nr_sack(stack: Stack) {
    let plan = || Plan::new(stack).telling(&["nr_sack"]).with("nr_sack", "everything");
    let mut echo = plan().echoing().call().await;
    converse(&mut echo).await;
    echo.assert_spoke(NR_SACK, SACK);
    let mut without = Plan::new(stack).echoing().with("nr_sack", "everything").call().await;
    converse(&mut without).await;
    without.assert_spoke(SACK, NR_SACK);
}
