//! Addresses that come and go in mid-association, authenticated (RFC 5061, RFC 4895).

use std::net::IpAddr;
use std::time::Duration;

use tresse::{AddressChange, AddressOutcome, Association, Event, Events, PathState, PathStats};

use super::{HALF, await_event};
use crate::meeting::{Meeting, Plan};
use crate::messages::{Ledger, bytes, send};
use crate::peer::Stack;

/// On one path, which can be left.
fn movable(stack: Stack) -> Plan {
    Plan::new(stack).directly().telling(&["addresses"])
}

/// tresse moves to another address: it adds that one, asks to be sent to it, and gives the old one up.
pub(super) async fn moved_here(stack: Stack) {
    let mut meeting = movable(stack).echoing().call().await;
    let (old, new) = meeting.own_addresses();
    meeting.bind(new);
    let Meeting { association, peer, .. } = &mut meeting;
    let mut events = association.events();
    let mut ledger = Ledger::default();
    tokio::join!(send(association, 0..HALF), ledger.take(association, HALF));

    association.add_address(new).expect("an address that is bound");
    done(&mut events, new, AddressChange::Add).await;
    active(association, |path| path.local == new).await;
    association.set_peer_primary(new).expect("an address that was added");
    done(&mut events, new, AddressChange::Prefer).await;
    association.remove_address(old).expect("there is another one");
    done(&mut events, old, AddressChange::Remove).await;

    let before = on(association, |path| path.local == new);
    tokio::join!(send(association, HALF..2 * HALF), ledger.take(association, HALF));
    ledger.assert_complete(2 * HALF);
    let after = on(association, |path| path.local == new);
    let moved = bytes(2 * HALF) - bytes(HALF);
    assert!((after - before) as usize >= moved, "{after} bytes after {before} left from {new}");
    assert_eq!(association.shutdown().await, Ok(()));
    peer.says(&format!("received {} {} 0", 2 * HALF, bytes(2 * HALF))).await;
    peer.says("ended graceful").await;
}

/// The peer moves to another address in the same way.
pub(super) async fn moved_there(stack: Stack) {
    let mut meeting = movable(stack).answer().await;
    let (old, new) = meeting.peer_addresses();
    let Meeting { association, peer, .. } = &mut meeting;
    let mut events = association.events();
    let mut ledger = Ledger::default();
    peer.tell(&format!("generate {HALF}"));
    ledger.take(association, HALF).await;
    peer.says(&format!("generated {HALF}")).await;

    let changes = [
        ("add", new, AddressChange::Add),
        ("prefer", new, AddressChange::Prefer),
        ("remove", old, AddressChange::Remove),
    ];
    for (number, (command, address, change)) in (0..).zip(changes) {
        peer.tell(&format!("{command} {address}"));
        let wanted = Event::PeerAddress { address, change };
        await_event(&mut events, |event| *event == wanted).await;
        if change == AddressChange::Add {
            active(association, |path| path.remote == new).await;
        }
        // An acknowledged message has overtaken nothing: the peer has the answer to its request. usrsctp 0.9.5 lets a
        // request that is made while another one is open wait for a timer, and when that expires on the only path
        // it gives back a reference to the path that it did not take, and breaks down later.
        send(association, number..number + 1).await;
        acknowledged(association).await;
    }
    let remotes: Vec<IpAddr> = living(association).iter().map(|path| path.remote).collect();
    assert_eq!(remotes, [new], "where tresse sends to");

    peer.tell(&format!("generate {HALF}"));
    ledger.take(association, HALF).await;
    ledger.assert_complete(2 * HALF);
    peer.says(&format!("generated {HALF}")).await;
    peer.tell("shutdown");
    assert_eq!(association.recv().await, Ok(None));
    peer.says(&format!("received 3 {} 0", bytes(3))).await;
    peer.says("ended graceful").await;
}

/// Waits until the peer has agreed to a change of an own address.
async fn done(events: &mut Events, address: IpAddr, change: AddressChange) {
    let mut outcome = None;
    let is_answer = |event: &Event| match *event {
        Event::OwnAddress { address: of, change: what, outcome: came } if (of, what) == (address, change) => {
            Some(came)
        }
        _ => None,
    };
    while outcome.is_none() {
        outcome = is_answer(&events.next().await.expect("the association is open").expect("none is missed"));
    }
    assert_eq!(outcome, Some(AddressOutcome::Done), "{change:?} {address}");
}

/// Waits until such a path has answered a heartbeat.
async fn active(association: &Association, such: impl Fn(&PathStats) -> bool) {
    while !living(association).iter().any(&such) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until the peer has acknowledged everything.
async fn acknowledged(association: &Association) {
    while association.send_queue().used > 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn living(association: &Association) -> Vec<PathStats> {
    association.path_stats().into_iter().filter(|path| path.state == PathState::Active).collect()
}

/// Bytes that tresse has sent on such paths.
fn on(association: &Association, such: impl Fn(&PathStats) -> bool) -> u64 {
    living(association).iter().filter(|path| such(path)).map(|path| path.bytes_sent).sum()
}
