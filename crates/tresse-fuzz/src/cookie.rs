//! Target for state cookies: INITs with any content, and altered cookies. Only an unaltered cookie may create an
//! association.

use tresse_proto::AssociationConfig;
use tresse_wire::{Chunk, CookieEcho, Param, Params};

use crate::scene::Scene;
use crate::source::Source;

/// Most bytes of a cookie: the first number for each byte of the INIT's parameters, plus the second.
const COOKIE: (usize, usize) = (4, 2_000);

pub(crate) fn target(bytes: &[u8]) {
    let mut source = Source::new(bytes);
    let mut scene = Scene::new(AssociationConfig::default());
    let raw = source.slice(1_000);
    let params: Vec<Param<'_>> = Params::Wire(raw).iter().flatten().collect();
    scene.send_init(&params);
    assert!(scene.association().is_none(), "an INIT made an association");
    let given = scene.cookie().to_vec();
    if given.is_empty() {
        // The endpoint refused the INIT.
        return;
    }
    assert!(given.len() <= COOKIE.0 * raw.len() + COOKIE.1, "a cookie of {} bytes", given.len());
    let mut changed = given.clone();
    for _ in 0..source.byte() % 8 {
        let position = usize::from(source.short()) % changed.len();
        changed[position] ^= source.byte();
    }
    match source.byte() % 8 {
        0 => changed.truncate(usize::from(source.short()) % (changed.len() + 1)),
        1 => changed.extend_from_slice(source.rest()),
        2 => changed = source.rest().to_vec(),
        _ => {}
    }
    scene.hear(&[Chunk::CookieEcho(CookieEcho { cookie: &changed })]);
    assert_eq!(
        scene.association().is_some(),
        changed == given,
        "a cookie was changed, and it made a difference"
    );
    scene.hear(&[Chunk::CookieEcho(CookieEcho { cookie: &given })]);
    assert!(scene.association().is_some(), "the cookie as it was given");
}
