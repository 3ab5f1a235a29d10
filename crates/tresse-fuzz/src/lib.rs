//! Targets for a fuzzer. Each gets any bytes, applies them to the wire formats or to an endpoint, and panics if a
//! property is violated. Owns these properties; libFuzzer owns the search for inputs.
//!
//! The properties:
//!
//! - No input causes a panic, an endless loop or endless sending.
//! - A value that was read is written as the same bytes.
//! - An altered cookie does not create an association.
//! - No key is installed for a peer that has not proved its identity.
//! - The outcome of the negotiation of encryption follows from both parameters; an endpoint that requires encryption
//!   accepts no association without it.
//! - A record that was not encrypted with the keys is not accepted, and no record number is used twice.
//! - The modules of an association are consistent after every packet, and a peer that behaves in the end can shut the
//!   association down.
//! - Addresses change only at requests of an authenticated peer, and every address request is answered once.
//!
//! `make fuzz` searches with libFuzzer, guided by coverage, and keeps inputs with new coverage in `corpus`; `make test`
//! runs the kept inputs again.

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

/// A target: its name, which also names its file in the corpus, and its function.
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
