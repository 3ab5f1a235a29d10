//! Against the stacks of others, over loopback sockets: every case with every peer that has what it needs,
//! as a table that docs/interop.md keeps.
//!
//! `INTEROP=word cargo test --test interop` runs only cases whose name or stack contains the word; a stack whose cases were
//! all run is compared with the page, the others are not.

#![allow(missing_docs, clippy::disallowed_methods, reason = "a test")]

mod cases;
mod dcsctp;
mod linux;
mod matrix;
mod meeting;
mod messages;
mod page;
mod peer;
mod pion;
#[path = "../../../tresse-preload/tests/common/mod.rs"]
mod preload;
#[path = "../relay/mod.rs"]
mod relay;
mod usrsctp;

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use cases::{CASES, Case};
use matrix::{Matrix, Outcome};
use peer::Stack;
use tokio::sync::Semaphore;
use tokio::time::timeout;

#[tokio::test(flavor = "multi_thread")]
async fn every_peer_passes_every_case_that_it_supports() {
    let wanted = std::env::var("INTEROP").ok();
    let turns = Arc::new(Turns { all: Semaphore::new(AT_ONCE), machine: Semaphore::new(1) });
    let mut cells = Vec::new();
    for case in CASES {
        for stack in Stack::ALL {
            let described = format!("{} {}", case.name, stack.name());
            if wanted.as_ref().is_none_or(|word| described.contains(word.as_str())) {
                let play = play(case, stack, Arc::clone(&turns));
                cells.push((case.name, stack, tokio::spawn(play)));
            }
        }
    }
    let mut matrix = Matrix::default();
    for (case, stack, cell) in cells {
        matrix.add(case, stack, cell.await.expect("a cell catches its own failures"));
    }
    for (stack, missing) in matrix.missing() {
        say(&format!("{}: skipped: {missing}", stack.name()));
    }
    say(&matrix.table());
    assert!(matrix.failures().is_empty(), "{}", matrix.failures().join("\n"));
    matrix.check_page();
}

/// So many cells play at once, and one of those with the emulated machine: it is so slow that several would hold each
/// other's packets up, and over a path with losses each window of packets takes a round trip.
struct Turns {
    all: Semaphore,
    machine: Semaphore,
}

/// Plays one case with one stack, when it is its turn.
async fn play(case: &'static Case, stack: Stack, turns: Arc<Turns>) -> Outcome {
    if let Some(reason) = case.needs.iter().find_map(|&need| stack.lacks(need)) {
        return Outcome::Unsupported(reason);
    }
    // A machine may have to boot; others take their turns meanwhile.
    let prepared = tokio::task::spawn_blocking(move || stack.prepare()).await;
    if let Err(missing) = prepared.expect("it says what is missing") {
        return Outcome::Skipped(missing);
    }
    let _alone = match stack {
        Stack::Linux => Some(turns.machine.acquire().await.expect("nobody closes it")),
        _ => None,
    };
    let _turn = turns.all.acquire().await.expect("nobody closes it");
    let played = tokio::spawn(timeout(PATIENCE, (case.run)(stack)));
    match played.await {
        Ok(Ok(())) => Outcome::Passed,
        Ok(Err(_)) => Outcome::Failed(format!("it did not end within {} s", PATIENCE.as_secs())),
        Err(error) => Outcome::Failed(reason(error)),
    }
}

/// What a failed assertion said.
fn reason(error: tokio::task::JoinError) -> String {
    match error.try_into_panic() {
        Ok(panic) => match (panic.downcast_ref::<String>(), panic.downcast_ref::<&str>()) {
            (Some(text), _) => text.clone(),
            (_, Some(text)) => (*text).to_owned(),
            _ => "it broke down".to_owned(),
        },
        Err(error) => error.to_string(),
    }
}

/// A line that is seen although the test passes.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Long enough for any machine: it only ends cases that hang.
const PATIENCE: Duration = Duration::from_secs(900);
/// Cases that run at the same time.
const AT_ONCE: usize = 4;
