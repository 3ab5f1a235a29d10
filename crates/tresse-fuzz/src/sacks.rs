//! Target for acknowledgements: SACKs with any content while chunks are outstanding. At the end the peer acknowledges
//! all of them, and none may stay outstanding.

use std::time::Duration;

use tresse_proto::{AssociationConfig, SendOptions, StreamId, Tsn};
use tresse_wire::{Chunk, GapBlock, List, NrSack, Param, Sack};

use crate::scene::Scene;
use crate::source::Source;

/// Most steps of a run, and most rounds until the peer at the end must have acknowledged all chunks.
const MOST_STEPS: usize = 300;
const MOST_ROUNDS: usize = 200;

pub(crate) fn target(bytes: &[u8]) {
    let mut source = Source::new(bytes);
    let preset = if source.byte() & 1 == 0 { "cmt" } else { "rfc9260" };
    let config = AssociationConfig::preset(preset).expect("a preset");
    let extensions = Scene::extensions(false);
    let mut scene =
        Scene::established(config, &[Param::SupportedExtensions(&extensions), Param::ForwardTsnSupported]);
    for _ in 0..MOST_STEPS {
        if source.is_empty() {
            break;
        }
        match source.byte() % 4 {
            0 => send(&mut scene, &mut source),
            1 => scene.pass(Duration::from_millis(source.short().into())),
            _ => acknowledge(&mut scene, &mut source),
        }
    }
    finish(&mut scene);
}

/// The application sends a message, if the send buffer has room.
pub(crate) fn send(scene: &mut Scene, source: &mut Source<'_>) {
    let (stream, len) = (StreamId((source.byte() % 12).into()), usize::from(source.short()) % 6_000);
    let options = SendOptions::on(stream).with(|o| o.unordered = source.byte() & 7 == 0);
    let now = scene.now;
    if let Some(mut association) = scene.association() {
        // A message that was refused was not queued.
        let _ = association.send(now, options, vec![0; len].into());
    }
    scene.settle();
}

/// Sends a SACK or an NR-SACK with content from the fuzzer.
pub(crate) fn acknowledge(scene: &mut Scene, source: &mut Source<'_>) {
    let cumulative_tsn = Tsn(scene.highest.0.wrapping_add(source.offset()));
    let a_rwnd = match source.byte() {
        0 => 0,
        1 => source.word(),
        _ => 100_000,
    };
    let block = |source: &mut Source<'_>| {
        let start = u16::from(source.byte());
        GapBlock { start, end: start.wrapping_add(source.byte().into()) }
    };
    let blocks = |source: &mut Source<'_>| (0..source.byte() % 6).map(|_| block(source)).collect::<Vec<_>>();
    let (gaps, promised) = (blocks(source), blocks(source));
    let duplicates = [Tsn(source.word())];
    let duplicates = List::Values(&duplicates[..usize::from(source.byte() & 1)]);
    let flags = source.byte();
    let chunk = if promised.is_empty() {
        Chunk::Sack(Sack { flags, cumulative_tsn, a_rwnd, gaps: List::Values(&gaps), duplicates })
    } else {
        let (renegable, non_renegable) = (List::Values(&gaps[..]), List::Values(&promised[..]));
        Chunk::NrSack(NrSack { flags, cumulative_tsn, a_rwnd, renegable, non_renegable, duplicates })
    };
    scene.hear(&[chunk]);
}

/// From now on the peer acknowledges everything: then the send buffer must become empty, unless the association has
/// ended.
fn finish(scene: &mut Scene) {
    for _ in 0..MOST_ROUNDS {
        let none = List::Values(&[][..]);
        let sack = Sack {
            flags: 0,
            cumulative_tsn: scene.highest,
            a_rwnd: 100_000,
            gaps: none,
            duplicates: List::Values(&[]),
        };
        scene.hear(&[Chunk::Sack(sack)]);
        match scene.association() {
            Some(association) if association.is_established() && association.send_queue().used > 0 => {}
            _ => return,
        }
        scene.pass(Duration::from_secs(1));
    }
    let queue = scene.association().map(|association| association.send_queue());
    panic!("everything was acknowledged again and again, and there is still {queue:?}");
}
