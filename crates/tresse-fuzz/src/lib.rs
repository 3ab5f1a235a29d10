//! Targets for a fuzzer. Each takes any bytes, applies them to the wire formats or to an endpoint, and panics when a
//! property is violated. Owns these properties, and not the search for bytes.
//!
//! The properties:
//!
//! - No input causes a panic, an endless loop or endless sending.
//! - What is read is written the same.
//! - A cookie that was changed makes no association.
//! - No key is installed for a peer that has not proved its identity.
//! - Encryption is negotiated as both parameters say, and an endpoint that requires it accepts nothing less.
//! - No record is accepted that was not sealed with the keys, and no record number is used twice.
//! - The modules of an association are consistent after every packet, and a peer that behaves in the end can shut the
//!   association down.
//! - Addresses change only for a peer that is authenticated, and every address request is answered once.
//!
//! `make fuzz` searches with libFuzzer, guided by coverage, and keeps inputs with new coverage in `corpus`; `make test`
//! replays these.

mod asconf;
mod association;
#[path = "../../tresse-proto/tests/common/keys.rs"]
#[allow(dead_code, unreachable_pub, reason = "the tests of the core have keys by it too")]
mod cipher;
mod cookie;
pub mod corpus;
mod keys;
mod offer;
mod packet;
mod records;
mod sacks;
mod scene;
#[path = "../../tresse-proto/tests/common/signer.rs"]
#[allow(unreachable_pub, reason = "the tests of the core sign with it too")]
mod signer;
mod source;

/// A target: its name, which is also that of its part of the corpus, and what it does with bytes.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: &[Target] = &[
    ("packet", packet::target),
    ("cookie", cookie::target),
    ("association", association::target),
    ("sacks", sacks::target),
    ("asconf", asconf::target),
    ("keys", keys::target),
    ("offer", offer::target),
    ("records", records::target),
];
