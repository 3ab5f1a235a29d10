//! Every kept input of every target, played again.

use std::panic::catch_unwind;

use tresse_fuzz::{TARGETS, corpus};

#[test]
fn what_the_fuzzer_kept_breaks_no_promise() {
    for (name, run) in TARGETS {
        let inputs = corpus::read(name).expect("the kept inputs");
        assert!(!inputs.is_empty(), "nothing is kept for {name}");
        for (position, input) in inputs.iter().enumerate() {
            if catch_unwind(|| run(input)).is_err() {
                panic!("{}:{} breaks a promise", corpus::file(name).display(), position + 1);
            }
        }
    }
}

#[test]
fn the_simplest_inputs_break_no_promise() {
    for (_, run) in TARGETS {
        run(&[]);
        for byte in 0..=u8::MAX {
            run(&[byte; 64]);
        }
    }
}
