//! The cases: what is done, and what either side has to find.

mod addresses;
mod endings;
mod interleaving;
mod paths;
mod reliability;
mod restarts;
mod sockets;
mod streams;
mod transfers;

use std::pin::Pin;

use tresse::{CloseReason, Event, Events};

use crate::meeting::Meeting;
use crate::messages::{Ledger, MESSAGES, bytes, send};
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
    ($($name:literal, [$($need:ident),*], $run:path;)*) => {
        &[$(Case { name: $name, needs: &[$(Need::$need),*], run: |stack| Box::pin($run(stack)) }),*]
    };
}

pub(crate) const CASES: &[Case] = cases! {
    "set-up by tresse, shutdown by tresse", [], endings::opened_and_shut_down_here;
    "set-up by the peer, shutdown by the peer", [], endings::opened_and_shut_down_there;
    "abort by tresse", [], endings::aborted_here;
    "abort by the peer", [], endings::aborted_there;
    "10 MB there and back, 16 streams, ordered and unordered", [], transfers::echoed;
    "10 MB from the peer, which opened the association", [], transfers::generated;
    "10 MB there and back, 1 % lost, 2 % reordered", [], transfers::echoed_over_a_rough_path;
    "10 MB from the peer, 1 % lost, 2 % reordered", [], transfers::generated_over_a_rough_path;
    "I-DATA, 10 MB there and back", [Interleaving], interleaving::interleaved;
    "I-DATA, 10 MB from the peer, 1 % lost, 2 % reordered", [Interleaving], interleaving::interleaved_over_a_rough_path;
    "I-DATA offered by one side only: DATA is spoken", [], interleaving::not_interleaved;
    "I-DATA and partial reliability, tresse sends, 1 % lost", [UnorderedForward], interleaving::interleaved_and_given_up_here;
    "I-DATA and partial reliability of ordered messages, tresse sends, 1 % lost", [Interleaving], interleaving::interleaved_and_given_up_in_order_here;
    "I-DATA and partial reliability, the peer sends, 1 % lost", [InterleavedForward], interleaving::interleaved_and_given_up_there;
    "partial reliability, tresse sends, 1 % lost", [], reliability::given_up_here;
    "partial reliability, the peer sends, 1 % lost", [], reliability::given_up_there;
    "a stream reset by tresse", [], streams::reset_here;
    "a stream reset by the peer, which tresse answers with its own", [], streams::reset_there;
    "tresse restarts", [Restart], restarts::restarted_here;
    "the peer restarts", [], restarts::restarted_there;
    "NR-SACK", [NrSack], transfers::reported_by_nr_sack;
    "ECN, 1 MB from the peer, every packet marked", [Ecn], transfers::generated_under_congestion;
    "two paths, one at a time", [MultiHoming], paths::on_two_paths;
    "INIT lists no address of tresse, two paths", [MultiHoming], paths::without_a_list_in_init;
    "INIT ACK lists no address of tresse, two paths", [MultiHoming], paths::without_a_list_in_init_ack;
    "CMT on both sides", [MultiHoming, Cmt, NrSack], paths::on_two_paths_at_once;
    "CMT on both sides, 1 % lost, 2 % reordered", [MultiHoming, Cmt, NrSack], paths::on_two_rough_paths_at_once;
    "the path in use dies in mid-transfer, tresse sends", [MultiHoming], paths::a_path_dies_while_tresse_sends;
    "the path in use dies in mid-transfer, the peer sends", [MultiHoming], paths::a_path_dies_while_the_peer_sends;
    "tresse moves to another address (ASCONF, AUTH)", [DynamicAddresses], addresses::moved_here;
    "the peer moves to another address (ASCONF, AUTH)", [DynamicAddresses], addresses::moved_there;
    "a C program over tresse's sockets opens, 10 MB each way", [], sockets::called_by_the_program;
    "the peer opens to a C program over tresse's sockets, 10 MB each way", [], sockets::called_by_the_peer;
};

/// Everything there and back, then a graceful end; both sides have counted.
async fn converse(meeting: &mut Meeting) {
    exchange(meeting).await;
    part(meeting).await;
}

/// Everything there and back.
async fn exchange(meeting: &Meeting) {
    let mut ledger = Ledger::default();
    tokio::join!(send(&meeting.association, 0..MESSAGES), ledger.take(&meeting.association, MESSAGES));
    ledger.assert_complete(MESSAGES);
}

/// A graceful end after everything went there and back; both sides have counted.
///
/// The end is not disturbed: programs that leave with their last packet cannot repeat it.
async fn part(meeting: &mut Meeting) {
    let Meeting { association, peer, relay, .. } = meeting;
    relay.smoothen();
    assert_eq!(association.shutdown().await, Ok(()));
    peer.says(&format!("received {MESSAGES} {} 0", bytes(MESSAGES))).await;
    peer.says("ended graceful").await;
}

/// Everything from the peer, which then ends it, undisturbed again.
async fn listen(meeting: &mut Meeting) {
    listen_to(meeting, MESSAGES).await;
}

/// So many messages from the peer, which then ends it, undisturbed.
async fn listen_to(meeting: &mut Meeting, count: u32) {
    let Meeting { association, peer, relay, .. } = meeting;
    peer.tell(&format!("generate {count}"));
    let mut ledger = Ledger::default();
    ledger.take(association, count).await;
    ledger.assert_complete(count);
    peer.says(&format!("generated {count}")).await;
    relay.smoothen();
    peer.tell("shutdown");
    assert_eq!(association.recv().await, Ok(None));
    assert_eq!(association.closed().await, CloseReason::Graceful);
    peer.says("received 0 0 0").await;
    peer.says("ended graceful").await;
}

async fn await_event(events: &mut Events, wanted: impl Fn(&Event) -> bool) {
    while !wanted(&events.next().await.expect("the association is open").expect("none is missed")) {}
}

/// Messages before something happens, and as many afterwards.
const HALF: u32 = 100;
/// Chunk types (RFC 9260 §3.2, RFC 3758 §3.2, RFC 8260 §2.1 and §2.3.1; NR-SACK: draft-tuexen-tsvwg-sctp-multipath §4).
const DATA: u8 = 0;
const I_DATA: u8 = 64;
const FORWARD_TSN: u8 = 192;
const I_FORWARD_TSN: u8 = 194;
const SACK: u8 = 3;
const NR_SACK: u8 = 16;
/// RFC 4960 appendix A.
const ECNE: u8 = 12;
const CWR: u8 = 13;
