//! Entry point for libFuzzer: passes the input to the target that the environment variable `TRESSE_FUZZ` names.
#![no_main]
#![allow(unsafe_code, reason = "the macro that defines libFuzzer's entry point has some")]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use tresse_fuzz::{TARGETS, Target};

static TARGET: OnceLock<Target> = OnceLock::new();

fuzz_target!(|bytes: &[u8]| {
    let (_, run) = TARGET.get_or_init(|| {
        let wanted = std::env::var("TRESSE_FUZZ").unwrap_or_default();
        let known: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
        *TARGETS
            .iter()
            .find(|(name, _)| *name == wanted)
            .unwrap_or_else(|| panic!("TRESSE_FUZZ is \"{wanted}\"; it may be {}", known.join(", ")))
    });
    run(bytes);
});
