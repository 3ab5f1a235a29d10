//! Target for an association: packets with any content in any order, timers, and commands of the endpoint's application.

use std::time::Duration;

use tresse_proto::{AssociationConfig, Direction, Ppid, Ssn, StreamId, Streams, Tsn};
use tresse_wire::{
    Abort, Causes, Chunk, CookieEcho, Cwr, Data, DataFlags, Ecne, ErrorChunk, ForwardTsn, Heartbeat, IData,
    IForwardTsn, List, Mid, PacketDrop, Param, PpidOrFsn, Shutdown, SkippedMessage, SkippedStream,
};

use crate::sacks::{acknowledge, send};
use crate::scene::{PEER_TSN, Scene};
use crate::source::Source;

/// Most steps of a run.
const MOST_STEPS: usize = 300;

pub(crate) fn target(bytes: &[u8]) {
    let mut source = Source::new(bytes);
    let choice = source.byte();
    let mut config =
        AssociationConfig::preset(if choice & 1 == 0 { "cmt" } else { "rfc9260" }).expect("a preset");
    config.interleaving = choice & 2 != 0;
    config.partial_delivery_point.0 = if choice & 4 == 0 { 0 } else { 3_000 };
    let extensions = Scene::extensions(choice & 2 != 0);
    let mut scene =
        Scene::established(config, &[Param::SupportedExtensions(&extensions), Param::ForwardTsnSupported]);
    let mut next = PEER_TSN;
    for _ in 0..MOST_STEPS {
        if source.is_empty() {
            break;
        }
        step(&mut scene, &mut source, &mut next);
    }
}

/// Performs one step; `next` is the peer's next TSN.
fn step(scene: &mut Scene, source: &mut Source<'_>, next: &mut Tsn) {
    match source.byte() % 16 {
        0 | 1 => data(scene, source, next, false),
        2 | 3 => data(scene, source, next, true),
        4 => acknowledge(scene, source),
        5 => forward(scene, source, next),
        6 => {
            let bytes = source.slice(200);
            scene.hear_bytes(source.byte(), bytes);
        }
        7 => {
            let param = source.slice(100);
            let len = (param.len() + 4) as u16;
            let chunk = [&[130, 0][..], &len.to_be_bytes(), param].concat();
            scene.hear_bytes(0, &chunk);
        }
        8 => scene.pass(Duration::from_millis(source.short().into())),
        9 => send(scene, source),
        10 => {
            let now = scene.now;
            if let Some(mut association) = scene.association() {
                let _ = association.recv(now);
            }
            scene.settle();
        }
        11 => command(scene, source),
        12 => scene.hear_again(source.byte()),
        13 => {
            let packet = source.slice(300).to_vec();
            scene.hear_packet(source.byte(), packet.into());
        }
        _ => plain(scene, source),
    }
}

/// Sends DATA or I-DATA with a TSN near the expected one.
fn data(scene: &mut Scene, source: &mut Source<'_>, next: &mut Tsn, interleaved: bool) {
    let bits = source.byte();
    let flags = DataFlags {
        beginning: bits & 1 == 0,
        ending: bits & 2 == 0,
        unordered: bits & 4 != 0,
        immediate: bits & 8 != 0,
    };
    let tsn = if bits & 16 == 0 { *next } else { Tsn(next.0.wrapping_add(source.offset())) };
    if bits & 16 == 0 {
        *next = Tsn(next.0.wrapping_add(1));
    }
    let (stream, number) = (StreamId((source.byte() % 12).into()), source.byte());
    let payload = vec![0; usize::from(source.short()) % 2_000];
    let chunk = if interleaved {
        let ppid_or_fsn = if flags.beginning {
            PpidOrFsn::Ppid(Ppid(1))
        } else {
            PpidOrFsn::Fsn(tresse_wire::Fsn(source.byte().into()))
        };
        Chunk::IData(IData { tsn, stream, mid: Mid(number.into()), ppid_or_fsn, flags, payload: &payload })
    } else {
        Chunk::Data(Data { tsn, stream, ssn: Ssn(number.into()), ppid: Ppid(1), flags, payload: &payload })
    };
    scene.hear(&[chunk]);
}

/// Sends FORWARD-TSN or I-FORWARD-TSN.
fn forward(scene: &mut Scene, source: &mut Source<'_>, next: &mut Tsn) {
    let cumulative_tsn = Tsn(next.0.wrapping_add(source.offset()));
    let count = source.byte() % 8;
    if source.byte() & 1 == 0 {
        let streams: Vec<_> = (0..count)
            .map(|_| SkippedStream {
                stream: StreamId((source.byte() % 12).into()),
                ssn: Ssn(source.byte().into()),
            })
            .collect();
        scene.hear(&[Chunk::ForwardTsn(ForwardTsn { cumulative_tsn, streams: List::Values(&streams) })]);
    } else {
        let messages: Vec<_> = (0..count)
            .map(|_| SkippedMessage {
                stream: StreamId((source.byte() % 12).into()),
                unordered: source.byte() & 1 == 0,
                mid: Mid(source.byte().into()),
            })
            .collect();
        scene.hear(&[Chunk::IForwardTsn(IForwardTsn { cumulative_tsn, messages: List::Values(&messages) })]);
    }
}

/// Passes a command of its application to the endpoint.
fn command(scene: &mut Scene, source: &mut Source<'_>) {
    let (now, what) = (scene.now, source.byte());
    if let Some(mut association) = scene.association() {
        let direction =
            [Direction::Outbound, Direction::Inbound, Direction::Both][usize::from(source.byte() % 3)];
        // A call that returned an error had no effect.
        let _ = match what % 8 {
            0 => association.reset_association(now),
            1 => association.add_streams(now, u16::from(source.byte()), u16::from(source.byte())),
            2 | 3 => association.reset_streams(now, Streams::All, direction),
            4 | 5 => {
                let streams = [StreamId((source.byte() % 12).into())].into();
                association.reset_streams(now, Streams::These(streams), direction)
            }
            6 => {
                association.shutdown(now);
                Ok(())
            }
            _ => {
                while association.recv(now).is_some() {}
                Ok(())
            }
        };
    }
    scene.settle();
}

/// Sends a small chunk.
fn plain(scene: &mut Scene, source: &mut Source<'_>) {
    let what = source.byte();
    let tsn = Tsn(scene.highest.0.wrapping_add(source.offset()));
    let (body, cookie) = (scene.heartbeat.clone(), scene.cookie().to_vec());
    let quoted = scene.sent.clone();
    let chunk = match what % 17 {
        0..=2 => Chunk::HeartbeatAck(Heartbeat { body: &body }),
        3 => Chunk::Heartbeat(Heartbeat { body: source.slice(100) }),
        4 | 5 => Chunk::Shutdown(Shutdown { cumulative_tsn: tsn }),
        6 => Chunk::ShutdownAck,
        7 => Chunk::ShutdownComplete { tag_reflected: source.byte() & 1 == 0 },
        8 => Chunk::CookieAck,
        9 => Chunk::CookieEcho(CookieEcho { cookie: &cookie }),
        10 => Chunk::Error(ErrorChunk { causes: Causes::Wire(source.slice(40)) }),
        11 => Chunk::Ecne(Ecne { lowest_tsn: tsn, marked_packets: None }),
        12 => Chunk::Cwr(Cwr { lowest_tsn: tsn }),
        13 => return scene.send_init(&[]),
        14 => {
            let (flags, len) = (source.byte(), usize::from(source.short()));
            Chunk::PacketDrop(PacketDrop {
                middlebox: flags & 1 != 0,
                bad_checksum: flags & 2 == 0,
                truncated: flags & 4 != 0,
                bandwidth: 1,
                queue_size: 1,
                truncated_len: 1500,
                packet: &quoted[..quoted.len().min(len)],
            })
        }
        15 => Chunk::Abort(Abort { tag_reflected: true, causes: Causes::Values(&[]) }),
        _ => Chunk::Abort(Abort { tag_reflected: false, causes: Causes::Wire(source.slice(40)) }),
    };
    scene.hear(&[chunk]);
}
