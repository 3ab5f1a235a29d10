//! Targets for a fuzzer: each takes any bytes, does something with them to the wire formats or to an endpoint, and panics
//! when a promise is broken. Owns what a broken promise is, not how bytes are found.
//!
//! The promises: no bytes make anything panic, run without end or send without end; what is read is written the same; a
//! cookie works as it was given or not at all; no key is installed for a peer that has not proved who it is; protection is agreed on as both parameters say, and who requires it takes
//! nothing less; nothing that was not sealed with the keys is taken for a record, and no record number is used twice; the modules of an association agree with each other after every packet, and
//! a peer that behaves in the end gets the association to its end; addresses change only for a peer that proves who it is, and
//! every request about them is answered once.
//!
//! `make fuzz` searches with libFuzzer, guided by coverage, and keeps what leads somewhere new in `corpus`; `make test`
//! replays that.

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
