//! What came of each case with each stack, as a table for people; docs/interop.md keeps it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::peer::Stack;

/// What came of one case with one stack.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    Passed,
    /// The stack does not have what the case is about, for this reason.
    Unsupported(&'static str),
    /// Something is missing on this machine.
    Skipped(String),
    Failed(String),
}

impl Outcome {
    fn word(&self) -> &'static str {
        match self {
            Outcome::Passed => "passed",
            Outcome::Unsupported(_) => "unsupported by the peer",
            Outcome::Skipped(_) => "skipped",
            Outcome::Failed(_) => "failed",
        }
    }
}

/// Rows are cases, in their order; columns are stacks.
#[derive(Default)]
pub(crate) struct Matrix {
    cases: Vec<&'static str>,
    cells: BTreeMap<(&'static str, Stack), Outcome>,
}

impl Matrix {
    pub(crate) fn add(&mut self, case: &'static str, stack: Stack, outcome: Outcome) {
        if !self.cases.contains(&case) {
            self.cases.push(case);
        }
        self.cells.insert((case, stack), outcome);
    }

    /// The cells that failed, with the reason.
    pub(crate) fn failures(&self) -> Vec<String> {
        let failed = |(&(case, stack), outcome): (&(&'static str, Stack), &Outcome)| match outcome {
            Outcome::Failed(reason) => Some(format!("{} with {}: {reason}", case, stack.name())),
            _ => None,
        };
        self.cells.iter().filter_map(failed).collect()
    }

    /// What is missing on this machine, with the stacks that cannot take part for want of it.
    pub(crate) fn missing(&self) -> BTreeMap<Stack, &str> {
        let cells = self.cells.iter().filter_map(|(&(_, stack), outcome)| match outcome {
            Outcome::Skipped(missing) => Some((stack, missing.as_str())),
            _ => None,
        });
        cells.collect()
    }

    /// The table, with the reasons of what is not there behind it.
    pub(crate) fn table(&self) -> String {
        let mut text = String::from("| case |");
        Stack::ALL.iter().for_each(|stack| text.push_str(&format!(" {} |", stack.name())));
        text.push_str("\n| --- |");
        Stack::ALL.iter().for_each(|_| text.push_str(" --- |"));
        text.push('\n');
        for &case in &self.cases {
            let _ = write!(text, "| {case} |");
            for &stack in &Stack::ALL {
                let _ = write!(text, " {} |", self.cells.get(&(case, stack)).map_or("", Outcome::word));
            }
            text.push('\n');
        }
        text
    }

    /// Why stacks do not have what cases ask for, each reason once.
    fn reasons(&self) -> String {
        let mut reasons: BTreeMap<(Stack, &'static str), Vec<&'static str>> = BTreeMap::new();
        for &case in &self.cases {
            for &stack in &Stack::ALL {
                if let Some(Outcome::Unsupported(reason)) = self.cells.get(&(case, stack)) {
                    reasons.entry((stack, reason)).or_default().push(case);
                }
            }
        }
        let mut text = String::new();
        for ((stack, reason), cases) in reasons {
            let _ = writeln!(text, "- {}: {reason} ({}).", stack.name(), cases.join("; "));
        }
        text
    }

    /// Compares with docs/interop.md, or writes it when `UPDATE_DOCS` is set.
    ///
    /// Nothing is compared when a stack is missing on this machine: what is written then holds no news of it.
    pub(crate) fn check_page(&self) {
        let page = self.page();
        let path = page_path();
        if std::env::var_os("UPDATE_DOCS").is_some() {
            fs::write(&path, page).expect("docs/interop.md can be written");
        } else if !self.cells.values().any(|outcome| matches!(outcome, Outcome::Skipped(_))) {
            let written = fs::read_to_string(&path).expect("docs/interop.md is there");
            assert!(written == page, "docs/interop.md is stale: run `make interop`");
        }
    }

    fn page(&self) -> String {
        let mut page = String::from(INTRODUCTION);
        for stack in Stack::ALL {
            let _ = writeln!(page, "- **{}**: {}.", stack.name(), stack.about());
        }
        let _ = write!(page, "\n{}\n## What the peers do not have\n\n{}", self.table(), self.reasons());
        page
    }
}

fn page_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/interop.md")
}

const INTRODUCTION: &str = "\
# Interoperability

tresse beside the stacks of others, on the wire: every cell is a dialogue over loopback sockets that checks the contents,
the order and the number of messages on both sides. `make test` runs them all (`crates/tresse/tests/interop`) with the
peers that the machine has; the kernel wants QEMU, busybox and what `tools/fetch_kernel.sh` brings, and boots once for all
its cells.

<!-- Written by `make interop` from what the test found; edit the cases there. -->

The peers, all with SCTP in UDP:

";
