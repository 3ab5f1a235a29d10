//! A program in C for the kernel's SCTP, over tresse's sockets: the preload library is in front of the C library. Neither end is
//! this process.

use crate::messages::{MESSAGES, bytes};
use crate::peer::{Callee, Peer, Place, Settings, Stack, Work, free_port, over_sockets};

/// A side that counts messages at `place`.
fn settings(place: Place) -> Settings {
    Settings {
        work: Work::Count,
        local: place.local,
        spare: place.spare,
        udp: place.udp,
        seat: place.seat,
        sctp: PORT,
        call: None,
        streams: 16,
        extensions: &[],
    }
}

/// The program's side.
fn own_settings() -> Settings {
    let local = vec![[127, 0, 0, 1].into()];
    settings(Place { local, spare: [127, 0, 0, 2].into(), udp: free_port(), seat: None })
}

fn callee(settings: &Settings) -> Callee {
    Callee { addresses: settings.local.clone(), udp: settings.udp, sctp: settings.sctp }
}

pub(super) async fn called_by_the_program(stack: Stack) {
    let (theirs, mut own) = (settings(stack.place(1)), own_settings());
    own.call = Some(callee(&theirs));
    let mut peer = stack.start(&theirs);
    peer.says("listening").await;
    let mut program = over_sockets(&own).await;
    both_ways(&mut program, &mut peer).await;
}

pub(super) async fn called_by_the_peer(stack: Stack) {
    let (mut theirs, own) = (settings(stack.place(1)), own_settings());
    theirs.call = Some(callee(&own));
    let mut program = over_sockets(&own).await;
    program.says("listening").await;
    let mut peer = stack.start(&theirs);
    both_ways(&mut program, &mut peer).await;
}

/// Both send at the same time, and the program ends the association: what either has given arrives.
async fn both_ways(program: &mut Peer, peer: &mut Peer) {
    for one in [&mut *program, peer] {
        one.says("connected").await;
        one.tell(&format!("generate {MESSAGES}"));
    }
    for one in [&mut *program, peer] {
        one.says(&format!("generated {MESSAGES}")).await;
    }
    program.tell("shutdown");
    for one in [program, peer] {
        one.says(&format!("received {MESSAGES} {} 0", bytes(MESSAGES))).await;
        one.says("ended graceful").await;
    }
}

/// SCTP port of both.
const PORT: u16 = 5000;
